"""Components behind the papers' figures equal those of an independent implementation."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from kpca_apps.engine.kernels import RBF, Polynomial
from kpca_apps.papers.measuring import components
from tests.engine.examples import ORACLES

CASES = {
    "three_clusters": ("three_clusters", RBF(0.3)),
    "cassini": ("cassini", RBF(0.2)),
    "half_moons": ("half_moons", RBF(0.01)),
    "half_moons2": ("half_moons", RBF(2.0)),
    "parabola_d2": ("parabola", Polynomial(2)),
    "parabola_d3": ("parabola", Polynomial(3)),
    "parabola_d4": ("parabola", Polynomial(4)),
}


@pytest.mark.parametrize("name", sorted(CASES))
def test_eigenvalues_and_projections_agree(name):
    rows, kernel = CASES[name]
    with np.load(ORACLES / "gallery_fixtures.npz") as oracle:
        X, values, projections = (
            oracle[f"{rows}_X"],
            oracle[f"{name}_eig"],
            oracle[f"{name}_proj_abs"],
        )
    found = components(kernel, X, len(values))
    assert_allclose(found.n * found.variances, values, rtol=1e-9)
    apart = np.append(np.diff(-values) > 1e-3 * values[0], True)[: projections.shape[1]]
    clear = apart & np.append(True, apart[:-1])
    assert clear[:2].all()
    ours = np.abs(found.project(X))[:, : projections.shape[1]]
    assert_allclose(ours[:, clear], projections[:, clear], rtol=0, atol=1e-7)
