"""Readers of what other assistants left on this disk: one module for each program, read-only."""

from desktop_agent.exchange.readers.cherry_studio import CherryStudioReader
from desktop_agent.exchange.readers.claude_code import ClaudeCodeReader
from desktop_agent.exchange.readers.codex import CodexReader
from desktop_agent.exchange.readers.gemini_cli import GeminiCliReader
from desktop_agent.exchange.readers.goose import GooseReader
from desktop_agent.exchange.readers.jan import JanReader
from desktop_agent.exchange.readers.lm_studio import LmStudioReader
from desktop_agent.exchange.readers.open_webui import OpenWebUiReader
from desktop_agent.exchange.readers.opencode import OpencodeReader
from desktop_agent.exchange.readers.reader import HistoryReader

HISTORY_READERS: tuple[type[HistoryReader], ...] = (
    ClaudeCodeReader,
    CodexReader,
    OpencodeReader,
    GeminiCliReader,
    GooseReader,
    LmStudioReader,
    JanReader,
    OpenWebUiReader,
    CherryStudioReader,
)
"""All readers, in the order in which they are shown."""
