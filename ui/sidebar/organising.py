"""What is done with folders and conversations in the sidebar: menus, keys, drops and commands lead to the organiser."""

from collections.abc import Sequence
from functools import cached_property, partial

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QDialog, QWidget

from desktop_agent.types.folders import Folder, FolderLevel, Placement
from ui.bridge.desktop.links import conversation_link
from ui.bridge.library import ConversationLibrary
from ui.bridge.organiser import Organiser
from ui.sidebar.conversation_list import ConversationList
from ui.sidebar.conversation_model import PlaceRow
from ui.sidebar.folder_dialogs import FolderDialog, FolderPicker, TagDialog
from ui.sidebar.folder_header import FolderHeader
from ui.sidebar.row_menus import FolderAction, RowAction
from ui.style.controls import announce
from ui.style.theme import ThemeSource
from ui.style.widgets import QuestionBox


class OrganisePresenter(QObject):
    """Passes actions on to the organiser, and asks for what they need in dialogs that are not modal."""

    export_requested = Signal(list, str)
    """The ids of conversations, and the title of the first."""
    branches_requested = Signal(str)
    """All branches of a conversation, which is opened, are to be shown."""

    window_requested = Signal(str)
    """A conversation is to have a window of its own."""

    def __init__(
        self,
        themes: ThemeSource,
        sidebar: ConversationList,
        organiser: Organiser,
        library: ConversationLibrary,
        window: QWidget,
    ) -> None:
        super().__init__(window)
        self._themes = themes
        self._sidebar = sidebar
        self._organiser = organiser
        self._library = library
        self._window = window
        self._known: dict[str, Folder] = {}
        self._path: Sequence[Folder] = ()
        self._is_archive = False
        """Whether the archive is listed."""
        view = sidebar.view
        view.action_requested.connect(self.act_on)
        view.place_chosen.connect(self._open_place)
        view.folder_action_requested.connect(self._on_folder_action)
        view.dropped.connect(self._drop)
        view.up_requested.connect(self.go_up)
        view.rows.activity_changed.connect(self._find_active)
        library.listing.level_read.connect(self._on_level)
        library.listing.folders_found.connect(view.rows.set_folders)
        organiser.folders_read.connect(self._pick_folder)
        organiser.folder_refused.connect(self._edit)
        organiser.tags_read.connect(self._pick_tags)

    def act(self, action: RowAction) -> None:
        """Run an action on the marked conversations, else on the open one."""
        if ids := self._chosen_ids():
            self.act_on(action, ids)

    def applies(self, action: RowAction) -> bool:
        """Return whether there is a conversation on which `act` can run this action."""
        ids, view = self._chosen_ids(), self._sidebar.view
        listed = [row for row in map(view.rows.conversation_at, view.rows.rows_of(ids)) if row is not None]
        match action:
            case "merge":
                return len(ids) > 1
            case "link" | "window":
                return len(ids) == 1
            case "pin" | "unpin" if listed:
                return any(row.is_pinned == (action == "unpin") for row in listed)
            case "archive" | "unarchive" if listed:
                return self._is_archive == (action == "unarchive")
            case _:
                return bool(ids)

    def _chosen_ids(self) -> Sequence[str]:
        current = self._library.current
        is_on_disk = current is not None and current.is_stored and not current.is_in_memory
        return self._sidebar.view.marks.ids or ([current.id] if current is not None and is_on_disk else [])

    def create_folder(self) -> None:
        """Ask for the name of a folder, and create it in the folder that is listed."""
        self._edit(Folder("", "", parent=self._path[-1].id if self._path else None))

    def show_archive(self) -> None:
        """List what is archived."""
        self._library.listing.open_archive()
        self._sidebar.focus_list()

    def go_up(self) -> None:
        """List the folder above; nothing happens at the top."""
        if "_header" in vars(self):
            self._library.listing.open_folder(self._path[-2].id if len(self._path) > 1 else None)

    def act_on(self, action: RowAction, ids: Sequence[str]) -> None:
        """Run an action on these conversations."""
        match action:
            case "pin" | "unpin":
                self._organiser.pin(ids, pinned=action == "pin")
            case "archive" | "unarchive":
                self._organiser.archive(ids, archived=action == "archive")
            case "move":
                self._organiser.read_folders(ids)
            case "tag":
                self._organiser.read_tags(ids)
            case "merge":
                self._organiser.merge(ids, self.tr("From the conversation “{0}”:").format)
            case "export":
                self.export_requested.emit(list(ids), self._title_of(ids[0]))
            case "delete":
                self._organiser.trash(ids)
            case _:
                self._act_on_one(action, ids[0])
        self._sidebar.view.marks.clear()

    def _act_on_one(self, action: RowAction, conversation_id: str) -> None:
        match action:
            case "duplicate":
                self._organiser.duplicate(conversation_id, self.tr("{0} (copy)").format)
            case "branches":
                self.branches_requested.emit(conversation_id)
                self._library.open(conversation_id)
            case "window":
                self.window_requested.emit(conversation_id)
            case "link":
                QGuiApplication.clipboard().setText(conversation_link(conversation_id))
                announce(self._sidebar, self.tr("The link is copied."))
            case _:
                pass

    def _title_of(self, conversation_id: str) -> str:
        rows = self._sidebar.view.rows
        listed = rows.conversation_at(rows.row_of(conversation_id))
        return "" if listed is None else listed.title

    @cached_property
    def _header(self) -> FolderHeader:
        """The line above the list; created with the first folder that is opened."""
        header = FolderHeader(self._themes)
        header.up_requested.connect(self._library.listing.open_folder)
        header.folder_action_requested.connect(self._act_on_folder)
        header.dropped.connect(self._drop)
        self._sidebar.put_above_list(header, *header.tab_stops)
        self._sidebar.search_requested.connect(lambda: header.set_in_use(is_in_use=False))
        self._sidebar.search_ended.connect(lambda: header.set_in_use(is_in_use=True))
        return header

    def _on_level(self, level: FolderLevel) -> None:
        self._sidebar.view.set_level(level)
        if level.place or "_header" in vars(self):
            self._header.show_level(level)
        self._path, self._is_archive = level.path, level.is_archive
        self._known = {folder.id: folder for folder in (*level.path, *level.folders)}
        self._find_active()

    def _find_active(self) -> None:
        """Find the folders of active conversations, which show a badge."""
        if active := self._sidebar.view.rows.active_ids:
            self._library.listing.find_folders(active)

    def _open_place(self, place: PlaceRow) -> None:
        if place.kind == "archive":
            self._library.listing.open_archive()
        else:
            self._library.listing.open_folder(place.id)

    def _drop(self, conversations: Sequence[str], folders: Sequence[str], target: str | None) -> None:
        if conversations:
            self._organiser.move(conversations, target)
            self._sidebar.view.marks.clear()
        for folder in folders:
            self._organiser.move_folder(folder, target)

    def _on_folder_action(self, action: FolderAction, folder_id: str) -> None:
        if not folder_id:
            self.create_folder()
        elif (folder := self._known.get(folder_id)) is not None:
            self._act_on_folder(action, folder)

    def _act_on_folder(self, action: FolderAction, folder: Folder) -> None:
        match action:
            case "create":
                self._edit(Folder("", "", parent=folder.id))
            case "edit":
                self._edit(folder)
            case "move":
                self._organiser.read_folders(folder)
            case "delete":
                self._ask_to_delete(folder)

    def _edit(self, folder: Folder) -> None:
        """Open the dialog of a folder; one without an id is to be made."""
        dialog = FolderDialog(self._themes, folder, self._window)
        dialog.chosen.connect(self._organiser.change_folder if folder.id else self._organiser.create_folder)
        _open(dialog)

    def _create_for(self, ids: Sequence[str], name: str) -> None:
        self._organiser.create_folder(Folder("", name), ids)

    def _ask_to_delete(self, folder: Folder) -> None:
        question = self.tr("Delete the folder “{0}”?").format(folder.name)
        if folder.instructions:
            words = self.tr("Its conversations and folders move up one level. Its instructions are deleted.")
        else:
            words = self.tr("Its conversations and folders move up one level. Nothing else is deleted.")
        box = QuestionBox(self._themes, self.tr("Delete folder"), question, words, self._window)
        box.add_answer(self.tr("Cancel"), "")
        box.add_answer(self.tr("Delete folder"), "delete", "danger")
        box.accepted.connect(partial(self._organiser.delete_folder, folder.id))
        box.open()

    def _pick_folder(self, folders: Sequence[Folder], moved: Folder | Sequence[str]) -> None:
        if isinstance(moved, Folder):
            picker = FolderPicker(self._themes, folders, self._window, moved.id)
            picker.chosen.connect(partial(self._organiser.move_folder, moved.id))
        else:
            picker = FolderPicker(self._themes, folders, self._window)
            picker.chosen.connect(partial(self._organiser.move, moved))
            picker.new_wanted.connect(partial(self._create_for, moved))
        _open(picker)

    def _pick_tags(self, tags: Sequence[str], placements: Sequence[Placement]) -> None:
        dialog = TagDialog(self._themes, tags, [place.tags for place in placements], self._window)
        dialog.chosen.connect(partial(self._organiser.tag, [place.conversation_id for place in placements]))
        _open(dialog)


def _open(dialog: QDialog) -> None:
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    dialog.open()
