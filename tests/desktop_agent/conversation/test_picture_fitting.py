"""Pictures made to fit a model: real ones, made by Pillow."""

import asyncio

import pytest
from PIL import Image

from desktop_agent.conversation import picture_preparation
from desktop_agent.conversation.picture_preparation import FitLimits, FittedPicture, PictureFitter, fit_picture
from desktop_agent.types.blocks import MEDIA_TYPES_WITHOUT_GIF, MediaType, detect_media_type
from desktop_agent.types.errors import ImageRefused
from desktop_agent.types.providers import ImageLimits
from tests.desktop_agent.conversation.test_picture_import import noise, opened, saved


def fitted(data: bytes, name: str = "", *, crowded: bool = False, **limits: object) -> FittedPicture:
    media_type = detect_media_type(data)
    assert media_type is not None
    fitting = fit_picture(data, media_type, FitLimits(ImageLimits(**limits), crowded), name)  # type: ignore[arg-type]
    assert detect_media_type(fitting.data) == fitting.media_type
    return fitting


def gif(frames: int = 1) -> bytes:
    pictures = [noise().quantize() for _ in range(frames)]
    return saved(pictures[0], "GIF", save_all=frames > 1, append_images=pictures[1:])


@pytest.mark.parametrize("format_", ["PNG", "JPEG", "GIF", "WEBP"])
def test_what_fits_keeps_its_bytes(format_: str) -> None:
    data = saved(noise(), format_)
    fitting = fitted(
        data, max_edge=60, many_images_max_edge=10, downscale_edge=60, max_bytes=len(data), accepts_animated=False
    )
    assert fitting.data is data
    assert fitting.reasons == ()


def test_gif_becomes_png_where_it_is_refused_and_loses_its_movement_where_that_is() -> None:
    fitting = fitted(gif(), "cat.gif", media_types=MEDIA_TYPES_WITHOUT_GIF)
    assert fitting.media_type == "image/png"
    assert [str(reason) for reason in fitting.reasons] == [
        "The picture “cat.gif” is sent as PNG: this model does not read GIF."
    ]
    moving = gif(3)
    assert fitted(moving).data is moving
    fitting = fitted(moving, accepts_animated=False)
    assert fitting.media_type == "image/png"
    first = opened(moving).convert("RGB")
    assert opened(fitting.data).convert("RGB").tobytes() == first.tobytes()
    assert [str(reason) for reason in fitting.reasons] == [
        "A picture is sent without its movement: this model reads still pictures only."
    ]


def test_webp_goes_as_what_is_read() -> None:
    assert fitted(saved(noise(), "WEBP"), media_types=("image/jpeg",)).media_type == "image/jpeg"
    assert fitted(saved(noise(), "WEBP"), media_types=("image/gif", "image/png")).media_type == "image/png"


@pytest.mark.parametrize(
    ("limits", "size"),
    [
        ({"max_edge": 30}, (30, 20)),
        ({"max_edge": 60, "many_images_max_edge": 30}, (60, 40)),
        ({"max_edge": 60, "many_images_max_edge": 30, "crowded": True}, (30, 20)),
        ({"max_edge": 20, "many_images_max_edge": 30, "crowded": True}, (20, 13)),
    ],
)
def test_pictures_are_scaled_to_the_longest_edge_that_fits(limits: dict[str, object], size: tuple[int, int]) -> None:
    fitting = fitted(saved(noise(), "JPEG"), **limits)  # type: ignore[arg-type]
    assert opened(fitting.data).size == size
    assert fitting.media_type == "image/jpeg"
    assert [str(reason) for reason in fitting.reasons] == (
        []
        if size == (60, 40)
        else [f"A picture is sent with {size[0]} x {size[1]} instead of 60 x 40 pixels: this model takes no more."]
    )


def test_pixels_that_are_of_no_use_are_left_out_only_where_that_saves_anything() -> None:
    data = saved(noise(200, 100), "PNG")
    fitting = fitted(data, downscale_edge=100)
    assert opened(fitting.data).size == (100, 50)
    assert len(fitting.data) < len(data)
    assert fitting.reasons == ()
    # Few colours in a palette: scaled, it gets many and is longer.
    drawing = Image.new("P", (200, 100))
    drawing.putpalette([0, 0, 0, 255, 0, 0, 0, 255, 0])
    for column in range(0, 200, 3):
        drawing.paste(1 + column % 2, (column, 0, column + 1, 100))
    data = saved(drawing, "PNG", optimize=True)
    fitting = fitted(data, downscale_edge=199)
    assert fitting.data is data


@pytest.mark.parametrize("format_", ["PNG", "JPEG", "WEBP"])
@pytest.mark.parametrize("share", [0.5, 0.2, 0.08])
def test_files_are_made_shorter(format_: str, share: float) -> None:
    data = saved(noise(300, 200), format_)
    most = int(len(data) * share)
    fitting = fitted(data, max_bytes=most)
    assert len(fitting.data) <= most
    (reason,) = fitting.reasons
    assert "with less detail" in str(reason)


def test_transparency_stays_where_it_can_and_becomes_white_where_it_cannot() -> None:
    image = noise(300, 200, "RGBA")
    image.putalpha(0)
    data = saved(Image.merge("RGBA", (*noise(300, 200).split(), image.getchannel("A"))), "PNG")
    assert fitted(data, max_bytes=len(data) // 2).media_type == "image/webp"
    fitting = fitted(data, max_bytes=len(data) // 2, media_types=("image/png", "image/jpeg"))
    assert fitting.media_type == "image/jpeg"
    assert opened(fitting.data).getpixel((10, 10)) == (255, 255, 255)


def test_what_cannot_be_helped_is_refused() -> None:
    with pytest.raises(ImageRefused, match=r"“cat.png” is larger than 1e-05 MB"):
        fitted(saved(noise(), "PNG"), "cat.png", max_bytes=10)
    with pytest.raises(ImageRefused, match="damaged"):
        fitted(b"\x89PNG\r\n\x1a\n" + bytes(60), max_edge=10)
    with pytest.raises(ImageRefused, match="damaged"):
        fitted(saved(noise(), "JPEG")[:300], max_edge=10)


async def test_results_are_kept_by_content_and_limits_and_are_the_same_when_made_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limits: list[FitLimits] = []
    real = fit_picture

    def counted(data: bytes, media_type: MediaType, fit: FitLimits, name: str = "") -> FittedPicture:
        limits.append(fit)
        return real(data, media_type, fit, name)

    monkeypatch.setattr(picture_preparation, "fit_picture", counted)
    data, fitter = saved(noise(300, 200), "JPEG"), PictureFitter()
    small, large = FitLimits(ImageLimits(max_edge=100)), FitLimits(ImageLimits(max_edge=300))
    first = await fitter.fit(data, "image/jpeg", small)
    assert await fitter.fit(bytes(data), "image/jpeg", small) is first
    assert (await fitter.fit(data, "image/jpeg", large)).data is data
    assert (await fitter.fit(data, "image/jpeg", large)).data is data
    assert limits == [small, large]
    assert await PictureFitter().fit(data, "image/jpeg", small) == first
    # Without any limit nobody looks at all.
    assert (await fitter.fit(b"x", "image/jpeg", FitLimits(ImageLimits(max_count=3)))).data == b"x"
    assert len(limits) == 3


async def test_one_picture_fitted_twice_at_once_counts_once() -> None:
    fitter, fit = PictureFitter(), FitLimits(ImageLimits(max_edge=10))
    data = saved(noise(), "PNG")
    one, _ = await asyncio.gather(*(fitter.fit(data, "image/png", fit) for _ in range(2)))
    assert fitter._size == len(one.data)


async def test_only_so_much_is_kept() -> None:
    fitter = PictureFitter(room=1)
    fit = FitLimits(ImageLimits(max_edge=10))
    for _ in range(3):
        await fitter.fit(saved(noise(), "PNG"), "image/png", fit)
    assert len(fitter._cache) == 1
