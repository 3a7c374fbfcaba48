"""The welcome page: every way to a first answer."""

from collections.abc import Sequence
from functools import partial
from itertools import chain, count
from urllib.parse import urlsplit

from pydantic import SecretStr
from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QKeySequence, QResizeEvent, QShortcut, QShowEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QScrollArea, QVBoxLayout, QWidget

from desktop_agent.types.errors import Sentence
from desktop_agent.types.providers import CLOUD_PROVIDERS, LOCAL_SERVERS, Endpoint
from ui.bridge.library import ConversationLibrary
from ui.bridge.model_servers import FoundServer, ModelServers
from ui.style.boxes import hbox, vbox
from ui.style.controls import IconButton, button, label, set_style_property
from ui.style.layouts import FlowRows, FocusFollower
from ui.style.removal import remove_widget
from ui.style.server_fields import Status, dialect_names
from ui.style.theme import READING_WIDTH, SPACE_L, SPACE_M, SPACE_S, SPACE_XL, SPACE_XS, ThemeSource, pixmap
from ui.style.widgets import TextWithButtons
from ui.welcome.server_rows import CloudRow, CustomRow, LocalRow, ServerRow, TypedServer

NARROW_WIDTH = 520
PRESETS = {endpoint.id: endpoint for endpoint in (*LOCAL_SERVERS, *CLOUD_PROVIDERS)}


class WelcomePage(QScrollArea):
    """Connects the chosen server, and uses it in the conversation."""

    model_file_requested = Signal()
    back_requested = Signal()
    """Back to the conversation that was open."""
    connected = Signal(object)
    """A Sentence: a server is connected, and the conversation may go on with its own."""

    def __init__(self, themes: ThemeSource, servers: ModelServers, library: ConversationLibrary) -> None:
        super().__init__()
        self._themes = themes
        self._servers = servers
        self._library = library
        self._pending: set[str] = set()
        """Ids of the servers that are used as soon as they are connected."""
        self._local_rows: dict[str, LocalRow] = {}
        self._cloud_rows: dict[str, CloudRow] = {}
        self._custom = CustomRow(themes)
        self._locals = vbox(spacing=0)
        self._page = hbox(spacing=0, start_stretch=True, end_stretch=True)
        self._searching = label(self.tr("Looking for model servers on this computer…"), "muted", wrap=True)
        self._title = label(self.tr("Welcome to Desktop Agent"), "title", wrap=True)
        self._words = label(self.tr("Connect a model to begin. You can add others at any time."), "muted", wrap=True)
        self._back = button(self.tr("Back"), self.back_requested.emit)
        self._demo = button(self.tr("Try the demo"), library.new_demo, "primary")
        self._demo_card = QFrame()
        self._build()
        self._escape = QShortcut(QKeySequence(Qt.Key.Key_Escape), self)
        self._escape.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        self._escape.activated.connect(self.back_requested)
        self.set_back_button(is_there=False)
        themes.changed.connect(self._align_titles_later)
        self._custom.submitted.connect(self._connect_custom)
        servers.local_servers_changed.connect(self.set_local_servers)
        servers.state_changed.connect(self._on_state)
        servers.connected.connect(self._on_connected)

    def set_back_button(self, *, is_there: bool) -> None:
        """Show a way back if a conversation is open behind this page; the demo is offered only if none is."""
        self._back.setVisible(is_there)
        self._escape.setEnabled(is_there)
        self._demo_card.setVisible(not is_there)
        if is_there:
            self._title.setText(self.tr("Connect a model"))
            self._words.setText(self.tr("Your conversations stay as they are."))

    def begin_anew(self) -> None:
        """Show the top of the page, without what became of earlier connections."""
        self.verticalScrollBar().setValue(0)
        for row in (self._custom, *self._cloud_rows.values()):
            if row.state_line.state is not Status.BUSY:
                row.show_state(Status.IDLE, "")

    def set_local_servers(self, servers: Sequence[FoundServer]) -> None:
        """Show the servers on this computer."""
        self._searching.hide()
        for row in self._local_rows.values():
            remove_widget(self._locals, row)
        self._local_rows = {}
        # Running servers come first: they need one click. The page suggests one thing.
        suggested = next((server for server in servers if server.models), None)
        set_style_property(self._demo, "kind", "primary" if suggested is None else "")
        for server in sorted(servers, key=lambda server: server.models is None):
            count = None if server.models is None else len(server.models)
            row = LocalRow(self._themes, server.endpoint, count, is_suggested=server is suggested)
            row.set_narrow(narrow=self._is_narrow)
            row.use_pressed.connect(partial(self._connect_preset, server.endpoint.id))
            self._local_rows[server.endpoint.id] = row
            self._locals.addWidget(row)
        self._align_titles()

    def set_endpoint_state(self, endpoint_id: str, state: str, sentence: Sentence | str = "") -> None:
        """Show how connecting goes: idle, busy, ok, error or no_keyring. An unknown id is the typed address."""
        row: ServerRow | CustomRow | None = self._cloud_rows.get(endpoint_id) or self._local_rows.get(endpoint_id)
        (row or self._custom).show_state(Status(state), sentence)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        for row in (self._custom, *self._local_rows.values(), *self._cloud_rows.values()):
            row.set_narrow(narrow=self._is_narrow)
        margin = SPACE_M if self._is_narrow else SPACE_XL
        self._page.setContentsMargins(margin, margin, margin, margin)
        self._align_titles()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._align_titles()

    def _align_titles_later(self) -> None:
        # Labels adopt another text size only after this.
        QTimer.singleShot(0, self, self._align_titles)

    def _align_titles(self) -> None:
        """Give all titles of servers the width of the widest, so that what is beside them begins at one edge."""
        rows: list[ServerRow] = [*self._local_rows.values(), *self._cloud_rows.values()]
        widest = max(row.title_label.sizeHint().width() for row in rows)
        for row in rows:
            row.title_label.setMinimumWidth(widest)

    @property
    def _is_narrow(self) -> bool:
        return self.viewport().width() < self._themes.scaled(NARROW_WIDTH)

    def _refresh(self) -> None:
        self._searching.show()
        self._servers.find_local()

    def _build(self) -> None:
        self.setAccessibleName(self.tr("Welcome"))
        self.setProperty("kind", "page")
        self.setWidgetResizable(True)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        page = QWidget()
        page.setProperty("kind", "page")
        page.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        middle = QWidget()
        middle.setMaximumWidth(READING_WIDTH)
        vbox(
            self._head(),
            self._build_demo_card(),
            self._card(
                self.tr("On this computer"),
                vbox(self._searching, self._locals, self._file_row()),
                self._refresh_button(),
            ),
            self._card(self.tr("With an API key"), self._cloud_part()),
            self._card(self.tr("Any other server"), self._custom_part()),
            parent=middle,
            spacing=SPACE_L,
            end_stretch=True,
        )
        page.setLayout(self._page)
        self._page.insertWidget(1, middle, 100)
        self.setWidget(page)
        FocusFollower(self)

    def _head(self) -> QHBoxLayout:
        drawing = QLabel()
        drawing.setPixmap(pixmap("desktop-agent", "#000000", 56, 2))
        words = vbox(self._title, self._words, spacing=SPACE_XS)
        head = hbox(drawing, words, self._back, spacing=SPACE_L, margins=(0, 0, 0, SPACE_S), grow=words)
        head.setAlignment(self._back, Qt.AlignmentFlag.AlignTop)
        return head

    def _card(self, title: str, content: QVBoxLayout, corner: QWidget | None = None) -> QFrame:
        card = QFrame()
        card.setProperty("kind", "card")
        heading = label(title, "heading", wrap=True)
        head = hbox(heading, *([corner] if corner is not None else []), grow=heading)
        vbox(head, content, parent=card, spacing=SPACE_S, margins=(SPACE_L, SPACE_M, SPACE_L, SPACE_M))
        return card

    def _file_row(self) -> QWidget:
        run = button(self.tr("Run a model file…"), self.model_file_requested.emit, "edge-link")
        # Its card is below the fold.
        other = button(self.tr("Any other server…"), self._start_custom, "link")
        return FlowRows((run, other))

    def _start_custom(self) -> None:
        self.ensureWidgetVisible(self._custom, 0, SPACE_S)
        self._custom.start()

    def _refresh_button(self) -> QWidget:
        refresh = IconButton(self._themes, "refresh", self.tr("Look again"))
        refresh.clicked.connect(self._refresh)
        return refresh

    def _cloud_part(self) -> QVBoxLayout:
        words = self.tr("Keys go into the keyring of your system, never into a file.")
        part = vbox(label(words, "muted", wrap=True), spacing=0)
        part.addSpacing(SPACE_XS)
        for endpoint in CLOUD_PROVIDERS:
            row = CloudRow(self._themes, endpoint)
            row.submitted.connect(partial(self._connect_preset, endpoint.id))
            self._cloud_rows[endpoint.id] = row
            part.addWidget(row)
        return part

    def _custom_part(self) -> QVBoxLayout:
        words = self.tr("A server at any address, such as vLLM, LiteLLM or a gateway at work.")
        return vbox(label(words, "muted", wrap=True), self._custom, spacing=SPACE_S)

    def _build_demo_card(self) -> QFrame:
        """Build the demo's card. It comes first: people who only look round need not read about servers and keys."""
        words = self.tr(
            "Just looking? The offline demo shows what this program does. A script answers in it, no real model."
        )
        self._demo_card.setProperty("kind", "card")
        content = TextWithButtons(label(words, "muted", wrap=True), (self._demo,))
        hbox(content, parent=self._demo_card, margins=(SPACE_L, SPACE_S, SPACE_L, SPACE_S))
        return self._demo_card

    def cancel_pending(self) -> None:
        """Keep the page that is shown now when a pending connection is made."""
        self._pending.clear()

    def _connect_preset(self, endpoint_id: str, key: SecretStr | None = None, session_only: bool = False) -> None:  # noqa: FBT001, FBT002  a slot
        self._pending.add(endpoint_id)
        self._servers.connect_endpoint(PRESETS[endpoint_id], key, session_only=session_only)

    def _connect_custom(self, server: TypedServer, key: SecretStr | None, session_only: bool) -> None:  # noqa: FBT001  a slot
        id_ = self._servers.saved.id_for(server.address, server.mirrors, server.dialect)
        endpoint = Endpoint(
            id=id_,
            title=self._title_of(server, id_),
            dialect=server.dialect,
            base_url=server.address,
            mirrors=server.mirrors,
            models=server.models,
        )
        self._pending.add(id_)
        self._servers.connect_endpoint(endpoint, key, session_only=session_only)

    def _title_of(self, server: TypedServer, id_: str) -> str:
        """Return the title that it has; else its host, with its path, its dialect or a number if others have that."""
        if (old := self._servers.saved.find(id_)) is not None:
            return old.title
        parts = urlsplit(server.address)
        place = f"{parts.netloc}{parts.path}".removesuffix("/v1")
        plain, whole = parts.netloc, f"{place} ({dialect_names()[server.dialect]})"
        titles = {endpoint.title for endpoint in self._servers.endpoints}
        numbered = (f"{whole} {number}" for number in count(2))
        return next(title for title in chain((plain, place, whole), numbered) if title not in titles)

    def _on_state(self, endpoint_id: str, state: str, sentence: Sentence) -> None:
        if state in {"error", "no_keyring"}:
            self._pending.discard(endpoint_id)
        self.set_endpoint_state(endpoint_id, state, sentence)

    def _on_connected(self, endpoint_id: str, model: str) -> None:
        if endpoint_id not in self._pending:
            return
        self._pending.clear()
        current = self._library.current
        if current is None or (current.is_demo and not current.is_empty):
            self._library.new(endpoint_id=endpoint_id, model=model)
            return
        if current.is_empty:
            self._library.change(current.id, endpoint_id=endpoint_id, model=model)
        self.back_requested.emit()
        if current.is_empty:
            return
        titles = {endpoint.id: endpoint.title for endpoint in self._servers.endpoints}
        sentence = "“{server}” is connected. Its models are in the list below the message editor."
        self.connected.emit(Sentence(sentence, {"server": titles.get(endpoint_id, endpoint_id)}))
