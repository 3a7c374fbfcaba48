"""The headless command `conversations`: list, find, show, export, import, back up, restore and check them."""

import argparse
import asyncio
import json
import shlex
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from desktop_agent.api.command_line import add_data_dir, chosen_data_folder, positive_int
from desktop_agent.api.history import History
from desktop_agent.api.terminal import (
    DONE,
    ERROR,
    INTERRUPTED,
    WRONG_USE,
    escape_controls,
    use_utf8,
    write_output,
    write_remark,
)
from desktop_agent.engine.exchange.conversation_exchange import ExportFormat
from desktop_agent.engine.exchange.found_histories import reader_of
from desktop_agent.exchange.conversation_json import write_conversations
from desktop_agent.exchange.import_conversations import ConversationImport
from desktop_agent.exchange.markdown_export import export_markdown
from desktop_agent.storage.backups.backup import BACKUP_FOLDER, Backup, StoredCounts, list_backups
from desktop_agent.storage.files import whole_path
from desktop_agent.storage.records import ConversationRecord
from desktop_agent.types.conversation_tree import UNTITLED
from desktop_agent.types.errors import AgentError, Sentence, WrongUse
from desktop_agent.types.folders import folder_paths
from desktop_agent.types.messages import Role
from desktop_agent.types.search import ConversationHits, SearchPlace, SearchQuery

_Arguments = argparse.Namespace
_MAX_FOUND = 30


def run_conversations(argv: Sequence[str]) -> int:
    """Run one of the commands and print its result; return the exit code. Exits with 2 on wrong use."""
    arguments = _parser().parse_args(argv)
    use_utf8()
    try:
        return asyncio.run(_COMMANDS[arguments.command](arguments))
    except WrongUse as error:
        write_remark(str(error.whole))
        return WRONG_USE
    except AgentError as error:
        write_remark(str(error.whole))
        return ERROR
    except KeyboardInterrupt:
        return INTERRUPTED


def run_check(argv: Sequence[str]) -> int:
    """Check and print the result; return the exit code. Exits with 2 on wrong use."""
    return run_conversations(["check", *argv])


async def _list(arguments: _Arguments) -> int:
    async with _opened(arguments) as history:
        records = await history.conversations(
            arguments.limit,
            in_trash=arguments.trash,
            archived=arguments.archived,
            folder=arguments.folder,
            tag=arguments.tag,
        )
        paths = folder_paths(await history.folders())
    if arguments.json:
        _print_json([_record_to_json(record, paths) for record in records])
        return DONE
    for record in records:
        day = record.updated_at.astimezone().strftime("%Y-%m-%d %H:%M")
        marks = "".join(f"  #{tag}" for tag in record.tags)
        folder = f"{'/'.join(paths[record.folder])}: " if record.folder in paths else ""
        _print(f"{record.id}  {day}  {record.message_count:>5}  {folder}{record.title or UNTITLED}{marks}")
    return DONE


async def _search(arguments: _Arguments) -> int:
    async with _opened(arguments) as history:
        query = await _query(history, arguments)
        results = await history.search(query, arguments.limit or _MAX_FOUND)
    if arguments.json:
        _print_json([_hits_to_json(conversation) for conversation in results.conversations])
    else:
        _print_hits(results.conversations)
    if results.obstacle is not None:
        write_remark(str(results.obstacle))
    elif not results.is_complete:
        write_remark("Not everything is searched yet: the index is being made. Search again later.")
    elif not results.conversations and not arguments.json:
        write_remark("Nothing was found.")
    return DONE


async def _query(history: History, arguments: _Arguments) -> SearchQuery:
    query = SearchQuery(
        " ".join(arguments.words),
        since=arguments.since,
        until=arguments.until,
        model=arguments.model,
        workspace=arguments.workspace and str(whole_path(arguments.workspace)),
        roles=frozenset(() if arguments.role is None else (Role(arguments.role),)),
        places=frozenset({SearchPlace.FILES} if arguments.in_files else ()),
        has_image=arguments.has_image,
        has_tool_call=arguments.has_tool_call,
        folder=None if arguments.folder is None else await history.find_folder(arguments.folder),
        tag=None if arguments.tag is None else await history.find_tag(arguments.tag),
        program=None if arguments.program is None else reader_of(arguments.program).program,
    )
    if replace(query, text=query.text.strip()) == SearchQuery():
        raise WrongUse("There is nothing to look for.", "Name words, or a filter: see `search --help`.")
    return query


def _print_hits(conversations: Sequence[ConversationHits]) -> None:
    for conversation in conversations:
        origin = conversation.origin
        id_ = conversation.conversation_id if origin is None else f"{conversation.program_title}: {origin.id}"
        _print(f"{id_}  {conversation.title or UNTITLED}")
        for hit in conversation.hits:
            who = "note" if hit.is_note else hit.role
            _print(f"    {hit.at.astimezone():%Y-%m-%d}  {who}: {hit.snippet}")


async def _show(arguments: _Arguments) -> int:
    async with _opened(arguments) as history:
        tree = await history.conversation(arguments.id)
    if arguments.json:
        pieces: list[bytes] = []
        write_conversations([tree], pieces.append)
        # For a terminal: all but ASCII is escaped there.
        _print_json(json.loads(b"".join(pieces)))
    else:
        _print(export_markdown(tree, with_pictures=False).text)
    return DONE


async def _export(arguments: _Arguments) -> int:
    target: Path = arguments.to
    async with _opened(arguments) as history:
        ids = arguments.ids or [record.id for record in await history.conversations(archived=None)]
        result = await history.export(ids, target, ExportFormat(arguments.format or _format_of(target)))
    if arguments.json:
        _print_json({**asdict(result), "files": list(map(str, result.files))})
    else:
        _print("\n".join(map(str, result.files)))
    if result.lost_pictures:
        write_remark(f"Pictures that could not be read: {result.lost_pictures}. Their places are kept.")
    if result.gone:
        write_remark(f"Not there, or deleted meanwhile, so not exported: {', '.join(result.gone)}.")
    return ERROR if result.gone and arguments.ids else DONE


def _format_of(target: Path) -> str:
    formats = {export_format.value for export_format in ExportFormat}
    ending = target.suffix.lower().removeprefix(".")
    if ending not in formats:
        remedy = f"Name it with --format: {', '.join(sorted(formats))}. PDF files are made in the window."
        raise WrongUse("The format is not clear.", remedy)
    return ending


async def _list_found(arguments: _Arguments) -> int:
    async with _opened(arguments) as history:
        if arguments.program is None:
            programs = await history.found_programs()
            rows = [asdict(program) for program in programs]
            lines = [f"{program.program}  {program.title}: {program.count}" for program in programs]
        else:
            conversations = await history.found_conversations(arguments.program)
            rows = [asdict(conversation) for conversation in conversations]
            lines = [
                f"{entry.id}  {entry.updated_at.astimezone():%Y-%m-%d %H:%M}  {entry.title or UNTITLED}"
                for entry in conversations
            ]
    if arguments.json:
        _print_json(rows)
        return DONE
    for line in lines:
        _print(line)
    return DONE


async def _import(arguments: _Arguments) -> int:
    file: Path | None = arguments.file
    if (file is None) == (arguments.program is None):
        raise WrongUse("It is not clear what to import.", "Name a file, or a program with --from.")
    if file is not None:
        # Before a data folder is made for it.
        await asyncio.to_thread(lambda: ConversationImport(file).close())
    # The import may be the first data on this computer.
    async with _opened(arguments, create=True) as history:
        if file is None:
            result = await history.import_found(arguments.program, arguments.only)
        else:
            result = await history.import_file(file)
    notes = [f"{sentence} ({count})" if count > 1 else str(sentence) for sentence, count in result.report.notes]
    skipped = [f"{entry.title}: {entry.reason}" for entry in result.skipped]
    if arguments.json:
        _print_json({"added": result.added, "present": result.present, "skipped": skipped, "notes": notes})
        return DONE
    _print(f"Imported: {len(result.added)}, here already: {result.present}, left out: {len(skipped)}")
    for line in (*skipped, *notes):
        _print(f"    {line}")
    return DONE


async def _back_up(arguments: _Arguments) -> int:
    async with _opened(arguments) as history:
        backup = await history.back_up(arguments.to)
    if arguments.json:
        _print_json(_backup_to_json(backup))
    else:
        _print(f"{backup.folder}\n{_counts_text(backup.counts)}")
    return DONE


async def _list_backups(arguments: _Arguments) -> int:
    chosen: Path | None = arguments.folder
    if chosen is not None and not await asyncio.to_thread(chosen.is_dir):
        sentence = Sentence("There is no folder “{path}”.", {"path": str(chosen)})
        raise WrongUse(sentence, "Name the folder of the backups.")
    folder = chosen or _history(arguments).folder / BACKUP_FOLDER
    backups = await list_backups(folder)
    if arguments.json:
        _print_json([_backup_to_json(backup) for backup in backups])
        return DONE
    for backup in backups:
        _print(f"{backup.folder}  {_counts_text(backup.counts)}, {backup.size:,} bytes")
    return DONE


async def _restore(arguments: _Arguments) -> int:
    before, after = await History.restore(arguments.backup, arguments.into)
    if arguments.json:
        _print_json({"backup": asdict(before), "restored": asdict(after)})
    else:
        _print(f"In the backup: {_counts_text(before)}\nRestored:      {_counts_text(after)}")
        _print(f"Open them with: desktop-agent --data-dir {shlex.quote(str(arguments.into))}")
    return DONE if before == after else ERROR


async def _check(arguments: _Arguments) -> int:
    async with _history(arguments) as history:
        result = await history.check()
        notices = history.notices
    if arguments.json:
        _print_json({"notices": list(map(str, notices)), "result": None if result is None else str(result)})
    else:
        for sentence in (*notices, *([] if result is None else [result])):
            _print(str(sentence))
    # A notice tells of a repair, in which something may have been lost: that is no success.
    return ERROR if notices else DONE


async def _compact(arguments: _Arguments) -> int:
    async with _opened(arguments) as history:
        sizes = await history.compact()
    if arguments.json:
        _print_json(asdict(sizes))
    else:
        _print(f"Before: {sizes.before:,} bytes\nNow:    {sizes.after:,} bytes")
    return DONE


_COMMANDS: dict[str, Callable[[_Arguments], Coroutine[Any, Any, int]]] = {
    "list": _list,
    "search": _search,
    "show": _show,
    "export": _export,
    "found": _list_found,
    "import": _import,
    "backup": _back_up,
    "backups": _list_backups,
    "restore": _restore,
    "check": _check,
    "compact": _compact,
}


def _history(arguments: _Arguments, *, create: bool = False) -> History:
    return History(chosen_data_folder(arguments.data_dir), create=create)


@asynccontextmanager
async def _opened(arguments: _Arguments, *, create: bool = False) -> AsyncGenerator[History]:
    """Open the history, and write its notices, such as that a damaged file was set aside."""
    async with _history(arguments, create=create) as history:
        for notice in history.notices:
            write_remark(str(notice))
        yield history


def _hits_to_json(conversation: ConversationHits) -> dict[str, Any]:
    origin = conversation.origin
    return asdict(conversation) | {"origin": None if origin is None else origin.model_dump()}


def _record_to_json(record: ConversationRecord, paths: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    return {
        "id": record.id,
        "title": record.title,
        "created_at": record.created_at.isoformat(),
        "updated_at": record.updated_at.isoformat(),
        "model": record.model,
        "workspace": record.workspace,
        "messages": record.message_count,
        "origin": None if record.origin is None else record.origin.model_dump(),
        "folder": list(paths.get(record.folder or "", ())),
        "tags": list(record.tags),
        "pinned_at": None if record.pinned_at is None else record.pinned_at.isoformat(),
        "archived_at": None if record.archived_at is None else record.archived_at.isoformat(),
        "deleted_at": None if record.deleted_at is None else record.deleted_at.isoformat(),
    }


def _backup_to_json(backup: Backup) -> dict[str, Any]:
    return {
        "folder": str(backup.folder),
        "created_at": backup.created_at.isoformat(),
        "counts": asdict(backup.counts),
        "size": backup.size,
        "automatic": backup.is_automatic,
    }


def _counts_text(counts: StoredCounts) -> str:
    return f"conversations: {counts.conversations}, in the trash: {counts.in_trash}, messages: {counts.messages}"


def _print(text: str) -> None:
    write_output(escape_controls(text) + "\n")


def _print_json(value: object) -> None:
    # In ASCII: titles may hold what a terminal obeys.
    write_output(json.dumps(value, indent=2, default=_json_text) + "\n")


def _json_text(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="desktop-agent conversations",
        description="List, find, show, export, import, back up, restore and check the stored conversations. "
        "Exit codes: 0 done, 1 something is damaged or failed, 2 wrong use, 130 interrupted, "
        "141 whoever read the output left.",
    )
    add = parser.add_subparsers(dest="command", required=True, metavar="COMMAND").add_parser

    listing = _add(add, "list", "list conversations, the newest first")
    listing.add_argument("--limit", metavar="N", type=positive_int, help="so many at most")
    listing.add_argument("--trash", action="store_true", help="those in the trash instead")
    listing.add_argument("--archived", action="store_true", help="those in the archive instead")
    listing.add_argument("--folder", metavar="PATH", help="only of this folder, such as Work/Import, and within it")
    listing.add_argument("--tag", metavar="TAG", help="only with this tag")

    _add_search_command(add)

    show = _add(add, "show", "print the branch in view of a conversation, as Markdown")
    show.add_argument("id", metavar="ID", help="of the conversation, as “list” prints it")

    export = _add(add, "export", "write conversations into a file, or each into a file of a folder")
    export.add_argument("ids", metavar="ID", nargs="*", help="of the conversations (default: all)")
    export.add_argument("--to", metavar="FILE", type=Path, required=True, help="the file, or the folder")
    export.add_argument(
        "--format",
        choices=[export_format.value for export_format in ExportFormat],
        help="zip: JSON with pictures, to be imported again; json; md; html (default: by the ending of FILE)",
    )

    found = _add(add, "found", "list what other assistants left on this disk, such as Claude Code or Codex")
    found.add_argument("program", metavar="PROGRAM", nargs="?", help="list the conversations of this one")

    imports = _add(add, "import", "import an archive, an export of ChatGPT or Claude, or another assistant's history")
    imports.add_argument(
        "file", metavar="FILE", type=Path, nargs="?", help="the zip, its folder, or its conversations.json"
    )
    imports.add_argument("--from", dest="program", metavar="PROGRAM", help="import what this one left; see “found”")
    imports.add_argument(
        "--only", metavar="ID", action="append", help="of what it left, only this; write --only=ID (may be repeated)"
    )

    _add_backup_commands(add)
    _add(add, "check", "check that all can be read, and repair what can be")
    return parser


def _add_search_command(add: Callable[..., argparse.ArgumentParser]) -> None:
    search = _add(add, "search", "find messages and titles")
    search.add_argument(
        "words", metavar="WORD", nargs="*", help="what to look for; “two words” in quotation marks stand together"
    )
    search.add_argument("--limit", metavar="N", type=positive_int, help=f"conversations at most ({_MAX_FOUND})")
    search.add_argument("--since", metavar="DATE", type=_moment, help="from this day on, such as 2026-03-29")
    search.add_argument("--until", metavar="DATE", type=_moment, help="before this day")
    search.add_argument("--model", metavar="MODEL", help="only what this one answered")
    search.add_argument("--folder", metavar="PATH", help="only of this folder, such as Work/Import, and within it")
    search.add_argument("--workspace", metavar="DIR", type=Path, help="only where tools worked in this folder")
    search.add_argument("--tag", metavar="TAG", help="only with this tag")
    search.add_argument("--role", choices=[role.value for role in Role], help="only what this one said")
    search.add_argument("--has-image", action="store_true", help="only messages with pictures")
    search.add_argument("--has-tool-call", action="store_true", help="only messages with tool calls")
    search.add_argument("--in-files", action="store_true", help="only in what was written into files")
    search.add_argument("--program", metavar="PROGRAM", help="only what this one left; see “found”")


def _moment(text: str) -> datetime:
    """Parse a day or a moment, in the local time zone where it names none."""
    try:
        return datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError) as error:
        message = f"“{text}” is not a day such as 2026-03-29"
        raise argparse.ArgumentTypeError(message) from error


def _add_backup_commands(add: Callable[..., argparse.ArgumentParser]) -> None:
    backup = _add(add, "backup", "write a backup, also while the window is open")
    backup.add_argument("--to", metavar="DIR", type=Path, help="in this folder (default: “backups” in the data folder)")

    _add(add, "compact", "make the database as small as its content, while no other program has it open")

    backups = _add(add, "backups", "list the backups, also those that the window writes by itself")
    backups.add_argument("--folder", metavar="DIR", type=Path, help="of this folder")

    restore = _add(add, "restore", "restore a backup into a new data folder")
    restore.add_argument("backup", metavar="BACKUP", type=Path, help="the folder that the backup is in")
    restore.add_argument("--into", metavar="DIR", type=Path, required=True, help="a new or empty folder")


def _add(add_parser: Callable[..., argparse.ArgumentParser], name: str, text: str) -> argparse.ArgumentParser:
    command = add_parser(name, help=text, description=text[:1].upper() + text[1:] + ".")
    command.add_argument("--json", action="store_true", help="print JSON")
    add_data_dir(command)
    return command
