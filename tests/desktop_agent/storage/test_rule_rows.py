"""Permission rules in the database."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from desktop_agent.storage.opening import open_database
from desktop_agent.storage.records import StoredRules, rule_to_json
from desktop_agent.storage.store import Store
from desktop_agent.types.messages import now
from desktop_agent.types.permissions import (
    CommandPattern,
    CommandsPattern,
    HostPattern,
    PathPattern,
    Pattern,
    Rule,
    RuleEffect,
    RuleScope,
)


@pytest.mark.parametrize(
    "pattern",
    [
        None,
        PathPattern(prefix="/home/me/é"),
        HostPattern(host="*.example.org"),
        CommandPattern(words=("git", "")),
        CommandsPattern(title="git, “only” {looking}", beginnings=(("git", "log"), ("é",))),
    ],
)
async def test_a_rule_comes_back_as_it_was(tmp_path: Path, pattern: Pattern | None) -> None:
    rule = Rule(
        effect=RuleEffect.ASK,
        tool="edit_file @ /w",
        also=("write_file @ /w", "é"),
        pattern=pattern,
        scope=RuleScope.WORKSPACE,
        workspace="/w",
        origin="you",
        expires_at=now() + timedelta(days=1),
    )
    store = await Store.open(tmp_path)
    await store.rules.save(rule)
    await store.close()
    store = await Store.open(tmp_path)
    assert await store.rules.all() == (rule,)
    await store.close()


async def test_saving_again_replaces_and_deleting_forgets(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    first, second = (Rule(effect=RuleEffect.ALLOW, tool=name, scope=RuleScope.ALWAYS) for name in "ab")
    await store.rules.save(first)
    await store.rules.save(second)
    changed = first.model_copy(update={"effect": RuleEffect.DENY})
    await store.rules.save(changed)
    assert await store.rules.all() == (changed, second)
    await store.rules.delete(first.id)
    await store.rules.delete("nobody")
    assert await store.rules.all() == (second,)
    await store.close()


async def test_the_last_use_of_a_rule_is_stored(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    rule = Rule(effect=RuleEffect.ALLOW, tool="t")
    await store.rules.save(rule)
    moment = now()
    await store.rules.mark_used(rule.id, moment)
    assert await store.rules.all() == (rule.model_copy(update={"last_used_at": moment}),)
    await store.close()


async def test_the_rules_of_a_conversation_go_with_it_and_no_others(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    deleted = await store.create_conversation(title="gone")
    remaining = await store.create_conversation(title="kept")
    rules = [
        Rule(effect=RuleEffect.ALLOW, tool="t", conversation_id=conversation.id)
        for conversation in (deleted, remaining)
    ]
    always = Rule(effect=RuleEffect.ALLOW, tool="t", scope=RuleScope.ALWAYS)
    for rule in (*rules, always):
        await store.rules.save(rule)
    await store.delete_conversation(deleted.id)
    assert len(await store.rules.all()) == 3  # it may still be taken out of the trash
    await store.empty_trash()
    assert await store.rules.all() == (rules[1], always)
    await store.close()


async def test_a_rule_that_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    rule = Rule(effect=RuleEffect.ALLOW, tool="t")
    await store.rules.save(rule)
    await store.close()
    connection = open_database(tmp_path).connection
    connection.execute("INSERT INTO rules (id, body) VALUES ('x', '{\"effect\":\"perhaps\"}')")
    connection.close()
    store = await Store.open(tmp_path)
    assert await store.rules.all() == (rule,)
    await store.close()


@pytest.mark.parametrize("effect", [RuleEffect.DENY, RuleEffect.ASK])
@pytest.mark.parametrize(
    ("spoiled", "tool", "scope"),
    [
        ({"pattern": {"type": "of_a_later_version"}}, "t", RuleScope.WORKSPACE),
        ({"only_on": "sundays"}, "t", RuleScope.WORKSPACE),
        ({"tool": ["t", "u"]}, "*", RuleScope.WORKSPACE),
        ({"scope": "this_week", "tool": 3}, "*", RuleScope.ALWAYS),
        ({"scope": "conversation", "conversation_id": 5}, "t", RuleScope.ALWAYS),
        ({"also": "u"}, "*", RuleScope.WORKSPACE),
        ({"also": ["u", 3]}, "*", RuleScope.WORKSPACE),
        ({"also": [""]}, "*", RuleScope.WORKSPACE),
        ({"pattern": {"type": "commands", "title": "t", "beginnings": []}}, "t", RuleScope.WORKSPACE),
    ],
)
async def test_of_a_rule_that_keeps_calls_back_what_is_understood_holds(
    tmp_path: Path, effect: RuleEffect, spoiled: dict[str, Any], tool: str, scope: RuleScope
) -> None:
    rule = Rule(
        effect=effect, tool="t", pattern=HostPattern(host="h"), scope=RuleScope.WORKSPACE, workspace="/w", origin="a"
    )
    await _spoil(tmp_path, rule, spoiled)
    store = await Store.open(tmp_path)
    stored = await store.rules.load()
    assert (stored.stricter, stored.lost) == (1, 0)
    (stored_rule,) = stored.rules
    assert (stored_rule.id, stored_rule.effect, stored_rule.tool, stored_rule.scope) == (rule.id, effect, tool, scope)
    assert (stored_rule.workspace, stored_rule.origin, stored_rule.created_at) == ("/w", "a", rule.created_at)
    assert stored_rule.pattern == (None if "pattern" in spoiled else rule.pattern)
    await store.rules.delete(rule.id)
    assert await store.rules.all() == ()
    await store.close()


async def test_a_rule_of_before_there_were_several_tools_in_one_comes_back(tmp_path: Path) -> None:
    rule = Rule(effect=RuleEffect.ALLOW, tool="t", pattern=CommandPattern(words=("git", "log")))
    store = await Store.open(tmp_path)
    await store.rules.save(rule)
    await store.close()
    connection = open_database(tmp_path).connection
    body = json.loads(rule_to_json(rule))
    del body["also"]
    connection.execute("UPDATE rules SET body = ?", (json.dumps(body),))
    connection.close()
    store = await Store.open(tmp_path)
    assert await store.rules.load() == StoredRules((rule,))
    await store.close()


@pytest.mark.parametrize(
    "spoiled",
    [
        {"pattern": {"type": "later"}},
        {"pattern": {"type": "commands", "title": "t", "beginnings": []}},
        {"pattern": {"type": "commands", "title": "t", "beginnings": [["git"], []]}},
        {"also": ["u", ""]},
        {"effect": ["deny"]},
        {"effect": "perhaps"},
    ],
)
async def test_a_rule_that_allows_or_says_nothing_clear_holds_no_more(tmp_path: Path, spoiled: dict[str, Any]) -> None:
    await _spoil(tmp_path, Rule(effect=RuleEffect.ALLOW, tool="t"), spoiled)
    store = await Store.open(tmp_path)
    assert await store.rules.load() == StoredRules((), lost=1)
    await store.close()


async def _spoil(folder: Path, rule: Rule, parts: dict[str, Any]) -> None:
    store = await Store.open(folder)
    await store.rules.save(rule)
    await store.close()
    connection = open_database(folder).connection
    body = json.dumps({**json.loads(rule_to_json(rule)), **parts})
    connection.execute("UPDATE rules SET body = ?", (body,))
    connection.close()
