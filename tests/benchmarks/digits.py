"""Denoise handwritten digits with kernel PCA and with linear PCA, after Mika and others (1998).

USPS: pixels in [-1, 1], 300 clean training and 50 noisy test digits a class, drawn anew for each
seed; the error is the summed squared difference of an image, averaged over the images. Two
noises: Gaussian of standard deviation 0.5, and 40 % of the pixels set to -1 or 1. The line
"dictionary" is what the denoiser comes to by itself, told the kind of noise and its level alone.
Against impulses it trusts wild pixels less; "linear PCA, reweighted" does the same to the best
linear PCA.

    python tests/benchmarks/digits.py [--data FOLDER] [--seeds 0 1 2] [--noise gaussian impulse]

FOLDER holds zip.train.gz and zip.test.gz of the USPS digits. The digits that come with
scikit-learn are denoised in any case: pixels in [-1, 1], half of them to learn from, 50 of the
others a class.
"""

from __future__ import annotations

import argparse
import gzip
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from threadpoolctl import threadpool_limits

from kpca_apps.denoise.dictionary.denoiser import DictionaryDenoiser, without_outliers
from kpca_apps.engine.exact import fit_exact
from kpca_apps.engine.kernels import RBF
from kpca_apps.engine.preimage.fixed_point import fixed_point

SIGMA, SHARE = 0.5, 0.4
Labelled = tuple[np.ndarray, np.ndarray]


def read_usps(path: Path) -> Labelled:
    with gzip.open(path, "rt", encoding="ascii") as file:
        table = np.loadtxt(file)
    return table[:, 0].astype(int), table[:, 1:]


def scikit_learns() -> tuple[Labelled, Labelled]:
    digits = load_digits()
    rows = digits.data / 8.0 - 1.0
    return (digits.target[::2], rows[::2]), (digits.target[1::2], rows[1::2])


def drawn(labelled: Labelled, each: int, rng: np.random.Generator) -> np.ndarray:
    labels, rows = labelled
    chosen = [rng.choice(np.flatnonzero(labels == k), each, replace=False) for k in range(10)]
    return rows[np.concatenate(chosen)]


def with_gaussian(rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return rows + rng.normal(0.0, SIGMA, rows.shape)


def with_impulses(rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    hit = rng.random(rows.shape) < SHARE
    return np.where(hit, rng.choice([-1.0, 1.0], rows.shape), rows)


KNOWN = {
    "gaussian": ("Gaussian 0.5", with_gaussian),
    "impulse": ("40 % impulses", with_impulses),
}


def error(found: np.ndarray, clean: np.ndarray) -> float:
    return float(((found - clean) ** 2).sum(axis=1).mean())


def linear(train: np.ndarray, noisy: np.ndarray, clean: np.ndarray, counts: list[int]) -> list:
    pca = PCA(svd_solver="full").fit(train)
    T = pca.transform(noisy)
    return [
        error(T[:, :q] @ pca.components_[:q] + pca.mean_, clean) for q in counts
    ]  # fmt: skip


def kernel(
    train: np.ndarray, noisy: np.ndarray, clean: np.ndarray, counts: list[int], bandwidth: float
) -> list:
    whole = fit_exact(
        RBF(1.0 / bandwidth), train, rng=np.random.default_rng(0), n_components=max(counts)
    )
    results = []
    for q in counts:
        part = whole.leading(q)
        results.append(error(fixed_point(part, part.project(noisy), noisy).points, clean))
    return results


def reweighted(train: np.ndarray, noisy: np.ndarray, clean: np.ndarray, q: int) -> float:
    pca = PCA(q, svd_solver="full").fit(train)

    def project(rows: np.ndarray) -> np.ndarray:
        return pca.inverse_transform(pca.transform(rows))

    spread = float(np.sqrt(np.mean((project(clean) - clean) ** 2)))
    return error(without_outliers(project, noisy, project(noisy), spread), clean)


def chosen(
    train: np.ndarray, noisy: np.ndarray, clean: np.ndarray, noise: str
) -> tuple[float, str]:
    side = int(np.sqrt(train.shape[1]))
    level = float(np.sqrt(np.mean((noisy - clean) ** 2)))
    # Against impulses it is ready for several levels, as when a user gives none.
    known = level if noise == "gaussian" else None
    model = DictionaryDenoiser(sigma=known, max_examples=len(train))
    model.fit(train.reshape(-1, side, side))
    found = model.denoise_stack(noisy.reshape(-1, side, side), level, noise=noise)
    choice, _ = model.at_level(level if noise == "gaussian" else level / 2.0)
    choice_words = f"c = {choice.bandwidth:.0f}, q = {choice.components}"
    return error(found.reshape(clean.shape), clean), choice_words


def compare(
    name: str,
    train: Labelled,
    test: Labelled,
    each: tuple[int, int],
    counts: tuple[list[int], list[int]],
    bandwidth: float,
    kind: str,
    seeds: list[int],
) -> None:
    title, corrupt = KNOWN[kind]
    lines, own, choice_words, noise, robust = [], [], "", [], []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        examples, clean = drawn(train, each[0], rng), drawn(test, each[1], rng)
        noisy = corrupt(clean, rng)
        noise.append(error(noisy, clean))
        lines.append(
            (linear(examples, noisy, clean, counts[0]),
             kernel(examples, noisy, clean, counts[1], bandwidth))
        )  # fmt: skip
        found, choice_words = chosen(examples, noisy, clean, kind)
        own.append(found)
        robust.append([reweighted(examples, noisy, clean, q) for q in counts[0]])
    linears, kernels = (np.mean([line[i] for line in lines], axis=0) for i in (0, 1))
    print(f"{name}, {title}: noisy {np.mean(noise):.1f}, mean over draws {seeds}")
    for title, qs, errors in (
        ("linear PCA", counts[0], linears),
        (f"kernel PCA, c = {bandwidth:g}", counts[1], kernels),
    ):
        print(f"  {title}: " + "  ".join(f"q={q} {e:.2f}" for q, e in zip(qs, errors, strict=True)))
    if kind == "impulse":
        print(f"  linear PCA, reweighted: {np.mean(robust, axis=0).min():.2f}")
    print(f"  dictionary (last: {choice_words}): {np.mean(own):.2f}")
    print(f"  best kernel / best linear: {min(kernels) / min(linears):.3f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder of the USPS digits")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--noise", nargs="+", choices=list(KNOWN), default=list(KNOWN))
    parser.add_argument("--bandwidth", type=float, default=256.0, help="c, for 16 x 16 pixels")
    options = parser.parse_args()
    with threadpool_limits(1):
        for kind in options.noise if options.data else ():
            train, test = (read_usps(options.data / f"zip.{k}.gz") for k in ("train", "test"))
            counts = [16, 32, 64, 128, 256], [64, 256, 512, 1024, 2048]
            bandwidth = options.bandwidth
            compare("USPS", train, test, (300, 50), counts, bandwidth, kind, options.seeds)
        for kind in options.noise:
            train, test = scikit_learns()
            each = min(int(np.bincount(labels).min()) for labels, _ in (train, test))
            counts = [4, 8, 12, 16, 20, 24, 32], [16, 64, 128, 256, 512]
            bandwidth, name = options.bandwidth / 16.0, "scikit-learn's digits"
            compare(name, train, test, (each, 50), counts, bandwidth, kind, options.seeds)


if __name__ == "__main__":
    main()
