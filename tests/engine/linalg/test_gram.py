import json
from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose

from kpca_apps.engine.kernels import RBF, Linear
from kpca_apps.engine.linalg.gram import about_landmarks, about_mean, about_origin
from tests.engine.examples import ORACLES, exact, normal_rows
from tests.system.model_parts import from_file


@pytest.fixture(scope="module")
def case():
    """Matrices K of rows and Kt of new rows, and their centred versions, computed exactly."""
    oracle = json.loads((ORACLES / "misc_exact.json").read_text(encoding="utf-8"))["centring"]
    return {
        name: np.array([[float(Fraction(value)) for value in row] for row in rows])
        for name, rows in oracle.items()
    }


def test_new_rows_are_centred_as_in_the_oracle(case):
    """With all components, inner products are preserved: T_new T' is the centred Kt."""
    X = np.linalg.cholesky(case["K"])
    new = np.linalg.solve(X, case["Kt"].T).T
    subspace = exact(Linear(), X)
    T, T_new = subspace.project(X), subspace.project(new)
    assert_allclose(T @ T.T, case["Kc"], rtol=0, atol=1e-13)
    assert_allclose(T_new @ T.T, case["Kt_c"], rtol=0, atol=1e-13)


def test_the_origin_that_a_fit_set_is_removed():
    X, given = normal_rows(40, 2) + 9.0, Linear()
    assert about_origin(given) == exact(given, X, center=False).kernel == given
    centred = exact(given, X)
    assert about_mean(given, X) == centred.kernel != given
    assert about_origin(centred.kernel) == given
    read = from_file(centred).kernel
    assert read == centred.kernel and about_origin(read) == given
    assert_allclose(exact(given, X + 1e7).variances, centred.variances, rtol=1e-7)


def test_an_origin_beside_the_landmarks_keeps_their_span():
    assert about_landmarks(Linear(), np.array([[7.0], [9.0]])).origin == (7.0,)
    assert about_landmarks(Linear(), np.array([[7.0]])) == Linear()
    assert about_landmarks(RBF(1.0), np.array([[7.0], [9.0]])) == RBF(1.0)
