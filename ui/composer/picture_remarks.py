"""What will happen to attached pictures at the model in use, said before they are sent."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication

from ui.composer.pictures import PendingPicture
from ui.look.sentences import format_bytes

if TYPE_CHECKING:
    from desktop_agent.vocabulary.requests import ImageLimits


def picture_notices(
    pictures: Sequence[PendingPicture], limits: "ImageLimits | None", *, can_see: bool | None
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
    limits = limits or _default_limits()
    remarks = [words for each in pictures if (words := _conversion_notice(each, limits))]
    if limits.max_count is not None and len(pictures) > limits.max_count:
        words = translate("Pictures", "This model takes at most {0} pictures: the first of these are left out.")
        remarks.append(words.format(limits.max_count))
    return remarks + _scaling_notices(pictures, limits)


def _default_limits() -> "ImageLimits":
    # Late: nothing is attached to the window when it is drawn for the first time.
    from desktop_agent.vocabulary.requests import ImageLimits

    return ImageLimits()


def _conversion_notice(picture: PendingPicture, limits: "ImageLimits") -> str:
    translate = QCoreApplication.translate
    if picture.taken.media_type not in limits.media_types:
        kind = picture.taken.media_type.removeprefix("image/").upper()
        words = translate("Pictures", "“{0}” is sent in another format: this model does not read {1}.")
        return words.format(picture.name, kind)
    if limits.max_bytes is not None and picture.size > limits.max_bytes:
        words = translate("Pictures", "“{0}” is made smaller: this model takes at most {1}.")
        return words.format(picture.name, format_bytes(limits.max_bytes))
    return ""


def _scaling_notices(pictures: Sequence[PendingPicture], limits: "ImageLimits") -> list[str]:
    crowded = limits.many_images is not None and len(pictures) > limits.many_images
    edges = [limits.max_edge, limits.downscale_edge, limits.many_images_max_edge if crowded else None]
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
