"""The scripted model: chooses its script by a few words and by the results of tools, and claims only what is true."""

import json
import re
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from json import JSONDecoder
from string import Template
from typing import Any

from desktop_agent.data_files import load_table
from desktop_agent.types.providers import DEMO_MODEL
from desktop_agent.types.tool_calls import EDITED_BY_PERSON

# Seconds between two pieces.
FAST_PACE = 0.015
SLOW_PACE = 0.020


@dataclass(frozen=True, slots=True)
class Think:
    """Streams reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class Say:
    """Streams visible text, Markdown; `pace` is in seconds between two pieces."""

    text: str
    pace: float = FAST_PACE


@dataclass(frozen=True, slots=True)
class Call:
    """Streams a tool call."""

    name: str
    arguments: dict[str, Any]
    id: str = field(default_factory=lambda: f"call_{secrets.token_hex(8)}")

    @property
    def arguments_json(self) -> str:
        return json.dumps(self.arguments, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Break:
    """Fails in the middle."""

    message: str


Step = Think | Say | Call | Break
Script = tuple[Step, ...]


def split_pieces(text: str) -> Iterator[str]:
    """Split a text into small pieces, as a model writes them; joined they are the text."""
    return (match.group() for match in re.finditer(r"\s*\S{1,7}|\s+", text))


MODEL = DEMO_MODEL

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ReceivedPicture:
    """A picture as it was received: measured from its bytes, not from its label."""

    size: int = 0
    format: str = ""
    width: int = 0
    height: int = 0
    problem: str = ""


@dataclass(frozen=True, slots=True)
class AnsweredCall:
    """A call of this model since the person last wrote, and its result."""

    name: str
    arguments: Json
    result: str

    @property
    def edited(self) -> Json | None:
        """Return the arguments that a person wrote in place of the model's; None without an edit."""
        note, _, _ = self.result.partition("\n\n")
        if not note.startswith(EDITED_BY_PERSON):
            return None
        try:
            changed, _ = JSONDecoder().raw_decode(note, note.index("{"))
        except ValueError:
            return {}
        return changed

    @property
    def effective_arguments(self) -> Json:
        """Return its arguments, with what a person changed."""
        return {**self.arguments, **(self.edited or {})}

    @property
    def answer(self) -> str:
        """Return the result without the note about an edit."""
        return self.result if self.edited is None else self.result.partition("\n\n")[2]


@dataclass(frozen=True, slots=True)
class ReceivedRequest:
    """A parsed request. `tools` is None if none were offered. `reasons`: the model may think."""

    stream: bool
    text: str
    prompts: int
    pictures: tuple[ReceivedPicture, ...]
    tools: tuple[str, ...] | None
    answered: tuple[AnsweredCall, ...]
    length: int
    reasons: bool = True
    wants_usage: bool = True

    @property
    def tokens(self) -> int:
        """Return its length: a script has no tokens, so four characters count as one."""
        return self.length // 4 + 1


_TABLE = load_table(__name__, "texts.toml")
INTRODUCTION: str = _TABLE["introduction"]


def _text(name: str) -> str:
    return Template(_TABLE[name]).substitute(introduction=INTRODUCTION, suggestions=_TABLE["suggestions"])


GREETING_THOUGHT = _text("greeting_thought")
GREETING = _text("greeting")
SHORT_THOUGHT = _text("short_thought")
SHORT = _text("short")
NO_PICTURE = _text("no_picture")
NO_TOOLS = _text("no_tools")
BEFORE_BREAK = _text("before_break")
BREAK_MESSAGE = _text("break_message")
FILE_PATH = "notes/hello.txt"
FILE_CONTENT = _text("file_content")
_STORY: dict[str, list[str]] = _TABLE["story"]
CHAPTERS = 30
_PARAGRAPHS = 5


def long_story() -> str:
    """Return about six thousand words; the same each time."""
    return (
        f"# The harbour at the end of the map\n\n{INTRODUCTION} This story is long so that you can stop it.\n\n"
        + "".join(_chapters())
    )


def _chapters() -> Iterator[str]:
    subjects, events, endings = _STORY["subjects"], _STORY["events"], _STORY["endings"]
    for chapter in range(CHAPTERS):
        yield f"## Chapter {chapter + 1}\n\n"
        for paragraph in range(_PARAGRAPHS):
            number = chapter * _PARAGRAPHS + paragraph
            sentences = (
                f"{subjects[(number + step) % len(subjects)]} {events[(number * 3 + step * 2) % len(events)]}."
                for step in range(2)
            )
            yield " ".join((*sentences, endings[number % len(endings)])) + "\n\n"


_ARITHMETIC = re.compile(r"[\d(][\d\s.()]*(?:\*\*|[-+*/])[\d\s.()+*/-]*[\d)]")


def play(question: ReceivedRequest) -> Script:
    """Return the script that answers a request."""
    script = _after_tools(question) if question.answered else _to_prompt(question)
    if question.reasons:
        return script
    return tuple(step for step in script if not isinstance(step, Think))


def _to_prompt(question: ReceivedRequest) -> Script:
    """Return the first script that fits; pictures come before words."""
    if question.pictures:
        return _about_pictures(question.pictures)
    tool_names = _requested_tools(question.text)
    if _mentions(question.text, "error"):
        return (Say(BEFORE_BREAK), Break(BREAK_MESSAGE))
    if _mentions(question.text, "long|story"):
        return (Think("A long story was asked for. I will take my time."), Say(long_story(), SLOW_PACE))
    if tool_names:
        return _with_tools(question, tool_names)
    if _mentions(question.text, "image|picture|photo|screenshot"):
        return (Say(NO_PICTURE),)
    if question.prompts <= 1:
        return (Think(GREETING_THOUGHT), Say(GREETING))
    return (Think(SHORT_THOUGHT), Say(SHORT))


def _requested_tools(text: str) -> tuple[str, ...]:
    if _mentions(text, "calculate|compute") or _ARITHMETIC.search(text):
        return ("calculate",)
    if _mentions(text, "tools|both"):
        return ("write_file", "calculate")
    return ("write_file",) if _mentions(text, "write|file|files|tool") else ()


def _mentions(text: str, words: str) -> bool:
    return re.search(rf"\b({words})\b", text, re.IGNORECASE) is not None


def _about_pictures(pictures: tuple[ReceivedPicture, ...]) -> Script:
    count = "one picture" if len(pictures) == 1 else f"{len(pictures)} pictures"
    lines = "\n".join(f"{index}. {_described(picture)}" for index, picture in enumerate(pictures, 1))
    text = (
        f"{INTRODUCTION} I cannot see, but I can measure. With your message came {count}:\n\n{lines}\n\n"
        "These numbers are read from the bytes that reached me; a real model would look at the picture itself."
    )
    return (Think("There is a picture. I read its first bytes to say what it is."), Say(text))


def _described(picture: ReceivedPicture) -> str:
    size = f"{picture.size:,} bytes"
    if picture.problem:
        return f"Something that I could not measure: {picture.problem}" + (f" ({size})." if picture.size else ".")
    name = "JPEG" if picture.format == "MPO" else picture.format
    return f"**{name}** (`image/{name.lower()}`), {picture.width} x {picture.height} pixels, {size}."


def _with_tools(question: ReceivedRequest, tool_names: tuple[str, ...]) -> Script:
    if question.tools is None:
        return (Say(f"{INTRODUCTION} {NO_TOOLS}"),)
    calls = tuple(_call(name, question.text) for name in tool_names if name in question.tools)
    if not calls:
        offered = ", ".join(f"`{name}`" for name in question.tools)
        missing = " and ".join(f"`{name}`" for name in tool_names)
        return (Say(f"{INTRODUCTION} I would call {missing}, but only these tools were offered: {offered}."),)
    named = " and ".join(f"`{call.name}`" for call in calls)
    thought = Think(f"This asks for {named}. A call that changes something will wait until the person allows it.")
    return (thought, Say(f"I will call {named}."), *calls)


def _call(name: str, text: str) -> Call:
    if name == "calculate":
        return Call(name, {"expression": _expression(text)})
    return Call(name, {"path": FILE_PATH, "content": FILE_CONTENT})


def _expression(text: str) -> str:
    after = re.search(r"\b(?:calculate|compute)\b:?(.*)", text, re.IGNORECASE)
    if after and re.search(r"\d", after.group(1)):
        return after.group(1).strip().rstrip("?!.= ")
    match = _ARITHMETIC.search(text)
    return match.group().strip() if match else "6 * 7"


def _after_tools(question: ReceivedRequest) -> Script:
    last = question.answered[-1]
    wants_check = _mentions(question.text, "check|verify")
    written = last.name == "write_file" and _call_outcome(last, question.answered) == "succeeded"
    if wants_check and written and "read_file" in (question.tools or ()):
        thought = Think("It is written. To be sure, I read it again.")
        return (thought, Say("It is written. Now I read it back."), Call("read_file", {"path": _path(last)}))
    return (Say("\n\n".join(_describe_result(call, question.answered) for call in question.answered) + "\n"),)


def _describe_result(call: AnsweredCall, answered: tuple[AnsweredCall, ...]) -> str:
    words = Template(_TABLE["results"][_call_outcome(call, answered)])
    head = words.substitute(name=call.name, request=_describe_request(call))
    return f"{head}\n\n````text\n{call.answer[:2000]}\n````"


def _describe_request(call: AnsweredCall) -> str:
    if call.name == "write_file":
        content = str(call.effective_arguments.get("content", ""))
        first_line = content.partition("\n")[0][:40]
        whose = "I asked for" if call.edited is None else "you changed what I had asked for, and it ran with"
        return f": {whose} `{_path(call)}` with {len(content)} characters, beginning “{first_line}”"
    return "" if call.edited is None else ": you changed what I had asked for, and it ran as you wrote it"


def _path(call: AnsweredCall) -> str:
    return str(call.effective_arguments.get("path", FILE_PATH))


def _call_outcome(call: AnsweredCall, answered: tuple[AnsweredCall, ...]) -> str:
    """Guess the outcome, for which there is no field. Success needs proof in the answer; otherwise words decide."""
    start = call.answer[:300]
    contents = [str(other.effective_arguments.get("content", "")) for other in answered if other.name == "write_file"]
    if _shows_success(call.name, start, [FILE_CONTENT, *contents]):
        return "succeeded"
    return next((outcome for outcome, words in _TABLE["outcomes"].items() if _mentions(start, words)), "unclear")


def _shows_success(name: str, start: str, contents: Sequence[str]) -> bool:
    match name:
        case "write_file":
            return start.startswith(("Created ", "Replaced "))
        case "read_file":
            return any(start.startswith(content.partition("\n")[0][:100]) for content in contents if content)
        case "calculate":
            return " = " in start
        case _:
            return False
