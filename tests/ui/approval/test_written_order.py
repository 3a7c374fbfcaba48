"""Letters that read from the right reorder nothing of what is asked, wherever it is said."""

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, Qt
from PySide6.QtGui import QGuiApplication, QTextLayout
from PySide6.QtWidgets import QListWidget, QRadioButton

from desktop_agent.types.errors import Sentence
from tests.ui.drawn_order import from_left, rows_of
from ui.approval.approval_dialog import ApprovalDialog
from ui.approval.labels import WrappingLabel
from ui.bridge.permissions import PendingApproval, RuleOffer
from ui.style.theme import ThemeSource

GIVEN = {"from א": "mv א ב", "b": "ג > ד"}
MARKS = set("\u2066\u2067\u2069")


@pytest.fixture
def dialog(qtbot):
    made = ApprovalDialog(ThemeSource(), input_delay_ms=0)
    qtbot.addWidget(made)
    made.resize(800, 700)
    yield made
    made.hide()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


def asked(dialog, *others):
    offer = RuleOffer("r", Sentence("Run {line}", {"line": "mv א ב *"}), "/w/א/ב")
    reasons = (Sentence("It reads {page}", {"page": "https://a.example/א/ב"}),)
    untrusted_sources = ("https://a.example/א/ב", "other")
    call = PendingApproval("1", "run", GIVEN, reasons=reasons, untrusted_sources=untrusted_sources, offers=(offer,))
    dialog.set_approvals([call, *others])
    dialog.open()
    return dialog


def drawn(dialog, begins):
    found = next(each for each in dialog.findChildren(WrappingLabel) if each.text().startswith(begins))
    assert not MARKS & set(found.text())
    return from_left(found._layout_at(2000)[0])


def test_arguments(dialog):
    view = asked(dialog)._arguments.view
    assert rows_of(view) == ["{", '"fromא":"mvאב",', '"b":"ג>ד"', "}"]
    view.selectAll()
    view.copy()
    assert QGuiApplication.clipboard().text() == view.text
    assert not MARKS & set(view.text)


def test_arguments_that_are_edited_are_what_was_written(dialog):
    arguments = asked(dialog)._arguments
    arguments.toggle()
    assert rows_of(arguments.view) == ["{", '"fromא":"mvאב",', '"b":"ג>ד"', "}"]
    assert arguments.is_valid
    assert arguments.arguments == GIVEN
    assert arguments.edited_input is None
    assert not MARKS & set(arguments.edited_text)


def test_rules(dialog):
    asked(dialog)._rules.open_choice()
    assert drawn(dialog, "Run") == "Runmvאב*"
    assert drawn(dialog, "Only in") == "Onlyinconversationsofthefolder/w/א/ב"
    (choice,) = dialog._rules.findChildren(QRadioButton)
    assert choice.accessibleName() == "Run mv א ב *. Only in conversations of the folder /w/א/ב"


def test_reasons(dialog):
    asked(dialog)
    assert drawn(dialog, "It reads") == "Itreadshttps://a.example/א/ב"
    assert drawn(dialog, "Outside content from") == "Outsidecontentfrom:https://a.example/א/ב,other"
    assert not MARKS & set(dialog.accessibleDescription())


def test_the_list_of_calls(dialog):
    asked(dialog, PendingApproval("2", "run", {"line": "mv א ב"}))
    item = dialog._list.findChild(QListWidget).item(1)
    assert item.data(Qt.ItemDataRole.AccessibleTextRole) == "run: mv א ב"
    layout = QTextLayout(next(str(item.data(role)) for role in range(256, 270) if "mv" in str(item.data(role))))
    layout.beginLayout()
    layout.createLine().setLineWidth(900)
    layout.endLayout()
    assert from_left(layout) == "mvאב"
