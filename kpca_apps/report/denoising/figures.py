"""Figures of a batch of denoised images."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from kpca_apps.denoise.result import DenoisingResult, ImageOutcome, NoiseLaw
from kpca_apps.report.denoising.text import (
    CHANNELS,
    compared_images,
    law_name,
    law_text,
    method_name,
    typical_level,
)
from kpca_apps.report.drawing import (
    PALETTE,
    Drawing,
    drawable,
    house_style,
    new_axes,
    plain_ticks,
    to_files,
)
from kpca_apps.report.text import count, in_prose

MOST_NAMED = 40  # maximum number of images whose names fit beside their lines
LINE, FEWEST_INCHES, WITHOUT_NAMES = 0.2, 1.3, 6.0  # inches
MARKS = {
    "noisy": ("o", "muted"),
    "denoised": ("o", "blue"),
    "nl_means": ("^", "orange"),
    "wavelet": ("s", "purple"),
}
MOST_LAWS = 12  # maximum number of images whose noise laws are drawn
CHANNEL_MARKS = (("accent", "o"), ("green", "s"), ("blue", "D"))
HEADROOM = 2.0  # maximum of the variance axis, as a multiple of the noise law's largest variance


def denoising_figures(result: DenoisingResult) -> dict[str, bytes]:
    """Draw the figures of a batch as files."""
    return to_files(denoising_drawings(result).values())


def denoising_drawings(result: DenoisingResult) -> dict[str, Drawing]:
    """Draw all figures for which a batch has data, by name."""
    with house_style():
        drawings = [drawing for draw in FIGURES if (drawing := draw(result))]
        drawings += law_drawings(result)
    return {drawing.name: drawing for drawing in drawings}


def psnr(result: DenoisingResult) -> Drawing | None:
    """Draw the PSNR of each image before and after denoising, and of baselines."""
    compared = compared_images(result)
    if not compared:
        return None
    ordered = sorted(compared, key=lambda one: (one[1].denoised.psnr, one[0].name))
    baselines = [
        name for name in ordered[0][1].baselines if all(name in c.baselines for _, c in ordered)
    ]
    found = [{"noisy": c.noisy, **c.baselines, "denoised": c.denoised} for _, c in ordered]
    values = {
        name: [one[name].psnr if math.isfinite(one[name].psnr) else math.nan for one in found]
        for name in ("noisy", *baselines, "denoised")
    }
    figure, axes = _lines([image for image, _ in ordered])
    _mark(axes, values)
    axes.set_xlabel("PSNR in dB, higher is better")
    others = [method_name(name) for name in baselines]
    beside = f", {in_prose(others)} by the other marks" if others else ""
    caption = (
        f"{'One line an image' if len(ordered) > 1 else 'The image'}, from the noisy image "
        f"(hollow) to the denoised (filled){beside}. Further right is nearer to the clean image."
    )
    return Drawing("psnr", "PSNR of each image", caption, figure)


def noise(result: DenoisingResult) -> Drawing | None:
    """Draw the noise level of each image, and the standard deviation of the removed part."""
    if len(result.done) < 2:
        return None
    ordered = sorted(result.done, key=lambda image: (_taken(image), image.name))
    figure, axes = _lines(ordered)
    levels = [
        # Leave out relative levels, which would need another scale.
        math.nan
        if image.sigma is None or image.is_relative or not image.established
        else 100 * typical_level(image) / image.own_range
        for image in ordered
    ]
    values = {"noisy": levels, "denoised": [_taken(image) for image in ordered]}
    _mark(axes, values, {"noisy": "noise level", "denoised": "removed"})
    axes.set_xlabel("standard deviation in per cent of the range of the image's values")
    axes.set_xlim(left=0)
    caption = (
        "One line an image: the noise level (hollow) and the deviation of what was removed "
        "(filled). Filled far right of hollow: more than noise was removed."
    )
    return Drawing("noise", "Noise, and what was removed", caption, figure)


def _taken(image: ImageOutcome) -> float:
    return 100 * image.residual.sd / image.own_range if image.residual else 0.0


def law_drawings(result: DenoisingResult) -> list[Drawing]:
    """Draw noise variance over brightness, for images that certainly have noise.

    Of more than `MOST_LAWS` images, those with the weakest and the strongest noise are drawn.
    """
    numbered = enumerate(result.done, 1)
    sure = [(number, image) for number, image in numbered if image.evidence.is_sure]
    sure.sort(key=lambda one: (typical_level(one[1]) / one[1].own_range, one[0]))
    if len(sure) > MOST_LAWS:
        sure = sure[: MOST_LAWS // 2] + sure[-MOST_LAWS // 2 :]
    return [_law(law_name(number), image.evidence.laws) for number, image in sure]


def _law(name: str, laws: Sequence[NoiseLaw]) -> Drawing:
    figure, (axes,) = new_axes(4.9, 2.7)
    highest = [max(1.0, law.interval[1]) * law.deviations[2] ** 2 for law in laws]
    top = 1.08 * max(
        np.clip(max(law.variances), high, HEADROOM * high)
        for law, high in zip(laws, highest, strict=True)
    )
    marks = CHANNEL_MARKS if len(laws) > 1 else (("blue", "o"),)
    for law, (colour, marker), channel in zip(laws, marks, CHANNELS[len(laws)], strict=False):
        _plot_law(axes, law, PALETTE[colour], marker, top)
        # Label the line of a single law; of several laws, label the points.
        axes.lines[-1 if channel else 0].set_label(channel or f"variance = {law_text(law)}")
    axes.set(ylim=(0, top), xlabel="brightness, in the units of the image", ylabel="variance")
    plain_ticks(axes.xaxis, axes.yaxis)
    _legend(axes, len(laws))
    follows = "grows along" if any(law.rises for law in laws) else "is the same everywhere, along"
    lines = "the lines" if len(laws) > 1 else f"the line, {law_text(laws[0])}"
    above = any(value > top for law in laws for value in law.variances)
    arrows = " (triangles: still more)" if above else ""
    black = "; at black noise is cut off" if any(law.clipped for law in laws) else ""
    caption = (
        "Points are what varies in the quietest patches of each brightness; the noise in it "
        f"{follows} {lines} (band: nine of ten such pictures), and what lies above is texture of "
        f"the picture{arrows}{black}."
    )
    return Drawing(name, "Noise over brightness", caption, figure)


def _plot_law(axes: Axes, law: NoiseLaw, ink: str, marker: str, top: float) -> None:
    """Draw the line and points of a noise law; triangles mark points above the axes."""
    ends = np.array([law.brightness[0], law.brightness[-1]])
    line = np.array([law.variance(end) for end in ends.tolist()])
    low, high = law.interval
    axes.fill_between(ends, low * line, high * line, color=ink, alpha=0.2, lw=0)
    axes.plot(ends, line, color=ink, lw=1.2)
    places, seen = np.array(law.brightness), np.array(law.variances)
    above = seen > top
    kept: dict[str, Any] = {"ls": "none", "ms": 4.0, "mec": ink, "clip_on": False}
    axes.plot(places[above], np.full(above.sum(), top), marker="^", mfc="none", **kept)
    axes.plot(places[~above], seen[~above], marker=marker, mfc=ink, **kept)


def _lines(images: Sequence[ImageOutcome]) -> tuple[Figure, Axes]:
    named = len(images) <= MOST_NAMED
    height = max(0.8 + LINE * len(images), FEWEST_INCHES) if named else WITHOUT_NAMES
    figure, (axes,) = new_axes(5.6, height)
    places = np.arange(len(images))
    axes.set_ylim(-0.7, len(images) - 0.3)
    if named:
        axes.set_yticks(places, [drawable(image.name, 28) for image in images])
        axes.hlines(
            places, 0, 1, transform=axes.get_yaxis_transform(), color=PALETTE["rule"], lw=0.6
        )
    else:
        axes.set_yticks([])
        axes.set_ylabel(f"{count(len(images))} images")
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    plain_ticks(axes.xaxis)
    return figure, axes


def _mark(axes: Axes, values: dict[str, list[float]], labels: dict[str, str] | None = None) -> None:
    names = labels or {}
    n_lines = len(values["noisy"])
    size = 5.0 if n_lines <= MOST_NAMED else 2.6
    for name, numbers in values.items():
        marker, colour = MARKS.get(name, ("D", "green"))
        ink, ms = PALETTE[colour], size if marker == "o" else size - 0.6
        (line,) = axes.plot(numbers, np.arange(n_lines), marker, ms=ms, mec=ink, clip_on=False)
        line.set(mfc="none" if name == "noisy" else ink, label=names.get(name) or method_name(name))
    _legend(axes, len(values))


def _legend(axes: Axes, columns: int) -> None:
    axes.legend(
        loc="lower left",
        bbox_to_anchor=(0, 1),
        ncols=columns,
        frameon=False,
        borderaxespad=0.2,
        handletextpad=0.2,
        columnspacing=1.2,
        labelcolor=PALETTE["muted"],
    )


# Functions that draw figures of a whole batch.
FIGURES = (noise, psnr)
