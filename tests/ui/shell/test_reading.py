"""Preferences of appearance, as they reach the conversation on the screen."""

from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QFontDatabase, QWheelEvent
from PySide6.QtWidgets import QApplication

from desktop_agent.types.preferences import Preferences
from desktop_agent.types.provider_events import ContentDelta
from tests.fakes.scripted_provider import Turn
from ui.style.theme import READING_WIDTH


async def prefer(screen, **appearance):
    preferences = screen.engine.preferences
    await screen.engine.change_preferences(
        preferences.model_copy(update={"appearance": preferences.appearance.model_copy(update=appearance)})
    )


def test_the_text_of_conversations_is_set_as_preferred(on_screen):
    family = next(family for family in QFontDatabase.families() if QFontDatabase.isSmoothlyScalable(family))

    async def work(screen):
        await screen.say("Hello")
        view = screen.window.page.transcript
        style = view._render_context.style
        height = view.row_viewport.rows.row(1).stack.height
        await prefer(screen, text_size=21.0, font=family)
        new_style = view._render_context.style
        assert (new_style.body.pointSizeF(), new_style.body.families()[0]) == (21.0, family)
        assert new_style.mono.families() == style.mono.families()
        assert new_style.line >= 1.9 * style.line
        assert view.row_viewport.rows.row(1).stack.height > 1.5 * height
        await prefer(screen, text_size=10.5, font="", density="compact")
        assert view._render_context.style.line < style.line
        assert view._render_context.style.gap(20) < style.gap(20)
        assert view.row_viewport.rows.row(1).stack.height < height

    on_screen(work, Turn(ContentDelta("One.\n\nTwo.")))


def test_lines_are_as_wide_as_preferred_and_the_composer_with_them(on_screen):
    async def work(screen):
        await screen.say("Hello")
        screen.window.resize(2200, 800)
        page = screen.window.page
        widths = []
        for choice in ("narrow", "medium", "wide", "full"):
            await prefer(screen, line_width=choice)
            widths.append(page.transcript.row_viewport.rows.width)
            assert page.composer.maximumWidth() > widths[-1]
        assert widths[1] == READING_WIDTH
        assert widths == sorted(set(widths))
        assert page.transcript.viewport().width() - widths[3] == 48
        await prefer(screen, line_width="medium", zoom=150)
        assert page.transcript.row_viewport.rows.width == READING_WIDTH * 1.5

    on_screen(work, Turn(ContentDelta("Words.")))


def test_ctrl_and_the_wheel_zoom(on_screen):
    async def work(screen):
        await screen.say("Hello")
        viewport = screen.window.page.transcript.viewport()

        async def turn(delta, keys=Qt.KeyboardModifier.ControlModifier):
            middle = QPointF(viewport.rect().center())
            wheel = QWheelEvent(
                middle,
                viewport.mapToGlobal(middle),
                QPoint(),
                QPoint(0, delta),
                Qt.MouseButton.NoButton,
                keys,
                Qt.ScrollPhase.NoScrollPhase,
                False,
            )
            QApplication.sendEvent(viewport, wheel)
            await screen.idle()
            return screen.engine.preferences.appearance.zoom

        assert [await turn(delta) for delta in (120, 60, 60, -360)] == [110, 110, 120, 90]
        assert await turn(-120, Qt.KeyboardModifier.NoModifier) == 90

    on_screen(work, Turn(ContentDelta("Words.")))


def test_the_next_start_has_them_from_the_beginning(on_screen, tmp_path):
    async def first(screen):
        await prefer(screen, text_size=14.0)

    async def later(screen):
        assert screen.engine.preferences.appearance.text_size == 14.0
        assert screen.window.page.transcript._render_context.style.body.pointSizeF() == 14.0

    on_screen(first, folder=tmp_path / "kept")
    on_screen(later, folder=tmp_path / "kept", connected=False)
    assert Preferences().appearance.text_size == 10.5
