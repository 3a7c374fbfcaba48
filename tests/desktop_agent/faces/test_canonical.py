"""Events as lines."""

from desktop_agent.faces.canonical import canonical
from desktop_agent.vocabulary.provider_events import ThinkingBlock


def test_the_family_of_a_server_is_no_part_of_the_providers_name() -> None:
    block = ThinkingBlock("Hm.", "openai-compat/vllm", {"field": "reasoning"})
    line = {"type": "thinking_block", "text": "Hm.", "provider": "openai-compat", "metadata": {"field": "reasoning"}}
    assert canonical(block) == line
