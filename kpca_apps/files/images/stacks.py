"""Which pages of a TIFF file are one volume or one film, as OME or ImageJ metadata say."""

from __future__ import annotations

import re
from math import prod

import numpy as np

from kpca_apps.files.images.tiff import DESCRIPTION
from kpca_apps.files.images.types import ImageFile

_PIXELS = re.compile(rb"<(?:\w+:)?Pixels\b([^>]*)>")


def page_groups(image: ImageFile) -> tuple[tuple[int, ...], ...] | None:
    """Return the pages of each stack: slices of a volume, or frames of a film.

    Each channel is a stack of its own, and so is each volume of a film of volumes. None where
    nothing is said, or not of as many pages as there are.
    """
    if not image.directories:
        return None
    tag = image.directories[0].tags.get(DESCRIPTION)
    sizes = _sizes(bytes(tag.data)) if tag else {}
    if prod(sizes.values()) != len(image.pages):
        return None
    # The first axis named is the one that changes fastest from page to page.
    shape = tuple(sizes.values())[::-1]
    places = np.unravel_index(np.arange(len(image.pages)), shape)
    along = dict(zip(tuple(sizes)[::-1], places, strict=True))
    apart = ("C", "T") if sizes["Z"] > 1 else ("C",)
    groups: dict[tuple[int, ...], list[int]] = {}
    for number in range(len(image.pages)):
        groups.setdefault(tuple(int(along[axis][number]) for axis in apart), []).append(number)
    return tuple(map(tuple, groups.values()))


def _sizes(description: bytes) -> dict[str, int]:
    """Return how many pages there are along C, Z and T, the fastest first; empty if not said."""
    if description.startswith(b"ImageJ"):
        found = dict(re.findall(rb"^(channels|slices|frames)=(\d{1,9})\s*$", description, re.M))
        names = {"C": b"channels", "Z": b"slices", "T": b"frames"}
        return {axis: max(1, int(found.get(name, 1))) for axis, name in names.items()}
    if pixels := _PIXELS.search(description):
        said = dict(re.findall(rb"""(\w+)\s*=\s*["']([^"']*)["']""", pixels[1]))
        order = said.get(b"DimensionOrder", b"").decode("ascii", "replace")
        if sorted(order) == sorted("XYCZT"):
            counts = {axis: said.get(b"Size" + axis.encode(), b"1") for axis in order[2:]}
            if all(re.fullmatch(rb"[1-9]\d{0,8}", count) for count in counts.values()):
                return {axis: int(count) for axis, count in counts.items()}
    return {}
