"""The calls and results of Codex CLI: commands in their several shapes, and patches. For the sources, see `codex`."""

import re
import shlex
from typing import Any

from desktop_agent.exchange.foreign_values import object_in, object_of, text_in, texts_in
from desktop_agent.exchange.readers.content import tool_call
from desktop_agent.exchange.readers.files import parse_json
from desktop_agent.types.blocks import ServerStep, ToolUse

PROGRAM = "codex"
_EXIT_CODE = re.compile(r"(?:Exit code: |Process exited with code )(-?\d+)")
_PATCH_FILE = re.compile(r"\*\*\* (Add|Update|Delete) File: (.+)")


def plain_output(output: str) -> tuple[str, bool]:
    """Return what a call wrote, and whether it failed. Some outputs are JSON with the text and the exit code."""
    value = object_of(parse_json(output)) if output.startswith('{"output"') else {}
    if isinstance(value.get("output"), str):
        exit_code = object_in(value, "metadata").get("exit_code")
        return value["output"], isinstance(exit_code, int) and exit_code != 0
    code = _EXIT_CODE.search(output[:300])
    return output, code is not None and code[1] != "0"


def shell_call(call_id: str, name: str, arguments: object, raw: str) -> ToolUse:
    """Return a call; a command that is a list of words is written as a line."""
    values = object_of(arguments)
    if arguments != values:
        return tool_call(PROGRAM, call_id, name, raw)
    key = "cmd" if name == "exec_command" else "command"
    words = texts_in(values, key)
    if words[:1] == ["apply_patch"] and len(words) == 2:
        return custom_call(call_id, "apply_patch", words[1])
    if words:
        is_shell = len(words) == 3 and words[1] in {"-lc", "-c"}
        values = {**values, key: words[2] if is_shell else shlex.join(words)}
    return tool_call(PROGRAM, call_id, name, values)


def web_search(item: dict[str, Any]) -> ServerStep:
    """Return a search of the service's own; under this program's name, so that it is sent to no server."""
    action = object_in(item, "action")
    words = text_in(action, "query") or text_in(action, "url") or text_in(action, "pattern")
    return ServerStep(provider=PROGRAM, name="web_search", text=words, raw=item)


def custom_call(call_id: str, name: str, text: str) -> ToolUse:
    """Return a call whose argument is a text: a patch of one place in one file is our edit."""
    change = _single_change(text) if name == "apply_patch" else None
    if change is None:
        return ToolUse(id=call_id, name=name[:200], input={"input": text})
    return ToolUse(id=call_id, name=change[0], input=change[1])


def _single_change(patch: str) -> tuple[str, dict[str, Any]] | None:
    lines = patch.strip().split("\n")
    header = _PATCH_FILE.fullmatch(lines[1].rstrip()) if len(lines) >= 3 else None
    body = lines[2:-1]
    if header is None or lines[0] != "*** Begin Patch" or any(line.startswith("*** ") for line in body):
        return None
    action, path = header[1], header[2].strip()
    if action == "Delete":
        return ("delete_file", {"path": path}) if not body else None
    if action == "Add":
        return "write_file", {"path": path, "content": "".join(f"{line[1:]}\n" for line in body)}
    hunk = body[1:] if body[:1] and body[0].startswith("@@") else body
    if any(line.startswith("@@") for line in hunk):
        return None
    old = "\n".join(line[1:] for line in hunk if not line.startswith("+"))
    new = "\n".join(line[1:] for line in hunk if not line.startswith("-"))
    return ("edit_file", {"path": path, "old_text": old, "new_text": new}) if old else None
