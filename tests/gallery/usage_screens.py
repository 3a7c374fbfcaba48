"""The page of usage with months of work, budgets, and the banners about them."""

import asyncio
import random
from datetime import timedelta

from PySide6.QtWidgets import QScrollArea

from desktop_agent.types.preferences import UsagePreferences
from desktop_agent.types.spending import NANOS, UsageFigures, UsageKey
from tests.gallery.desk import Desk, until
from tests.gallery.screens import scene
from ui.settings.usage.usage_page import UsageSettings, local_today
from ui.shell.usage import BudgetBanners

# Dollars for a million tokens; None: a local model without a price.
PRICES = {"aurora-large": 6.0, "aurora-small": 0.8, "qwen3-coder:30b": None}
PROJECTS = ("/home/ada/code/importer", "/home/ada/letters", "/home/ada/code/website-of-the-sailing-club", "")


async def spend(desk: Desk, days: int = 240) -> None:
    """Record usage of so many days, the same in every run: little on two of seven days, some without a price."""
    dice, usage, today = random.Random(7), {}, local_today()
    for days_ago in range(days):
        day = today - timedelta(days=days_ago)
        for _ in range(dice.randint(0, 1) if days_ago % 7 > 4 else dice.randint(1, 4)):
            model, project = dice.choice(list(PRICES)), dice.choice(PROJECTS)
            read, written, answers = dice.randint(20_000, 900_000), dice.randint(2_000, 40_000), dice.randint(1, 30)
            price, cached = PRICES[model], int(read * dice.uniform(0.1, 0.8))
            cost = 0 if price is None else round((read - cached * 0.9) * price * NANOS / 1e6)
            saved = 0 if price is None else round(cached * 0.9 * price * NANOS / 1e6)
            usage[UsageKey(day, model, project)] = UsageFigures(
                answers=answers,
                unpriced=answers if price is None else 0,
                tokens=read + written,
                input_tokens=read,
                output_tokens=written,
                cache_read_tokens=cached,
                cost_nanos=cost,
                saved_nanos=saved,
            )
    # On the first day of a month too, its figures have some without a price.
    usage[UsageKey(today, "qwen3-coder:30b", "")] = UsageFigures(answers=3, unpriced=3, tokens=90_000)
    await desk.engine.store.usage.add(usage)


async def prefer(desk: Desk, **budgets: float) -> None:
    preferences = desk.engine.preferences
    await desk.engine.change_preferences(preferences.model_copy(update={"usage": UsagePreferences(**budgets)}))


async def usage_page(desk: Desk) -> UsageSettings:
    desk.begin()
    await spend(desk)
    await prefer(desk, cost_per_day=5, cost_per_month=120, tokens_per_month=40_000_000)
    desk.settings.show().show_page("usage")
    page = desk.settings.show().usage
    await until(lambda: page.report.rows)
    await asyncio.sleep(0.3)
    return page


def scroll_down(desk: Desk, page: UsageSettings) -> None:
    bars = [
        area.verticalScrollBar() for area in desk.settings.show().findChildren(QScrollArea) if area.isAncestorOf(page)
    ]
    bars[0].setValue(bars[0].maximum())


@scene("usage", height=1000)
async def usage(desk: Desk) -> None:
    await usage_page(desk)


@scene("usage-360", 360, 800)
async def usage_narrow(desk: Desk) -> None:
    await usage_page(desk)
    desk.settings.show().resize(360, 780)
    await asyncio.sleep(0.3)


@scene("usage-by-model", height=1000)
async def usage_by_model(desk: Desk) -> None:
    page = await usage_page(desk)
    page.choose("year", "model", "tokens")
    await until(lambda: page.report.grouping == "model")
    await asyncio.sleep(0.3)


@scene("usage-by-project", height=1000)
async def usage_by_project(desk: Desk) -> None:
    page = await usage_page(desk)
    page.choose("all", "project")
    await until(lambda: page.report.grouping == "project")
    await asyncio.sleep(0.3)


@scene("usage-budgets", height=1000)
async def usage_budgets(desk: Desk) -> None:
    page = await usage_page(desk)
    page.choose("year", "day")
    await asyncio.sleep(0.3)
    scroll_down(desk, page)
    await asyncio.sleep(0.3)


@scene("usage-none")
async def usage_none(desk: Desk) -> None:
    desk.begin()
    desk.settings.show().show_page("usage")
    await asyncio.sleep(0.3)


@scene("budget-banners")
async def budget_banners(desk: Desk) -> None:
    await spend(desk)
    reports = desk.settings._sources.settings.usage
    BudgetBanners(reports, desk.window.banners, lambda: None, desk.window)
    desk.begin()
    key = UsageKey(local_today(), "aurora-large", "")
    await desk.engine.store.usage.add({key: UsageFigures(answers=1, tokens=9_000, cost_nanos=1_000_000_000)})
    month = (await desk.engine.store.usage.used_since(local_today().replace(day=1))).cost_nanos / NANOS
    await prefer(desk, tokens_per_day=5_000, cost_per_month=round(month / 0.87, 2))
    await until(lambda: len(desk.window.banners.keys) == 2)
    await asyncio.sleep(0.3)
