from datetime import datetime

import pytest
from PySide6.QtCore import Qt

from desktop_agent.types.errors import Sentence
from desktop_agent.types.messages import Role
from desktop_agent.types.search import ConversationHits, SearchHit, SearchPlace, SearchQuery, SearchResults
from tests.ui.pixels import colors_of
from ui.sidebar.search_results import SearchResultsView, rows_of, words_to_mark
from ui.style.text_display import relative_date
from ui.style.theme import DARK, ThemeSource

NOON = datetime(2026, 5, 20, 12, 0).astimezone()
QUERY = SearchQuery("jam")


def hit(snippet="Plum jam", matches=((5, 8),), id_="m1", role=Role.USER, place=SearchPlace.TEXT, is_note=False):
    return SearchHit(id_, role, NOON, place, snippet, matches, is_note)


def group(*hits, title="Preserves", count=None):
    return ConversationHits("c1", title, (), hits, len(hits) if count is None else count)


def texts(query, results):
    return [row.text for row in rows_of(query, results, NOON)]


@pytest.fixture
def view(qtbot):
    made = SearchResultsView(ThemeSource(), now=lambda: NOON)
    qtbot.addWidget(made)
    made.resize(260, 500)
    made.show()
    return made


def test_each_conversation_has_its_messages_under_it_and_a_way_to_all_of_them():
    rows = rows_of(QUERY, SearchResults((group(hit(), count=7),)), NOON)
    assert [row.text for row in rows] == ["Preserves", "Plum jam", "Show all 7"]
    assert [row.is_choosable for row in rows] == [True] * 3
    assert (rows[1].under, rows[1].detail) == ("You", relative_date(NOON, NOON))
    assert rows[2].query == SearchQuery("jam", conversation_id="c1")
    within = rows_of(rows[2].query, SearchResults((group(hit(), count=7),)), NOON)
    assert [row.text for row in within] == ["All conversations", "Preserves", "Plum jam"]
    assert within[0].query == QUERY


@pytest.mark.parametrize(
    ("found", "who"),
    [
        (hit(role=Role.ASSISTANT), "Assistant"),
        (hit(role=Role.TOOL, place=SearchPlace.CALLS), "Tool call"),
        (hit(place=SearchPlace.ATTACHMENTS), "Attachment"),
        (hit(is_note=True), "Note"),
    ],
)
def test_who_said_it(found, who):
    assert rows_of(QUERY, SearchResults((group(found),)), NOON)[1].under == who


@pytest.mark.parametrize(
    ("snippet", "at", "shown"),
    [
        ("read_file path jam/plum.txt", 15, "Read a file: path jam/plum.txt"),
        ("notes__make_jam fruit jam", 22, "Make jam (notes): fruit jam"),
        ("notes__make_jam fruit", 12, "notes__make_jam fruit"),
        ("stir jam", 5, "stir jam"),
    ],
)
def test_a_call_is_called_as_its_card_unless_its_name_is_what_was_looked_for(snippet, at, shown):
    call = hit(snippet, ((at, at + 3),), role=Role.ASSISTANT, place=SearchPlace.CALLS)
    row = rows_of(QUERY, SearchResults((group(call),)), NOON)[1]
    assert row.text == shown
    assert [row.text[start:end] for start, end in row.matches] == ["jam"]
    assert row.spoken.endswith(f": {shown}")


def test_a_call_of_which_nothing_but_its_name_is_shown_ends_without_a_colon():
    call = hit("write_file ", (), role=Role.ASSISTANT, place=SearchPlace.CALLS)
    assert rows_of(QUERY, SearchResults((group(call),)), NOON)[1].text == "Write a file"


def test_what_is_not_there_is_said():
    assert texts(QUERY, SearchResults()) == ["Nothing found for “jam”"]
    assert texts(SearchQuery(has_image=True), SearchResults()) == ["Nothing found"]
    assert texts(QUERY, SearchResults(is_complete=False)) == ["Still indexing: not everything is searched yet"]
    obstacle = Sentence("Not everything can be searched.")
    assert texts(QUERY, SearchResults(is_complete=False, obstacle=obstacle)) == ["Not everything can be searched."]
    assert (
        texts(QUERY, SearchResults((group(hit()),), has_more=True))[-1]
        == "There are more results. Add a word to see fewer."
    )


def test_a_match_far_from_the_beginning_is_seen_in_a_narrow_column():
    line = "The whole of last summer went into one thing only, and that was jam"
    (_, row) = rows_of(QUERY, SearchResults((group(hit(line, ((64, 67),))),)), NOON)
    assert row.text.startswith("…")
    assert line.endswith(row.text[1:])
    assert [row.text[start:end] for start, end in row.matches] == ["jam"]


def test_the_find_bar_gets_what_was_typed_or_what_the_message_has_of_it():
    assert words_to_mark(SearchQuery('"plum jam"'), hit()) == "plum jam"
    assert words_to_mark(SearchQuery("jam plum"), hit(matches=((0, 4), (5, 8)))) == "Plum"
    assert words_to_mark(SearchQuery("cafe"), hit("Le café", ((3, 7),))) == "café"
    assert words_to_mark(SearchQuery(has_image=True), hit(matches=())) == ""


def test_the_arrow_keys_pass_over_remarks(view, qtbot):
    view.show_results(QUERY, SearchResults((group(hit(), hit(id_="m2")),), is_complete=False, has_more=True))
    left, chosen = [], []
    view.left_at_top.connect(lambda: left.append(True))
    view.hit_chosen.connect(lambda _, found, words: chosen.append((found.message_id, words)))
    view.focus_first()
    assert view.currentIndex().data() == "Preserves"
    for _ in range(5):
        qtbot.keyClick(view, Qt.Key.Key_Down)
    qtbot.keyClick(view, Qt.Key.Key_Return)
    assert chosen == [("m2", "jam")]
    qtbot.keyClick(view, Qt.Key.Key_Home)
    assert view.currentIndex().data() == "Preserves"
    qtbot.keyClick(view, Qt.Key.Key_End)
    assert view.currentIndex().row() == 3
    qtbot.keyClick(view, Qt.Key.Key_Home)
    qtbot.keyClick(view, Qt.Key.Key_Up)
    assert left == [True]


def test_more_results_of_the_same_search_leave_the_keys_on_their_row(view):
    view.show_results(QUERY, SearchResults((group(hit()),), is_complete=False))
    view.focus_first()
    view.show_results(QUERY, SearchResults((ConversationHits("c0", "Jam", ((0, 3),)), group(hit()))))
    assert view.currentIndex().data() == "Preserves"
    view.show_results(SearchQuery("plum"), SearchResults((group(hit()),)))
    assert not view.currentIndex().isValid()


def test_a_screen_reader_hears_who_said_it_and_when(view):
    view.show_results(QUERY, SearchResults((group(hit()),)))
    spoken = view.rows.index(1).data(Qt.ItemDataRole.AccessibleTextRole)
    assert spoken == f"You, {relative_date(NOON, NOON)}: Plum jam"


@pytest.mark.parametrize("direction", [Qt.LayoutDirection.LeftToRight, Qt.LayoutDirection.RightToLeft])
def test_matches_are_bold_on_their_own_background(view, direction):
    view.setLayoutDirection(direction)

    def painted(*matches):
        view.show_results(QUERY, SearchResults((group(hit("🙂 שלום plum\u202e jam " * 20, matches)),)))
        return view.viewport().grab().toImage()

    plain, marked = painted(), painted((2, 6), (7, 11))
    assert plain != marked
    background = ThemeSource().theme.match
    assert background in colors_of(marked)


def test_long_and_empty_results_are_painted(view):
    view.show_results(
        QUERY,
        SearchResults((group(hit("W" * 4000, ((0, 4000),)), hit("", ())), group(title=""), group(title="x" * 9999))),
    )
    view.resize(40, 200)
    view.grab()
    view.itemDelegate()._themes.use(DARK, 200)
    view.doItemsLayout()
    view.grab()
    assert view.rows.rowCount() == 5


@pytest.mark.parametrize("direction", [Qt.LayoutDirection.LeftToRight, Qt.LayoutDirection.RightToLeft])
@pytest.mark.parametrize("words", ["Plum jam", "ריבה"])
def test_a_title_stands_where_the_window_begins(view, direction, words):
    view.setLayoutDirection(direction)
    view.show_results(QUERY, SearchResults((group(title=words),)))
    picture = view.viewport().grab().toImage()
    ground, height = picture.pixelColor(1, 1), view.sizeHintForRow(0)
    inked = [x for x in range(picture.width()) if any(picture.pixelColor(x, y) != ground for y in range(2, height - 2))]
    middle = picture.width() / 2
    assert inked
    assert min(inked) > middle if direction is Qt.LayoutDirection.RightToLeft else max(inked) < middle


def test_a_match_reads_as_its_letters_do_in_a_mirrored_window(view):
    """Its full stop stays behind it."""
    view.resize(400, 300)
    view.show_results(QUERY, SearchResults((group(hit("Plum jam.", ((5, 9),))),)))

    def background():
        picture = view.viewport().grab().toImage()
        return {x for x in range(picture.width()) for y in range(picture.height()) if is_match(picture, x, y)}

    def is_match(picture, x, y):
        return picture.pixelColor(x, y).name() == ThemeSource().theme.match

    before = background()
    view.setLayoutDirection(Qt.LayoutDirection.RightToLeft)
    after = background()
    assert before
    assert max(before) < 200 < min(after)
    assert max(before) - min(before) == max(after) - min(after)
