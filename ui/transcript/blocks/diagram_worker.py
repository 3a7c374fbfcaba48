"""Render Mermaid diagrams, in the worker process."""

import re
from base64 import b64encode
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Any

_MAX_PIXELS = 16_000_000
_MAX_SIDE = 16_000
_MAX_ERROR_LENGTH = 2000

_EXTERNAL_REFERENCE = re.compile(
    r"""\s(?:xlink:)?(?:href|src)\s*=\s*("(?!#|data:)[^"]*"|'(?!#|data:)[^']*')""", re.IGNORECASE
)
_VIEW_BOX = re.compile(r'viewBox="[-\d.e]+[ ,]+[-\d.e]+[ ,]+([\d.e]+)[ ,]+([\d.e]+)"')


@dataclass(frozen=True, slots=True)
class DiagramAnswer:
    """A PNG in base64, or the message of the renderer."""

    png: str = ""
    error: str = ""


def prepare() -> None:
    """Import the renderer before the process is confined, where it is installed."""
    with suppress(ImportError):
        import_module("mermaidx")


def draw(source: str, colors: dict[str, str | bool], scale: float) -> DiagramAnswer:
    """Render one diagram. Raises MemoryError."""
    try:
        return DiagramAnswer(png=b64encode(_render(source, colors, scale)).decode())
    except MemoryError:
        raise
    except BaseException as error:  # noqa: BLE001  every error is answered with its message
        words = str(error).strip() or type(error).__name__
        return DiagramAnswer(error=words[:_MAX_ERROR_LENGTH])


def _render(source: str, colors: dict[str, str | bool], scale: float) -> bytes:
    config = {"securityLevel": "strict", "themeVariables": colors, "maxTextSize": 50_000}
    library: Any = import_module("mermaidx")
    svg = _EXTERNAL_REFERENCE.sub("", library.render(source, theme="base", config=config).svg())
    view_box = _VIEW_BOX.search(svg)
    if view_box is None:
        raise ValueError("the diagram has no size")
    width, height = max(1.0, float(view_box[1])), max(1.0, float(view_box[2]))
    scale = min(scale, (_MAX_PIXELS / (width * height)) ** 0.5, _MAX_SIDE / max(width, height))
    return library.svg_to_png(svg, width=width * scale)
