"""Plant ten faults of ten kinds, or thirty of two causes, in text cells.

A seeded generator draws rows and columns from the table alone, before any detector sees it. A fault
is planted only where somebody who knows the column could see it: a slip by a factor needs a column
whose usual values span less than the factor, an odd combination two dependent columns. If a kind
fits no column of a table, the next kind is used.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

__all__ = ["N_FAULTS", "Fault", "plant_causes", "plant_faults"]

N_FAULTS = 10
# Cells to overwrite: (column, text).
Cells = list[tuple[str, str]]
MIN_DISTINCT = 10
# Minimum correlation, or Cramer's V, of dependent columns.
TOGETHER = 0.5


@dataclass(frozen=True)
class Fault:
    """Description of a planted fault, and its row (0-based)."""

    kind: str
    row: int
    columns: tuple[str, ...]


class Planter:
    """Draws rows and columns for faults in a table of text cells."""

    def __init__(self, cells: pd.DataFrame, rng: np.random.Generator) -> None:
        self.cells, self.rng = cells, rng
        numbers = {name: pd.to_numeric(cells[name], errors="coerce") for name in cells}
        self.numbers = {
            name: column.to_numpy(float)
            for name, column in numbers.items()
            if column.notna().sum() >= 0.99 * cells[name].notna().sum()
            and column.nunique() >= MIN_DISTINCT
        }
        few = len(cells) ** 0.5
        self.levels = [
            name
            for name in cells
            if numbers[name].isna().all() and 2 <= cells[name].nunique() <= max(12, few)
        ]

    def row(self, *names: str, where: np.ndarray | None = None) -> int:
        """Draw a row without missing cells in the given columns."""
        possible = self.cells[list(names)].notna().all(axis=1).to_numpy()
        found = np.flatnonzero(possible if where is None else possible & where)
        if not found.size:
            raise LookupError
        return int(self.rng.choice(found))

    def draw_column(self, names: list[str]) -> str:
        if not names:
            raise LookupError
        return str(self.rng.choice(names))

    def narrow(self, factor: float) -> list[str]:
        """Return positive columns whose 5 % and 95 % quantiles differ by less than the factor."""
        found = []
        for name, column in self.numbers.items():
            low, high = np.nanquantile(column, [0.05, 0.95])
            if np.nanmin(column) >= 0 and low > 0 and high < factor * low:
                found.append(name)
        return found

    def slip(self, factor: float) -> tuple[int, Cells]:
        """Multiply or divide a value by the factor."""
        name = self.draw_column(self.narrow(factor))
        row = self.row(name, where=self.numbers[name] != 0)
        value = self.numbers[name][row]
        up = factor >= 100 or self.rng.random() < 0.5
        return row, [(name, written(value * factor if up else value / factor))]

    def swapped(self) -> tuple[int, Cells]:
        """Swap two numbers, at least one of which is then unusual in its column."""
        usual = {n: np.nanquantile(c, [0.01, 0.99]) for n, c in self.numbers.items()}
        pairs = []
        for a, of_a in self.numbers.items():
            for b, of_b in self.numbers.items():
                strange = (of_a < usual[b][0]) | (of_a > usual[b][1])
                strange |= (of_b < usual[a][0]) | (of_b > usual[a][1])
                if a < b and strange[~np.isnan(of_a + of_b)].mean() > 0.9:
                    pairs.append((a, b))
        if not pairs:
            raise LookupError
        a, b = pairs[self.rng.integers(len(pairs))]
        row = self.row(a, b)
        return row, [(a, self.cells[b][row]), (b, self.cells[a][row])]

    def extra_digit(self) -> tuple[int, Cells]:
        """Repeat the first digit of a number."""
        name = self.draw_column(self.narrow(10))
        row = self.row(name, where=np.abs(self.numbers[name]) >= 1)
        text = self.cells[name][row]
        at = next(i for i, c in enumerate(text) if c.isdigit())
        return row, [(name, text[: at + 1] + text[at:])]

    def misspelt(self) -> tuple[int, Cells]:
        """Drop or repeat a letter so that no other level has that spelling."""
        name = self.draw_column(self.levels)
        texts = self.cells[name]
        row = self.row(name, where=(texts.str.len() >= 4).fillna(False).to_numpy(bool))
        text, at = texts[row], int(self.rng.integers(1, len(texts[row])))
        new = text[:at] + text[at + 1 :] if self.rng.random() < 0.5 else text[:at] + text[at - 1 :]
        if new in set(texts.dropna()) or new == text:
            raise LookupError
        return row, [(name, new)]

    def century(self) -> tuple[int, Cells]:
        """Shift a year by a hundred."""
        years = [
            name
            for name, column in self.numbers.items()
            if np.nanquantile(column, 0.01) >= 1800 and np.nanquantile(column, 0.99) <= 2050
            if (column[~np.isnan(column)] % 1 == 0).all()
        ]
        name = self.draw_column(years)
        row = self.row(name)
        shift = 100 if self.rng.random() < 0.5 else -100
        return row, [(name, written(self.numbers[name][row] + shift))]

    def lost_sign(self) -> tuple[int, Cells]:
        """Flip the sign of a value in a column with nearly constant sign."""
        names = [n for n, c in self.numbers.items() if max(np.mean(c > 0), np.mean(c < 0)) > 0.9]
        name = self.draw_column(names)
        row = self.row(name, where=np.abs(self.numbers[name]) > 0)
        return row, [(name, written(-self.numbers[name][row]))]

    def odd_pair(self) -> tuple[int, Cells]:
        """Replace a value by a typical one that contradicts another column."""
        pairs = []
        for a in self.numbers:
            for b in self.numbers:
                both = ~np.isnan(self.numbers[a] + self.numbers[b])
                if a != b and both.sum() > 50:
                    found = spearmanr(self.numbers[a][both], self.numbers[b][both]).statistic
                    if abs(found) > TOGETHER:
                        pairs.append((a, b, found > 0))
        if not pairs:
            raise LookupError
        a, b, rising = pairs[self.rng.integers(len(pairs))]
        of_a, of_b = self.numbers[a], self.numbers[b]
        low = self.row(a, b, where=of_a <= np.nanquantile(of_a, 0.05))
        far = np.nanquantile(of_b, 0.9 if rising else 0.1)
        return low, [(b, self.cells[b][self.row(b, where=of_b >= far if rising else of_b <= far)])]

    def odd_level(self) -> tuple[int, Cells]:
        """Replace a level by a common one never seen with the row's level in another column."""
        pairs = []
        for a in self.levels:
            for b in self.levels:
                if a == b:
                    continue
                counts = pd.crosstab(self.cells[a], self.cells[b])
                expected = np.outer(counts.sum(1), counts.sum(0)) / counts.to_numpy().sum()
                if ((counts == 0) & (expected >= 5)).to_numpy().any():
                    pairs.append((a, b, (counts == 0) & (expected >= 5)))
        if not pairs:
            raise LookupError
        a, b, never = pairs[self.rng.integers(len(pairs))]
        places = np.argwhere(never.to_numpy())
        i, j = places[self.rng.integers(len(places))]
        row = self.row(b, where=(self.cells[a] == never.index[i]).to_numpy())
        return row, [(b, str(never.columns[j]))]

    def zero(self) -> tuple[int, Cells]:
        """Write 0 in a column whose values are all far from 0."""
        name = self.draw_column([n for n in self.narrow(10) if (self.numbers[n] != 0).all()])
        return self.row(name), [(name, "0")]


def written(value: float) -> str:
    """Format a number as a person would."""
    return f"{value:.0f}" if value == round(value) else f"{value:.6g}"


KINDS: dict[str, Callable[[Planter], tuple[int, Cells]]] = {
    "thousandfold": lambda planter: planter.slip(1000.0),
    "decimal point": lambda planter: planter.slip(10.0),
    "inches for centimetres": lambda planter: planter.slip(2.54),
    "swapped columns": Planter.swapped,
    "extra digit": Planter.extra_digit,
    "misspelt category": Planter.misspelt,
    "wrong century": Planter.century,
    "lost sign": Planter.lost_sign,
    "odd combination": Planter.odd_pair,
    "odd category": Planter.odd_level,
    "impossible zero": Planter.zero,
}
ATTEMPTS = 20
# Number of faults that `plant_causes` plants per cause, and maximum number of attempts per cause.
N_OF_CAUSE, ATTEMPTS_OF_CAUSE = 15, 200
OF_PAIRS = ("odd combination", "odd category", "swapped columns")


def plant_faults(cells: pd.DataFrame, rng: np.random.Generator) -> tuple[pd.DataFrame, list[Fault]]:
    """Plant ten faults in ten different rows, taking the kinds of faults in turn.

    The index of `cells` must be 0 to n - 1.
    """
    planter, damaged, faults = Planter(cells, rng), cells.copy(), []
    order = list(KINDS)
    for turn in range(ATTEMPTS * len(order)):
        if len(faults) == N_FAULTS:
            return damaged, faults
        kind = order[turn % len(order)]
        try:
            row, changes = KINDS[kind](planter)
        except LookupError:
            continue
        if row in {fault.row for fault in faults}:
            continue
        for name, text in changes:
            damaged.loc[row, name] = text
        faults.append(Fault(kind, row, tuple(name for name, _ in changes)))
    raise ValueError("no room for ten faults")


def plant_causes(cells: pd.DataFrame, rng: np.random.Generator) -> tuple[pd.DataFrame, list[Fault]]:
    """Plant two causes of faults: each repeats one kind of fault in the same column."""
    damaged, faults = cells.copy(), list[Fault]()
    for kind in rng.permutation([name for name in KINDS if name not in OF_PAIRS]).tolist():
        planter, found = Planter(cells, rng), dict[int, Cells]()
        where: tuple[str, ...] = ()
        for _ in range(ATTEMPTS_OF_CAUSE):
            try:
                row, changes = KINDS[kind](planter)
            except LookupError:
                continue
            if row not in {fault.row for fault in faults}:
                found[row] = changes
            if not where:
                where = tuple(name for name, _ in changes)
                planter.numbers = {n: c for n, c in planter.numbers.items() if n in where}
                planter.levels = [name for name in planter.levels if name in where]
            if len(found) == N_OF_CAUSE:
                break
        if len(found) < N_OF_CAUSE:
            continue
        for row, changes in found.items():
            for name, text in changes:
                damaged.loc[row, name] = text
            faults.append(Fault(kind, row, where))
        if len(faults) == 2 * N_OF_CAUSE:
            return damaged, faults
    raise ValueError("no room for two causes")
