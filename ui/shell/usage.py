"""The banners about budgets."""

from collections.abc import Callable, Sequence

from PySide6.QtCore import QObject

from desktop_agent.types.errors import Sentence
from desktop_agent.types.spending import BudgetState
from ui.bridge.settings import UsageReports
from ui.settings.usage.usage_text import budget_figures, budget_title
from ui.shell.banners import Banner, BannerArea, BannerButton


class BudgetBanners(QObject):
    """Warns at 80 % of a budget, and when one is used up; each once, until it no longer holds."""

    def __init__(
        self, reports: UsageReports, banners: BannerArea, open_page: Callable[[], object], parent: QObject
    ) -> None:
        super().__init__(parent)
        self._banners = banners
        self._open_page = open_page
        self._shown_levels: dict[str, str] = {}
        reports.budgets_changed.connect(self._show)
        reports.load_budgets()

    def _show(self, states: Sequence[BudgetState]) -> None:
        now = {_key(state): state for state in states if state.is_near}
        for key in self._shown_levels.keys() - now.keys():
            del self._shown_levels[key]
            self._banners.remove(key)
        for key, state in now.items():
            level = "reached" if state.is_reached else "near"
            if self._shown_levels.get(key) != level:
                self._shown_levels[key] = level
                self._banners.show_banner(self._banner(key, state))
            else:
                self._banners.update_sentence(key, self._sentence(state))

    def _banner(self, key: str, state: BudgetState) -> Banner:
        sentence = self._sentence(state)
        buttons = (BannerButton(self.tr("Usage and budgets"), self._open_page),)
        if not state.is_reached:
            remedy = Sentence("At 100 % no model is asked any more.")
            return Banner(key, sentence, remedy, "notice", buttons)
        remedy = Sentence("No model is asked any more. Raise the budget in Settings, or ask anyway.")
        return Banner(key, sentence, remedy, "error", buttons)

    def _sentence(self, state: BudgetState) -> Sentence:
        words = (
            self.tr("A budget is used up. {0}: {1}.")
            if state.is_reached
            else self.tr("A budget is nearly used up. {0}: {1}.")
        )
        return Sentence("{text}", {"text": words.format(budget_title(state), budget_figures(state))})


def _key(state: BudgetState) -> str:
    return f"budget {state.period} {state.unit}"
