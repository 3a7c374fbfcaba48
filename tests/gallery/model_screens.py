"""Models: what the picker says of them, how hard they reason, what they cost, and what they take of pictures."""

import asyncio
from datetime import date

from pydantic import SecretStr
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLineEdit, QTableView

from desktop_agent.types.blocks import Text
from desktop_agent.types.errors import AuthenticationFailed
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.provider_events import Usage
from desktop_agent.types.providers import (
    CLOUD_PROVIDERS,
    LOCAL_SERVERS,
    Capabilities,
    ConversationParameters,
    ImageLimits,
    ModelInfo,
    Price,
    ReasoningEffort,
)
from tests.gallery.conversation_screens import said
from tests.gallery.desk import LARGE, MODELS, STUDIO, Desk, until
from tests.gallery.paintings import painting
from tests.gallery.screens import placed, scene
from ui.bridge.model_servers import ModelGroup
from ui.settings.conversation_settings import ConversationSettingsDialog

OPENROUTER = next(candidate for candidate in CLOUD_PROVIDERS if candidate.id == "openrouter")
MANY = (
    *MODELS,
    ModelInfo(
        "aurora-medium-with-a-very-long-name-2026-03-14-preview",
        "Aurora Medium with a very long name (preview of the fourteenth of March)",
        LARGE,
        Price(input=0.075, output=1.25),
        date(2031, 11, 30),
    ),
    ModelInfo(
        "aurora-old",
        "Aurora Old",
        Capabilities(images=True, context_window=1_048_576),
        Price(input=15, output=75),
        date(2026, 1, 5),
    ),
)


@scene("models-all-facts")
async def all_facts(desk: Desk) -> None:
    desk.begin()
    await asyncio.sleep(0.2)
    groups = [
        ModelGroup(STUDIO, MANY),
        ModelGroup(CLOUD_PROVIDERS[0], (), AuthenticationFailed("Incorrect API key provided: sk-…4f2a.").sentence),
        ModelGroup(LOCAL_SERVERS[0], (ModelInfo("llama:8b"),)),
    ]
    desk.servers.models_changed.emit(groups)
    desk.window.page.models.picker.open_list()


@scene("reasoning-menu")
async def reasoning_menu(desk: Desk) -> None:
    desk.begin()
    switch = desk.window.page.models.reasoning
    await until(lambda: any(choice.hint for choice in switch.choices))
    desk.library.current.change(reasoning=ReasoningEffort(level="max"))
    await asyncio.sleep(0.3)
    switch.open_menu()


@scene("reasoning-fell-back")
async def reasoning_fell_back(desk: Desk) -> None:
    desk.begin()
    await until(lambda: desk.window.page.models.reasoning.choices)
    desk.library.current.change(reasoning=ReasoningEffort(level="max"))
    capabilities = Capabilities(reasoning_modes=frozenset({"effort"}), efforts=("low", "high"))
    desk.play(models=(ModelInfo("aurora-tiny", "Aurora Tiny", capabilities),))
    desk.servers.refresh_models()
    await until(lambda: desk.servers.capabilities(STUDIO.id, "aurora-tiny") == capabilities)
    desk.window.page.models.picker.model_chosen.emit(STUDIO.id, "aurora-tiny")


def costing(*usages: Usage) -> list[Message]:
    return [
        message
        for number, usage in enumerate(usages)
        for message in (
            Message.user(f"Question {number + 1}"),
            Message(role=Role.ASSISTANT, blocks=(Text(text="An answer."),), usage=usage, model="aurora-large"),
        )
    ]


WARM = Usage(
    input_tokens=48_000,
    output_tokens=2_400,
    reasoning_tokens=1_100,
    cache_read_tokens=39_840,
    cache_write_tokens=6_000,
    total_tokens=50_400,
    cost=0.21,
)


@scene("usage-of-a-conversation")
async def usage(desk: Desk) -> None:
    await desk.show_stored(*costing(WARM, WARM), title="Refactor the import job")
    await asyncio.sleep(0.3)
    desk.window.page.usage_meter.click()


@scene("usage-narrow", 560, 760)
async def usage_narrow(desk: Desk) -> None:
    unpriced = WARM.model_copy(update={"cost": None})
    await desk.show_stored(*costing(WARM, unpriced), title="Refactor the import job that was fast last year")


@scene("composer-picture-remarks")
async def picture_remarks(desk: Desk) -> None:
    provider = desk.play()
    provider.picture_limits = lambda _model: ImageLimits(max_bytes=400_000, downscale_edge=1568)
    await desk.show_stored(Message.user("Hello"), said("Hello. What shall we do today?"), title="A short word")
    await until(lambda: desk.engine.connections.known_model(STUDIO.id, "aurora-large"))
    await asyncio.sleep(0.3)
    composer = desk.window.page.composer
    files = [desk.folder / "harbour at dusk.png", desk.folder / "dunes.png"]
    for width, file in zip((1800, 900), files, strict=True):
        file.write_bytes(painting(width, 700, 3))
    composer.attach_files(files)
    await until(lambda: len(composer.draft()[1]) == len(files))


@scene("settings-prices", height=1000)
async def prices(desk: Desk) -> None:
    desk.play(models=MANY)
    desk.begin()
    await until(lambda: len(desk.engine.prices.models()) == len(MANY))
    await desk.engine.prices.change("stranger", "aurora-small", Price(input=0.25, output=2))
    desk.play(models=MANY)
    await desk.engine.connections.models(STUDIO.id, refresh=True)
    dialog = desk.settings.show()
    dialog.resize(900, 820)
    dialog.show_page("models")
    await asyncio.sleep(0.4)
    table = dialog.findChild(QTableView)
    table.setFocus()
    table.setCurrentIndex(table.model().index(1, 3))


@scene("settings-edit-server", height=1000)
async def edit_server(desk: Desk) -> None:
    desk.begin()
    preferences = desk.engine.preferences
    endpoints = (STUDIO, OPENROUTER)
    providers = preferences.providers.model_copy(update={"endpoints": endpoints})
    await desk.engine.change_preferences(preferences.model_copy(update={"providers": providers}))
    desk.engine.secrets.remember_for_session(OPENROUTER.id, SecretStr("never shown"))
    dialog = desk.settings.show("providers")
    dialog.resize(860, 760)
    await asyncio.sleep(0.3)
    card = dialog.providers._cards[OPENROUTER.id]
    card._open_editor()
    card._editor.form.rows["base_url"].control.widget.setText("https://gateway.example/api/v1")
    card._editor.form.rows["mirrors"].control.widget.setPlainText("https://gateway-2.example/api/v1")


@scene("settings-remove-server", height=900)
async def remove_server(desk: Desk) -> None:
    await edit_server(desk)
    card = desk.settings._dialog.providers._cards[OPENROUTER.id]
    card._close_editor()
    card._removal.button.click()


@scene("settings-key-was-dropped", height=900)
async def key_was_dropped(desk: Desk) -> None:
    await edit_server(desk)
    desk.settings._dialog.providers._cards[OPENROUTER.id]._editor.save()
    await asyncio.sleep(0.3)


@scene("welcome-any-address", height=1300, connected=False, listed=False)
async def any_address(desk: Desk) -> None:
    desk.window.show_welcome()
    await asyncio.sleep(0.5)
    row = desk.window._welcome._custom
    row._address.setText("https://gateway.example/api/v1")
    row._dialect.setCurrentIndex(2)
    row._open_mirrors()
    row._mirrors.show_addresses(("https://gateway-2.example/api/v1",))
    scroll = desk.window._welcome.verticalScrollBar()
    await asyncio.sleep(0.1)
    scroll.setValue(scroll.maximum())


PARAMETERS = ConversationParameters(
    temperature=0.2, max_tokens=4096, system_prompt="Answer as a copy editor: short, plain, no exclamation marks."
)


@scene("conversation-settings")
async def conversation_settings(desk: Desk) -> None:
    await desk.show_stored(Message.user("Hello"), said("Hello. What shall we do today?"), title="A short word")
    desk.library.current.change(parameters=PARAMETERS)
    await asyncio.sleep(0.3)
    desk.window.page.models.edit_parameters()
    dialog = desk.window.findChild(ConversationSettingsDialog)
    await placed(dialog)
    dialog.findChildren(QLineEdit)[1].setFocus()
    QTest.keyClicks(dialog.findChildren(QLineEdit)[1], "1.2")


@scene("conversation-settings-folder")
async def conversation_settings_folder(desk: Desk) -> None:
    await desk.show_stored(Message.user("Hello"), said("Hello. What shall we do today?"), title="A short word")
    folders = desk.engine.store.folders
    work = await folders.create("Work", instructions="Be brief.")
    inner = await folders.create("Translations", parent=work.id, instructions="Write British English.")
    await desk.engine.store.placements.change([desk.library.current.id], folder=inner.id)
    desk.window.page.models.edit_parameters()
    dialog = desk.window.findChild(ConversationSettingsDialog)
    await placed(dialog)
    await asyncio.sleep(0.3)


@scene("conversation-settings-in-force")
async def conversation_settings_in_force(desk: Desk) -> None:
    await desk.show_stored(Message.user("Hello"), said("Hello. What shall we do today?"), title="A short word")
    desk.library.current.change(parameters=PARAMETERS)


@scene("composer-too-long")
async def too_long(desk: Desk) -> None:
    await desk.show_stored(*costing(WARM), title="Read the import job")
    await until(lambda: desk.servers.capabilities(STUDIO.id, "aurora-small").context_window)
    desk.window.page.models.picker.model_chosen.emit(STUDIO.id, "aurora-small")
    await asyncio.sleep(0.3)
    desk.window.page.composer.set_draft("Now the same for the export, please.")


@scene("composer-too-long-narrow", 620, 600)
async def too_long_narrow(desk: Desk) -> None:
    await too_long(desk)


@scene("composer-problem")
async def composer_problem(desk: Desk) -> None:
    await desk.show_stored(Message.user("Hello"), said("Hello. What shall we do today?"), title="A short word")
    await asyncio.sleep(0.3)
    broken = desk.folder / "harbour at dusk.png"
    broken.write_bytes(b"\x89PNG\r\n\x1a\nbroken")
    desk.window.page.composer.attach_files([broken])
    await asyncio.sleep(0.3)


@scene("welcome-typed-model", height=1300, connected=False, listed=False)
async def typed_model(desk: Desk) -> None:
    desk.window.show_welcome()
    await asyncio.sleep(0.5)
    row = desk.window._welcome._custom
    row._address.setText("http://127.0.0.1:9000/v1")
    row._models.setText("my-model")
    scroll = desk.window._welcome.verticalScrollBar()
    await asyncio.sleep(0.1)
    scroll.setValue(scroll.maximum())
