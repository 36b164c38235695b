"""The result of a screening: frozen objects of numbers and text, without table or model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np

from kpca_apps.novelty.magnitudes import varies
from kpca_apps.novelty.ranks import sorted_values
from kpca_apps.system.arrays import BoolArray, FloatArray, IntArray
from kpca_apps.system.files.windowed import blocks, rows_where
from kpca_apps.tables.source_info import SourceInfo as SourceInfo  # re-exported for the reports

Setting = str | float | int | bool | None
Settings = Mapping[str, Setting]

COLUMN_BINS = 40
BINS = 60  # bins of the histogram of all scores
MAX_TICKS = 200  # maximum number of flagged rows with stored scores
MAX_STEPS = 400  # approximate number of ranks with stored scores
WIDE = 30.0  # minimum ratio of highest to median score for a logarithmic axis
REACH = 2.0  # range of bins above the threshold, divided by the distance from median to threshold
N_KINDS = 5  # number of reasons shown first, with the rows that share each (`kinds_of_reason`)
CONTRADICTED, MISSPELT, NEW = "contradicted", "misspelt", "new"  # kinds of odd cells
COMPARING = ("sorted", "unique", "determines")  # kinds of rule that compare rows with each other
REVEALED = "is hidden, but follows from"  # words of notes that are left out of a page to be sent
# Maximum number of odd cells on a page: in all columns, and in one, so that none fills the page.
MAX_ODD_CELLS, MAX_ODD_CELLS_A_COLUMN = 50, 10


@dataclass(frozen=True)
class NumericProfile:
    """Distribution of a numeric column in its own units, or of dates in seconds since 1970 UTC."""

    edges: FloatArray  #: (b + 1,), .5 % to 99.5 % quantile; values outside are in the end bins
    counts: FloatArray  #: (b,), number of rows in each bin
    minimum: float
    q25: float
    median: float
    q75: float
    maximum: float
    is_date: bool = False

    @classmethod
    def of(cls, values: FloatArray, is_date: bool = False) -> NumericProfile:
        """Summarise finite values (at least one)."""
        shares = [0.005, 0.995, 0, 0.25, 0.5, 0.75, 1]
        low, high, minimum, q25, median, q75, maximum = np.quantile(values, shares).tolist()
        # Numbers far from 0 may vary, and yet be too close together for bins between them.
        narrowest = COLUMN_BINS * np.spacing(max(abs(low), abs(high)))
        if not varies(np.array([low, high])) or high - low < narrowest:
            margin = 0.5 * max(abs(low), 1.0)
            low, high = low - margin, high + margin
        counts, edges = np.histogram(np.clip(values, low, high), COLUMN_BINS, range=(low, high))
        return cls(edges, counts.astype(np.float64), minimum, q25, median, q75, maximum, is_date)


@dataclass(frozen=True)
class CategoryProfile:
    """The most frequent levels of a categorical column (at most 12), the most frequent first."""

    levels: tuple[str, ...]
    counts: tuple[int, ...]
    n_other: int = 0


@dataclass(frozen=True)
class ColumnProfile:
    """Role and values of a column of the table."""

    name: str  #: as written in the table: any text, even hostile
    #: "numeric", "boolean", "categorical", "datetime", "text", "identifier", "constant",
    #: "duplicate", "empty", "excluded", "label" or "id".
    role: str
    used: bool  #: whether the model uses the column
    hidden: bool  #: whether its values are kept out of the result (--hide)
    why: str  #: the rule that decided the role, as a clause ("4 distinct strings")
    n_missing: int  #: number of cells without a value
    n_distinct: int  #: number of distinct values
    reason_share: float = 0.0  #: the column's part of the reasons why rows were flagged, 0..1
    distribution: NumericProfile | CategoryProfile | None = None  #: None if unused, hidden or text


@dataclass(frozen=True)
class Reason:
    """One column's part in making a row odd."""

    column: str  #: the column
    #: Fall of the score when the expected value replaces the actual value, as a share of the falls
    #: of all listed columns; columns replaced `together` divide a fall evenly. 0 if no replacement
    #: lowers the score: then this column is the farthest from its expected value.
    share: float
    seen: str  #: the value in the row, as text to show
    expected: str  #: the value that the row's neighbours suggest
    #: The actual value: number, date in seconds or level; None if missing, free text or hidden.
    seen_value: float | str | None = None
    expected_value: float | str | None = None  #: the expected value in the same form
    #: Columns that are odd only as a set, including this one; their reasons are listed one after
    #: another. Empty if the column is odd by itself.
    together: tuple[str, ...] = ()

    @property
    def side(self) -> str:
        """``above`` or ``below`` the expected value; empty if values have no order."""
        seen, expected = self.seen_value, self.expected_value
        if isinstance(seen, float | int) and isinstance(expected, float | int):
            return "above" if seen > expected else "below"
        return ""


@dataclass(frozen=True)
class TailShare:
    """How rare a score is among the training rows of a model."""

    #: Share of rows that would score at least as high, 0..1. With n training rows, at least 1 / (n
    #: + 1), which is written "< 1 in n".
    share: float
    words: str  #: the share written as "1 in N"

    @property
    def in_prose(self) -> str:
        """The rarity in a sentence: "fewer than 1 in n"."""
        return self.words.replace("< ", "fewer than ")


@dataclass(frozen=True)
class ScoreMark:
    """A score with a label on the scale for readers, such as "1 in 100"."""

    score: float
    words: str


@dataclass(frozen=True)
class ScoreScale:
    """The scale of p-values or rarities on which readers see a score."""

    name: str  #: "p-value" with a clean reference, else "how rare"
    statement: str  #: meaning of the values on the scale
    marks: tuple[ScoreMark, ...]  #: scores at round values of the scale, increasing


@dataclass(frozen=True)
class RankedRow:
    """One row of the ranked list."""

    rank: int  #: 1 = oddest
    row: int  #: position in the table, 1 = first row of data
    line: int | None  #: line of the input file, 1 = first; None for binary formats
    id: str | None  #: text of the column that identifies rows
    score: float  #: higher = more novel
    p_value: float | None  #: share of normal rows that would score as high; None without reference
    flagged: bool  #: whether flagged: for its score or, with fdr, for one of its cells
    reasons: tuple[Reason, ...] = ()  #: columns that together explain the row, then others by share
    explained: bool = False  #: whether all reasons were computed, not only the first
    hints: tuple[str, ...] = ()  #: sentences on what may be wrong with the row
    cells: tuple[tuple[str, str], ...] = ()  #: names and texts, as written, of the shown cells
    #: How rare the score is; None if there are p-values, or with the method hoffmann.
    rarity: TailShare | None = None
    #: Group in which the row was judged, as "species Adelie"; empty for the whole table's model.
    group: str = ""
    key: str = ""  #: hash of the visible cells, which finds a marked row again
    nearest: tuple[int, ...] = ()  #: row numbers, in `lists.usual`, of similar rows, nearest first

    @property
    def reason_sets(self) -> tuple[tuple[Reason, ...], ...]:
        """The reasons in order; columns that are odd together form one set."""
        sets: list[list[Reason]] = []
        for reason in self.reasons:
            if sets and reason.together and reason.together == sets[-1][0].together:
                sets[-1].append(reason)
            else:
                sets.append([reason])
        return tuple(map(tuple, sets))

    @property
    def kind_of_reason(self) -> tuple[tuple[str, str], ...]:
        """Columns of the first reason, each with `Reason.side`; empty without reasons."""
        first = self.reason_sets[0] if self.reasons else ()
        return tuple(sorted((reason.column, reason.side) for reason in first))


@dataclass(frozen=True)
class UsualRow:
    """A row that is not flagged, shown for comparison with flagged ones."""

    row: int  #: position in the table, 1 = first row of data
    line: int | None  #: line of the input file where the row starts
    id: str | None  #: text of the column that identifies rows
    cells: tuple[tuple[str, str], ...]  #: name and text of the cells, as written


@dataclass(frozen=True)
class FlaggedRow:
    """A row to check: flagged (with the first reason for it), or with an odd cell."""

    rank: int  #: 1 = oddest
    row: int  #: position in the table, 1 = first row of data
    line: int | None  #: line of the input file it starts on, 1 = first; None for binary formats
    id: str | None  #: text of the column that identifies rows; None without a column, or if hidden
    #: Columns of the first reason, several if odd together; empty if no value differs from the
    #: expected value, or if reasons were not requested.
    columns: tuple[str, ...] = ()
    seen: tuple[str, ...] = ()  #: the value in each of these columns, as text to show
    expected: tuple[str, ...] = ()  #: the value expected in each column by the row's neighbours
    #: Share of this reason in the drop of the score when all reasons' columns get their expected
    #: values. 0 if no replacement lowers the score.
    share: float | None = None
    hint: str = ""  #: what may be wrong with the row; for the oddest rows only
    flagged: bool = True  #: False if only cells in `columns` are odd, not the row as a whole


@dataclass(frozen=True)
class Pattern:
    """Rows that are odd for the same reason, by single cells or as a whole."""

    #: Rows by number (1 = first row of data), the oddest first: all rows that are odd by a cell, or
    #: the listed rows that are odd as a whole.
    rows: tuple[int, ...]
    columns: tuple[str, ...]  #: columns of the common reason
    sentence: str  #: one line on how the rows are odd and what they share
    common: tuple[str, str] | None = None  #: another column and its value in most of the rows


@dataclass(frozen=True)
class OddCell:
    """A cell that is odd by itself or contradicts other cells of its row; or several equal ones."""

    column: str  #: column of the cell
    #: "far above" or "far below" all other values, "date" (the same for dates), "zero" (if 0 is far
    #: from all others), "sign" (lost or wrong), "placeholder" (a code for missing values), "stuck"
    #: (a sensor that repeats a value), "code" (a wrong check digit or length), "misspelt", "form"
    #: (lacks what nearly all texts have), "new" (a level that the reference lacks), "unreadable"
    #: (no number or no possible date), or "contradicted" (by other cells of its row, or by a rule).
    kind: str
    seen: str  #: as written in the table
    sentence: str  #: why the cell is odd
    suggestion: str  #: suggested value; empty if unknown
    row: int  #: row of the first such cell in the table, 1 = first row of data
    line: int | None  #: line of the input file where the row starts; None for binary formats
    n_cells: int = 1  #: number of equal cells in the column
    more_rows: tuple[int, ...] = ()  #: rows of the other equal cells, in the order of the table
    more_lines: tuple[int, ...] | None = None  #: lines of these rows; None for binary formats
    #: Columns whose cells in the row contradict the cell; empty if none do. A cell that is odd by
    #: itself may have some, too.
    given: tuple[str, ...] = ()
    expected: str = ""  #: what these columns allow; in words, if not a single value
    others: tuple[str, ...] = ()  #: columns of `given` that may hold the wrong cell instead
    rule: str = ""  #: rule that the row breaks, in plain English
    #: Probability that a correct row has such a cell, times the number of tests. If correct rows
    #: often break the rule, the true probability is larger.
    p_value: float = 1.0

    @property
    def rows(self) -> tuple[int, ...]:
        """Rows of all listed cells equal to this one, 1 = first row of data."""
        return (self.row, *self.more_rows)

    @property
    def where(self) -> str:
        """The column, or all columns of which one must be wrong: ``start or end``."""
        return " or ".join((self.column, *self.others))


def clearest(cells: Iterable[OddCell]) -> tuple[OddCell, ...]:
    """Return the first odd cells to show: at most 50, and 10 for each column.

    The first cell of each kind comes first, then the second cell of each kind.
    """
    by_turn: list[tuple[int, OddCell]] = []
    n_of: Counter[str] = Counter()
    n_alike: Counter[tuple[str, ...]] = Counter()
    for cell in cells:
        n_of[cell.column] += 1
        if n_of[cell.column] <= MAX_ODD_CELLS_A_COLUMN:
            alike = (cell.rule,) if cell.rule else (cell.kind, cell.column)
            by_turn.append((n_alike[alike], cell))
            n_alike[alike] += 1
    by_turn.sort(key=lambda one: one[0])
    return tuple(cell for _, cell in by_turn[:MAX_ODD_CELLS])


@dataclass(frozen=True)
class FoundRule:
    """A rule on one column, or between columns, that holds in nearly all rows."""

    rule: str  #: in plain English: "start <= end"
    kind: str  #: "order", "linear", "determines" and so on, as in a file of rules
    columns: tuple[str, ...]  #: columns that the rule is about
    n_rows: int  #: number of rows to which the rule applies, among all rows or a sample
    n_broken: int  #: number of these rows that break the rule
    rows: tuple[int, ...] = ()  #: the first 1,000 rows that break the rule, 1 = first row of data
    lines: tuple[int, ...] | None = None  #: lines of these rows in the input file, if any

    @property
    def compares_rows(self) -> bool:
        """Whether the rule compares rows, so that a single row's cells cannot break it."""
        return self.kind in COMPARING


@dataclass(frozen=True)
class MovedColumn:
    """A column whose distribution differs from that in another table."""

    column: str  #: name of the column
    what: str  #: "distribution" of numbers or dates, "levels" of categories, or "missing" cells
    #: How far the column moved, 0..1: the Kolmogorov-Smirnov or total variation distance, or the
    #: change of the share of missing cells.
    size: float
    words: str  #: distribution now and before; without values if hidden


@dataclass(frozen=True)
class ThresholdInfo:
    """The threshold for flagging, and how it was set."""

    rule: str  #: "share", "count", "alpha" or "fdr"
    setting: float  #: the number given for the rule, or its default
    value: float  #: rows with higher scores are flagged; may be inf
    calibration: str | None  #: "leave-one-out", "split", or None for a share or count
    n_calibration: int  #: number of rows used for calibration; 0 for a share or count
    statement: str  #: one plain sentence on the meaning of the threshold
    rarity: TailShare | None = None  #: how rare a score at the threshold is


@dataclass(frozen=True)
class GroupInfo:
    """A group of rows that is judged by itself."""

    name: str  #: such as "species Adelie"; empty for rows judged by the whole table's model
    n_rows: int  #: number of rows of the group in the screened table
    n_flagged: int
    n_fitted: int  #: number of rows the group's model was fitted on
    threshold: float  #: threshold on the scale of the group's model; may be inf


@dataclass(frozen=True)
class ComponentMap:
    """Rows on the leading kernel components: p rows, a random sample and all ranked rows."""

    x: FloatArray  #: (p,), coordinates on component 1
    y: FloatArray  #: (p,), coordinates on component 2
    rank: IntArray  #: (p,), rank of the row; 0 if the row is not in the ranked list
    flagged: BoolArray  #: (p,)
    n_rows: int  #: number of rows in the table
    variances: FloatArray  #: (k,), variances of components in feature space, largest first
    gains: FloatArray  #: (k,), share of each component that is used, 0..1 (0 or 1 with truncation)
    explained: tuple[float, float]  #: share of the feature-space variance on components 1 and 2


@dataclass(frozen=True)
class PlaneAxis:
    """One column of a `ColumnPlane`, in its own units."""

    name: str
    #: (p,), numbers, seconds since 1970 UTC or, for categories, indices of levels; NaN for cells
    #: without a value.
    values: FloatArray
    is_date: bool = False
    levels: tuple[str, ...] = ()  #: levels of categories


@dataclass(frozen=True)
class ColumnPlane:
    """Rows by the two columns with the largest part in reasons: a sample, and all ranked rows."""

    x: PlaneAxis
    y: PlaneAxis | None  #: None if only one column can be drawn (against the score)
    scores: FloatArray  #: (p,)
    rank: IntArray  #: (p,), rank of the row; 0 if the row is not in the ranked list
    flagged: BoolArray  #: (p,)
    n_rows: int  #: number of rows in the table


@dataclass(frozen=True)
class ScoreContours:
    """Scores on a grid, for tables of two numeric columns."""

    x_name: str
    y_name: str
    x: FloatArray  #: (a,), grid lines in the column's units
    y: FloatArray  #: (b,)
    scores: FloatArray  #: (b, a), score at each crossing of grid lines
    points_x: FloatArray  #: (p,), coordinates of the drawn rows: a sample, and all flagged rows
    points_y: FloatArray  #: (p,)
    points_flagged: BoolArray  #: (p,), whether each drawn row is flagged


@dataclass(frozen=True)
class ScoreDistribution:
    """The scores of all rows, thinned for drawing; all numbers are exact."""

    n_rows: int
    n_flagged: int  #: number of rows flagged for their score
    #: (b + 1,), edges of histogram bins, from the lowest score to the highest. If the highest is so
    #: far out that one bin would hold most scores, the bins end somewhat above the threshold.
    edges: FloatArray
    counts: IntArray  #: (b,), number of rows in each bin
    n_beyond: int  #: number of rows above the last bin
    logarithmic: bool  #: whether each bin is wider than the bin before by a constant factor
    flagged_scores: FloatArray  #: scores of at most 200 flagged rows, evenly chosen along the list
    ranks: IntArray  #: (k,), all ranks, or about 400, densest at the top; 1 is the most novel row
    scores: FloatArray  #: (k,), scores of the rows at these ranks, decreasing
    n_above: IntArray  #: (k,), number of rows that score higher than the row at each rank

    @classmethod
    def of(cls, scores: FloatArray, n_flagged: int) -> ScoreDistribution:
        """Summarise the scores (n,) of a table, n >= 1, in memory or memory-mapped."""
        n, ordered = len(scores), sorted_values(scores)
        median = 0.5 * (ordered[(n - 1) // 2] + ordered[n // 2])
        steps = np.geomspace(1, n, MAX_STEPS).round().astype(np.int64)
        # Also keep the first rank that would not be flagged if half or twice as many rows were.
        moved = [place + 1 for place in (n_flagged // 2, 2 * n_flagged) if place < n]
        places = np.unique(np.concatenate([steps, np.array(moved, dtype=np.int64)]))
        ticks = np.linspace(1, max(n_flagged, 1), min(n_flagged, MAX_TICKS)).round()
        kept = ordered[n - places]
        n_alike_or_below = sum(ordered[of].searchsorted(kept, "right") for of in blocks(n))
        low, high = float(ordered[0]), float(ordered[-1])
        logarithmic = False
        if high - low <= 1e-12 * max(abs(high), 1e-300):  # equal scores still need a bin width
            room = 0.5 * abs(high) or 0.5
            edges = np.linspace(low - room, high + room, BINS + 1)
        else:
            logarithmic = bool(low > 0 and high > WIDE * median)
            scale, back = (np.log, np.exp) if logarithmic else (np.asarray, np.asarray)
            if 0 < n_flagged < n:
                # The lowest score among flagged rows marks the threshold.
                least, middle = scale(ordered[n - n_flagged]), scale(median)
                # End the bins near the threshold only if it lies above the median score.
                if least - middle > 1e-9 * (scale(high) - middle):
                    high = min(high, float(back(least + REACH * (least - middle))))
            edges = back(np.linspace(scale(low), scale(high), BINS + 1))
        # Rounding of the edges must not exclude a score.
        edges[0], edges[-1] = min(edges[0], low), max(edges[-1], high)
        below = np.append(
            ordered.searchsorted(edges[:-1]), ordered.searchsorted(edges[-1], "right")
        )
        return cls(
            n_rows=n,
            n_flagged=n_flagged,
            edges=edges,
            counts=np.diff(below),
            n_beyond=n - int(below[-1]),
            logarithmic=logarithmic,
            flagged_scores=np.sort(ordered[n - ticks.astype(np.int64)]),
            ranks=places,
            scores=kept,
            n_above=n - n_alike_or_below,
        )


@dataclass(frozen=True)
class Curves:
    """One method, evaluated by labels."""

    name: str  #: name of the method, as shown to readers
    ours: bool  #: whether it is the detector of this toolkit
    auroc: float  #: area under the ROC curve
    auprc: float  #: area under the precision-recall curve (average precision)
    false_positive_rate: FloatArray  #: (p,), the ROC curve, thinned to at most 400 points
    true_positive_rate: FloatArray  #: (p,)
    recall: FloatArray  #: (r,), the precision-recall curve, thinned to at most 400 points
    precision: FloatArray  #: (r,)
    seconds: float = 0.0  #: time to fit and score (s); omitted from result.json and the report
    note: str = ""  #: note for readers ("fitted on 5,000 drawn rows")


@dataclass(frozen=True)
class Evaluation:
    """Methods evaluated by the known labels of one table, in one setting."""

    label: str  #: the label column
    positive: str  #: value of outliers in the label column
    n_positive: int  #: number of rows with that value
    n_rows: int  #: number of rows evaluated
    setting: str  #: one sentence: what the methods were fitted on, and which rows are scored
    methods: tuple[Curves, ...]  #: ours first


@dataclass(frozen=True)
class RepeatedRows:
    """Rows that are equal, or nearly equal, in all columns that the model uses."""

    rows: tuple[int, ...]  #: the first 8 rows, 1 = first row of data
    lines: tuple[int, ...] | None  #: the rows' lines in the input file; None for binary formats
    n_rows: int  #: number of rows
    columns: tuple[str, ...] = ()  #: the first 8 columns in which the rows differ; empty if equal
    cells: tuple[tuple[str, ...], ...] = ()  #: texts of each of `rows` in `columns`


@dataclass(frozen=True)
class DuplicateRows:
    """Rows that repeat others."""

    n_repeats: int = 0  #: number of rows equal, as written, to an earlier row in all used columns
    n_groups: int = 0  #: number of different rows that are repeated
    #: Groups of equal rows that chance does not explain, at most 20, in the order of the table.
    equal: tuple[RepeatedRows, ...] = ()
    #: Number of groups of near repeats: rows equal except in one cell, or in case, spaces or
    #: rounding. Groups that may be due to chance or differ in a column of `common` do not count.
    n_near: int = 0
    near: tuple[RepeatedRows, ...] = ()  #: the first 20 of these groups
    #: Pairs of a column and the number of rows that differ from another row in this column only. A
    #: column is listed if it has so many such rows that they are normal in the table.
    common: tuple[tuple[str, int], ...] = ()
    n_compared: int = 0  #: number of rows compared in search of near repeats: all, or a sample
    statement: str = ""  #: summary in a few plain sentences; empty if no row repeats another


MARKS_FORMAT = 1  # version of the marks in a page


@dataclass(frozen=True)
class RowMark:
    """A reader's mark on a row of the table."""

    row: int  #: row number in the table, 1 = first row of data
    mark: Literal["wrong", "fine", "known"]
    key: str  #: hash of the row's visible cells, by which the row is found again
    line: int | None = None  #: line of the file in which the row was marked
    id: str = ""  #: id of the row when it was marked
    note: str = ""  #: note in the reader's words


@dataclass(frozen=True)
class AcceptedRows:
    """Rows that were judged fine before: they are scored, but neither flagged nor listed."""

    source: str  #: the file that lists the accepted rows
    n_rows: int  #: number of accepted rows in the table screened
    statement: str  #: one plain sentence on the accepted rows


RarityOf: TypeAlias = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True)
class RowScores:
    """Scores, ranks and flags of every row, in the order of the table.

    For a table read in parts, scores, p-values and ranks are memory-mapped.
    """

    scores: FloatArray  #: (n,), higher = more novel
    p_values: FloatArray | None  #: (n,), calibrated; None without a reference
    #: Returns `TailShare.share` of scores (r,); None with p-values or "hoffmann".
    rarity_of: RarityOf | None
    #: (n,), unique ranks, 1 = most novel. Rows rank by their scores; a very odd cell moves its row
    #: ahead. Accepted rows rank last.
    ranks: IntArray
    is_flagged: BoolArray  #: (n,), rows above the threshold, or (with fdr) with a very odd cell
    is_accepted: BoolArray | None = None  #: (n,), rows accepted by the user; None if there are none
    scale: ScoreScale | None = None  #: meaning of p-values or rarities; None without either

    @cached_property
    def rarities(self) -> FloatArray | None:
        """Rarity of every row, (n,), or None."""
        return None if self.rarity_of is None else self.rarity_of(self.scores)


@dataclass(frozen=True)
class RowLists:
    """Flagged, accepted and marked rows, and the names of rows."""

    #: The first rows, by rank, that are flagged or have a cell that is odd by itself.
    flagged: tuple[FlaggedRow, ...] = ()
    usual: tuple[UsualRow, ...] = ()  #: unflagged rows shown beside ranked rows, in table order
    accepted: AcceptedRows | None = None  #: None if the user accepted no rows
    marks: tuple[RowMark, ...] = ()  #: rows of the table that a reader marked before
    id_column: str | None = None  #: the column that identifies rows
    #: Ids of the rows shown among odd cells and repeated rows, by row number from 1.
    ids: Mapping[int, str] = field(default_factory=dict)
    #: Input file of each of these rows; empty for a single file, or if the files' names are hidden.
    files: Mapping[int, str] = field(default_factory=dict)
    keys: Mapping[int, str] = field(default_factory=dict)  #: hashes that find these rows again


@dataclass(frozen=True)
class Findings:
    """Findings in the table besides the scores of its rows."""

    #: Cells that are odd by themselves, or contradicted by other cells or by a rule; the clearest
    #: first, at most 100,000, and 20,000 for each column.
    odd_cells: tuple[OddCell, ...] = ()
    n_odd_cells: int = 0  #: number of odd cells of the table, listed or not
    #: Rules of the table, or of the training table of the given model, checked on this table.
    rules: tuple[FoundRule, ...] = ()
    #: Groups of rows that are odd for the same reason. Patterns of single cells come first, by
    #: strength of evidence; patterns of whole rows follow, by number of rows.
    patterns: tuple[Pattern, ...] = ()
    duplicates: DuplicateRows = DuplicateRows()  #: rows that repeat others
    moved: tuple[MovedColumn, ...] = ()  #: columns distributed unlike the training table's


@dataclass(frozen=True)
class Pictures:
    """The points drawn in the figures."""

    map: ComponentMap  #: rows on the first two components, and the components' variances
    contours: ScoreContours | None = None  #: scores on a grid, for tables of two numeric columns
    plane: ColumnPlane | None = None  #: None if no column can be drawn


@dataclass(frozen=True)
class RunInfo:
    """How a result was made, with warnings about it."""

    settings: Settings  #: every resolved parameter, including the seed
    versions: Mapping[str, str]  #: versions of this package and of the libraries used
    warnings: tuple[str, ...] = ()  #: sentences that a reader must know
    command: str = ""  #: the command line that reproduces the result


@dataclass(frozen=True)
class ScreeningRun(RunInfo):
    """How a table was screened, and what to do next."""

    n_doubts: int = 0  #: number of warnings that cast doubt on the list; they come first
    next_steps: tuple[tuple[str, str], ...] = ()  #: what to do next: a sentence and a command
    flagged_file: str = ""  #: name of the file of flagged rows in the folder of the run
    by: tuple[str, ...] = ()  #: columns that form the groups within which rows are judged

    @property
    def odd_cells_file(self) -> str:
        """Name of the file of odd cells in the folder of the run; empty without `flagged_file`."""
        if not self.flagged_file:
            return ""
        return "odd_cells.csv" if self.flagged_file.endswith(".csv") else self.flagged_file


@dataclass(frozen=True)
class ScreeningResult:
    """The complete result of screening or scoring a table."""

    source: SourceInfo  #: the table screened
    reference: SourceInfo | None  #: the clean table learned from; None if `source` was learned from
    columns: tuple[ColumnProfile, ...]  #: every column of the table in input order
    rows: RowScores  #: scores, ranks and flags of all rows
    threshold: ThresholdInfo  #: threshold of the scores above which rows are flagged
    ranked: tuple[RankedRow, ...]  #: the oddest rows by rank: 100, or all that are explained
    lists: RowLists  #: flagged, accepted and marked rows
    findings: Findings  #: odd cells, rules, patterns, duplicates, changed distributions
    pictures: Pictures  #: points of the figures
    run: ScreeningRun  #: settings, warnings, command and next steps
    groups: tuple[GroupInfo, ...] = ()  #: groups with own models, largest first; then the rest
    evaluations: tuple[Evaluation, ...] = ()  #: evaluations by known labels, if given

    @property
    def hidden_columns(self) -> frozenset[str]:
        """Columns of the table whose values are not in the result."""
        return frozenset(column.name for column in self.columns if column.hidden)

    @property
    def kinds_of_reason(self) -> tuple[tuple[RankedRow, ...], ...]:
        """Group the listed rows by reason, or the five oddest rows if fewer than five are listed.

        A pattern is a group; a row without a reason is a group of its own. The group of the oddest
        row and the four largest others come first. Both these five and the remaining groups are
        sorted by their oddest row, and so are the rows of a group.
        """
        patterns = reversed(
            [(number, row) for number, p in enumerate(self.findings.patterns) for row in p.rows]
        )
        pattern_of = {row: number for number, row in patterns}
        of_kind: dict[object, list[RankedRow]] = {}
        for row in self.ranked[: max(self.n_listed, N_KINDS)]:
            kind = pattern_of.get(row.row, row.kind_of_reason or str(row.rank))
            of_kind.setdefault((row.rank <= self.n_listed, kind), []).append(row)
        kinds = [tuple(rows) for rows in of_kind.values()]
        # Two rows may be odd in the same way by chance, so groups of one and of two rows tie.
        largest = sorted(
            kinds[1:], key=lambda rows: (rows[0].rank > self.n_listed, -max(len(rows), 2))
        )
        first = {rows[0].rank for rows in (*kinds[:1], *largest[: N_KINDS - 1])}
        return tuple(sorted(kinds, key=lambda rows: (rows[0].rank not in first, rows[0].rank)))

    def standing(self, row: RankedRow) -> str:
        """Return why a row is on the list, or that it is not listed."""
        is_listed = row.rank <= self.n_listed
        return "flagged" if row.flagged else "odd cell" if is_listed else "not flagged"

    @property
    def oddest_of_each_kind(self) -> tuple[RankedRow, ...]:
        """The oddest row of each kind of reason, in the order of the kinds."""
        return tuple(rows[0] for rows in self.kinds_of_reason)

    @cached_property
    def distribution(self) -> ScoreDistribution:
        """Distribution of the scores of rows that may be flagged."""
        scores, is_accepted = self.rows.scores, self.rows.is_accepted
        scores = scores if is_accepted is None else scores[~is_accepted]
        is_above = rows_where(scores, lambda part: part > self.threshold.value)
        return ScoreDistribution.of(scores, len(is_above))

    @property
    def n_rows(self) -> int:
        """Number of rows of the table."""
        return len(self.rows.scores)

    @property
    def n_judged(self) -> int:
        """Number of rows that may be flagged: all but the accepted ones."""
        return self.n_rows - (0 if self.lists.accepted is None else self.lists.accepted.n_rows)

    @property
    def n_listed(self) -> int:
        """Number of rows that are flagged or have a listed odd cell; these rows rank first."""
        return max(self.n_flagged, len(self.lists.flagged))

    @cached_property
    def n_flagged(self) -> int:
        """Number of rows above the threshold; with fdr, also rows with a very odd cell."""
        return int(self.rows.is_flagged.sum())


@dataclass(frozen=True)
class ComparisonResult:
    """Our detector and baselines on one labelled table (`kpca novelty compare`)."""

    source: SourceInfo
    evaluations: tuple[Evaluation, ...]
    columns: tuple[ColumnProfile, ...]
    run: RunInfo


@dataclass(frozen=True)
class RunSummary:
    """One of two screenings that are compared."""

    name: str  #: name of the screening's folder
    table: str  #: name of the table
    n_rows: int
    n_flagged: int
    sentence: str  #: one sentence on its findings


@dataclass(frozen=True)
class ScreenedTable:
    """One of several tables, screened by itself (`kpca novelty screen --each`)."""

    name: str  #: name of the table
    folder: str  #: name of the result folder beside the index; empty after an error
    n_rows: int = 0
    n_flagged: int = 0
    n_odd_cells: int = 0  #: number of cells that are odd by themselves
    oddest: str = ""  #: the oddest row, and its reason
    rarity: str = ""  #: rarity of the oddest row's score: "1 in N", or a p-value
    rarity_share: float | None = None  #: the rarity as a share, 0..1
    before: RunSummary | None = None  #: the previous screening of the table; None if there is none
    n_new: int = 0  #: number of rows that are newly listed
    n_removed: int = 0  #: number of rows that are no longer listed
    moved: tuple[MovedColumn, ...] = ()  #: columns whose distribution moved
    hidden_columns: tuple[str, ...] = ()  #: columns not compared because a run hides them
    not_compared: str = ""  #: why the previous run was not compared, if there was one
    error: str = ""  #: why the table could not be screened; empty if it was


@dataclass(frozen=True)
class ScreenedTables:
    """Several tables, each screened by itself."""

    tables: tuple[ScreenedTable, ...]  #: in the order given
    run: RunInfo

    @property
    def screened(self) -> tuple[ScreenedTable, ...]:
        """The tables that could be screened."""
        return tuple(one for one in self.tables if not one.error)

    @property
    def failed(self) -> tuple[ScreenedTable, ...]:
        """The tables that could not be screened."""
        return tuple(one for one in self.tables if one.error)


@dataclass(frozen=True)
class ListedRow:
    """A row on the list of the old or the new screening, or on both."""

    name: str  #: identifier of the row, or its number
    before: int | None  #: rank in the old list; None if not listed
    now: int | None  #: rank in the new list; None if not listed
    in_both: bool  #: whether the row is in both tables, even if on one list only
    reason: str  #: why the row is or was listed: columns with actual and expected values
    changed: tuple[tuple[str, str, str], ...] = ()  #: changed columns, with values before and now
    accepted: bool = False  #: whether the other list lacks the row because it was accepted

    @property
    def elsewhere(self) -> str:
        """Why a row is missing from the other list."""
        if self.accepted:
            return "accepted"
        return "not listed" if self.in_both else "not in the table"


@dataclass(frozen=True)
class ScreeningDiff:
    """Differences between a new screening and an old one (`kpca novelty diff`)."""

    old: RunSummary
    new: RunSummary
    matched_by: str  #: what identifies rows in both tables
    appeared: tuple[ListedRow, ...]  #: newly listed rows; the oddest first
    removed: tuple[ListedRow, ...]  #: rows listed before, but no longer
    stayed: tuple[ListedRow, ...]  #: rows listed before and now
    moved: tuple[MovedColumn, ...]  #: columns whose distribution moved
    added_columns: tuple[str, ...]
    removed_columns: tuple[str, ...]
    hidden_columns: tuple[str, ...]  #: columns of both tables; not compared, as a run hides them
    kinds: tuple[tuple[str, int, int], ...]  #: kinds of odd rows, with their number before and now
    is_apart: bool  #: whether the tables share no row, so that rows are not compared
    settings_changed: tuple[tuple[str, str, str], ...]  #: settings and versions that differ
    run: RunInfo
