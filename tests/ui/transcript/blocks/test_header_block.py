"""The line at the top of a card: its title, what can be done, and its state, side by side in any width."""

from ui.style.theme import LIGHT
from ui.transcript.blocks.buttons import Header, HeaderBlock
from ui.transcript.style import RenderStyle


def test_the_action_stays_beside_the_title_where_the_card_is_narrow(qapp):
    header = Header(
        "Datei schreiben", "edit", state="Rückgängig gemacht", state_icon="check", action="Wiederherstellen"
    )
    style, block = RenderStyle(LIGHT, 100), HeaderBlock(header, callback=lambda: None)
    gaps = []
    for width in (600, 272):
        block.layout(width, style)
        (action,) = block.controls()
        assert action.box.left() > 80
        assert action.box.right() < width
        gaps.append(width - action.box.right())
    # The state is its icon alone then, and is said all the same.
    assert gaps[1] < 40 < gaps[0]
    assert block.spoken_text() == "Datei schreiben, Rückgängig gemacht"
