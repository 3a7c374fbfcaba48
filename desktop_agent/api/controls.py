"""Controls of a conversation: modes, rules, guards, prompt policies, message queue, approvals and questions.

All of it belongs to the event loop of the conversation. Before the first question they change the initial options; from
then on the session. Once the conversation is closed, changes raise WrongUse.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, get_args

from desktop_agent.agent.questions import Question
from desktop_agent.api.conversation import ConversationRunner, to_prompt
from desktop_agent.permissions.approvals import AnswerReport, AnswerStatus, Approval
from desktop_agent.processes.foreign_code import type_name
from desktop_agent.types.blocks import Block
from desktop_agent.types.errors import WrongUse
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.permissions import Mode, Rule
from desktop_agent.types.policies import Guard, Interrupt, PromptPolicy, QueuedMessage, When
from desktop_agent.types.tool_calls import Decision

if TYPE_CHECKING:
    from desktop_agent.engine.session import Session


class _Control:
    def __init__(self, conversation: ConversationRunner) -> None:
        self._conversation = conversation

    @property
    def _session(self) -> "Session | None":
        return self._conversation.session


def _require(value: object, kind: type) -> None:
    if not isinstance(value, kind):
        raise WrongUse(f"This is no {kind.__name__} but {type_name(value)}.", f"Make it with {kind.__name__}(…).")


class PolicyControl(_Control):
    """The prompt policies of a conversation: texts beside the instructions. They change text, never authority."""

    def list(self) -> tuple[PromptPolicy, ...]:
        """Return the installed policies, in the order in which they are applied."""
        if (session := self._session) is not None:
            return session.policies.list()
        return tuple(sorted(self._conversation.initial_options.policies, key=lambda policy: policy.precedence))

    def install(self, policy: PromptPolicy) -> None:
        """Install a policy; listeners get PolicyInstalled. Raises WrongUse for an id that is installed already."""
        _require(policy, PromptPolicy)
        if (session := self._session) is not None:
            session.policies.install(policy)
        else:
            self._conversation.change_initial_options(policies=(*self._conversation.initial_options.policies, policy))

    def remove(self, policy_id: str) -> None:
        """Remove a policy; listeners get PolicyRemoved. Raises WrongUse for an id that is not installed."""
        if (session := self._session) is not None:
            session.policies.remove(policy_id)
            return
        policies = self._conversation.initial_options.policies
        kept = tuple(policy for policy in policies if policy.id != policy_id)
        if len(kept) == len(policies):
            raise WrongUse(f"There is no prompt policy “{policy_id[:60]}”.", "Name one of those that are installed.")
        self._conversation.change_initial_options(policies=kept)


class GuardControl(_Control):
    """The continuation guards of a conversation: whether an agent that wants to end may end."""

    def list(self) -> tuple[Guard, ...]:
        """Return the guards, in the order in which they are asked."""
        session = self._session
        return self._conversation.initial_options.guards if session is None else session.guards.list()

    def add(self, guard: Guard) -> None:
        """Add a guard; it is asked from the next end of a turn on. Raises WrongUse for a name that is taken."""
        _require(guard, Guard)
        if (session := self._session) is not None:
            session.guards.add(guard)
        else:
            self._conversation.change_initial_options(guards=(*self._conversation.initial_options.guards, guard))

    def remove(self, name: str) -> None:
        """Remove a guard. Raises WrongUse for an unknown name."""
        if (session := self._session) is not None:
            session.guards.remove(name)
            return
        guards = self._conversation.initial_options.guards
        kept = tuple(guard for guard in guards if guard.name != name)
        if len(kept) == len(guards):
            raise WrongUse(f"There is no guard “{name[:60]}”.", "Name one of those that were added.")
        self._conversation.change_initial_options(guards=kept)


class RuleControl(_Control):
    """The rules of a conversation: what is denied, asked about, or allowed. A change holds at once."""

    def list(self) -> tuple[Rule, ...]:
        """Return all rules, with those that decisions of the person made."""
        session = self._session
        return self._conversation.initial_options.rules if session is None else session.permission_policy.rules

    def add(self, rule: Rule) -> None:
        """Add a rule; it holds for every call that has not started."""
        _require(rule, Rule)
        if (session := self._session) is not None:
            session.permission_policy.add(rule)
        else:
            self._conversation.change_initial_options(rules=(*self._conversation.initial_options.rules, rule))

    def revoke(self, rule_id: str) -> bool:
        """Remove a rule. Returns False when there is none of this id."""
        if (session := self._session) is not None:
            return session.permission_policy.revoke(rule_id) is not None
        rules = self._conversation.initial_options.rules
        kept = tuple(rule for rule in rules if rule.id != rule_id)
        self._conversation.change_initial_options(rules=kept)
        return len(kept) < len(rules)


class MessageQueue(_Control):
    """Steering: messages that wait while the agent works. Each is delivered once or handed back."""

    def list(self) -> tuple[QueuedMessage, ...]:
        """Return the queued messages, the next to be delivered first."""
        session = self._session
        return () if session is None else session.queue.entries

    def add(self, prompt: str | Message, when: When = "soon", *, expected_turn: str | None = None) -> str:
        """Add a message and return its id.

        `soon`: the model reads it after the tool results of this turn. `idle`: when the run has ended, it begins the
        next one, which `receive` and `continue_` go on to read. Where no run goes on it begins one at once. Raises
        TurnMismatch when the agent is at another turn than `expected_turn` (see Client.turn_id), and WrongUse for what
        is no prompt and before the first question.
        """
        message = to_prompt(prompt)
        _require_moment(when)
        self._conversation.steer(message, when, expected_turn)
        return message.id

    def edit(self, message_id: str, prompt: str | Sequence[Block] | None = None, *, when: When | None = None) -> None:
        """Change the text or the moment of a queued message; its place stays. Raises WrongUse when it does not wait."""
        if when is not None:
            _require_moment(when)
        if prompt is None or isinstance(prompt, str):
            message = prompt
        else:
            # Unchecked: to_prompt says in a sentence what is wrong with the blocks.
            message = Message.model_construct(role=Role.USER, blocks=tuple(prompt))
        blocks = None if message is None else to_prompt(message).blocks
        self._conversation.opened_session.queue.edit(message_id, blocks, when=when)

    def move(self, message_id: str, position: int) -> None:
        """Move a message to this position, counted from 0. Raises WrongUse when it does not wait."""
        self._conversation.opened_session.queue.move(message_id, position)

    def withdraw(self, message_id: str) -> Message:
        """Remove a message and return it. Raises WrongUse when it does not wait any more."""
        return self._conversation.opened_session.queue.remove(message_id).message

    def returned(self, message_id: str) -> Message | None:
        """Return a message that was handed back (see UserMessageReturned), once; None where there is none."""
        session = self._session
        return None if session is None else session.returned(message_id)


def _require_moment(when: str) -> None:
    if when not in get_args(When):
        raise WrongUse(f"A message cannot be delivered “{when}”.", f"Say one of: {', '.join(get_args(When))}.")


class ApprovalControl(_Control):
    """Calls that wait for a person's decision, where the options' `approver` is "wait" or takes its time."""

    def list(self) -> tuple[Approval, ...]:
        """Return the open approvals, oldest first, also those of specialists."""
        session = self._session
        return () if session is None else session.approvals.open_approvals

    def answer(self, approval_id: str, decision: Decision) -> AnswerReport:
        """Decide about a call. The first decision counts; a later one changes nothing, and the report says what holds.

        Raises ToolInputInvalid for edited arguments that do not fit the tool, and WrongUse for a rule that was not
        proposed; the approval still waits then.
        """
        session = self._session
        if session is None:
            return AnswerReport(approval_id, AnswerStatus.UNKNOWN)
        return session.approvals.answer(approval_id, decision)


class QuestionControl(_Control):
    """Questions of the agent that wait for an answer, where the options say `ask_user`."""

    def list(self) -> tuple[Question, ...]:
        """Return the open questions, oldest first."""
        session = self._session
        return () if session is None else session.questions.open_questions

    def answer(self, question_id: str, answer: str | Iterable[str]) -> bool:
        """Answer a question with a choice, several of them, or text. The first answer counts.

        Returns False for a question that has ended or never was. Raises WrongUse for what is no answer to it; the
        question still waits then.
        """
        session = self._session
        return session is not None and session.questions.answer(question_id, answer)


class Controls(_Control):
    """All controls of one conversation, to be used at any moment."""

    def __init__(self, conversation: ConversationRunner) -> None:
        super().__init__(conversation)
        self.policies = PolicyControl(conversation)
        self.guards = GuardControl(conversation)
        self.rules = RuleControl(conversation)
        self.queue = MessageQueue(conversation)
        self.approvals = ApprovalControl(conversation)
        self.questions = QuestionControl(conversation)

    @property
    def turn_id(self) -> str | None:
        """The running turn, as `queue.add` may expect it; None when none runs."""
        session = self._session
        return None if session is None else session.turn_id

    @property
    def mode(self) -> Mode:
        """The current mode."""
        session, options = self._conversation.session, self._conversation.initial_options
        if session is not None:
            return session.modes.current
        return next(mode for mode in options.modes if mode.name == options.mode)

    @property
    def modes(self) -> tuple[Mode, ...]:
        """All modes that can be chosen."""
        return self._conversation.initial_options.modes

    def set_mode(self, mode: str | Mode) -> None:
        """Change the mode at once, for every call that has not started; a mode request of the agent is dropped.

        A Mode of the caller's own is added to those that can be chosen, in place of one of the same name. Raises
        WrongUse for an unknown name.
        """
        if not isinstance(mode, str):
            _require(mode, Mode)
        self._conversation.set_mode(mode)

    def cancel_mode_request(self) -> bool:
        """Drop the mode that the agent asked for. Returns False when it asked for none."""
        session = self._session
        return session is not None and session.modes.cancel_request()

    def interrupt(self, target: Interrupt | None = None) -> bool:
        """Stop at once. Returns False, and does nothing, where there is nothing to stop.

        By default the run stops and queued messages are handed back. While the caller has calls of the answer, the
        model is not asked again when their results go on. `StopTurn()` leaves queued messages, which are sent next;
        `StopTool(id)` ends one call as cancelled, and the run goes on.
        """
        return self._conversation.interrupt(target)
