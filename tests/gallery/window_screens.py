"""The window round the conversation: welcome, list, banners, composer, settings, closing."""

import asyncio
from datetime import date
from pathlib import Path

from pydantic import SecretStr
from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QListView

from desktop_agent.engine.connections import FoundServer
from desktop_agent.engine.exchange.conversation_exchange import ExportResult, FoundProgram, ImportResult
from desktop_agent.storage.file_lock import FileLock, Holder, host_name, lock_path
from desktop_agent.storage.write_behind import UnsavedConversation
from desktop_agent.types.blocks import ToolUse
from desktop_agent.types.errors import AuthenticationFailed, DiskFull, KeyringMissing, RemedyAction, Sentence
from desktop_agent.types.messages import Message
from desktop_agent.types.permissions import CommandPattern, HostPattern, Rule, RuleEffect, RuleScope
from desktop_agent.types.provider_events import ContentDelta
from desktop_agent.types.providers import (
    CLOUD_PROVIDERS,
    LOCAL_SERVERS,
    FoundModels,
    LocalModel,
    LocalPhase,
    LocalState,
)
from desktop_agent.types.tool_calls import AllowOnce, Deny
from tests.fakes.scripted_provider import Turn, Wait
from tests.gallery import answers
from tests.gallery.conversation_screens import no_listener, said
from tests.gallery.desk import MODELS, STUDIO, TITLES, Desk, until
from tests.gallery.paintings import painting
from tests.gallery.screens import placed, scene
from ui.bridge.desktop.updates import Release, UpdateSource
from ui.bridge.drafts import ComposerDraft, Draft, UnsavedContent
from ui.bridge.model_servers import ModelGroup
from ui.settings.trash_dialog import TrashDialog
from ui.shell.desktop.update_notice import UpdateNotice
from ui.shell.storage import CloseConfirmation


@scene("welcome-no-server", connected=False, listed=False)
async def welcome_no_server(desk: Desk) -> None:
    desk.window.show_welcome()
    await asyncio.sleep(0.5)


@scene("call-edited")
async def call_edited(desk: Desk) -> None:
    requested = {"path": "notes/hello.txt", "content": "Hello from the model!"}
    desk.play(
        Turn(ToolUse(id="1", name="write_file", input=requested)),
        Turn(ContentDelta("It was written as you changed it.")),
    )
    session = await desk.converse("Write a greeting into a file.", workspace=True)
    await until(lambda: session.approvals.open_approvals)
    edited = {**requested, "content": "Hello from me!"}
    session.approvals.answer(session.approvals.open_approvals[0].approval_id, AllowOnce(edited_input=edited))
    await session.wait_idle()


async def put_into_trash(desk: Desk, count: int) -> TrashDialog:
    desk.begin()
    records = await desk.engine.store.list_conversations()
    for record in records[-count:] if count else ():
        await desk.engine.delete_conversation(record.id)
    desk.library.refresh()
    desk.window.trash.show()
    trash = desk.window.findChild(TrashDialog)
    await placed(trash)
    await asyncio.sleep(0.3)
    return trash


@scene("trash")
async def trash(desk: Desk) -> None:
    await put_into_trash(desk, 5)


@scene("trash-asked")
async def trash_asked(desk: Desk) -> None:
    trash = await put_into_trash(desk, 5)
    trash._confirm_purge_selected()


@scene("trash-empty")
async def trash_empty(desk: Desk) -> None:
    await put_into_trash(desk, 0)


FILES = (
    LocalModel(
        id="Qwen3-8B-Q4_K_M",
        path="/1",
        size=5_027_783_488,
        source="LM Studio",
        architecture="qwen3",
        context_length=40960,
        quantisation="Q4_K_M",
    ),
    LocalModel(
        id="llama3.2:3b",
        path="/2",
        size=2_019_377_376,
        source="Ollama",
        architecture="llama",
        context_length=131072,
        quantisation="Q4_K_M",
    ),
    LocalModel(
        id="gemma-3-27b-it-UD-Q5_K_XL-with-a-rather-long-name",
        path="/3",
        size=20_808_112_128,
        source="Hugging Face",
        architecture="gemma3",
        context_length=131072,
        quantisation="Q5_K_M",
    ),
)


async def model_files(desk: Desk, state: LocalState, *, program: str | None = "/usr/bin/llama-server"):
    dialog = desk.settings.show("local")
    await asyncio.sleep(0.4)
    dialog.local.show_found(FoundModels(FILES if program else (), program))
    dialog.local.show_state(state)
    await asyncio.sleep(0.3)
    return dialog


@scene("model-files")
async def model_files_running(desk: Desk) -> None:
    await model_files(desk, LocalState(LocalPhase.READY, FILES[1], 2_310_000_000))


@scene("model-files-loading")
async def model_files_loading(desk: Desk) -> None:
    await model_files(desk, LocalState(LocalPhase.LOADING, FILES[0], 1_310_000_000))


@scene("model-files-no-server")
async def model_files_no_server(desk: Desk) -> None:
    await model_files(desk, LocalState(), program=None)


@scene("model-files-narrow")
async def model_files_narrow(desk: Desk) -> None:
    dialog = await model_files(desk, LocalState(LocalPhase.READY, FILES[1], 2_310_000_000))
    dialog.resize(360, 740)
    await asyncio.sleep(0.3)


@scene("settings-storage")
async def settings_storage(desk: Desk) -> None:
    desk.settings.show().show_page("storage")
    page = desk.settings.show().storage
    for count in (1, 2):
        page._backup.click()
        await until(lambda count=count: page._backups.count() == count)
    await asyncio.sleep(0.3)


@scene("found-histories")
async def found_histories(desk: Desk) -> None:
    programs = (("claude-code", "Claude Code", 213), ("codex", "Codex", 48), ("lm-studio", "LM Studio", 7))
    desk.exchange._offer_found([FoundProgram(*program) for program in programs])
    await asyncio.sleep(0.3)


@scene("exported")
async def exported(desk: Desk) -> None:
    result = ImportResult(added=["1", "2"], present=3)
    result.report.add(Sentence("A hidden message of the service, such as its instructions, was left out."), 4)
    desk.exchange._show_imported(result)
    desk.exchange._show_exported(ExportResult((Path("/home/ada/Downloads/Plan a week in Lisbon.html"),)))
    await asyncio.sleep(0.3)


@scene("settings-storage-empty")
async def settings_storage_empty(desk: Desk) -> None:
    desk.settings.show().show_page("storage")
    await asyncio.sleep(0.5)


@scene("settings-storage-narrow")
async def settings_storage_narrow(desk: Desk) -> None:
    await settings_storage(desk)
    desk.settings.show().resize(420, 740)
    await asyncio.sleep(0.3)


@scene("welcome-looking", connected=False, listed=False)
async def welcome_looking(desk: Desk) -> None:
    desk.window.show_welcome()
    await asyncio.sleep(0)
    await desk.tasks.close()


@scene("welcome-servers", connected=False, listed=False)
async def welcome_servers(desk: Desk) -> None:
    desk.window.show_welcome()
    welcome = desk.window._welcome
    # What is really found here must not come after what is shown.
    await until(welcome._searching.isHidden)
    servers = [FoundServer(server, None) for server in LOCAL_SERVERS]
    servers[0] = FoundServer(LOCAL_SERVERS[0], MODELS)
    servers[2] = FoundServer(LOCAL_SERVERS[2], MODELS[:1])
    desk.servers.local_servers_changed.emit(servers)
    refused = no_listener("127.0.0.1:8080")
    wrong_key = AuthenticationFailed("Incorrect API key provided: sk-…4f2a.")
    for id_, problem in (("llamacpp", refused), (CLOUD_PROVIDERS[0].id, wrong_key)):
        desk.servers.state_changed.emit(id_, "error", problem.whole)
    desk.servers.state_changed.emit(
        CLOUD_PROVIDERS[1].id, "busy", Sentence("Asking {title} for its models…", {"title": "OpenAI"})
    )
    welcome._cloud_rows[CLOUD_PROVIDERS[2].id]._field.setText("key")
    desk.servers.state_changed.emit(
        CLOUD_PROVIDERS[2].id, "no_keyring", KeyringMissing("This computer offers no safe keyring for API keys.").whole
    )


@scene("welcome-full-disk", connected=False, listed=False)
async def welcome_full_disk(desk: Desk) -> None:
    await welcome_servers(desk)
    full = DiskFull(Sentence("There is no room left on the disk of “{path}”.", {"path": "/home/ada/.local/share"}))
    desk.window.banners.show_error(full)


@scene("welcome-narrow", 560, 760, connected=False, listed=False)
async def welcome_narrow(desk: Desk) -> None:
    await welcome_servers(desk)


@scene("welcome-any-address-narrow", 360, 760, connected=False, listed=False)
async def welcome_any_address_narrow(desk: Desk) -> None:
    desk.window.show_welcome()
    bar = desk.window._welcome.verticalScrollBar()
    # Once with the page, and once with the servers that were looked for.
    for _ in range(2):
        await asyncio.sleep(0.5)
        bar.setValue(bar.maximum())


@scene("banners")
async def banners(desk: Desk) -> None:
    await desk.show_stored(Message.user("Hello"), said("Hello. What shall we do today?"), title="A short word")
    area = desk.window.page.banners
    area.add_remedy_button(
        RemedyAction.OPEN_SETTINGS, QCoreApplication.translate("ConversationPage", "Open settings"), lambda: None
    )
    area.show_error(AuthenticationFailed("Incorrect API key provided: sk-…4f2a.", detail="HTTP 401"))
    repaired = (
        "The saved conversations were damaged. The damaged file was kept as “{name}”; what could be read was carried "
        "over (conversations: {conversations}, messages: {messages}). If something is missing, a backup may have it: "
        "Settings → Storage."
    )
    counts = {"name": "conversations.sqlite3.damaged-20261104-101530", "conversations": "211", "messages": "4,096"}
    area.show_notice(Sentence(repaired, counts))
    desk.library.deleted.emit("none", "Names for a sailing boat", False)
    await until(lambda: len(area.keys) == 3)


@scene("banners-narrow", 560, 760)
async def banners_narrow(desk: Desk) -> None:
    await banners(desk)


@scene("followed")
async def followed(desk: Desk) -> None:
    """Show a conversation in which another process works, while a call of a dead process waits in a second one."""
    record = await desk.engine.store.create_conversation(title="Count the lighthouses", endpoint_id=STUDIO.id)
    said_so_far = (
        Message.user("How many lighthouses has Portugal?"),
        Message.assistant("I look at the lists. So far 41."),
    )
    await desk.engine.store.commit(record.id, *said_so_far)
    lock = FileLock(lock_path(desk.engine.folder, f"conversation-{record.id}"))
    lock.acquire(Holder("ask", 4711, host_name(), 1_790_000_000))
    desk.held.append(lock)
    desk.library.open(record.id)
    await until(lambda: desk.library.current is not None and desk.library.current.held_by is not None)
    desk.library.refresh()
    records = await desk.engine.store.list_conversations()
    desk.library.waiting.interrupted_changed.emit(records[2].id, True)
    desk.window.page.composer.set_draft("And which of them can be visited?")
    desk.servers.refresh_models()
    await asyncio.sleep(0.5)


@scene("composer-pictures")
async def composer_pictures(desk: Desk) -> None:
    desk.begin()
    await asyncio.sleep(0.3)  # the draft, which is empty, has been put in by then
    composer = desk.window.page.composer
    files = [desk.folder / "harbour at dusk, seen from the old lighthouse.png", desk.folder / "dunes.png"]
    for seed, file in enumerate(files, 2):
        file.write_bytes(painting(1600, 1000, seed))
    composer.attach_files(files)
    await until(lambda: len(composer.draft()[1]) == len(files))
    composer.editor.setPlainText("Which of the two has the warmer light?\nAnswer in one sentence.")


@scene("composer-long")
async def composer_long(desk: Desk) -> None:
    desk.begin()
    await asyncio.sleep(0.2)
    desk.window.page.composer.editor.setPlainText(
        "\n".join(f"Line {number} of a long message." for number in range(1, 60))
    )


@scene("model-picker")
async def model_picker(desk: Desk) -> None:
    desk.begin()
    await asyncio.sleep(0.2)
    groups = [
        ModelGroup(STUDIO, MODELS),
        ModelGroup(CLOUD_PROVIDERS[0], (), AuthenticationFailed("Incorrect API key provided: sk-…4f2a.").sentence),
        ModelGroup(LOCAL_SERVERS[0], MODELS[1:]),
    ]
    desk.servers.models_changed.emit(groups)
    desk.window.page.models.picker.open_list()


@scene("list-long")
async def list_long(desk: Desk) -> None:
    titles = [(f"{title} ({number})", days) for number in range(8) for title, days in TITLES]
    await desk.fill_list(titles)
    records = await desk.engine.store.list_conversations()
    await desk.show_stored(Message.user("Hello"), said("Hello. What shall we do today?"), title="A short word")
    desk.window.sidebar.set_badge(records[0].id, "working")
    desk.window.sidebar.set_badge(records[2].id, "attention")
    desk.window.sidebar.set_badge(records[5].id, "unread")
    rows = desk.window.sidebar.view
    rows.entered.emit(rows.model().index(rows.model().row_of(records[2].id)))


@scene("list-menu")
async def list_menu(desk: Desk) -> None:
    desk.begin()
    await asyncio.sleep(0.3)
    rows = desk.window.sidebar.view
    rows.entered.emit(rows.model().index(1))
    rows._button.click()


async def open_palette(desk: Desk, typed: str = "") -> None:
    await desk.show_stored(Message.user("Hello"), said("Hello. What shall we do today?"), title="A short word")
    desk.servers.models_changed.emit([ModelGroup(STUDIO, MODELS), ModelGroup(LOCAL_SERVERS[0], MODELS[1:])])
    await asyncio.sleep(0.2)
    desk.palette.open()
    desk.palette._widget._panel.field.setText(typed)


@scene("menu-bar")
async def menu_bar(desk: Desk) -> None:
    await desk.show_stored(Message.user("Hello"), said("Hello. What shall we do today?"), title="A short word")
    appearance = desk.engine.preferences.appearance.model_copy(update={"menu_bar": True})
    await desk.engine.change_preferences(desk.engine.preferences.model_copy(update={"appearance": appearance}))
    bar = desk.window.menuBar()
    bar.setActiveAction(bar.actions()[3])


@scene("shortcuts")
async def shortcuts(desk: Desk) -> None:
    desk.begin()
    dialog = desk.settings.show("shortcuts")
    dialog.shortcuts._list.setFocus()


@scene("licences")
async def licences(desk: Desk) -> None:
    desk.begin()
    desk.help.show("licences")
    lists = desk.window.findChildren(QListView)
    name = QCoreApplication.translate("LicencesPage", "Components")
    components = next(view for view in lists if view.accessibleName() == name)
    await until(lambda: components.model().rowCount() > 0)


@scene("shortcuts-taken")
async def shortcuts_taken(desk: Desk) -> None:
    desk.begin()
    page = desk.settings.show("shortcuts").shortcuts
    page._search.setText("conversation")
    page._set_keys("Ctrl+K")


@scene("palette")
async def palette(desk: Desk) -> None:
    await open_palette(desk)


@scene("palette-typed")
async def palette_typed(desk: Desk) -> None:
    await open_palette(desk, "la")


@scene("palette-found")
async def palette_found(desk: Desk) -> None:
    for title in ("Lisbon in May", "Trams"):
        await desk.show_stored(
            Message.user("Which line goes to Belém?"), said("Line 15 goes along the river to Belém."), title=title
        )
    await desk.engine.store.search.index_all()
    await open_palette(desk, "line")
    await until(lambda: desk.palette._messages.rows)


@scene("palette-nothing")
async def palette_nothing(desk: Desk) -> None:
    await open_palette(desk, "Esperanto")


@scene("palette-narrow", 560, 760)
async def palette_narrow(desk: Desk) -> None:
    await open_palette(desk, "zz")


@scene("demo-empty", connected=False, listed=False)
async def demo_empty(desk: Desk) -> None:
    desk.library.new_demo()
    await until(lambda: desk.library.current is not None)


@scene("help-guide")
async def help_guide(desk: Desk) -> None:
    desk.begin()
    desk.help.show("guide")


@scene("help-shortcuts")
async def help_shortcuts(desk: Desk) -> None:
    desk.begin()
    desk.help.show("shortcuts")


@scene("help-about")
async def help_about(desk: Desk) -> None:
    desk.begin()
    QCoreApplication.setApplicationVersion("0.1.0")
    desk.help.show("about")


async def show_update(desk: Desk, *, found: bool = True) -> None:
    QCoreApplication.setApplicationVersion("0.1.0")
    desk.updates.source = UpdateSource("https://updates.example.org/newest.json")
    desk.help.show("about")
    if found:
        release = Release(version="0.2.0", date=date(2026, 12, 1), page="https://example.org/releases/0.2.0")
        await desk.updates._remember(release=release)
        desk.updates.changed.emit()


@scene("help-about-update")
async def help_about_update(desk: Desk) -> None:
    desk.begin()
    await show_update(desk)


@scene("help-about-failed")
async def help_about_failed(desk: Desk) -> None:
    desk.begin()
    desk.updates.problem = Sentence(
        "The check failed: {why}",
        {"why": Sentence("“{host}” could not be reached.", {"host": "updates.example.org"})},
    )
    await show_update(desk, found=False)


@scene("update-notice")
async def update_notice(desk: Desk) -> None:
    desk.begin()
    UpdateNotice(desk.updates, desk.window.banners, desk.window)
    desk.updates.found.emit(Release(version="0.2.0", date=date(2026, 12, 1), page="https://example.org/"))


@scene("closing")
async def closing(desk: Desk) -> None:
    arrived = asyncio.Event()
    desk.play(Turn(ContentDelta(answers.HALF), Wait(asyncio.Event(), arrived)))
    await desk.converse("Why is the sky blue?")
    await arrived.wait()
    desk.window.close()


@scene("closing-unsaved")
async def closing_unsaved(desk: Desk) -> None:
    desk.play(Turn(ContentDelta(answers.HALF)))
    session = await desk.converse("Why is the sky blue?")
    await session.wait_idle()
    full = DiskFull(Sentence("There is no room left on the disk of “{path}”.", {"path": "/home/ada/.local/share"}))
    unsaved = UnsavedContent(
        (UnsavedConversation(session.record, session.history, (), full),),
        ComposerDraft(Draft("and why is it red in the evening?")),
    )

    async def collect_unsaved() -> UnsavedContent:
        return unsaved

    closing = CloseConfirmation(desk.window.unstored, collect_unsaved, lambda: True)

    async def ask() -> None:
        await closing.confirm()

    desk.tasks.start(ask())
    await asyncio.sleep(0.3)


def settings_page(name: str) -> None:
    @scene(f"settings-{name}")
    async def page(desk: Desk) -> None:
        await open_settings(desk, name)


async def decide_something(desk: Desk) -> None:
    """Add rules, and have calls allowed and denied."""
    status, push = (
        ToolUse(id=f"call-{number}", name="run_command", input={"command": line})
        for number, line in enumerate(("git status --short", "git push origin main"))
    )
    listing = ToolUse(id="call-3", name="list_files", input={"path": "."})
    desk.play(Turn(listing, status, push), Turn())
    session = await desk.converse("What is changed?", workspace=True, title="Refactor the import job")
    in_workspace = {"workspace": session.record.workspace, "scope": RuleScope.WORKSPACE}
    words = CommandPattern(words=("git", "status"))
    session.permission_policy.add(Rule(effect=RuleEffect.ALLOW, tool="run_command", pattern=words, **in_workspace))
    host = HostPattern(host="*.example.org")
    session.permission_policy.add(Rule(effect=RuleEffect.DENY, tool="fetch_page", pattern=host, scope=RuleScope.ALWAYS))
    await until(lambda: len(session.approvals.open_approvals) == 1)
    session.approvals.answer(session.approvals.open_approvals[0].approval_id, Deny(message="Not today."))
    await session.wait_idle()


async def open_settings(desk: Desk, page: str) -> None:
    if page in {"rules", "decisions"}:
        await decide_something(desk)
    else:
        desk.begin()
    preferences = desk.engine.preferences
    endpoints = (STUDIO, CLOUD_PROVIDERS[0], LOCAL_SERVERS[0])
    providers = preferences.providers.model_copy(update={"endpoints": endpoints})
    await desk.engine.change_preferences(preferences.model_copy(update={"providers": providers}))
    desk.engine.secrets.remember_for_session(CLOUD_PROVIDERS[0].id, SecretStr("never shown"))
    desk.settings.show(page)
    await asyncio.sleep(0.4)
    if page == "providers":
        desk.servers.state_changed.emit("ollama", "error", no_listener("127.0.0.1:11434").whole)
        many = Sentence("It answers and has {count} models.", {"count": "42"})
        desk.servers.state_changed.emit("openai", "ok", many)


for name in ("appearance", "chat", "models", "network", "rules", "decisions", "providers"):
    settings_page(name)
