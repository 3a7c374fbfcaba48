"""Tools for the pictures: the real file tools, and one that runs for as long as one looks."""

import asyncio
from pathlib import Path

from pydantic import BaseModel

from desktop_agent.tools.builtin_tools import builtin_tools
from desktop_agent.tools.tool import AnyTool, ModelSchema, RunningCall, Tool
from desktop_agent.tools.workspace import Workspace
from desktop_agent.types.blocks import Text
from desktop_agent.types.tool_calls import Effect, PicturePreview, ToolClass
from tests.gallery.answers import OLD_FILE
from tests.gallery.paintings import painting


class RunTestsInput(BaseModel):
    """What to run."""

    folder: str


class SendReportInput(BaseModel):
    """What to send."""

    to: str
    subject: str
    lines: list[str | int]


class PostPictureInput(BaseModel):
    """Which picture."""

    path: str


class ProjectTools:
    """A small project on the disk, and what may be done in it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        (folder / "jobs").mkdir(exist_ok=True)
        (folder / "jobs/import.py").write_text(OLD_FILE)

    def all(self) -> tuple[AnyTool, ...]:
        """The tools."""

        async def run(_wanted: RunTestsInput, call: RunningCall) -> tuple[Text, ...]:
            call.progress("tests/test_rows.py ..........  [ 41%]\ntests/test_store.py ....")
            await asyncio.Event().wait()
            return (Text(text="never"),)

        slow = Tool(
            "run_tests",
            "Run the tests",
            ModelSchema(RunTestsInput),
            run,
            ToolClass.READ_ONLY,
            frozenset({Effect.READ}),
        )

        async def send(_wanted: SendReportInput, _call: RunningCall) -> tuple[Text, ...]:
            return (Text(text="Sent."),)

        report = Tool(
            "send_report",
            "Send a report",
            ModelSchema(SendReportInput),
            send,
            effects=frozenset({Effect.NETWORK, Effect.EXECUTE}),
        )
        return (*builtin_tools(Workspace(self._folder), "all"), slow, report, _posting())


def _posting() -> AnyTool:
    async def post(_wanted: PostPictureInput, _call: RunningCall) -> tuple[Text, ...]:
        return (Text(text="Posted."),)

    async def preview(wanted: PostPictureInput) -> PicturePreview:
        return PicturePreview(wanted.path, painting(1200, 800, 3), "1200 × 800. It will be seen by all of the team.")

    network = frozenset({Effect.NETWORK})
    schema = ModelSchema(PostPictureInput)
    return Tool("post_picture", "Post a picture", schema, post, effects=network, preview=preview)
