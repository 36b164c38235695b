"""Find the wrong rows and cells of dirty tables; their clean versions show which are wrong.

Row i of both tables is the same row, and a cell is wrong if the tables differ there, as numbers if
both are numbers, otherwise as stripped text. FOLDER holds the pairs, in subfolders or not:
NAME_dirty.csv or NAME_error-01.csv beside NAME_clean.csv (as in raha and ZeroED), and
NAME_clean_KIND.csv beside NAME_clean.csv (as ZeroED's kinds of error in beers).

    python tests/benchmarks/relations.py FOLDER [--only WORD ...]

Printed for each pair: the AUROC of rows with a wrong cell, and precision and recall of the reported
cells, at most as many as are wrong, in order of evidence: for the whole screening with its
defaults, and for rows by scikit-learn's LOF and isolation
forest on standardised numbers, one-hot categories and keys as codes, and by cleanlab's Datalab if
installed (``pip install "cleanlab[datalab]"``).
"""

import argparse
import csv
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from real_tables import datalab, has_datalab
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import LocalOutlierFactor
from threadpoolctl import threadpool_limits

from kpca_apps import screen_table

FloatArray = NDArray[np.float64]
# Row scores, and cells (row, column) in order of evidence; None if a method reports no cells.
Ranking = tuple[FloatArray, list[tuple[int, int]] | None]
MAX_LEVELS = 100
# ZeroED's placeholder for unknown values in clean tables.
UNKNOWN = "(wait to be cleaned)"


@dataclass(frozen=True)
class Pair:
    """A table with errors, and a mask of its wrong cells."""

    name: str
    frame: pd.DataFrame
    wrong: NDArray[np.bool_]


def pairs(folder: Path) -> Iterator[tuple[Path, Path]]:
    """Yield the paths of each dirty table and its clean version."""
    for clean in sorted(folder.rglob("*_clean.csv")):
        stem = clean.name.removesuffix("_clean.csv")
        for dirty in sorted(clean.parent.glob(f"{stem}_*.csv")):
            is_kind = dirty.name.removeprefix(f"{stem}_").startswith(("dirty", "error", "clean_"))
            if is_kind and dirty.stat().st_size and clean.stat().st_size:
                yield dirty, clean


def read(path: Path) -> pd.DataFrame:
    """Read all cells as text; drop cells beyond the header's width."""
    with path.open(newline="", encoding="utf-8", errors="replace") as file:
        header, *lines = csv.reader(file)
    return pd.DataFrame([line[: len(header)] for line in lines], columns=header).fillna("")


def equal_cells(dirty_cell: str, clean_cell: str) -> bool:
    if dirty_cell.strip() == clean_cell.strip() or UNKNOWN in clean_cell:
        return True
    try:
        return float(dirty_cell) == float(clean_cell)
    except ValueError:
        return False


def load(dirty: Path, clean: Path) -> Pair | None:
    """Compare a table with its clean version; None if their shapes differ."""
    frame, clean_cell = read(dirty), read(clean)
    if frame.shape != clean_cell.shape:
        return None
    cells = zip(frame.to_numpy().ravel(), clean_cell.to_numpy().ravel(), strict=True)
    wrong = np.array([not equal_cells(*pair) for pair in cells]).reshape(frame.shape)
    return Pair(dirty.name.removesuffix(".csv"), frame, wrong)


def screen(frame: pd.DataFrame) -> Ranking:
    result = screen_table(frame)
    places = {name: place for place, name in enumerate(frame.columns)}
    cells = [
        (row - 1, places[cell.column])
        for cell in result.findings.odd_cells
        for row in (cell.row, *cell.more_rows)
    ]
    return np.asarray(result.rows.scores, dtype=float), cells


def prepared(frame: pd.DataFrame) -> FloatArray:
    """Prepare a table for numeric detectors: standardise and encode columns, fill gaps."""
    blocks = []
    for _, column in frame.items():
        numbers = pd.to_numeric(column, errors="coerce")
        if numbers.notna().sum() >= 0.9 * (column != "").sum() > 0:
            blocks.append(numbers.fillna(numbers.median()).to_numpy(float)[:, None])
        elif column.nunique() <= MAX_LEVELS:
            blocks.append(pd.get_dummies(column).to_numpy(float))
        else:
            blocks.append(pd.factorize(column, sort=True)[0].astype(float)[:, None])
    X = np.hstack(blocks)
    sd = X.std(axis=0)
    standardised: FloatArray = ((X - X.mean(axis=0)) / np.where(sd > 0, sd, 1.0))[:, sd > 0]
    return standardised


def lof(frame: pd.DataFrame) -> Ranking:
    return -LocalOutlierFactor().fit(prepared(frame)).negative_outlier_factor_, None


def forest(frame: pd.DataFrame) -> Ranking:
    X = prepared(frame)
    return -IsolationForest(random_state=0).fit(X).score_samples(X), None


def methods() -> dict[str, Callable[[pd.DataFrame], Ranking]]:
    """Return our screening and the installed baselines; print the missing ones."""
    found = {"kpca screen": screen, "LOF": lof, "forest": forest}
    peers = {"Datalab": lambda frame: (datalab(prepared(frame)), None)}
    return found | (peers if has_datalab() else {})


def line(pair: Pair, scores: FloatArray, cells: list[tuple[int, int]] | None) -> str:
    """Format how well rows and cells were found."""
    bad, n_wrong = pair.wrong.any(axis=1), int(pair.wrong.sum())
    # The area is undefined if every row has a wrong cell, or none has.
    area = f"{roc_auc_score(bad, scores):8.3f}" if 0 < bad.sum() < len(bad) else f"{'-':>8}"
    if cells is None:
        return area
    first = list(dict.fromkeys(cells))[:n_wrong]
    n_right = sum(bool(pair.wrong[place]) for place in first)
    precision = f"{n_right / len(first):10.3f}" if first else f"{'-':>10}"
    return f"{area}{len(first):7}{precision}{n_right / max(n_wrong, 1):8.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="*", default=[""], help="pairs with one of these words")
    options = parser.parse_args()
    tried = methods()
    print(f"{'':12}{'AUROC':>8}{'cells':>7}{'precision':>10}{'recall':>8}{'CPU s':>8}")
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for dirty, clean in pairs(options.folder):
            if not any(word in dirty.name for word in options.only):
                continue
            pair = load(dirty, clean)
            if pair is None:
                print(f"{dirty.name}: its shape differs from {clean.name}")
                continue
            n, p = pair.frame.shape
            n_rows, n_cells = pair.wrong.any(axis=1).sum(), pair.wrong.sum()
            print(f"{pair.name}, {n:,} x {p}: {n_cells:,} wrong cells in {n_rows:,} rows")
            for name, method in tried.items():
                started = time.process_time()
                figures = line(pair, *method(pair.frame))
                print(f"{name:12}{figures:33}{time.process_time() - started:8.2f}", flush=True)


if __name__ == "__main__":
    main()
