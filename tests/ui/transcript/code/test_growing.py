"""Colours while code grows: the same as at its end, at the cost of the new lines, and nothing flickers."""

import pytest

from tests.ui.transcript.code.samples import SAMPLES
from tests.ui.transcript.colouring.whole import words_by_line
from ui.look.theme import LIGHT
from ui.transcript.blocks.code.code_block import CodeBlock
from ui.transcript.blocks.code.host import CodeHost
from ui.transcript.blocks.code.lines.side_line import SideLine
from ui.transcript.blocks.colouring import growing
from ui.transcript.blocks.colouring.coloured import Slice, Standing
from ui.transcript.blocks.colouring.growing import coloured_more
from ui.transcript.look import Look


@pytest.fixture
def look(qapp):
    return Look(LIGHT, 100)


def coloured_in_steps(text, language, step):
    lines = text.split("\n")[:-1]
    standing, words, read = Standing(), [], 0
    for end in range(step, len(lines) + step, step):
        part = lines[standing.line : end]
        read += len(part)
        found = coloured_more("".join(f"{line}\n" for line in part), language, standing)
        words[found.line :] = found.words
        standing = found.standing
    return words, read / len(lines)


@pytest.mark.parametrize("language", sorted(SAMPLES))
@pytest.mark.parametrize("step", [1, 3])
def test_what_is_coloured_in_steps_is_coloured_as_a_whole(language, step):
    words, _ = coloured_in_steps(SAMPLES[language], language, step)
    assert words == words_by_line(SAMPLES[language], language)[:-1]


def test_a_line_costs_what_it_is_long():
    lines = "".join(f"def f{number}(a):\n    return a + {number}  # one\n" for number in range(100))
    _, times = coloured_in_steps(lines, "python", 1)
    assert times < 3


def test_what_is_not_ended_is_read_again_from_its_beginning():
    opening = coloured_more("x = 1\n/* a\n", "js", Standing())
    assert opening.standing == Standing()
    closed = coloured_more("x = 1\n/* a\nb */\ny = 2\n", "js", Standing())
    assert [kind for _, _, kind in closed.words[2]] == ["comment"]
    assert closed.standing.line == 4


def test_unknown_languages_and_wild_grammars_raise_nothing(monkeypatch):
    assert coloured_more("x\n", "no-such-language", Standing()) is None
    monkeypatch.setattr(growing, "_resumed", lambda *given: 1 / 0)
    assert coloured_more("x = 1\n", "python", Standing()).words == [[(4, 1, "number")]]


class Ask:
    """Answers what a block asks for, when it is told to."""

    def __init__(self):
        self.waiting, self.later, self.arrived = [], [], 0
        self.host = CodeHost(
            lambda text: None,
            lambda: None,
            self.colour,
            arrived=self.on_arrived,
            colouring_more=self.more,
            later=self.later.append,
        )

    def on_arrived(self):
        self.arrived += 1

    def colour(self, text, language, then):
        self.waiting.append(lambda: then(Slice(0, words_by_line(text, language), is_last=True)))

    def more(self, text, language, standing, then):
        self.waiting.append(lambda: then(coloured_more(text, language, standing)))

    def answer(self):
        waiting, self.waiting = self.waiting, []
        for each in waiting:
            each()


def streamed(look, text, step=7):
    ask = Ask()
    block = CodeBlock("", "python", ask.host, is_open=True)
    for at in range(0, len(text), step):
        block.grow(text[at : at + step])
        block.lay(400, look)
        ask.answer()
    return ask, block


def test_code_is_coloured_while_it_grows_and_keeps_its_colours_at_its_end(look):
    text = SAMPLES["python"].rstrip("\n")
    ask, block = streamed(look, text)
    growing_words = [list(line) for line in block._lines.words]
    assert sum(map(bool, growing_words)) >= len(growing_words) // 2
    kept = {number: SideLine("", block._lines._setting) for number in range(len(growing_words))}
    block._lines._cut.update(kept)
    block.close(text)
    block.lay(400, look)
    ask.arrived = 0
    ask.answer()
    assert block._lines.words == words_by_line(text, "python")
    lines = [number for number, line in enumerate(growing_words) if line == block._lines.words[number]]
    assert set(lines) >= set(range(len(growing_words) - 1))
    assert all(block._lines._cut.get(number) is kept[number] for number in lines)


def test_new_colours_are_painted_with_the_next_text_or_by_themselves(look):
    ask, block = streamed(look, "a = 1\nb = 2\nc")
    (first, *_), ask.arrived = ask.later, 0
    block.grow(" = 3")
    first()
    assert ask.arrived == 0
    block.grow("\n")
    block.lay(400, look)
    ask.answer()
    block.grow("d = 4")
    assert block.dirty_from == block._head + block._lines.top(2)
    block.grow("\n")
    block.lay(400, look)
    ask.answer()
    ask.later[-1]()
    assert ask.arrived == 1


def test_a_long_comment_is_not_read_again_with_every_line(look):
    ask = Ask()
    block = CodeBlock("", "js", ask.host, is_open=True)
    asked = 0
    for _ in range(400):
        block.grow("* one more line\n" if asked else "/*\n")
        block.lay(400, look)
        asked += bool(ask.waiting)
        ask.answer()
    assert asked < 60
