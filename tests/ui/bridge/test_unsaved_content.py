"""What the disk refused, as the one file that it can be saved to."""

import json

from desktop_agent.types.blocks import Image, StoredSource
from desktop_agent.types.messages import Message
from ui.bridge.drafts import ComposerDraft, Draft, UnsavedContent


def test_a_draft_is_in_it_with_its_pasted_texts_and_the_pictures_that_cannot_be_read():
    source = StoredSource(digest="0f" * 32, media_type="image/png", size=70, width=1, height=1)
    image = Image(source=source, name="plan.png")
    content = UnsavedContent(draft=ComposerDraft(Draft("What is this?", (image,), pasted=("A long text.",))))
    text = content.to_markdown().decode()
    assert "What is this?\n\nA long text.\n\n(a picture: plan.png)" in text
    line = next(line for line in text.splitlines() if line.startswith('{"draft"'))
    assert image in Message.model_validate(json.loads(line)["draft"]).blocks
