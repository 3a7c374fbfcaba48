"""What a call of a specialist may use, in the units of each."""

from typing import Any

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QDoubleSpinBox, QSpinBox, QWidget

from desktop_agent.vocabulary.conduct.limits import Limits
from desktop_agent.vocabulary.conduct.specialists import Specialist
from ui.preferences.checked_fields import ValidatedForm

MAX_TOKENS = 2_000_000_000
MAX_COST = 1_000_000.0
MAX_MINUTES = 24 * 60.0
MAX_TURNS = 100_000
_TOKEN_STEP = 10_000


class BudgetFields:
    """Its share of what is left to whoever calls it, and bounds of its own; 0 is none."""

    def __init__(self, form: ValidatedForm, parent: QWidget) -> None:
        self._share = QSpinBox(parent)
        self._tokens = QSpinBox(parent)
        self._cost = QDoubleSpinBox(parent)
        self._minutes = QDoubleSpinBox(parent)
        self._turns = QSpinBox(parent)
        self._before: Specialist | None = None
        self._shown = (0, 0.0, 0.0)
        self._configure_fields()
        share = QCoreApplication.translate("Budget", "Of the tokens and the cost that are left to whoever calls it.")
        form.add(QCoreApplication.translate("Budget", "Share of the budget"), self._share, note=share)
        form.add(QCoreApplication.translate("Budget", "Most tokens"), self._tokens)
        form.add(QCoreApplication.translate("Budget", "Most cost"), self._cost)
        time = QCoreApplication.translate("Budget", "At work; waiting for you does not count.")
        form.add(QCoreApplication.translate("Budget", "Longest time"), self._minutes, note=time)
        form.add(QCoreApplication.translate("Budget", "Most turns"), self._turns)

    def show_budget(self, specialist: Specialist) -> None:
        """As it is."""
        limits = specialist.limits
        self._share.setValue(round(specialist.share * 100))
        self._tokens.setValue(limits.tokens or 0)
        self._cost.setValue(limits.cost or 0)
        self._minutes.setValue((limits.seconds or 0) / 60)
        self._turns.setValue(limits.turns)
        self._before = specialist
        self._shown = self._share.value(), self._cost.value(), self._minutes.value()

    @property
    def share(self) -> float:
        """From 0 to 1. What was finer than is shown stays where nothing else was written."""
        shown = self._share.value()
        return self._before.share if self._before is not None and shown == self._shown[0] else shown / 100

    @property
    def limits(self) -> dict[str, Any]:
        """All limits, with what is written here; what was finer than is shown stays where nothing else was written."""
        before = self._before.limits if self._before is not None else Limits()
        _, cost, minutes = self._shown
        return {
            **before.model_dump(),
            "tokens": self._tokens.value() or None,
            "cost": before.cost if self._cost.value() == cost else self._cost.value() or None,
            "seconds": before.seconds if self._minutes.value() == minutes else self._minutes.value() * 60 or None,
            "turns": self._turns.value(),
        }

    def _configure_fields(self) -> None:
        self._share.setRange(1, 100)
        self._share.setValue(50)
        self._share.setSuffix(" %")
        self._tokens.setRange(0, MAX_TOKENS)
        self._tokens.setSingleStep(_TOKEN_STEP)
        self._tokens.setGroupSeparatorShown(True)
        self._tokens.setSuffix(QCoreApplication.translate("Budget", " tokens for each call"))
        self._cost.setRange(0, MAX_COST)
        self._cost.setPrefix("$")
        self._cost.setSuffix(QCoreApplication.translate("Budget", " for each call"))
        self._minutes.setRange(0, MAX_MINUTES)
        self._minutes.setDecimals(1)
        self._minutes.setSuffix(QCoreApplication.translate("Budget", " minutes for each call"))
        self._turns.setRange(1, MAX_TURNS)
        self._turns.setValue(Limits().turns)
        self._turns.setSuffix(QCoreApplication.translate("Budget", " turns for each call"))
        for each in (self._tokens, self._cost, self._minutes):
            each.setSpecialValueText(QCoreApplication.translate("Budget", "No limit"))
