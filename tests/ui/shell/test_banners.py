import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QLabel, QLineEdit, QPushButton, QToolButton

from desktop_agent.types.errors import AuthenticationFailed, ConnectionFailed, ConversationInUse, RemedyAction, Sentence
from ui.shell import banners
from ui.shell.banners import Banner, BannerArea, BannerButton, BannerFrame
from ui.style.theme import ThemeSource, pixmap


class Driver:
    def __init__(self, qtbot):
        self.bot = qtbot
        self.area = BannerArea(ThemeSource())
        qtbot.addWidget(self.area)

    @property
    def words(self):
        frames = [frame for frame in self.area.findChildren(BannerFrame) if frame.isVisible()]
        return [label.text() for frame in frames for label in frame.findChildren(QLabel) if label.text()]

    def click(self, name, kind=QPushButton):
        widgets = [
            widget for widget in self.area.findChildren(kind) if widget.accessibleName() == name and widget.isVisible()
        ]
        self.bot.mouseClick(widgets[0], Qt.MouseButton.LeftButton)


@pytest.fixture
def driver(qtbot):
    return Driver(qtbot)


def test_an_error_says_what_and_what_to_do(driver):
    driver.area.show_error(ConnectionFailed("<b>refused</b>"))
    assert driver.words == [
        "The model server could not be reached: <b>refused</b>.",
        "Check that the server is running and the address is right, then try again.",
    ]
    assert not driver.area.isModal()
    frame = driver.area.findChild(BannerFrame)
    assert frame.accessibleName() == " ".join(driver.words)
    driver.click("Close this message", QToolButton)
    assert driver.area.isHidden()


def test_a_remedy_has_a_button_where_the_shell_offers_one(driver):
    opened = []
    driver.area.show_error(AuthenticationFailed("no"))
    assert driver.area.findChildren(QPushButton) == []
    driver.area.clear()
    driver.area.add_remedy_button(RemedyAction.OPEN_SETTINGS, "Open settings", lambda: opened.append(1))
    driver.area.show_error(AuthenticationFailed("no"))
    driver.click("Open settings")
    assert opened == [1]
    assert driver.area.keys == []


def test_that_another_process_holds_it_is_not_said_for_ever(driver, monkeypatch):
    monkeypatch.setattr(banners, "IN_USE_MS", 1)
    driver.area.show_error(ConnectionFailed("refused"))
    driver.area.show_error(ConversationInUse("It is worked on by “ask”."))
    driver.bot.waitUntil(lambda: not any("worked on" in text for text in driver.words))
    assert "refused" in driver.words[0]


def test_details_can_be_copied_and_the_banner_stays(driver):
    driver.area.show_error(ConnectionFailed("refused", detail="errno 111"))
    driver.click("Copy details")
    assert QApplication.clipboard().text() == "errno 111"
    assert len(driver.area.keys) == 1


def test_the_same_error_again_is_one_banner(driver):
    driver.area.show_error(ConnectionFailed("refused"))
    driver.area.show_error(ConnectionFailed("refused"))
    assert len(driver.area.keys) == 1


def test_only_the_newest_four_are_shown_and_the_others_wait(driver):
    for number in range(6):
        driver.area.show_notice(Sentence("Problem {n}", {"n": str(number)}))
    assert driver.words == ["Problem 2", "Problem 3", "Problem 4", "Problem 5"]
    driver.area.remove("Problem 5")
    assert driver.words == ["Problem 1", "Problem 2", "Problem 3", "Problem 4"]


def test_undo_takes_it_back(driver):
    undone = []
    driver.area.show_undo("“{odd}” was deleted.", lambda: undone.append(1))
    assert driver.words == ["“{odd}” was deleted."]
    driver.click("Undo")
    assert undone == [1]
    assert driver.area.isHidden()


def test_the_last_undo_is_taken_by_its_command_once(driver):
    undone = []
    driver.area.show_undo("first", lambda: undone.append(1))
    driver.area.show_notice(Sentence("Another message."))
    driver.area.undo_last()
    driver.area.undo_last()
    assert undone == [1]
    assert driver.words == ["Another message."]


def test_an_undo_that_has_the_keyboard_stays(driver, monkeypatch):
    monkeypatch.setattr(banners, "UNDO_MS", 20)
    with driver.bot.waitExposed(driver.area):
        driver.area.show()
    driver.area.show_undo("first", lambda: None)
    (undo_button,) = [button for button in driver.area.findChildren(QPushButton) if button.text() == "Undo"]
    undo_button.setFocus()
    assert undo_button.hasFocus()
    # It ends after this one: its time began later.
    with driver.bot.waitSignal(driver.area.closed) as signal:
        driver.area.show_banner(Banner("later", Sentence("Second"), level="remark", duration_ms=30))
    assert signal.args == ["later"]
    assert driver.words == ["first"]
    with driver.bot.waitSignal(driver.area.closed):
        undo_button.clearFocus()


def test_a_button_may_show_the_next_banner(driver):
    again = BannerButton("Again", lambda: driver.area.show_notice(Sentence("Second")))
    driver.area.show_banner(Banner("x", Sentence("First"), buttons=(again,)))
    driver.click("Again")
    assert driver.words == ["Second"]


def test_a_lasting_banner_ends(driver):
    # In this window the button that closes it may be given the keyboard, and it would stay.
    QLineEdit(driver.area).setFocus()
    with driver.bot.waitSignal(driver.area.closed) as signal:
        driver.area.show_banner(Banner("short", Sentence("Soon gone"), level="undo", duration_ms=1))
    assert signal.args == ["short"]
    assert driver.area.keys == []


def icon_of(driver):
    frame = driver.area.findChildren(BannerFrame)[-1]
    return frame.findChildren(QLabel)[0].pixmap().toImage()


def test_an_arrow_back_stands_only_where_something_can_be_taken_back(driver):
    muted = ThemeSource().theme.muted
    driver.area.show_undo("first", lambda: None)
    assert icon_of(driver) == pixmap("undo", muted, 18).toImage()
    driver.area.show_banner(Banner("hint", Sentence("F7 turns it off."), level="remark"))
    assert icon_of(driver) == pixmap("info", muted, 18).toImage()


def test_the_icon_stands_beside_the_first_of_several_lines(driver):
    driver.area.resize(360, 300)
    driver.area.show_error(ConnectionFailed("nobody answers at this address, and nobody ever will"))
    with driver.bot.waitExposed(driver.area):
        driver.area.show()
    frame = driver.area.findChild(BannerFrame)
    icon, sentence, *_ = frame.findChildren(QLabel)
    line = sentence.fontMetrics().lineSpacing()
    assert sentence.height() > 2 * line
    middle = sentence.geometry().top() + line // 2
    assert abs(icon.geometry().bottom() - icon.pixmap().height() // 2 - middle) <= 2
    (close,) = frame.findChildren(QToolButton)
    assert abs(close.geometry().center().y() - middle) <= 4


def test_a_banner_of_the_same_key_starts_its_time_anew(driver):
    driver.area.show_undo("first", lambda: None)
    old = driver.area.findChild(BannerFrame)
    driver.area.show_undo("second", lambda: None)
    old.close_pressed.emit()
    assert driver.words == ["second"]


def test_in_a_low_window_the_newest_is_seen(driver):
    driver.area.resize(360, 300)
    with driver.bot.waitExposed(driver.area):
        driver.area.show()
    for number in range(3):
        driver.area.show_error(ConnectionFailed(f"{number}: nobody answers at this address, and nobody ever will"))
    driver.area.show_undo("“A plan” was put into the trash.", lambda: None)
    bar = driver.area._scrolled.verticalScrollBar()
    driver.bot.waitUntil(lambda: bar.maximum() > 0)
    newest = driver.area.findChildren(BannerFrame)[-1]
    driver.bot.waitUntil(lambda: newest.visibleRegion().boundingRect() == newest.rect())


def test_a_long_name_takes_no_lines_from_the_end(driver, qtbot):
    name = "conversations.sqlite3.damaged-20261104-101530"
    words = Sentence(
        "The damaged file was kept as {name}. If something is missing, a backup may have it.", {"name": name}
    )
    driver.area.show_banner(Banner("damaged", words, level="notice"))
    driver.area.show_banner(Banner("short", Sentence("A short one that wraps in a narrow window too"), level="notice"))
    driver.area.resize(280, 700)
    driver.area.show()
    frames = driver.area.findChildren(BannerFrame)
    qtbot.waitUntil(lambda: all(frame.height() == frame.heightForWidth(frame.width()) for frame in frames))
