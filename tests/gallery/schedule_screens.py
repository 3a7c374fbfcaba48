"""The page of scheduled prompts."""

import asyncio
from datetime import UTC, datetime, time, timedelta

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QPushButton

from desktop_agent.types.preferences import UsagePreferences
from desktop_agent.types.schedules import WEEKDAYS, Cron, Interval, Monthly, ScheduledPrompt, Weekly
from desktop_agent.types.spending import UsageFigures, UsageKey
from tests.gallery.desk import Desk, until
from tests.gallery.screens import scene
from ui.settings.usage.usage_page import local_today

PROMPTS = (
    ScheduledPrompt(
        id="news",
        title="Morning news",
        prompt="What is new in the repository?",
        timing=Weekly(days=WEEKDAYS, at=time(9)),
    ),
    ScheduledPrompt(
        id="bill",
        title="Check the invoices of the month and write down what is missing",
        prompt="Look through the folder.",
        timing=Monthly(day=1, at=time(7, 30)),
        target="same",
    ),
    ScheduledPrompt(id="watch", title="Watch the build", prompt="Is it red?", timing=Interval(minutes=30), is_on=False),
    ScheduledPrompt(id="tea", title="Tea", prompt="Tea?", timing=Cron(line="0 16 * * 1,3"), missed="skip"),
)


async def fill(desk: Desk) -> None:
    """Show the page with several prompts, of which some have run."""
    desk.begin()
    rows = desk.engine.store.schedules
    now = datetime.now(UTC)
    for prompt in PROMPTS:
        await rows.save(prompt, now)
    stored = {stored_prompt.prompt.id: stored_prompt for stored_prompt in await rows.all()}
    # Nothing that is due lies between these runs and now: the scheduler of the window would run it.
    for id_, result, minutes in (("news", "completed", 1), ("bill", "failed", 2)):
        moment = now - timedelta(minutes=minutes)
        assert await rows.runs.claim(stored[id_], moment.isoformat(), "c", f"m-{id_}", moment, is_due=True)
        (run,) = await rows.runs.unfinished()
        await rows.runs.end(run, result)
    desk.scheduled.show()
    await until(lambda: desk.scheduled._dialog.findChildren(QPushButton, "") and len(cards(desk)) == len(PROMPTS))
    await asyncio.sleep(0.3)


def cards(desk: Desk) -> list[object]:
    """Return the cards of the prompts."""
    from ui.settings.schedule_form import ScheduleCard

    return desk.scheduled._dialog.findChildren(ScheduleCard)


@scene("scheduled")
async def scheduled(desk: Desk) -> None:
    await fill(desk)


@scene("scheduled-budget")
async def budget(desk: Desk) -> None:
    """A run of each of two prompts waits for a budget."""
    used = {UsageKey(local_today(), "aurora-large", ""): UsageFigures(answers=1, tokens=9_000)}
    await desk.engine.store.usage.add(used)
    budgets = UsagePreferences(tokens_per_day=5_000)
    await desk.engine.change_preferences(desk.engine.preferences.model_copy(update={"usage": budgets}))
    rows, start = desk.engine.store.schedules, datetime.now(UTC) - timedelta(minutes=100)
    for prompt in (PROMPTS[2], PROMPTS[2].model_copy(update={"id": "mail", "title": "Sort my mail", "missed": "skip"})):
        timing = Interval(minutes=30, start=start)
        await rows.save(prompt.model_copy(update={"is_on": True, "timing": timing}), start)
    desk.begin()
    desk.scheduled.show()
    buttons = desk.scheduled._dialog.findChildren
    words = QCoreApplication.translate("ScheduleCard", "Usage and budgets")
    await until(lambda: [button.text() for button in buttons(QPushButton)].count(words) == 2)
    await asyncio.sleep(0.3)


@scene("scheduled-narrow", 360, 640)
async def narrow(desk: Desk) -> None:
    await fill(desk)
    desk.scheduled._dialog.resize(360, 640)


@scene("scheduled-editor")
async def editor(desk: Desk) -> None:
    await fill(desk)
    desk.scheduled._dialog.form.edit("news")
    desk.scheduled._dialog.resize(640, 900)
    await asyncio.sleep(0.3)


@scene("scheduled-editor-narrow", 360, 640)
async def editor_narrow(desk: Desk) -> None:
    await editor(desk)
    desk.scheduled._dialog.resize(360, 640)


@scene("scheduled-empty")
async def empty(desk: Desk) -> None:
    desk.begin()
    desk.scheduled.show()
    await asyncio.sleep(0.3)
