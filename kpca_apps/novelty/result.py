"""What a screening found: plain, frozen result objects.

They are all a report, a JSON file or a terminal summary may look at. They hold numbers and text,
never tables, models or files, so that every view of a result is a pure function of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kpca_apps.files.tables.table import SourceInfo
from kpca_apps.novelty.distribution import ScoreDistribution

__all__ = [
    "CategoryProfile",
    "ColumnProfile",
    "ComparisonResult",
    "ComponentMap",
    "Curves",
    "DuplicateRows",
    "Evaluation",
    "NumericProfile",
    "OddCell",
    "Pattern",
    "RankedRow",
    "Reason",
    "RepeatedRows",
    "ScoreContours",
    "ScoreDistribution",
    "ScoreMark",
    "ScoreScale",
    "ScreeningResult",
    "SourceInfo",
    "TailShare",
    "ThresholdInfo",
]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class NumericProfile:
    """Distribution of a numeric (or date) column, for small figures.

    Attributes
    ----------
    edges : (b + 1,) array
        Bin edges from the 0.5 % to the 99.5 % quantile (values outside fall in the end bins).
    counts : (b,) array
        Rows a bin.
    minimum, q25, median, q75, maximum : float
        In the column's own units; dates are seconds since 1970-01-01 UTC.
    is_date : bool
        Whether the values are dates.
    """

    edges: FloatArray
    counts: FloatArray
    minimum: float
    q25: float
    median: float
    q75: float
    maximum: float
    is_date: bool = False


@dataclass(frozen=True)
class CategoryProfile:
    """Most frequent levels of a categorical column, most frequent first (at most 12)."""

    levels: tuple[str, ...]
    counts: tuple[int, ...]
    n_other: int = 0


@dataclass(frozen=True)
class ColumnProfile:
    """What one column of the table became, and why.

    Attributes
    ----------
    name : str
        The column's name as it stands in the table (any text, even hostile).
    role : str
        ``numeric``, ``boolean``, ``categorical``, ``datetime``, ``text``, ``identifier``,
        ``constant``, ``duplicate``, ``empty``, ``excluded``, ``label`` or ``id``.
    used : bool
        Whether the model sees it.
    hidden : bool
        Whether its values stay out of the report (``--hide``).
    why : str
        One clause: the rule that decided ("4 distinct strings").
    n_missing, n_distinct : int
        Cells without a value; distinct values among the rest.
    reason_share : float
        The shares of the reasons that name it, over those of all reasons, among the flagged rows
        that are explained, 0..1.
    distribution : NumericProfile, CategoryProfile or None
        ``None`` for unused, hidden and free-text columns.
    """

    name: str
    role: str
    used: bool
    hidden: bool
    why: str
    n_missing: int
    n_distinct: int
    reason_share: float = 0.0
    distribution: NumericProfile | CategoryProfile | None = None


@dataclass(frozen=True)
class Reason:
    """One column's part in making a row odd.

    Attributes
    ----------
    column : str
        The column's name.
    share : float
        How far the score drops when the expected value is put in place of the one seen, over the
        sum of these drops for all columns told of the row, 0..1; the drop of several columns
        replaced together is divided evenly among them. 0 where no replacement lowers the score:
        the column told is then the one farthest from what is expected.
    seen, expected : str
        The value in the row, and the one its neighbours suggest, as text to show.
    seen_value, expected_value : float, str or None
        The same as numbers (numeric, boolean, dates in seconds) or level names (categorical);
        ``None`` where missing or not to be drawn (free text, hidden).
    together : tuple of str
        Columns that are odd as a set, this one among them: one alone does not explain the row.
        Empty where the column is odd by itself. Reasons of one set follow each other.
    """

    column: str
    share: float
    seen: str
    expected: str
    seen_value: float | str | None = None
    expected_value: float | str | None = None
    together: tuple[str, ...] = ()

    @property
    def side(self) -> str:
        """``above`` or ``below`` what is expected; empty where values have no order."""
        seen, expected = self.seen_value, self.expected_value
        if isinstance(seen, float | int) and isinstance(expected, float | int):
            return "above" if seen > expected else "below"
        return ""


@dataclass(frozen=True)
class TailShare:
    """How rare a score is among rows like the usual ones.

    Attributes
    ----------
    share : float
        Share of such rows that would score at least as high, 0..1, smaller for every higher score.
        Where the words begin with "about" or "<" it is extrapolated: it orders rows, and is no
        frequency that was seen.
    words : str
        The same as "1 in N", as far as the rows bear it.
    """

    share: float
    words: str


@dataclass(frozen=True)
class ScoreMark:
    """A score that has a name on the scale people read, such as "1 in 100"."""

    score: float
    words: str


@dataclass(frozen=True)
class ScoreScale:
    """The scale that people read a score on.

    Attributes
    ----------
    name : str
        ``p-value`` with a clean reference, else ``how rare``.
    statement : str
        What a value on it means.
    marks : tuple of ScoreMark
        A few scores where it has round values, increasing.
    """

    name: str
    statement: str
    marks: tuple[ScoreMark, ...]


@dataclass(frozen=True)
class RankedRow:
    """One row of the ranked list.

    Attributes
    ----------
    rank : int
        1 = oddest.
    row : int
        Position in the table, 1 = first row of data.
    line : int or None
        Line of the input file the row starts on, 1 = first line; ``None`` for binary formats.
    id : str or None
        Text of the column that names the rows, asked for or found.
    score : float
        Novelty score, higher = more novel.
    p_value : float or None
        Share of normal rows expected to score as high; ``None`` without a calibrated reference.
    flagged : bool
        Whether the score passes the threshold.
    reasons : tuple of Reason
        What explains the row first, then by share; empty means that the row reads in every column
        what is expected there, or that reasons were not asked for this far down (see
        `explained`).
    explained : bool
        Whether reasons were computed for this row.
    hints : tuple of str
        What may have gone wrong with it, where the evidence is clear: a sentence each.
    cells : tuple of (str, str)
        Column name and text as it stands in the table, for shown columns.
    rarity : TailShare or None
        How rare the score is among rows like the usual ones; ``None`` with a reference, whose
        scale is the p-value, and for a hard cut.
    """

    rank: int
    row: int
    line: int | None
    id: str | None
    score: float
    p_value: float | None
    flagged: bool
    reasons: tuple[Reason, ...] = ()
    explained: bool = False
    hints: tuple[str, ...] = ()
    cells: tuple[tuple[str, str], ...] = ()
    rarity: TailShare | None = None

    @property
    def reason_sets(self) -> tuple[tuple[Reason, ...], ...]:
        """The reasons in order, those of columns that are odd together as one."""
        sets: list[list[Reason]] = []
        for reason in self.reasons:
            if sets and reason.together and reason.together == sets[-1][0].together:
                sets[-1].append(reason)
            else:
                sets.append([reason])
        return tuple(map(tuple, sets))

    @property
    def kind_of_reason(self) -> tuple[tuple[str, str], ...]:
        """Columns of the first reason, each with the side its value is off to; empty without."""
        first = self.reason_sets[0] if self.reasons else ()
        return tuple(sorted((reason.column, reason.side) for reason in first))


@dataclass(frozen=True)
class Pattern:
    """Flagged rows that are odd for the same reason.

    Attributes
    ----------
    rows : tuple of int
        Positions in the table, 1 = first row of data; the oddest first.
    columns : tuple of str
        Columns of the reason.
    sentence : str
        What is odd of them and what they share, in one line.
    common : (str, str) or None
        Another column and the value that all of these rows, or nine of ten, have in it, while few
        of the other rows do.
    """

    rows: tuple[int, ...]
    columns: tuple[str, ...]
    sentence: str
    common: tuple[str, str] | None = None

    def without_values(self) -> Pattern:
        """Leave only how many rows it is, and in which columns."""
        sentence = f"{len(self.rows):,} rows are odd for the same reason (values hidden)."
        return replace(self, sentence=sentence, common=None)


@dataclass(frozen=True)
class OddCell:
    """A cell that is odd by itself, whatever the rest of its row says.

    Attributes
    ----------
    column : str
        The column's name.
    kind : str
        ``far above`` or ``far below`` all other values, ``date`` (the same of dates), ``zero``
        (where 0 is far from all others), ``sign`` (lost or wrong), ``placeholder`` (a code for
        missing values), ``misspelt``, or ``unreadable`` (no number or no possible date).
    seen : str
        As it stands in the table.
    sentence : str
        Why it is odd.
    suggestion : str
        What was probably meant; empty where that is open.
    row : int
        Position of the first such cell in the table, 1 = first row of data.
    line : int or None
        Line of the input file that row starts on; ``None`` for binary formats.
    n_cells : int
        Cells of the column that hold the same.
    more_places : tuple of int
        Lines (rows, where there are none) of the next of them, at most 4.
    """

    column: str
    kind: str
    seen: str
    sentence: str
    suggestion: str
    row: int
    line: int | None
    n_cells: int = 1
    more_places: tuple[int, ...] = ()


@dataclass(frozen=True)
class ThresholdInfo:
    """The threshold and how it was made.

    Attributes
    ----------
    rule : str
        ``share``, ``count``, ``alpha`` or ``fdr``.
    setting : float
        The number given (or defaulted) for the rule.
    value : float
        The threshold: rows with a score above it are flagged. May be ``inf``.
    calibration : str or None
        ``leave-one-out`` (approximate), ``split`` (finite-sample guarantee) or ``None`` (a choice).
    n_calibration : int
        Rows the threshold was calibrated on; 0 for a choice.
    statement : str
        One plain sentence saying what the threshold means.
    rarity : TailShare or None
        How rare a score at the threshold is, as in `RankedRow`.
    """

    rule: str
    setting: float
    value: float
    calibration: str | None
    n_calibration: int
    statement: str
    rarity: TailShare | None = None


@dataclass(frozen=True)
class ComponentMap:
    """Rows on the leading kernel components.

    Attributes
    ----------
    x, y : (p,) array
        Coordinates on components 1 and 2 of a drawn sample of rows and of every ranked row.
    rank : (p,) int array
        Rank of the row, 0 where the row is not in the ranked list.
    flagged : (p,) bool array
        Whether it is flagged.
    n_rows : int
        Rows in the table (p of them are drawn).
    variances : (k,) array
        Variances of the leading components in feature space, largest first.
    gains : (k,) array
        How much of each component the model keeps, 0..1 (a step for a hard cut).
    explained : tuple of float
        Share of the feature-space variance on components 1 and 2.
    """

    x: FloatArray
    y: FloatArray
    rank: NDArray[np.int64]
    flagged: NDArray[np.bool_]
    n_rows: int
    variances: FloatArray
    gains: FloatArray
    explained: tuple[float, float]


@dataclass(frozen=True)
class ScoreContours:
    """Scores on a grid, for tables of two numeric columns.

    Attributes
    ----------
    x_name, y_name : str
        The columns.
    x, y : (a,), (b,) array
        Grid lines in the columns' units.
    scores : (b, a) array
        Novelty score at each crossing.
    points_x, points_y : (p,) array
        Rows drawn (a sample, and all flagged).
    points_flagged : (p,) bool array
        Which of them are flagged.
    """

    x_name: str
    y_name: str
    x: FloatArray
    y: FloatArray
    scores: FloatArray
    points_x: FloatArray
    points_y: FloatArray
    points_flagged: NDArray[np.bool_]


@dataclass(frozen=True)
class Curves:
    """One method judged against labels.

    Attributes
    ----------
    name : str
        The method, as a reader would call it.
    ours : bool
        Whether it is the detector of this toolkit.
    auroc, auprc : float
        Areas under the ROC and precision-recall curves (average precision).
    false_positive_rate, true_positive_rate : (p,) array
        The ROC curve, thinned to at most 400 points.
    recall, precision : (r,) array
        The precision-recall curve, thinned likewise.
    seconds : float
        Fit and score; a timing, so it is kept out of `result.json` and the report.
    note : str
        Anything a reader must know ("fitted on 5,000 drawn rows").
    """

    name: str
    ours: bool
    auroc: float
    auprc: float
    false_positive_rate: FloatArray
    true_positive_rate: FloatArray
    recall: FloatArray
    precision: FloatArray
    seconds: float = 0.0
    note: str = ""


@dataclass(frozen=True)
class Evaluation:
    """Methods judged against the known labels of one table in one setting.

    Attributes
    ----------
    label : str
        The label column.
    positive : str
        Its value that means outlier.
    n_positive, n_rows : int
        Rows with that value; rows judged.
    setting : str
        One sentence: what the methods were fitted on, and which rows are judged.
    methods : tuple of Curves
        Ours first.
    """

    label: str
    positive: str
    n_positive: int
    n_rows: int
    setting: str
    methods: tuple[Curves, ...]


@dataclass(frozen=True)
class RepeatedRows:
    """Rows that hold the same, or nearly the same, in all columns the model uses.

    Attributes
    ----------
    rows : tuple of int
        Their numbers, 1 = first row of data; the first 8 of them.
    lines : tuple of int or None
        The lines of the input file they start on; ``None`` for binary formats.
    n_rows : int
        How many they are.
    columns : tuple of str
        Columns in which they differ as written; empty for equal rows. The first 8.
    cells : tuple of tuples of str
        What each of `rows` holds in `columns`.
    """

    rows: tuple[int, ...]
    lines: tuple[int, ...] | None
    n_rows: int
    columns: tuple[str, ...] = ()
    cells: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class DuplicateRows:
    """Rows that repeat others.

    Attributes
    ----------
    n_repeats : int
        Rows equal to an earlier one, as written, in every column the model uses.
    n_groups : int
        Different rows among those repeated.
    equal : tuple of RepeatedRows
        Groups of them that chance does not explain, at most 20, in the order of the table.
    n_near : int
        Groups of rows equal but for one cell, or for case, space or rounding, that chance does not
        explain; without those of `common`.
    near : tuple of RepeatedRows
        The first 20 of them.
    common : tuple of (str, int)
        Columns in which alone so many rows differ from others that this is how the table is made,
        and how many rows.
    n_compared : int
        Rows among which near repeats were sought: all, or those drawn from a table in parts.
    statement : str
        All this in a few plain sentences; empty where no row repeats another.
    """

    n_repeats: int = 0
    n_groups: int = 0
    equal: tuple[RepeatedRows, ...] = ()
    n_near: int = 0
    near: tuple[RepeatedRows, ...] = ()
    common: tuple[tuple[str, int], ...] = ()
    n_compared: int = 0
    statement: str = ""


@dataclass(frozen=True)
class ScreeningResult:
    """All that is known after screening or scoring a table.

    Attributes
    ----------
    source : SourceInfo
        The table screened.
    reference : SourceInfo or None
        The clean reference the model was fitted on; ``None`` when the table itself was used.
    scores : (n,) array
        Novelty score of every row in input order, higher = more novel. Of a table read in parts,
        scores, p-values, rarities and ranks are mapped from temporary files.
    p_values : (n,) array or None
        Calibrated p-values, where a reference exists.
    flagged : (n,) bool array
        Rows above the threshold.
    ranks : (n,) int array
        1 = most novel; every row has its own rank.
    threshold : ThresholdInfo
        The threshold, and how it was made.
    ranked : tuple of RankedRow
        The oddest rows in the order of their ranks: 100, or more where more are explained.
    columns : tuple of ColumnProfile
        Every column of the table in input order.
    map : ComponentMap
        Rows on the first two components, scree and gains.
    contours : ScoreContours or None
        For tables of two numeric columns.
    evaluations : tuple of Evaluation
        Where labels were given.
    warnings : tuple of str
        Whole sentences a reader must know before believing the list.
    settings : mapping of str to str, number, bool or None
        Every resolved parameter, including the seed.
    versions : mapping of str to str
        Of this package and of the libraries the numbers depend on.
    command : str
        The command line that reproduces the result.
    next_steps : tuple of (str, str)
        What to do next: a sentence, and the command for it.
    odd_cells : tuple of OddCell
        Cells that are odd by themselves, clearest first: at most 50, and 10 a column.
    n_odd_cells : int
        How many cells of the table are, listed or not.
    patterns : tuple of Pattern
        Flagged rows that are odd for the same reason; those of most rows first.
    rarities : (n,) array or None
        Without a reference, how rare the score of every row is (`TailShare.share`); ``None`` for a
        hard cut.
    scale : ScoreScale or None
        What p-values or rarities mean; ``None`` where there are neither.
    duplicates : DuplicateRows
        Rows that repeat others.
    """

    source: SourceInfo
    reference: SourceInfo | None
    scores: FloatArray
    p_values: FloatArray | None
    flagged: NDArray[np.bool_]
    ranks: NDArray[np.int64]
    threshold: ThresholdInfo
    ranked: tuple[RankedRow, ...]
    columns: tuple[ColumnProfile, ...]
    map: ComponentMap
    contours: ScoreContours | None
    evaluations: tuple[Evaluation, ...]
    warnings: tuple[str, ...]
    settings: Mapping[str, str | float | int | bool | None]
    versions: Mapping[str, str]
    command: str = ""
    next_steps: tuple[tuple[str, str], ...] = ()
    odd_cells: tuple[OddCell, ...] = ()
    n_odd_cells: int = 0
    patterns: tuple[Pattern, ...] = ()
    rarities: FloatArray | None = None
    scale: ScoreScale | None = None
    duplicates: DuplicateRows = DuplicateRows()

    @property
    def oddest_of_each_kind(self) -> tuple[RankedRow, ...]:
        """The oddest row of each kind of reason, of those flagged or of five where fewer are.

        A row without a reason is of a kind of its own.
        """
        of_kind: dict[object, RankedRow] = {}
        for row in self.ranked[: max(self.n_flagged, 5)]:
            of_kind.setdefault(row.kind_of_reason or row.rank, row)
        return tuple(of_kind.values())

    @cached_property
    def distribution(self) -> ScoreDistribution:
        """How the scores lie: all that a report draws and says of them."""
        return ScoreDistribution.of(self.scores, self.n_flagged)

    @property
    def n_rows(self) -> int:
        """Rows of the table."""
        return len(self.scores)

    @cached_property
    def n_flagged(self) -> int:
        """Rows above the threshold."""
        return int(self.flagged.sum())


@dataclass(frozen=True)
class ComparisonResult:
    """Our detector beside its rivals on one labelled table (`kpca novelty compare`)."""

    source: SourceInfo
    evaluations: tuple[Evaluation, ...]
    columns: tuple[ColumnProfile, ...]
    warnings: tuple[str, ...]
    settings: Mapping[str, str | float | int | bool | None]
    versions: Mapping[str, str]
    command: str = ""
