"""Measure the mean PSNR of denoising with and without each pass over an image.

The images are photographs and scanned text of scikit-image, pages drawn with matplotlib's fonts
(dark grey on paper grey, and black on white), and images of a folder if given; noise as in
`speed_quality.py`. Scans and pages are denoised with ``content="text"``.

    python tests/benchmarks/image_passes.py [--data FOLDER] [--sigma 15 25 50] [--preset balanced]
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import matplotlib
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray
from photographs import Image, grey_images, heading, in_grey, photographs, psnr, row, with_noise
from skimage import data
from threadpoolctl import threadpool_limits

from kpca_apps.denoise.options import Options
from kpca_apps.denoise.passes import planes
from kpca_apps.denoise.passes.plan import Plan, plan_for

SIDE = 160  # side of photographs and scans in pixels
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


def as_it_is(plan: Plan) -> Plan:
    return plan


def first_alone(plan: Plan) -> Plan:
    return replace(plan, passes=plan.passes[:1], smooth=0.0, halves=False)


def first_and_filter(plan: Plan) -> Plan:
    passes = plan.passes[0], next(step for step in plan.passes if step.soft)
    return replace(plan, passes=passes, smooth=1.0, halves=False)


def without_filter(plan: Plan) -> Plan:
    passes = tuple(step for step in plan.passes if not step.soft)
    return replace(plan, passes=passes, smooth=0.0, halves=False)


def one_scale(plan: Plan) -> Plan:
    return replace(plan, halves=False)


def nearest(plan: Plan) -> Plan:
    """Return the plan with groups of the nearest patches, none of which is drawn at random."""
    return replace(plan, passes=tuple(replace(step, tie=0.0) for step in plan.passes))


class Part(NamedTuple):
    """A method, and a change of its plan, such as fewer passes."""

    method: str
    change: Callable[[Plan], Plan]


PARTS = {
    "`mika`: truncation once, finite width": Part("mika", as_it_is),
    "truncation once, infinite width": Part("linear", first_alone),
    "and a Tikhonov filter": Part("linear", first_and_filter),
    "truncation in all passes, no filter": Part("linear", without_filter),
    "all passes, one scale": Part("linear", one_scale),
    "`linear`: all passes, and half the scale": Part("linear", as_it_is),
    "the same, nearest patches without draws": Part("linear", nearest),
    "`rbf`: as `linear`, finite width": Part("rbf", as_it_is),
}


def denoise(part: Part, noisy: Image, sigma: float, **options: str) -> NDArray[np.float32]:
    chosen = Options(method=part.method, n_jobs=1, **options)
    with patch.object(planes, "plan_for", lambda *given: part.change(plan_for(*given))):
        return planes.denoise_planes(noisy[np.newaxis], np.array([sigma]), chosen)[0]


def pictures(folder: Path | None) -> dict[str, tuple[str, list[tuple[str, Image]]]]:
    """Return, for each kind of picture, the value of the option `content` and the images."""
    own = [(name, in_grey(image)) for name, image in photographs(SIDE)]
    scans = [(load.__name__, load()[:SIDE, :SIDE].astype(float)) for load in (data.page, data.text)]
    return {
        "photographs": ("photo", own),
        "scans": ("text", scans),
        "pages": ("text", list(pages().items())),
    } | ({} if folder is None else {folder.name: ("photo", grey_images(folder, None))})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder of clean images")
    parser.add_argument("--sigma", type=float, nargs="+", default=[15.0, 25.0, 50.0])
    parser.add_argument("--preset", default="balanced")
    options = parser.parse_args()
    kinds = pictures(options.data)
    columns = [f"{kind} {sigma:g}" for kind in kinds for sigma in options.sigma]
    print(heading("", *columns, "CPU s / MP"))
    with threadpool_limits(1):
        for method in ("linear", "rbf"):  # compile before timing
            denoise(Part(method, as_it_is), np.zeros((32, 32)), 20.0, quality=options.preset)
        for name, part in PARTS.items():
            means, size, start = [], 0, time.process_time()
            for content, images in kinds.values():
                run = partial(denoise, part, content=content, quality=options.preset)
                for sigma in options.sigma:
                    found = [
                        psnr(run(with_noise(image, clean, sigma), sigma), clean)
                        for image, clean in images
                    ]
                    means.append(f"{np.mean(found):.2f}")
                    size += sum(clean.size for _, clean in images)
            seconds = (time.process_time() - start) / size * 1e6
            print(row(name, *means, f"{seconds:.1f}"), flush=True)


if __name__ == "__main__":
    main()
