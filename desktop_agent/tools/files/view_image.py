"""The tool that shows a picture of the workspace to the model."""

import base64

from pydantic import BaseModel, ConfigDict, Field

from desktop_agent.tools.files.places import path_subjects
from desktop_agent.tools.in_thread import CancelToken, run_in_thread
from desktop_agent.tools.tool import ModelSchema, RunningCall, Tool
from desktop_agent.tools.workspace import Workspace
from desktop_agent.vocabulary.blocks import Image, ResultPart, Text
from desktop_agent.vocabulary.errors import ImageRefused, Sentence, ToolFailed
from desktop_agent.vocabulary.images import Base64Source, detect_media_type, read_image_size
from desktop_agent.vocabulary.tool_calls import Effect, ToolClass

PICTURE_LIMIT = 20_000_000


class ViewImageInput(BaseModel):
    """What to look at."""

    model_config = ConfigDict(extra="forbid")

    path: str = Field(min_length=1, description="The picture, relative to the workspace folder.")


def view_image(workspace: Workspace) -> Tool[ViewImageInput]:
    """Make the tool for a workspace. What is too large for a model is made to fit when it is sent."""

    def work(params: ViewImageInput, token: CancelToken) -> tuple[ResultPart, ...]:
        token.raise_if_cancelled()
        place = workspace.locate(params.path)
        data = workspace.read(place, PICTURE_LIMIT)
        media_type, size = detect_media_type(data), read_image_size(data)
        if media_type is None or size is None:
            what = Sentence("“{path}” is no picture that can be shown.", {"path": str(place)})
            raise ToolFailed(what, "PNG, JPEG, GIF and WebP can be.")
        try:
            source = Base64Source(media_type=media_type, data=base64.b64encode(data).decode())
        except ImageRefused as error:
            raise ToolFailed(error.sentence, error.remedy) from None
        told = f"{place}: {size[0]:,} × {size[1]:,} pixels, {media_type}, {len(data):,} bytes."
        return Text(text=told), Image(source=source, name=place.parts[-1])

    async def run(params: ViewImageInput, _call: RunningCall) -> tuple[ResultPart, ...]:
        return await run_in_thread(lambda token: work(params, token))

    return Tool(
        name="view_image",
        description="Look at a picture of the workspace: PNG, JPEG, GIF or WebP.",
        schema=ModelSchema(ViewImageInput),
        run=run,
        tool_class=ToolClass.READ_ONLY,
        effects=frozenset({Effect.READ}),
        subjects=lambda params: path_subjects(workspace, params.path),
        scope=str(workspace.folder),
    )
