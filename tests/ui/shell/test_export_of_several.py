"""Several conversations, or all, are exported as pages: each is a file in a folder."""

import pytest

from desktop_agent.types.provider_events import ContentDelta
from tests.fakes.qt_loop import until
from tests.fakes.scripted_provider import Turn
from ui.sidebar.organising import OrganisePresenter

TURNS = [Turn(ContentDelta(f"gold {number}")) for number in range(2)]


def banner_text(screen):
    return "\n".join(screen.words(screen.banners))


async def two(screen):
    """Make two conversations with the same title."""
    ids = []
    for number in range(2):
        if number:
            screen.desk.library.new()
            await until(lambda: screen.conversation.id not in ids)
        await screen.say("precious")
        ids.append(screen.conversation.id)
    return ids


async def choose(screen, words, path):
    dialog = await until(lambda: screen.desk.exchange()._dialog)
    dialog.selectNameFilter(next(pattern for pattern in dialog.nameFilters() if pattern.startswith(words)))
    dialog.filterSelected.emit(dialog.selectedNameFilter())
    assert dialog.defaultSuffix() == ""
    dialog.fileSelected.emit(str(path))
    dialog.reject()
    await until(lambda: "Exported to" in banner_text(screen))
    screen.banners.clear()


@pytest.mark.parametrize(("words", "ending"), [("Web pages", "html"), ("PDF files", "pdf"), ("Markdown", "md")])
def test_several_become_files_in_a_folder_that_replace_none(on_screen, tmp_path, words, ending):
    async def work(screen):
        ids = await two(screen)
        folder = tmp_path / "pages"
        screen.window.findChild(OrganisePresenter).act_on("export", ids)
        await choose(screen, words, folder)
        assert {path.name for path in folder.iterdir()} == {f"precious.{ending}", f"precious 2.{ending}"}
        screen.action("Export all conversations…").trigger()
        # An ending that somebody writes is that of the files.
        await choose(screen, words, tmp_path / f"pages.{ending}")
        names = {path.name for path in folder.iterdir()}
        assert names == {f"precious{number}.{ending}" for number in ("", " 2", " 3", " 4")}
        contents = [path.read_bytes() for path in folder.iterdir()]
        if ending == "pdf":
            assert all(content.startswith(b"%PDF-") for content in contents)
        else:
            assert sum(b"gold 0" in content for content in contents) == 2

    on_screen(work, *TURNS)


@pytest.mark.parametrize(("words", "ending"), [("Web pages", "html"), ("PDF files", "pdf")])
def test_all_is_a_folder_where_there_is_only_one(on_screen, tmp_path, words, ending):
    async def work(screen):
        await screen.say("precious")
        screen.action("Export all conversations…").trigger()
        await choose(screen, words, tmp_path / "pages")
        assert [path.name for path in (tmp_path / "pages").iterdir()] == [f"precious.{ending}"]

    on_screen(work, *TURNS[:1])


def test_a_folder_that_cannot_be_made_is_said(on_screen, tmp_path):
    async def work(screen):
        await screen.say("precious")
        (tmp_path / "taken").write_text("")
        for words in ("PDF files", "Web pages"):
            screen.action("Export all conversations…").trigger()
            dialog = await until(lambda: screen.desk.exchange()._dialog)
            dialog.selectNameFilter(next(pattern for pattern in dialog.nameFilters() if pattern.startswith(words)))
            dialog.fileSelected.emit(str(tmp_path / "taken"))
            dialog.reject()
            await until(lambda: f"“{tmp_path}/taken” is a file" in banner_text(screen))
            screen.banners.clear()
        assert (tmp_path / "taken").read_text() == ""

    on_screen(work, *TURNS[:1])


@pytest.mark.parametrize("words", ["Web pages", "PDF files"])
def test_one_that_is_deleted_meanwhile_is_named_and_the_others_are_there(on_screen, tmp_path, monkeypatch, words):
    async def work(screen):
        ids = await two(screen)
        exchange = screen.desk.exchange()._exchange
        select = exchange._select

        async def read_and_delete(selection):
            conversations = await select(selection)
            await screen.engine.store.delete_conversation(ids[0])
            await screen.engine.store.purge_conversation(ids[0])
            return conversations

        monkeypatch.setattr(exchange, "_select", read_and_delete)
        monkeypatch.setattr(screen.banners, "clear", lambda: None)
        screen.window.findChild(OrganisePresenter).act_on("export", ids)
        await choose(screen, words, tmp_path / "pages")
        assert len(list((tmp_path / "pages").iterdir())) == 1
        assert "Deleted meanwhile, so not exported (1): “precious”." in banner_text(screen)

    on_screen(work, *TURNS)
