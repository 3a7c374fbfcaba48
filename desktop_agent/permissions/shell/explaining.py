"""A shell line for the person who decides about it: its commands one by one, and what to look at in each.

Only a help for reading. What may run is decided elsewhere, and a command without a risk here may be anything.
"""

import re
from collections.abc import Iterator, Mapping

from desktop_agent.permissions.shell.commands import Command, parse_line
from desktop_agent.permissions.shell.nodes import Redirection, word_set
from desktop_agent.permissions.shell.wrappers import SHELLS, program_name
from desktop_agent.vocabulary.text.lookalikes import Lookalike, ascii_lookalike, find_lookalike
from desktop_agent.vocabulary.tool_calls import CommandPart, Risk

_RISKY_PROGRAMS: Mapping[Risk, frozenset[str]] = {
    Risk.DELETES: word_set("rm rmdir unlink shred truncate dd wipefs mkfs"),
    Risk.WRITES: word_set("mv cp install ln chmod chown chgrp touch tee patch dd rsync"),
    Risk.NETWORK: word_set(
        "curl wget ssh scp sftp rsync ftp nc ncat telnet ping dig nslookup pip pip3 npm npx pnpm yarn uv uvx apt "
        "apt-get brew gem docker podman kubectl gh aws gcloud az"
    ),
    Risk.PRIVILEGES: word_set("sudo doas su pkexec chroot setcap mount umount systemctl service kill killall pkill"),
    Risk.RUNS_CODE: word_set(
        "python python3 node deno bun perl ruby php lua awk gawk eval source . xargs make npx uvx docker podman cargo "
        "go"
    ),
}
# With these words a program does what it does not do otherwise.
_RISKY_WORDS: Mapping[Risk, frozenset[tuple[str, str]]] = {
    Risk.DELETES: frozenset({("git", "clean"), ("git", "rm"), ("git", "reset"), ("find", "-delete")}),
    Risk.WRITES: frozenset({("git", "checkout"), ("git", "restore"), ("git", "stash"), ("sed", "-i")}),
    Risk.NETWORK: frozenset({("git", "push"), ("git", "pull"), ("git", "fetch"), ("git", "clone")}),
    Risk.RUNS_CODE: frozenset({("find", "-exec"), ("find", "-execdir"), ("npm", "run"), ("git", "submodule")}),
}
_ORDER = tuple(Risk)
_HOST = re.compile(r"(?://|@)([^\s/@:?#]+)")


def explain_line(line: str) -> tuple[tuple[CommandPart, ...], bool]:
    """The commands of a line in their order, and whether it is sure to run nothing else. Raises nothing."""
    found = parse_line(line)
    parts = [part for command in found.written for part in _command_parts(command, 0)]
    parts += [_redirection_part(each) for each in found.redirections]
    if found.sets_variables:
        parts.append(CommandPart(_SETS, (Risk.UNCLEAR,)))
    return tuple(parts), found.understood


_SETS = "NAME=…"


def _command_parts(command: Command, depth: int) -> Iterator[CommandPart]:
    risks, lookalikes = _risks(command), tuple(_lookalikes(command))
    yield CommandPart(" ".join(command.sources), (*risks, Risk.LOOKALIKE) if lookalikes else risks, depth, lookalikes)
    for each in command.starts:
        yield from _command_parts(each, depth + 1)


def _redirection_part(found: Redirection) -> CommandPart:
    sign, risks = (">", (Risk.WRITES,)) if found.writes else ("<", ())
    alike = find_lookalike(found.target or found.source, found.source)
    if alike is None:
        return CommandPart(f"{sign} {found.source}", risks)
    return CommandPart(f"{sign} {found.source}", (*risks, Risk.LOOKALIKE), lookalikes=(alike,))


def _lookalikes(command: Command) -> Iterator[Lookalike]:
    """In its own words: those of what it starts are said there."""
    many = command.starts_at if command.starts else len(command.words)
    reaches_hosts = Risk.NETWORK in _risks(command)
    for at, (word, source) in enumerate(zip(command.words[:many], command.sources[:many], strict=True)):
        text = source if word is None else word
        is_name = at == 0 or ascii_lookalike(text[:1]) == "-" or text.startswith("-")
        found = find_lookalike(text, source, is_name=is_name or (reaches_hosts and "." in text))
        found = found or next(filter(None, (find_lookalike(each, is_name=True) for each in _HOST.findall(text))), None)
        if found is not None:
            yield Lookalike(text, found.char, found.passes_for)


def _risks(command: Command) -> tuple[Risk, ...]:
    name = program_name(command.words[0] or "") if command.words else ""
    words = {each for each in command.words[1:] if each is not None}
    risks = {risk for risk, names in _RISKY_PROGRAMS.items() if name in names or _family(name) in names}
    risks |= {risk for risk, pairs in _RISKY_WORDS.items() if any((name, each) in pairs for each in words)}
    if name in SHELLS:
        risks.add(Risk.RUNS_CODE)
    if any(each is None for each in command.words):
        risks.add(Risk.UNCLEAR)
    return tuple(risk for risk in _ORDER if risk in risks)


def _family(name: str) -> str:
    """`mkfs.ext4` is an mkfs, `python3.11` a python3."""
    return name.partition(".")[0]
