"""Finding in a view: what is counted, which match is the current one, what is marked, opened and scrolled to."""

from pathlib import Path

from desktop_agent.conversation.items import Removed
from desktop_agent.conversation.transcript import Transcript
from desktop_agent.types.blocks import Outcome, ServerStep, Text, ToolResult, ToolUse
from desktop_agent.types.engine_events import RunEnd, RunFinished, ToolFinished, TurnStarted
from desktop_agent.types.errors import Sentence
from desktop_agent.types.messages import Message
from desktop_agent.types.provider_events import ContentDelta, ThinkingBlock, ThinkingDelta, ToolArgsDelta
from tests.fakes.transcript_feed import Feed, NoPictures
from tests.ui.pixels import colors_of
from tests.ui.transcript.copied import plain_of
from ui.style.theme import LIGHT, ThemeSource
from ui.transcript.find import matches, searchable_text
from ui.transcript.find.finder import FindStatus
from ui.transcript.find.matches import Query
from ui.transcript.view import TranscriptView
from ui.transcript.viewport.positions import text_boxes
from ui.transcript.viewport.prefetch import Prefetcher


class FindHarness:
    """A view with its finder."""

    def __init__(self, qtbot, messages=()):
        self.qtbot = qtbot
        self.transcript = Transcript(messages)
        self.feed = Feed(self.transcript)
        self.view = TranscriptView(ThemeSource(), NoPictures(Path()))
        qtbot.addWidget(self.view, before_close_func=lambda view: view.close_workers())
        self.view.resize(800, 600)
        self.view.set_transcript(self.transcript)
        with qtbot.waitExposed(self.view):
            self.view.show()
        self.status = FindStatus()
        self.finder = self.view.finder
        self.finder.status_changed.connect(self._on_status)

    def _on_status(self, status):
        self.status = status

    @property
    def rows(self):
        return self.view.row_viewport.rows

    def send(self, *events):
        self.view.apply([change for event in events for change in self.feed(event)])

    def find(self, query, **how):
        self.finder.search(Query(query, **how))
        return self.rest()

    def rest(self):
        """Wait until everything has been searched; return the status."""
        self.qtbot.waitUntil(
            lambda: not self.finder._timer.isActive() and not self.finder._rest.isActive(), timeout=20_000
        )
        return self.status.current, self.status.total

    def step(self, by=1):
        self.finder.step(by)
        return self.status.current

    def run_inline(self):
        """Return the boxes of the current match in the viewport."""
        index = self.finder._current[0]
        corner = self.view.row_viewport.row_box(index).topLeft()
        return [box.translated(corner) for box in text_boxes(self.rows.row(index), self.finder._here)]

    def words(self):
        """Return the text of the current match."""
        index = self.finder._current[0]
        (start, end) = self.finder._here
        return plain_of(self.rows.row(index), start, end)

    def is_seen(self):
        return bool(self.run_inline()) and all(box.top() >= 0 and box.bottom() <= 600 for box in self.run_inline())

    def colors(self):
        return set(colors_of(self.view.viewport().grab().toImage()))


def many(count, every=10):
    return [
        Message.user(f"Question {number}, with some words." + " The needle." * (number % every == 0))
        for number in range(count)
    ]


def test_everything_is_counted_and_the_first_below_the_edge_is_the_current_one(qtbot):
    harness = FindHarness(qtbot, many(300))
    assert harness.find("needle") == (30, 30)
    assert harness.is_seen()
    assert harness.finder._current[0] == 290
    harness.finder.stop()
    harness.view.scroller.scroll_to_start()
    harness.view.scroller.scroll_by(harness.rows.row_top(55))
    current, total = harness.find("NEEDLE")
    assert (harness.finder._current[0], total) == (60, 30)
    assert current == 7
    assert harness.is_seen()


def test_steps_go_around_the_ends_and_bring_far_rows_into_sight(qtbot):
    harness = FindHarness(qtbot, many(300))
    harness.find("needle")
    assert harness.step() == 1
    assert harness.finder._current[0] == 0
    assert harness.is_seen()
    assert harness.step(-1) == 30
    assert harness.is_seen()
    assert harness.step(-1) == 29
    assert harness.words() == "needle"


def test_rows_that_nobody_has_seen_are_counted_without_being_kept(qtbot):
    harness = FindHarness(qtbot, many(3000, every=1))
    assert harness.find("needle")[1] == 3000
    assert len(harness.rows._rows) < 60


def test_what_the_raw_text_does_not_show_is_found(qtbot):
    harness = FindHarness(
        qtbot, [Message.assistant("un*believ*able\n\ncaf&eacute; [lin](https://x.org)ked `snake_case`")]
    )
    for query in ("unbelievable", "café linked", "snake_case"):
        assert harness.find(query) == (1, 1), query
        assert harness.words() == query
    assert harness.find("believ*") == (0, 0)
    assert harness.find("x.org") == (0, 0)


def test_a_match_may_go_over_the_pieces_of_a_long_paragraph(qtbot):
    text = ("word " * 1500).strip() + " needle in the hay " + "word " * 1500
    harness = FindHarness(qtbot, [Message.user(text)])
    blocks = harness.rows.row(0).blocks
    first = blocks[1].plain().split(" ")[0]
    query = f"{blocks[0].plain()[-9:]} {first}"
    assert harness.find(query)[1] >= 1
    assert harness.find("needle in the hay") == (1, 1)
    assert harness.words() == "needle in the hay"
    assert harness.is_seen()


def test_matches_in_tables_code_and_formulas_are_marked_where_they_are(qtbot):
    text = "| a | b |\n|---|---|\n| x | a needle here |\n\n```\nline\n  needle = 1\n```\n\nInline $needle$."
    harness = FindHarness(qtbot, [Message.assistant(text)])
    harness.find("needle")
    widths = []
    for _ in range(3):
        harness.rows.settle()
        (box,) = harness.run_inline()
        widths.append(box.width())
        assert 10 < box.width() < 120
        assert box.height() < 40
        position = harness.view.row_viewport.position_at(box.center().toPoint())
        assert position.block == harness.finder._here[0][0]
        # A formula is all or nothing.
        assert harness.finder._here[0][1] - 1 <= position.offset <= harness.finder._here[1][1] + 1
        harness.step()


def thinking(harness):
    harness.send(TurnStarted("t", "m", "model"), ThinkingDelta("A hidden *needle* here."), ThinkingBlock("x", "p"))
    harness.send(ContentDelta("An open needle."), ToolUse(id="a", name="search", input={"path": "x"}))
    result = ToolResult(tool_use_id="a", content=(Text(text="one\nneedle\n"),), outcome=Outcome.SUCCEEDED)
    harness.send(ToolFinished("a", result), RunFinished(RunEnd.COMPLETED))


def test_what_is_folded_is_counted_and_opened_only_while_it_is_the_current_match(qtbot):
    harness = FindHarness(qtbot, [Message.user("A needle?")])
    thinking(harness)
    assert harness.find("needle") == (1, 4)
    assert len(harness.rows.row(1).blocks) == 1
    assert harness.step() == 2
    assert len(harness.rows.row(1).blocks) == 2
    assert harness.is_seen()
    assert harness.words() == "needle"
    assert harness.step() == 3
    assert len(harness.rows.row(1).blocks) == 1
    assert harness.step() == 4
    assert harness.words() == "needle"
    harness.finder.stop()
    assert harness.rows.row(3).unfolded


def test_what_the_person_opened_stays_open(qtbot):
    harness = FindHarness(qtbot, [Message.user("A needle?")])
    thinking(harness)
    harness.rows.row(1)._toggle()
    harness.find("needle")
    harness.step()
    harness.step()
    assert harness.rows.row(1).unfolded


def test_names_of_tools_are_found(qtbot):
    harness = FindHarness(qtbot, [Message.user("Hi")])
    thinking(harness)
    assert harness.find("search")[1] == 1
    assert harness.find("Thought") == (0, 0)


def test_the_words_for_tools_and_the_steps_of_specialists_are_found(qtbot):
    harness = FindHarness(qtbot, [Message.user("Hi")])
    harness.send(TurnStarted("t", "m", "model"), ToolUse(id="1", name="fetch_page"), ToolUse(id="2", name="reviewer"))
    harness.send(ServerStep(provider="p", name="web_search", text="", raw={}))
    harness.transcript[2].steps.append(Sentence("{tool}: {outcome}", {"tool": "List files", "outcome": "Failed"}))
    assert harness.find("read a web page")[1] == 1
    assert harness.find("list files: failed")[1] == 1
    assert harness.find("search the web")[1] == 1
    assert harness.find("fetch_page")[1] == 0


def test_text_that_streams_in_is_counted_and_marked_without_looking_at_everything_again(qtbot, monkeypatch):
    harness = FindHarness(qtbot, many(100))
    harness.send(TurnStarted("t", "m", "model"), ContentDelta("Start. "))
    assert harness.find("needle") == (10, 10)
    ids = []
    original = matches.raw_text_of
    monkeypatch.setattr(matches, "raw_text_of", lambda item: ids.append(item.id) or original(item))
    total = 10
    for _ in range(4):
        harness.send(ContentDelta("A need"))
        harness.send(ContentDelta("le and more.\n\n"))
        total += 1
        assert harness.rest() == (10, total)
    harness.send(RunFinished(RunEnd.COMPLETED))
    assert harness.rest() == (10, 14)
    assert set(ids) == {harness.transcript[100].id}
    harness.view.scroller.scroll_to_end()
    assert LIGHT.match in harness.colors()


def test_paragraphs_that_are_closed_are_not_searched_again_while_the_rest_streams(qtbot, monkeypatch):
    harness = FindHarness(qtbot, [Message.user("Hi")])
    harness.send(TurnStarted("t", "m", "model"), ContentDelta("A needle.\n\n" * 30))
    assert harness.find("needle")[1] == 30
    first_indexes = []
    original = searchable_text.iter_text_runs
    monkeypatch.setattr(
        searchable_text, "iter_text_runs", lambda row, first=0: first_indexes.append(first) or original(row, first)
    )
    harness.send(ContentDelta("One more needle"))
    harness.rest()
    harness.send(ContentDelta(" and a needle"))
    assert harness.rest()[1] == 32
    assert first_indexes[-1] >= 29


def test_new_rows_are_counted_and_rows_that_are_taken_back_are_not(qtbot):
    harness = FindHarness(qtbot, many(20))
    assert harness.find("needle")[1] == 2
    harness.view.apply(harness.transcript.add_message(Message.user("One more needle.")))
    assert harness.rest()[1] == 3
    from desktop_agent.conversation.items import Removed

    del harness.transcript._items[20]
    harness.view.apply([Removed(20, 1)])
    assert harness.rest()[1] == 2


def test_nothing_is_scrolled_when_a_first_match_streams_in(qtbot):
    harness = FindHarness(qtbot, many(60, every=1000))
    harness.send(TurnStarted("t", "m", "model"), ContentDelta("Start. "))
    assert harness.find("late") == (0, 0)
    harness.view.scroller.scroll_to_start()
    harness.send(ContentDelta("Something late."))
    assert harness.rest() == (1, 1)
    assert harness.rows.top == 0
    harness.step(0)
    assert harness.is_seen()


def test_typing_on_stays_where_it_began(qtbot):
    harness = FindHarness(qtbot, many(300, every=3))
    harness.view.scroller.scroll_to_start()
    harness.view.scroller.scroll_by(harness.rows.row_top(100))
    rows = []
    for end in range(1, 7):
        harness.find("needle"[:end])
        rows.append(harness.finder._current[0])
    harness.find("nee")
    assert harness.finder._current[0] == rows[2]
    assert rows[-1] == 102


def test_marks_are_seen_and_gone_when_the_search_ends(qtbot):
    harness = FindHarness(qtbot, [Message.assistant("A needle, another needle.")])
    assert LIGHT.current_match not in harness.colors()
    harness.find("needle")
    assert {LIGHT.match, LIGHT.current_match} <= harness.colors()
    harness.finder.stop()
    assert not {LIGHT.match, LIGHT.current_match} & harness.colors()


def test_another_conversation_is_looked_through_for_the_same(qtbot):
    harness = FindHarness(qtbot, many(50))
    assert harness.find("needle")[1] == 5
    harness.view.set_transcript(Transcript(many(100)))
    assert harness.rest()[1] == 10


def test_whole_words_and_case(qtbot):
    harness = FindHarness(qtbot, [Message.user("cat Cat concat CAT")])
    assert harness.find("cat")[1] == 4
    assert harness.find("cat", whole_words=True)[1] == 3
    assert harness.find("Cat", match_case=True)[1] == 1


def test_a_match_in_a_part_of_a_long_message_that_was_not_read_yet_is_gone_to(qtbot, monkeypatch):
    monkeypatch.setattr(Prefetcher, "start", lambda ahead: None)
    text = "\n\n".join(f"Paragraph {number}, with a few words in it." for number in range(3000))
    text = text.replace("Paragraph 40,", "Paragraph 40 a *need*le,").replace("Paragraph 2900,", "A needle,")
    harness = FindHarness(qtbot, [Message.assistant(text), Message.user("Thank you.")])
    assert harness.find("needle")[1] == 2
    for _ in range(2):
        harness.step()
        harness.rest()
        assert harness.words() == "needle"
        assert harness.is_seen()


def test_a_row_may_change_and_be_gone_in_one_frame(qtbot):
    harness = FindHarness(qtbot, many(3, every=1))
    harness.send(TurnStarted("t", "m", "model"), ToolArgsDelta("a", "run", '{"needle'))
    harness.find("needle")
    harness.send(ToolArgsDelta("a", "run", '": 1'), RunFinished(RunEnd.CANCELLED))
    assert harness.rest()[1] == 3
    assert not harness.finder._changed


def test_the_current_match_goes_with_its_row_and_the_next_is_found_from_where_one_reads(qtbot):
    harness = FindHarness(qtbot, many(6, every=1))
    harness.find("needle")
    while harness.finder._current[0] != 3:
        harness.step()
    del harness.transcript._items[:1]
    harness.view.apply([Removed(0, 1)])
    assert harness.rest() == (3, 5)
    del harness.transcript._items[2:3]
    harness.view.apply([Removed(2, 1)])
    assert harness.rest() == (0, 4)
    assert harness.step() > 0
    assert harness.is_seen()


def test_the_keyboard_goes_with_its_row(qtbot):
    harness = FindHarness(qtbot, many(5))
    harness.view.row_viewport.focus((4, ""))
    del harness.transcript._items[1:2]
    harness.view.apply([Removed(1, 1)])
    assert harness.view.row_viewport.focused == (3, "")
    del harness.transcript._items[3:4]
    harness.view.apply([Removed(3, 1)])
    assert harness.view.row_viewport.focused == (-1, "")


def test_what_is_forgotten_makes_room(qtbot):
    harness = FindHarness(qtbot, many(40))
    texts = harness.finder._texts
    harness.find("needle")
    for item in list(harness.transcript):
        texts.forget(item.id)
    assert texts._size == 0


def test_a_denied_call_is_found_by_what_its_card_says(qtbot):
    harness = FindHarness(qtbot)
    denied = ToolResult(tool_use_id="a", content=(Text(text="The person denied this call."),), outcome=Outcome.DENIED)
    harness.send(TurnStarted("t", "m", "model"), ToolUse(id="a", name="look", input={}), ToolFinished("a", denied))
    assert harness.find("You denied") == (1, 1)
    assert harness.find("The person")[1] == 0
