"""Denoise raw mosaics with photon and read noise, before or after development.

A photograph is converted to light (gamma 2.2), sensed through red, green and blue filters of
different sensitivity, given noise, and developed: bilinear demosaicking, white balance, gamma. The
truth is developed from the mosaic without noise. After development, `denoise_kpca` removes noise
with `noise="auto"` and `"camera"`; the result closer to the truth counts. On the mosaic,
`denoise_mosaic` measures the noise or is given it, as bm3d is: bm3d runs on the half-resolution
planes, or on their principal components with blocks matched in the first (the better counts), after
the same generalised Anscombe transform. bm3d is free for non-commercial use only, and is skipped if
not installed. Seconds are for one photograph on all cores.

    python tests/benchmarks/raw_noise.py
    python tests/benchmarks/raw_noise.py --photographs FOLDER --number 10 --photons 100 400 1600
"""

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from camera_noise import AROUND, BESIDE, GAMMA
from photographs import heading, photographs, psnr, row
from PIL import Image
from scipy.ndimage import convolve

from kpca_apps import denoise_kpca, denoise_mosaic
from kpca_apps.denoise.mosaic import inverse_generalised_anscombe
from kpca_apps.denoise.noise.poisson import anscombe

SENSITIVITY = (0.5, 1.0, 0.65)  # sensitivity to red, green and blue
PLACES = ((0, 0), (0, 1), (1, 0), (1, 1))  # positions of red, the two greens and blue


def sample(folder: Path, number: int, size: int) -> Iterator[tuple[str, np.ndarray]]:
    """Yield a fixed sample of a folder's photographs, cropped to central squares."""
    files = sorted(p for p in folder.rglob("*") if p.suffix.lower() in (".jpg", ".png", ".tif"))
    chosen = np.random.default_rng(0).permutation(len(files))[:number]
    for file in (files[place] for place in sorted(chosen)):
        pixels = np.asarray(Image.open(file).convert("RGB"), np.float64)
        top, left = (max(0, (side - size) // 2) for side in pixels.shape[:2])
        yield file.stem, pixels[top : top + size, left : left + size]


def seen_by_sensor(scene: np.ndarray) -> np.ndarray:
    """Simulate the mosaic (h, w) of a scene (h, w, 3) in 0..255; white is 1."""
    colours = (scene / 255) ** GAMMA * SENSITIVITY
    mosaic = colours[..., 1].copy()
    mosaic[0::2, 0::2], mosaic[1::2, 1::2] = colours[0::2, 0::2, 0], colours[1::2, 1::2, 2]
    return mosaic


def developed(mosaic: np.ndarray) -> np.ndarray:
    """Develop a mosaic to a picture (h, w, 3) in 0..255."""
    here = np.zeros((3, *mosaic.shape))
    for colour, (y, x) in zip((0, 1, 1, 2), PLACES, strict=True):
        here[colour, y::2, x::2] = mosaic[y::2, x::2]
    channels = [
        convolve(plane, BESIDE if colour == 1 else AROUND, mode="mirror") / SENSITIVITY[colour]
        for colour, plane in enumerate(here)
    ]
    return 255 * np.clip(np.stack(channels, axis=-1), 0, 1) ** (1 / GAMMA)


def by_bm3d(mosaic: np.ndarray, a: float, b: float) -> list[np.ndarray]:
    """Return two results of bm3d: from the colour planes, and from their principal components."""
    import bm3d

    height, width = (side // 2 * 2 for side in mosaic.shape)
    planes = np.stack([mosaic[y:height:2, x:width:2] for y, x in PLACES], axis=-1)
    roots = anscombe(planes / a, b / a**2)
    found = []
    components = np.linalg.eigh(np.cov(roots.reshape(-1, 4).T))[1].T[::-1]
    for mixing in (np.eye(4), components):
        mixed = roots @ mixing.T
        if mixing is components:
            cleaned = bm3d.bm3d(mixed, [1.0] * 4)
        else:
            cleaned = np.stack([bm3d.bm3d(mixed[..., i], 1.0) for i in range(4)], axis=-1)
        result = mosaic.copy()
        for i, (y, x) in enumerate(PLACES):
            plane = inverse_generalised_anscombe((cleaned @ mixing)[..., i], b / a**2)
            result[y:height:2, x:width:2] = a * plane
        found.append(result)
    return found


def scores(scene: np.ndarray, photons: float, readout: float, quality: str) -> dict[str, float]:
    """Return PSNR and seconds of each method."""
    mosaic = seen_by_sensor(scene)
    truth = developed(mosaic)
    a, b = 1 / photons, (readout / photons) ** 2
    rng = np.random.default_rng(1)
    noisy = rng.poisson(mosaic / a) * a + np.sqrt(b) * rng.standard_normal(mosaic.shape)
    picture = developed(noisy)

    def after(noise: str) -> np.ndarray:
        return denoise_kpca(picture, data_range=255, channel_axis=-1, noise=noise, quality=quality)

    ways: dict[str, Callable[[], list[np.ndarray]]] = {
        "noisy": lambda: [picture],
        "developed, best": lambda: [after("auto"), after("camera")],
        "mosaic, measured": lambda: [developed(denoise_mosaic(noisy, quality=quality))],
        "mosaic, known": lambda: [developed(denoise_mosaic(noisy, noise=(a, b), quality=quality))],
    }
    if find_spec("bm3d"):
        ways["bm3d, known"] = lambda: [developed(mosaic) for mosaic in by_bm3d(noisy, a, b)]
    found = {}
    for name, way in ways.items():
        began = time.perf_counter()
        found[name] = max(psnr(image, truth) for image in way())
        found[f"{name}, s"] = time.perf_counter() - began
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--photographs", type=Path, help="a folder; else those of scikit-image")
    parser.add_argument("--number", type=int, default=10, help="of the photographs of a folder")
    parser.add_argument(
        "--photons", type=float, nargs="+", default=[100, 400, 1600], help="at white"
    )
    parser.add_argument("--readout", type=float, default=2, help="electrons")
    parser.add_argument("--size", type=int, default=256)
    parser.add_argument("--quality", default="balanced")
    arguments = parser.parse_args()
    if not find_spec("bm3d"):
        print("bm3d is skipped: pip install bm3d\n")
    folder, size = arguments.photographs, arguments.size
    # Ignore the denoisers' warnings about the noise they find; the PSNR shows the result.
    warnings.simplefilter("ignore")
    # Compile before timing.
    denoise_mosaic(np.eye(32), noise=(1, 1), quality=arguments.quality)
    rows: dict[tuple[str, float], dict[str, float]] = {}
    for name, scene in sample(folder, arguments.number, size) if folder else photographs(size):
        for photons in arguments.photons:
            found = scores(scene, photons, arguments.readout, arguments.quality)
            ways = [way for way in found if not way.endswith(", s")]
            if not rows:
                print(heading("photograph", "photons", *ways))
            rows[name, photons] = found
            print(row(name, f"{photons:g}", *(f"{found[w]:.2f}" for w in ways)))
    for photons in arguments.photons:
        means = [np.mean([r[w] for (_, p), r in rows.items() if p == photons]) for w in ways]
        print(row("mean", f"{photons:g}", *(f"{mean:.2f}" for mean in means)))
    seconds = [np.mean([figures[f"{way}, s"] for figures in rows.values()]) for way in ways]
    print(row("seconds", "", *(f"{mean:.1f}" for mean in seconds)))


if __name__ == "__main__":
    main()
