"""Statements of the papers put to the test, most on 60 rows of the plane and a Gaussian kernel.

A formula that holds once a misprint is corrected is one with a condition, which is the correction;
a sentence that does not hold is not reproduced, with what is right as the reason.
"""

from __future__ import annotations

from functools import partial
from math import comb

import numpy as np
from sklearn.cluster import KMeans

from kpca_apps.engine.kernels import RBF, Polynomial
from kpca_apps.engine.linalg.gram import centre_in_place
from kpca_apps.engine.subspace import KernelSubspace
from kpca_apps.papers.data import PaperData
from kpca_apps.papers.drawn import three_clusters
from kpca_apps.papers.measuring import components, plane_grid
from kpca_apps.papers.methods.explicit_maps import monomial_count, monomials, ordered_products
from kpca_apps.papers.methods.fewer_rows import mean_components
from kpca_apps.papers.result import Claim, Experiment, Outcome, stated
from kpca_apps.system.arrays import Matrix

N, Q = 60, 4

study = partial(stated, source="Aguilera and Antonanzas, 2019")
report = partial(stated, source="1996 report")
properties = partial(stated, source="1996 report, 4.2")
article = partial(stated, source="encyclopedia article")
english = partial(stated, source="course notes in English")
spanish = partial(stated, source="course notes in Spanish")

ASCENDING = (
    "A misprint that no measurement tells: eigenvectors are to be sorted in ascending order of "
    "eigenvalue (2019, IV; 1996, 4.2). Descending is meant: the properties that follow have the "
    "first components carry most variance."
)


def run(data: PaperData) -> Outcome:
    """Check the properties, then the sentences."""
    rng = np.random.default_rng(0)
    X, _ = three_clusters(rng, N)
    kernel = RBF(0.1)
    K = kernel(X)
    subspace = components(kernel, X)
    T = subspace.project(X)
    return Outcome(
        (
            *_properties(T, subspace, X, rng),
            *_lengths(K, subspace),
            *_centring(K, subspace, X),
            *_dimensions(subspace, X, rng),
            *_monomials(),
            _cluster_means(),
        ),
        notes=(ASCENDING,),
    )


def _properties(
    T: Matrix, subspace: KernelSubspace, X: Matrix, rng: np.random.Generator
) -> tuple[Claim, ...]:
    """Judge the properties of PCA in feature space (1996 report, 4.2) against 500 other bases."""
    C = T.T @ T / N
    drawn = [rng.normal(size=C.shape) for _ in range(500)]
    # Half of them anywhere, half of them close to the components.
    drawn[::2] = [np.eye(len(C)) + 0.02 * B for B in drawn[::2]]
    bases = [np.linalg.qr(B)[0] for B in drawn]
    carried = [np.trace(B[:, :Q].T @ C @ B[:, :Q]) for B in bases]
    entropies = [_entropy(np.einsum("ia,ij,ja->a", B, C, B)) for B in bases]
    volumes = [np.linalg.slogdet(B[:, :Q].T @ C @ B[:, :Q])[1] for B in bases]
    first, total = float(subspace.variances[:Q].sum()), float(subspace.variances.sum())
    left = float(subspace.leading(Q).reconstruction_error(X).mean())
    cross = float(np.abs(C - np.diag(np.diag(C))).max())
    volume = float(np.log(subspace.variances[:Q]).sum())
    return (
        properties(
            f"the first {Q} components carry more variance than any other {Q} directions",
            "more",
            f"{first:.4f}, at most {max(carried):.4f} in 500 other bases",
            first >= max(carried),
        ),
        properties(
            "the mean squared error of the first components is minimal",
            "minimal",
            f"{left:.6f}: what the others carry, {total - first:.6f}",
            abs(left - (total - first)) < 1e-10 and total - max(carried) >= left,
        ),
        properties(
            "components are uncorrelated", "uncorrelated", f"covariance {cross:.1e}", cross < 1e-10
        ),
        properties(
            "the representation entropy is minimal",
            "minimized",
            f"{_entropy(subspace.variances):.4f}, at least {min(entropies):.4f} elsewhere",
            _entropy(subspace.variances) <= min(entropies),
        ),
        properties(
            "the first components have maximal mutual information with the inputs",
            "maximal",
            f"log volume {volume:.3f}, at most {max(volumes):.3f} elsewhere",
            volume >= max(volumes),
            condition="the volume is maximal, which is information for Gaussian data only",
        ),
    )


def _lengths(K: Matrix, subspace: KernelSubspace) -> tuple[Claim, ...]:
    """Judge how eigenvectors are scaled, and whether eigenvalues rank them."""
    centred = K.copy()
    centre_in_place(centred)
    values, vectors = np.linalg.eigh(centred / N)
    printed = vectors[:, -1] / np.sqrt(values[-1])
    length = float(np.sqrt(printed @ centred @ printed))
    plain = float(vectors[:, -1] @ centred @ vectors[:, -1])
    # The eigenvalues of the centred K itself are n times those of K/n.
    right = vectors[:, -1] / np.sqrt(N * values[-1])
    unit = float(right @ centred @ right)
    explained = float(subspace.variances.sum() * N / np.trace(centred))
    return (
        study(
            "eigenvectors of K/n over the root of its eigenvalue have length 1 (eq. 17-19)",
            "1",
            f"{np.sqrt(unit):.3f} as corrected, {length:.3f} as printed; the root of n = {N} is "
            f"{np.sqrt(N):.3f}",
            abs(unit - 1.0) < 1e-6,
            condition="as corrected: n lambda |alpha|^2 = 1; as printed, projections are root n "
            "too long, as kernlab has them too",
        ),
        article(
            "coefficients of length 1 make unit vectors",
            "1 = a'a",
            f"squared length {unit:.3f} as corrected, {plain:.3f} as printed",
            abs(unit - 1.0) < 1e-6,
            condition="as corrected: 1 = a'Ka, which is the eigenvalue of K times a'a",
        ),
        article(
            "no ranking of components by variance exists",
            "none",
            f"eigenvalues over n are the variances, and sum to {explained:.6f} of the total",
            abs(explained - 1.0) > 1e-6,
            reason="they rank components exactly; only between kernels they do not compare",
        ),
    )


def _centring(K: Matrix, subspace: KernelSubspace, X: Matrix) -> tuple[Claim, ...]:
    """Judge what is centred, and how."""
    moved = RBF(0.1)(X - X.mean(axis=0))
    tops = [float(np.linalg.eigvalsh(G)[-1]) for G in (K, moved)]
    right = float(N * subspace.variances[0])
    centred = K.copy()
    centre_in_place(centred)
    smallest = float(np.abs(np.linalg.eigvalsh(centred)).min() / np.trace(centred))
    # As printed, the indices run over one set only where there are as many new rows as old ones.
    new = RBF(0.1)(X + 0.5, X)
    rows, columns, mean = new.mean(axis=1), K.mean(axis=0), K.mean()
    swapped = new - columns[:, None] - rows + mean
    proper = new - columns - rows[:, None] + mean
    first = subspace.leading(Q)
    direct = first.project(X + 0.5)
    gaps = [float(np.abs(G @ first.weights - direct).max()) for G in (proper, swapped)]
    return (
        english(
            "centring the inputs centres the images (2.2)",
            "step 1",
            f"largest eigenvalue {tops[1]:.3f} as without, {tops[0]:.3f}; about the mean in "
            f"feature space {right:.3f}",
            abs(tops[1] - right) < 1e-6,
            reason="a kernel of distances does not see it: centre in feature space",
        ),
        english(
            "K is always invertible",
            "always",
            f"smallest eigenvalue of the centred K is {smallest:.0e} of its trace",
            smallest > 1e-12,
            reason="centred, K 1 = 0; repeated rows and polynomial kernels make it singular too",
        ),
        study(
            "centring of test rows (eq. 20)",
            "as eq. (21)",
            f"projections off by {gaps[0]:.0e} as corrected, by {gaps[1]:.2g} as printed",
            gaps[0] < 1e-10,
            condition="as corrected, and as eq. (21) has it: the indices of the two middle terms "
            "are swapped in eq. (20), which so is defined only for as many new rows as were "
            f"fitted, for {N} here",
        ),
    )


def _dimensions(subspace: KernelSubspace, X: Matrix, rng: np.random.Generator) -> tuple[Claim, ...]:
    """Judge how many components there are, and what all of them hold."""
    narrow, scattered = RBF(20.0), rng.normal(scale=50.0, size=(N, 2))
    centred, plain = components(narrow, scattered), np.linalg.matrix_rank(narrow(scattered))
    left = float(subspace.reconstruction_error(X).max())
    rows = rng.normal(size=(N, 2))
    # Images and eigenvectors have length 1: an eigenvector's pre-image would have it as its image.
    _, _, places = plane_grid(X)
    nearest = float(np.abs(subspace.kernel(places, X) @ subspace.weights[:, 0]).max())
    ranks = [int(np.linalg.matrix_rank(Polynomial(3, 1.0, c)(rows))) for c in (0.0, 1.0)]
    return (
        report(
            "up to M nonzero eigenvalues (4.3)",
            f"{N}",
            f"{plain} for rows far apart without centring, {centred.n_components} centred",
            bool(plain == N) and centred.n_components == N - 1,
            condition="without centring; centred, up to M - 1",
        ),
        report(
            "complete reconstruction is no longer possible (4.6)",
            "impossible",
            f"the first eigenvector has no pre-image: images reach a cosine of {nearest:.2f} to it",
            nearest < 0.99,
            condition="of input patterns, as is meant; in feature space all components leave a "
            f"distance of {left:.0e}",
        ),
        spanish(
            "(x.y + c)^d is spanned by products of exactly d entries (3.4)",
            f"{comb(4, 3)} for d = 3 in the plane",
            f"{ranks[1]} for c = 1, {ranks[0]} for c = 0",
            ranks[1] == comb(4, 3),
            reason=f"for c > 0 all degrees up to d take part: {comb(5, 3)} monomials",
        ),
    )


def _monomials() -> tuple[Claim, ...]:
    """Judge the dimension and the coefficients of the map behind (x.y)^d (1996, 3 and B.1)."""
    count = monomial_count(256, 5)
    # The columns of degree 3 are x1^3, x1^2 x2, x1 x2^2 and x2^3.
    found = float(monomials(np.ones((1, 2)), 3)[0, 1])
    same = int(np.count_nonzero(ordered_products(np.array([[2.0, 3.0]]), 3) == 12.0))
    return (
        report(
            "5th degree monomials of 256 pixels (section 3)",
            "10^10",
            f"{count:,}",
            round(np.log10(count)) == 10,
        ),
        report(
            "coefficient of x1^2 x2 in degree 3, sqrt((d - n + 1)!) (B.1)",
            f"{np.sqrt(2.0):.3f}",
            f"{found:.3f}; {same} of the 8 ordered products are x1 x1 x2",
            abs(found - np.sqrt(same)) < 1e-12,
            condition="as corrected: sqrt(d! / prod n_i!), the root of the number of orders, here "
            "of 3",
        ),
    )


def _cluster_means() -> Claim:
    """Judge the advice to put the means of clusters into K, in place of the rows."""
    rng = np.random.default_rng(0)
    centres = 4.0 * rng.normal(size=(5, 2))
    which = rng.choice(5, size=1000, p=[0.6, 0.2, 0.1, 0.05, 0.05])
    X = centres[which] + rng.normal(size=(1000, 2))
    clusters = KMeans(60, n_init=1, random_state=0).fit(X)
    sizes = np.bincount(clusters.labels_)
    means, kernel = clusters.cluster_centers_, RBF(0.5)
    true = components(kernel, X, 5).variances
    plain, weighted = (
        float(np.abs(mean_components(kernel, means, w, n_components=5).variances / true - 1).max())
        for w in (np.ones(60), sizes)
    )
    return article(
        "the means of clusters stand for the rows (large datasets)",
        "one way to deal with it",
        f"the first five eigenvalues are off by {weighted:.0%} at most",
        weighted < 0.1,
        condition="each mean has the weight of its cluster, of which the article does not speak; "
        f"without weights they are off by {plain:.0%}",
    )


def _entropy(variances: Matrix) -> float:
    share = np.maximum(variances, 1e-300) / variances.sum()
    return float(-(share * np.log(share)).sum())


EXPERIMENT = Experiment(
    "statements",
    "All papers: properties and formulas",
    "Statements put to the test",
    (),
    run,
    f"No paper gives data for these. Most are tried on {N} made-up rows of the plane with a "
    "Gaussian kernel, so that only comparisons mean something, not the numbers themselves. Where "
    "a formula slips in print, it is tried as corrected.",
)
