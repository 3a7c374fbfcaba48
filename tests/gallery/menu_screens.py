"""The menus that no other screen opens: of the menu bar, of texts, and of what lies under the pointer."""

from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from types import SimpleNamespace

from PySide6.QtCore import QCoreApplication, QObject, QPoint, Signal
from PySide6.QtGui import QContextMenuEvent
from PySide6.QtWidgets import QApplication, QComboBox, QLineEdit, QMenu, QToolButton, QWidget

from desktop_agent.types.messages import Message
from tests.gallery.conduct_window_screens import waiting_messages
from tests.gallery.conversation_screens import pictures, said
from tests.gallery.desk import Desk, until
from tests.gallery.folder_screens import folders_inside, organise
from tests.gallery.model_screens import WARM, costing
from tests.gallery.reading_screens import talk
from tests.gallery.screens import scene
from tests.gallery.search_screens import search
from tests.gallery.server_question_screens import arguments
from tests.gallery.spoken import nodes_of
from tests.gallery.text_screens import pictures_remote
from tests.gallery.version_screens import versions
from ui.composer.completion_popup import PromptArgumentsDialog
from ui.composer.message_queue import QueuedMessageControls
from ui.shell.branch_tree.branch_dialog import BranchDialog
from ui.shell.context_usage import UsageMeter
from ui.shell.desktop.tray import TrayPresenter
from ui.sidebar.folder_header import FolderHeader
from ui.transcript.blocks.table_block import TableBlock
from ui.transcript.viewport.selection import TextPosition

Open = Callable[[Desk], Awaitable[None]]


def menu(name: str, width: int = 1180, height: int = 800) -> Callable[[Open], Open]:
    """Register the screen menu-NAME: it is there when the menu is."""

    def register(open_menu: Open) -> Open:
        async def act(desk: Desk) -> None:
            await open_menu(desk)
            await until(QApplication.activePopupWidget)

        scene(f"menu-{name}", width, height)(act)
        return open_menu

    return register


def ask_for_menu(widget: QWidget) -> None:
    """Ask for the context menu, as the Menu key does."""
    place = widget.rect().center()
    event = QContextMenuEvent(QContextMenuEvent.Reason.Keyboard, place, widget.mapToGlobal(place))
    QApplication.sendEvent(widget, event)


async def say_hello(desk: Desk) -> None:
    await desk.show_stored(Message.user("Hello"), said("Hello. What shall we do today?"), title="A short word")


async def open_bar(desk: Desk, number: int) -> QMenu:
    await say_hello(desk)
    appearance = desk.engine.preferences.appearance.model_copy(update={"menu_bar": True})
    await desk.engine.change_preferences(desk.engine.preferences.model_copy(update={"appearance": appearance}))
    bar = desk.window.menuBar()
    bar.setActiveAction(bar.actions()[number])
    return bar.actions()[number].menu()


def of_bar() -> Iterator[str]:
    for number, name in enumerate(("file", "edit", "view", "conversation", "message", "help")):
        menu(f"bar-{name}")(lambda desk, number=number: open_bar(desk, number))
        yield name


OF_BAR = tuple(of_bar())


@menu("go-to")
async def go_to(desk: Desk) -> None:
    for number in range(len(OF_BAR)):
        bar_menu = await open_bar(desk, number)
        inner = [action for action in bar_menu.actions() if action.menu() is not None]
        if inner:
            bar_menu.setActiveAction(inner[0])
            await until(inner[0].menu().isVisible)
            return


@menu("folder")
async def folder(desk: Desk) -> None:
    await organise(desk)
    view = desk.window.sidebar.view
    await until(lambda: any(view.rows.place_at(number) is not None for number in range(view.rows.rowCount())))
    row = next(number for number in range(view.rows.rowCount()) if view.rows.place_at(number) is not None)
    view.customContextMenuRequested.emit(view.visualRect(view.rows.index(row)).center())


@menu("folder-open")
async def open_folder(desk: Desk) -> None:
    await folders_inside(desk)
    desk.window.sidebar.findChild(FolderHeader)._more.click()


@menu("beside-rows")
async def beside_rows(desk: Desk) -> None:
    await say_hello(desk)
    view = desk.window.sidebar.view
    view.customContextMenuRequested.emit(QPoint(4, view.viewport().height() - 4))


@menu("filter")
async def search_filter(desk: Desk) -> None:
    await search(desk, "harbour")
    filters = desk.window.sidebar._filters
    filters._button.click()
    inner = [action for action in filters._menu.actions() if action.menu() is not None]
    filters._menu.setActiveAction(inner[0])
    await until(inner[0].menu().isVisible)


@menu("editor")
async def editor(desk: Desk) -> None:
    await say_hello(desk)
    desk.window.page.composer.set_draft("What shall we do?")
    desk.window.page.composer.editor.selectAll()
    ask_for_menu(desk.window.page.composer.editor.viewport())


@menu("field")
async def field(desk: Desk) -> None:
    await say_hello(desk)
    ask_for_menu(desk.window.sidebar._search)


@menu("choices")
async def choices(desk: Desk) -> None:
    desk.begin()
    dialog = desk.settings.show("appearance")
    next(part for part in dialog.findChildren(QComboBox) if part.isVisible()).showPopup()


@menu("workspace")
async def workspace(desk: Desk) -> None:
    desk.begin(workspace=True)
    await until(desk.window.page.workspace_picker.isVisible)
    desk.window.page.workspace_picker.open_menu()


@menu("send")
async def send(desk: Desk) -> None:
    await waiting_messages(desk)
    name = QCoreApplication.translate("SendStopButton", "Queue the message")
    button = next(part for part in desk.window.findChildren(QToolButton) if part.accessibleName() == name)
    await until(button.isVisible)
    button.click()


@menu("waiting-message", 480, 760)
async def waiting_message(desk: Desk) -> None:
    await waiting_messages(desk)
    controls = desk.window.findChildren(QueuedMessageControls)[0]
    await until(controls._more.isVisible)
    controls._more.click()


@menu("usage")
async def usage(desk: Desk) -> None:
    await desk.show_stored(*costing(WARM), title="A short word")
    meter = desk.window.findChild(UsageMeter)
    await until(meter.isVisible)
    meter.click()


@menu("branch")
async def branch(desk: Desk) -> None:
    await versions(desk)
    desk.window.page.branches.tree.open()
    await until(lambda: desk.window.findChildren(BranchDialog))
    dialog = desk.window.findChildren(BranchDialog)[0]
    await until(lambda: dialog.tree.current is not None)
    dialog.tree.customContextMenuRequested.emit(dialog.tree.visualRect(dialog.tree.currentIndex()).center())


async def open_context_menu(desk: Desk, name: str, talks: Open = talk, of: str = "") -> None:
    """Open the context menu of the first link or button of this name; `of` fills the placeholder in the name."""
    await talks(desk)
    name = QCoreApplication.translate("Transcript", name).format(of)
    view = desk.window.page.transcript
    await until(lambda: any(node.name == name for node in nodes_of(view)))
    next(node.widget for node in nodes_of(view) if node.name == name).focus()()
    view.context_menu.popup_by_key(view)


menu("link")(partial(open_context_menu, name="Sintra"))
menu("code")(partial(open_context_menu, name="Copy code"))
menu("picture")(partial(open_context_menu, name="Open picture: {0}", of="harbour.png", talks=pictures))
menu("picture-elsewhere")(partial(open_context_menu, name="Load picture", talks=pictures_remote))


@menu("table")
async def table(desk: Desk) -> None:
    await talk(desk)
    view = desk.window.page.transcript
    row = next(index for index, item in enumerate(view.row_viewport.rows.transcript) if "| Room" in str(item))
    block = next(
        index for index, block in enumerate(view.row_viewport.rows.row(row).blocks) if isinstance(block, TableBlock)
    )
    view.caret.toggle()
    view.caret.move_to(TextPosition(row, block, 0))
    view.context_menu.popup_by_key(view)


@menu("arguments")
async def completions_of_argument(desk: Desk) -> None:
    await arguments(desk)
    dialog = desk.window.findChild(PromptArgumentsDialog)
    field = dialog.findChildren(QLineEdit)[0]
    field.setFocus()
    await until(field.hasFocus)
    dialog.show_completions(next(iter(dialog._completers)), ["main", "release"])


@menu("tray")
async def tray(desk: Desk) -> None:
    class Startup(QObject):
        left = Signal()

    await say_hello(desk)
    startup = Startup(desk.window)
    startup.raise_window = desk.window.raise_
    startup.window = SimpleNamespace(left_in_tray=startup.left, sidebar=desk.window.sidebar, quit=desk.window.close)
    settings = SimpleNamespace(preferences=desk.engine.preferences)
    presenter = TrayPresenter(startup, desk.library, settings, lambda: None, lambda: None)
    presenter._menu.aboutToHide.connect(presenter.close)
    presenter._menu.popup(desk.window.mapToGlobal(QPoint(40, 40)))
