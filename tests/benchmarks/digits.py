"""Denoise handwritten digits with kernel PCA and with linear PCA, after Mika and others (1998).

USPS: pixels in [-1, 1], 300 clean training and 50 noisy test digits per class, drawn again for each
seed; Gaussian noise of standard deviation 0.5. The error is the summed squared difference of an
image, averaged over the images. The line "dictionary" is the denoiser's own choice, given only the
noise level.

    python tests/benchmarks/digits.py [--data FOLDER] [--seeds 0 1 2]

FOLDER holds zip.train.gz and zip.test.gz of the USPS digits. scikit-learn's digits are always
denoised: pixels in [-1, 1], half of them for learning, 50 of the others per class.
"""

import argparse
import gzip
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from threadpoolctl import threadpool_limits

from kpca_apps.denoise.dictionary.denoiser import DictionaryDenoiser
from kpca_apps.engine.exact import fit_exact
from kpca_apps.engine.kernels import RBF
from kpca_apps.engine.plan import FitOptions
from kpca_apps.engine.preimage.fixed_point import fixed_point

SIGMA = 0.5
BANDWIDTH = 256.0  # c in the kernel exp(-|x - y|^2 / c), for 16 x 16 pixels
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
        RBF(1.0 / bandwidth), train, rng=np.random.default_rng(0), options=FitOptions(max(counts))
    )
    results = []
    for q in counts:
        part = whole.leading(q)
        results.append(error(fixed_point(part, part.project(noisy), noisy).points, clean))
    return results


def chosen(train: np.ndarray, noisy: np.ndarray, clean: np.ndarray) -> tuple[float, str]:
    side = int(np.sqrt(train.shape[1]))
    level = float(np.sqrt(np.mean((noisy - clean) ** 2)))
    model = DictionaryDenoiser(sigma=level, max_examples=len(train))
    model.fit(train.reshape(-1, side, side))
    found = model.denoise_stack(noisy.reshape(-1, side, side), level)
    choice, _ = model.at_level(level)
    words = f"c = {choice.bandwidth:.0f}, q = {choice.components}"
    return error(found.reshape(clean.shape), clean), words


def compare(
    name: str,
    train: Labelled,
    test: Labelled,
    each: tuple[int, int],
    counts: tuple[list[int], list[int]],
    bandwidth: float,
    seeds: list[int],
) -> None:
    lines, own, choice_words, noise = [], [], "", []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        examples, clean = drawn(train, each[0], rng), drawn(test, each[1], rng)
        noisy = with_gaussian(clean, rng)
        noise.append(error(noisy, clean))
        lines.append(
            (linear(examples, noisy, clean, counts[0]),
             kernel(examples, noisy, clean, counts[1], bandwidth))
        )  # fmt: skip
        found, choice_words = chosen(examples, noisy, clean)
        own.append(found)
    linears, kernels = (np.mean([line[i] for line in lines], axis=0) for i in (0, 1))
    print(f"{name}: noisy {np.mean(noise):.1f}, mean over draws {seeds}")
    for title, qs, errors in (
        ("linear PCA", counts[0], linears),
        (f"kernel PCA, c = {bandwidth:g}", counts[1], kernels),
    ):
        print(f"  {title}: " + "  ".join(f"q={q} {e:.2f}" for q, e in zip(qs, errors, strict=True)))
    print(f"  dictionary (last: {choice_words}): {np.mean(own):.2f}")
    print(f"  best kernel / best linear: {min(kernels) / min(linears):.3f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder of the USPS digits")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    options = parser.parse_args()
    with threadpool_limits(1):
        if options.data:
            train, test = (read_usps(options.data / f"zip.{k}.gz") for k in ("train", "test"))
            counts = [16, 32, 64, 128, 256], [64, 256, 512, 1024, 2048]
            compare("USPS", train, test, (300, 50), counts, BANDWIDTH, options.seeds)
        train, test = scikit_learns()
        each = min(int(np.bincount(labels).min()) for labels, _ in (train, test))
        counts = [4, 8, 12, 16, 20, 24, 32], [16, 64, 128, 256, 512]
        name, bandwidth = "scikit-learn's digits", BANDWIDTH / 16.0
        compare(name, train, test, (each, 50), counts, bandwidth, options.seeds)


if __name__ == "__main__":
    main()
