"""Parse the command line of the window and of `ask`. Loaded before the window is drawn: no pydantic."""

import argparse
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args
from urllib.parse import SplitResult, urlsplit

from desktop_agent.types.dialects import API_KEY_VARIABLE, BASE_URL_VARIABLE, MODEL_VARIABLE, VENDOR_BASE_URLS, Dialect

if TYPE_CHECKING:
    from desktop_agent.types.providers import Endpoint, Reasoning

DATA_DIR_VARIABLE = "DESKTOP_AGENT_DATA_DIR"
COMMAND_LINE_ENDPOINT = "command-line"
COMMANDS = ("ask", "check", "conversations", "usage")
"""The first words of the command line that open no window."""
_MAX_TIMEOUT_SECONDS = 86_400
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:(?!\Z)")


def open_closed_streams() -> None:
    """Open the null device for standard streams that are closed: the next files to be opened would be taken for them.

    Python has None for them, as it has in a program for Windows without a terminal.
    """
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            null = os.open(os.devnull, os.O_RDWR)
            setattr(sys, name, open(null, "r" if name == "stdin" else "w", encoding="utf-8", closefd=False))  # noqa: SIM115


class LaunchOptions(NamedTuple):
    """The data folder and the server that was named for this run; for the window, links and absolute paths to open."""

    data_dir: Path | None
    endpoint: "Endpoint | None"
    model: str | None
    demo: bool = False
    targets: tuple[str, ...] = ()
    background: bool = False
    quick_ask: bool = False

    @property
    def restart_arguments(self) -> list[str]:
        """The arguments that start the window again like this, without the targets, which are not opened again."""
        words = list[str]()
        if self.data_dir is not None:
            words.append(f"--data-dir={self.data_dir.expanduser().absolute()}")
        if self.endpoint is not None:
            words += [f"--dialect={self.endpoint.dialect}", f"--base-url={self.endpoint.base_url}"]
        if self.model is not None:
            words.append(f"--model={self.model}")
        return [*words, "--demo"] if self.demo else words


class AskArguments(NamedTuple):
    """The arguments of `ask`."""

    launch: LaunchOptions
    prompt: str
    system: str | None
    images: Sequence[Path]
    reasoning: "Reasoning | None"
    max_tokens: int | None
    headers_timeout: float | None
    first_event_timeout: float | None
    workspace: Path | None
    tools: Literal["none", "read", "all"]
    approve: Literal["never", "always"]
    continue_id: str | None
    jsonl: bool
    verbose: bool


class _VersionAction(argparse.Action):
    """Looks the version up only when it is asked for: that takes time, and the window must be there first."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from desktop_agent.processes.program_version import program_version

        sys.stdout.write(f"desktop-agent {program_version()}\n")
        parser.exit()


def parse_window_arguments(argv: Sequence[str]) -> LaunchOptions:
    """Parse the arguments of the window. Exits with 2 and a sentence on wrong use."""
    parser = argparse.ArgumentParser(
        prog="desktop-agent",
        description="Talk and work with language models. Without a command the window opens; "
        "`desktop-agent ask --help` tells how to ask from a terminal; `desktop-agent conversations --help` how "
        "to list, back up and check what is stored; `desktop-agent usage --help` how to print what it cost.",
    )
    parser.add_argument("--version", action=_VersionAction, nargs=0, help="show the version and exit")
    _add_launch_arguments(parser)
    parser.add_argument("--demo", action="store_true", help="open straight into the offline demo")
    parser.add_argument(
        "--background", action="store_true", help="wait in the tray, or minimised, as at the start of the computer"
    )
    parser.add_argument(
        "--quick-ask", action="store_true", help="show the small window for a quick question; bind this to a key"
    )
    parser.add_argument(
        "targets",
        metavar="FILE_OR_LINK",
        nargs="*",
        help="a picture, text or PDF to attach, or a desktop-agent:// link; in the window that is open, if one is",
    )
    arguments = parser.parse_args(argv)
    targets = tuple(_parse_target(parser, target) for target in arguments.targets)
    options = _parse_launch_options(parser, arguments)
    return options._replace(targets=targets, background=arguments.background, quick_ask=arguments.quick_ask)


def _parse_target(parser: argparse.ArgumentParser, target: str) -> str:
    """Return a link as it is, a path as an absolute one. A mistyped command is neither."""
    if _SCHEME.match(target):
        return target
    if not os.path.lexists(target):
        if target in COMMANDS:
            parser.error(f"“{target}” is a command, and comes before all options: desktop-agent {target} …")
        parser.error(f"“{target}” is neither a command nor a file that is there")
    return str(Path(target).absolute())


def parse_ask_arguments(argv: Sequence[str]) -> AskArguments:
    """Parse the arguments of `ask`. Exits with 2 and a sentence on wrong use."""
    parser = _ask_parser()
    arguments = parser.parse_args(argv)
    arguments.launch = _parse_launch_options(parser, arguments)
    arguments.tools = arguments.tools or ("read" if arguments.workspace else "none")
    return AskArguments(*(getattr(arguments, name) for name in AskArguments._fields))


def _ask_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="desktop-agent ask",
        description="Ask a model and print its answer. The key of a server named here comes from "
        f"{API_KEY_VARIABLE} or the keyring, that of one set up in the window from the keyring. "
        "Exit codes: 0 done; 1 error, also where the answer was refused, has neither words nor a picture, was cut by a "
        "filter or a limit such as --max-tokens (what came of it is printed), or could not be stored; 2 wrong use; "
        "130 interrupted; 141 whoever read the output left.",
    )
    _add_launch_arguments(parser)
    parser.add_argument("--demo", action="store_true", help="ask the offline demo")
    parser.add_argument("--system", metavar="TEXT", help="instructions above the conversation")
    parser.add_argument(
        "--image", dest="images", metavar="FILE", type=Path, action="append", default=[], help="attach a picture"
    )
    parser.add_argument("--reasoning", metavar="LEVEL", type=_reasoning, help="none, minimal … max, or tokens")
    parser.add_argument("--max-tokens", metavar="N", type=positive_int, help="longest answer, in tokens")
    parser.add_argument(
        "--headers-timeout",
        metavar="SECONDS",
        type=_seconds,
        help="how long a server may take to begin its answer (default 120; 900 for local ones and for reasoning)",
    )
    parser.add_argument(
        "--first-event-timeout",
        metavar="SECONDS",
        type=_seconds,
        help="how long it may then be silent before the first event (default 300; 900 in the same cases)",
    )
    parser.add_argument("--workspace", metavar="DIR", type=_existing_folder, help="the folder that tools may use")
    parser.add_argument("--tools", choices=["none", "read", "all"], help="default: read with a workspace, else none")
    parser.add_argument("--approve", choices=["never", "always"], default="never", help="calls that need approval")
    parser.add_argument("--continue", dest="continue_id", metavar="ID", help="go on with a stored conversation")
    parser.add_argument("--jsonl", action="store_true", help="print one canonical event a line")
    parser.add_argument("--verbose", action="store_true", help="log to stderr")
    parser.add_argument("prompt", metavar="PROMPT", help="what to ask; - reads it from standard input")
    return parser


def add_data_dir(parser: argparse.ArgumentParser) -> None:
    """Add --data-dir, which `chosen_data_folder` reads."""
    parser.add_argument(
        "--data-dir", metavar="DIR", type=_data_dir, help=f"keep everything here (also {DATA_DIR_VARIABLE})"
    )


def chosen_data_folder(data_dir: Path | None) -> Path | None:
    """Return the data folder that --data-dir or the environment names; None for the usual one."""
    if data_dir is None and os.environ.get(DATA_DIR_VARIABLE):
        return Path(os.environ[DATA_DIR_VARIABLE])
    return data_dir


def _add_launch_arguments(parser: argparse.ArgumentParser) -> None:
    add_data_dir(parser)
    parser.add_argument("--dialect", choices=get_args(Dialect), help="the API of the server (default openai-chat)")
    parser.add_argument(
        "--base-url", metavar="URL", help=f"the server, as its own client takes it ({BASE_URL_VARIABLE})"
    )
    parser.add_argument("--model", metavar="M", help=f"the model ({MODEL_VARIABLE})")


def _parse_launch_options(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> LaunchOptions:
    values: dict[str, Any] = vars(arguments)
    data_dir = chosen_data_folder(values["data_dir"])
    endpoint = _parse_endpoint(parser, values["dialect"], values["base_url"] or os.environ.get(BASE_URL_VARIABLE))
    if endpoint is not None and values["demo"]:
        parser.error("--demo is a server of its own: leave out --dialect and --base-url")
    model = values["model"] or os.environ.get(MODEL_VARIABLE) or None
    return LaunchOptions(data_dir, endpoint, model, values["demo"])


def _parse_endpoint(
    parser: argparse.ArgumentParser, dialect: Dialect | None, base_url: str | None
) -> "Endpoint | None":
    if dialect is None and base_url is None:
        return None
    dialect = dialect or "openai-chat"
    base_url = base_url or VENDOR_BASE_URLS[dialect]
    parts = _parse_web_address(base_url)
    if parts is None:
        parser.error(f"--base-url: “{base_url}” is not a web address such as http://127.0.0.1:8080/v1")
    if parts.username or parts.password:
        parser.error(f"--base-url: no user names or passwords in the address; the key belongs in {API_KEY_VARIABLE}")
    from desktop_agent.types.providers import Endpoint

    return Endpoint(id=COMMAND_LINE_ENDPOINT, title=parts.netloc, dialect=dialect, base_url=base_url)


def _parse_web_address(text: str) -> SplitResult | None:
    try:
        parts = urlsplit(text)
        # `port` raises ValueError for a port that is no number.
        is_valid = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return None
    return parts if is_valid else None


def positive_int(text: str) -> int:
    """Parse a number of things. Raises ArgumentTypeError."""
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"“{text}” is not a whole number above 0")
    return number


def _seconds(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number <= _MAX_TIMEOUT_SECONDS:
        raise argparse.ArgumentTypeError(f"“{text}” is not a number of seconds from above 0 to {_MAX_TIMEOUT_SECONDS}")
    return number


def _data_dir(text: str) -> Path:
    if not text.strip():
        raise argparse.ArgumentTypeError("the name of the folder is missing")
    return Path(text)


def _existing_folder(text: str) -> Path:
    path = Path(text)
    try:
        if path.is_dir():
            return path
    except OSError as error:  # its name is too long
        raise argparse.ArgumentTypeError(f"“{text}” is not a folder: {error.strerror}") from None
    raise argparse.ArgumentTypeError(f"“{text}” is not a folder")


def _reasoning(text: str) -> "Reasoning":
    from desktop_agent.types.providers import Effort, ReasoningBudget, ReasoningDisabled, ReasoningEffort

    if text in {"none", "disabled"}:
        return ReasoningDisabled()
    for level in get_args(Effort):
        if text == level:
            return ReasoningEffort(level=level)
    if text.isdecimal() and int(text) > 0:
        return ReasoningBudget(tokens=int(text))
    raise argparse.ArgumentTypeError(f"“{text}” is none of none, {', '.join(get_args(Effort))}, or a number of tokens")
