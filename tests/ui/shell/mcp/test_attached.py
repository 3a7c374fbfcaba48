"""What came from a server, in a message and in a draft."""

from io import BytesIO

from PIL import Image as Picture

from desktop_agent.vocabulary.blocks import Image, Text
from tests.ui.bridge.in_loop import Bridge, until
from ui.composer.composer import Composer
from ui.composer.offers.attached import PendingResource, PictureOf, WordsOf
from ui.composer.pictures import PendingPicture
from ui.look.theme import ThemeSource
from ui.shell.mcp.attached import attached_of, blocks_of, draft_of, servers_of

WEEK = PendingResource("Notes", "Week 12", "notes://12", "decided")


def test_a_picture_of_a_server_says_whose_it_is_in_message_and_draft(in_loop, tmp_path, qtbot):
    data = BytesIO()
    Picture.new("RGB", (2, 2), "red").save(data, "PNG")

    async def work():
        bridge = await Bridge.open(tmp_path)
        composer = Composer(ThemeSource(), bridge.pictures.take)
        qtbot.addWidget(composer)
        composer.attachments.add_picture_of(PictureOf("Tickets", "Seats", data.getvalue()))
        composer.attachments.add_ready([WEEK, WordsOf("Notes"), WordsOf("Notes")])
        await until(lambda: not composer.attachments.is_preparing)
        await until(lambda: all(each.task is None or each.task.done() for each in composer.attachments._held))
        _, attached = composer.draft()
        picture, week, words = attached
        assert (picture.name, picture.server, week, words) == ("Seats", "Tickets", WEEK, WordsOf("Notes"))
        assert servers_of(attached) == ("Tickets", "Notes")
        text, mark, image, resource = await blocks_of("Look", attached, bridge.pictures)
        assert text == Text(text="Look")
        assert "“Seats”, is from the server “Tickets”" in mark.text
        assert isinstance(image, Image)
        assert "from the server “Notes”" in resource.text
        draft = draft_of("Look", attached)
        again = attached_of(draft)
        assert again == [PendingPicture("Seats", picture.taken), WEEK, WordsOf("Tickets"), WordsOf("Notes")]
        assert servers_of(again) == ("Notes", "Tickets")
        await bridge.close()

    in_loop(work())
