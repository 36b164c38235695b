from __future__ import annotations

import numpy as np
import pytest
from numpy.linalg import eigvalsh
from numpy.testing import assert_allclose

from kpca_apps.engine.kernels import RBF
from kpca_apps.papers.methods.mercer import mercer_check
from tests.engine.examples import KERNELS, normal_rows


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_agrees_with_what_each_kernel_says_of_itself(name):
    check = mercer_check(KERNELS[name](normal_rows(30)))
    assert check.is_psd == KERNELS[name].is_psd


def test_eigenvalues_are_those_of_mercers_series():
    """exp(-g (x - y)^2) under a standard normal measure, in closed form.

    Rasmussen and Williams (2006), Gaussian processes for machine learning, eq. 4.40.
    """
    g, a = 0.8, 0.25
    places, masses = np.polynomial.hermite_e.hermegauss(80)
    root = np.sqrt(masses / masses.sum())
    K = root[:, None] * RBF(g)(places[:, None]) * root
    size = a + g + np.sqrt(a * a + 2.0 * a * g)
    expected = np.sqrt(2.0 * a / size) * (g / size) ** np.arange(12)
    assert_allclose(mercer_check(K).eigenvalues[::-1][:12], expected, rtol=1e-8)


def test_an_indefinite_kernel_is_refuted_by_its_smallest_eigenvalue():
    K = KERNELS["sigmoid"](normal_rows(30))
    check = mercer_check(K)
    assert check.describe().startswith(f"indefinite: smallest eigenvalue {eigvalsh(K)[0]:.4g}")


def test_the_negative_share_is_that_of_the_moduli():
    check = mercer_check(np.diag([3.0, -1.0]))
    assert check.negative_share == pytest.approx(0.25)
