from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose
from sklearn.decomposition import PCA

from kpca_apps.engine.exact import fit_exact
from kpca_apps.engine.kernels import RBF, Linear
from kpca_apps.engine.preimage.ridge import learn_preimage
from kpca_apps.papers.methods.preimages import eigenvector_preimages
from tests.engine.examples import normal_rows


def test_of_the_linear_kernel_are_the_principal_axes():
    X = normal_rows(50) * [3.0, 2.0, 1.0, 0.5]
    X -= X.mean(axis=0)
    subspace = fit_exact(Linear(), X, rng=np.random.default_rng(0), n_components=3)
    found = eigenvector_preimages(subspace, learn_preimage(subspace, 1e-9))
    axes = PCA(3).fit(X).components_
    assert_allclose(np.abs(np.einsum("ij,ij->i", found, axes)), 1.0, rtol=1e-6)
    assert_allclose(np.linalg.norm(found, axis=1), 1.0, rtol=1e-6)


def test_opposite_places_of_two_clusters_lie_in_one_each():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(-3.0, 0.3, size=(40, 2)), rng.normal(3.0, 0.3, size=(40, 2))])
    subspace = fit_exact(RBF(0.1), X, rng=rng, n_components=1)
    learned = learn_preimage(subspace, 1e-6)
    ends = [eigenvector_preimages(subspace, learned, side)[0] for side in (-1.0, 1.0)]
    ends.sort(key=lambda point: point[0])
    assert_allclose(ends[0], [-3.0, -3.0], atol=0.3)
    assert_allclose(ends[1], [3.0, 3.0], atol=0.3)
