"""Draw figures with matplotlib, for light and dark pages.

Figures are drawn in the colours of the light theme. In a page, each of these colours becomes the
CSS variable of the same name, so that the page's theme sets the colours.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any
from xml.etree import ElementTree

import matplotlib as mpl
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator

from kpca_apps.report.text import cut, number, writable

PALETTE = {
    "ink": "#1d1d21",
    "muted": "#62626b",
    "rule": "#d8d8de",
    "paper": "#fefefe",
    "accent": "#c2410c",
    "band": "#8d96a8",
    "blue": "#0072b2",
    "green": "#00795a",
    "purple": "#a3487a",
    "orange": "#b07400",
    "sky": "#2f8fc4",
}
STYLE: dict[Any, Any] = {
    "axes.edgecolor": PALETTE["rule"],
    "axes.labelcolor": PALETTE["muted"],
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.facecolor": "none",
    "axes.unicode_minus": True,
    "figure.facecolor": PALETTE["paper"],
    "font.family": "DejaVu Sans",
    "font.size": 8.0,
    "lines.linewidth": 1.4,
    "svg.fonttype": "none",
    "svg.hashsalt": "kpca",
    "text.color": PALETTE["ink"],
    "text.parse_math": False,
    "xtick.color": PALETTE["rule"],
    "xtick.labelcolor": PALETTE["muted"],
    "ytick.color": PALETTE["rule"],
    "ytick.labelcolor": PALETTE["muted"],
}
PNG = {"compress_level": 2}  # half the time of the default level, for files a tenth larger
NAMESPACE = re.compile(r"\{[^}]*\}")
FRACTION = re.compile(r"(\.\d\d)\d+")
AROUND = re.compile(r"\s*([A-Za-z])\s*")
REFERENCE = re.compile(r"(url\(#|^#)([\w-]+)")


@dataclass(frozen=True)
class Drawing:
    """A figure in the colours of `PALETTE`, with its name, title and caption."""

    name: str  # file name without suffix, and prefix of the ids inside the SVG
    title: str
    caption: str
    figure: Figure

    def __post_init__(self) -> None:
        """Compute the layout once, for both SVG and PNG."""
        settle(self.figure)


@contextmanager
def house_style() -> Iterator[None]:
    """Draw and save in the house style, regardless of the user's matplotlib settings."""
    with mpl.rc_context(), warnings.catch_warnings():
        # The font may lack characters of names in tables, but browsers fall back to other fonts.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        warnings.filterwarnings("ignore", message="Matplotlib currently does not support")
        mpl.rcdefaults()
        mpl.rcParams.update(STYLE)
        yield


def new_axes(width: float = 4.9, height: float = 2.9, rows: int = 1) -> tuple[Figure, list[Axes]]:
    """Start a figure of `rows` axes above each other, `width` x `height` inches."""
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, list(figure.subplots(rows, 1, sharex=True, squeeze=False)[:, 0])


def settle(figure: Figure) -> None:
    """Compute the layout of a figure once."""
    if (engine := figure.get_layout_engine()) is None:
        return
    engine.execute(figure)
    # The engine "none" would leave a placeholder that makes saving draw everything twice.
    figure.set_layout_engine(None)


def plain_ticks(*axes: Axis) -> None:
    """Write tick labels as plain numbers, without offsets or powers."""
    for axis in axes:
        axis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))
        axis.set_minor_locator(NullLocator())


def drawable(name: str, length: int = 40) -> str:
    """Convert text from a table to one short line, for drawing."""
    return "".join(c if c.isprintable() else "\ufffd" for c in writable(cut(name, length)))


def to_png(drawing: Drawing) -> bytes:
    """Render at twice the screen resolution, on the background of the light theme."""
    buffer = io.BytesIO()
    with house_style():
        drawing.figure.savefig(
            buffer, format="png", dpi=192, metadata={"Software": None}, pil_kwargs=PNG
        )
    return buffer.getvalue()


def to_files(*groups: Iterable[Drawing]) -> dict[str, bytes]:
    """Render groups of drawings; return the PNGs by file name without suffix."""
    return {drawing.name: to_png(drawing) for drawing in chain.from_iterable(groups)}


def to_svg(drawing: Drawing) -> Markup:
    """Convert a drawing to SVG for embedding in a page.

    Colours become CSS variables, ids get the drawing's name as prefix, coordinates have two
    decimals, and the page sets the font.
    """
    buffer = io.BytesIO()
    with house_style():
        drawing.figure.savefig(
            buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None}
        )
    root = ElementTree.fromstring(buffer.getvalue())
    for parent in root.iter():
        for child in [c for c in parent if c.tag.endswith("metadata")]:
            parent.remove(child)
    referenced = sorted({*re.findall(r'(?:url\(|href=")#([\w-]+)', buffer.getvalue().decode())})
    names = {name: f"{drawing.name}-{number}" for number, name in enumerate(referenced)}
    for element in root.iter():
        _adapt(element, names)
    for key in ("width", "height", "version"):
        root.attrib.pop(key, None)
    root.attrib |= {"role": "img", "aria-label": f"{drawing.title}. {drawing.caption}"}
    return Markup(ElementTree.tostring(root, encoding="unicode"))


def _adapt(element: ElementTree.Element, names: Mapping[str, str]) -> None:
    """Adapt an SVG element to a page; remove ids that nothing refers to."""
    element.tag = NAMESPACE.sub("", element.tag)
    attributes = {NAMESPACE.sub("", key): value for key, value in element.attrib.items()}
    if attributes.get("id") not in names:
        attributes.pop("id", None)
    for key, value in attributes.items():
        if key in ("d", "x", "y", "transform", "points"):
            value = FRACTION.sub(r"\1", value)
            value = AROUND.sub(r"\1", value) if key == "d" else value
        elif key == "id":
            value = names[value]
        elif key in ("href", "clip-path"):
            value = REFERENCE.sub(lambda match: match[1] + names[match[2]], value)
        elif key == "style":
            value = re.sub(r"font(-family)?:[^;]*'DejaVu Sans'[^;]*", _font, value)
            for name, colour in PALETTE.items():
                value = value.replace(colour, f"var(--{name})")
        attributes[key] = value
    element.attrib.clear()
    element.attrib.update(attributes)


def _font(match: re.Match[str]) -> str:
    size = re.search(r"[\d.]+px", match.group())
    return f"font-size: {size.group()}" if size else "font-weight: inherit"
