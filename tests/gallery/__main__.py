"""Takes pictures of the screens: `python -m tests.gallery [TOOL_NAME…] [--theme light] [--scale 2]`.

Every screen of every module *_screens.py here is a real window on a private display with a window manager, light and
dark, at 100 and 200 percent. The pictures are gallery/NAME-THEME-SCALEx.png. A blank picture is an error.
Nothing confines root, so its dialogs say “Not confined”. Root sees those of everybody else with
`python -m tests.frame.unprivileged tests.gallery --folder DIR …`, where everybody may write in DIR.
`--language de` draws with a translation, `--language pseudo` with every translated text in ⟦…⟧ and a third longer: what
has no brackets never went through a translation, what has no end is cut. `--right-to-left` mirrors the window.
With `--zoom 229 --room 480x600` text is so large (24 pt) and the screen so small; what is cut or out of reach there is
an error, too.
"""

import argparse
import asyncio
import importlib
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

from PySide6.QtCore import QCoreApplication, QRect, Qt
from PySide6.QtGui import QColor, QImage, QPainter
from PySide6.QtWidgets import QApplication, QWidget

from tests.fakes.pseudo_language import PseudoLanguage
from tests.frame import displays
from tests.gallery import screens
from tests.gallery.fitting import unreachable
from tests.gallery.screens import SCREENS, Screen
from ui.bridge.event_loop import run_event_loop
from ui.style.languages import LANGUAGES, install_language
from ui.style.style_sheet import apply_theme
from ui.style.theme import ThemeSource, theme_for

HERE = Path(__file__).parent
FOLDER = HERE.parents[1] / "gallery"
THEMES = ("light", "dark")
STRONG = ("strong-light", "strong-dark")
"""With high contrast; drawn when `--theme` names them."""
SCALES = (1, 2)
SETTLE = 5.0
"""Seconds that a window gets to stop changing."""


def load_screens() -> None:
    """Import what registers screens."""
    for file in sorted(HERE.glob("*_screens.py")):
        importlib.import_module(f"tests.gallery.{file.stem}")


def is_blank(picture: QImage) -> bool:
    """Whether the picture has one colour all over."""
    small = picture.scaled(64, 64)
    return len({small.pixel(x, y) for x in range(64) for y in range(64)}) == 1


def picture_of(window: QWidget) -> QImage:
    """Return the window as it is now, with the dialogs and lists in front of it."""
    in_front = [widget for widget in QApplication.topLevelWidgets() if widget.isVisible() and widget is not window]
    if not in_front:
        return window.grab().toImage()
    whole = window.geometry()
    for widget in in_front:
        whole = whole.united(widget.geometry().adjusted(-1, -1, 1, 1))
    ratio = window.devicePixelRatioF()
    picture = QImage(whole.size() * ratio, QImage.Format.Format_RGB32)
    picture.setDevicePixelRatio(ratio)
    picture.fill(QColor("#808080"))
    painter = QPainter(picture)
    for widget in (window, *in_front):
        place = QRect(widget.geometry().topLeft() - whole.topLeft(), widget.size())
        painter.drawPixmap(place.topLeft(), widget.grab())
        painter.setPen(QColor("#808080"))
        painter.drawRect(place.adjusted(-1, -1, 0, 0))
    painter.end()
    return picture


async def settled_picture(window: QWidget) -> QImage:
    """Return a picture of the window once two in a row are the same, or the last one after SETTLE seconds."""
    deadline = time.monotonic() + SETTLE
    previous = QImage()
    while True:
        await asyncio.sleep(0.2)
        picture = picture_of(window)
        if picture == previous or time.monotonic() > deadline:
            return picture
        previous = picture


@asynccontextmanager
async def shown(screen: Screen, source: ThemeSource) -> AsyncIterator[QWidget]:
    """Show the window of the screen."""
    built = screen.build(source)
    if isinstance(built, AbstractAsyncContextManager):
        async with built as window:
            yield window
    else:
        built.resize(screens.size_of(screen))
        built.show()
        yield built
        built.close()
        built.deleteLater()
    await asyncio.sleep(0)


async def take_all(names: list[str], source: ThemeSource, folder: Path, suffix: str) -> int:
    """Take all pictures of one theme and scale; return how many failed."""
    failed = 0
    for name in names:
        try:
            async with shown(SCREENS[name], source) as window:
                picture = await settled_picture(window)
                problems = unreachable()
        except Exception as error:  # one broken screen must not hide the others
            sys.stderr.write(f"{name}{suffix}: {error!r}\n")
            failed += 1
            continue
        file = folder / f"{name}{suffix}.png"
        picture.save(str(file))
        blank = is_blank(picture)
        failed += blank or bool(problems)
        sys.stderr.writelines(f"{name}{suffix}: {problem}\n" for problem in problems)
        sys.stdout.write(f"{file}{'  BLANK' if blank else ''}\n")
    return failed


def speak(app: QApplication, language: str, *, is_mirrored: bool) -> None:
    """Set the language and the direction of all widgets created from now on."""
    if language == "pseudo":
        QCoreApplication.installTranslator(PseudoLanguage(app))
    elif language != "en":
        install_language(app, language)
    # After the translators: each of them sets the direction of its language.
    if is_mirrored:
        app.setLayoutDirection(Qt.LayoutDirection.RightToLeft)


def render(arguments: argparse.Namespace, names: list[str]) -> int:
    """Take the pictures. Runs in a process of its own: the scale is fixed when Qt starts."""
    app = QApplication(["desktop-agent-gallery"])
    speak(app, arguments.language, is_mirrored=arguments.right_to_left)
    theme, scale, folder = arguments.theme, arguments.scale, arguments.folder
    app.setCursorFlashTime(0)
    colours = theme_for("system", system_dark=theme.endswith("dark"), strong_contrast=theme in STRONG)
    source = ThemeSource(colours, arguments.zoom)
    apply_theme(app, source)
    return run_event_loop(
        app, lambda: take_all(names, source, folder, f"-{theme}-{scale}x{'' if screens.ROOM is None else '-small'}")
    )


def screen_for(room: tuple[int, int] | None) -> str:
    """Return the size of the display: `room` and the frame of a window, or enough for the largest at 200 percent."""
    return "3200x2800" if room is None else f"{room[0] + 2}x{room[1] + 26}"


def main() -> int:
    """Start a display, and a process for each theme and scale."""
    load_screens()
    parser = argparse.ArgumentParser(prog="python -m tests.gallery", description="Pictures of the screens")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(SCREENS))
    parser.add_argument("--theme", choices=(*THEMES, *STRONG))
    parser.add_argument("--scale", type=int, choices=SCALES)
    parser.add_argument("--zoom", type=int, default=100, help="of all text, in percent")
    parser.add_argument("--language", choices=(*LANGUAGES, "pseudo"), default="en", help="of the window")
    parser.add_argument("--right-to-left", action="store_true", help="mirror the window")
    parser.add_argument("--room", help="WIDTHxHEIGHT of the screen; every window is as large, at the most")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where the pictures go")
    parser.add_argument("--render", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    unknown = set(arguments.names) - set(SCREENS)
    if unknown:
        parser.error(f"no such screen: {', '.join(sorted(unknown))}; there are {', '.join(SCREENS)}")
    names = arguments.names or list(SCREENS)
    arguments.folder.mkdir(parents=True, exist_ok=True)
    if arguments.room:
        width, _, height = arguments.room.partition("x")
        screens.ROOM = (int(width), int(height))
    if arguments.render:
        return 1 if render(arguments, names) else 0
    failed = 0
    options = [
        f"--zoom={arguments.zoom}",
        f"--folder={arguments.folder.absolute()}",
        f"--language={arguments.language}",
        *(["--right-to-left"] if arguments.right_to_left else []),
        *([f"--room={arguments.room}"] if arguments.room else []),
    ]
    with displays.display(dict(os.environ), size=screen_for(screens.ROOM)) as shown:
        for theme in (arguments.theme,) if arguments.theme else THEMES:
            for scale in (arguments.scale,) if arguments.scale else SCALES:
                command = [
                    sys.executable,
                    "-m",
                    "tests.gallery",
                    "--render",
                    "--theme",
                    theme,
                    "--scale",
                    str(scale),
                    *options,
                ]
                environment = {**shown, "QT_SCALE_FACTOR": str(scale)}
                failed += subprocess.run([*command, *names], env=environment, check=False).returncode != 0
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
