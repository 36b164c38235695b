"""The main figure: rows by the two columns that explain most of the scores of odd rows."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from numpy.typing import NDArray

from kpca_apps.novelty.result import N_KINDS, ColumnPlane, PlaneAxis, ScreeningResult
from kpca_apps.report.drawing import PALETTE, Drawing, drawable, new_axes, plain_ticks
from kpca_apps.report.novelty.marks import (
    MARK,
    MAX_FLAGGED,
    MAX_POINTS,
    N_LABELLED,
    by_rank,
    evenly,
    label_marks,
)
from kpca_apps.report.text import count, in_prose, percent, plural

MANY = 60  # number of flagged rows above which marks shrink
MAX_MARK_NAME = 12  # characters of an identifier next to a mark
SKEWED = 10.0  # an axis is logarithmic if its 99.5 % quantile exceeds this many medians
SPREAD = 0.28  # largest random offset of a mark from its category
DAY = 86_400.0  # seconds
YEARS = (-719_162.0, 2_932_896.0)  # years 1 to 9999, in days since 1970


def column_plane(result: ScreeningResult) -> Drawing | None:
    """Draw rows by the two columns that explain most of the scores of odd rows."""
    plane = result.pictures.plane
    if plane is None:
        return None
    figure, (axes,) = new_axes(5.6, 3.5)
    across, up = plane.x, plane.y
    if up is None:
        up = PlaneAxis("novelty score (higher = more novel)", plane.scores)
    if across.levels and not up.levels:  # names of categories are easier to read on the left
        across, up = up, across
    rows = {row.rank: row for row in result.ranked}
    wanted = [rows[0].rank for rows in result.kinds_of_reason[:N_KINDS]]
    wanted += [rank for rank in range(1, N_LABELLED + 1) if rank not in wanted]
    odd = plane.flagged | np.isin(plane.rank, wanted)
    places = np.column_stack([_place_on(axes, True, across, odd), _place_on(axes, False, up, odd)])
    shown = np.isfinite(places).all(axis=1)
    inner, outer = _rim(axes, places)
    usual = evenly(np.flatnonzero(~odd & shown), MAX_POINTS)
    dots = axes.plot(*inner[usual].T, "o", ms=3.4, mew=0, alpha=0.35, color=PALETTE["band"])
    place_of = {int(plane.rank[place]): place for place in np.flatnonzero(shown & (plane.rank > 0))}
    named = np.array([place_of[rank] for rank in wanted if rank in place_of], dtype=int)
    near = named[~plane.flagged[named]]
    order = by_rank(plane.rank)
    flagged = order[np.asarray(plane.flagged & shown)[order]][:MAX_FLAGGED]
    upwards = flagged[::-1]  # draw the oddest row last, so that it is on top
    size = MARK + 1.5 if len(flagged) <= MANY else MARK - 1.5
    for rows_of, colour, usually in ((near, "ink", "o"), (upwards, "accent", "^")):
        for marker, is_here in ((usually, ~outer.any(axis=1)), *zip("<>v^", outer.T, strict=True)):
            here = inner[rows_of[is_here[rows_of]]]
            dots += axes.plot(*here.T, marker, ms=size, mew=0.6, color=PALETTE[colour])
    for dot in dots:
        dot.set(clip_on=False, in_layout=False, mec=PALETTE["paper"])
    if plane.y is None and not across.levels and np.isfinite(result.threshold.value):
        axes.axhline(result.threshold.value, color=PALETTE["accent"], ls=(0, (4, 2)), lw=1.1)
    marked = [rows[int(plane.rank[place])] for place in named]
    texts = [f"{row.rank} {drawable(row.id or '', MAX_MARK_NAME)}".rstrip() for row in marked]
    colours = [PALETTE["accent" if plane.flagged[place] else "ink"] for place in named]
    label_marks(axes, inner[named], texts, colours, inner[flagged])
    who = "flagged" if result.n_flagged else "oddest"
    words = _plane_words(result, plane, odd & outer.any(axis=1), places)
    if len(flagged) == MAX_FLAGGED:
        words += f" {count(MAX_FLAGGED)} of {plural(result.n_flagged, 'flagged row')} are drawn."
    return Drawing("plane", f"Where the {who} rows lie", words, figure)


def _place_on(
    axes: Axes, is_across: bool, one: PlaneAxis, odd: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Set up an axis for a column; return the position of each row.

    The axis covers the rows outside `odd`, and `odd` rows up to one axis length away.
    """
    axis: Axis = axes.xaxis if is_across else axes.yaxis
    set_limits = axes.set_xlim if is_across else axes.set_ylim
    label, values = drawable(one.name), one.values
    if one.levels:
        set_limits(-0.6, len(one.levels) - 0.4)
        axis.set_ticks(range(len(one.levels)), [drawable(level, 18) for level in one.levels])
        if is_across and len(one.levels) > 3:
            axes.tick_params("x", labelrotation=20)
        axis.set_label_text(f"{label} (spread at random within each)")
        spread = np.random.default_rng(int(is_across)).uniform(-SPREAD, SPREAD, len(values))
        return np.asarray(values + spread)
    if one.is_date:
        values = np.clip(values / DAY, *YEARS)
    known = np.isfinite(values)
    usual = values[known & ~odd] if (known & ~odd).any() else values[known]
    axis.set_label_text(label)
    if not len(usual):
        return np.asarray(values)
    low, middle, high = np.quantile(usual, [0.005, 0.5, 0.995])
    is_log = bool(usual.min() > 0 and high > SKEWED * middle and not one.is_date)
    scale, back = (np.log, np.exp) if is_log else (np.asarray, np.asarray)
    if is_log:  # values that are not positive are drawn at the rim
        values = np.where(values <= 0, np.finfo(float).tiny, values)
        axis.set_label_text(f"{label} (log scale)")
        (axes.set_xscale if is_across else axes.set_yscale)("log")
    low, high = float(scale(low)), float(scale(high))
    reach = (high - low) or abs(high) or 1.0
    away = scale(values[known & odd])
    near = away[(away >= low - reach) & (away <= high + reach)].tolist()
    low, high = min([low, *near]), max([high, *near])
    room = 0.04 * ((high - low) or reach)
    limits = back(np.array([low - room, high + room]))
    if one.is_date:
        set_limits(*np.clip(limits, *YEARS))
        axis.axis_date()
    else:
        set_limits(*limits)
        if not is_log:
            axes.locator_params("x" if is_across else "y", nbins=6)
        plain_ticks(axis)
    return np.asarray(values)


def _rim(axes: Axes, places: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Clip points (n, 2) to the axes; also return a mask (n, 4) of the sides they exceeded."""
    low, high = np.array([axes.get_xlim(), axes.get_ylim()]).T
    below, above = places < low, places > high
    sides = np.column_stack([below[:, 0], above[:, 0], below[:, 1], above[:, 1]])
    sides &= np.cumsum(sides, axis=1) == 1  # keep one side, hence one arrow, for each point
    return np.clip(places, low, high), sides


def _plane_words(
    result: ScreeningResult,
    plane: ColumnPlane,
    is_beyond: NDArray[np.bool_],
    places: NDArray[np.float64],
) -> str:
    parts = {column.name: column.reason_share for column in result.columns}
    names = [one.name for one in (plane.x, plane.y) if one is not None]
    # Isolate names: a right-to-left name must not reorder the surrounding words.
    isolated = [f"\u2068{drawable(name)}\u2069" for name in names]
    shares = [
        f"{n} ({percent(parts.get(name, 0.0))})" for n, name in zip(isolated, names, strict=True)
    ]
    chosen = "the two columns that make up" if len(names) == 2 else "the column that makes up"
    how = f"by {chosen} the largest part of the reasons: {in_prose(shares)}"
    if not any(parts.get(name) for name in names):
        how = f"by {in_prose(isolated)}"
    words = [
        f"Each dot is a row of {plural(plane.n_rows, 'row')}, {how}. Triangles are the flagged "
        "ones, dark dots the oddest of the others; the numbers are ranks. A triangle inside the "
        "crowd is odd for other columns."
    ]
    if plane.n_rows > len(places):
        words.append(f"{count(len(places))} rows are drawn, all of the ranked list among them.")
    if n_beyond := int(is_beyond.sum()):
        lie = "row lies" if n_beyond == 1 else "rows lie"
        what = f"{count(n_beyond)} {lie}"
        words.append(f"{what} far beyond the rim, in the direction of the tip there.")
    n_lost = int((plane.flagged & ~np.isfinite(places).all(axis=1)).sum())
    if n_lost:
        who = "1 flagged row lacks" if n_lost == 1 else f"{n_lost} flagged rows lack"
        words.append(f"{who} one of the values and cannot be drawn.")
    return " ".join(words)
