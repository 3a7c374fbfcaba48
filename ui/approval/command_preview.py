"""The preview of a shell command line: its commands one by one with their risks, hosts and sandbox."""

import re
from bisect import bisect_right
from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QPlainTextEdit, QWidget

from desktop_agent.types.tool_calls import CommandPart, CommandPreview, Risk
from ui.approval.code_view import CodeView
from ui.approval.labels import ExpandableNote, SelectableLabel, wrapping_label
from ui.approval.untrusted_text import describe_host, fold_lines, map_folded_positions
from ui.style.boxes import hbox, parts_of, vbox
from ui.style.controls import label, show_words
from ui.style.removal import clear_layout
from ui.style.text import join_names, join_sentences, show_hidden, translated
from ui.style.text_display import isolate, isolate_untrusted
from ui.style.theme import SPACE_L, SPACE_S, SPACE_XS, ThemeSource, mono_font

SEVERE_RISKS = frozenset({Risk.DELETES, Risk.NETWORK, Risk.PRIVILEGES, Risk.LOOKALIKE})
MAX_SPANS = 1000

# A full stop of Chinese needs no space after it.
_FIRST_SENTENCE = re.compile(r".*?(?:\.(?= )|\u3002)", re.DOTALL)
_WHITESPACE = re.compile(r"(?:\\\n|[ \t\n])+")

RiskSpan = tuple[int, int, bool]
"""Start, end, and whether the risk is severe."""


def risks_first(parts: Sequence[CommandPart]) -> list[CommandPart]:
    """Sort commands with risks first, each with those it starts; otherwise keep their order."""
    risky: list[CommandPart] = []
    others: list[CommandPart] = []
    index = 0
    while index < len(parts):
        end = index + 1
        while end < len(parts) and parts[end].depth:
            end += 1
        group = parts[index:end]
        (risky if any(part.risks for part in group) else others).extend(group)
        index = end
    return risky + others


def find_risk_spans(line: str, parts: Sequence[CommandPart]) -> list[RiskSpan]:
    """Find the commands with risks in a line whose hidden characters are shown.

    The spans are in rising order and do not overlap: a command that another one starts is inside of that one. If there
    are too many, the severe ones are kept.
    """
    normalized = _NormalizedLine(line)
    spans: list[RiskSpan] = []
    # Redirections are listed after all commands, so each kind has a position of its own.
    ends = {False: 0, True: 0}
    for part in parts:
        if part.depth:
            continue
        is_redirection = part.text.startswith(("<", ">"))
        start, end = normalized.find(part.text, ends[is_redirection])
        if start >= 0:
            ends[is_redirection] = end
            if part.risks:
                is_severe = not SEVERE_RISKS.isdisjoint(part.risks)
                spans.append(
                    (normalized.original_position(start), normalized.original_position(end - 1) + 1, is_severe)
                )
    spans.sort(key=lambda span: not span[2])
    kept = sorted(spans[:MAX_SPANS])
    return [span for index, span in enumerate(kept) if index == 0 or span[0] >= kept[index - 1][1]]


class _NormalizedLine:
    """A command line with single blanks, to find commands in it whatever blanks they are written with."""

    def __init__(self, line: str) -> None:
        self._text = _WHITESPACE.sub(" ", line)
        self._positions, self._original_positions = [0], [0]
        removed = 0
        for match in _WHITESPACE.finditer(line):
            if len(match[0]) > 1:
                removed += len(match[0]) - 1
                self._positions.append(match.end() - removed)
                self._original_positions.append(match.end())

    def find(self, text: str, offset: int) -> tuple[int, int]:
        """Return start and end of a text from `offset` on; the start is -1 if it is missing."""
        query = _WHITESPACE.sub(" ", show_hidden(text))
        start = self._text.find(query, offset)
        return start, start + len(query)

    def original_position(self, position: int) -> int:
        index = bisect_right(self._positions, position) - 1
        return self._original_positions[index] + position - self._positions[index]


# The line above shows all commands; thousands of rows would only take time.
MAX_ROWS = 100
MAX_PLAIN_ROWS = 20
"""Rows without a risk, so that they do not grow the dialog beyond the screen."""
MAX_ROWS_IN_ORDER = 8
"""Up to so many rows are in the order of the line; of more, those with risks come first."""
MAX_LINE_ROWS = 12
MAX_LOOKALIKES, MAX_WORD_LENGTH = 6, 80
"""Sentences about characters that look like others; the commands of all have a tag."""
MAX_VISIBLE_HOSTS = 6


class CommandView(QWidget):
    """The preview of a command line. `show_command` returns the heading for it."""

    def __init__(self, themes: ThemeSource) -> None:
        super().__init__()
        self._themes = themes
        self._line = self.initial_focus = CodeView(themes, self.tr("Command line"), MAX_LINE_ROWS, MAX_LINE_ROWS)
        self._line.setLineWrapMode(QPlainTextEdit.LineWrapMode.WidgetWidth)
        self._warning = wrapping_label(kind="warning")
        self._sandbox_note = ExpandableNote()
        self._rows = vbox(spacing=SPACE_XS, margins=0)
        self._hosts = _HostList(themes)
        self._build_layout()
        themes.changed.connect(self._apply_theme)

    known_folder = ""
    """The folder that the header already shows."""

    def show_command(self, preview: CommandPreview) -> str:
        """Show a command line with its risks, and return the heading."""
        line = show_hidden(preview.line)
        self._line.show_lines([], [fold_lines(line)])
        spans = find_risk_spans(line, preview.parts)
        positions = map_folded_positions(line, [position for start, end, _ in spans for position in (start, end)])
        severities = [is_severe for _, _, is_severe in spans]
        self._line.highlight(list(zip(positions[::2], positions[1::2], severities, strict=True)))
        self._show_parts(preview.parts)
        self._show_warnings(preview)
        self._hosts.show_hosts(preview.hosts, only=preview.only_hosts)
        self._show_sandbox(preview)
        count = sum(not part.text.startswith(("<", ">")) for part in preview.parts)
        return self.tr("What will run: {0} commands").format(count) if count > 1 else self.tr("What will run")

    def _show_warnings(self, preview: CommandPreview) -> None:
        lookalikes = list(dict.fromkeys(lookalike for part in preview.parts for lookalike in part.lookalikes))
        words = self.tr("“{0}”: the character “{1}” ({2}) only looks like “{3}”.")
        warnings = [
            words.format(isolate_untrusted(found.word[:MAX_WORD_LENGTH]), found.char, found.name, found.passes_for)
            for found in lookalikes[:MAX_LOOKALIKES]
        ]
        if preview.problem:
            warnings.append(self.tr("The shell cannot read this line: {0}").format(isolate_untrusted(preview.problem)))
        if not preview.understood:
            warnings.append(self.tr("This line may run more than is listed here. Read all of it."))
        show_words(self._warning, "\n".join(warnings))

    def _show_sandbox(self, preview: CommandPreview) -> None:
        folder, confinement = show_hidden(preview.folder), show_hidden(translated(preview.confinement))
        folder_text = (
            "" if preview.folder == self.known_folder else self.tr("In the folder {0}").format(isolate(folder))
        )
        first = _FIRST_SENTENCE.match(confinement)
        short = join_sentences((confinement if first is None else first[0], folder_text))
        whole = "\n".join(filter(None, (confinement, folder_text)))
        self._sandbox_note.show_note(short, short if first is None else whole)

    def _show_parts(self, parts: Sequence[CommandPart]) -> None:
        clear_layout(self._rows)
        # The line above already shows a single plain command.
        if len(parts) < 2 and not any(part.risks for part in parts):
            return
        ordered = parts if len(parts) <= MAX_ROWS_IN_ORDER else risks_first(parts)
        count = min(max(sum(bool(part.risks) for part in parts), MAX_PLAIN_ROWS), MAX_ROWS)
        for part in ordered[:count]:
            text = SelectableLabel(fold_lines(show_hidden(part.text)))
            text.setFont(mono_font(self._themes.zoom))
            text.setHidden(len(parts) == 1)
            self._rows.addWidget(self._create_row(text, part.risks, part.depth))
        if rest := ordered[count:]:
            risks = {risk for part in rest for risk in part.risks}
            more = label(self.tr("And {0} more").format(len(rest)), "muted")
            self._rows.addWidget(self._create_row(more, [risk for risk in Risk if risk in risks]))

    def _create_row(self, text: QLabel, risks: Sequence[Risk], depth: int = 0) -> QWidget:
        """Create the row of a command and its tags. For a single command `text` is hidden: the line shows it."""
        row = QWidget()
        row.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
        layout = hbox(parent=row, spacing=SPACE_S, margins=(depth * SPACE_L, 0, 0, 0))
        layout.addWidget(text, 0, Qt.AlignmentFlag.AlignVCenter)
        words = [self._risk_name(risk) for risk in risks]
        for risk, word in zip(risks, words, strict=True):
            tag = label(word)
            tag.setProperty("tag", "risk" if risk in SEVERE_RISKS else "caution")
            layout.addWidget(tag, 0, Qt.AlignmentFlag.AlignVCenter)
        layout.addStretch(1)
        row.setAccessibleName(": ".join(filter(None, (text.text(), join_names(words)))))
        return row

    def _risk_name(self, risk: Risk) -> str:
        words = {
            Risk.DELETES: self.tr("Deletes"),
            Risk.WRITES: self.tr("Writes files"),
            Risk.NETWORK: self.tr("Uses the network"),
            Risk.PRIVILEGES: self.tr("Needs privileges"),
            Risk.RUNS_CODE: self.tr("Runs code"),
            Risk.UNCLEAR: self.tr("Depends on variables"),
            Risk.LOOKALIKE: self.tr("Look-alike characters"),
        }
        return words[risk]

    def _apply_theme(self) -> None:
        font = mono_font(self._themes.zoom)
        for row in parts_of(self._rows):
            text = row.findChild(SelectableLabel)
            if text is not None:
                text.setFont(font)

    def _build_layout(self) -> None:
        parts = (self._line, self._warning, self._rows, self._hosts, self._sandbox_note)
        vbox(*parts, parent=self, spacing=SPACE_S, margins=0)
        self.setAccessibleName(self.tr("Commands of the line"))


class _HostList(QWidget):
    """The hosts that a command may reach, one per line. Hidden without network access."""

    def __init__(self, themes: ThemeSource) -> None:
        super().__init__()
        self._only = wrapping_label(self.tr("The command can reach only these hosts:"))
        self._any = wrapping_label(
            self.tr(
                "This system cannot limit the command to certain hosts: it can use the whole network and the "
                "services of this computer. The command says that it needs:"
            ),
            kind="warning",
        )
        self._list = CodeView(themes, self.tr("Hosts"), MAX_VISIBLE_HOSTS, MAX_VISIBLE_HOSTS)
        vbox(self._only, self._any, self._list, parent=self, spacing=SPACE_XS, margins=0)

    def show_hosts(self, hosts: Sequence[str], *, only: bool) -> None:
        """Show the hosts; `only` says that the sandbox enforces them."""
        self.setVisible(bool(hosts))
        self._only.setVisible(only)
        self._any.setVisible(not only)
        self._list.show_lines([], [describe_host(host) for host in hosts])
