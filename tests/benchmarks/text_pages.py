"""Denoise rendered text pages: the preset for text against bm3d.

Pages are drawn with matplotlib's fonts: dark grey on paper grey, and black on white. Noise as in
`set12.py`, seeded by the page's name.

    python tests/benchmarks/text_pages.py [--sigma 25 50] [--preset balanced] [--bm3d]
"""

import argparse

import matplotlib
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from photographs import Image, installed_bm3d, psnr, with_noise
from set12 import ours
from threadpoolctl import threadpool_limits

TEXT = (
    "Kernel principal components are found in a space that is never visited. What is needed of "
    "it are inner products, and those a kernel gives at the price of one number a pair. A page "
    "of print is mostly paper: flat, then a sudden edge, and the same few strokes again and "
    "again. (1996) y = Kx + b; 0.25, 3.14, [17]; Theta, lambda & rho? 42 % of all strokes!"
)


def draw_page(points: float, family: str, ink: str, paper: str, side: int = 256) -> Image:
    """Draw a page of running text, (side, side) grey values in 0..255."""
    figure = Figure(figsize=(side / 100, side / 100), dpi=100, facecolor=paper)
    canvas = FigureCanvasAgg(figure)
    line = max(12, int(1.55 * side / points))
    words = (TEXT + " ") * 8
    lines = [words[i : i + line] for i in range(0, len(words), line)]
    figure.text(
        0.03, 0.97, "\n".join(lines), size=points * 0.72, family=family, color=ink, va="top"
    )
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].mean(axis=2).astype(float)


def pages() -> dict[str, Image]:
    """Draw grey pages and their binary versions."""
    matplotlib.rcParams["text.antialiased"] = True
    grey = {
        f"grey {family} {points:g}": draw_page(points, family, "#303030", "#e8e4da")
        for family in ("DejaVu Sans", "DejaVu Serif")
        for points in (10.0, 16.0)
    }
    binary = {
        name.replace("grey", "binary"): np.where(page > 140, 255.0, 0.0)
        for name, page in grey.items()
    }
    return grey | binary


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sigma", type=float, nargs="+", default=[25.0, 50.0])
    parser.add_argument("--preset", default="balanced")
    parser.add_argument("--bm3d", action="store_true")
    options = parser.parse_args()
    denoisers = {"photo": ours(options.preset), "text": ours(options.preset, content="text")}
    denoisers |= installed_bm3d() if options.bm3d else {}
    for sigma in options.sigma:
        reached: dict[str, list[float]] = {name: [] for name in denoisers}
        for page, clean in pages().items():
            noisy = with_noise(page, clean, sigma)
            for name, denoiser in denoisers.items():
                with threadpool_limits(1):
                    reached[name].append(psnr(denoiser(noisy, sigma), clean))
            shown = "  ".join(f"{name} {values[-1]:.2f}" for name, values in reached.items())
            print(f"sigma {sigma:g}  {page:24} {shown}", flush=True)
        means = "  ".join(f"{name} {np.mean(values):.3f}" for name, values in reached.items())
        print(f"sigma {sigma:g}  mean {means}", flush=True)


if __name__ == "__main__":
    main()
