"""Hand-made screening results for reports, from ordinary to hostile."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from kpca_apps.novelty.redact import redact
from kpca_apps.novelty.result import (
    CategoryProfile,
    ColumnPlane,
    ColumnProfile,
    ComparisonResult,
    ComponentMap,
    Curves,
    DuplicateRows,
    Evaluation,
    Findings,
    NumericProfile,
    OddCell,
    Pattern,
    Pictures,
    PlaneAxis,
    RankedRow,
    Reason,
    RepeatedRows,
    RowLists,
    RowScores,
    RunInfo,
    ScoreContours,
    ScoreMark,
    ScoreScale,
    ScreeningResult,
    ScreeningRun,
    TailShare,
    ThresholdInfo,
)
from kpca_apps.tables.source_info import SourceInfo
from tests.novelty.tables import changed

Make = Callable[[], ScreeningResult]

HOSTILE = "<script>alert(1)</script>\"'&{{7*7}}\u202e\u05d0\u05d1\u05d2 $\\frac{1}{2}$ \x0b]]>"
LONG = "measurement_of_the_bill_" * 8 + "in_mm_xx"
ARABIC = "\u0639\u0645\u0648\u062f \u0627\u0644\u0637\u0648\u0644"


def source(name: str = "penguins_planted.csv", n_rows: int = 344) -> SourceInfo:
    known = {"encoding": "utf-8", "delimiter": ",", "notes": (("Read with commas between cells.",))}
    return SourceInfo(name, "csv", "ab" * 32, 50_123, n_rows, 6, **known)


def numeric(seed: int, centre: float, spread: float) -> NumericProfile:
    values = np.random.default_rng(seed).normal(centre, spread, 344)
    counts, edges = np.histogram(values, 24)
    quantiles = np.quantile(values, [0, 0.25, 0.5, 0.75, 1])
    return NumericProfile(edges, counts.astype(float), *map(float, quantiles))


SPECIES = CategoryProfile(("Adelie", "Gentoo", "Chinstrap"), (152, 124, 68))


def profile(
    name: str, role: str, why: str, n_distinct: int, n_missing: int = 0, **known: Any
) -> ColumnProfile:
    used = role not in ("id", "constant")
    return ColumnProfile(name, role, used, False, why, n_missing, n_distinct, **known)


def columns() -> tuple[ColumnProfile, ...]:
    numbers = "numeric", "342 of 342 cells are numbers"
    species = {"reason_share": 0.21, "distribution": SPECIES}
    return (
        profile("Individual ID", "id", "named by --id", 344),
        profile("Species", "categorical", "3 distinct strings", 3, 0, **species),
        *(
            profile(name, *numbers, n, n_missing=2, reason_share=share, distribution=lies)
            for name, n, share, lies in (
                ("Culmen Length (mm)", 164, 0.18, numeric(1, 44, 5.4)),
                ("Flipper Length (mm)", 55, 0.34, numeric(2, 200, 14)),
                ("Body Mass (g)", 94, 0.27, numeric(3, 4200, 800)),
            )
        ),
        profile("studyName", "constant", "one value only", 1),
    )


REASONS = (
    Reason("Flipper Length (mm)", 0.82, "1950", "195", 1950.0, 195.0),
    Reason("Species", 0.12, "Gentoo", "Adelie", "Gentoo", "Adelie"),
    Reason("Body Mass (g)", 0.06, "3,650", "3,810", 3650.0, 3810.0),
)


ODD_CELLS = (
    OddCell(
        "Flipper Length (mm)",
        "far above",
        "1950",
        "Far above the rest of the column, whose largest is 231.",
        "195",
        row=263,
        line=264,
    ),
    OddCell("Body Mass (g)", "unreadable", "4,2OO", "Not a number.", "4,200", row=9, line=10),
    OddCell(
        "Body Mass (g)",
        "placeholder",
        "-999",
        "In 7 cells, below 0, as no other number: a code for a missing value?",
        "",
        row=12,
        line=13,
        n_cells=7,
        more_rows=(19, 30, 1_040, 1_051, 1_052, 1_060),
        more_lines=(20, 31, 1_041, 1_052, 1_053, 1_061),
    ),
)


def rarity(score: float) -> TailShare:
    share = float(np.exp(-9 * score))
    return TailShare(share, f"1 in {1 / share:,.0f}" if share > 0.005 else "< 1 in 200")


def ranked(scores: np.ndarray, flagged: np.ndarray, reasons: tuple[Reason, ...]) -> list[RankedRow]:
    order = np.argsort(-scores, kind="stable")[:100]
    return [
        RankedRow(
            rank=place + 1,
            row=int(row) + 1,
            line=int(row) + 2,
            id=f"N{row}A1",
            score=float(scores[row]),
            p_value=None,
            flagged=bool(flagged[row]),
            reasons=reasons[: max(0, 3 - place % 4)],
            explained=True,
            hints=('"Flipper Length (mm)" fits if divided by 10.',)
            if reasons and not place
            else (),
            cells=(("Species", "Adelie"), ("Culmen Length (mm)", "39.1"), ("Comments", "")),
            rarity=rarity(float(scores[row])),
            key=f"v01234567-{row:016x}",
        )
        for place, row in enumerate(order)
    ]


def drawn_rows(ranks: np.ndarray) -> np.ndarray:
    return np.flatnonzero((ranks <= 100) | (np.arange(len(ranks)) < 1500))


def component_map(flagged: np.ndarray, ranks: np.ndarray) -> ComponentMap:
    rng, drawn = np.random.default_rng(5), drawn_rows(ranks)
    variances = 0.4 * 0.8 ** np.arange(60)
    return ComponentMap(
        x=rng.normal(size=len(drawn)) + (drawn % 3),
        y=rng.normal(size=len(drawn)),
        rank=np.where(ranks[drawn] <= 100, ranks[drawn], 0),
        flagged=flagged[drawn],
        n_rows=len(ranks),
        variances=variances,
        gains=variances / (variances + 0.02),
        explained=(0.31, 0.18),
    )


def column_plane(flagged: np.ndarray, ranks: np.ndarray, scores: np.ndarray) -> ColumnPlane:
    """Return a plane where the row of rank 1 lies far to the right and rank 2 has no y value."""
    rng, drawn = np.random.default_rng(6), drawn_rows(ranks)
    x, y = rng.normal(200, 14, len(drawn)), rng.normal(4200, 800, len(drawn))
    x[ranks[drawn] == 1] = 1950.0
    y[ranks[drawn] == 2] = np.nan
    return ColumnPlane(
        x=PlaneAxis("Flipper Length (mm)", x),
        y=PlaneAxis("Body Mass (g)", y),
        scores=scores[drawn],
        rank=np.where(ranks[drawn] <= 100, ranks[drawn], 0),
        flagged=flagged[drawn],
        n_rows=len(ranks),
    )


def screening(
    n_rows: int = 344, n_flagged: int = 12, reasons: tuple[Reason, ...] = REASONS
) -> ScreeningResult:
    scores = np.random.default_rng(0).beta(2, 9, n_rows)
    ranks = np.empty(n_rows, dtype=np.int64)
    ranks[np.argsort(-scores, kind="stable")] = np.arange(1, n_rows + 1)
    flagged = ranks <= n_flagged
    limit = np.append(np.sort(scores)[::-1], 0.0)[n_flagged] if n_flagged else scores.max() + 0.01
    repeated = repeats("Flipper Length (mm)", "1950", "195") if n_rows > 3 else DuplicateRows()
    return ScreeningResult(
        source=source(n_rows=n_rows),
        reference=None,
        columns=columns(),
        rows=RowScores(
            scores=scores,
            p_values=None,
            rarity_of=lambda scores: np.exp(-9 * scores),
            ranks=ranks,
            is_flagged=flagged,
            scale=ScoreScale(
                "how rare",
                "How rare: the share of the 20 rows that score at least as high.",
                (ScoreMark(0.25, "1 in 10"), ScoreMark(0.51, "1 in 100")),
            ),
        ),
        threshold=ThresholdInfo(
            rule="share",
            setting=0.01,
            value=float(limit),
            calibration=None,
            n_calibration=0,
            statement="The threshold is a choice: it flags the oddest 3.5 % of the rows.",
            rarity=rarity(float(limit)),
        ),
        ranked=tuple(ranked(scores, flagged, reasons)),
        lists=RowLists(ids={9: "N8A1", 12: "N11A1"}),
        findings=Findings(odd_cells=ODD_CELLS, n_odd_cells=9, duplicates=repeated),
        pictures=Pictures(
            component_map(flagged, ranks), plane=column_plane(flagged, ranks, scores)
        ),
        run=ScreeningRun(
            settings={"share": 0.01, "seed": 0, "kernel": "mean of RBF kernels", "gamma": None},
            versions={"kpca-apps": "0.1.0", "numpy": "2.1.0"},
            warnings=(
                "2 rows have no number at all in 4 columns; their gaps were filled with what the "
                "other columns suggest.",
                "studyName has one value only and was left out.",
                "Comments is free text; only its length and make-up are seen.",
            ),
            command="kpca novelty screen datasets/penguins/penguins_planted.csv --share 0.035",
            n_doubts=2,
            next_steps=(
                (
                    "Score new rows with this model",
                    "kpca novelty fit penguins.csv --model penguins.kpca",
                ),
                (
                    "Leave a column out",
                    "kpca novelty screen penguins.csv --exclude 'Body Mass (g)'",
                ),
                ("Explain one row", "kpca novelty explain penguins.kpca penguins.csv --row N5A1"),
            ),
        ),
    )


def repeats(column: str, *cells: str, n_groups: int = 1) -> DuplicateRows:
    """Return groups of equal rows, and of rows that differ in one column."""
    places = tuple(range(2, 2 + len(cells)))
    equal = RepeatedRows(rows=(1, 9), lines=(2, 10), n_rows=2)
    near = RepeatedRows(places, places, 2_000, (column,), tuple((cell,) for cell in cells))
    return DuplicateRows(
        n_repeats=1_000,
        n_groups=n_groups,
        equal=(equal,) * n_groups,
        n_near=n_groups,
        near=(near,) * n_groups,
        n_compared=344,
        statement=f'Rows repeat earlier ones; some are equal but for "{column}".',
    )


def with_reference() -> ScreeningResult:
    result = screening()
    p_values = result.rows.ranks / (len(result.rows.ranks) + 1.0)
    return changed(
        result,
        reference=source("clean.csv"),
        p_values=p_values,
        ranked=tuple(replace(r, p_value=r.rank / 345, rarity=None) for r in result.ranked),
        rarity_of=None,
        scale=ScoreScale(
            "p-value",
            "p-value: the share of rows like the reference that would score so high.",
            (ScoreMark(0.3, "0.1"),),
        ),
        threshold=replace(
            result.threshold,
            rarity=None,
            rule="alpha",
            setting=0.05,
            calibration="leave-one-out",
            n_calibration=344,
            statement="About 5 % of usual rows would score above the threshold by chance.",
        ),
    )


def infinite_threshold() -> ScreeningResult:
    result = screening(n_flagged=0)
    return replace(
        result,
        threshold=replace(
            result.threshold,
            value=float("inf"),
            rarity=None,
            statement="12 rows cannot calibrate a rate of 1 %; the smallest possible is 7.7 %.",
        ),
    )


def two_columns() -> ScreeningResult:
    x, y = np.linspace(-3, 3, 40), np.linspace(-2, 2, 30)
    points = np.random.default_rng(1).normal(size=(344, 2))
    result = screening(n_flagged=3)
    scores = 1 - np.exp(-(x[None, :] ** 2 + y[:, None] ** 2) / 3)
    return changed(
        result,
        contours=ScoreContours(
            "width $x$", ARABIC, x, y, scores, points[:, 0], points[:, 1], result.rows.is_flagged
        ),
    )


def hostile() -> ScreeningResult:
    result = screening(n_flagged=5)
    profile = replace(result.columns[1], name=HOSTILE, why=HOSTILE)
    reason = Reason(HOSTILE, 1.0, HOSTILE, HOSTILE, HOSTILE, HOSTILE)
    cells = ((HOSTILE, HOSTILE), (ARABIC, ARABIC))
    rows = [
        replace(r, id=HOSTILE, reasons=(reason,), hints=(HOSTILE,) * 3, cells=cells)
        for r in result.ranked
    ]
    odd = replace(ODD_CELLS[2], column=HOSTILE, seen=HOSTILE, sentence=HOSTILE, suggestion=HOSTILE)
    return changed(
        result,
        odd_cells=(odd,) * 50,
        n_odd_cells=2_000,
        source=source("bad\udcff" + HOSTILE),
        ranked=tuple(rows),
        columns=(profile, *result.columns),
        warnings=(HOSTILE,),
        patterns=(Pattern((1, 2, 3), (HOSTILE,), HOSTILE, (HOSTILE, HOSTILE)),),
        settings={HOSTILE: HOSTILE},
        command=HOSTILE,
        next_steps=((HOSTILE, HOSTILE),),
        duplicates=repeats(HOSTILE, HOSTILE, ARABIC),
        evaluations=tuple(
            replace(e, label=HOSTILE, positive=HOSTILE, setting=HOSTILE) for e in evaluations()
        ),
    )


def long_names() -> ScreeningResult:
    result = screening()
    reasons = tuple(replace(reason, column=reason.column + LONG) for reason in REASONS)
    return changed(
        result,
        columns=tuple(replace(column, name=column.name + LONG) for column in result.columns),
        duplicates=repeats(LONG, LONG, LONG),
        ranked=tuple(replace(r, reasons=reasons, cells=((LONG, LONG),) * 9) for r in result.ranked),
        odd_cells=tuple(
            replace(cell, column=cell.column + LONG, seen=LONG, suggestion=LONG)
            for cell in ODD_CELLS
        ),
    )


def hidden() -> ScreeningResult:
    result = screening()
    result = changed(
        result,
        id_column="Individual ID",
        ranked=tuple(
            replace(row, cells=(("Flipper Length (mm)", "1950"), ("Species", "Adelie")))
            for row in result.ranked
        ),
        patterns=(
            Pattern((1, 2, 3), ("Flipper Length (mm)",), "3 rows read 1950."),
            Pattern((4, 5, 6), ("Species",), "N262A1.", ("Individual ID", "N262A1")),
            Pattern((7, 8, 9), ("Species",), "3 rows read Gentoo.", ("Body Mass (g)", "3,650")),
        ),
    )
    return redact(result, {"Flipper Length (mm)", "Individual ID"})


def together() -> ScreeningResult:
    """Return a screening with patterns; in every second row, three cells are odd together."""
    names = ("Culmen Length (mm)", "Species", "Body Mass (g)")
    reasons = (
        Reason(names[0], 0.25, "0", "39.1", 0.0, 39.1, names),
        Reason(names[1], 0.25, "Gentoo", "Adelie", "Gentoo", "Adelie", names),
        Reason(names[2], 0.25, "(missing)", "3,810", None, 3810.0, names),
        Reason("Flipper Length (mm)", 0.25, "1950", "195", 1950.0, 195.0),
    )
    farthest = (replace(REASONS[0], share=0.0),)
    result = screening()
    rows = tuple(replace(r, reasons=reasons if r.rank % 2 else farthest) for r in result.ranked)
    sentence = '14 rows: "Flipper Length (mm)" is about 10 times what the rest suggests.'
    of_card = (rows[0].row, rows[2].row, rows[4].row)
    others = [(1_000 + n, 2_000 + n) for n in range(7)]
    patterns = tuple(Pattern(of, ("Flipper Length (mm)",), sentence) for of in (of_card, *others))
    return changed(result, ranked=rows, patterns=patterns)


def curve(name: str, ours: bool, sharpness: float) -> Curves:
    rate = np.linspace(0, 1, 200)
    return Curves(
        name=name,
        ours=ours,
        auroc=float(1 - 1 / (1 + sharpness)),
        auprc=0.9 - 0.5 / sharpness,
        false_positive_rate=rate,
        true_positive_rate=rate ** (1 / sharpness),
        recall=rate,
        precision=1 - 0.9 * rate**sharpness,
        seconds=1.25,
        note="" if ours else "scikit-learn's defaults",
    )


def evaluations() -> tuple[Evaluation, ...]:
    return (
        Evaluation(
            label="diagnosis",
            positive="malignant",
            n_positive=40,
            n_rows=344,
            setting="Fitted on the whole table and judged on the same rows.",
            methods=(
                curve("kernel PCA", True, 5.0),
                curve("Parzen", False, 6.0),
                curve("isolation forest", False, 4.0),
                curve("local outlier factor", False, 3.0),
                curve("one-class SVM", False, 5.0),
                curve("linear PCA", False, 2.0),
            ),
        ),
    )


def with_labels() -> ScreeningResult:
    return replace(screening(), evaluations=evaluations())


def huge() -> ScreeningResult:
    """Return a screening of a million wide rows, 1,000 of them flagged, with long hostile cells."""
    result = screening(1_000_000, 1000)
    cells = tuple((f"{HOSTILE}{i}", HOSTILE * 20) for i in range(60))
    profiles = tuple(replace(result.columns[2], name=f"{i}{HOSTILE * 6}") for i in range(500))
    return changed(
        result,
        evaluations=evaluations(),
        columns=result.columns + profiles,
        ranked=tuple(replace(row, cells=cells, hints=(HOSTILE * 20,) * 9) for row in result.ranked),
        odd_cells=tuple(
            replace(cell, column=HOSTILE * 20, seen=HOSTILE * 20, sentence=HOSTILE * 20)
            for cell in ODD_CELLS * 16
        ),
        contours=two_columns().pictures.contours,
        duplicates=repeats(HOSTILE * 6, *(HOSTILE * 20,) * 8, n_groups=20),
    )


def no_reasons() -> ScreeningResult:
    result = screening(n_flagged=1, reasons=())
    rows = tuple(replace(r, explained=r.rank < 3, id=None, line=None) for r in result.ranked)
    odd = tuple(replace(cell, line=None) for cell in result.findings.odd_cells)
    return changed(
        result, ranked=rows, ids={}, odd_cells=odd, next_steps=(), warnings=(), command=""
    )


def comparison() -> ComparisonResult:
    two = (*evaluations(), replace(evaluations()[0], setting="Fitted on half of the usual rows."))
    return ComparisonResult(
        source=source(),
        evaluations=two,
        columns=columns(),
        run=RunInfo(
            settings={"seed": 0},
            versions={"numpy": "2.1.0"},
            warnings=("2 rows were left out.",),
            command="kpca novelty compare penguins.csv --label diagnosis",
        ),
    )


SCREENINGS: dict[str, Make] = {
    "usual": screening,
    "none": lambda: screening(n_flagged=0),
    "one": lambda: screening(n_flagged=1),
    "all": lambda: screening(20, 20),
    "with_reference": with_reference,
    "infinite_threshold": infinite_threshold,
    "two_columns": two_columns,
    "hostile": hostile,
    "long_names": long_names,
    "hidden": hidden,
    "together": together,
    "with_labels": with_labels,
    "no_reasons": no_reasons,
    "three_rows": lambda: screening(3, 1),
}
