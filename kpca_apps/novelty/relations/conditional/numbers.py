"""Numbers predicted by other columns: by a level, by a sequence, by another number.

The surprise of a row is -log of the share of training rows whose least likely number is as
unlikely, so this share is uniform in rows without errors, whatever the tails. If two columns
contradict each other, the one with more contradictions is wrong; on a tie, either may be.
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
from kpca_apps.novelty.relations.conditional.counts import LevelCells, LevelColumn
from kpca_apps.novelty.relations.conditional.expected import FAR, Calibrated, Ratios
from kpca_apps.novelty.relations.conditional.pairs import Paired, find_pairs
from kpca_apps.novelty.relations.conditional.panels import UsualNumber, find_usual
from kpca_apps.novelty.relations.conditional.sequences import ALL, Sequenced, find_sequences
from kpca_apps.novelty.result import CONTRADICTED
from kpca_apps.system.arrays import BoolArray, FloatArray
from kpca_apps.tables.table import Table

Predictor = UsualNumber | Sequenced | Paired
CONTRADICTS = float(np.log(20.0))  # minimum -log p-value of a number that contradicts a prediction


@dataclass(frozen=True, eq=False)
class NumberRelations:
    """Predictors of the numbers of a table."""

    predictors: tuple[Predictor, ...]
    calibrated: tuple[Calibrated, ...]  # tail and limit of the ratios of each predictor
    whole: UpperTail  # tail, over training rows, of the largest `_Judged.surprise` of a row

    def validate(self) -> None:
        """Refuse more or fewer predictors than `calibrated` tails."""
        if len(self.predictors) != len(self.calibrated):
            raise ValueError("tails of other predictors")

    @classmethod
    def learn(
        cls,
        table: Table,
        numbers: Sequence[ColumnSpec],
        recurring: Collection[str],
        columns: Sequence[LevelColumn],
        cells: Sequence[LevelCells],
    ) -> NumberRelations:
        """Learn from the rows of a table, its level columns and their cells.

        `recurring` numbers are judged as levels, not by the medians of a level.
        """
        own = np.ones(table.n_rows, dtype=bool)
        sequences = [*find_sequences(table, numbers, columns, cells)]
        # A column that tells which sequence a row belongs to is an identifier, not a number.
        ids = {columns[of.given].name for of in sequences if of.given != ALL}
        numbers = [spec for spec in numbers if spec.name not in ids]
        alone = [spec for spec in numbers if spec.name not in recurring]
        found: list[Predictor] = [
            *(of for of in sequences if of.spec.name not in ids),
            *find_usual(table, alone, columns, cells),
            *find_pairs(table, numbers),
        ]
        kept, calibrated, largest = [], [], np.zeros(len(own))
        for of in found:
            ratios = of.ratios(table, cells, own)
            if np.isnan(ratios.ratio).all():
                continue
            tails = Calibrated.fit(ratios, len(found))
            # Drop pairs of columns in which rows follow two different lines.
            if not isinstance(of, Paired) or tails.is_of_one_group(ratios):
                kept.append(of)
                calibrated.append(tails)
                largest = np.maximum(largest, _Judged.of(of, ratios, tails).surprise)
        return cls(tuple(kept), tuple(calibrated), UpperTail.fit(largest, ends=True))

    @property
    def names(self) -> set[str]:
        """Names of the columns that are judged."""
        return {of.spec.name for of in self.predictors}

    def judge(
        self,
        table: Table,
        columns: Sequence[str],
        cells: Sequence[LevelCells],
        own: BoolArray,
        passed_over: Collection[tuple[int, str]],
        notations: Mapping[str, Notation],
    ) -> tuple[FloatArray, tuple[Evidence, ...]]:
        """Return -log of the p-value of each row's oddest number, (n,), and evidence by row.

        Cells that are `passed_over` contradict nothing. Columns that the table lacks are ignored.
        Expected numbers are written in the `notations` of their columns.
        """
        judged = [
            _Judged.of(of, of.ratios(table, cells, own), calibrated)
            for of, calibrated in zip(self.predictors, self.calibrated, strict=True)
            if {*of.names(columns)} <= {*table.columns}
        ]
        if not judged:
            return np.zeros(len(own)), ()
        found = []
        for row in np.flatnonzero(np.any([of.named for of in judged], axis=0)).tolist():
            for of, others in _blamed(row, judged, columns, passed_over):
                name, *given = of.by.names(columns)
                format = of.by.spec.format
                assert format is not None
                notation, expected = notations.get(name, Notation()), of.ratios.expected[row]
                about = f"about {notation.write(float(expected), format)}"
                evidence = Evidence(
                    row=row,
                    column=name,
                    kind=CONTRADICTED,
                    log_p=min(float(np.log(len(judged)) - of.surprise[row]), 0.0),
                    seen=table.column[name].text(row).strip(),
                    suggestion="",
                    expected=about,
                    support=int(of.ratios.support[row]),
                    sentence=about.join(of.by.why(columns, cells, row, of.ratios)),
                    given=tuple(given),
                    others=others,
                )
                found.append(evidence)
        return self.whole(np.max([of.surprise for of in judged], axis=0)), tuple(found)


class _Judged(NamedTuple):
    by: Predictor
    ratios: Ratios
    surprise: FloatArray  # (n,), -log of the p-value of each number
    named: BoolArray  # (n,), whether a number is called wrong

    @classmethod
    def of(cls, predictor: Predictor, ratios: Ratios, calibrated: Calibrated) -> _Judged:
        surprise = calibrated.surprise(ratios)
        if isinstance(predictor, Paired):  # scatter about a line may vary: ignore moderate ratios
            surprise = np.where(ratios.ratio >= FAR, surprise, 0.0)
        return cls(predictor, ratios, surprise, calibrated.named(ratios))


def _blamed(
    row: int,
    judged: Sequence[_Judged],
    columns: Sequence[str],
    passed_over: Collection[tuple[int, str]],
) -> Iterator[tuple[_Judged, tuple[str, ...]]]:
    """Yield the numbers of a row that are wrong, with the columns that may be wrong instead."""
    tested = Counter(name for of in judged for name in of.by.names(columns))
    against = [of for of in judged if of.surprise[row] >= CONTRADICTS]
    votes = Counter(name for of in against for name in of.by.names(columns))
    settled = set[str]()
    for of in sorted(against, key=lambda of: -of.surprise[row]):
        name, *given = of.by.names(columns)
        is_named = any((row, one) in passed_over for one in (name, *given))
        if not of.named[row] or name in settled or is_named:
            continue
        # The predicted number is not called wrong if most tests of a predicting number have failed.
        if not any(2 * votes[one] > tested[one] and votes[one] > votes[name] for one in given):
            others = tuple(one for one in given if votes[one] == votes[name])
            settled |= {name, *others}
            yield of, others
