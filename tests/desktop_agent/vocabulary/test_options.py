"""Options and preferences: checked, with defaults and environment."""

import pytest
from pydantic import SecretStr, ValidationError

from desktop_agent.vocabulary.errors import WrongUse
from desktop_agent.vocabulary.options import AgentOptions
from desktop_agent.vocabulary.preferences import Preferences
from desktop_agent.vocabulary.tool_calls import call_digest


def test_environment_gives_model_and_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DESKTOP_AGENT_MODEL", "m")
    monkeypatch.setenv("DESKTOP_AGENT_BASE_URL", "http://127.0.0.1:1/v1")
    options = AgentOptions()
    assert (options.model, options.base_url) == ("m", "http://127.0.0.1:1/v1")
    assert AgentOptions(model="other").model == "other"


def test_wrong_options_are_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DESKTOP_AGENT_MODEL", raising=False)
    with pytest.raises(WrongUse, match="max_tool_iterations"):
        AgentOptions.checked(model="m", max_tool_iterations=0)


def test_a_key_is_not_in_repr() -> None:
    assert "sk-planted" not in repr(AgentOptions(model="m", api_key=SecretStr("sk-planted")))


def test_a_misplaced_key_is_not_in_the_error() -> None:
    with pytest.raises(ValidationError) as caught:
        AgentOptions.model_validate({"model": "m", "api_key": ["sk-planted"], "apikey": "sk-planted"})
    assert "sk-planted" not in str(caught.value)


def test_without_a_model_there_are_no_options(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DESKTOP_AGENT_MODEL", raising=False)
    with pytest.raises(WrongUse, match="model"):
        AgentOptions.checked()


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
