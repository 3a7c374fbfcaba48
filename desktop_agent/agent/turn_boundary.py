"""What happens between two turns: queued messages are delivered, modes change, history is compacted, guards decide."""

import asyncio
from typing import Literal

from desktop_agent.agent.compaction import Compaction, is_compaction_due
from desktop_agent.agent.hooks import PromptRuling, run_prompt_hooks
from desktop_agent.agent.model_request import RunSettings
from desktop_agent.agent.run_context import Budget, RunContext
from desktop_agent.conversation.history import is_own_prompt, summary_of
from desktop_agent.providers.provider import Provider
from desktop_agent.types.blocks import Summary
from desktop_agent.types.engine_events import (
    ContextCompacted,
    CostUpdated,
    ErrorOccurred,
    RunEnd,
    UserMessageDelivered,
    UserMessageReturned,
)
from desktop_agent.types.errors import Sentence, WrongUse
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.policies import PromptPolicy, UserPromptSubmit

# Share of the context window from which on older messages are summarised.
COMPACT_AT = 0.8
# After Stop the hooks of a prompt get this long to decide about it, in seconds.
HOOKS_GRACE = 2.0
_RUN_ENDS = {"stop": RunEnd.COMPLETED, "abort": RunEnd.ABORTED}


class TurnBoundary:
    """The boundary between the turns of one run."""

    def __init__(self, context: RunContext, settings: RunSettings, budget: Budget) -> None:
        self._context = context
        self._recorder = context.recorder
        self._settings = settings
        self._budget = budget
        self._compactor = Compaction(context, settings, budget)
        self._applied: tuple[PromptPolicy, ...] = ()
        self._is_prompt_judged = False
        self._hook_task: asyncio.Task[PromptRuling] | None = None

    async def admit_prompt(self, prompt: Message) -> bool:
        """Commit the run's own prompt if the hooks allow it; else return it to the person with the reason.

        Stop does not break off the hooks: see `commit_sent_prompt`.
        """
        self._hook_task = asyncio.create_task(self._run_prompt_hooks(prompt))
        ruling = await asyncio.shield(self._hook_task)
        self._is_prompt_judged = True
        if not ruling.allowed:
            self._return_prompt(prompt, ruling.reason)
            return False
        await self._commit_prompt(ruling.prompt)
        return True

    async def commit_sent_prompt(self, prompt: Message) -> None:
        """Commit the prompt of a run that ends, if not yet done: whenever Stop came, what was sent is in the history.

        Hooks that still run get the grace to decide. A prompt that they deny, or do not decide about, reaches no
        model: its session returns it to the person.
        """
        if self._is_prompt_judged:
            return
        ruling_task = self._hook_task or asyncio.create_task(self._run_prompt_hooks(prompt))
        await asyncio.wait({ruling_task}, timeout=HOOKS_GRACE)
        if not ruling_task.done():
            ruling_task.cancel()
            await asyncio.wait({ruling_task})
        elif ruling_task.result().allowed:
            self._is_prompt_judged = True
            await self._commit_prompt(ruling_task.result().prompt)

    async def _commit_prompt(self, prompt: Message) -> None:
        if self._context.queue.was_taken_last(prompt.id):
            self._recorder.emit(UserMessageDelivered(prompt.id))
        await self._recorder.commit(prompt)

    async def before_turn(self, provider: Provider) -> None:
        """Prepare the next request: modes, queued messages, compaction."""
        self._context.modes.at_turn_boundary()
        await self._deliver_queued_messages()
        if self._is_context_full(provider):
            await self.compact(provider)

    def instruction_addenda(self, turn_id: str) -> tuple[str, ...]:
        """Return what is added to the instructions of this turn."""
        history = self._recorder.history()
        prompt = next((message.text for message in reversed(history) if is_own_prompt(message)), "")
        answer = next((message for message in reversed(history) if message.role is Role.ASSISTANT), None)
        tools = frozenset(call.name for call in answer.tool_uses) if answer is not None else frozenset[str]()
        modes = self._context.modes
        self._applied = self._context.policies.for_turn(turn_id, mode=modes.current.name, tools=tools, prompt=prompt)
        texts = (*(policy.text for policy in self._applied), modes.current.addendum)
        return tuple(text for text in texts if text)

    def on_answer_committed(self) -> None:
        """Mark the policies of this turn as used: its answer is in the history."""
        applied, self._applied = self._applied, ()
        self._context.policies.mark_used(applied)

    async def compact(self, provider: Provider) -> bool:
        """Summarise older messages for the model. Return False where nothing could be summarised, or it failed."""
        before, cost = self._last_input_tokens(), self._budget.cost
        try:
            summary = await self._compactor.compact(provider, self._recorder.history())
        finally:
            # A summary that came to nothing is billed too.
            if self._budget.cost is not None and self._budget.cost != cost:
                self._recorder.emit(CostUpdated(self._budget.cost))
        if summary is None:
            return False
        await self._recorder.commit(summary)
        block = next(block for block in summary.blocks if isinstance(block, Summary))
        self._recorder.emit(ContextCompacted(block.first_kept_id, block.text, before, summary.usage))
        return True

    async def after_tool_calls(self, answer: Message, turns: int) -> RunEnd | None:
        """Decide what follows answered calls. Return None to ask the model again."""
        ruling = await self._consult_guards("turn_end", answer, turns)
        return None if ruling in {"continue", "pass"} else _RUN_ENDS[ruling]

    async def after_final_answer(self, answer: Message, turns: int) -> RunEnd | None:
        """Decide what follows a final answer. Return None to go on: a guard wants it, or a message came in."""
        ruling = await self._consult_guards("turn_end", answer, turns)
        if ruling == "pass":
            ruling = await self._consult_guards("session_stop", answer, turns)
        if ruling == "pass":
            return None if await self._deliver_queued_messages() else RunEnd.COMPLETED
        return None if ruling == "continue" else _RUN_ENDS[ruling]

    async def _consult_guards(
        self, moment: Literal["turn_end", "session_stop"], answer: Message, turns: int
    ) -> Literal["pass", "continue", "stop", "abort"]:
        """Return what the guards want; a prompt to continue with is in the history then."""
        outcome = await self._context.guards.consult(
            moment,
            history=self._recorder.history(),
            stop_reason=answer.stop_reason,
            turns=turns,
            emit=self._recorder.emit,
        )
        if outcome.kind == "continue":
            prompt = Message.user(outcome.prompt)
            await self._recorder.commit(prompt.model_copy(update={"injected_by": outcome.guard_name}))
        return outcome.kind

    async def _deliver_queued_messages(self) -> bool:
        """Commit each message that waits for this moment; return whether there was one."""
        queue = self._context.queue
        delivered = False
        while (entry := next((queued for queued in queue.entries if queued.when == "soon"), None)) is not None:
            # A message that nobody would answer stays in the queue.
            await self._context.open_provider(self._settings.model)
            ruling = await self._run_prompt_hooks(entry.message)
            if entry not in queue.entries:
                # The person changed or removed it while the hooks ran: their ruling no longer counts.
                continue
            if not ruling.allowed:
                self._return_prompt(entry.message, ruling.reason)
                queue.remove(entry.id)
                continue
            delivered = True
            queue.remove(entry.id)
            self._recorder.emit(UserMessageDelivered(entry.id))
            await self._recorder.commit(ruling.prompt)
        return delivered

    async def _run_prompt_hooks(self, prompt: Message) -> PromptRuling:
        """Run the hooks on a prompt that a person wrote."""
        if prompt.injected_by is not None or not self._context.hooks.user_prompt_submit:
            return PromptRuling(allowed=True, prompt=prompt, reason="")
        return await run_prompt_hooks(self._context.hooks, UserPromptSubmit(prompt, self._recorder.history()))

    def _return_prompt(self, prompt: Message, reason: str) -> None:
        values = {"reason": reason or Sentence("a hook refused it.")}
        refused = Sentence("The message was not sent: {reason}", values).with_full_stop()
        self._recorder.emit(UserMessageReturned(prompt.id, str(refused)))
        self._recorder.emit(ErrorOccurred.of(WrongUse(refused, "Change the message and send it again.")))

    def _is_context_full(self, provider: Provider) -> bool:
        capabilities = provider.model_info(self._settings.model).capabilities
        if capabilities.context_window is None:
            return False
        for message in reversed(self._recorder.history()):
            if summary_of(message) is not None:
                # No answer came since the last summary.
                return False
            if message.role is Role.ASSISTANT and message.usage is not None:
                return is_compaction_due(message.usage, capabilities, COMPACT_AT)
        return False

    def _last_input_tokens(self) -> int | None:
        for message in reversed(self._recorder.history()):
            if message.role is Role.ASSISTANT and message.usage is not None:
                return message.usage.input_tokens
        return None
