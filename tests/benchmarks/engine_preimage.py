"""Pre-images against the limit of their products, and against scikit-learn's inverse_transform.

    python tests/benchmarks/engine_preimage.py [--rows 4608] [--points 2000] [--columns 64]

A step of the fixed-point iteration costs a row the product that gives exponents, exp, and the
product with the points: the limit is the time of these three in the same run. The toy is that of
Mika et al. (1998): eleven Gaussian sources in ten dimensions, rows denoised by projection and
pre-image; errors are mean squared distances to the source, relative to those of the noisy rows.
"""

from __future__ import annotations

import argparse

from engine_common import cpu_seconds, curved_rows, machine_line, product_seconds, usual_gamma

COMPONENTS = 32
SOURCES, DIMENSIONS, TRAINED, TESTED = 11, 10, 100, 33


def speed(n: int, p: int, d: int) -> None:
    """Print what a step of a row takes, and all pre-images beside scikit-learn's."""
    import numpy as np
    from sklearn.decomposition import KernelPCA as Peer

    from kpca_apps.engine.exact import fit_exact
    from kpca_apps.engine.kernels import RBF
    from kpca_apps.engine.preimage.fixed_point import STEP, fixed_point

    X = curved_rows(p + n, d)
    train, new = X[:p], X[p:]
    gamma = usual_gamma(X)
    subspace = fit_exact(RBF(gamma), train, rng=np.random.default_rng(0), n_components=COMPONENTS)
    T = subspace.project(new)
    found = fixed_point(subspace, T, new)
    seconds = cpu_seconds(lambda: fixed_point(subspace, T, new), 3)
    # The last look at a row, which states its distance, costs as much as a step.
    steps = int(found.iterations.sum()) + n
    least = product_seconds(STEP, d, p, d + 1, "float64")
    print(f"{n} rows, {p} points, {d} columns, {COMPONENTS} components, float64")
    print(
        f"  fixed point: {1e6 * seconds / steps:.1f} us a row and step, {steps / n:.1f} steps a "
        f"row, share of the limit {least * steps / seconds:.2f}; {1e6 * seconds / n:.0f} us a row"
    )
    peer = Peer(COMPONENTS, kernel="rbf", gamma=gamma, fit_inverse_transform=True, alpha=0.1)
    peer.fit(train)
    projected = peer.transform(new)
    learned = cpu_seconds(lambda: peer.inverse_transform(projected), 3)
    print(f"  scikit-learn, learned: {1e6 * learned / n:.0f} us a row")


def toy() -> None:
    """Print the error that is left, by the width of the sources and the number of components."""
    import numpy as np
    from sklearn.decomposition import KernelPCA as Peer

    from kpca_apps.engine.kernel_pca import KernelPCA

    print("toy: squared error left, as a share of the noise")
    print(f"{'noise':>8} {'q':>4} {'fixed point':>12} {'scikit-learn, best of three alpha':>36}")
    for noise in (0.05, 0.1, 0.2):
        rng = np.random.default_rng(0)
        sources = rng.uniform(-1.0, 1.0, (SOURCES, DIMENSIONS))
        train, clean = (np.repeat(sources, rows, axis=0) for rows in (TRAINED, TESTED))
        train = train + noise * rng.normal(size=train.shape)
        noisy = clean + noise * rng.normal(size=clean.shape)
        gamma = 1.0 / (2.0 * DIMENSIONS * noise**2 * 4.0)
        usual = ((noisy - clean) ** 2).sum()
        for q in (SOURCES - 1, 4 * SOURCES):
            model = KernelPCA(q, gamma=gamma).fit(train)
            ours = model.preimages(model.transform(noisy), noisy).points
            errors = []
            for alpha in (1.0, 0.1, 0.01):
                peer = Peer(q, kernel="rbf", gamma=gamma, fit_inverse_transform=True, alpha=alpha)
                theirs = peer.fit(train).inverse_transform(peer.transform(noisy))
                errors.append(((theirs - clean) ** 2).sum() / usual)
            left = ((ours - clean) ** 2).sum() / usual
            print(f"{noise:8.2f} {q:4d} {left:12.4f} {min(errors):36.4f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=4608)
    parser.add_argument("--points", type=int, default=2000)
    parser.add_argument("--columns", type=int, default=64)
    options = parser.parse_args()
    print(machine_line())
    speed(options.rows, options.points, options.columns)
    toy()


if __name__ == "__main__":
    main()
