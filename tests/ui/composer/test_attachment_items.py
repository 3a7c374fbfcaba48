"""What is said about pictures before they are sent."""

import pytest

from desktop_agent.conversation.picture_preparation import ImportedPicture
from desktop_agent.types.blocks import MEDIA_TYPES_WITHOUT_GIF
from desktop_agent.types.providers import ImageLimits
from ui.composer.attachment_items import PendingPicture, picture_notices


def picture(name="a", width=800, height=600, size=1000, media_type="image/png"):
    return PendingPicture(name, ImportedPicture(b"x" * size, media_type, width, height))


def remarks(*pictures, can_see=True, **limits):
    return picture_notices(pictures, ImageLimits(**limits), can_see=can_see)


def test_nothing_is_said_where_all_goes_as_it_is():
    assert remarks(picture(), max_bytes=1000, max_edge=800, max_count=1) == []
    assert remarks(picture(width=9000)) == []


def test_a_model_that_cannot_see_is_all_there_is_to_say():
    (words,) = remarks(picture(size=9), can_see=False, max_bytes=1)
    assert words.startswith("This model cannot see pictures.")
    assert remarks(picture(), can_see=None) == []


@pytest.mark.parametrize(
    ("properties", "limits", "words"),
    [
        ({"media_type": "image/gif"}, {"media_types": MEDIA_TYPES_WITHOUT_GIF}, "does not read GIF"),
        ({"size": 2001}, {"max_bytes": 2000}, "at most 2 KB"),
        ({"width": 1569}, {"downscale_edge": 1568}, "“a” is scaled down: this model sees at most 1,568 pixels a side."),
        ({"height": 2001}, {"max_edge": 2000, "downscale_edge": 4000}, "at most 2,000 pixels"),
    ],
)
def test_each_change_is_said(properties, limits, words):
    (sentence,) = remarks(picture(**properties), **limits)
    assert "“a”" in sentence
    assert words in sentence


def test_a_crowd_has_limits_of_its_own():
    many = [picture(str(n), width=1000) for n in range(3)]
    assert remarks(*many, many_images=3, many_images_max_edge=900) == []
    assert remarks(*many, many_images=2, many_images_max_edge=900) == [
        "3 pictures are scaled down: this model sees at most 900 pixels a side."
    ]
    (words,) = remarks(*many, max_count=2)
    assert "at most 2 pictures" in words
