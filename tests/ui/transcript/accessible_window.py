"""A window with a transcript, for a reader in another process. Prints each signal as a line of JSON; ends on EOF.

An argument says which: nothing for a short conversation, `long` for one of 300 messages, `rich` for all that an answer
can have. A line on standard input is answered with figures: rows that exist, layouts that exist, the caret.
"""

import json
import sys
from pathlib import Path

from PySide6.QtCore import QSocketNotifier
from PySide6.QtWidgets import QApplication

from desktop_agent.conversation.transcript import Transcript
from desktop_agent.types.blocks import Outcome, Text, ToolResult, ToolUse
from desktop_agent.types.engine_events import ApprovalRequested, ToolFinished, TurnStarted
from desktop_agent.types.errors import RemedyAction, Sentence
from desktop_agent.types.messages import Message
from desktop_agent.types.provider_events import ContentDelta, ThinkingBlock, ThinkingDelta
from tests.fakes.transcript_feed import Feed, NoPictures
from ui.style.theme import ThemeSource
from ui.transcript.view import TranscriptView


def print_fact(**fact):
    print(json.dumps(fact), flush=True)


def conversation() -> Transcript:
    transcript = Transcript()
    feed = Feed(transcript)
    transcript.add_message(Message.user("What is in the folder?"))
    feed(TurnStarted("t", "m", "model"))
    feed(ThinkingDelta("I should look."))
    feed(ThinkingBlock("I should look.", "p"))
    feed(ContentDelta("Let me **look**.\n\n```py\nx = 1\n```\n"))
    feed(ToolUse(id="a", name="list_directory", input={"path": "."}))
    feed(ToolFinished("a", ToolResult(tool_use_id="a", content=(Text(text="a.py"),), outcome=Outcome.SUCCEEDED)))
    feed(ToolUse(id="b", name="write_file", input={"path": "b.py"}))
    feed(ApprovalRequested("approval-1", "b", "digest"))
    transcript.add_notice(Sentence("It broke."), Sentence("Try again."), RemedyAction.RETRY, error=True)
    return transcript


def long_conversation() -> Transcript:
    return Transcript(
        [
            Message.assistant(f"Answer {number}.\n\n- item\n\nIts **end**.")
            if number % 2
            else Message.user(f"Question {number}?")
            for number in range(300)
        ]
    )


RICH = """# Title

Some *text* with [a link](https://x.org/a).

## Second

1. first
2. second

> quoted

| name | value |
|---|---|
| one | [two](https://x.org/b) |

```py
x = 1
```

$$
x^2
$$

---

The 😀 end of it.
"""
CONVERSATIONS = {
    "short": conversation,
    "long": long_conversation,
    "rich": lambda: Transcript([Message.user("Hi"), Message.assistant(RICH)]),
}


def answer(view: TranscriptView) -> None:
    line = sys.stdin.readline()
    if not line:
        QApplication.quit()
        return
    if line.strip() == "caret":
        view.setFocus()
        view.caret.toggle()
    rows = view.row_viewport.rows
    laid = sum(block.is_laid_out for row in rows._rows.values() for block in row.blocks)
    position = view.caret.position
    print_fact(
        rows=len(rows._rows),
        laid=laid,
        caret=position and [position.row, position.block, position.offset],
        top=rows.top,
    )


def main():
    app = QApplication(sys.argv)
    app.setApplicationName("transcript-under-test")
    view = TranscriptView(ThemeSource(), NoPictures(Path()))
    view.remedy_requested.connect(lambda item_id, action: print_fact(signal="remedy", item=item_id, action=str(action)))
    view.approval_requested.connect(lambda approval_id: print_fact(signal="approval", id=approval_id))
    view.resize(900, 900)
    view.link_activated.connect(lambda target: print_fact(signal="link", target=target))
    view.set_transcript(CONVERSATIONS[sys.argv[1] if len(sys.argv) > 1 else "short"]())
    view.show()
    ended = QSocketNotifier(sys.stdin.fileno(), QSocketNotifier.Type.Read)
    ended.activated.connect(lambda: answer(view))
    print_fact(signal="shown")
    app.exec()
    view.close_workers()
    print_fact(signal="ended")


if __name__ == "__main__":
    main()
