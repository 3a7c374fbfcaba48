"""Usage in the whole window: the page shows what was asked, budgets warn and stop, and the person may go on once."""

import csv
import io

from PySide6.QtWidgets import QFileDialog, QPushButton

from desktop_agent.types.preferences import UsagePreferences
from desktop_agent.types.provider_events import ContentDelta, Usage, UsageUpdate
from tests.fakes.qt_loop import until
from tests.fakes.scripted_provider import Turn
from ui.settings.usage.usage_page import UsageSettings


def turn(cost):
    used = Usage(input_tokens=90, output_tokens=10, total_tokens=100, cost=cost)
    return Turn(ContentDelta("Hi"), UsageUpdate(used))


async def prefer(screen, **budgets):
    preferences = screen.engine.preferences
    await screen.engine.change_preferences(preferences.model_copy(update={"usage": UsagePreferences(**budgets)}))


async def page_of(screen):
    screen.action("Usage").trigger()
    page = await until(lambda: screen.window.findChild(UsageSettings))
    await until(page.isVisible)
    return page


def banner(screen):
    return next((key for key in screen.banners.keys if key.startswith("budget ")), None)


def test_the_page_counts_what_was_asked_and_exports_it(on_screen, tmp_path):
    async def work(screen):
        await screen.say("One")
        page = await page_of(screen)
        await until(lambda: page.report.rows)
        assert page.report.total.cost == 1.0
        next(button for button in page.findChildren(QPushButton) if button.text() == "Export as CSV…").click()
        dialog = await until(lambda: page.findChild(QFileDialog))
        assert dialog.selectedFiles()[0].endswith("Usage.csv")
        target = tmp_path / "Usage.csv"
        dialog.fileSelected.emit(str(target))
        dialog.close()
        await until(target.exists)
        (row,) = csv.DictReader(io.StringIO(target.read_bytes().decode("utf-8-sig")))
        assert (row["tokens"], row["cost_usd"]) == ("100", "1.000000")
        database = screen.engine.folder / "conversations.sqlite3"
        page.export_requested.emit()
        dialog = await until(lambda: page.findChild(QFileDialog))
        dialog.fileSelected.emit(str(database))
        dialog.close()
        await until(lambda: any("no export replaces" in words for words in screen.words()))
        assert database.read_bytes().startswith(b"SQLite")

    on_screen(work, turn(1.0))


def test_a_budget_warns_once_then_stops_and_the_person_goes_on_once(on_screen):
    async def work(screen):
        await prefer(screen, cost_per_day=1)
        await screen.say("One")
        await until(lambda: banner(screen))
        assert any(
            "A budget is nearly used up. Money today: $0.85 of $1.00 (85 %)." in words for words in screen.words()
        )
        screen.banners.remove(banner(screen))
        await screen.say("Two")
        await until(lambda: any("A budget is used up." in words for words in screen.words()))
        await screen.say("Three")
        assert screen.answers() == ["Hi", "Hi"]
        last = list(screen.conversation.transcript)[-1]
        assert str(last.sentence) == "The budget of money for today is used up."
        screen.window.page._on_remedy(last.id, last.action)
        await until(lambda: screen.answers() == ["Hi", "Hi", "Hi"])
        await until(lambda: any("Money today: $1.35 of $1.00 (135 %)." in words for words in screen.words()))
        await prefer(screen, cost_per_day=100)
        await until(lambda: banner(screen) is None)

    on_screen(work, turn(0.85), turn(0.2), turn(0.3))


def test_a_budget_is_typed_in_the_settings(on_screen):
    async def work(screen):
        page = await page_of(screen)
        dialog = page.window()
        row = dialog._forms["usage"].rows["tokens_per_day"]
        row.control.widget.setText("many")
        await until(lambda: row.problem)
        row.control.widget.setText("5000")
        await until(lambda: screen.engine.preferences.usage.tokens_per_day == 5000)
        assert isinstance(screen.engine.preferences.usage.tokens_per_day, int)
        row.control.widget.setText("")
        await until(lambda: screen.engine.preferences.usage.tokens_per_day is None)

    on_screen(work)


def test_the_meter_leads_to_the_page(on_screen):
    async def work(screen):
        await screen.say("One")
        screen.window.page.usage_meter.usage_requested.emit()
        page = await until(lambda: screen.window.findChild(UsageSettings))
        await until(page.isVisible)

    on_screen(work, turn(1.0))
