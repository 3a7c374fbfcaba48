"""Formulas: read, drawn, shown in lines and alone; hostile ones cost little."""

import os
import subprocess
import sys
import threading
from dataclasses import replace
from functools import partial
from pathlib import Path

import psutil
import pytest
from PySide6.QtCore import QPoint, QPointF, QRect, Qt
from PySide6.QtGui import QColor, QImage, QPainter

from desktop_agent.conversation.transcript import Transcript
from desktop_agent.markdown.latex import (
    COLOR,
    MAX_LATEX_LENGTH,
    FormulaError,
    TypesetAnswer,
    TypesetFormula,
    chemistry_to_latex,
    prepare_latex,
)
from desktop_agent.processes.worker import Worker
from desktop_agent.types.messages import Message
from tests.fakes.transcript_feed import NoPictures
from tests.frame.patience import PATIENCE
from tests.ui.transcript.blocks.math.typeset_here import typeset
from ui.style.theme import DARK, LIGHT, ThemeSource
from ui.transcript.blocks.block import PaintContext
from ui.transcript.blocks.math import formulas as formulas_module
from ui.transcript.blocks.math.formulas import (
    FormulaCache,
    FormulaRequest,
    MathCallbacks,
    PendingFormula,
    RenderedFormula,
    _luminance,
    with_readable_colors,
)
from ui.transcript.blocks.math.math_block import MathBlock, formula_error_sentence
from ui.transcript.blocks.text_block import MarkdownTextBlock, TextBlock
from ui.transcript.blocks.text_layout import InlineObject, TextLayout
from ui.transcript.markdown.elements import Leaf
from ui.transcript.markdown.inline import OBJECT, parse_inline
from ui.transcript.markdown.text_units import utf16_length
from ui.transcript.style import RenderStyle
from ui.transcript.view import TranscriptView
from ui.transcript.workers import JobQueue

USUAL = {
    "fraction": r"\frac{a+b}{c-d}",
    "sum": r"\sum_{i=1}^{n} i = \frac{n(n+1)}{2}",
    "matrix": r"\begin{pmatrix} a & b \\ c & d \end{pmatrix}",
    "cases": r"f(x) = \begin{cases} x^2 & \text{if } x \ge 0 \\ -x & \text{otherwise} \end{cases}",
    "integral": r"\int_{-\infty}^{\infty} e^{-x^2}\,dx = \sqrt{\pi}",
    "root": r"\sqrt[3]{x + \sqrt{1 + y^2}}",
    "greek": r"\alpha\beta\gamma\Gamma\Omega",
    "align": r"\begin{align} (a+b)^2 &= a^2 + 2ab + b^2 \\ c &= d \end{align}",
    "text": r"P(\text{rain today}) = 0.3",
    "vectors": r"\vec{F} = m\vec{a}, \mathbf{u}\cdot\mathbf{v}",
    "limit": r"\lim_{n \to \infty} \left(1 + \frac{1}{n}\right)^n = e",
    "raised matrix": r"\begin{pmatrix} a & \begin{vmatrix} b \end{vmatrix} \end{pmatrix}^{-1}",
    "binomial": r"\binom{n_{1}}{k_{1}} = \frac{n!}{k!(n-k)!}",
    "chemistry": r"\ce{2H2 + O2 -> 2H2O}",
    "Chinese": r"\text{速度} = \frac{\text{距離}}{t}",
}


@pytest.mark.parametrize("latex", USUAL.values(), ids=USUAL)
def test_usual_formulas_are_read(qapp, latex):
    read = typeset(latex, display=True)
    assert isinstance(read, TypesetFormula)
    assert read.width > 1
    assert read.ascent > 0.4
    assert "<path" in read.svg


def test_letters_that_the_font_of_formulas_lacks_are_borrowed(qapp):
    first, second = (typeset(rf"\text{{{char}}}", display=False) for char in "速時")
    assert first.svg != second.svg


# An accent over nothing, of which the library makes something that is far higher than zero is low.
OVER_NOTHING = [
    *(
        f"\\{name}{{}}"
        for name in [
            "vec",
            "hat",
            "bar",
            "dot",
            "tilde",
            "widehat",
            "overline",
            "overbrace",
            "underbrace",
            "overrightarrow",
        ]
    ),
    r"\overline{}\vec{}",
]


@pytest.mark.parametrize(
    ("latex", "cause", "detail"),
    [
        ("", "empty", ""),
        *((accent, "empty", "") for accent in OVER_NOTHING),
        (r"\foobar{x}", "unknown", r"\foobar"),
        (r"\left( x", "unclosed", ""),
        (r"\frac{1}", "missing", ""),
        (r"\binom{n}", "missing", r"\binom"),
        (r"\ce{H2O", "unclosed", "{"),
        ("x^2^3", "twice", ""),
        (r"\text{שלום}", "letter", "ש"),
        (r"a\hspace{9999999em}b", "large", ""),
        ("x" * (MAX_LATEX_LENGTH + 1), "long", ""),
        (r"\frac{1}{" * 60 + "x" + "}" * 60, "deep", ""),
        (r"\left(" * 60 + "x" + r"\right)" * 60, "deep", ""),
        (r"\begin{matrix}" + "1&" * 1500 + r"\end{matrix}", "large", ""),
    ],
)
def test_what_cannot_be_drawn_says_why(qapp, latex, cause, detail):
    problem = typeset(latex, display=True)
    assert isinstance(problem, FormulaError)
    assert problem.cause == cause
    assert problem.detail == detail
    assert formula_error_sentence(problem).endswith(".") or detail in formula_error_sentence(problem)


@pytest.fixture
def worker():
    """Return the real process, with less time for a formula."""
    task, limits = "desktop_agent.markdown.typesetting:typeset", replace(formulas_module._LIMITS, seconds=0.3)
    short_worker = Worker(task, list[TypesetAnswer], limits, timeout=PATIENCE, attempts=2)
    yield short_worker
    short_worker.close()


HOSTILE = [
    "{" * 100_000,
    r"\def\a{\a\a}" * 300 + r"\a",
    r"\newcommand{\x}{\x\x}\x",
    "_{" * 1900,
    r"\binom{" * 500,
    r"\begin{a}" * 400,
    "x" + "'" * 3000,
    "\\" * 3000,
    "&" * 1000,
    r"\frac{1}{" * 30 + "x" + "}" * 30,
    r"\sqrt{" * 39 + "}" * 39,
    r"\begin{matrix}a&" * 30 + "x" + r"\end{matrix}" * 30,
    r"\rule{99999em}{99999em}",
    "\ud800\u202e\x00",
    r"\text{</mtext><script>x</script>}",
    r"\href{file:///etc/passwd}{x}",
]


def test_hostile_formulas_end_in_a_picture_or_a_reason(qapp, worker):
    for latex in HOSTILE:
        result = formulas_module.typeset(worker, latex, display=False)
        assert isinstance(result, TypesetFormula | FormulaError), latex
        if isinstance(result, TypesetFormula):
            assert not [marker for marker in ("file:", "<script", "<image") if marker in result.svg], latex


def test_a_formula_that_takes_too_long_is_given_up(qapp, worker):
    assert formulas_module.typeset(worker, "x+" * 1500 + "x", display=True) == FormulaError("slow")
    assert isinstance(formulas_module.typeset(worker, "x+" * 10 + "x", display=True), TypesetFormula)
    assert worker.started == 2


def test_what_the_worker_says_is_what_is_typeset_here(qapp, worker):
    for latex in USUAL.values():
        assert formulas_module.typeset(worker, latex, display=True) == typeset(latex, display=True)


def test_a_worker_that_was_killed_is_replaced(qapp, worker):
    assert isinstance(formulas_module.typeset(worker, "x", display=True), TypesetFormula)
    psutil.Process(worker.pid).kill()
    assert isinstance(formulas_module.typeset(worker, "x", display=True), TypesetFormula)


def test_where_no_worker_can_be_started_formulas_say_that_they_cannot_be_drawn(qapp):
    nobody = Worker("ui.nothing:nothing", list[TypesetAnswer], formulas_module._LIMITS, timeout=1, command=["/none"])
    assert formulas_module.typeset(nobody, "x", display=True) == FormulaError("other")


def test_the_window_never_loads_the_typesetter(formulas, qtbot):
    program = "import sys, ui.app, ui.transcript.view; print('ziamath' in sys.modules, 'ziafont' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=PATIENCE)
    assert run.stdout == "False False\n"
    assert isinstance(wait_for(formulas, FormulaRequest("x^2", 16, "#ff0000"), qtbot), RenderedFormula)
    assert psutil.Process(formulas.worker.pid).ppid() == os.getpid()


def test_numbers_and_labels_of_equations_are_left_out():
    assert (
        prepare_latex(r"\begin{align}\label{eq:1} a &= b \nonumber\end{align}") == r"\begin{align*} a &= b \end{align*}"
    )
    assert prepare_latex(r"\begin{equation}x\end{equation}") == r"\begin{gather*}x\end{gather*}"
    assert prepare_latex(r"x \tag{7}") == r"x \qquad\text{(7)}"
    assert prepare_latex(r"\begin{alignat}{2} a &= b\end{alignat}") == r"\begin{align*} a &= b\end{align*}"


@pytest.mark.parametrize(
    ("text", "latex"),
    [
        ("H2O", r"\mathrm {H}_{2}\mathrm {O}"),
        ("2H2", r"2\,\mathrm {H}_{2}"),
        ("SO4^2-", r"\mathrm {SO}_{4}^{\mathrm {2-}}"),
        ("Na+", r"\mathrm {Na}^{+}"),
        ("A -> B", r"\mathrm {A}\;\rightarrow\;\mathrm {B}"),
        ("A <=>[x] B", r"\mathrm {A}\;\overset{\mathrm {x}}{\rightleftharpoons}\;\mathrm {B}"),
        ("(NH4)2", r"(\mathrm {NH}_{4})_{2}"),
    ],
)
def test_chemistry(text, latex):
    assert chemistry_to_latex(text) == latex


@pytest.fixture
def formulas(qapp):
    job_queue = JobQueue()
    yield FormulaCache(job_queue)
    job_queue.close()


def wait_for(formulas, shape, qtbot):
    arrivals = []
    formula = formulas.get(shape, partial(arrivals.append, 1))
    if isinstance(formula, PendingFormula):
        formula.ticket.mark_visible()
        qtbot.waitUntil(lambda: bool(arrivals))
    return formulas.get(shape, lambda: None)


def test_a_formula_comes_later_and_is_kept(formulas, qtbot):
    shape = FormulaRequest("x^2", 16, "#ff0000")
    first = formulas.get(shape, lambda: None)
    assert isinstance(first, PendingFormula)
    assert first.formula is None
    formula = wait_for(formulas, shape, qtbot)
    assert isinstance(formula, RenderedFormula)
    assert formula.picture.width() >= formula.width
    assert formulas.get(shape, lambda: None) is formula


def colors_of(formula):
    """Return the colours of its opaque pixels."""
    picture = formula.picture.toImage()
    pixels = [picture.pixelColor(x, y) for x in range(picture.width()) for y in range(picture.height())]
    return {pixel.name() for pixel in pixels if pixel.alpha() > 250}


def test_another_colour_has_the_same_measures_at_once(formulas, qtbot):
    red = wait_for(formulas, FormulaRequest("x^2", 16, "#ff0000"), qtbot)
    green_measures = formulas.get(FormulaRequest("x^2", 16, "#00ff00"), lambda: None).formula
    assert (green_measures.width, green_measures.ascent, green_measures.descent) == (red.width, red.ascent, red.descent)
    assert green_measures.picture is None
    green = wait_for(formulas, FormulaRequest("x^2", 16, "#00ff00"), qtbot)
    assert "#00ff00" in colors_of(green)


def test_a_problem_is_told_and_remembered(formulas, qtbot):
    assert wait_for(formulas, FormulaRequest(r"\foobar", 16, "#000000"), qtbot) == FormulaError("unknown", r"\foobar")


def test_old_pictures_make_room_for_new_ones(formulas, qtbot, monkeypatch):
    monkeypatch.setattr(formulas_module, "_MAX_CACHED_PIXELS", 1000)
    monkeypatch.setattr(formulas_module, "_MAX_CACHED_ERRORS", 3)
    for number in range(6):
        wait_for(formulas, FormulaRequest(f"x^{number}", 16, "#000000"), qtbot)
    assert len(formulas._pixmaps) < 6
    assert len(formulas._typeset_formulas) == 3
    assert formulas._pixels == sum(
        pixmap.picture.width() * pixmap.picture.height() for pixmap in formulas._pixmaps.values()
    )


def test_reading_happens_elsewhere(formulas, qtbot, monkeypatch):
    threads = []
    monkeypatch.setattr(
        formulas_module,
        "typeset",
        lambda worker, latex, display: threads.append(threading.current_thread()) or FormulaError("other"),
    )
    wait_for(formulas, FormulaRequest("y", 16, "#000000"), qtbot)
    assert threads != [threading.main_thread()]


@pytest.fixture
def style(qapp):
    return RenderStyle(LIGHT, 100)


def painted(block, style, width=400, height=200):
    image = QImage(width, height, QImage.Format.Format_RGB32)
    image.fill(Qt.GlobalColor.white)
    painter = QPainter(image)
    block.paint(PaintContext(painter, style, QRect(0, 0, width, height)))
    painter.end()
    return image


def test_objects_have_their_room_in_a_line(style):
    line = parse_inline("so $x$ and $y$ here")
    objects = {index: InlineObject(50, 30, 20) for index, char in enumerate(line.text) if char == OBJECT}
    text_layout = TextLayout(line, style.body, style, 400, style.line, objects=objects)
    bare = TextLayout(parse_inline("so  and  here"), style.body, style, 400, style.line)
    assert text_layout.height >= 50
    assert abs(text_layout.width - bare.width - 100) < 3
    boxes = text_layout.object_boxes()
    assert [round(box.width()) for box in boxes.values()] == [50, 50]
    assert all(box.top() >= 0 and box.bottom() <= text_layout.height for box in boxes.values())
    assert abs(text_layout.boxes(3, 1)[0].width() - 50) < 1
    assert text_layout.offset_at(boxes[3].left() + 40, 10) == 4


def test_lines_without_objects_stay_as_high_as_they_were(style):
    text = "some words that fill a line " * 6
    line = parse_inline(f"{text}$x$ {text}")
    text_layout = TextLayout(
        line, style.body, style, 400, style.line, objects={utf16_length(text): InlineObject(20, 40, 20)}
    )
    heights = [
        next_top - top
        for top, next_top in zip(text_layout.tops, [*text_layout.tops[1:], text_layout.height], strict=True)
    ]
    assert max(heights) > 55
    assert sorted(heights)[:-1] == [style.line] * (len(heights) - 1)


def test_an_object_in_text_from_right_to_left_stands_in_its_order(style):
    line = parse_inline("שלום $x$ עולם")
    text_layout = TextLayout(line, style.body, style, 400, style.line, objects={5: InlineObject(50, 10, 5)})
    box = text_layout.object_boxes()[5]
    assert text_layout.boxes(0, 4)[0].left() >= box.right()
    assert text_layout.boxes(7, 4)[0].right() <= box.left()


def host_of(formulas, changed):
    return MathCallbacks(formulas.get, lambda: changed.append(1))


def test_a_paragraph_shows_the_source_until_the_formula_is_there(formulas, style, qtbot):
    changed = []
    block = MarkdownTextBlock(Leaf("paragraph", r"so $\frac{a}{b}$ is"), {}, math=host_of(formulas, changed))
    height = block.layout(400, style)
    source = block._text_layout.object_boxes()[3].width()
    qtbot.waitUntil(lambda: bool(changed))
    assert not block.is_laid_out
    assert block.layout(400, style) > height
    assert block._text_layout.object_boxes()[3].width() < source
    assert len(changed) == 1


def test_what_was_asked_for_twice_is_told_once(formulas, style, qtbot):
    changed = []
    block = MarkdownTextBlock(Leaf("paragraph", "$x$"), {}, math=host_of(formulas, changed))
    for _ in range(3):
        block.layout(400, style)
    qtbot.waitUntil(lambda: bool(changed))
    assert len(changed) == 1


def test_places_in_a_paragraph_are_those_of_its_plain_text(style):
    block = MarkdownTextBlock(Leaf("paragraph", r"so $\alpha$ is"), {})
    block.layout(400, style)
    assert block.plain() == r"so $\alpha$ is"
    end = block._text_layout.object_boxes()[3].right()
    assert block.offset_at(QPoint(int(end), 5)) == len(r"so $\alpha$")
    assert block.offset_at(QPoint(399, 5)) == len(block.plain())
    assert block.paragraph_at(4) == (0, len(block.plain()))


def test_the_tip_says_source_and_reason(formulas, style, qtbot):
    changed = []
    block = MarkdownTextBlock(
        Leaf("paragraph", r"$\foobar$ and [x](https://x.org)"), {}, math=host_of(formulas, changed)
    )
    block.layout(400, style)
    qtbot.waitUntil(lambda: bool(changed))
    block.layout(400, style)
    inside = block._text_layout.object_boxes()[0].center().toPoint()
    assert block.tooltip_at(inside) == "\\foobar\nThis formula cannot be drawn: \\foobar is not known."
    link = block._text_layout.boxes(6, 1)[0].center().toPoint()
    assert block.tooltip_at(link) == "https://x.org"
    assert block.tooltip_at(QPoint(390, 5)) == ""


def test_a_formula_that_is_too_wide_for_its_line_is_made_smaller(formulas, style, qtbot):
    changed = []
    latex = "+".join("abcdefgh")
    block = MarkdownTextBlock(Leaf("paragraph", f"${latex}$"), {}, math=host_of(formulas, changed))
    block.layout(400, style)
    qtbot.waitUntil(lambda: bool(changed))
    block.layout(400, style)
    width = block._text_layout.object_boxes()[0].width()
    block.layout(int(width * 0.8), style)
    assert block._text_layout.object_boxes()[0].width() <= width * 0.8
    block.layout(int(width * 0.4), style)
    assert "too wide" in block.tooltip_at(QPoint(5, 8))


def test_a_block_shows_its_source_until_it_is_drawn(formulas, style, qtbot):
    changed = []
    block = MathBlock(r"\frac{a}{b}", host_of(formulas, changed))
    block.layout(400, style)
    assert block._source
    qtbot.waitUntil(lambda: bool(changed))
    height = block.layout(400, style)
    assert block._source is None
    image = painted(block, style)
    middle = [image.pixelColor(x, y).lightness() for x in range(180, 220) for y in range(height)]
    assert min(middle) < 100
    assert image.pixelColor(5, 5).lightness() == 255
    assert block.plain() == "$$\n\\frac{a}{b}\n$$"
    assert "\\frac" in block.spoken_text()
    assert (block.offset_at(QPoint(0, 0)), block.offset_at(QPoint(399, 0))) == (0, len(block.plain()))


def test_an_open_block_is_not_drawn(formulas, style):
    block = MathBlock(r"\frac{a", host_of(formulas, []), is_open=True)
    block.layout(400, style)
    assert not formulas._render_queue._queued
    block.append("}{b}")
    assert (block.text, block.is_laid_out) == (r"\frac{a}{b}", False)
    block.finish("x")
    assert (block.text, block.is_open) == ("x", False)


def test_a_wide_block_moves_sideways(formulas, style, qtbot):
    changed = []
    block = MathBlock("+".join(["x"] * 60), host_of(formulas, changed))
    block.layout(300, style)
    qtbot.waitUntil(lambda: bool(changed))
    block.layout(300, style)
    picture = painted(block, style, 300)
    assert block.scroll_horizontally(100)
    assert painted(block, style, 300) != picture
    assert block.scroll_horizontally(1 << 20)
    assert not block.scroll_horizontally(1)
    block.layout(5000, style)
    assert not block.scroll_horizontally(-1)


def test_a_block_that_cannot_be_drawn_says_why_below_its_source(formulas, style, qtbot):
    changed = []
    block = MathBlock(r"\foobar", host_of(formulas, changed))
    height = block.layout(400, style)
    qtbot.waitUntil(lambda: bool(changed))
    assert block.layout(400, style) > height
    assert block._error_layout.line.text == r"This formula cannot be drawn: \foobar is not known."


def test_a_huge_formula_costs_a_beginning_of_its_source(style):
    block = MathBlock("x + " * 25_000, None)
    assert block.layout(400, style) < 80 * style.mono_line * 5
    assert len(block._source.line.text) == MAX_LATEX_LENGTH + 1
    assert len(block.plain()) > 100_000


def test_colours_follow_the_theme(formulas, qapp, qtbot):
    for theme in (LIGHT, DARK):
        shape = FormulaRequest("x", 20, RenderStyle(theme, 100).color("text").name())
        assert theme.text in colors_of(wait_for(formulas, shape, qtbot))


def test_text_without_formulas_asks_for_nothing(style):
    block = TextBlock(parse_inline("plain *text*"))
    block.layout(300, style)
    assert block._formulas is None
    assert block.tooltip_at(QPoint(0, 0)) == ""
    assert block._text_layout.object_boxes() == {}
    assert QPointF(0, block.first_line(style).top()) == QPointF(0, 0)


FORMULAS = "\n\n".join(f"Line {number} with $x_{{{number}}}^2$ in it." for number in range(30)) + "\n\n$$\\sum_i x_i$$"


@pytest.fixture
def view(qtbot):
    transcript = Transcript([Message.user("Hello"), Message.assistant(FORMULAS)])
    view = TranscriptView(ThemeSource(), NoPictures(Path()))
    qtbot.addWidget(view, before_close_func=lambda view: view.close_workers())
    view.resize(700, 500)
    view.set_transcript(transcript)
    with qtbot.waitExposed(view):
        view.show()
    return view


def drawn_formulas(view):
    """Return how many formulas on the screen are drawn, in lines and alone."""
    rows = view.row_viewport.rows
    row = rows.row(1)
    blocks = [block for block in row.blocks if block.is_laid_out]
    in_lines = sum(
        not block._formulas._pending for block in blocks if isinstance(block, MarkdownTextBlock) and block._formulas
    )
    return in_lines, sum(block._formula is not None for block in blocks if isinstance(block, MathBlock))


def test_the_view_follows_the_end_while_formulas_arrive(view, qtbot):
    rows = view.row_viewport.rows
    qtbot.waitUntil(lambda: drawn_formulas(view)[0] > 5 and drawn_formulas(view)[1] == 1)
    assert rows.following
    assert rows.top == rows.bottom


def test_what_is_read_stays_where_it_is_while_formulas_above_arrive(view, qtbot):
    rows = view.row_viewport.rows
    rows.scroll_to(rows.row_top(1) + rows.row(1).stack.block_top(12))
    view.scroller.show_rows()
    row = rows.row(1)
    index = row.stack.block_at(rows.top - rows.row_top(1))
    y = rows.row_top(1) + row.stack.block_top(index) - rows.top
    qtbot.waitUntil(lambda: drawn_formulas(view)[0] > 5)
    assert not rows.following
    assert rows.row_top(1) + row.stack.block_top(index) - rows.top == y


def test_lines_over_a_formula_have_the_colour_of_its_text(qapp):
    for latex in (r"\overline{AB}", r"\underline{x}", r"\frac{a}{b}", r"\color{black}{x}"):
        drawn = typeset(latex, display=False)
        assert isinstance(drawn, TypesetFormula)
        assert "black" not in drawn.svg
        assert drawn.svg.count(COLOR) == drawn.svg.count("fill=")


@pytest.mark.parametrize(("text", "background"), [(LIGHT.text, LIGHT.window), (DARK.text, DARK.window)])
@pytest.mark.parametrize("name", ["blue", "red", "green", "yellow", "white", "gray", "#123456", "cyan"])
def test_named_colours_can_be_read_on_their_background(qapp, text, background, name):
    svg = with_readable_colors(f'<path fill="{name}" /><path fill="{text}" /><g fill="none"/>', text)
    color = svg.partition('"')[2].partition('"')[0]
    assert contrast(color, background) >= 4.4
    assert f'fill="{text}"' in svg
    assert 'fill="none"' in svg
    assert 'fill="' + text in with_readable_colors('<path fill="nonsense" />', text)


def contrast(first, second):
    low, high = sorted(_luminance(QColor(color)) for color in (first, second))
    return (high + 0.05) / (low + 0.05)
