"""Where a picture stands behind its view, whatever is done to it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QPointF, QSize

from ui.shell.pictures.picture_canvas import MAX_ZOOM, PanZoom

sizes = st.builds(QSize, st.integers(1, 9000), st.integers(1, 9000))
views = st.builds(QSize, st.integers(100, 2000), st.integers(100, 2000))
ratios = st.sampled_from([1.0, 1.25, 2.0])
points = st.builds(QPointF, st.floats(0, 2000), st.floats(0, 2000))
acts = st.lists(
    st.one_of(
        st.tuples(st.just("zoom"), st.floats(0.001, 100), points),
        st.tuples(st.just("move"), points, st.none()),
        st.tuples(st.just("fit"), st.none(), st.none()),
    ),
    max_size=6,
)


def framing(size, view, ratio=1.0):
    pan_zoom = PanZoom()
    pan_zoom.show(size)
    pan_zoom.set_view(view, ratio)
    return pan_zoom


def test_what_fits_is_whole_in_the_middle_and_never_enlarged():
    pan_zoom = framing(QSize(1000, 500), QSize(500, 500))
    assert pan_zoom.zoom == 0.5
    assert pan_zoom.picture_rect().getRect() == (0, 125, 500, 250)
    assert framing(QSize(10, 10), QSize(500, 500)).picture_rect().getRect() == (245, 245, 10, 10)


def test_a_hundred_percent_is_a_pixel_of_the_screen():
    pan_zoom = framing(QSize(1000, 1000), QSize(200, 200), 2.0)
    pan_zoom.zoom_to(1.0)
    assert pan_zoom.picture_rect().width() == 500
    assert pan_zoom.can_move


@given(sizes, views, ratios, acts)
def test_no_empty_room_beside_a_picture_that_is_larger_than_its_view(size, view, ratio, actions):
    pan_zoom = framing(size, view, ratio)
    for act, value, anchor in actions:
        if act == "zoom":
            pan_zoom.zoom_to(value, anchor)
        elif act == "move":
            pan_zoom.move_by(value)
        else:
            pan_zoom.fits = True
        assert pan_zoom.zoom <= MAX_ZOOM
        picture_rect = pan_zoom.picture_rect()
        for start, length, room in (
            (picture_rect.left(), picture_rect.width(), view.width()),
            (picture_rect.top(), picture_rect.height(), view.height()),
        ):
            if length <= room:
                assert abs(start + length / 2 - room / 2) <= 1
            else:
                assert start <= 1
                assert start + length >= room - 1


@given(sizes, views, ratios, st.floats(0, 1), st.floats(0, 1))
def test_the_point_under_the_pointer_stays(size, view, ratio, across, down):
    pan_zoom = framing(size, view, ratio)
    pan_zoom.zoom_to(8.0)
    pointer = QPointF(across * view.width(), down * view.height())

    def picture_point(frame):
        return (pointer - frame.picture_rect().topLeft()) * (ratio / frame.zoom)

    if pan_zoom.picture_rect().width() < view.width() * 2 or pan_zoom.picture_rect().height() < view.height() * 2:
        return
    point = picture_point(pan_zoom)
    pan_zoom.zoom_to(12.0, pointer)
    assert (picture_point(pan_zoom) - point).manhattanLength() <= 1


def test_moving_what_fits_holds_its_zoom():
    pan_zoom = framing(QSize(1000, 500), QSize(500, 500))
    pan_zoom.move_by(QPointF(30, 30))
    assert pan_zoom.zoom == pytest.approx(0.5)
