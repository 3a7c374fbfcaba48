"""Letters that read from the right reorder nothing of what is asked, wherever it is said."""

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, Qt
from PySide6.QtGui import QGuiApplication, QTextLayout
from PySide6.QtWidgets import QListWidget, QRadioButton

from desktop_agent.types.errors import Sentence
from tests.ui.drawn_order import from_left, rows_of
from ui.approval.approval_dialog import ApprovalDialog
from ui.bridge.permissions import PendingApproval, RuleOffer
from ui.style.controls import WrappedLabel
from ui.style.theme import ThemeSource

GIVEN = {"from א": "mv א ב", "b": "ג > ד"}
MARKS = set("\u2066\u2067\u2069")


@pytest.fixture
def dialog(qtbot):
    approval_dialog = ApprovalDialog(ThemeSource(), input_delay_ms=0)
    qtbot.addWidget(approval_dialog)
    approval_dialog.resize(800, 700)
    yield approval_dialog
    approval_dialog.hide()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


def open_dialog(dialog, *other_calls):
    offer = RuleOffer("r", Sentence("Run {line}", {"line": "mv א ב *"}), "/w/א/ב")
    reasons = (Sentence("It reads {page}", {"page": "https://a.example/א/ב"}),)
    untrusted_sources = ("https://a.example/א/ב", "other")
    call = PendingApproval("1", "run", GIVEN, reasons=reasons, untrusted_sources=untrusted_sources, offers=(offer,))
    dialog.set_approvals([call, *other_calls])
    dialog.open()
    return dialog


def drawn_text(dialog, begins):
    found = next(label for label in dialog.findChildren(WrappedLabel) if label.text().startswith(begins))
    assert not MARKS & set(found.text())
    return from_left(found.broken(2000)[0])


def test_arguments_are_drawn_in_their_order(dialog):
    view = open_dialog(dialog)._arguments.view
    assert rows_of(view) == ["{", '"fromא":"mvאב",', '"b":"ג>ד"', "}"]
    view.selectAll()
    view.copy()
    assert QGuiApplication.clipboard().text() == view.text
    assert not MARKS & set(view.text)


def test_arguments_that_are_edited_are_what_was_written(dialog):
    arguments = open_dialog(dialog)._arguments
    arguments.toggle()
    assert rows_of(arguments.view) == ["{", '"fromא":"mvאב",', '"b":"ג>ד"', "}"]
    assert arguments.is_valid
    assert arguments.arguments == GIVEN
    assert arguments.edited_input is None
    assert not MARKS & set(arguments.edited_text)


def test_rules_are_drawn_in_their_order(dialog):
    open_dialog(dialog)._rules.open_choice()
    assert drawn_text(dialog, "Run") == "Runmvאב*"
    assert drawn_text(dialog, "Only in") == "Onlyinconversationsofthefolder/w/א/ב"
    (choice,) = dialog._rules.findChildren(QRadioButton)
    assert choice.accessibleName() == "Run mv א ב *. Only in conversations of the folder /w/א/ב"


def test_reasons_are_drawn_in_their_order(dialog):
    open_dialog(dialog)
    assert drawn_text(dialog, "It reads") == "Itreadshttps://a.example/א/ב"
    assert drawn_text(dialog, "Outside content from") == "Outsidecontentfrom:https://a.example/א/ב,other"
    assert not MARKS & set(dialog.accessibleDescription())


def test_the_list_of_calls(dialog):
    open_dialog(dialog, PendingApproval("2", "run", {"line": "mv א ב"}))
    item = dialog._list.findChild(QListWidget).item(1)
    assert item.data(Qt.ItemDataRole.AccessibleTextRole) == "run: mv א ב"
    layout = QTextLayout(next(str(item.data(role)) for role in range(256, 270) if "mv" in str(item.data(role))))
    layout.beginLayout()
    layout.createLine().setLineWidth(900)
    layout.endLayout()
    assert from_left(layout) == "mvאב"
