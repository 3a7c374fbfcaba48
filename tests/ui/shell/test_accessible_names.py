"""Names for assistive technology say what a thing is: never its value, never markup."""

import re

from PySide6.QtGui import QAccessible
from PySide6.QtWidgets import QWidget

from desktop_agent.types.provider_events import ContentDelta, Usage, UsageUpdate
from tests.fakes.qt_loop import until
from tests.fakes.scripted_provider import Turn

MARKUP = re.compile(r"</?(qt|b|i|br|p|html|span)\b[^>]*>")
SPENT = UsageUpdate(Usage(input_tokens=100, output_tokens=5, total_tokens=105, cost=0.25))


def spoken_of(widget):
    interface = QAccessible.queryAccessibleInterface(widget)
    return [interface.text(what) for what in (QAccessible.Text.Name, QAccessible.Text.Description)] if interface else []


def test_no_name_or_description_has_markup_or_figures(on_screen):
    async def work(screen):
        await screen.say("Hello")
        await until(lambda: screen.find(QWidget, "Tokens and cost"))
        widgets = [widget for widget in screen.window.findChildren(QWidget) if widget.isVisible()]
        assert len(widgets) > 30
        texts = [(widget, words) for widget in widgets for words in spoken_of(widget)]
        assert [words for _, words in texts if MARKUP.search(words)] == []
        buttons = [widget for widget in widgets if widget.inherits("QAbstractButton")]
        assert [button.accessibleName() for button in buttons if re.search(r"\d", button.accessibleName())] == []
        assert [button for button in buttons if not spoken_of(button)[0]] == []

    on_screen(work, Turn(ContentDelta("Hi"), SPENT))
