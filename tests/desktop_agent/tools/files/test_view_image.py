"""Pictures of the workspace, for the model to look at."""

import base64
import io

import pytest
from PIL import Image as Pillow

from desktop_agent.tools.files import read_tools as module
from desktop_agent.tools.files.read_tools import view_image
from desktop_agent.tools.tool import RunningCall
from desktop_agent.tools.workspace import Workspace
from desktop_agent.types.blocks import Base64Source, Image, ResultPart, Text
from desktop_agent.types.errors import OutsideWorkspace, ToolFailed
from desktop_agent.types.tool_calls import ToolClass


def picture(image_format: str) -> bytes:
    buffer = io.BytesIO()
    Pillow.new("RGB", (12, 7), "red").save(buffer, image_format)
    return buffer.getvalue()


async def view(workspace: Workspace, path: str) -> tuple[ResultPart, ...]:
    tool = view_image(workspace)
    assert tool.tool_class is ToolClass.READ_ONLY
    return await tool.run(tool.checked({"path": path}), RunningCall("1", lambda _: None))


@pytest.mark.parametrize("image_format", ["PNG", "JPEG", "GIF", "WEBP"])
async def test_a_picture_is_shown_by_what_it_contains(workspace: Workspace, image_format: str) -> None:
    data = picture(image_format)
    (workspace.folder / "shot.dat").write_bytes(data)
    text, image = await view(workspace, "shot.dat")
    media_type = f"image/{image_format.lower()}"
    assert text == Text(text=f"shot.dat: 12 × 7 pixels, {media_type}, {len(data):,} bytes.")
    assert isinstance(image, Image)
    assert isinstance(image.source, Base64Source)
    assert (image.name, image.source.media_type) == ("shot.dat", media_type)
    assert base64.b64decode(image.source.data) == data


async def test_what_is_no_picture_says_so(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    (workspace.folder / "a.png").write_text("no picture")
    (workspace.folder / "b.png").write_bytes(picture("PNG")[:12])
    for path in ("a.png", "b.png"):
        with pytest.raises(ToolFailed, match="not a picture that can be shown"):
            await view(workspace, path)
    with pytest.raises(OutsideWorkspace):
        await view(workspace, "../a.png")
    monkeypatch.setattr(module, "PICTURE_LIMIT", 5)
    with pytest.raises(ToolFailed, match="larger than"):
        await view(workspace, "a.png")
