"""The list under a field, by itself."""

from ui.style.list_rows import ResultRow
from ui.style.pickers import SearchPanel
from ui.style.theme import ThemeSource


def test_the_height_of_many_rows_is_asked_of_no_more_than_are_seen(qtbot):
    count = 3
    panel = SearchPanel(ThemeSource(), lambda _: [ResultRow(text=str(at)) for at in range(count)], "Rows")
    qtbot.addWidget(panel)
    panel.reset()
    few = panel.whole_height(10_000)
    assert few < 300
    count = 5_000
    panel.reset()
    asked = []
    delegate = panel._list.itemDelegate()
    measured = delegate.sizeHint
    delegate.sizeHint = lambda *given: asked.append(given) or measured(*given)
    assert panel.whole_height(500) == 500
    assert len(asked) < 100
