"""Four views of the same columns, side by side in one matrix, for a mean of kernels.

No single scaling suits every column: standardising lets a rare level dominate, ranks hide how far
an extreme value lies, ranges are set by one row. The detector therefore scales each column in four
ways and averages the kernels, which is a kernel again (the cone property: Scholkopf, Smola & Muller
1996, appendix B.7).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
from msgspec import Meta
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from kpca_apps.engine.kernels import Kernel, MeanRBF
from kpca_apps.engine.kernels.by_name import median_distance
from kpca_apps.engine.landmarks import uniform_landmarks
from kpca_apps.engine.nystroem import LandmarkBasis
from kpca_apps.engine.rows import (
    BLOCK,
    MAPPED,
    ArrayRows,
    RowFunction,
    RowSource,
    RowSums,
    Sums,
    map_row_blocks,
)
from kpca_apps.engine.subspace import Resolved
from kpca_apps.novelty.magnitudes import LARGEST_TO_SUBTRACT, mean_and_sd, refuse_larger, varies
from kpca_apps.system.arrays import BoolArray, FloatArray, IntArray, Uncached

# The kernels are exp(-3 D) and exp(-9 D), D in units of the view's median squared distance.
GAMMA, POWERS = 3.0, (1, 3)
WIDTH_ROWS = 500  # number of rows whose median squared distance gives the width of a view
# Up to this many values (8 MB), the views of all rows are cached while a model is fitted.
MOST_KEPT = 2**20
# Up to this many rows and bytes, coordinates in the span of the landmarks are cached. More rows,
# perhaps on a cluster, are scored where they are stored.
MOST_ROWS_KEPT, MOST_FEATURE_BYTES = 10_000, 2**26
# Number of rows compared with the landmarks at once. A multiple of 64 and of 24, as
# `engine.rows.BLOCK` explains; small, as the kernel over views holds several arrays of this size.
SCORED_BLOCK = 192
VARIANCE_ROWS = 10_000  # number of evenly drawn rows used for the variances of scaled columns

IQR_OF_NORMAL = 1.349
"""Interquartile range of a standard normal variable."""
# Of each of d columns, order statistics are stored to rank new values: at most MAX_RANK_KNOTS, and
# at most RANK_KNOTS_OF_WIDE / d^2 to save memory, but at least LEAST_RANK_KNOTS.
MAX_RANK_KNOTS, RANK_KNOTS_OF_WIDE, LEAST_RANK_KNOTS = 20_000, 60_000_000, 200
GROSS = 100.0  # number of robust standard deviations from the median beyond which a value is gross

CELLS_A_VALUE = 2  # number of cells into which the range of a column is cut, per distinct value
ROUNDING = 0.01  # maximum rounding error of the `guesses` in `NormalScores`, in units of a cell
# Maximum number of values in a cell; beyond, a search of the whole column takes fewer steps.
MOST_STEPS = 32


@dataclass(frozen=True)
class ColumnRoles:
    """Which columns stay unscaled, and which columns come from one source."""

    as_is: IntArray  # columns that every view takes unscaled, increasing
    # Columns made from one source column weigh as much as one column, and are explained as one.
    groups: tuple[IntArray, ...]

    @classmethod
    def of(
        cls,
        n_columns: int,
        as_is: ArrayLike | None = None,
        groups: Sequence[Sequence[int]] | None = None,
    ) -> ColumnRoles:
        """Check a user's description of the columns; by default each column is its own group."""
        columns = np.asarray([] if as_is is None else as_is)
        if columns.size and columns.dtype.kind not in "iu":
            raise ValueError(f"as_is must hold whole numbers, got {columns.tolist()}.")
        indices = np.unique(columns.astype(np.int64))
        if indices.size and (indices[0] < 0 or indices[-1] >= n_columns):
            raise ValueError(
                f"as_is must name columns from 0 to {n_columns - 1}, got {indices.tolist()}."
            )
        if groups is None:
            return cls(indices, tuple(np.array([j]) for j in range(n_columns)))
        arrays = tuple(np.asarray(group, dtype=np.int64) for group in groups)
        members = np.concatenate([np.empty(0, dtype=np.int64), *arrays])
        if not np.array_equal(np.sort(members), np.arange(n_columns)):
            raise ValueError(
                f"groups must hold each of the {n_columns} columns once, got {members.tolist()}."
            )
        return cls(indices, arrays)


@dataclass(frozen=True)
class ViewScales:
    """Four views of the columns, side by side: each view scales the columns in another way.

    Each view holds the varying columns, scaled in one way (standardised, by an inverse hyperbolic
    sine, by their range, by normal scores of their ranks), and behind them the `as_is` columns.
    Every view is divided by the square root of the median squared distance between training rows,
    so that the same bandwidths serve all. `kernel` is the mean over views v of (u + u^3) / 2 with u
    = exp(-3 D_v), D_v the squared distance of two rows in view v.
    """

    varying: Annotated[IntArray, "d", Meta(ge=0)]  # indices of varying columns, which are scaled
    as_is: Annotated[IntArray, "a", Meta(ge=0)]  # columns appended to every view unscaled
    scales: ColumnScales  # scales of the varying columns
    weight: Annotated[FloatArray, "d"]  # 1 / sqrt(k) for a column in a group of k varying columns
    # Factor that gives each view's scaled columns the mean variance 1; 1 if `as_is` is empty.
    block_factors: Annotated[FloatArray, "v"]
    widths: Annotated[FloatArray, "v"]  # square root of each view's median squared distance

    def validate(self) -> None:
        """Raise if there is not one scale for each varying column, or if a scale is too small."""
        scales = self.scales
        if len(scales.mean) != len(self.varying):
            raise ValueError(f"scales of {len(scales.mean)} columns")
        with np.errstate(all="ignore"):
            spreads = np.stack([scales.sd, scales.asinh_sd, scales.maximum - scales.minimum])
            factors = self._factors[:3] / spreads[: len(self._factors)]
            if not (np.isfinite(factors).all() and np.isfinite(1.0 / self.widths).all()):
                raise ValueError("scales too small to divide by")

    @property
    def _factors(self) -> FloatArray:
        """Factors by which the scaled columns of each view are multiplied, shape (v, d)."""
        return (self.block_factors / self.widths)[:, None] * self.weight

    @classmethod
    def fit(
        cls, X: FloatArray, rows: IntArray, columns: ColumnRoles, rng: np.random.Generator
    ) -> ViewScales:
        """Learn the scalings from some rows (r,) of a table (n, d) of finite numbers.

        A column that is constant in these rows but not in the table is scaled by the whole table.
        ValueError if no column varies, or one holds numbers beyond 1e300.
        """
        refuse_larger(X, LARGEST_TO_SUBTRACT, "whose differences no float can hold")
        as_is = columns.as_is
        scaled = np.setdiff1d(np.arange(X.shape[1]), as_is)
        varying = scaled[varies(X[:, scaled])]
        if not varying.size and not varies(X[:, as_is]).any():
            raise ValueError(f"All {X.shape[1]} columns are constant: there is nothing to learn.")
        used = X[rows]
        weight = np.ones(len(varying))
        for group in columns.groups:
            of_group = np.isin(varying, group)
            weight[of_group] = 1.0 / np.sqrt(max(of_group.sum(), 1))
        n_views = 4 if varying.size else 1
        views = cls(
            varying=varying,
            as_is=as_is,
            weight=weight,
            block_factors=np.ones(n_views),
            widths=np.ones(n_views),
            scales=ColumnScales.fit(used[:, varying], X[:, varying]),
        )
        if as_is.size and varying.size:
            some = used[:: 1 + (len(used) - 1) // VARIANCE_ROWS]
            blocks = np.split(views.transform(some), n_views, axis=1)
            variances = np.array([block[:, : len(varying)].var(axis=0).mean() for block in blocks])
            # If all columns of a view are constant in these rows, the view is not rescaled.
            variances[variances == 0] = 1.0
            views = replace(views, block_factors=1.0 / np.sqrt(variances))
        seen = views.transform(used[uniform_landmarks(len(used), WIDTH_ROWS, rng)])
        squared = [median_distance(view, rng) for view in np.split(seen, n_views, axis=1)]
        return replace(views, widths=np.sqrt(squared))

    @property
    def kernel(self) -> Kernel:
        """Kernel that compares rows of the matrix that `transform` returns."""
        return MeanRBF(GAMMA, POWERS, len(self.widths))

    @property
    def n_features(self) -> int:
        """Number of columns of the matrix of `transform`."""
        return len(self.widths) * (len(self.varying) + len(self.as_is))

    def transform(self, X: FloatArray) -> FloatArray:
        """Return all views of the rows side by side, shape (n, v (d + a))."""
        d, n_views = len(self.varying), len(self.widths)
        factors = self._factors
        views = np.empty((len(X), n_views, d + len(self.as_is)))
        for start in range(0, len(X), BLOCK):
            rows, out = X[start : start + BLOCK], views[start : start + BLOCK]
            out[:, :, d:] = rows[:, None, self.as_is] / self.widths[:, None]
            if d:
                self.scales.scaled(rows[:, self.varying], factors, out[:, :, :d])
        return views.reshape(len(X), n_views * views.shape[2])

    def standardised(self, X: FloatArray) -> FloatArray:
        """Return all columns: varying ones standardised, `as_is` ones unscaled, constant ones 0."""
        out = np.zeros_like(X)
        out[:, self.varying] = (
            self.weight * (X[:, self.varying] - self.scales.mean) / self.scales.sd
        )
        out[:, self.as_is] = X[:, self.as_is]
        return out


@dataclass(frozen=True)
class RawColumns:
    """The columns of a table, unscaled, as the only input of a user's own kernel."""

    kernel: Kernel
    # Scales for distances between rows when reasons are sought; sd is 1 for constant columns.
    mean: Annotated[FloatArray, "d"]
    sd: Annotated[FloatArray, "d", Meta(gt=0)]

    @classmethod
    def fit(cls, X: FloatArray, kernel: Kernel) -> RawColumns:
        """Store mean and spread of the columns of `X`; ValueError if none varies."""
        if not varies(X).any():
            raise ValueError(f"All {X.shape[1]} columns are constant: there is nothing to learn.")
        mean, sd = mean_and_sd(X)
        return cls(kernel, mean, np.where(varies(X), sd, 1.0))

    @property
    def n_features(self) -> int:
        """Number of columns of the matrix of `transform`."""
        return len(self.mean)

    def transform(self, X: FloatArray) -> FloatArray:
        """Return the rows themselves."""
        return X

    def standardised(self, X: FloatArray) -> FloatArray:
        """Return standardised columns."""
        return (X - self.mean) / self.sd


@dataclass(frozen=True, eq=False)
class OfViews:
    """Turns a function of the rows' views into a function of the rows, on any worker."""

    views: ViewScales | RawColumns
    function: Any  # RowFunction or RowSums

    @property
    def purpose(self) -> str:
        """The purpose of the function, shown as progress."""
        return str(self.function.purpose)

    def prepare(self) -> Callable[..., Any]:
        """Return a function of unscaled rows that applies `function` to their views."""
        prepared, transform = self.function.prepare(), self.views.transform
        return lambda rows, *in_use: prepared(transform(rows), *in_use)


@dataclass(frozen=True)
class ViewedSample:
    """Rows in memory. Indexing returns them transformed by `views`, from `kept` if it is given."""

    views: ViewScales | RawColumns
    rows: FloatArray  # (s, columns), unscaled
    kept: FloatArray | None = None  # (s, columns of views); None if not cached

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the matrix that `views.transform` makes of the rows."""
        return len(self.rows), self.views.n_features

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, rows: Any) -> FloatArray:
        return self.views.transform(self.rows[rows]) if self.kept is None else self.kept[rows]


def large_block(n: int) -> int:
    """Return the number of rows to multiply at once: min(n, MAPPED), rounded up to full blocks."""
    return SCORED_BLOCK * -(-min(n, MAPPED) // SCORED_BLOCK)


class Features(NamedTuple):
    """Features of rows for scoring by landmarks, cached while a model is fitted."""

    z: FloatArray  # (n, p), coordinates in the landmarks' span
    lengths: FloatArray  # (n,), k(x, x)
    precision: Resolved  # of z


class ViewedRows:
    """A `RowSource` that applies `views` to another source's rows, or only to those `in_use`.

    `sample_index` are positions in the other source, which also counts the rows not in use.
    """

    def __init__(
        self,
        source: RowSource,
        views: ViewScales | RawColumns,
        in_use: BoolArray | None = None,
        *,
        n_jobs: int | None = None,
    ) -> None:
        kept = slice(None) if in_use is None else in_use[source.sample_index]
        every = isinstance(kept, slice) or bool(kept.all())
        self._source, self._views, self._in_use, self._n_jobs = source, views, in_use, n_jobs
        self.all_seen: ArrayRows | None
        self.n_rows = source.n_rows if in_use is None else int(np.count_nonzero(in_use))
        self.sample_index = source.sample_index[kept]
        rows, self.all_seen, of_sample = source.sample[:], None, None
        if len(rows) == source.n_rows and len(rows) * views.n_features <= MOST_KEPT:
            seen = views.transform(rows)
            self.all_seen, of_sample = ArrayRows(seen, n_jobs=n_jobs), seen if every else seen[kept]
        self.sample = ViewedSample(views, rows if every else rows[kept], of_sample)

    def features(self, basis: LandmarkBasis, precision: Resolved) -> Features | None:
        """Return the features of all rows of the source, or None if there are too many to keep."""
        if self.all_seen is None:
            return None
        seen = np.asarray(self.all_seen.sample)
        size = np.dtype(precision).itemsize * basis.transform.shape[1]
        if len(seen) > MOST_ROWS_KEPT or len(seen) * size > MOST_FEATURE_BYTES:
            return None
        kernel_rows = basis.kernel.against(basis.points, precision)
        product = basis.product(precision)
        # Kernel values are computed for few rows at a time, but multiplied for many.
        z = map_row_blocks(
            lambda rows: product(map_row_blocks(kernel_rows, rows, block=SCORED_BLOCK)),
            seen,
            block=large_block(len(seen)),
            n_jobs=self._n_jobs,
        )
        return Features(z, basis.kernel.diagonal(seen), precision)

    def map(self, function: RowFunction, in_use: BoolArray | None = None) -> FloatArray:
        """Return one number for each row."""
        marked = None if in_use is None else self._of_source(in_use)
        if self.all_seen is not None:
            values = self.all_seen.map(function, marked)
        else:
            values = self._source.map(OfViews(self._views, function), marked)
        return values if self._in_use is None else values[self._in_use]

    def sum(self, function: RowSums[Sums], in_use: BoolArray | None = None) -> Sums:
        """Return the sums over the training subset."""
        used = self._in_use if in_use is None else self._of_source(in_use)
        if self.all_seen is not None:
            return self.all_seen.sum(function, used)
        total: Sums = self._source.sum(OfViews(self._views, function), used)
        return total

    def _of_source(self, marked: BoolArray) -> BoolArray:
        if self._in_use is None:
            return marked
        of_source = self._in_use.copy()
        of_source[self._in_use] = marked
        return of_source


@dataclass(frozen=True, eq=False)
class ColumnScales(Uncached):
    """Means, spreads, ranges and quantiles of columns, with which `ViewScales` scales values."""

    mean: Annotated[FloatArray, "d"]
    sd: Annotated[FloatArray, "d"]
    median: Annotated[FloatArray, "d"]
    spread: Annotated[FloatArray, "d", Meta(gt=0)]  # IQR / 1.349, or sd if that is too small
    minimum: Annotated[FloatArray, "d"]
    maximum: Annotated[FloatArray, "d"]
    asinh_mean: Annotated[FloatArray, "d"]  # mean of asinh((x - median) / spread)
    asinh_sd: Annotated[FloatArray, "d"]
    # Sorted training values, evenly thinned to at most 20,000, for the ranks of new values.
    order_statistics: Annotated[FloatArray, "k d"]

    @classmethod
    def fit(cls, used: FloatArray, everyone: FloatArray) -> Self:
        """Learn scales from `used` (r, d); for columns constant there, from `everyone` (n, d)."""
        most = max(RANK_KNOTS_OF_WIDE // max(used.shape[1], 1) ** 2, LEAST_RANK_KNOTS)
        size = min(len(used), MAX_RANK_KNOTS, most)
        scales, bent = _scales(used, size)
        constant = ~varies(used)
        if constant.any():
            of_everyone, bent[:, constant] = _scales(everyone[:, constant], size)
            for name, values in scales.items():
                values[..., constant] = of_everyone[name]
        found = cls(**scales)
        # Fill the cache of `_table`, so that it is not computed again.
        found.__dict__["_table"] = NormalScores.fit(found.order_statistics, bent)
        return found

    def scaled(self, columns: FloatArray, factors: FloatArray, out: FloatArray) -> None:
        """Scale columns (n, d) in four ways, times factors (4, d), into an array (n, 4, d).

        The scalings: standardised; asinh((x - median) / spread), standardised; divided by the
        range; normal scores of ranks. Values too far out to be scaled become infinite.
        """
        # Make each column contiguous: arithmetic is several times faster along the long columns.
        lines = np.ascontiguousarray(columns.T)
        scaled = np.empty((4, *lines.shape))
        with np.errstate(over="ignore"):
            bent, centred = self._bent(lines), lines - self.mean[:, None]
            of_range = factors[2] / (self.maximum - self.minimum)
            np.multiply(centred, (factors[0] / self.sd)[:, None], out=scaled[0])
            np.multiply(centred, of_range[:, None], out=scaled[2])
            # Beyond the training range, ranks grow linearly, or all values there would look alike.
            inside = np.clip(lines, self.minimum[:, None], self.maximum[:, None])
            scores = self._table(inside, bent)
            if not (inside == lines).all():
                scores += (lines - inside) / self.sd[:, None]
            np.multiply(scores, factors[3][:, None], out=scaled[3])
            bent -= self.asinh_mean[:, None]
            np.multiply(bent, (factors[1] / self.asinh_sd)[:, None], out=scaled[1])
        out[...] = scaled.transpose(2, 0, 1)

    def _bent(self, lines: FloatArray) -> FloatArray:
        bent: FloatArray = lines - self.median[:, None]
        bent /= self.spread[:, None]
        return np.arcsinh(bent, out=bent)

    @cached_property
    def _table(self) -> NormalScores:
        """Normal scores of the columns, tabulated once by each worker that scales rows."""
        return NormalScores.fit(self.order_statistics, self._bent(self.order_statistics.T).T)


def ordinary_rows(X: FloatArray) -> IntArray:
    """Return rows without a gross value; all rows if less than half would remain.

    One value of 10^6 among values of 1 flattens the scale of its column for every other row, so the
    draft fit of a table with outliers leaves such rows out.
    """
    # Numbers too large to subtract are reported later, with their column, when views are fitted.
    with np.errstate(over="ignore", invalid="ignore"):
        median, spread = _middle(_sorted(X))
        # If half the values are equal, the spread says nothing about the others.
        far = np.abs(X - median) > GROSS * np.where(spread > 0, spread, np.inf)
    ordinary = np.flatnonzero(~far.any(axis=1))
    return ordinary if 2 * len(ordinary) >= len(X) else np.arange(len(X))


def _sorted(columns: FloatArray) -> FloatArray:
    """Sort the values of each column, in column-major memory, which is faster."""
    by_column = np.array(columns.T, order="C")
    by_column.sort(axis=1)
    return by_column.T


def _middle(ordered: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return median and robust standard deviation, IQR / 1.349, of columns of sorted values."""
    low, median, high = quantiles_of(ordered, (0.25, 0.5, 0.75))
    return median, (high - low) / IQR_OF_NORMAL


def quantiles_of(ordered: FloatArray, shares: Sequence[float]) -> FloatArray:
    """Return quantiles (q, ...) of sorted values (n, ...), as np.quantile does."""
    part, place = np.modf(np.array(shares) * (len(ordered) - 1))
    below = place.astype(np.int64)
    lower, upper = ordered[below], ordered[np.minimum(below + 1, len(ordered) - 1)]
    found: FloatArray = lower + part.reshape(-1, *[1] * (ordered.ndim - 1)) * (upper - lower)
    return found


def _scales(
    columns: FloatArray, n_order_statistics: int
) -> tuple[dict[str, FloatArray], FloatArray]:
    """Return the fields of `ColumnScales`, and asinh of the scaled order statistics."""
    mean, sd = mean_and_sd(columns)
    ordered = _sorted(columns)
    median, spread = _middle(ordered)
    spread = np.where(spread < 1e-3 * sd, sd, spread)
    with np.errstate(divide="ignore", invalid="ignore"):
        # A column without spread gives NaN; `ColumnScales.fit` replaces its statistics.
        bent = np.arcsinh((ordered - median) / spread)
    kept = np.linspace(0, len(columns) - 1, n_order_statistics).round().astype(np.int64)
    scales = {
        "mean": mean,
        "sd": sd,
        "median": median,
        "spread": spread,
        "minimum": ordered[0],
        "maximum": ordered[-1],
        "asinh_mean": bent.mean(axis=0),
        "asinh_sd": bent.std(axis=0),
        "order_statistics": ordered[kept],
    }
    return scales, bent[kept]


@dataclass(frozen=True, eq=False)
class NormalScores:
    """Normal scores of ranks among training values, without searching the whole table.

    The score of x is ndtri((midrank + 1/2) / (n + 1)) with the midrank of x among n training values
    of its column (van der Waerden's scores; a new value ranks between its neighbours).

    The search for a value starts from its guess: any smooth increasing function of the values. The
    range of the guesses is cut into equal intervals (cells), each with the first training value
    that may lie in it. The result is exact.
    """

    values: FloatArray  # (p,), by column: increasing distinct values, then infinity
    scores: FloatArray  # (2 p,), pairs: score just below a value, score of the value
    starts: IntArray  # (d + 1,), where columns start in `values`
    # (c,), index in `values` of the first value in each interval that a column is cut into
    first: NDArray[np.int32]
    cell_starts: IntArray  # (d + 1,), where columns start in `first`
    low: FloatArray  # (d,), where the first interval of each column begins
    rate: FloatArray  # (d,), number of cells divided by the range of the column's guesses
    crowded: IntArray  # (e,), columns with too many values in one of their intervals

    @classmethod
    def fit(cls, ordered: FloatArray, guesses: FloatArray) -> Self:
        """Tabulate the scores of sorted training values (n, d); `guesses`: see the class."""
        n, d = ordered.shape
        by_rank = ndtri((np.arange(2 * n + 1) + 1.0) / (2.0 * (n + 1)))
        is_new = np.diff(ordered, axis=0, prepend=-np.inf) > 0
        starts = np.append(0, np.cumsum(is_new.sum(axis=0) + 1))
        n_cells = CELLS_A_VALUE * np.diff(starts)
        cell_starts = np.append(0, np.cumsum(n_cells))
        reach = guesses[-1] - guesses[0]
        low, rate = guesses[0], np.divide(n_cells, reach, out=np.zeros(d), where=reach > 0)
        values, scores = np.full(starts[-1], np.inf), np.empty((starts[-1], 2))
        first, crowded = np.empty(cell_starts[-1], dtype=np.int32), []
        for j in range(d):
            below = np.flatnonzero(is_new[:, j])
            place, up_to = slice(starts[j], starts[j + 1] - 1), np.append(below[1:], n)
            values[place] = ordered[below, j]
            scores[place] = np.column_stack([by_rank[2 * below], by_rank[below + up_to]])
            scores[starts[j + 1] - 1] = by_rank[-1]
            cells = _cells(guesses[below, j], low[j], rate[j], n_cells[j])
            counts = np.bincount(cells, minlength=n_cells[j])
            first[cell_starts[j] : cell_starts[j + 1]] = starts[j] + np.cumsum(counts) - counts
            if counts.max() > MOST_STEPS:
                crowded.append(j)
        of_lines = np.array(crowded, dtype=np.int64)
        return cls(values, scores.ravel(), starts, first, cell_starts, low, rate, of_lines)

    def __call__(self, columns: FloatArray, guesses: FloatArray) -> FloatArray:
        """Return the scores of values (d, b), one line per column; `guesses`: see the class."""
        n_cells = np.diff(self.cell_starts)[:, None]
        place = _cells(guesses, self.low[:, None], self.rate[:, None], n_cells, ROUNDING)
        place += self.cell_starts[:-1, None]
        # All indices are valid: "clip" skips their check, which saves a third of the time.
        place = self.first.take(place, mode="clip").astype(np.int64)
        for j in self.crowded:
            column = self.values[self.starts[j] : self.starts[j + 1]]
            place[j] = self.starts[j] + np.searchsorted(column, columns[j])
        places, x = place.reshape(-1), columns.reshape(-1)
        reached = self.values.take(places, mode="clip")
        behind = np.flatnonzero(reached < x)
        while behind.size:
            places[behind] += 1
            reached[behind] = further = self.values.take(places[behind])
            behind = behind[further < x[behind]]
        places *= 2
        places += reached == x
        return self.scores.take(place, mode="clip")


def _cells(
    guesses: FloatArray,
    low: FloatArray | float,
    rate: FloatArray | float,
    n_cells: IntArray | int,
    back: float = 0.0,
) -> IntArray:
    """Return the index of the interval in which each guess (see `NormalScores`) lies."""
    cells = guesses - low
    cells *= rate
    cells -= back
    np.clip(cells, 0.0, n_cells - 1, out=cells)
    return cells.astype(np.int64)
