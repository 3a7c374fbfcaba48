"""Scheduled prompts in the window: written, listed, run at once, paused, changed and deleted, by the keyboard too."""

import asyncio
from datetime import UTC, datetime, timedelta

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QComboBox, QLineEdit, QPlainTextEdit, QPushButton, QScrollArea, QToolButton

from desktop_agent.engine.spending import local_day
from desktop_agent.types.preferences import UsagePreferences
from desktop_agent.types.provider_events import ContentDelta
from desktop_agent.types.schedules import Cron, ScheduledPrompt
from desktop_agent.types.spending import UsageFigures, UsageKey
from tests.fakes.qt_loop import held, until
from tests.fakes.scripted_provider import Turn
from ui.bridge.desktop.notifications import SHOW, DesktopNotifications
from ui.settings.schedule_form import ScheduleCard
from ui.settings.settings_dialog import SettingsDialog
from ui.shell.schedule import schedule_presenter
from ui.shell.schedule.schedule_dialog import ScheduleDialog
from ui.style.theme import SPACE_S

DONE = Turn(ContentDelta("Nothing is new."))


async def open_page(screen):
    screen.action("Scheduled prompts").trigger()
    return await screen.wait_for(ScheduleDialog, "Scheduled prompts")


def cards(page):
    return [card for card in page.findChildren(ScheduleCard) if card.isVisible()]


def text_of(screen, page):
    return " ".join(screen.words(page))


def test_save_is_the_last_button_and_stays_where_it_is_when_the_end_is_scrolled_to(on_screen):
    async def work(screen):
        page = await open_page(screen)
        screen.press("Add scheduled prompt…")
        await screen.wait_for(QLineEdit, "Name")
        assert screen.find(QPushButton, "Add scheduled prompt…") is None
        save, bar = screen.find(QPushButton, "Save"), page.findChild(QScrollArea).verticalScrollBar()
        # Once it is laid out.
        await until(lambda: bar.maximum() > bar.pageStep() // 4)
        tops = []
        for place in (0, bar.maximum() // 2, bar.maximum()):
            bar.setValue(place)
            tops.append(save.mapTo(page, save.rect().topLeft()).y())
        assert max(tops) - min(tops) < SPACE_S, tops
        screen.press("Cancel")
        await until(lambda: screen.find(QPushButton, "Add scheduled prompt…") is not None)

    on_screen(work)


async def add(screen, page, title="News"):
    screen.press("Add scheduled prompt…")
    name = await screen.wait_for(QLineEdit, "Name")
    QTest.keyClicks(name, title)
    screen.find(QPlainTextEdit, "Prompt").setPlainText("\nWhat is new?\n\n")
    assert "Every weekday" not in text_of(screen, page)
    assert "The next runs:" in text_of(screen, page)
    screen.press("Save")
    await until(lambda: len(cards(page)) == 1)
    await until(lambda: screen.find(QPushButton, f"Run {title} now"))
    (stored,) = await screen.engine.store.schedules.all()
    assert stored.prompt.prompt == "What is new?"


def test_a_link_to_its_folder_is_followed_when_it_is_chosen_and_never_again(on_screen, tmp_path):
    folder, keys = tmp_path / "work", tmp_path / "keys"
    folder.mkdir()
    keys.mkdir()
    (tmp_path / "alias").symlink_to(folder)

    async def stored(screen):
        (schedule,) = await screen.engine.store.schedules.all()
        return schedule.prompt

    async def edit(screen, page, name, text):
        screen.press("Edit News")
        line = await screen.wait_for(QLineEdit, name)
        line.setText(text)
        screen.press("Save")
        await until(lambda: screen.find(QPushButton, "Save") is None)
        await screen.idle()

    async def work(screen):
        page = await open_page(screen)
        await add(screen, page)
        await edit(screen, page, "Workspace folder", str(tmp_path / "alias"))
        assert (await stored(screen)).workspace == str(folder)
        folder.rename(tmp_path / "aside")
        folder.symlink_to(keys)
        await edit(screen, page, "Name", "News")
        assert (await stored(screen)).workspace == str(folder)
        screen.press("Run News now")
        await until(lambda: f"“{folder}” leads to “{keys}” now." in " ".join(screen.words(screen.window)))
        assert screen.provider.requests == []
        await edit(screen, page, "Workspace folder", str(keys))
        screen.press("Run News now")
        await until(lambda: len(screen.provider.requests) == 1)

    on_screen(work, DONE)


def test_a_prompt_is_written_run_paused_changed_and_deleted(on_screen):
    async def work(screen):
        page = await open_page(screen)
        assert "Scheduled prompts run only while Desktop Agent runs." in text_of(screen, page)
        assert "Nothing is scheduled." in text_of(screen, page)
        await add(screen, page)
        await until(lambda: "Next:" in text_of(screen, page))
        assert "Every weekday at" in text_of(screen, page)
        screen.press("Run News now")
        await until(lambda: "Last run:" in text_of(screen, page) and "done" in text_of(screen, page))
        screen.press("Pause News")
        await until(lambda: "Paused." in text_of(screen, page))
        screen.press("Edit News")
        how_often = await screen.wait_for(QComboBox, "How often")
        QTest.keyClick(how_often, Qt.Key.Key_Up)
        screen.press("Save")
        await until(lambda: "Every day at" in text_of(screen, page))
        screen.press("Open the conversation of News")
        await until(lambda: screen.conversation.title == "News" and not page.isVisible())
        page = await open_page(screen)
        screen.press("Delete News")
        screen.press("Really delete News")
        await until(lambda: not cards(page))
        assert "Nothing is scheduled." in text_of(screen, page)

    on_screen(work, DONE)


async def stored_prompt(screen):
    (only,) = await screen.engine.store.schedules.all()
    return only.prompt


def test_a_prompt_that_is_paused_before_its_change_is_listed_keeps_both(on_screen):
    async def work(screen):
        page = await open_page(screen)
        await add(screen, page)
        await screen.idle()
        screen.press("Edit News")
        (await screen.wait_for(QPlainTextEdit, "Prompt")).setPlainText("What has changed?")
        is_read, may_go_on = held(screen.engine.store.schedules, "all")
        screen.press("Save")
        await is_read.wait()
        (await screen.wait_for(QPushButton, "Pause News")).click()
        await asyncio.sleep(0)
        may_go_on.set()
        await screen.idle()
        assert ((await stored_prompt(screen)).prompt, (await stored_prompt(screen)).is_on) == (
            "What has changed?",
            False,
        )

    on_screen(work)


def test_a_prompt_that_is_edited_before_it_is_listed_as_paused_stays_paused(on_screen):
    async def work(screen):
        page = await open_page(screen)
        await add(screen, page)
        await screen.idle()
        is_read, may_go_on = held(screen.engine.store.schedules, "all")
        screen.press("Pause News")
        await is_read.wait()
        screen.press("Edit News")
        may_go_on.set()
        await screen.idle()
        (await screen.wait_for(QPlainTextEdit, "Prompt")).setPlainText("What has changed?")
        screen.press("Save")
        await screen.idle()
        assert ((await stored_prompt(screen)).prompt, (await stored_prompt(screen)).is_on) == (
            "What has changed?",
            False,
        )

    on_screen(work)


def test_what_is_asked_of_a_prompt_stays_while_another_runs(on_screen):
    async def work(screen):
        for title in ("Weather", "News"):
            prompt = ScheduledPrompt(title=title, prompt="What is new?", timing=Cron(line="0 9 * * 1-5"))
            await screen.engine.store.schedules.save(prompt, datetime.now(UTC))
        page = await open_page(screen)
        await until(lambda: len(cards(page)) == 2)
        screen.press("Delete News")
        question = await screen.wait_for(QPushButton, "Really delete News")
        screen.press("Run Weather now")
        await until(lambda: "Last run:" in text_of(screen, page) and "done" in text_of(screen, page))
        assert question.isVisible()
        await until(lambda: page.focusWidget().accessibleName() == "Run Weather now")
        screen.find(QPushButton, "Pause Weather").setFocus()
        QTest.keyClick(page.focusWidget(), Qt.Key.Key_Space)
        await until(lambda: screen.find(QPushButton, "Resume Weather"))
        assert page.focusWidget().accessibleName() == "Resume Weather"
        assert [card.accessibleName() for card in cards(page)] == ["Scheduled prompt Weather", "Scheduled prompt News"]
        question.click()
        await until(lambda: len(cards(page)) == 1)

    on_screen(work, DONE)


def test_save_is_in_sight_and_escape_cancels_while_a_prompt_is_written(on_screen):
    async def work(screen):
        page = await open_page(screen)
        close = screen.find(QPushButton, "Close")
        for leave in ("Escape", "Save"):
            screen.press("Add scheduled prompt…")
            QTest.keyClicks(await screen.wait_for(QLineEdit, "Name"), "News")
            screen.find(QPlainTextEdit, "Prompt").setPlainText("What is new?")
            save = await screen.wait_for(QPushButton, "Save")
            await until(lambda save=save: not save.visibleRegion().isEmpty())
            assert not close.isVisible()
            if leave == "Escape":
                save.setFocus()
                QTest.keyClick(save, Qt.Key.Key_Escape)
            else:
                screen.press(leave)
            await until(close.isVisible)
            assert not any(save.isVisible() for save in page.findChildren(QPushButton) if save.text() == "Save")
        await until(lambda: len(cards(page)) == 1)

    on_screen(work, DONE)


def test_what_cannot_be_kept_is_said_at_its_field(on_screen):
    async def work(screen):
        page = await open_page(screen)
        screen.press("Add scheduled prompt…")
        how_often = await screen.wait_for(QComboBox, "How often")
        how_often.setCurrentIndex(how_often.findData("cron"))
        QTest.keyClicks(screen.find(QLineEdit, "Cron line"), "0 9 * *")
        screen.press("Save")
        words = text_of(screen, page)
        assert "A scheduled prompt needs a name. Write one." in words
        assert "There is nothing to send yet. Write the prompt." in words
        assert "A cron line has five fields: minute, hour, day, month and weekday. Write all five." in words
        QTest.keyClick(page.form, Qt.Key.Key_Escape)

    on_screen(work)


def test_what_is_due_runs_by_itself_and_is_in_the_list(on_screen):
    async def work(screen):
        rows = screen.engine.store.schedules
        prompt = ScheduledPrompt(title="By itself", prompt="go", timing=Cron(line="* * * * *"))
        await rows.save(prompt, datetime.now(UTC) - timedelta(minutes=5))
        page = await open_page(screen)
        screen.desk._scheduled.schedules._scheduler.check_soon()
        await until(lambda: "Last run:" in text_of(screen, page) and "done" in text_of(screen, page))
        (stored,) = await rows.all()
        assert (stored.last_run.state, stored.last_run.result) == ("ended", "completed")
        await until(lambda: screen.find(QPushButton, "Pause By itself"))
        screen.press("Pause By itself")
        await until(lambda: screen.find(QPushButton, "Resume By itself"))
        assert screen.find(QToolButton, "Scheduled prompts")

    on_screen(work, DONE)


def test_what_waits_for_a_budget_says_so_once_and_leads_to_the_budgets(on_screen, monkeypatch):
    notices = []
    monkeypatch.setattr(schedule_presenter, "is_active", lambda: False)
    monkeypatch.setattr(DesktopNotifications, "show", lambda _self, *words: notices.append(words))

    async def work(screen):
        used = {UsageKey(local_day(), "m", ""): UsageFigures(answers=1, tokens=10)}
        await screen.engine.store.usage.add(used)
        budgets = UsagePreferences(tokens_per_day=10)
        await screen.engine.change_preferences(screen.engine.preferences.model_copy(update={"usage": budgets}))
        rows = screen.engine.store.schedules
        for title in ("News", "Weather"):
            prompt = ScheduledPrompt(title=title, prompt="go", timing=Cron(line="* * * * *"))
            await rows.save(prompt, datetime.now(UTC) - timedelta(minutes=5))
        screen.desk._scheduled.schedules.start()
        await until(lambda: notices)
        screen.desk._notifications.activated.emit(notices[0][0], SHOW)
        page = await screen.wait_for(ScheduleDialog, "Scheduled prompts")
        waits = "The budget of tokens for today is used up. One run waits"
        await until(lambda: text_of(screen, page).count(waits) == 2)
        assert notices == [
            (
                "schedule budget",
                "Scheduled prompts wait",
                "The budget of tokens for today is used up. They continue when there is budget again.",
            )
        ]
        assert {stored.last_run for stored in await rows.all()} == {None}
        screen.press("Usage and budgets")
        settings = await screen.wait_for(SettingsDialog, "Settings")
        await until(settings.usage.isVisible)
        settings.close()
        await screen.engine.change_preferences(
            screen.engine.preferences.model_copy(update={"usage": UsagePreferences()})
        )
        await until(lambda: text_of(screen, page).count("Last run:") == 2 and waits not in text_of(screen, page))

    on_screen(work, DONE, DONE)
