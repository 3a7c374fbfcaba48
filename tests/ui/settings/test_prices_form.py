"""The table of prices."""

from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QLineEdit, QPushButton, QTableView

from desktop_agent.types.providers import Price
from ui.settings.prices_form import PriceSettings, parse_price
from ui.style.theme import ThemeSource


@dataclass(frozen=True)
class Model:
    server: str
    vendor: str
    model: str
    price: Price = field(default_factory=Price)
    is_own: bool = False


MODELS = (
    Model("Anthropic", "anthropic", "large", Price(input=3, output=15, cache_read=0.3)),
    Model("Studio", "stranger", "small", Price(input=0.25), is_own=True),
)


class Driver:
    def __init__(self, qtbot):
        self.bot = qtbot
        self.changes = []
        settings = SimpleNamespace(change_price=lambda *args: self.changes.append(args))
        self.form = PriceSettings(ThemeSource(), settings)
        qtbot.addWidget(self.form)
        self.form.resize(700, 500)
        self.form.show_models(MODELS)
        self.form.show()
        self.table = self.form.findChild(QTableView)

    def cells(self, role=Qt.ItemDataRole.DisplayRole):
        model = self.table.model()
        return [
            [model.index(row, column).data(role) for column in range(model.columnCount())]
            for row in range(model.rowCount())
        ]

    def select_conversation(self, row, column):
        self.table.setFocus()
        self.table.setCurrentIndex(self.table.model().index(row, column))

    def type_in(self, text):
        self.bot.keyClick(self.table, Qt.Key.Key_F2)
        editor = self.table.viewport().findChild(QLineEdit)
        editor.selectAll()
        self.bot.keyClicks(editor, text)
        self.bot.keyClick(editor, Qt.Key.Key_Return)
        self.bot.waitUntil(lambda: self.table.viewport().findChild(QLineEdit) is None)

    def button(self, name):
        return next(button for button in self.form.findChildren(QPushButton) if button.accessibleName() == name)


@pytest.fixture
def driver(qtbot):
    return Driver(qtbot)


def test_each_model_has_a_row_that_can_be_heard(driver):
    assert driver.table.accessibleName() == "Prices"
    assert driver.cells() == [
        ["Anthropic", "large", "3", "15", "0.3", ""],
        ["Studio", "small", "0.25", "", "", ""],
    ]
    texts = driver.cells(Qt.ItemDataRole.AccessibleTextRole)
    assert texts[0][2] == "In: $3"
    assert texts[1][2:4] == ["In: $0.25, changed by you", "Out: not known, changed by you"]


def test_titles_leave_room_for_the_names_of_models_and_are_heard_whole(driver):
    titles = driver.table.horizontalHeader().model()
    for role, expected in (
        (Qt.ItemDataRole.DisplayRole, "Cache\nwrite"),
        (Qt.ItemDataRole.AccessibleTextRole, "Cache write"),
    ):
        assert titles.headerData(5, Qt.Orientation.Horizontal, role) == expected
    header = driver.table.horizontalHeader()
    assert header.sectionSize(5) < header.fontMetrics().horizontalAdvance("Cache write")
    assert header.height() >= 2 * header.fontMetrics().height()


def test_a_number_is_changed_by_keyboard(driver):
    driver.select_conversation(0, 3)
    driver.type_in("$20,5")
    assert driver.changes == [("anthropic", "large", Price(output=20.5))]
    driver.form.show_models((replace(MODELS[0], price=Price(output=20.5), is_own=True), MODELS[1]))
    assert driver.cells()[0][3] == "20.5"
    assert (driver.table.currentIndex().row(), driver.table.currentIndex().column()) == (0, 3)


MORE = Model("Local", "stranger", "new")


@pytest.mark.parametrize("models", [MODELS, (*MODELS, MORE), (MORE, *MODELS), (MORE, MODELS[1]), MODELS[1:]])
def test_what_is_typed_stays_while_models_are_listed(driver, models):
    driver.select_conversation(1, 3)
    driver.bot.keyClick(driver.table, Qt.Key.Key_F2)
    editor = driver.table.viewport().findChild(QLineEdit)
    driver.bot.keyClicks(editor, "0.5")
    driver.form.show_models(tuple(replace(model, is_own=True) for model in models))
    assert [row[1] for row in driver.cells()] == [model.model for model in models]
    assert editor.isVisible()
    assert editor.text() == "0.5"
    driver.bot.keyClick(editor, Qt.Key.Key_Return)
    driver.bot.waitUntil(lambda: driver.changes == [("stranger", "small", Price(output=0.5))])


def test_a_model_that_is_listed_no_more_takes_its_editor_along(driver):
    driver.select_conversation(1, 3)
    driver.bot.keyClick(driver.table, Qt.Key.Key_F2)
    driver.form.show_models(MODELS[:1])
    driver.bot.waitUntil(lambda: driver.table.viewport().findChild(QLineEdit) is None)
    assert [row[1] for row in driver.cells()] == ["large"]
    driver.form.show_models(())
    assert driver.cells() == driver.changes == []
    driver.form.show_models(MODELS)
    assert [row[1] for row in driver.cells()] == ["large", "small"]


@pytest.mark.parametrize("typed", ["free", "-1", "nan", "inf", "3", ""])
def test_what_is_no_new_number_changes_nothing(driver, typed):
    driver.select_conversation(0, 2)
    driver.type_in(typed or " ")
    assert driver.changes == []
    assert driver.cells()[0][2] == "3"


def test_names_cannot_be_changed(driver):
    driver.select_conversation(0, 1)
    driver.bot.keyClick(driver.table, Qt.Key.Key_F2)
    assert driver.table.viewport().findChild(QLineEdit) is None


def test_a_row_goes_back_to_what_is_shipped(driver):
    reset = driver.button("Reset to the original price")
    assert not reset.isEnabled()
    driver.select_conversation(0, 2)
    assert not reset.isEnabled()
    driver.select_conversation(1, 2)
    driver.bot.mouseClick(reset, Qt.MouseButton.LeftButton)
    assert driver.changes == [("stranger", "small", None)]


def test_the_filter_finds_servers_and_models(driver):
    field = next(line for line in driver.form.findChildren(QLineEdit) if line.accessibleName() == "Filter prices")
    for typed, expected in (("STUD", ["small"]), ("large", ["large"]), ("nothing", []), ("", ["large", "small"])):
        field.setText(typed)
        assert [row[1] for row in driver.cells()] == expected
    field.setText("stud")
    driver.select_conversation(0, 4)
    driver.type_in("1")
    assert driver.changes == [("stranger", "small", Price(cache_read=1))]


def test_an_empty_table_says_why(driver):
    driver.form.show_models(())
    words = [label.text() for label in driver.form.findChildren(QLabel) if label.isVisible()]
    assert "Models are listed here when a server is connected." in words


def test_numbers_as_people_type_them():
    assert [parse_price(text) for text in ("3", " $0,075 ", "1e3", "", "3 dollars")] == [3, 0.075, 1000, None, None]
