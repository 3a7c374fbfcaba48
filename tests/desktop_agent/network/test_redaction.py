"""Keys and secrets are removed from what a server writes."""

import json

import pytest

from desktop_agent.network.redaction import Redactor, redact_key


@pytest.mark.parametrize("key", ['sk-"quoted"-0123', "sk-back\\slash-0123", "sk/slash/0123456"])
def test_a_key_is_found_as_json_writes_it(key: str) -> None:
    for written in (key, json.dumps(key)[1:-1], json.dumps(json.dumps(key))[3:-3], key.replace("/", "\\/")):
        assert redact_key(f'{{"a": "<{written}>"}}'.encode(), key) == b'{"a": "<[key]>"}'


def test_a_placeholder_for_a_key_stays() -> None:
    assert redact_key(b"lm-studio is not running", "lm-studio") == b"lm-studio is not running"


def test_secrets_of_several_calls_are_hidden_whole() -> None:
    redactor = Redactor()
    redactor.add(["secret-a"])
    redactor.add(["secret-abc", "short"])
    assert redactor.redact("secret-abc, secret-a, short") == "•••, •••, short"


@pytest.mark.parametrize("limit", range(14))
def test_no_secret_is_cut_before_it_is_found(limit: int) -> None:
    redactor = Redactor()
    redactor.add(["secret-abc"])
    assert redactor.redact("ab secret-abc cd", limit) == "ab ••• cd"[:limit]
