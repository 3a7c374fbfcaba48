"""Colours while code grows: the same as at its end, at the cost of the new lines, and nothing flickers."""

import pytest

from tests.ui.transcript.blocks.code.lexed_words import words_by_line
from tests.ui.transcript.blocks.code.samples import SAMPLES
from ui.style.theme import LIGHT
from ui.transcript.blocks.code import highlighter_worker
from ui.transcript.blocks.code.code_block import CodeBlock, CodeCallbacks
from ui.transcript.blocks.code.highlighter_protocol import HighlightSlice, LexerState
from ui.transcript.blocks.code.highlighter_worker import highlight_more_lines
from ui.transcript.blocks.code.line_layout import UnwrappedLine
from ui.transcript.style import RenderStyle


@pytest.fixture
def style(qapp):
    return RenderStyle(LIGHT, 100)


def coloured_in_steps(text, language, step):
    lines = text.split("\n")[:-1]
    lexer_state, words, read_lines = LexerState(), [], 0
    for end in range(step, len(lines) + step, step):
        part = lines[lexer_state.line : end]
        read_lines += len(part)
        lines_found = highlight_more_lines("".join(f"{line}\n" for line in part), language, lexer_state)
        words[lines_found.line :] = lines_found.words
        lexer_state = lines_found.lexer_state
    return words, read_lines / len(lines)


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
    opening = highlight_more_lines("x = 1\n/* a\n", "js", LexerState())
    assert opening.lexer_state == LexerState()
    closed = highlight_more_lines("x = 1\n/* a\nb */\ny = 2\n", "js", LexerState())
    assert [kind for _, _, kind in closed.words[2]] == ["comment"]
    assert closed.lexer_state.line == 4


def test_unknown_languages_and_wild_grammars_raise_nothing(monkeypatch):
    assert highlight_more_lines("x\n", "no-such-language", LexerState()) is None
    monkeypatch.setattr(highlighter_worker, "_highlight_from", lambda *args: 1 / 0)
    assert highlight_more_lines("x = 1\n", "python", LexerState()).words == [[(4, 1, "number")]]


class Ask:
    """A highlighter that answers a block when the test says so."""

    def __init__(self):
        self.waiting, self.run_later, self.arrived = [], [], 0
        self.host = CodeCallbacks(
            lambda text: None,
            lambda: None,
            self.colour,
            on_arrived=self.on_arrived,
            highlight_more=self.load_more,
            run_later=self.run_later.append,
        )

    def on_arrived(self):
        self.arrived += 1

    def colour(self, text, language, callback):
        self.waiting.append(lambda: callback(HighlightSlice(0, words_by_line(text, language), is_last=True)))

    def load_more(self, text, language, lexer_state, callback):
        self.waiting.append(lambda: callback(highlight_more_lines(text, language, lexer_state)))

    def answer(self):
        callbacks, self.waiting = self.waiting, []
        for callback in callbacks:
            callback()


def streamed(style, text, step=7):
    ask = Ask()
    block = CodeBlock("", "python", ask.host, is_open=True)
    for at in range(0, len(text), step):
        block.append(text[at : at + step])
        block.layout(400, style)
        ask.answer()
    return ask, block


def test_code_is_coloured_while_it_grows_and_keeps_its_colours_at_its_end(style):
    text = SAMPLES["python"].rstrip("\n")
    ask, block = streamed(style, text)
    growing_words = [list(line) for line in block._lines.words]
    assert sum(map(bool, growing_words)) >= len(growing_words) // 2
    laid_out = {number: UnwrappedLine("", block._lines._options) for number in range(len(growing_words))}
    block._lines._laid_out.update(laid_out)
    block.finish(text)
    block.layout(400, style)
    ask.arrived = 0
    ask.answer()
    assert block._lines.words == words_by_line(text, "python")
    lines = [number for number, line in enumerate(growing_words) if line == block._lines.words[number]]
    assert set(lines) >= set(range(len(growing_words) - 1))
    assert all(block._lines._laid_out.get(number) is laid_out[number] for number in lines)


def test_new_colours_are_painted_with_the_next_text_or_by_themselves(style):
    ask, block = streamed(style, "a = 1\nb = 2\nc")
    (first, *_), ask.arrived = ask.run_later, 0
    block.append(" = 3")
    first()
    assert ask.arrived == 0
    block.append("\n")
    block.layout(400, style)
    ask.answer()
    block.append("d = 4")
    assert block.dirty_from == block._header_height + block._lines.top(2)
    block.append("\n")
    block.layout(400, style)
    ask.answer()
    ask.run_later[-1]()
    assert ask.arrived == 1


def test_a_long_comment_is_not_read_again_with_every_line(style):
    ask = Ask()
    block = CodeBlock("", "js", ask.host, is_open=True)
    requests = 0
    for _ in range(400):
        block.append("* one more line\n" if requests else "/*\n")
        block.layout(400, style)
        requests += bool(ask.waiting)
        ask.answer()
    assert requests < 60
