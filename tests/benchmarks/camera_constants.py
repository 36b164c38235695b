"""Fit the constants of `kpca_apps.denoise.noise.camera_constants` and report their errors.

The constants are fitted to pairs of a noisy photograph and the mean of many shots, of scenes that
`camera_pairs.py` does not measure, and to photographs in PHOTOGRAPHS/train of BSDS500 (Arbelaez,
Maire, Fowlkes, Malik 2011; repository BIDS/BSDS500): clean, enlarged or recompressed as JPEG, and
with simulated camera noise or added noise. Errors are measured on PHOTOGRAPHS/test.

    python tests/benchmarks/camera_constants.py PAIRS PHOTOGRAPHS --jobs 2
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from camera_noise import photograph, through_jpeg
from camera_pairs import measured_names, pair_names, read_pair
from joblib import Parallel, delayed
from PIL import Image
from scipy.ndimage import gaussian_filter
from scipy.special import expit
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import StandardScaler

from kpca_apps.denoise.colour import extreme_pixels
from kpca_apps.denoise.noise import camera

RIDGE = 3.0
# Real pairs are few, so they get larger weights than the other examples; so does strong noise.
WEIGHTS = {"camera": 3.0, "mean": 1.5}
STRONG, STRONG_WEIGHT = 12.0, 4.0
# A photograph counts as clean below the first noise level and as noisy above the second.
NO_NOISE, NOISE = 1.0, 2.0
# Kinds left out when telling noise from texture: white noise has its own detector, and enlarged
# scans have film grain correlated between pixels.
UNCERTAIN = ("white", "enlarged")
HELD_OUT = 60  # photographs held out to measure errors
GREY_SIDE = 256  # side in pixels of the grey crops that PROBABILITY[1] is fitted to
MOST_COSTLY = 8.0  # maximum factor by which strong texture raises a clean grey crop's weight


@dataclass(frozen=True)
class Example:
    """A photograph, and its clean version if the photograph is noisy."""

    kind: str
    planes: np.ndarray
    clean: np.ndarray | None


def pairs(folder: Path) -> Iterator[Example]:
    """Yield training examples from the scenes that `camera_pairs.py` does not measure."""
    names = pair_names(folder)
    scenes = {name.rsplit("_", 1)[0] for name in measured_names(names, 20)}
    for name in names:
        if name.rsplit("_", 1)[0] not in scenes:
            noisy, clean = (_planes(image) for image in read_pair(folder, name))
            yield Example("camera", noisy, clean)
            yield Example("mean", clean, None)


def simulated(paths: list[Path]) -> Iterator[Example]:
    """Yield photographs without noise and with simulated noise."""
    for number, path in enumerate(paths):
        rng = np.random.default_rng(number)
        image = Image.open(path).convert("RGB")
        scene = np.asarray(image).astype(float)
        doubled = image.resize((2 * image.width, 2 * image.height), Image.Resampling.BICUBIC)
        enlarged = np.asarray(doubled).astype(float)[:512, :512]
        if number % 2 == 0:
            yield Example("clean", _planes(scene), None)
            if number % 4:
                again = through_jpeg(scene, int(rng.integers(50, 96)), "4:2:0")
                yield Example("jpeg", _planes(again), None)
            else:
                large = through_jpeg(enlarged, int(rng.integers(80, 98)), "4:2:0")
                yield Example("enlarged", _planes(large), None)
            continue
        if rng.random() < 0.5:
            scene = enlarged
        if number % 3 == 0:
            noise, width = rng.standard_normal(scene.shape), rng.choice([0, 0.5, 0.8, 1.2])
            if width:
                noise = gaussian_filter(noise, (width, width, 0))
            noise *= np.exp(rng.uniform(np.log(2), np.log(40))) / noise.std()
            noisy = np.clip(np.round(scene + noise), 0, 255)
            yield Example("shared" if width else "white", _planes(noisy), _planes(scene))
            continue
        photons, softness = (
            np.exp(rng.uniform(np.log(30), np.log(4000))),
            rng.choice([0, 0, 0.5, 0.8]),
        )
        smoothing, quality = rng.choice([0, 0, 1.5, 3]), int(rng.choice([0, 75, 85, 92, 97]))
        subsampling = str(rng.choice(["4:2:0", "4:4:4"]))
        taken, truth = (
            _processed(photograph(scene, given), softness, smoothing) for given in (photons, None)
        )
        noisy = through_jpeg(taken, quality, subsampling)
        yield Example("simulated", _planes(noisy), _planes(truth))


def _processed(image: np.ndarray, softness: float, smoothing: float) -> np.ndarray:
    """Soften a photograph as cameras do and smooth its colours."""
    if smoothing:
        grey = image.mean(axis=2, keepdims=True)
        image = grey + gaussian_filter(image - grey, (smoothing, smoothing, 0))
    if softness:
        image = gaussian_filter(image, (softness, softness, 0))
    return np.clip(image, 0, 255)


def _planes(image: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(np.moveaxis(image, -1, 0), np.float32)


def quiet_and_truth(example: Example) -> tuple[np.ndarray, np.ndarray | None, float]:
    """Return log standard deviations of quiet patches and of noise, and the total noise level."""
    opponent = camera.to_opponent(example.planes)
    quiet, _ = camera.quiet_deviations(opponent, extreme_pixels(example.planes))
    if example.clean is None:
        return quiet, None, 0.0
    noise = opponent - camera.to_opponent(example.clean)
    truth = np.empty((3, 7))
    for plane, row in zip(noise, truth, strict=True):
        energy = np.square(camera.patches_of(plane, 2) @ camera.COSINES).mean(axis=0)
        powers = np.bincount(camera.ORDER.ravel(), energy) / np.bincount(camera.ORDER.ravel())
        row[...] = np.log(camera.FAINT_LOG + np.sqrt(powers[1:]))
    return quiet, truth, float(np.std(example.planes - example.clean))


def evidence_of(example: Example, levels: list[np.ndarray]) -> np.ndarray:
    """Return the features that separate noise from texture, using the newly fitted levels."""
    camera.GREY, camera.LUMINANCE, camera.COLOUR = levels
    return camera.evidence(example.planes, camera.measure_camera(example.planes))


def grey_crop(example: Example, seed: int) -> Example:
    """Return a grey crop from a random place, which need not be aligned with JPEG blocks."""
    rng = np.random.default_rng(seed)
    top, left = (int(rng.integers(0, side - GREY_SIDE + 1)) for side in example.planes.shape[1:])
    window = np.s_[:, top : top + GREY_SIDE, left : left + GREY_SIDE]
    planes, clean = (
        None if x is None else np.round(np.tensordot([[0.299, 0.587, 0.114]], x[window], 1))
        for x in (example.planes, example.clean)
    )
    return Example(example.kind, np.asarray(planes, np.float32), clean)


def fitted_odds(
    features: np.ndarray, noisy: np.ndarray, weight: np.ndarray, strength: float = 1.0
) -> np.ndarray:
    """Return intercept and weights of the log odds of noise, by logistic regression."""
    scaler = StandardScaler().fit(features)
    model = LogisticRegression(C=strength, max_iter=5000)
    model.fit(scaler.transform(features), noisy, sample_weight=weight)
    slopes = model.coef_[0] / scaler.scale_
    return np.r_[model.intercept_ - slopes @ scaler.mean_, slopes].round(3)


def main() -> None:
    """Print the constants and the fraction of photographs classified as noisy."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pairs", type=Path)
    parser.add_argument("photographs", type=Path)
    parser.add_argument("--jobs", type=int, default=1)
    arguments = parser.parse_args()
    training, others = (
        sorted((arguments.photographs / part).glob("*.jpg")) for part in ("train", "test")
    )
    examples = [*pairs(arguments.pairs), *simulated(training)]
    parallel = Parallel(arguments.jobs, batch_size=4, max_nbytes=None)
    rows = parallel(delayed(quiet_and_truth)(example) for example in examples)
    kinds = np.array([example.kind for example in examples])
    weight = np.array([WEIGHTS.get(kind, 1.0) for kind in kinds])
    level = np.array([row[2] for row in rows])
    strong = weight * np.where(level > STRONG, STRONG_WEIGHT, 1.0)
    noisy = np.array([row[1] is not None for row in rows])
    quiet = np.array([row[0] for row in rows])
    truth = np.array([row[1] for row in rows if row[1] is not None])
    levels = []
    luminance = np.array([camera.with_colours(row) for row in quiet[noisy]])
    for name, known, planes in (
        ("GREY", quiet[noisy, 0], [0]),
        ("LUMINANCE", luminance, [0]),
        ("COLOUR", np.concatenate([quiet[noisy, 1], quiet[noisy, 2]]), [1, 2]),
    ):
        model = Ridge(RIDGE).fit(
            known,
            np.concatenate([truth[:, plane] for plane in planes]),
            sample_weight=np.tile(strong[noisy], len(planes)),
        )
        levels.append(np.c_[model.intercept_, model.coef_].round(3))
        print(f"{name} =", levels[-1].tolist())
    evidence = np.array(parallel(delayed(evidence_of)(example, levels) for example in examples))
    used = ~np.isin(kinds, UNCERTAIN) & ((level < NO_NOISE) | (level > NOISE))
    probability = fitted_odds(evidence[used], level[used] > NOISE, weight[used])
    print("PROBABILITY[3] =", probability.tolist())
    in_grey = [grey_crop(example, seed) for seed, example in enumerate(examples)]
    grey = np.array(parallel(delayed(evidence_of)(example, levels) for example in in_grey))
    level = np.array([0.0 if e.clean is None else np.std(e.planes - e.clean) for e in in_grey])
    used = ~np.isin(kinds, UNCERTAIN) & ((level == 0) | (level > NOISE))
    # The cost of taking texture for noise grows with the energy that denoising would remove.
    costs = 2 * np.clip(np.exp(grey[:, 0]) / 2, 1, MOST_COSTLY)
    weight = np.where(level > 0, np.where(kinds == "camera", 2.0, 1.0), costs)
    fitted = fitted_odds(grey[used], level[used] > NOISE, weight[used], 0.3)
    print("PROBABILITY[1] =", fitted.tolist())
    held_out = list(simulated(others[:HELD_OUT]))
    unseen = np.array(parallel(delayed(evidence_of)(example, levels) for example in held_out))
    for title, table, names in (
        ("fitted to", evidence, kinds),
        ("others", unseen, np.array([example.kind for example in held_out])),
    ):
        odds = probability[0] + table @ probability[1:]
        for kind in np.unique(names):
            above = expit(odds[names == kind, None]) > np.array([0.3, 0.5, 0.7, 0.9])
            shares = " ".join(f"{share:5.2f}" for share in above.mean(axis=0))
            print(f"{title}: {kind:10} called noisy where p is above .3, .5, .7, .9: {shares}")


if __name__ == "__main__":
    main()
