"""Controls of a conversation: modes, rules, guards, prompt policies, message queue, approvals and questions.

All of it belongs to the event loop of the conversation. Before the first question it changes what the conversation
begins with; from then on what holds. Once the conversation is closed, changes raise WrongUse.
"""

from collections.abc import Iterable, Sequence

from desktop_agent.agent.questions import Question
from desktop_agent.api.conversation import ConversationRunner, to_prompt
from desktop_agent.permissions.approvals import AnswerReport, AnswerStatus, Approval
from desktop_agent.types.blocks import Block
from desktop_agent.types.errors import WrongUse
from desktop_agent.types.messages import Message
from desktop_agent.types.permissions import Mode, Rule
from desktop_agent.types.policies import Guard, Interrupt, PromptPolicy, QueuedMessage, When
from desktop_agent.types.tool_calls import Decision


class PolicyControl:
    """The prompt policies of a conversation: texts beside the instructions. They change text, never authority."""

    def __init__(self, conversation: ConversationRunner) -> None:
        self._conversation = conversation

    def list(self) -> tuple[PromptPolicy, ...]:
        """Return those that are installed, in the order in which they are applied."""
        session = self._conversation.session
        if session is not None:
            return session.policies.list()
        return tuple(sorted(self._conversation.initial_options.policies, key=lambda policy: policy.precedence))

    def install(self, policy: PromptPolicy) -> None:
        """Install one; the listener hears PolicyInstalled. Raises WrongUse for an id that is installed already."""
        session = self._conversation.session
        if session is not None:
            session.policies.install(
                policy.id, policy.text, scope=policy.scope, precedence=policy.precedence, trigger=policy.trigger
            )
        else:
            self._conversation.change_initial_options(policies=(*self._conversation.initial_options.policies, policy))

    def remove(self, policy_id: str) -> None:
        """Remove one; the listener hears PolicyRemoved. Raises WrongUse for an id that is not installed."""
        session = self._conversation.session
        if session is not None:
            session.policies.remove(policy_id)
            return
        kept = tuple(each for each in self._conversation.initial_options.policies if each.id != policy_id)
        if len(kept) == len(self._conversation.initial_options.policies):
            raise WrongUse(f"There is no prompt policy “{policy_id[:60]}”.", "Name one of those that are installed.")
        self._conversation.change_initial_options(policies=kept)


class GuardControl:
    """The continuation guards of a conversation: whether an agent that wants to end may end."""

    def __init__(self, conversation: ConversationRunner) -> None:
        self._conversation = conversation

    def list(self) -> tuple[Guard, ...]:
        """Return those that are asked, in order."""
        session = self._conversation.session
        return self._conversation.initial_options.guards if session is None else session.guards.list()

    def add(self, guard: Guard) -> None:
        """Add one; it is asked from the next end of a turn on. Raises WrongUse for a name that is taken."""
        session = self._conversation.session
        if session is not None:
            session.guards.add(guard)
        else:
            self._conversation.change_initial_options(guards=(*self._conversation.initial_options.guards, guard))

    def remove(self, name: str) -> None:
        """Remove one. Raises WrongUse for a name that no guard has."""
        session = self._conversation.session
        if session is not None:
            session.guards.remove(name)
            return
        kept = tuple(each for each in self._conversation.initial_options.guards if each.name != name)
        if len(kept) == len(self._conversation.initial_options.guards):
            raise WrongUse(f"There is no guard “{name[:60]}”.", "Name one of those that were added.")
        self._conversation.change_initial_options(guards=kept)


class RuleControl:
    """The rules of a conversation: what is denied, asked about, or allowed. A change holds at once."""

    def __init__(self, conversation: ConversationRunner) -> None:
        self._conversation = conversation

    def list(self) -> tuple[Rule, ...]:
        """Return all, those among them that decisions of the person made."""
        session = self._conversation.session
        return self._conversation.initial_options.rules if session is None else session.permission_policy.rules

    def add(self, rule: Rule) -> None:
        """Add one; it holds for every call that has not started."""
        session = self._conversation.session
        if session is not None:
            session.permission_policy.add(rule)
        else:
            self._conversation.change_initial_options(rules=(*self._conversation.initial_options.rules, rule))

    def revoke(self, rule_id: str) -> bool:
        """Take one back. Returns False when there is none of this id."""
        session = self._conversation.session
        if session is not None:
            return session.permission_policy.revoke(rule_id) is not None
        kept = tuple(each for each in self._conversation.initial_options.rules if each.id != rule_id)
        is_there = len(kept) < len(self._conversation.initial_options.rules)
        self._conversation.change_initial_options(rules=kept)
        return is_there


class MessageQueue:
    """Steering: messages that wait while the agent works. Each is delivered once or handed back."""

    def __init__(self, conversation: ConversationRunner) -> None:
        self._conversation = conversation

    def list(self) -> tuple[QueuedMessage, ...]:
        """Return those that wait, the next to be delivered first."""
        session = self._conversation.session
        return () if session is None else session.queue.entries

    def add(self, prompt: str | Message, when: When = "soon", *, expected_turn: str | None = None) -> str:
        """Add a message and return its id.

        `soon`: the model reads it behind the tool results of this turn. `idle`: when the run has ended, it begins the
        next one, which `receive` and `continue_` go on to read. Where no run is under way it begins one at once.
        Raises TurnMismatch when the agent is at another turn than `expected_turn` (see Client.turn_id), and WrongUse
        for what is no prompt and before the first question.
        """
        message = to_prompt(prompt)
        self._conversation.steer(message, when, expected_turn)
        return message.id

    def edit(self, message_id: str, prompt: str | Sequence[Block] | None = None, *, when: When | None = None) -> None:
        """Say something else instead, or at another moment; its place stays. Raises WrongUse when it does not wait."""
        blocks = to_prompt(prompt).blocks if isinstance(prompt, str) else prompt
        self._conversation.opened_session.queue.edit(message_id, blocks, when=when)

    def move(self, message_id: str, position: int) -> None:
        """Put it at this position, counted from 0. Raises WrongUse when it does not wait."""
        self._conversation.opened_session.queue.move(message_id, position)

    def withdraw(self, message_id: str) -> Message:
        """Take it out and return it. Raises WrongUse when it does not wait any more."""
        return self._conversation.opened_session.queue.remove(message_id).message

    def returned(self, message_id: str) -> Message | None:
        """Return a message that was handed back (see UserMessageReturned), once; None where there is none."""
        session = self._conversation.session
        return None if session is None else session.returned(message_id)


class ApprovalControl:
    """Calls that wait for a person's decision, where the options' `approver` is "wait" or takes its time."""

    def __init__(self, conversation: ConversationRunner) -> None:
        self._conversation = conversation

    def list(self) -> tuple[Approval, ...]:
        """Return those that wait, oldest first, also those of specialists."""
        session = self._conversation.session
        return () if session is None else session.approvals.open_approvals

    def answer(self, approval_id: str, decision: Decision) -> AnswerReport:
        """Decide about one. The first decision counts; a later one changes nothing, and the report says what stands.

        Raises ToolInputInvalid for edited arguments that do not fit the tool, and WrongUse for a rule that was not
        proposed; the approval still waits then.
        """
        session = self._conversation.session
        if session is None:
            return AnswerReport(approval_id, AnswerStatus.UNKNOWN)
        return session.approvals.answer(approval_id, decision)


class QuestionControl:
    """Questions of the agent that wait for an answer, where the options say `ask_user`."""

    def __init__(self, conversation: ConversationRunner) -> None:
        self._conversation = conversation

    def list(self) -> tuple[Question, ...]:
        """Return those that wait, oldest first."""
        session = self._conversation.session
        return () if session is None else session.questions.open_questions

    def answer(self, question_id: str, answer: str | Iterable[str]) -> bool:
        """Answer one: with a choice, several of them, or words. The first answer counts.

        Returns False for a question that has ended or never was. Raises WrongUse for what is no answer to it; the
        question still waits then.
        """
        session = self._conversation.session
        return session is not None and session.questions.answer(question_id, answer)


class Controls:
    """All of it for one conversation: what a session can do, its caller can, at any moment."""

    def __init__(self, conversation: ConversationRunner) -> None:
        self._conversation = conversation
        self.policies = PolicyControl(conversation)
        self.guards = GuardControl(conversation)
        self.rules = RuleControl(conversation)
        self.queue = MessageQueue(conversation)
        self.approvals = ApprovalControl(conversation)
        self.questions = QuestionControl(conversation)

    @property
    def turn_id(self) -> str | None:
        """The turn that runs, as `queue.add` may expect it; None when none does."""
        session = self._conversation.session
        return None if session is None else session.turn_id

    @property
    def mode(self) -> Mode:
        """The mode that holds."""
        session, options = self._conversation.session, self._conversation.initial_options
        if session is not None:
            return session.modes.current
        return next(mode for mode in options.modes if mode.name == options.mode)

    @property
    def modes(self) -> tuple[Mode, ...]:
        """All that can be chosen."""
        return self._conversation.initial_options.modes

    def set_mode(self, mode: str | Mode) -> None:
        """Change the mode at once, for every call that has not started; the agent's own request is void.

        A Mode of the caller's own is added to those that can be chosen, in place of one of the same name.
        Raises WrongUse for a name that no mode has.
        """
        self._conversation.set_mode(mode)

    def cancel_mode_request(self) -> bool:
        """Take back the mode that the agent asked for. Returns False when it asked for none."""
        session = self._conversation.session
        return session is not None and session.modes.cancel_request()

    def interrupt(self, target: Interrupt | None = None) -> bool:
        """Stop at once; see Client.interrupt. Returns False where there is nothing to stop."""
        return self._conversation.interrupt(target)
