"""Everything a person reads goes through translation: by reading the source, and by looking at every pane."""

import re
from datetime import UTC, date, datetime
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock
from xml.etree import ElementTree

import pytest
from PySide6.QtCore import QBuffer, QCoreApplication, QPoint, Qt, QTranslator
from PySide6.QtGui import QAction, QFontDatabase
from PySide6.QtSvg import QSvgGenerator
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QComboBox,
    QLabel,
    QLineEdit,
    QMenu,
    QPlainTextEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from desktop_agent.conversation.history import ConversationUsage
from desktop_agent.conversation.transcript import Transcript
from desktop_agent.types.blocks import (
    MEDIA_TYPES_WITHOUT_GIF,
    Citation,
    Image,
    Outcome,
    ServerStep,
    Text,
    ToolResult,
    ToolUse,
    Unknown,
    UrlSource,
)
from desktop_agent.types.engine_events import (
    ApprovalRequested,
    ErrorOccurred,
    LimitReached,
    RunEnd,
    RunFinished,
    ToolFinished,
    ToolStarted,
    TurnStarted,
)
from desktop_agent.types.errors import AuthenticationFailed, ConnectionFailed, RemedyAction, Sentence
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.preferences import LANGUAGE_NAMES, Preferences, ProviderPreferences
from desktop_agent.types.provider_events import (
    ContentDelta,
    TextClosed,
    ThinkingBlock,
    ThinkingDelta,
    ToolArgsDelta,
    Usage,
)
from desktop_agent.types.providers import CLOUD_PROVIDERS, LOCAL_SERVERS, Capabilities, ModelInfo, Price
from desktop_agent.types.search import ConversationHits, SearchChoices, SearchHit, SearchPlace, SearchResults
from desktop_agent.types.tool_calls import DiffPreview, Effect, ToolClass
from tests.fakes.transcript_feed import Feed, NoPictures
from tests.ui.settings.sources import recorded_sources
from tests.ui.texts import ROOT, Untranslated, modules, no_garbage_collection, sentence_templates, untranslated
from ui.bridge.desktop.opening import AddressOpener
from ui.style.list_rows import RowRole
from ui.style.text import translate_sentence
from ui.style.theme import ThemeSource

# Names and key names, which no translation of ours changes.
NAMES = sorted(
    {
        "Desktop Agent",
        *(each.title for each in (*LOCAL_SERVERS, *CLOUD_PROVIDERS)),
        *LANGUAGE_NAMES.values(),
        "json",
        *("Ctrl", "Shift", "Enter", "Return", "Esc", "Del"),
    },
    key=len,
    reverse=True,
)


class Marks(QTranslator):
    """Answers every lookup with the source between brackets."""

    def isEmpty(self):  # noqa: N802 - Qt's name
        return False

    def translate(self, context, source, disambiguation=None, n=-1):
        return f"⟦{source}⟧" if source else ""


@pytest.fixture
def marked(qapp):
    translator = Marks()
    QCoreApplication.installTranslator(translator)
    yield
    QCoreApplication.removeTranslator(translator)


def unmarked(text):
    """What of a text is neither between brackets nor a name. The conversation's own words are Greek here."""
    depth, rest = 0, []
    for each in text:
        depth += {"⟦": 1, "⟧": -1}.get(each, 0)
        rest.append(each if not depth else " ")
    left = re.sub(r"https?://\S+", " ", "".join(rest))
    for name in NAMES:
        left = left.replace(name, " ")
    return re.findall(r"[A-Za-z]{2,}", re.sub(r"<[^>]*>", " ", left))


def texts_of(widget):
    """All that a widget or an action says, drawn or to a screen reader."""
    if isinstance(widget, QAction):
        return [widget.text()]
    found = [widget.windowTitle(), widget.accessibleName(), widget.accessibleDescription(), widget.toolTip()]
    if isinstance(widget, QLabel | QAbstractButton):
        found.append(widget.text())
    if isinstance(widget, QLineEdit | QPlainTextEdit):
        found.append(widget.placeholderText())
    if isinstance(widget, QComboBox):
        found += [widget.itemText(row) for row in range(widget.count())]
    if isinstance(widget, QMenu):
        found.append(widget.title())
    if isinstance(widget, QAbstractItemView) and widget.model() is not None:
        rows = [widget.model().index(row, 0) for row in range(widget.model().rowCount())]
        found += [str(row.data(role) or "") for row in rows for role in (Qt.ItemDataRole.DisplayRole, RowRole.DETAIL)]
    return found


def bare_texts(root):
    """The texts of a widget and all in it that are not marked. Qt's own inner widgets are Qt's to translate."""
    everything = [root, *root.findChildren(QWidget), *root.findChildren(QAction)]
    own = [each for each in everything if not each.objectName().startswith(("qt_", "_q_"))]
    texts = [text for each in own for text in texts_of(each) if text]
    assert sum("⟦" in each for each in texts) > 2, "nothing was looked at"
    return sorted({each for each in texts if unmarked(each)})


def painted(widget):
    """The words that painting a widget draws, in order."""
    buffer = QBuffer()
    drawing = QSvgGenerator()
    drawing.setOutputDevice(buffer)
    drawing.setSize(widget.size())
    widget.render(drawing, QPoint())
    root = ElementTree.fromstring(bytes(buffer.data().data()))
    return "".join("".join(each.itertext()) for each in root.iter("{http://www.w3.org/2000/svg}text"))


# What the source says.


def test_no_literal_reaches_a_person_untranslated():
    with no_garbage_collection():
        found = {path: Untranslated(path, tree).found for path, tree in modules("ui")}
    assert len(found) > 50
    assert [each for literals in found.values() for each in literals] == []


@pytest.mark.parametrize(
    "line",
    [
        'field.setText("Hello")',
        'field.setToolTip(plain_tooltip(f"{name} is here"))',
        'box = QMessageBox(QMessageBox.Icon.Critical, "Oh no", translate_sentence(error.sentence))',
        'made = label("Hello", "muted")',
        'made = button("Go", act, "link", self.tr("Go there"))',
        'made = button(self.tr("Go"), act, name="Go there")',
        'made = IconButton(themes, "close", "Close")',
        'banners.add_remedy_button(action, "Open settings", act)',
        'menu.addAction("Copy").triggered.connect(act)',
        'field = QLineEdit(placeholderText="Filter")',
        'field.setText(self.tr("Stop") if working else "Go")',
        'field.setText("{} tokens".format(count))',
        'field.setText({True: "yes", False: "no"}[held])',
        'head = Header(title, state="Done", control=self.tr("Show"))',
        'buttons = BannerButton("Copy details", act)',
        'painter.drawText(box, flags, "Nothing yet")',
        'def show():\n    word = "Done"\n    field.setText(f"{word} · 3 s")',
        'class A:\n    def label(self):\n        return "You said"',
    ],
)
def test_a_seeded_literal_is_found(line):
    assert len(untranslated(line)) >= 1


def test_what_is_translated_or_no_text_is_left_alone():
    source = """
label(self.tr("Hello"), "muted")
field.setText(self.tr("{0} of {1}").format(done, "…"))
field.setToolTip(self.tr("Send") + " (Ctrl+Enter)")
painter.drawPixmap(0, 0, look.icon("copy", "muted", 16, 1))
field.setText(f"{count:,}")
field.setText(translate("Size", "bytes") if mode == "bytes" else "")
window.setWindowTitle(f"{title} — Desktop Agent")
"""
    assert untranslated(source) == []


# What the runtime says.


def test_every_template_of_the_runtime_can_be_collected():
    templates, unread = sentence_templates()
    assert unread == []
    assert len(templates) > 140
    for each in (
        "The model server could not be reached: {message}",  # a class attribute
        "This answer was interrupted.",  # a Sentence
        "“{path}” is a folder, not a file.",  # from a table
        "“{path}” is too long for a path.",  # put together from two
        "There is no tool “{name}”; this conversation has no tools.",  # through a function
        "The keyring is locked.",  # plain words given to an error
        "Attach it as PNG or JPEG.",  # a remedy
        "Correct it and import again.",  # what a parameter is that is left out
        "Open another conversation there or close the window, then try again.",  # returned by a function
        "it is not there any more",  # given to what makes a sentence of it
    ):
        assert each in templates
    for each in templates:
        assert any(letter.isalpha() for letter in each), each
        assert "{}" not in each


def test_pictures_of_the_screens_show_sentences_of_the_program():
    """A sentence that only the gallery knows is in English in every language, and misleads who looks at it."""
    catalogue = ElementTree.parse(ROOT / "resources/translations/desktop_agent_de.ts")
    translated = {source.text for source in catalogue.iter("source")}
    shown, _ = sentence_templates(dict(modules("tests/gallery")), {})
    assert "nothing listens at {where}" in shown
    assert shown - translated == set()


def test_sentences_are_spoken_with_the_sentences_in_them(marked):
    error = ConnectionFailed("ωω")
    both = Sentence("{what} {remedy}", {"what": error.sentence, "remedy": error.remedy})
    assert translate_sentence(both) == (
        "⟦⟦⟦The model server could not be reached: ωω⟧.⟧ "
        "⟦Check that the server is running and the address is right, then try again.⟧⟧"
    )
    assert str(both).startswith("The model server could not be reached: ωω. Check")
    assert translate_sentence(AuthenticationFailed("x").remedy).startswith("⟦")


# What the screen says.


def conversation():
    """A row of every kind, in every state; all words of its own are Greek."""
    transcript = Transcript()
    feed = Feed(transcript)
    picture = Image(source=UrlSource(url="http://127.0.0.1/1"))
    transcript.add_message(Message.user_with_blocks([Text(text="γειά"), picture]))
    feed(TurnStarted("t", "m", "μ"))
    feed(ThinkingDelta("σκέψη"))
    feed(ThinkingBlock("σκέψη", "p"), after=75)
    feed(ContentDelta("λόγος\n\n```\nκ\n```\n\n![](http://127.0.0.1/2)\n"))
    for number, outcome in enumerate(Outcome):
        result = ToolResult(tool_use_id=f"{number}", content=(Text(text="τέλος"), picture), outcome=outcome)
        feed(ToolUse(id=f"{number}", name="έργο", input={"δ": "λ"}))
        feed(ToolStarted(f"{number}", {"δ": "ψ"}))
        feed(ToolFinished(f"{number}", result, 3.0))
    feed(ToolUse(id="a", name="έργο", input={"δ": "λ"}))
    feed(ApprovalRequested("approval", "a", "digest"))
    feed(ToolUse(id="b", name="έργο", input={"δ": "λ"}))
    feed(ToolStarted("b", {"δ": "λ"}))
    feed(ToolUse(id="c", name="", input={}))
    feed(ToolArgsDelta("d", "έργο", "{"))
    feed(ErrorOccurred("k", "m", Sentence("It broke."), Sentence("Try again."), RemedyAction.RETRY, detail="δ"))
    feed(LimitReached("ω"))
    transcript.add_notice(Sentence("Look."), action=RemedyAction.OPEN_SETTINGS)
    # Or the answer takes the place of what failed.
    transcript.add_message(Message.user("ξανά"))
    feed(TurnStarted("t", "n", "μ"))
    feed(ContentDelta("μισό"))
    feed(RunFinished(RunEnd.CANCELLED))
    feed(ThinkingDelta("ακόμη"))
    feed(ContentDelta("πηγή"))
    feed(TextClosed("p", {}, (Citation(title="τίτλος", url="http://127.0.0.1/3"),)))
    feed(ServerStep(provider="p", name="ζήτηση", text="λ" * 400, raw={}))
    feed(Unknown(raw={"δ": "λ"}))
    feed(ThinkingDelta("ακόμη"))
    return transcript


@pytest.fixture
def view(qtbot, marked, tmp_path):
    from ui.transcript.view import TranscriptView

    made = TranscriptView(ThemeSource(), NoPictures(tmp_path))
    qtbot.addWidget(made)
    made.resize(1100, 9000)
    made.show()
    yield made
    made.close_workers()


def test_the_steps_of_a_specialist(view):
    transcript = Transcript()
    feed = Feed(transcript)
    feed(TurnStarted("t", "m", "μ"))
    feed(ToolUse(id="a", name="έργο"))
    feed(ToolStarted("a", {}))
    values = {"tool": Sentence("Read a file"), "outcome": Sentence("Failed")}
    transcript[0].steps.append(Sentence("{tool}: {outcome}", values))
    view.set_transcript(transcript)
    assert view.row_viewport.rows.row(0).blocks[-1].plain() == "⟦⟦Read a file⟧: ⟦Failed⟧⟧"


def test_the_transcript(view):
    assert unmarked(painted(view.viewport())) == []
    view.set_transcript(conversation())
    rows = [view.row_viewport.rows.row(index) for index in range(len(view.row_viewport.rows))]
    kinds = {type(row).__name__ for row in rows}
    assert len(kinds) == 7, kinds
    for folded in (True, False):
        for row in rows:
            view._render_context.choices.set(row.item.id, "unfolded", value=not folded)
            row.refresh("state")
        view._on_theme()
        told = [row.label for row in rows] + [row.spoken_text() for row in rows]
        told += [control.name for row in rows for _, control in row.controls()]
        assert {text: left for text in told if (left := unmarked(text))} == {}
        words = ""
        for index in range(len(rows)):
            # Some buttons appear where the row is pointed at.
            view.row_viewport.hover((index, ""))
            words += painted(view.viewport())
        assert "⟦You said⟧" in told
        assert all(f"⟦{each}⟧" in words for each in ("Review", "Open settings", "Copy details", "Thinking…", "Wrap"))
        assert unmarked(words) == []
    view.jump_button.set_count(3)
    assert bare_texts(view) == []


def test_a_literal_on_the_screen_is_found(qtbot, marked):
    """The check itself can fail."""
    pane = QWidget()
    qtbot.addWidget(pane)
    pane.setAccessibleName("⟦A⟧")
    for text in ("⟦Hello⟧", "⟦B⟧", "Hello", "⟦Hi⟧ there", "ωμέγα"):
        QLabel(text, pane)
    assert bare_texts(pane) == ["Hello", "⟦Hi⟧ there"]


def test_the_jump_button_draws_its_count(view):
    view.jump_button.set_count(3)
    view.jump_button.show()
    assert painted(view.jump_button) == "⟦3 new⟧"


def test_the_menus_of_the_transcript(view):
    view.set_transcript(conversation())
    titles = set()
    for index in range(len(view.row_viewport.rows)):
        row, corner = view.row_viewport.rows.row(index), view.row_viewport.row_box(index).topLeft()
        for block in range(len(row.blocks)):
            menu = view.context_menu.build_menu(row.stack.block_box(block).topLeft() + corner + QPoint(12, 8), view)
            assert bare_texts(menu) == []
            titles.add(menu.title())
            menu.deleteLater()
    assert {"⟦Code⟧", "⟦You said⟧", "⟦Assistant said⟧"} <= titles


def test_the_composer_and_its_pickers(qtbot, marked):
    from ui.bridge.model_servers import ModelGroup
    from ui.composer.composer import Composer
    from ui.composer.parameter_buttons import ReasoningPicker
    from ui.composer.pickers import ModelPicker, WorkspacePicker, model_details, model_tooltip

    themes = ThemeSource()
    composer = Composer(themes, lambda *_: None)
    models, folder = ModelPicker(themes), WorkspacePicker(themes)
    composer.controls.add(models)
    composer.controls.add(folder)
    qtbot.addWidget(composer)
    composer.show()
    assert bare_texts(composer) == []
    models.set_models([ModelGroup(LOCAL_SERVERS[0], (ModelInfo("μ"),)), ModelGroup(LOCAL_SERVERS[1], ())])
    models._popup.panel.filter_rows("")
    reasoning = ReasoningPicker(themes)
    composer.controls.add(reasoning)
    modes = frozenset({"disabled", "effort", "adaptive", "between_tools"})
    efforts = ("minimal", "low", "medium", "high", "xhigh", "max")
    for able in (
        Capabilities(),
        Capabilities(reasoning_modes=modes, efforts=efforts, default_effort="low"),
        Capabilities(reasoning_modes=frozenset({"budget"}), reasons_by_default=False),
    ):
        reasoning.show_choices(able, None)
        assert bare_texts(reasoning) == []
    price = Price(input=1, output=2)
    for retires in (date(2001, 1, 1), date(2999, 1, 1)):
        known = ModelInfo("μ", None, Capabilities(images=True, tools=True, reasoning=True), price, retires)
        assert [each for each in model_details(known, date(2026, 1, 1)) if unmarked(each)] == []
        assert not unmarked(model_tooltip(known))
    composer.set_supports_images(False)
    composer.set_working(True)
    assert bare_texts(composer) == []


def test_the_sidebar(qtbot, marked):
    from tests.ui.sidebar.test_conversation_list import Record
    from ui.sidebar.conversation_list import ConversationList
    from ui.sidebar.search_filters import ChosenFilters

    pane = ConversationList(ThemeSource())
    qtbot.addWidget(pane)
    pane.set_conversations([Record("1", "δ"), Record("2", "")])
    action = QAction("ωμέγα", pane)
    pane.add_footer(*[action] * 6).waiting.show_count(2)
    pane.show()
    assert bare_texts(pane) == []
    pane._search.setText("ω")
    filters = pane._filters
    filters.set_choices(SearchChoices(("μ",), ("/φ",)))
    for days in (0, 6, 29, -1):
        filters._choose(ChosenFilters(days, None, None, Role.USER if days else Role.ASSISTANT, days == 0, days == 0))
        filters._menu.aboutToShow.emit()
        assert bare_texts(pane) == []
    filters.clear()
    hits = (
        SearchHit("m", Role.USER, datetime.now(UTC), SearchPlace.TEXT, "ω"),
        SearchHit("m", Role.ASSISTANT, datetime.now(UTC), SearchPlace.TEXT, "ω"),
        SearchHit("m", Role.USER, datetime.now(UTC), SearchPlace.TEXT, "ω", is_note=True),
        SearchHit("m", Role.TOOL, datetime.now(UTC), SearchPlace.CALLS, "ω"),
        SearchHit("m", Role.USER, datetime.now(UTC), SearchPlace.ATTACHMENTS, "ω"),
    )
    found = (ConversationHits("1", "", (), hits, 9), ConversationHits("2", "δ"))
    for results in (SearchResults(found, is_complete=False, has_more=True), SearchResults()):
        pane.show_results(pane.query, results)
        assert bare_texts(pane) == []
        rows = pane._results.rows
        assert not unmarked("\n".join(str(rows.index(row).data()) for row in range(rows.rowCount())))
        assert not unmarked(pane._search.accessibleDescription())


def test_the_palette(qtbot, marked):
    from ui.shell.commands.command_palette import CommandGroup, CommandPalette, CommandRow, matching_rows

    window = QWidget()
    qtbot.addWidget(window)
    window.show()
    palette = CommandPalette(
        ThemeSource(), lambda: [CommandGroup("⟦λ⟧", [CommandRow(text="δ", is_choosable=True)])], window
    )
    palette.open()
    assert bare_texts(palette) == []
    assert not unmarked(matching_rows("ω", [])[0].text)


def test_the_help(qtbot, marked):
    from ui.bridge.desktop.updates import UpdateChecks, UpdateSource
    from ui.shell.commands.help_dialog import AboutPage, LicencesPage, ShortcutsPage, UpdateSection

    window = QWidget()
    qtbot.addWidget(window)
    layout = QVBoxLayout(window)
    layout.addWidget(ShortcutsPage(ThemeSource()))
    layout.addWidget(LicencesPage(ThemeSource(), SimpleNamespace(start=lambda work: work.close())))
    opener = AddressOpener()
    engine = SimpleNamespace(folder=Path("/δ"), preferences=Preferences(), on_preferences=lambda _: None)
    updates = UpdateChecks(engine, SimpleNamespace(start=lambda work: work.close()))
    updates.source = UpdateSource("https://δ.example/version")
    layout.addWidget(AboutPage(ThemeSource(), Path("/δ"), opener, UpdateSection(updates, opener), lambda: None))
    window.show()
    assert bare_texts(window) == []


def test_the_approval_dialog(qtbot, marked):
    from ui.approval.approval_dialog import ApprovalDialog
    from ui.approval.code_view import CodeView
    from ui.bridge.permissions import PendingApproval

    dialog = ApprovalDialog(ThemeSource(), input_delay_ms=0)
    qtbot.addWidget(dialog)
    for effect, tool_class in zip(Effect, [*ToolClass] * 3, strict=False):
        preview = DiffPreview("δ", "δ\n" * 30, "δ\n" * 30 + "λ")
        calls = [
            PendingApproval(
                approval_id=f"{effect}{number}",
                tool="έργο",
                arguments={"δ": "λ"},
                tool_class=tool_class,
                effects=frozenset({effect}),
                preview=preview,
                agent_path=("ειδικός",) * number,
            )
            for number in range(2)
        ]
        dialog.set_approvals(calls)
        dialog.show()
        assert bare_texts(dialog) == []
        assert [unmarked(view.text) for view in dialog._preview.findChildren(CodeView) if unmarked(view.text)] == []
    for wrong in ("{", "[]", '{"δ": NaN}', '{"δ": 1, "δ": 2}'):
        dialog._arguments.edit(wrong)
        assert dialog._arguments._problem.text()
        assert bare_texts(dialog) == []


def test_the_welcome_screen(qtbot, marked):
    from tests.ui.welcome.test_welcome import Found
    from ui.welcome.welcome_page import WelcomePage

    page = WelcomePage(ThemeSource(), MagicMock(), MagicMock())
    qtbot.addWidget(page)
    page.show()
    assert bare_texts(page) == []
    page.set_local_servers(
        [Found(LOCAL_SERVERS[0], None), Found(LOCAL_SERVERS[1], ()), Found(LOCAL_SERVERS[2], (ModelInfo("μ"),))]
    )
    page.set_endpoint_state("openai", "no_keyring", Sentence("No keyring."))
    assert bare_texts(page) == []


def test_the_settings(qtbot, marked):
    from desktop_agent.engine.price_overrides import ModelPriceEntry
    from ui.settings.settings_dialog import SettingsDialog

    servers = ProviderPreferences(endpoints=(LOCAL_SERVERS[0], CLOUD_PROVIDERS[0]))
    dialog = SettingsDialog(ThemeSource(), recorded_sources(Preferences(providers=servers)))
    qtbot.addWidget(dialog)
    dialog.show()
    dialog.providers.show_keys([CLOUD_PROVIDERS[0].id])
    dialog.providers.show_keyring("κλειδιά")
    # Fonts have names, not words.
    assert set(bare_texts(dialog)) <= set(QFontDatabase.families())
    dialog.prices.show_models([ModelPriceEntry("δ", "δ", "δ", "λ", Price(input=1), is_own=True)])
    for each in dialog.providers._cards.values():
        each._open_editor()
        each._editor.form.rows["base_url"].control.widget.setText("http://127.0.0.1:7")
        each._editor.form.rows["mirrors"].control.widget.setPlainText("http://127.0.0.1:8")
        each.ask_for_key()
    assert set(bare_texts(dialog)) <= set(QFontDatabase.families())
    rows = dialog.prices._rows
    told = [rows.headerData(at, Qt.Orientation.Horizontal) for at in range(rows.columnCount())]
    told += [rows.index(0, at).data(Qt.ItemDataRole.AccessibleTextRole) for at in range(rows.columnCount())]
    assert [each for each in told if unmarked(each)] == []


def test_the_usage_meter(qtbot, marked):
    from ui.shell.context_usage import UsageMeter

    meter = UsageMeter()
    qtbot.addWidget(meter)
    everything = Usage(**dict.fromkeys(Usage.model_fields, 10))
    for cost, window in ((10, None), (None, 100)):
        usage = everything.model_copy(update={"cost": cost})
        answers = [Message(role=Role.ASSISTANT, usage=each) for each in (usage, Usage())]
        meter.show_usage(usage, ConversationUsage(lambda answers=answers: answers), window)
        assert [each for each in texts_of(meter) if unmarked(each)] == []


def test_remarks_on_pictures(marked):
    from tests.ui.composer.test_attachment_items import picture, remarks

    pictures = [picture("δ", width=9, size=9, media_type="image/gif"), picture("δ", width=9, size=9)]
    said = remarks(*pictures, media_types=MEDIA_TYPES_WITHOUT_GIF, max_bytes=1, max_edge=1, max_count=1)
    said += remarks(pictures[1], max_edge=1) + remarks(pictures[1], can_see=False)
    assert len(said) == 6
    assert [each for each in said if unmarked(each)] == []


def test_the_banners(qtbot, marked):
    from ui.shell.banners import BannerArea

    area = BannerArea(ThemeSource())
    qtbot.addWidget(area)
    area.show_error(AuthenticationFailed("όχι", detail="λόγος"))
    area.show_undo("ωμέγα", lambda: None)
    area.show_notice(Sentence("Something."))
    assert bare_texts(area) == []
    assert len(area.findChildren(QPushButton)) == 2
