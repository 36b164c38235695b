"""Find the pages of each volume or film in a TIFF file from the metadata."""

from __future__ import annotations

import logging
import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tifffile import TiffFile

from kpca_apps.images.types import Groups
from kpca_apps.system.quiet import warnings_ignored

# Axes along which pages resemble each other, the most similar first.
ALONG = ("Z", "T")
logging.getLogger("tifffile").addHandler(logging.NullHandler())  # suppress messages about tags


def page_groups(path: Path, n_pages: int) -> Groups | None:
    """Return the pages of each stack: slices of a volume or frames of a film.

    Each channel is a separate stack, and so is each volume of a film of volumes. Axes come from
    OME, ImageJ or tifffile metadata. None without metadata; empty if the metadata do not fit the
    pages.
    """
    try:
        with warnings_ignored(), TiffFile(path, _multifile=False) as file:
            if not (file.is_ome or file.is_imagej or file.is_shaped):
                return None
            parts = [
                (
                    part.axes,
                    part.shape,
                    [None if page is None else page.index for page in part.pages],
                )
                for part in file.series
            ]
    except Exception:
        # The metadata cannot be parsed; other code reads the pages themselves.
        return ()
    if sorted(-1 if page is None else page for _, _, pages in parts for page in pages) != [
        *range(n_pages)
    ]:
        return ()
    groups: list[tuple[int, ...]] = []
    for axes, shape, pages in parts:
        sizes = {axis: n for axis, n in zip(axes, shape, strict=True) if axis not in "YXS"}
        if "Q" in sizes:  # tifffile's letter for unnamed axes
            return None
        if not sizes.keys() <= {*ALONG, "C"} or math.prod(sizes.values()) != len(pages):
            return ()
        places = np.array(pages, dtype=np.int64).reshape(tuple(sizes.values()))
        groups += groups_along("".join(sizes), places)
    return tuple(groups)


def groups_along(axes: str, places: NDArray[np.integer]) -> Groups:
    """Group pages into stacks along slices, or else along times; without both, one by one.

    `places` holds page numbers, with one axis per letter of `axes`.

    >>> groups_along("ZC", np.array([[0, 1], [2, 3]]))
    ((0, 2), (1, 3))
    """
    along = next((axes.index(axis) for axis in ALONG if axis in axes), None)
    rows = places[..., np.newaxis] if along is None else np.moveaxis(places, along, -1)
    return tuple(tuple(map(int, row)) for row in rows.reshape(-1, rows.shape[-1]))
