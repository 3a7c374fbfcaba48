"""Options and preferences: checked, with defaults and environment."""

from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import SecretStr, ValidationError

from desktop_agent.types.errors import WrongUse
from desktop_agent.types.options import AgentOptions
from desktop_agent.types.permissions import Mode, Rule, RuleEffect
from desktop_agent.types.policies import Hooks, Limits, PromptPolicy, Specialist
from desktop_agent.types.preferences import Preferences
from desktop_agent.types.providers import ProviderConfig
from desktop_agent.types.tool_calls import call_digest


def test_environment_gives_model_and_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DESKTOP_AGENT_MODEL", "m")
    monkeypatch.setenv("DESKTOP_AGENT_BASE_URL", "http://127.0.0.1:1/v1")
    options = AgentOptions()
    assert (options.model, options.base_url) == ("m", "http://127.0.0.1:1/v1")
    assert AgentOptions(model="other").model == "other"


def test_wrong_options_are_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DESKTOP_AGENT_MODEL", raising=False)
    with pytest.raises(WrongUse, match="max_tool_iterations"):
        AgentOptions(model="m", max_tool_iterations=0)


def test_a_key_is_not_in_repr() -> None:
    assert "sk-planted" not in repr(AgentOptions(model="m", api_key=SecretStr("sk-planted")))


def test_a_misplaced_key_is_not_in_the_error() -> None:
    for values in ({"api_key": ["sk-planted"]}, {"apikey": "sk-planted"}):
        with pytest.raises(WrongUse) as caught:
            AgentOptions(**{"model": "m", **values})
        assert "sk-planted" not in str(caught.value)
        assert caught.value.__cause__ is None


def test_without_a_model_there_are_no_options(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DESKTOP_AGENT_MODEL", raising=False)
    with pytest.raises(WrongUse, match="No model is named") as caught:
        AgentOptions()
    assert "DESKTOP_AGENT_MODEL" in str(caught.value.remedy)


def test_a_misspelled_option_is_named_with_the_one_that_was_meant() -> None:
    for name, remedy in (("sytem_prompt", "Did you mean system_prompt?"), ("colour", WrongUse.default_remedy)):
        with pytest.raises(WrongUse, match=f"There is no option “{name}”") as caught:
            AgentOptions(**{"model": "m", name: "x"})
        assert str(caught.value.remedy) == remedy


def test_every_preference_is_declared_for_people() -> None:
    for section in Preferences.model_fields:
        for name, field in type(getattr(Preferences(), section)).model_fields.items():
            assert field.title, f"{section}.{name}"
            assert field.description, f"{section}.{name}"


def test_bounds_hold_and_unknown_preferences_are_kept() -> None:
    with pytest.raises(ValidationError):
        Preferences.model_validate({"appearance": {"zoom": 5000}})
    newer = Preferences.model_validate({"appearance": {"sparkle": True}})
    assert newer.model_dump()["appearance"]["sparkle"] is True


def test_a_digest_depends_on_values_not_on_their_order() -> None:
    assert call_digest("t", {"a": 1, "b": 2}) == call_digest("t", {"b": 2, "a": 1})
    assert call_digest("t", {"a": 1}) != call_digest("t", {"a": 2})
    assert call_digest("t", {"a": 1}) != call_digest("u", {"a": 1})
    assert call_digest("t", {"a": "\ud800"})


def test_a_preset_is_a_server_by_name() -> None:
    addresses = {name: AgentOptions.preset(name, model="m").address for name in ("ollama", "lmstudio")}
    assert addresses == {"ollama": "http://127.0.0.1:11434/v1", "lmstudio": "http://127.0.0.1:1234/v1"}
    assert AgentOptions.preset("llamacpp", model="m").address.endswith(":8080/v1")
    assert AgentOptions.preset("vllm", model="m").address.endswith(":8000/v1")
    assert AgentOptions.preset("gemini", model="m").dialect == "gemini"
    with pytest.raises(WrongUse, match="“nobody”"):
        AgentOptions.preset("nobody", model="m")


def test_no_address_is_the_vendors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DESKTOP_AGENT_BASE_URL", raising=False)
    assert AgentOptions(model="m", dialect="anthropic").address == "https://api.anthropic.com"


@pytest.mark.parametrize("address", ["ftp://x", "nothing", "http://", "http://me:sk-planted@127.0.0.1/v1"])
def test_an_address_is_a_web_address_without_secrets(address: str) -> None:
    with pytest.raises(WrongUse, match="address") as caught:
        AgentOptions(model="m", base_url=address)
    assert "planted" not in str(caught.value)


@dataclass
class Named:
    """As much of a tool as options look at."""

    name: str
    schema: object = None
    run: object = None


def specialist(name: str, **values: Any) -> Specialist:
    return Specialist(name=name, description="d", system_prompt="s", **values)


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"tools": (len,)}, "“len” is not a tool"),
        ({"tools": (Named("a"), Named("a"))}, "“a” is there twice"),
        ({"tools": (Named("a"),), "specialists": (specialist("a"),)}, "“a” is there twice"),
        ({"mode": "nothing"}, "no mode “nothing”"),
        ({"specialists": (specialist("a", mode="nothing"),)}, "no mode “nothing”"),
        ({"policies": (PromptPolicy(id="p", text="x"),) * 2}, "“p” is there twice"),
        ({"hooks": "x"}, "hooks"),
        ({"approver": "sometimes"}, "approver"),
        ({"nonsense": 1}, "nonsense"),
    ],
)
def test_what_does_not_fit_is_said_at_once(values: dict[str, Any], why: str) -> None:
    with pytest.raises(WrongUse, match=why):
        AgentOptions(model="m", **values)


def test_the_builder_collects_and_checks_at_the_end() -> None:
    options = (
        AgentOptions.builder()
        .preset("ollama")
        .model("m", ProviderConfig(temperature=0.5, system_prompt="old"))
        .api_key("sk-planted")
        .system_prompt("new")
        .tools(Named("a"))
        .tools(Named("b"))
        .auto_execute_tools()
        .limits(Limits(turns=3))
        .mode("own", Mode(name="own", title="Own"))
        .rules(Rule(effect=RuleEffect.DENY, tool="a"))
        .policies(PromptPolicy(id="p", text="x"))
        .specialists(specialist("c"))
        .approver("always")
        .hooks(Hooks())
        .build()
    )
    assert [tool.name for tool in options.tools] == ["a", "b"]
    assert (options.mode, [mode.name for mode in options.modes][-1]) == ("own", "own")
    assert options.run_config == ProviderConfig(temperature=0.5, system_prompt="new")
    assert (options.run_limits.turns, options.auto_execute_tools) == (3, True)
    assert options.api_key is not None
    assert options.api_key.get_secret_value() == "sk-planted"
    assert "sk-planted" not in repr(options) + str(options)
    server = AgentOptions.builder().server("http://127.0.0.1:1/v1", "k", "anthropic").model("m").build()
    assert (server.dialect, server.address) == ("anthropic", "http://127.0.0.1:1/v1")
    with pytest.raises(WrongUse, match="model"):
        AgentOptions.builder().model("").build()


def test_tool_iterations_go_over_the_limits() -> None:
    limits = Limits(tool_iterations=7)
    assert AgentOptions(model="m", limits=limits).run_limits.tool_iterations == 7
    assert AgentOptions(model="m", limits=limits, max_tool_iterations=3).run_limits.tool_iterations == 3


def test_a_specialists_options_are_never_more_than_these() -> None:
    options = AgentOptions(
        model="m",
        system_prompt="lead",
        tools=(Named("a"), Named("b")),
        mode="plan",
        limits=Limits(turns=5, tokens=100, tool_iterations=9),
        specialists=(
            specialist(
                "one",
                tools=("b", "elsewhere"),
                mode="accept-edits",
                specialists=("two",),
                limits=Limits(turns=50, cost=1.0),
            ),
            specialist("two", model="small", mode="plan"),
        ),
    )
    one = options.for_specialist("one")
    assert [tool.name for tool in one.tools] == ["b"]
    assert [each.name for each in one.specialists] == ["two"]
    assert (one.mode, one.model, one.run_config.system_prompt) == ("plan", "m", "s")
    assert (one.run_limits.turns, one.run_limits.tokens, one.run_limits.cost) == (5, 100, 1.0)
    assert one.run_limits.tool_iterations == 9
    two = options.for_specialist("two")
    assert (two.model, two.tools, two.specialists) == ("small", (), ())
    with pytest.raises(WrongUse, match="“three”"):
        options.for_specialist("three")


def test_a_server_leaves_what_it_does_not_say() -> None:
    options = (
        AgentOptions.builder().api_key("k").dialect("anthropic").server("http://127.0.0.1:1/v1").model("m").build()
    )
    assert (options.dialect, options.base_url) == ("anthropic", "http://127.0.0.1:1/v1")
    assert options.key is not None
    assert options.key.get_secret_value() == "k"
