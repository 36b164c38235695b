"""Detect noise around plane shapes: our score, its parts, Hoffmann's detector and others.

    python tests/benchmarks/shapes.py [--data FOLDER]

The figure is the AUROC of the rows labelled as noise; all rows are fitted and scored. Our version
of Hoffmann's ring-line-square, with noise added, is ``datasets/ring_line_square.csv``. His two
noisy sets follow if FOLDER holds them (``kpca papers fetch FOLDER``). His method runs with his
paper's sigma and components, and as ``kpca novelty compare`` sets it, like the others. Needs
``pip install ".[test]"``.
"""

import argparse
import warnings
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
from modern_peers import OURS, FloatArray
from outlier_kinds import knn
from real_tables import PARTS
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler

from kpca_apps import screen_table
from kpca_apps.engine.kernels import RBF
from kpca_apps.novelty.compare.baselines import BASELINES
from kpca_apps.novelty.detector.surprise import combined
from kpca_apps.papers.data import PaperData
from kpca_apps.papers.experiments.hoffmann import SETS
from kpca_apps.papers.measuring import components

OWN = Path(__file__).resolve().parents[2] / "datasets" / "ring_line_square.csv"


def read_shapes(folder: Path | None) -> dict[str, tuple[FloatArray, FloatArray, float, int]]:
    """Return points, noise mask, and the paper's sigma and components, by name."""
    own = pd.read_csv(OWN)
    is_noise = (own["noise"] == "yes").to_numpy(float)
    known = SETS["ring-line-square"]
    found = {OWN.stem: (own[["x", "y"]].to_numpy(), is_noise, known.sigma, known.q)}
    for name, known in SETS.items():
        if folder is not None and known.noise_rows:
            X = PaperData(folder).hoffmann(name)
            is_noise = (np.arange(len(X)) >= len(X) - known.noise_rows).astype(float)
            found[name] = X, is_noise, known.sigma, known.q
    return found


def scores_of_all(X: FloatArray, sigma: float, q: int) -> dict[str, FloatArray]:
    """Return the scores of every method, higher for odder rows."""
    found = {}
    for name, weights in {OURS: combined.CONTAMINATED, **PARTS}.items():
        with mock.patch.object(combined, "CONTAMINATED", weights):
            found[name] = screen_table(pd.DataFrame(X, columns=["x", "y"])).rows.scores
    hoffmann = components(RBF.from_sigma(sigma), X, q)
    found["Hoffmann (2007), as published"] = hoffmann.reconstruction_error(X)
    Z = StandardScaler().fit_transform(X)
    found |= {baseline.name: baseline.run(Z, Z, 0)[0] for baseline in BASELINES}
    return found | {"5th nearest neighbour": knn(Z, None, 0)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder that kpca papers fetch filled")
    areas = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a weight of 0 has no logarithm
        for name, (X, is_noise, sigma, q) in read_shapes(parser.parse_args().data).items():
            scores = scores_of_all(X, sigma, q)
            areas[name] = {
                method: roc_auc_score(is_noise, found) for method, found in scores.items()
            }
    print(pd.DataFrame(areas).round(3).to_string())


if __name__ == "__main__":
    main()
