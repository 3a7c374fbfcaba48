"""In the whole window: pictures are opened, loaded and saved, and code is saved."""

import asyncio
import os

import pytest
from PySide6.QtCore import QRect, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QFileDialog, QLineEdit, QPushButton

from desktop_agent.types.blocks import Base64Source, Image
from tests.fakes.http_server import Loopback, Reply
from tests.fakes.qt_loop import until
from tests.frame.patience import PATIENCE
from tests.ui.shell.shown_answer import show_answer
from tests.ui.transcript.test_pictures import png
from ui.shell.attachments import safe_file_name
from ui.shell.pictures.picture_viewer import PictureViewer


class Reader:
    """The transcript as a person uses it."""

    def __init__(self, screen):
        self.view = screen.window.page.transcript
        self.window = screen.window

    def find(self, name):
        rows = self.view.row_viewport.rows
        for index, row, _ in rows.between(rows.top, rows.top + rows.view):
            for block, control in row.controls():
                if control.name.startswith(name):
                    corner = row.stack.block_box(block).topLeft() + self.view.row_viewport.row_box(index).topLeft()
                    return QRect(corner + control.box.topLeft(), control.box.size())
        return None

    async def press(self, name):
        box = await until(lambda: self.find(name))
        QTest.mouseClick(self.view.viewport(), Qt.MouseButton.LeftButton, pos=box.center())

    async def dialog(self):
        return await until(
            lambda: next((dialog for dialog in self.window.findChildren(QFileDialog) if dialog.isVisible()), None)
        )

    async def save_to(self, path):
        dialog = await self.dialog()
        suggested = dialog.findChild(QLineEdit).text()
        dialog.findChild(QLineEdit).setText(str(path))
        save = next(button for button in dialog.findChildren(QPushButton) if "Save" in button.text())
        QTest.mouseClick(save, Qt.MouseButton.LeftButton)
        return suggested


def test_code_is_saved(on_screen, tmp_path):
    async def work(screen):
        reader = await show_answer(screen, Reader, "```python\nprint('hello')\n```")
        await reader.press("Save code as")
        assert await reader.save_to(tmp_path / "mine.py") == "code.py"
        await until((tmp_path / "mine.py").exists)
        assert (tmp_path / "mine.py").read_text() == "print('hello')"
        await until(lambda: any("“mine.py” was saved in" in words for words in screen.words()))

    on_screen(work)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_takes_nothing(on_screen, tmp_path):
    async def work(screen):
        closed = tmp_path / "closed"
        closed.mkdir(mode=0o500)
        reader = await show_answer(screen, Reader, "```python\nx\n```")
        await reader.press("Save code as")
        await reader.save_to(closed / "mine.py")
        await until(lambda: any("cannot be written to" in words for words in screen.words()))

    on_screen(work)


def test_what_cannot_be_saved_is_said_with_a_remedy(on_screen, tmp_path):
    async def work(screen):
        (tmp_path / "gone").mkdir()
        reader = await show_answer(screen, Reader, "```python\nx\n```")
        await reader.press("Save code as")
        dialog = await reader.dialog()
        (tmp_path / "gone").rmdir()
        dialog.fileSelected.emit(str(tmp_path / "gone" / "mine.py"))
        dialog.close()
        await until(lambda: any("is gone" in words for words in screen.words()))
        assert any("Choose another folder" in words for words in screen.words())

    on_screen(work)


def picture(screen):
    viewers = [viewer for viewer in screen.window.findChildren(PictureViewer) if viewer.isVisible()]
    return viewers[0] if viewers and viewers[0].canvas.image is not None else None


def test_a_thumbnail_opens_its_picture_among_those_of_the_conversation(on_screen, tmp_path):
    async def work(screen):
        images = [Image(source=base64_of(20 + n, 10), name=f"{n}.png") for n in range(3)]
        reader = await show_answer(screen, Reader, "![x](https://x.org/x.png)", images=images)
        await reader.press("Open picture: 1.png")
        viewer = await until(lambda: picture(screen))
        assert viewer._place.text() == "2 of 3"
        assert viewer.canvas.image.width() == 21
        viewer.save_requested.emit(viewer.current)
        dialog = await until(lambda: next(iter(viewer.findChildren(QFileDialog)), None))
        dialog.fileSelected.emit(str(tmp_path / "out.png"))
        dialog.close()
        await until((tmp_path / "out.png").exists)
        assert (tmp_path / "out.png").read_bytes() == png(21, 10)
        viewer.close()

    on_screen(work)


def base64_of(width, height):
    import base64

    return Base64Source(media_type="image/png", data=base64.b64encode(png(width, height)).decode())


def test_a_picture_of_the_web_is_loaded_when_the_person_says_so(on_screen):
    async def work(screen):
        async with Loopback(Reply(png(40, 20)), judged=False) as server:
            reader = await show_answer(screen, Reader, f"![A chart]({server.root}/a.png)")
            await asyncio.sleep(0.1)
            assert server.connections == 0
            await reader.press("Load picture")
            # This server is a private machine.
            await reader.press("Load anyway")
            await reader.press("Open picture: A chart")
            assert len(server.requests) == 1
            viewer = await until(lambda: picture(screen))
            assert (viewer.canvas.image.width(), viewer.canvas.image.height()) == (40, 20)
            viewer.close()
            screen.desk.library.new()
            await screen.idle()
            reader = await show_answer(screen, Reader, f"![Again]({server.root}/a.png)")
            await until(lambda: reader.find("Open picture: Again"))
            assert len(server.requests) == 1

    on_screen(work)


async def press_stop(reader, _desk):
    await reader.press("Stop loading")
    assert await until(lambda: reader.find("Load picture"))


async def close_all(_reader, desk):
    await desk._tasks.close()


@pytest.mark.parametrize("give_up", [press_stop, close_all])
def test_loading_that_is_given_up_leaves_nothing(on_screen, give_up):
    async def work(screen):
        async with Loopback(Reply(png(40, 20), hold=asyncio.Event()), judged=False) as server:
            reader = await show_answer(screen, Reader, f"![A chart]({server.root}/a.png)")
            await reader.press("Load picture")
            await reader.press("Load anyway")
            await asyncio.wait_for(server.asked.wait(), PATIENCE)
            await give_up(reader, screen.desk)
            await asyncio.wait_for(server.disconnected.wait(), PATIENCE)

    on_screen(work)


@pytest.mark.parametrize(
    ("size", "words"),
    [(0, "The file there is not a PNG, JPEG, GIF or WebP image."), (16, "This picture is damaged")],
)
def test_what_cannot_be_loaded_is_said_in_its_place(on_screen, size, words):
    async def work(screen):
        async with Loopback(
            Reply(png(40, 20)[:size] + b"<html>nothing here</html>"), Reply(png(40, 20)), judged=False
        ) as server:
            reader = await show_answer(screen, Reader, f"![A chart]({server.root}/a.png)")
            await reader.press("Load picture")
            await reader.press("Load anyway")
            await until(lambda: reader.find("Try again"))
            rows = reader.view.row_viewport.rows
            spoken = rows.row(len(rows) - 1).spoken_text()
            assert words in spoken
            await reader.press("Try again")
            await until(lambda: reader.find("Open picture"))

    on_screen(work)


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("code.py", "code.py"),
        ("../../etc/passwd", "etc passwd"),
        ("a\u202egnp.exe", "a gnp.exe"),
        ("C:\\x\\y.png", "C x y.png"),
        (".bashrc", "bashrc"),
        ("", "unnamed"),
        ("x" * 300 + ".png", "x" * 80 + ".png"),
        ("Picture.tar.gz", "Picture.tar.gz"),
        ("No ending. Here", "No ending. Here"),
        ("Dockerfile", "Dockerfile"),
        ("con", "_con"),
        ("NUL.txt", "_NUL.txt"),
        ("Aux.tar.gz", "_Aux.tar.gz"),
        ("prn .md", "_prn.md"),
        ("com1.py", "_com1.py"),
        ("LPT9", "_LPT9"),
        ("lpt\u00b2.x", "_lpt\u00b2.x"),
        (".con", "_con"),
        ("com0", "com0"),
        ("console.log", "console.log"),
        ("x.con", "x.con"),
        ("\U0001f600" * 80 + ".png", "\U0001f600" * 62 + ".png"),
        ("\u4e2d" * 80, "\u4e2d" * 80),
        ("\U00020000" * 80, "\U00020000" * 63),
        ("con." + "\U0001f600" * 80 + ".png", "_con." + "\U0001f600" * 61 + ".png"),
    ],
)
def test_names_that_every_system_takes(words, name):
    assert safe_file_name(words) == name
    assert len(name.encode()) <= 255
