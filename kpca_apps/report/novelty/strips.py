"""Small figures that show a column's distribution, and a row's actual and expected value."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kpca_apps.novelty.result import CategoryProfile, ColumnProfile, NumericProfile, Reason

WIDTH = 200.0  # in SVG units
HEIGHT = 30.0
BASE = 27.0  # vertical position of the baseline
MARGIN = 8.0  # room for half a mark at each end
MAX_STRETCH = 1.0  # maximum length of the axis beyond each histogram end, in histogram widths


class Mark(NamedTuple):
    """A value on a strip; `beyond` is -1 or 1 if it lies left or right of the axis."""

    x: float
    y: float
    beyond: int = 0


class Bar(NamedTuple):
    """A bar of a category: left edge, top, width and height."""

    x: float
    y: float
    width: float
    height: float


class Strip(NamedTuple):
    """Geometry of a strip: a band (SVG path) or bars, and up to two marks."""

    band: str
    bars: tuple[Bar, ...]
    seen: Mark | None
    expected: Mark | None


def strip_of(reason: Reason, profile: ColumnProfile | None) -> Strip | None:
    """Lay out a reason's figure; None without values, or without the column's distribution."""
    distribution = None if profile is None else profile.distribution
    if distribution is None or (reason.seen_value is None and reason.expected_value is None):
        return None
    if isinstance(distribution, NumericProfile):
        return _numeric_strip(reason, distribution)
    return _category_strip(reason, distribution)


def _numeric_strip(reason: Reason, profile: NumericProfile) -> Strip:
    seen, expected = (
        float(value) if isinstance(value, float | int) else None
        for value in (reason.seen_value, reason.expected_value)
    )
    low, high = profile.edges[[0, -1]].tolist()
    reach = MAX_STRETCH * (high - low)
    near = [v for v in (seen, expected) if v is not None and low - reach <= v <= high + reach]
    left, right = min([low, *near]), max([high, *near])
    scale = (WIDTH - 2 * MARGIN) / (right - left)

    def mark(value: float | None) -> Mark | None:
        if value is None:
            return None
        x = MARGIN + (min(max(value, left), right) - left) * scale
        return Mark(round(x, 1), 19.0, int(value > right) - int(value < left))

    # Outline of the histogram; square roots of the counts make thin tails visible.
    places = MARGIN + (np.clip(profile.edges, low, high) - left) * scale
    heights = np.sqrt(profile.counts)
    heights = heights / heights.max() * (BASE - 5.0)
    steps = "".join(
        f"V{BASE - height:.1f}H{place:.1f}"
        for height, place in zip(heights, places[1:], strict=True)
    )
    return Strip(f"M{places[0]:.1f} {BASE:.1f}{steps}V{BASE:.1f}Z", (), mark(seen), mark(expected))


def _category_strip(reason: Reason, profile: CategoryProfile) -> Strip:
    levels, counts = profile.levels, [*profile.counts, profile.n_other]
    place_of = {level: place for place, level in enumerate(levels)}
    places = [
        None if value is None else place_of.get(str(value), len(levels))
        for value in (reason.seen_value, reason.expected_value)
    ]
    n_slots = len(levels) + int(profile.n_other > 0 or len(levels) in places)
    slot = min((WIDTH - 2 * MARGIN) / n_slots, 40.0)
    tallest = max(*counts, 1)
    bars = tuple(
        Bar(
            round(MARGIN + (place + 0.1) * slot, 1),
            round(BASE - n / tallest * 15.0, 1),
            round(0.8 * slot, 1),
            round(n / tallest * 15.0, 1),
        )
        for place, n in enumerate(counts[:n_slots])
    )

    # If both marks are over the same bar, show them side by side.
    shift = 5.0 if places[0] == places[1] else 0.0

    def mark(place: int | None, shift: float) -> Mark | None:
        if place is None:
            return None
        x = round(MARGIN + (place + 0.5) * slot + shift, 1)
        return Mark(x, round(bars[place].y - 6.0, 1))

    return Strip("", bars, mark(places[0], shift), mark(places[1], -shift))
