"""Measure the rate of false alarms for each kind of table and each calibration.

Reference and new rows come from one distribution, so that a fraction alpha of the new rows should
be flagged. Given n calibration rows the rate of one fit is not alpha but Beta(n + 1 - k, k) with k
the rank of the threshold (Vovk 2012), and the count of flagged rows among m new ones is
beta-binomial: the printed interval is that of the mean over seeds. The interval of two groups is
that of one group with the rows of both, as variances add up. A rate above the interval (HIGH) is
not chance; a rate below keeps alpha but loses detections. In `parts` the new rows come in four
tables.

    python tests/benchmarks/nominal_rates.py [--seeds 3] [--sizes 200 1000 2000] [--links dates]

References
----------
V. Vovk, Conditional validity of inductive conformal predictors, ACML 2012, proposition 2.
"""

import argparse
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl
from scipy.stats import betabinom
from threadpoolctl import threadpool_limits

from kpca_apps import fit_model, load_model, save_model, score_table

LEVEL = 0.99  # probability with which an interval holds the mean rate of flags
N_NEW = 2_000
N_PEOPLE = 250
Generator = np.random.Generator
FIRST_DAY = np.datetime64("2024-01-01")


def normal(n: int, rng: Generator) -> dict[str, np.ndarray]:
    """Draw three normal columns, two of them correlated."""
    x = rng.normal(size=(n, 3))
    return {"x": x[:, 0], "y": x[:, 1], "z": 0.8 * x[:, 0] + 0.6 * x[:, 2]}


def skewed(n: int, rng: Generator) -> dict[str, np.ndarray]:
    """Draw rounded log-normal numbers and counts with many ties."""
    size = rng.lognormal(3, 1, n)
    return {"size": size.round(1), "cost": (size * rng.lognormal(0, 0.3, n)).round(2),
            "events": rng.poisson(2, n)}  # fmt: skip


def levels(n: int, rng: Generator) -> dict[str, np.ndarray]:
    """Draw a kind, a place that depends on the kind, a flag and an amount; some levels are rare."""
    kind = rng.choice(list("ABCDEF"), n, p=[0.4, 0.3, 0.15, 0.1, 0.04, 0.01])
    place = np.array([f"{k}{i}" for k, i in zip(kind, rng.geometric(0.3, n), strict=True)])
    return {"kind": kind, "place": place, "flag": rng.choice(["yes", "no"], n, p=[0.1, 0.9]),
            "amount": rng.gamma(2, 10, n).round(1)}  # fmt: skip


def dates(n: int, rng: Generator) -> dict[str, np.ndarray]:
    """Draw two dates, the second 0 to 11 days after the first, and three normal numbers."""
    first = FIRST_DAY + rng.integers(0, 365, n).astype("timedelta64[D]")
    later = first + rng.integers(0, 12, n).astype("timedelta64[D]")
    return {"ordered": first, "shipped": later, **normal(n, rng)}


def orders(n: int, rng: Generator) -> dict[str, np.ndarray]:
    """Draw orders: amount = quantity x price, few prices per product, returning customers."""
    product = rng.integers(0, 40, n)
    price = (5 + 3.5 * product).round(2)
    quantity = rng.integers(1, 13, n)
    customer = np.array([f"C{i:04}" for i in rng.zipf(1.3, n) % 5000])
    return {"customer": customer, "product": [f"P{i:02}" for i in product],
            "quantity": quantity, "price": price,
            "amount": (quantity * price).round(2)}  # fmt: skip


def panel(n: int, rng: Generator) -> dict[str, np.ndarray]:
    """Draw repeated visits of people, with numbers around personal means."""
    person = rng.integers(0, N_PEOPLE, n)
    own = np.random.default_rng(7).normal(70, 12, N_PEOPLE)[person]
    return {"person": np.array([f"id{i}" for i in person]), "weight": own + rng.normal(0, 1, n),
            "visit": FIRST_DAY + rng.integers(0, 900, n).astype("timedelta64[D]"),
            "pulse": rng.normal(70, 9, n).round()}  # fmt: skip


def gaps(n: int, rng: Generator) -> dict[str, np.ndarray]:
    """Draw dependent numbers and a category with a tenth of the cells missing."""
    x = rng.normal(size=(n, 5)) @ np.linalg.cholesky(0.7 * np.ones((5, 5)) + 0.3 * np.eye(5)).T
    x[rng.random((n, 5)) < 0.1] = np.nan
    kind = np.where(rng.random(n) < 0.1, None, rng.choice(["a", "b", "c"], n))
    return {**{f"v{j}": x[:, j] for j in range(5)}, "kind": kind}


LINKS: dict[str, Callable[[int, Generator], dict[str, np.ndarray]]] = {
    link.__name__: link for link in (normal, skewed, levels, dates, orders, panel, gaps)
}


def draw(link: str, n: int, rng: Generator) -> pl.DataFrame:
    """Draw rows; missing numbers are null."""
    return pl.DataFrame(LINKS[link](n, rng), nan_to_null=True, strict=False)


def flagged(link: str, way: str, n: int, alpha: float, seed: int, n_new: int) -> tuple[int, int]:
    """Return the number of flagged new rows, and the number of calibration rows."""
    rng = np.random.default_rng([seed, n])
    reference, new = draw(link, n, rng), draw(link, n_new, rng)
    options: dict[str, object] = {"alpha": alpha, "seed": seed}
    if way == "split":
        options["calibration"] = "split"
    if way == "groups":
        for frame in (reference, new):
            frame.insert_column(0, pl.Series("region", rng.choice(["north", "south"], len(frame))))
        options["by"] = "region"
    model = fit_model(reference, **options)
    n_calibrating = len(model.detector.calibration_scores)
    if way == "saved":
        with TemporaryDirectory() as folder:
            path = Path(folder) / "reference.kpca"
            save_model(model, path)
            model = load_model(path)
    tables = np.array_split(np.arange(len(new)), 4 if way == "parts" else 1)
    results = [score_table(model, new[part], explain=0) for part in tables]
    return sum(int(np.sum(result.rows.is_flagged)) for result in results), n_calibrating


def interval(n: int, alpha: float, n_seeds: int, n_new: int) -> tuple[float, float]:
    """Return the interval that holds the mean rate of flags with probability `LEVEL`.

    Each seed has n calibration rows and `n_new` new rows.
    """
    above = n + 1 - math.ceil((n + 1) * (1 - alpha) - 1e-9)
    of_fit = betabinom(n_new, above, n + 1 - above)
    total = np.ones(1)
    for _ in range(n_seeds):
        total = np.convolve(total, of_fit.pmf(np.arange(n_new + 1)))
    low, high = np.searchsorted(np.cumsum(total), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return low / (n_seeds * n_new), high / (n_seeds * n_new)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--alpha", type=float, default=0.05)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--sizes", type=int, nargs="+", default=[200, 1_000, 2_000, 4_000, 8_000])
    parser.add_argument("--links", nargs="+", default=[*LINKS], choices=[*LINKS])
    ways = ["loo", "split", "saved", "groups", "parts"]
    parser.add_argument("--ways", nargs="+", default=ways, choices=ways)
    for line in lines(parser.parse_args()):
        print(line, flush=True)


def lines(args: argparse.Namespace) -> Iterator[str]:
    """Yield one line per calibration, kind of table and size."""
    n_cells = n_kept = 0
    for way in args.ways:
        for link in args.links:
            for n in args.sizes:
                found = [flagged(link, way, n, args.alpha, s, N_NEW) for s in range(args.seeds)]
                n_calibrating = min(n_flagged for _, n_flagged in found)
                rate = sum(n_flagged for n_flagged, _ in found) / (args.seeds * N_NEW)
                low, high = interval(n_calibrating, args.alpha, args.seeds, N_NEW)
                verdict = "HIGH" if rate > high else "low" if rate < low else ""
                n_cells, n_kept = n_cells + 1, n_kept + (rate <= high)
                each = " ".join(f"{n_flagged / N_NEW:.1%}" for n_flagged, _ in found)
                yield (
                    f"{way:7}{link:8}{n:6,} rows: {rate:6.2%} of {args.alpha:.0%}, interval "
                    f"{low:.2%} to {high:.2%} {verdict:5}({each})"
                )
    yield f"{n_kept} of {n_cells} within or below the {LEVEL:.0%} interval"


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
