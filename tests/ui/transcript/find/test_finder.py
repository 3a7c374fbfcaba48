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


class Stand:
    """A view that looks for something."""

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
        self.told = FindStatus()
        self.finder = self.view.finder
        self.finder.status_changed.connect(self._hear)

    def _hear(self, found):
        self.told = found

    @property
    def rows(self):
        return self.view.row_viewport.rows

    def send(self, *events):
        self.view.apply([change for event in events for change in self.feed(event)])

    def find(self, query, **how):
        self.finder.search(Query(query, **how))
        return self.rest()

    def rest(self):
        """Until everything has been looked at."""
        self.qtbot.waitUntil(
            lambda: not self.finder._timer.isActive() and not self.finder._rest.isActive(), timeout=20_000
        )
        return self.told.current, self.told.total

    def step(self, by=1):
        self.finder.step(by)
        return self.told.current

    def run_inline(self):
        """The boxes of the current match, in the viewport."""
        index = self.finder._current[0]
        corner = self.view.row_viewport.row_box(index).topLeft()
        return [box.translated(corner) for box in text_boxes(self.rows.row(index), self.finder._here)]

    def words(self):
        """What the current match says."""
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
    stand = Stand(qtbot, many(300))
    assert stand.find("needle") == (30, 30)
    assert stand.is_seen()
    assert stand.finder._current[0] == 290
    stand.finder.stop()
    stand.view.scroller.scroll_to_start()
    stand.view.scroller.scroll_by(stand.rows.row_top(55))
    current, total = stand.find("NEEDLE")
    assert (stand.finder._current[0], total) == (60, 30)
    assert current == 7
    assert stand.is_seen()


def test_steps_go_around_the_ends_and_bring_far_rows_into_sight(qtbot):
    stand = Stand(qtbot, many(300))
    stand.find("needle")
    assert stand.step() == 1
    assert stand.finder._current[0] == 0
    assert stand.is_seen()
    assert stand.step(-1) == 30
    assert stand.is_seen()
    assert stand.step(-1) == 29
    assert stand.words() == "needle"


def test_rows_that_nobody_has_seen_are_counted_without_being_kept(qtbot):
    stand = Stand(qtbot, many(3000, every=1))
    assert stand.find("needle")[1] == 3000
    assert len(stand.rows._rows) < 60


def test_what_the_raw_text_does_not_show_is_found(qtbot):
    stand = Stand(qtbot, [Message.assistant("un*believ*able\n\ncaf&eacute; [lin](https://x.org)ked `snake_case`")])
    for query in ("unbelievable", "café linked", "snake_case"):
        assert stand.find(query) == (1, 1), query
        assert stand.words() == query
    assert stand.find("believ*") == (0, 0)
    assert stand.find("x.org") == (0, 0)


def test_a_match_may_go_over_the_pieces_of_a_long_paragraph(qtbot):
    text = ("word " * 1500).strip() + " needle in the hay " + "word " * 1500
    stand = Stand(qtbot, [Message.user(text)])
    blocks = stand.rows.row(0).blocks
    first = blocks[1].plain().split(" ")[0]
    query = f"{blocks[0].plain()[-9:]} {first}"
    assert stand.find(query)[1] >= 1
    assert stand.find("needle in the hay") == (1, 1)
    assert stand.words() == "needle in the hay"
    assert stand.is_seen()


def test_matches_in_tables_code_and_formulas_are_marked_where_they_are(qtbot):
    text = "| a | b |\n|---|---|\n| x | a needle here |\n\n```\nline\n  needle = 1\n```\n\nInline $needle$."
    stand = Stand(qtbot, [Message.assistant(text)])
    stand.find("needle")
    widths = []
    for _ in range(3):
        stand.rows.settle()
        (box,) = stand.run_inline()
        widths.append(box.width())
        assert 10 < box.width() < 120
        assert box.height() < 40
        position = stand.view.row_viewport.position_at(box.center().toPoint())
        assert position.block == stand.finder._here[0][0]
        # A formula is all or nothing.
        assert stand.finder._here[0][1] - 1 <= position.offset <= stand.finder._here[1][1] + 1
        stand.step()


def thinking(stand):
    stand.send(TurnStarted("t", "m", "model"), ThinkingDelta("A hidden *needle* here."), ThinkingBlock("x", "p"))
    stand.send(ContentDelta("An open needle."), ToolUse(id="a", name="search", input={"path": "x"}))
    result = ToolResult(tool_use_id="a", content=(Text(text="one\nneedle\n"),), outcome=Outcome.SUCCEEDED)
    stand.send(ToolFinished("a", result), RunFinished(RunEnd.COMPLETED))


def test_what_is_folded_is_counted_and_opened_only_while_it_is_the_current_match(qtbot):
    stand = Stand(qtbot, [Message.user("A needle?")])
    thinking(stand)
    assert stand.find("needle") == (1, 4)
    assert len(stand.rows.row(1).blocks) == 1
    assert stand.step() == 2
    assert len(stand.rows.row(1).blocks) == 2
    assert stand.is_seen()
    assert stand.words() == "needle"
    assert stand.step() == 3
    assert len(stand.rows.row(1).blocks) == 1
    assert stand.step() == 4
    assert stand.words() == "needle"
    stand.finder.stop()
    assert stand.rows.row(3).unfolded


def test_what_the_person_opened_stays_open(qtbot):
    stand = Stand(qtbot, [Message.user("A needle?")])
    thinking(stand)
    stand.rows.row(1)._toggle()
    stand.find("needle")
    stand.step()
    stand.step()
    assert stand.rows.row(1).unfolded


def test_names_of_tools_are_found(qtbot):
    stand = Stand(qtbot, [Message.user("Hi")])
    thinking(stand)
    assert stand.find("search")[1] == 1
    assert stand.find("Thought") == (0, 0)


def test_the_words_for_tools_and_the_steps_of_specialists_are_found(qtbot):
    stand = Stand(qtbot, [Message.user("Hi")])
    stand.send(TurnStarted("t", "m", "model"), ToolUse(id="1", name="fetch_page"), ToolUse(id="2", name="reviewer"))
    stand.send(ServerStep(provider="p", name="web_search", text="", raw={}))
    stand.transcript[2].steps.append(Sentence("{tool}: {outcome}", {"tool": "List files", "outcome": "Failed"}))
    assert stand.find("read a web page")[1] == 1
    assert stand.find("list files: failed")[1] == 1
    assert stand.find("search the web")[1] == 1
    assert stand.find("fetch_page")[1] == 0


def test_text_that_streams_in_is_counted_and_marked_without_looking_at_everything_again(qtbot, monkeypatch):
    stand = Stand(qtbot, many(100))
    stand.send(TurnStarted("t", "m", "model"), ContentDelta("Start. "))
    assert stand.find("needle") == (10, 10)
    read = []
    original = matches.raw_text_of
    monkeypatch.setattr(matches, "raw_text_of", lambda item: read.append(item.id) or original(item))
    total = 10
    for _ in range(4):
        stand.send(ContentDelta("A need"))
        stand.send(ContentDelta("le and more.\n\n"))
        total += 1
        assert stand.rest() == (10, total)
    stand.send(RunFinished(RunEnd.COMPLETED))
    assert stand.rest() == (10, 14)
    assert set(read) == {stand.transcript[100].id}
    stand.view.scroller.scroll_to_end()
    assert LIGHT.match in stand.colors()


def test_paragraphs_that_are_closed_are_not_searched_again_while_the_rest_streams(qtbot, monkeypatch):
    stand = Stand(qtbot, [Message.user("Hi")])
    stand.send(TurnStarted("t", "m", "model"), ContentDelta("A needle.\n\n" * 30))
    assert stand.find("needle")[1] == 30
    seen = []
    original = searchable_text.iter_text_runs
    monkeypatch.setattr(
        searchable_text, "iter_text_runs", lambda row, first=0: seen.append(first) or original(row, first)
    )
    stand.send(ContentDelta("One more needle"))
    stand.rest()
    stand.send(ContentDelta(" and a needle"))
    assert stand.rest()[1] == 32
    assert seen[-1] >= 29


def test_new_rows_are_counted_and_rows_that_are_taken_back_are_not(qtbot):
    stand = Stand(qtbot, many(20))
    assert stand.find("needle")[1] == 2
    stand.view.apply(stand.transcript.add_message(Message.user("One more needle.")))
    assert stand.rest()[1] == 3
    from desktop_agent.conversation.items import Removed

    del stand.transcript._items[20]
    stand.view.apply([Removed(20, 1)])
    assert stand.rest()[1] == 2


def test_nothing_is_scrolled_when_a_first_match_streams_in(qtbot):
    stand = Stand(qtbot, many(60, every=1000))
    stand.send(TurnStarted("t", "m", "model"), ContentDelta("Start. "))
    assert stand.find("late") == (0, 0)
    stand.view.scroller.scroll_to_start()
    stand.send(ContentDelta("Something late."))
    assert stand.rest() == (1, 1)
    assert stand.rows.top == 0
    stand.step(0)
    assert stand.is_seen()


def test_typing_on_stays_where_it_began(qtbot):
    stand = Stand(qtbot, many(300, every=3))
    stand.view.scroller.scroll_to_start()
    stand.view.scroller.scroll_by(stand.rows.row_top(100))
    rows = []
    for end in range(1, 7):
        stand.find("needle"[:end])
        rows.append(stand.finder._current[0])
    stand.find("nee")
    assert stand.finder._current[0] == rows[2]
    assert rows[-1] == 102


def test_marks_are_seen_and_gone_when_the_search_ends(qtbot):
    stand = Stand(qtbot, [Message.assistant("A needle, another needle.")])
    assert LIGHT.current_match not in stand.colors()
    stand.find("needle")
    assert {LIGHT.match, LIGHT.current_match} <= stand.colors()
    stand.finder.stop()
    assert not {LIGHT.match, LIGHT.current_match} & stand.colors()


def test_another_conversation_is_looked_through_for_the_same(qtbot):
    stand = Stand(qtbot, many(50))
    assert stand.find("needle")[1] == 5
    stand.view.set_transcript(Transcript(many(100)))
    assert stand.rest()[1] == 10


def test_whole_words_and_case(qtbot):
    stand = Stand(qtbot, [Message.user("cat Cat concat CAT")])
    assert stand.find("cat")[1] == 4
    assert stand.find("cat", whole_words=True)[1] == 3
    assert stand.find("Cat", match_case=True)[1] == 1


def test_a_match_in_a_part_of_a_long_message_that_was_not_read_yet_is_gone_to(qtbot, monkeypatch):
    monkeypatch.setattr(Prefetcher, "start", lambda ahead: None)
    text = "\n\n".join(f"Paragraph {number}, with a few words in it." for number in range(3000))
    text = text.replace("Paragraph 40,", "Paragraph 40 a *need*le,").replace("Paragraph 2900,", "A needle,")
    stand = Stand(qtbot, [Message.assistant(text), Message.user("Thank you.")])
    assert stand.find("needle")[1] == 2
    for _ in range(2):
        stand.step()
        stand.rest()
        assert stand.words() == "needle"
        assert stand.is_seen()


def test_a_row_may_change_and_be_gone_in_one_frame(qtbot):
    stand = Stand(qtbot, many(3, every=1))
    stand.send(TurnStarted("t", "m", "model"), ToolArgsDelta("a", "run", '{"needle'))
    stand.find("needle")
    stand.send(ToolArgsDelta("a", "run", '": 1'), RunFinished(RunEnd.CANCELLED))
    assert stand.rest()[1] == 3
    assert not stand.finder._changed


def test_the_current_match_goes_with_its_row_and_the_next_is_found_from_where_one_reads(qtbot):
    stand = Stand(qtbot, many(6, every=1))
    stand.find("needle")
    while stand.finder._current[0] != 3:
        stand.step()
    del stand.transcript._items[:1]
    stand.view.apply([Removed(0, 1)])
    assert stand.rest() == (3, 5)
    del stand.transcript._items[2:3]
    stand.view.apply([Removed(2, 1)])
    assert stand.rest() == (0, 4)
    assert stand.step() > 0
    assert stand.is_seen()


def test_the_keyboard_goes_with_its_row(qtbot):
    stand = Stand(qtbot, many(5))
    stand.view.row_viewport.focus((4, ""))
    del stand.transcript._items[1:2]
    stand.view.apply([Removed(1, 1)])
    assert stand.view.row_viewport.focused == (3, "")
    del stand.transcript._items[3:4]
    stand.view.apply([Removed(3, 1)])
    assert stand.view.row_viewport.focused == (-1, "")


def test_what_is_forgotten_makes_room(qtbot):
    stand = Stand(qtbot, many(40))
    texts = stand.finder._texts
    stand.find("needle")
    for item in list(stand.transcript):
        texts.forget(item.id)
    assert texts._size == 0


def test_a_denied_call_is_found_by_what_its_card_says(qtbot):
    stand = Stand(qtbot)
    denied = ToolResult(tool_use_id="a", content=(Text(text="The person denied this call."),), outcome=Outcome.DENIED)
    stand.send(TurnStarted("t", "m", "model"), ToolUse(id="a", name="look", input={}), ToolFinished("a", denied))
    assert stand.find("You denied") == (1, 1)
    assert stand.find("The person")[1] == 0
