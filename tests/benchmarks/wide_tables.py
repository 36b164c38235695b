"""Screen tables with many columns; compare faults found, time and memory with other detectors.

Tables are generated from a seed: sensors that follow a few causes, blocks of related columns,
unrelated columns, gene expressions, counts, texts of a few levels, and sensors with gaps. Before
any detector sees a table, 24 of its rows (one in eight of fewer than 192) get a fault, in turn: one
cell ten times too large or small; two columns swapped; a twentieth of the columns shifted by four
standard deviations; a tenth of the columns taken from another row; every column taken from another
row; and several rows with the same shift in a tenth of the columns. Tables of unrelated columns
skip the two kinds that only relations show.

    python tests/benchmarks/wide_tables.py [--sizes 1000x300 1000x1500] [--seeds 1] [--only noise]

``--sizes 300x300`` is short. Each table is written as CSV and screened by the command in a separate
process; the others get its numbers in memory: standardised, one-hot levels, gaps filled with the
mean. Printed: the mean area under the ROC curve of each kind against the rows without faults, the
fraction of faults among as many rows as there are faults, and CPU seconds and peak memory of the
command.
"""

import argparse
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray
from processes import Usage, run_kpca
from sklearn.decomposition import PCA
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import LocalOutlierFactor, NearestNeighbors
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

OURS = "kpca_apps"
FloatArray = NDArray[np.float64]
Make = Callable[[int, int, np.random.Generator], FloatArray]
Fault = Callable[["Planter", int], None]


def offsets(d: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Return means and spreads (d,) of columns that differ in scale."""
    mean = np.exp(rng.normal(2, 2, d))
    return mean, mean * rng.uniform(0.05, 0.3, d)


def sensors(n: int, d: int, rng: np.random.Generator) -> FloatArray:
    """Draw columns that are mixtures of eight causes, plus noise."""
    mean, spread = offsets(d, rng)
    causes = rng.normal(size=(n, 8)) @ rng.normal(size=(8, d)) / np.sqrt(8)
    X: FloatArray = mean + spread * (causes + 0.3 * rng.normal(size=(n, d)))
    return X


def blocks(n: int, d: int, rng: np.random.Generator) -> FloatArray:
    """Draw blocks of ten columns that share one cause."""
    mean, spread = offsets(d, rng)
    causes = np.repeat(rng.normal(size=(n, -(-d // 10))), 10, axis=1)[:, :d]
    return mean + spread * (causes + 0.5 * rng.normal(size=(n, d)))


def noise(n: int, d: int, rng: np.random.Generator) -> FloatArray:
    """Draw independent columns."""
    mean, spread = offsets(d, rng)
    return mean + spread * rng.normal(size=(n, d))


def genes(n: int, d: int, rng: np.random.Generator) -> FloatArray:
    """Draw skewed columns on different scales; each of 15 factors drives a fifth of them."""
    loads = rng.normal(size=(15, d)) * (rng.random((15, d)) < 0.2)
    logs = rng.normal(size=(n, 15)) @ loads + 0.6 * rng.normal(size=(n, d))
    return np.exp(0.7 * logs + rng.normal(0, 2, d))


def counts(n: int, d: int, rng: np.random.Generator) -> FloatArray:
    """Draw sparse counts from four mixed sources."""
    rates = rng.gamma(2, size=(n, 4)) @ (rng.gamma(0.3, size=(4, d)) / 2)
    return rng.poisson(rates).astype(float)


def levels(n: int, d: int, rng: np.random.Generator) -> FloatArray:
    """Draw quantities driven by six causes, cut into four levels."""
    inner = rng.normal(size=(n, 6)) @ rng.normal(size=(6, d)) / np.sqrt(6)
    inner += 0.5 * rng.normal(size=(n, d))
    cut: FloatArray = np.digitize(inner, [-1.2, 0.1, 1.3]).astype(float)
    return cut


TABLES: dict[str, tuple[Make, bool]] = {
    "sensors": (sensors, True),
    "blocks": (blocks, True),
    "noise": (noise, False),
    "genes": (genes, True),
    "counts": (counts, True),
    "levels": (levels, True),
    "gaps": (sensors, True),
}
# Fraction of missing cells in the table "gaps".
MISSING = 0.05
# Faults are planted in N_FAULTS rows, but in at most 1 / MOST_FAULTY of all rows.
N_FAULTS, MOST_FAULTY = 24, 8


@dataclass
class Planter:
    """Writes faults into rows of `X`, computed from the original rows."""

    X: FloatArray
    rng: np.random.Generator
    is_text: bool

    def __post_init__(self) -> None:
        self.usual = self.X.copy()
        self.spread = self.X.std(axis=0)
        self.together = self.draw_columns(0.1)
        self.aside = self.signs(len(self.together))

    def draw_columns(self, share: float) -> NDArray[np.intp]:
        """Draw a fraction of the columns, at least two."""
        d = self.X.shape[1]
        columns: NDArray[np.intp] = self.rng.choice(d, max(round(share * d), 2), replace=False)
        return columns

    def signs(self, n: int) -> FloatArray:
        return self.rng.choice([-1.0, 1.0], n)

    def shift(self, row: int, columns: NDArray[np.intp], by: FloatArray) -> None:
        """Shift numbers; set levels to the lowest or the highest level."""
        if self.is_text:
            self.X[row, columns] = np.where(by > 0, 3.0, 0.0)
        else:
            self.X[row, columns] += by * self.spread[columns]

    def slip(self, row: int) -> None:
        """Multiply or divide one number by ten; in text tables, replace a level with a new one."""
        column = self.rng.choice(np.flatnonzero(np.abs(self.X[row]) > 0))
        if self.is_text:
            self.X[row, column] = 4.0
        else:
            self.X[row, column] *= self.rng.choice([0.1, 10.0])

    def exchanged(self, row: int) -> None:
        """Swap the values of two columns, at least one of which is then far from usual."""
        for _ in range(1000):
            a, b = self.rng.choice(self.X.shape[1], 2, replace=False)
            low, high = self.usual[:, [b, a]].min(axis=0), self.usual[:, [b, a]].max(axis=0)
            values = self.X[row, [a, b]]
            if ((values < low) | (values > high)).any() or self.is_text:
                break
        self.X[row, [a, b]] = self.X[row, [b, a]]

    def shifted(self, row: int) -> None:
        """Shift a twentieth of the columns by four standard deviations, in random directions."""
        columns = self.draw_columns(0.05)
        self.shift(row, columns, 4.0 * self.signs(len(columns)))

    def cluster(self, row: int) -> None:
        """Shift a tenth of the columns, in the same directions for all rows of this kind."""
        self.shift(row, self.together, 3.0 * self.aside)

    def patched(self, row: int) -> None:
        """Copy a tenth of the columns from another row."""
        columns = self.draw_columns(0.1)
        self.X[row, columns] = self.usual[self.rng.integers(len(self.X)), columns]

    def unrelated(self, row: int) -> None:
        """Take every column from a different row."""
        n, d = self.X.shape
        self.X[row] = self.usual[self.rng.integers(n, size=d), np.arange(d)]


MARGINAL: dict[str, Fault] = {
    "slip": Planter.slip,
    "exchanged": Planter.exchanged,
    "shifted": Planter.shifted,
    "cluster": Planter.cluster,
}
RELATED: dict[str, Fault] = {"patched": Planter.patched, "unrelated": Planter.unrelated}
KINDS = (*MARGINAL, *RELATED)


def planted(
    X: FloatArray, rng: np.random.Generator, *, related: bool, is_text: bool
) -> tuple[FloatArray, NDArray[np.int64]]:
    """Return the table with faults, and the kind of fault of each row (-1: no fault)."""
    planter = Planter(X.copy(), rng, is_text)
    faults = MARGINAL | (RELATED if related else {})
    kind = np.full(len(X), -1)
    rows = rng.choice(len(X), min(N_FAULTS, len(X) // MOST_FAULTY), replace=False)
    for turn, row in enumerate(rows.tolist()):
        name = list(faults)[turn % len(faults)]
        faults[name](planter, row)
        kind[row] = KINDS.index(name)
    return planter.X, kind


def screened(X: FloatArray, *, is_text: bool) -> tuple[FloatArray, Usage]:
    """Write a table and screen it with the command; return scores and costs."""
    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder, "table.csv"), Path(folder, "out")
        table = pl.DataFrame({f"c{j}": x.round(6) for j, x in enumerate(X.T)}, nan_to_null=True)
        if is_text:
            table = table.select(("level " + pl.all().cast(pl.Int64).cast(pl.String)).name.keep())
        table.write_csv(path)
        taken = run_kpca("novelty", "screen", path, "--out", out)
        return pl.read_csv(out / "scored.csv")["novelty_score"].to_numpy(), taken


def as_numbers(X: FloatArray, *, is_text: bool) -> FloatArray:
    """Prepare the baselines' input: standardise, one-hot encode, fill gaps with the mean."""
    if is_text:
        X = np.hstack([(X == level).astype(float) for level in np.unique(X)])
    X = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
    Z: FloatArray = StandardScaler().fit_transform(X[:, X.std(axis=0) > 0])
    return Z


def peers(Z: FloatArray) -> Iterator[tuple[str, FloatArray]]:
    """Yield scores of other detectors, higher for odder rows."""
    n, d = Z.shape
    yield "largest |z|", np.abs(Z).max(axis=1)
    yield "KNN", NearestNeighbors(n_neighbors=6).fit(Z).kneighbors(Z)[0][:, -1]
    yield "LOF", -LocalOutlierFactor(min(20, n // 2)).fit(Z).negative_outlier_factor_
    yield "IForest", -IsolationForest(random_state=0).fit(Z).score_samples(Z)
    pca = PCA(n_components=min(20, n - 1, d - 1), random_state=0).fit(Z)
    yield "PCA residual", ((Z - pca.inverse_transform(pca.transform(Z))) ** 2).sum(axis=1)
    # Tail probabilities of the empirical distributions (Li et al. 2022); take the smaller tail.
    columns = list(zip(np.sort(Z, axis=0).T, Z.T, strict=True))
    below = np.stack([np.searchsorted(o, z, side="right") for o, z in columns], axis=1) / n
    above = 1 - np.stack([np.searchsorted(o, z, side="left") for o, z in columns], axis=1) / n
    yield "ECOD", -np.log(np.minimum(below, above)).sum(axis=1)
    # Log histograms of ten bins per column, with 0.1 added to each count.
    bins = [np.histogram(z, bins=10) for z in Z.T]
    found = [
        np.log(c + 0.1)[np.clip(np.searchsorted(e, z, side="right") - 1, 0, 9)]
        for (c, e), z in zip(bins, Z.T, strict=True)
    ]
    yield "HBOS", -np.sum(found, axis=0)


def evaluate(scores: FloatArray, kind: NDArray[np.int64]) -> dict[str, float]:
    """Return the area under the ROC curve per kind, and the fraction of faults in the top rows."""
    usual = kind < 0
    found = {
        name: float(roc_auc_score(kind[usual | (kind == k)] == k, scores[usual | (kind == k)]))
        for k, name in enumerate(KINDS)
        if (kind == k).any()
    }
    n_faults = int((~usual).sum())
    first = np.argsort(-scores, kind="stable")[:n_faults]
    return found | {
        "mean": float(np.mean(list(found.values()))),
        "first": float(np.mean(kind[first] >= 0)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", nargs="+", default=["1000x300", "1000x800", "1000x1500"])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--only", nargs="+", default=list(TABLES), choices=list(TABLES))
    options = parser.parse_args()
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    for size in options.sizes:
        n, d = (int(part) for part in size.split("x"))
        records, taken = [], []
        for name in options.only:
            make, related = TABLES[name]
            for seed in range(options.seeds):
                rng = np.random.default_rng(seed)
                X, kind = planted(make(n, d, rng), rng, related=related, is_text=name == "levels")
                if name == "gaps":
                    X[rng.random(X.shape) < MISSING] = np.nan
                scores, costs = screened(X, is_text=name == "levels")
                taken.append(
                    {
                        "table": name,
                        "CPU s": costs.cpu_seconds,
                        "peak MB": costs.peak_bytes / 2**20,
                    }
                )
                with threadpool_limits(1):
                    others = list(peers(as_numbers(X, is_text=name == "levels")))
                records += [
                    {"table": name, "method": method, **evaluate(scores, kind)}
                    for method, scores in [(OURS, scores), *others]
                ]
                print(f"{size} {name}, seed {seed}: done", flush=True)
        found = pl.DataFrame(records, infer_schema_length=None)
        areas = pl.exclude("table", "method").mean().round(3)
        with pl.Config(
            tbl_rows=-1, tbl_cols=-1, tbl_width_chars=120, tbl_hide_dataframe_shape=True
        ):
            print(f"\n{n:,} x {d:,}: costs of the command, faults found, and both by table")
            print(pl.DataFrame(taken).group_by("table", maintain_order=True).mean())
            by_method = found.group_by("method", maintain_order=True).agg(areas)
            print(by_method.sort("mean", descending=True))
            for what in ("mean", "first"):
                by_table = found.group_by("table", "method", maintain_order=True)
                means = by_table.agg(pl.col(what).mean().round(3))
                print(means.pivot("table", index="method", values=what))


if __name__ == "__main__":
    main()
