"""What will happen to attached pictures at the model in use, said before they are sent."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication

from ui.composer.pictures import PendingPicture
from ui.look.sentences import size_in_words

if TYPE_CHECKING:
    from desktop_agent.vocabulary.requests import PictureLimits


def picture_remarks(
    pictures: Sequence[PendingPicture], limits: "PictureLimits | None", *, can_see: bool | None
) -> list[str]:
    """One sentence for each thing to know, in the person's language; nothing where all goes as it is.

    Pictures are made to fit when they are sent: another format, fewer pixels, a smaller file; the last ones if there
    are too many.
    """
    translate = QCoreApplication.translate
    if can_see is False:
        return [
            translate(
                "Pictures",
                "This model cannot see images. Choose another model or remove the pictures before you send.",
            )
        ]
    limits = limits or _usual_limits()
    remarks = [words for each in pictures if (words := _change(each, limits))]
    if limits.max_count is not None and len(pictures) > limits.max_count:
        words = translate("Pictures", "This model takes at most {0} pictures: the first of these are left out.")
        remarks.append(words.format(limits.max_count))
    return remarks + _scaling(pictures, limits)


def _usual_limits() -> "PictureLimits":
    # Late: nothing is attached to the window when it is drawn for the first time.
    from desktop_agent.vocabulary.requests import PictureLimits

    return PictureLimits()


def _change(picture: PendingPicture, limits: "PictureLimits") -> str:
    translate = QCoreApplication.translate
    if picture.taken.media_type not in limits.media_types:
        kind = picture.taken.media_type.removeprefix("image/").upper()
        words = translate("Pictures", "“{0}” is sent in another format: this model does not read {1}.")
        return words.format(picture.name, kind)
    if limits.max_bytes is not None and picture.size > limits.max_bytes:
        words = translate("Pictures", "“{0}” is made smaller: this model takes at most {1}.")
        return words.format(picture.name, size_in_words(limits.max_bytes))
    return ""


def _scaling(pictures: Sequence[PendingPicture], limits: "PictureLimits") -> list[str]:
    crowded = limits.crowd is not None and len(pictures) > limits.crowd
    edges = [limits.max_edge, limits.useful_edge, limits.crowd_edge if crowded else None]
    most = min((each for each in edges if each is not None), default=None)
    names = [each.name for each in pictures if most is not None and max(each.taken.width, each.taken.height) > most]
    translate = QCoreApplication.translate
    if not names:
        return []
    if len(names) == 1:
        words = translate("Pictures", "“{0}” is scaled down: this model sees at most {1} pixels a side.")
        return [words.format(names[0], f"{most:,}")]
    words = translate("Pictures", "{0} pictures are scaled down: this model sees at most {1} pixels a side.")
    return [words.format(len(names), f"{most:,}")]
