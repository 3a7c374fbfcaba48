"""What the scripted model says."""

from collections.abc import Iterator

INTRODUCTION = "I am the **demo model**: a script inside this program, not a real language model."

SUGGESTIONS = """\
| Write this | and see |
| --- | --- |
| `tell me a long story` | a long answer, to try **Stop** |
| `write a file` | a tool call that waits for your approval |
| `write a file and check it` | the same, then a second call that reads it back |
| `calculate (3 + 4) * 12` | a tool call that needs no approval |
| a picture, attached | what I really received |
| `error` | an answer that breaks off in the middle |
"""

GREETING_THOUGHT = (
    "The person has just arrived. I should say plainly that I am only a demo, "
    "then show what an answer can look like: a heading, a list, a table and some code."
)

GREETING = f"""\
# Welcome

{INTRODUCTION} Nothing you write here leaves this computer, and nothing I say is thought up. \
But everything around me is real: the connection, the streaming, the tools and the Stop button.

## What you see while I write

- Text arrives in small pieces and is formatted *as it arrives*.
- My reasoning stands above this answer and folds away.
- What is finished stays as it is: select it, scroll, copy.

## What you can try

{SUGGESTIONS}
Code looks like this:

```python
def greet(name: str) -> str:
    return f"Hello, {{name}}!"
```

To talk with a real model, choose a server in the settings.
"""

SHORT_THOUGHT = "I cannot really understand this, so I say what I can do instead."

SHORT = f"""\
{INTRODUCTION} I look for a few words in what you write and found none that I know.

{SUGGESTIONS}"""

NO_PICTURE = f"{INTRODUCTION} Your message mentions a picture, but none came with it. Attach one and send it again."

NO_TOOLS = (
    "I would call a tool now, but no tools were offered with your message. "
    "Turn tools on for this conversation, choose a workspace folder, and ask again."
)

BEFORE_BREAK = "This answer will break off in the middle, as a failing server would make it. Here it co"
BREAK_MESSAGE = "The demo was asked for an error, and this is it."

FILE_PATH = "notes/hello.txt"
FILE_CONTENT = """\
Hello from the demo!

This file was written by a tool that you approved.
You can delete it.
"""

_STORY_SUBJECTS = (
    "The lighthouse keeper",
    "A clockmaker",
    "The youngest sailor",
    "An old cartographer",
    "The ferryman",
)
_STORY_EVENTS = (
    "counted the lamps along the harbour and found one more than the day before",
    "opened the letter that had waited under the door since spring",
    "followed the sound of a bell that nobody else seemed to hear",
    "drew the coast again, because the tide had moved it in the night",
    "left a loaf of bread on the wall for whoever might come by",
    "asked the gulls for news and got the usual answer",
    "learned that a promise is heavier than an anchor and floats better",
)
_STORY_ENDINGS = (
    "Nobody noticed until the evening.",
    "It was written down in the blue book, between the weather and the price of rope.",
    "The wind turned, as it does when a story is not finished.",
    "By morning the whole street knew, and by noon each knew it differently.",
)
CHAPTERS = 30
_PARAGRAPHS = 5


def long_story() -> str:
    """About six thousand words; the same each time."""
    return (
        f"# The harbour at the end of the map\n\n{INTRODUCTION} This story is long so that you can stop it.\n\n"
        + "".join(_chapters())
    )


def _chapters() -> Iterator[str]:
    for chapter in range(CHAPTERS):
        yield f"## Chapter {chapter + 1}\n\n"
        for paragraph in range(_PARAGRAPHS):
            at = chapter * _PARAGRAPHS + paragraph
            sentences = (
                f"{_STORY_SUBJECTS[(at + step) % len(_STORY_SUBJECTS)]} "
                f"{_STORY_EVENTS[(at * 3 + step * 2) % len(_STORY_EVENTS)]}."
                for step in range(2)
            )
            yield " ".join((*sentences, _STORY_ENDINGS[at % len(_STORY_ENDINGS)])) + "\n\n"
