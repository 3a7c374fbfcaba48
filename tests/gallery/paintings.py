"""Pictures to attach: painted here, so that nobody's photo lies in the tree."""

import colorsys
import io
import math

from PIL import Image, ImageDraw, ImageFilter


def painting(width: int, height: int, seed: int = 1) -> bytes:
    """Return a landscape at dusk as PNG; `seed` varies its colours and hills."""
    sky = Image.new("RGB", (1, height))
    for y in range(height):
        share = y / height
        hue = (0.62 + 0.09 * seed - 0.42 * share) % 1.0
        red, green, blue = colorsys.hsv_to_rgb(hue, 0.55 - 0.2 * share, 0.45 + 0.5 * share)
        sky.putpixel((0, y), (round(red * 255), round(green * 255), round(blue * 255)))
    image = sky.resize((width, height))
    draw = ImageDraw.Draw(image)
    radius = height // 9
    centre = (round(width * (0.3 + 0.13 * (seed % 4))), round(height * 0.44))
    draw.ellipse([centre[0] - radius, centre[1] - radius, centre[0] + radius, centre[1] + radius], fill="#fff1c9")
    for hill in range(4):
        base = height * (0.55 + 0.12 * hill)
        points = [
            (x, base + height * 0.05 * math.sin(x / width * (5 + hill * 2) + seed * 1.7 + hill * 2.1))
            for x in range(0, width + 8, 8)
        ]
        shade = 0.5 - 0.11 * hill
        red, green, blue = colorsys.hsv_to_rgb((0.6 + 0.09 * seed) % 1.0, 0.4, shade)
        colour = (round(red * 255), round(green * 255), round(blue * 255))
        draw.polygon([*points, (width, height), (0, height)], fill=colour)
    held = io.BytesIO()
    image.filter(ImageFilter.SMOOTH).save(held, "PNG")
    return held.getvalue()
