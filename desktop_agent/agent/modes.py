"""The modes of one agent: what may run unasked."""

from collections.abc import Callable, Iterable
from weakref import WeakSet

from pydantic import BaseModel, ConfigDict, Field

from desktop_agent.permissions.policy import PermissionPolicy
from desktop_agent.tools.tool import ModelSchema, RunningCall, Tool
from desktop_agent.types.blocks import Text
from desktop_agent.types.engine_events import Authority, EngineEvent, ModeChanged, ModeChangeRequested
from desktop_agent.types.errors import Sentence, ToolFailed, WrongUse
from desktop_agent.types.messages import now
from desktop_agent.types.permissions import BUILT_IN_MODES, Mode, fallback_mode
from desktop_agent.types.tool_calls import ToolClass


class ModeSwitch:
    """Changes the mode that `permission_policy` holds. Lives on the event loop.

    `list_modes` is called afresh for the modes that can be chosen; `refresh_modes` applies their changes. `emit`
    receives the events. A ModeChangeRequested is always followed by a ModeChanged or by a newer request; a
    ModeChanged that names the same mode twice means that the request was dropped. `removed_mode` is a removed mode
    whose restrictions still hold, None where the current one can be chosen; `on_removed` is called when one is removed,
    with it and the one that holds now.
    `refuse_when_closed` raises before any change once the conversation is closed.
    """

    def __init__(
        self,
        permission_policy: PermissionPolicy,
        list_modes: Callable[[], Iterable[Mode]] = lambda: BUILT_IN_MODES,
        emit: Callable[[EngineEvent], None] = lambda _event: None,
        removed: Mode | None = None,
        on_removed: Callable[[Mode, Mode], None] = lambda _removed, _now: None,
        refuse_when_closed: Callable[[], None] = lambda: None,
    ) -> None:
        self._permission_policy = permission_policy
        self.removed_mode = removed
        self._on_removed = on_removed
        self._refuse_when_closed = refuse_when_closed
        self._list_modes = list_modes
        self._known_names = frozenset(self._modes_by_name)
        if len(self._known_names) < len(self.modes):
            raise WrongUse("Two modes have the same name.", "Give each mode a name of its own.")
        self._emit = emit
        self.requested: ModeChangeRequested | None = None
        """What the agent asked for. Once `is_announced`, the next turn boundary applies it."""
        self.is_announced = False
        self._nested_switches: WeakSet[ModeSwitch] = WeakSet()

    def nested(self, permission_policy: PermissionPolicy, emit: Callable[[EngineEvent], None]) -> "ModeSwitch":
        """Return the switch for an agent that this one starts, with the same modes to choose from."""
        switch = ModeSwitch(
            permission_policy,
            self._list_modes,
            emit,
            self.removed_mode if permission_policy.mode == self.current else None,
        )
        self._nested_switches.add(switch)
        return switch

    @property
    def current(self) -> Mode:
        return self._permission_policy.mode

    @property
    def modes(self) -> tuple[Mode, ...]:
        return tuple(self._list_modes())

    def set_by_person(self, name: str) -> None:
        """Apply a mode at once, to every call that has not started; a request of the agent is void. Raises WrongUse."""
        self._refuse_when_closed()
        mode = self._modes_by_name.get(name)
        if mode is None:
            raise WrongUse(Sentence("There is no mode “{name}”.", {"name": name[:80]}), "Choose one of the modes.")
        if mode != self.current:
            self.requested = None
            self._change(mode, "person")
        else:
            self.removed_mode = None
            self.cancel_request()

    def request_by_agent(self, name: str) -> None:
        """Note the agent's request; a newer one replaces it. Raises ToolFailed where it must not be granted."""
        self._refuse_when_closed()
        mode = self._modes_by_name.get(name)
        if mode is None:
            known = ", ".join(self._modes_by_name)
            raise ToolFailed(f"There is no mode “{name[:80]}”.", f"Choose one of: {known}.")
        if mode == self.current:
            raise ToolFailed(f"The mode is “{name}” already.", "Go on.")
        if _is_wider(mode, self.current):
            raise ToolFailed(
                f"The mode “{name}” allows more than “{self.current.name}”; only the person can choose it.",
                "Say why it is needed and let the person change the mode.",
            )
        self.requested, self.is_announced = ModeChangeRequested(self.current.name, name, now()), False

    def cancel_request(self) -> bool:
        """Drop the agent's request; False when there is none."""
        self._refuse_when_closed()
        request, self.requested = self.requested, None
        if request is not None and self.is_announced:
            self._emit(ModeChanged(self.current.name, self.current.name, "person"))
        return request is not None

    def refresh_modes(self) -> Mode | None:
        """Apply at once that the person changed the modes that can be chosen.

        A changed mode holds as it is now. If the current mode was removed, return it; a narrower one holds until the
        person chooses, see `fallback_mode`. A request of the agent for a removed mode is void. Once the conversation is
        closed nothing changes.
        """
        try:
            self._refuse_when_closed()
        except WrongUse:
            return None
        modes, current = self._modes_by_name, self.current
        was_known, self._known_names = current.name in self._known_names, frozenset(modes)
        if self.requested is not None and self.requested.to_mode not in modes:
            self.cancel_request()
        is_lost = was_known and self.removed_mode is None and current.name not in modes
        mode = fallback_mode(current) if is_lost else self._current_definition(current, modes)
        if mode.name != current.name:
            self._change(mode, "person")
        elif mode != current:
            self._permission_policy.set_mode(mode)
        if is_lost and mode.name == current.name:
            self.removed_mode = current
        for switch in tuple(self._nested_switches):
            switch.refresh_modes()
        if is_lost:
            self._on_removed(current, self.current)
        return current if is_lost else None

    def _current_definition(self, current: Mode, modes: dict[str, Mode]) -> Mode:
        if self.removed_mode is None:
            return modes.get(current.name, current)
        if modes.get(current.name) != self.removed_mode:
            return current
        restored, self.removed_mode = self.removed_mode, None
        return restored

    def at_turn_boundary(self) -> None:
        """Announce what the agent asked for, and apply what was announced at the boundary before."""
        request = self.requested
        if request is None:
            return
        if not self.is_announced:
            self.is_announced = True
            self._emit(request)
            return
        self.requested = None
        mode = self._modes_by_name.get(request.to_mode, self.current)
        self._change(self.current if _is_wider(mode, self.current) else mode, "agent")

    @property
    def _modes_by_name(self) -> dict[str, Mode]:
        return {mode.name: mode for mode in self._list_modes()}

    def _change(self, mode: Mode, authority: Authority) -> None:
        before, self.removed_mode = self.current, None
        if mode != before:
            self._permission_policy.set_mode(mode)
        self._emit(ModeChanged(before.name, mode.name, authority))


def _is_wider(mode: Mode, other: Mode) -> bool:
    """Return whether `mode` allows more; true also where rules of one id differ, as these cannot be compared."""
    rules = {rule.id: rule for rule in other.rules}
    return mode.is_wider_than(other) or any(rules.get(rule.id, rule) != rule for rule in mode.rules)


class ChangeModeInput(BaseModel):
    """Which mode."""

    model_config = ConfigDict(extra="forbid")

    mode: str = Field(min_length=1, max_length=40, description="The name of the mode.")


def change_mode(switch: ModeSwitch) -> Tool[ChangeModeInput]:
    """Return the tool `change_mode`. It counts as read-only: it can only take authority away from the calling agent."""

    async def run(arguments: ChangeModeInput, call: RunningCall) -> tuple[Text, ...]:
        if call.agent_path:
            raise ToolFailed("Only the root agent can ask for another mode.", "Go on in the mode that holds.")
        switch.request_by_agent(arguments.mode)
        return (
            Text(
                text=f"The mode “{arguments.mode}” is announced to the person after this turn and holds one turn "
                "later, unless the person decides otherwise."
            ),
        )

    names = ", ".join(f"{mode.name} ({mode.title})" for mode in switch.modes)
    return Tool(
        name="change_mode",
        description=(
            "Ask for another mode. Only a mode that allows no more than the present one is granted; the person is told "
            f"first and may object. Modes: {names}."
        ),
        schema=ModelSchema(ChangeModeInput),
        run=run,
        tool_class=ToolClass.READ_ONLY,
    )
