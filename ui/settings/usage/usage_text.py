"""The words of the page of usage: costs, tokens, budgets, and the titles of days, models and projects."""

from datetime import date
from pathlib import PurePath

from PySide6.QtCore import QCoreApplication, QDate, QLocale

from desktop_agent.types.spending import BudgetState, UsageFigures, UsageGrouping
from ui.style.text import format_dollars, format_number
from ui.style.text_display import format_day, isolate_untrusted


def cost_text(figures: UsageFigures) -> str:
    """Return US dollars, with “≥” if some costs are not known; never 0 for an unknown cost."""
    if figures.cost is None:
        return QCoreApplication.translate("UsageSettings", "not known")
    return f"≥ {format_dollars(figures.cost)}" if figures.unpriced else format_dollars(figures.cost)


def tokens_text(figures: UsageFigures) -> str:
    """Return the number of tokens, with “≥” if some are not known."""
    if figures.known_tokens is None:
        return QCoreApplication.translate("UsageSettings", "not known")
    return f"≥ {format_number(figures.tokens)}" if figures.uncounted else format_number(figures.tokens)


def cache_text(figures: UsageFigures) -> str:
    """Return the share of the prompts that came from the cache; "" if none did."""
    if not figures.cache_read_tokens or not figures.input_tokens:
        return ""
    share = min(1.0, figures.cache_read_tokens / figures.input_tokens)
    # In some languages the percent sign is at another place, or has no space before it.
    return QCoreApplication.translate("UsageSettings", "{0} %").format(format_number(100 * share))


def row_title(grouping: UsageGrouping, key: str, today: date) -> str:
    """Return the title of a row. That of a workspace folder is its name; the whole path is for a tooltip."""
    if grouping == "day":
        day = parse_day(key)
        return key if day is None else format_day(day, today)
    if not key:
        no_folder = QCoreApplication.translate("UsageSettings", "No folder")
        unknown = QCoreApplication.translate("UsageSettings", "Unknown model")
        return no_folder if grouping == "project" else unknown
    return isolate_untrusted((PurePath(key).name or key) if grouping == "project" else key)


def month_title(day: date) -> str:
    """Return a month and its year."""
    form = QCoreApplication.translate("dates", "MMM yyyy")
    return QLocale().toString(QDate(day.year, day.month, day.day), form)


def parse_day(key: str) -> date | None:
    """Return the day of a row; None if it cannot be parsed."""
    try:
        return date.fromisoformat(key)
    except ValueError:
        return None


def budget_title(state: BudgetState) -> str:
    """Return which budget it is."""
    titles = {
        ("day", "cost"): QCoreApplication.translate("UsageSettings", "Money today"),
        ("day", "tokens"): QCoreApplication.translate("UsageSettings", "Tokens today"),
        ("month", "cost"): QCoreApplication.translate("UsageSettings", "Money this month"),
        ("month", "tokens"): QCoreApplication.translate("UsageSettings", "Tokens this month"),
    }
    return titles[state.period, state.unit]


def budget_figures(state: BudgetState) -> str:
    """Return how much of a budget is used: $4.10 of $5.00 (82 %)."""
    write = format_dollars if state.unit == "cost" else format_number
    used = f"≥ {write(state.used)}" if state.lacks_prices else write(state.used)
    # Rounded down: at 100 % models are no longer asked.
    percent = format_number(int(100 * state.share))
    return QCoreApplication.translate("UsageSettings", "{0} of {1} ({2} %)").format(used, write(state.limit), percent)
