"""Denoise images whose noise is neither constant nor linear in the signal, and clean images.

The cases come from photographs of scikit-image with fixed seeds: bright spots, levels that vary by
place, noise clipped at either end, correlated noise, dim phone pictures, log speckle. Clean are
prints, screens, dithers and textures. Printed is the PSNR to the truth of `--noise auto` and of
baselines that know the noise level: `bm3d` (if installed; white noise, grey and colours), non-local
means, and a median of 3 x 3 pixels; for clean pictures the PSNR to the input, `inf` if unchanged.

    python tests/benchmarks/noise_cases.py [--quality fast] [--size 224] [--seed 1]
"""

import argparse
import io
import time
import warnings
from collections.abc import Iterator
from importlib.util import find_spec

import numpy as np
from photographs import row
from PIL import Image
from scipy.ndimage import gaussian_filter, median_filter
from skimage import data
from skimage.restoration import denoise_nl_means
from skimage.transform import resize

from kpca_apps.denoise.denoiser import denoise_with_info

COLUMNS = "case", "noisy", "auto", "bm3d", "means", "median", "noise", "CPU s"
BAYER = np.array([[0, 8, 2, 10], [12, 4, 14, 6], [3, 11, 1, 9], [15, 7, 13, 5]]) / 16 + 1 / 32
Case = tuple[str, np.ndarray, np.ndarray, float]  # name, input, truth, data range for PSNR


def picture(name: str, size: int) -> np.ndarray:
    """Return a square photograph in 0..255, in colour if it has colours."""
    whole = getattr(data, name)() / 255
    return np.asarray(255 * resize(whole, (size, size), anti_aliasing=True))


def eight_bits(image: np.ndarray) -> np.ndarray:
    return np.clip(np.round(image), 0, 255).astype(np.uint8)


def through_jpeg(image: np.ndarray, quality: int) -> np.ndarray:
    stream = io.BytesIO()
    Image.fromarray(image).save(stream, "JPEG", quality=quality)
    return np.array(Image.open(stream))


def noisy_cases(size: int, seed: int) -> Iterator[Case]:
    rng = np.random.default_rng(seed)
    rows, columns = np.mgrid[:size, :size] / size
    away = np.hypot(rows - 0.5, columns - 0.5) / 0.71
    for name, side in (("bead", size // 30), ("large bead", size // 11)):
        clean = 300 + 60 * picture("coins", size) / 64
        clean[20 : 20 + side, 30 : 30 + side] = 25000
        yield name, np.round(clean + rng.normal(0, 12, clean.shape)).astype(np.uint16), clean, 240.0
    levels = {
        "vignette": 5 + 20 * away**2,
        "bump": 4 + 15 * np.exp(-np.square(away / 0.4)),
        "two halves": np.where(rows < 0.5, 5, 17),
        "a corner": np.where((rows > 0.5) & (columns > 0.5), 20, 5),
    }
    for number, (name, level) in enumerate(levels.items()):
        clean = picture(("camera", "coins")[number % 2], size)
        yield name, eight_bits(clean + rng.normal(size=clean.shape) * level), clean, 255.0
    dark = 0.07 * picture("camera", size)
    for name, clean in (("cut off at black", dark), ("cut off at white", 255 - dark)):
        yield name, eight_bits(clean + rng.normal(0, 9, clean.shape)), clean, 255.0
    for width in (0.5, 0.8, 1.2):
        clean = picture("camera", size)
        noise = gaussian_filter(rng.normal(size=clean.shape), width)
        yield f"shared, {width}", eight_bits(clean + 15 * noise / noise.std()), clean, 255.0
    wall = np.array([95.0, 40.0, 45.0]) + 8 * rows[..., np.newaxis]
    for name, clean in (("wall", wall), ("dim cat", 0.4 * picture("chelsea", size))):
        noise = gaussian_filter(rng.normal(size=clean.shape), (0.8, 0.8, 0))
        noise *= 16 / noise.std()
        yield f"phone, {name}", through_jpeg(eight_bits(clean + noise), 90), clean, 255.0
    layers = 30 + 50 * picture("coins", size) / 255
    speckle = [np.log(rng.gamma(1.5, layers / 1.5, layers.shape) + 2) for _ in range(40)]
    many = [32 * gaussian_filter(page, 0.3) for page in speckle]
    yield "log speckle", eight_bits(many[0]), np.mean(many[1:], axis=0), 255.0


def clean_cases(size: int) -> Iterator[tuple[str, np.ndarray]]:
    rows, columns = np.mgrid[:size, :size].astype(float)
    grey, cat = picture("camera", size) / 255, picture("chelsea", size) / 255
    for name in ("camera", "coins", "chelsea", "astronaut", "rocket", "page"):
        yield name, eight_bits(picture(name, size))
    for name in ("brick", "grass", "gravel"):
        yield name, getattr(data, name)()[:size, :size]
    for frequency, blur in ((0.5, 0.8), (0.8, 0.6), (1.1, 0.6)):
        waves = np.sin(frequency * (rows + columns)) + np.sin(frequency * (rows - columns))
        dots = gaussian_filter((grey > waves / 4 + 0.5).astype(float), blur)
        yield f"screen of {frequency}", eight_bits(255 * dots)
    inks = []
    for channel, angle in enumerate((0.3, 1.3, 0.8)):
        across = np.cos(angle) * columns + np.sin(angle) * rows
        along = np.cos(angle) * rows - np.sin(angle) * columns
        dots = (np.sin(1.1 * across) + np.sin(1.1 * along)) / 4 + 0.5
        inks.append(gaussian_filter((cat[..., channel] > dots).astype(float), 0.7))
    yield "screens of inks", eight_bits(255 * np.dstack(inks))
    repeated = np.tile(BAYER, (size // 4 + 1,) * 2)[:size, :size]
    yield "ordered dither", eight_bits(255.0 * (grey > repeated))
    yield (
        "error diffusion",
        np.asarray(Image.fromarray(eight_bits(255 * grey)).convert("1").convert("L")),
    )
    yield "scan lines", eight_bits(255 * grey * (0.75 + 0.25 * np.cos(2.1 * rows)))
    yield "weave", eight_bits(150 * grey + 40 * (1 + np.sin(1.2 * rows) * np.sin(1.2 * columns)))


def psnr(image: np.ndarray, clean: np.ndarray, span: float) -> float:
    """Return PSNR in dB for a data range; infinite for equal images."""
    error = float(np.mean(np.square(image.astype(float) - clean)))
    return 10 * np.log10(span**2 / error) if error else np.inf


def peers(noisy: np.ndarray, clean: np.ndarray, span: float) -> Iterator[np.ndarray | None]:
    """Denoise an image with BM3D, non-local means and a median."""
    level, values = float(np.std(noisy - clean)), noisy / span
    if find_spec("bm3d"):
        from bm3d import bm3d, bm3d_rgb  # type: ignore[import-untyped]

        yield span * (bm3d_rgb if noisy.ndim == 3 else bm3d)(values, level / span)
    else:
        yield None
    axis = -1 if noisy.ndim == 3 else None
    relative = level / span
    yield span * denoise_nl_means(values, 5, 6, h=0.8 * relative, sigma=relative, channel_axis=axis)
    yield median_filter(noisy, (3, 3, 1)[: noisy.ndim]).astype(float)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quality", default="fast")
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--no-peers", action="store_true")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    print(row(*COLUMNS), "|---" * len(COLUMNS) + "|", sep="\n")
    gains = []
    for name, noisy, clean, span in noisy_cases(arguments.size, arguments.seed):
        axis, start = (-1 if noisy.ndim == 3 else None), time.process_time()
        found, info = denoise_with_info(noisy, quality=arguments.quality, channel_axis=axis)
        seconds = time.process_time() - start
        others = [] if arguments.no_peers else peers(noisy, clean, span)
        cells = ["" if peer is None else f"{psnr(peer, clean, span):.2f}" for peer in others]
        before, after = psnr(noisy, clean, span), psnr(found, clean, span)
        gains.append(after - before)
        cells = [f"{before:.2f}", f"{after:.2f}", *(cells or [""] * 3), info.noise]
        print(row(name, *cells, f"{seconds:.1f}"), flush=True)
    print(f"\nMean gain {np.mean(gains):.2f} dB, least {min(gains):.2f}.\n")
    print(row("clean picture", "dB to the input", "noise"), "|---|---|---|", sep="\n")
    for name, clean in clean_cases(arguments.size):
        axis = -1 if clean.ndim == 3 else None
        found, info = denoise_with_info(clean, quality=arguments.quality, channel_axis=axis)
        print(row(name, f"{psnr(found, clean, 255.0):.2f}", info.noise), flush=True)


if __name__ == "__main__":
    main()
