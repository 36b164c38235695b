"""Describe the axes of pages in OME's terms.

Goldberg et al. (2005), "The Open Microscopy Environment (OME) Data Model and XML file", Genome
Biology 6:R47.
"""

from __future__ import annotations

import math
import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tifffile import OmeXml

from kpca_apps.errors import InputError
from kpca_apps.images.stacks import ALONG, groups_along
from kpca_apps.images.tags import DESCRIPTION, LAYOUTS, ORIENTATION, Directory, Tag
from kpca_apps.images.tiff import PACKING, SHORT, ZIP
from kpca_apps.images.types import DEFLATE_RATIO, Groups, ImageFile, Page

_NO_UUID = uuid.UUID(int=0)
_TEXT = 2  # TIFF data type of text
# Characters that XML cannot hold, including surrogates.
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
MOST_PAGES = 1_000_000
_MOST_PLAIN = 3 << 30  # bytes of pixels that fit into a 4 GB TIFF, with a margin


@dataclass(frozen=True)
class Series:
    """Pages in the order of their axes (the last varies fastest), with OME attributes."""

    axes: str  # letters of T, C and Z, each at most once
    sizes: tuple[int, ...]
    page: Page
    attributes: Mapping[str, Any] = field(default_factory=dict)  # OME's, in tifffile's names

    @property
    def n_pages(self) -> int:
        """Number of pages."""
        return math.prod(self.sizes)


def make_image(
    format: str,
    series: Sequence[Series],
    page: Callable[[int], NDArray[Any]],
    *,
    orientation: int = 1,
    has_groups: bool = True,
    **more: Any,
) -> ImageFile:
    """Return an image file of several series of pages, with the tags of an OME-TIFF."""
    return ImageFile(
        format,
        tuple(part.page for part in series for _ in range(part.n_pages)),
        page,
        directories=ome_directories(series, orientation=orientation),
        groups=find_groups(series) if has_groups else None,
        **more,
    )


def check_pages(n_pages: int, n_bytes: int, packed: int) -> None:
    """Raise InputError if pages promise more bytes than a file of `packed` bytes can hold."""
    if not 1 <= n_pages <= MOST_PAGES or n_bytes > DEFLATE_RATIO * packed:
        raise InputError(
            f"its {n_pages} pages promise more pixels than its {packed} bytes can hold; "
            "it is damaged, fetch the file again."
        )


def find_groups(series: Sequence[Series]) -> Groups | None:
    """Return the pages of each stack; None if no series has slices or times."""
    if not any(axis in part.axes for part in series for axis in ALONG):
        return None
    groups, first = list[tuple[int, ...]](), 0
    for part in series:
        places = np.arange(first, first + part.n_pages).reshape(part.sizes)
        groups += groups_along(part.axes, places)
        first += part.n_pages
    return tuple(groups)


def ome_directories(series: Sequence[Series], *, orientation: int = 1) -> tuple[Directory, ...]:
    """Return the tags of an OME-TIFF's pages."""
    n_bytes = sum(part.n_pages * part.page.n_bytes for part in series)
    layout = LAYOUTS[0] if n_bytes < _MOST_PLAIN else LAYOUTS[2]
    shorts = {PACKING: [ZIP]}
    if orientation != 1:
        shorts[ORIENTATION] = [orientation]
    plain = Directory(layout, {}).with_integers(SHORT, shorts)
    n_pages = sum(part.n_pages for part in series)
    if any(part.page.dtype == np.float16 for part in series):
        return (plain,) * n_pages  # OME does not have this pixel type
    # Use a fixed UUID, so that equal pixels give equal bytes.
    xml = OmeXml(UUID=str(_NO_UUID), Creator="kpca")
    for part in series:
        page = part.page
        samples = ("S", (page.channels,)) if page.channels > 1 else ("", ())
        xml.addimage(
            page.dtype,
            (*part.sizes, page.height, page.width, *samples[1]),
            (part.n_pages, 1, 1, page.height, page.width, page.channels),
            axes=f"{part.axes}YX{samples[0]}",
            **part.attributes,
        )
    xml_text = xml.tostring(declaration=True).replace(f' UUID="urn:uuid:{_NO_UUID}"', "")
    text = _NO_XML.sub("", xml_text).encode() + b"\0"
    first = Directory(layout, {**plain.tags, DESCRIPTION: Tag(_TEXT, len(text), text)})
    return (first, *(plain,) * (n_pages - 1))


def page_times(times: Sequence[float], unit: str) -> dict[str, Any]:
    """Return the times of the pages under OME's names; empty unless all are finite."""
    if not times or not all(map(math.isfinite, times)):
        return {}
    return {"Plane": {"DeltaT": list(times), "DeltaTUnit": [unit] * len(times)}}


def physical_sizes(sizes: Mapping[str, float], unit: str) -> dict[str, Any]:
    """Return the positive pixel sizes along X, Y and Z under OME's names."""
    attributes: dict[str, Any] = {}
    for axis, size in sizes.items():
        if math.isfinite(size) and size > 0:
            attributes[f"PhysicalSize{axis}"] = float(size)
            attributes[f"PhysicalSize{axis}Unit"] = unit
    return attributes
