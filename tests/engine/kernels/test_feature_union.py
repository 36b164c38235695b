"""Components of several kernels side by side: scikit-learn's FeatureUnion over our KernelPCA."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose
from sklearn.pipeline import FeatureUnion

from kpca_apps.engine.kernel_pca import KernelPCA
from kpca_apps.engine.kernels import RBF, Polynomial
from tests.engine.examples import normal_rows


def test_each_kernel_gives_as_many_components_as_it_is_asked_for():
    X, new = normal_rows(40), normal_rows(5, seed=1)
    parts = [("rbf", KernelPCA(3, kernel=RBF(0.3))), ("poly", KernelPCA(2, kernel=Polynomial(2)))]
    union = FeatureUnion(parts).fit(X)
    alone = [model.fit(X).transform(new) for _, model in parts]
    assert_allclose(union.transform(new), np.hstack(alone), rtol=1e-12)
    names = [*(f"rbf__kernelpca{i}" for i in range(3)), *(f"poly__kernelpca{i}" for i in range(2))]
    assert list(union.get_feature_names_out()) == names


def test_the_sum_of_kernels_is_the_direct_sum_of_their_spaces():
    """All components of both kernels hold what the sum's components hold: distances agree."""
    X = normal_rows(25)
    both = KernelPCA(kernel=RBF(0.3) + Polynomial(2)).fit_transform(X)
    union = np.hstack([KernelPCA(kernel=k).fit_transform(X) for k in (RBF(0.3), Polynomial(2))])
    assert_allclose(both @ both.T, union @ union.T, rtol=0, atol=1e-9)
