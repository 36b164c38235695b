"""Numbers given the rest of their table: by the level they recur in, by sequence, by pair.

The surprise of a row is by the share of the rows learned from whose least likely number is as
unlikely: uniform among rows without errors, whatever the tails and however many predictors there
are, and never above that of one row among all. Of two columns that contradict each other in a row
the one is named that contradicts more; where that is open, so is which of them is wrong.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from kpca_apps.novelty.columns.kinds import Notation
from kpca_apps.novelty.columns.plan import ColumnSpec
from kpca_apps.novelty.detector.surprise.tails import UpperTail
from kpca_apps.novelty.evidence import Evidence
from kpca_apps.novelty.relations.conditional.counts import Cells, LevelColumn
from kpca_apps.novelty.relations.conditional.expected import FAR, Calibrated, Ratios
from kpca_apps.novelty.relations.conditional.pairs import Paired, find_pairs
from kpca_apps.novelty.relations.conditional.panels import UsualNumber, find_usual
from kpca_apps.novelty.relations.conditional.sequences import ALL, Sequenced, find_sequences
from kpca_apps.novelty.result import CONTRADICTED
from kpca_apps.system.arrays import BoolArray, FloatArray
from kpca_apps.tables.table import Table

Predictor = UsualNumber | Sequenced | Paired
CONTRADICTS = float(np.log(20.0))  # surprise of what speaks against a number


@dataclass(frozen=True, eq=False)
class NumberRelations:
    """What the rest of a table says of its numbers."""

    predictors: tuple[Predictor, ...]
    calibrated: tuple[Calibrated, ...]  # of each
    whole: UpperTail  # of the largest surprise of a row

    def validate(self) -> None:
        """Refuse predictors without their tails."""
        if len(self.predictors) != len(self.calibrated):
            raise ValueError("tails of other predictors")

    @classmethod
    def learn(
        cls,
        table: Table,
        numbers: Sequence[ColumnSpec],
        recurring: Collection[str],
        columns: Sequence[LevelColumn],
        cells: Sequence[Cells],
    ) -> NumberRelations:
        """Learn from the rows of a table, given its columns of levels and their cells.

        Of numbers that recur, levels say more than means do.
        """
        own = np.ones(table.frame.height, dtype=bool)
        sequences = [*find_sequences(table, numbers, columns, cells)]
        # What names the rows of a sequence is no number, whatever its digits.
        ids = {columns[of.given].name for of in sequences if of.given != ALL}
        numbers = [spec for spec in numbers if spec.name not in ids]
        alone = [spec for spec in numbers if spec.name not in recurring]
        found: list[Predictor] = [
            *(of for of in sequences if of.spec.name not in ids),
            *find_usual(table, alone, columns, cells),
            *find_pairs(table, numbers),
        ]
        kept, calibrated, said = [], [], []
        for of in found:
            ratios = of.ratios(table, cells, own)
            if np.isnan(ratios.ratio).all():
                continue
            tails = Calibrated.fit(ratios, len(found))
            # Of two groups, each may have a law of its own.
            if not isinstance(of, Paired) or tails.is_of_one_group(ratios):
                kept.append(of)
                calibrated.append(tails)
                said.append(_Said.of(of, ratios, tails).surprise)
        largest = np.max(said, axis=0) if said else np.zeros(len(own))
        return cls(tuple(kept), tuple(calibrated), UpperTail.fit(largest, ends=True))

    @property
    def names(self) -> set[str]:
        """The columns that are judged."""
        return {of.spec.name for of in self.predictors}

    def judge(
        self,
        table: Table,
        columns: Sequence[str],
        cells: Sequence[Cells],
        own: BoolArray,
        passed_over: Collection[tuple[int, str]],
        notations: Mapping[str, Notation],
    ) -> tuple[FloatArray, tuple[Evidence, ...]]:
        """-log of the p-value of a row's oddest number, (n,), and the clear ones, row by row.

        Nothing is named by a cell that is `passed_over`. Columns that the table lacks say nothing.
        What is expected is written by the `notations` of the columns.
        """
        said = [
            _Said.of(of, of.ratios(table, cells, own), calibrated)
            for of, calibrated in zip(self.predictors, self.calibrated, strict=True)
            if {*of.names(columns)} <= {*table.columns}
        ]
        if not said:
            return np.zeros(len(own)), ()
        rows = np.flatnonzero(np.any([of.named for of in said], axis=0)).tolist()

        def against(row: int, of: _Said, others: tuple[str, ...]) -> Evidence:
            name, *given = of.by.names(columns)
            format = of.by.spec.format
            assert format is not None
            notation, expected = notations.get(name, Notation()), float(of.ratios.expected[row])
            about = f"about {notation.write(expected, format)}"
            return Evidence(
                row=row,
                column=name,
                kind=CONTRADICTED,
                log_p=min(float(np.log(len(said)) - of.surprise[row]), 0.0),
                seen=table.column(name).text(row).strip(),
                suggestion="",
                expected=about,
                support=int(of.ratios.support[row]),
                sentence=about.join(of.by.why(columns, cells, row, of.ratios)),
                given=tuple(given),
                others=others,
            )

        return self.whole(np.max([of.surprise for of in said], axis=0)), tuple(
            against(row, *one) for row in rows for one in _blamed(row, said, columns, passed_over)
        )


class _Said(NamedTuple):
    """What a predictor says of n rows."""

    by: Predictor
    ratios: Ratios
    surprise: FloatArray  # (n,)
    named: BoolArray  # (n,)

    @classmethod
    def of(cls, predictor: Predictor, ratios: Ratios, calibrated: Calibrated) -> _Said:
        """Judge rows; of a pair only what is far: a group of rows may scatter twice as wide."""
        surprise, named = calibrated.surprise(ratios), calibrated.named(ratios)
        if isinstance(predictor, Paired):
            surprise = np.where(ratios.ratio >= FAR, surprise, 0.0)
        return cls(predictor, ratios, surprise, named)


def _blamed(
    row: int,
    said: Sequence[_Said],
    columns: Sequence[str],
    passed_over: Collection[tuple[int, str]],
) -> Iterator[tuple[_Said, tuple[str, ...]]]:
    """Find what names the numbers of a row that contradict most; any others that may be wrong."""
    asked = Counter(name for one in said for name in one.by.names(columns))
    against = [one for one in said if one.surprise[row] >= CONTRADICTS]
    votes = Counter(name for one in against for name in one.by.names(columns))
    settled = set[str]()
    for of in sorted(against, key=lambda one: -one.surprise[row]):
        name, *given = of.by.names(columns)
        if (
            not of.named[row]
            or name in settled
            or any((row, one) in passed_over for one in (name, *given))
        ):
            continue
        # What contradicts more, and most of those it is asked with, is wrong instead.
        worse = (2 * votes[one] > asked[one] and votes[one] > votes[name] for one in given)
        if not any(worse):
            others = tuple(one for one in given if votes[one] == votes[name])
            settled |= {name, *others}
            yield of, others
