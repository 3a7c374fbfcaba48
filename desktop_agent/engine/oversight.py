"""What a person wants to know about calls besides their cards: what would be asked, and what was decided so far."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from desktop_agent.engine.audit import AuditTrail
from desktop_agent.storage.records import ConversationRecord
from desktop_agent.storage.store import Store
from desktop_agent.tools.registry import ToolRegistry
from desktop_agent.vocabulary.blocks import JsonObject, ToolUse

if TYPE_CHECKING:
    from desktop_agent.engine.session import Session
    from desktop_agent.permissions.gate import Verdict


class PermissionInspector:
    """Over all conversations. Changes nothing."""

    def __init__(
        self,
        store: Store,
        record: Callable[[str], Awaitable[ConversationRecord]],
        open_session: "Callable[[str], Awaitable[Session]]",
        tools_for: Callable[[ConversationRecord], ToolRegistry],
    ) -> None:
        self._store = store
        self._load_record = record
        self._open_session = open_session
        self._tools_for = tools_for

    async def tool_names(self, conversation_id: str) -> tuple[str, ...]:
        """The tools of a conversation. Raises WrongUse for an unknown one, and StorageFailed."""
        return self._tools_for(await self._load_record(conversation_id)).names

    async def verdict_for(self, conversation_id: str, tool: str, arguments: JsonObject) -> "Verdict":
        """What rules and mode would make of such a call now, without making it. Hooks are not asked.

        Raises WrongUse for an unknown conversation, and StorageFailed.
        """
        session = await self._open_session(conversation_id)
        tools = self._tools_for(session.record)
        call = ToolUse(id="", name=tool, input=arguments)
        return await session.permission_policy.verdict(call, tools.get(tool), tools.names)

    def audit(self) -> AuditTrail:
        """What was decided about every call so far, to be read page by page."""
        return AuditTrail(self._store)
