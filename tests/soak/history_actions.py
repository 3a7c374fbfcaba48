"""All actions that the kills and the refusals draw from. A new one is a function and an entry in a table."""

from collections.abc import Mapping

from tests.soak.answer_actions import ANSWER_ACTIONS
from tests.soak.exchange_actions import EXCHANGE_ACTIONS
from tests.soak.history_world import Action
from tests.soak.list_actions import LIST_ACTIONS

ACTIONS: Mapping[str, Action] = {**ANSWER_ACTIONS, **LIST_ACTIONS, **EXCHANGE_ACTIONS}
