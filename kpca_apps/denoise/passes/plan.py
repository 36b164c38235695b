"""Plan of the passes at a noise level: sizes of patches and groups, grids, and kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from kpca_apps.denoise.options import Options
from kpca_apps.denoise.passes.groups import RADIUS

# Noise levels, and the inverse bandwidth of the RBF kernel at each level; 0 is the linear kernel.
# The unit of bandwidth is the squared distance of pure noise. Compared with the linear kernel, a
# picture of printed text gains 1.2 dB at level 12 and .3 dB at level 25, and photographs lose
# nothing. At level 50, a picture of black and white print would lose .3 dB. At level 5, the
# interpolated bandwidth is 29; with a bandwidth of 12, a picture of grass would lose .15 dB.
NARROWNESS = ((0.0, 12.0, 25.0, 50.0), (0.0, 1 / 12, 1 / 12, 0.0))

# Noise levels, of 255, at which the tables below were tuned; a row of three values begins at 15.
# Values are interpolated between these levels, and constant outside.
SIGMAS = (5.0, 15.0, 25.0, 50.0)
# At each level: side of a patch in pixels, number of patches in a group, and `tie` of `Pass`.
PASSES = {
    "first": ((6, 7, 8), (40, 48, 64), (1.1, 1.1, 1.1)),
    "second": ((5, 6, 7), (40, 48, 64), (8.0, 6.0, 4.0)),
    "soft": ((7, 8, 8), (60, 90, 120), (0.0, 0.0, 0.0)),
    "last": ((4, 5, 6), (28, 36, 48), (1.1, 1.1, 1.1)),
}
# The same table for a draft (fast denoising). Chosen on ten photographs of BSDS500/train.
DRAFT = {
    "first": ((7, 8, 8), (32, 48, 48), (1.1, 1.1, 1.1)),
    "soft": ((8, 8, 8), (48, 48, 48), (0.0, 0.0, 0.0)),
    "last": ((5, 6, 6, 6), (32, 32, 32, 40), (6.0, 4.0, 2.0, 1.1)),
}
# Weight b of the Tikhonov filter, which keeps fine texture that truncation loses at faint noise.
SMOOTH = (0.35, 0.2, 0.2)
# The passes of each preset, and the distance in pixels between the reference patches of a pass.
STRIDES = {
    "draft": (("first", 8), ("soft", 8), ("last", 7)),
    "fast": (("first", 6), ("soft", 7), ("last", 4)),
    "balanced": (("first", 5), ("second", 5), ("soft", 5), ("last", 3)),
    "high": (("first", 4), ("second", 4), ("soft", 4), ("last", 3), ("last", 3)),
}


@dataclass(frozen=True)
class Pass:
    """Settings of one pass: how it groups patches and denoises a group."""

    size: int  # side of a patch in pixels
    group: int  # number of patches in a group
    tie: float  # squared distance below which patches are ties, relative to that of pure noise
    stride: int  # distance in pixels between reference patches, each of which gets a group
    soft: bool = False  # whether to use the Tikhonov filter instead of truncation
    bandwidth: float = np.inf  # bandwidth of the RBF kernel
    excess: float = 1.0  # maximum assumed ratio of the actual noise variance to the given one
    back: float = 0.3  # before this pass, this share of what earlier passes removed is added back
    deep: int = 1  # number of pages that a patch spans
    band: int = 6  # number of rows of reference patches processed together
    n_jobs: int | None = None  # number of threads, as in joblib

    def shape(self, planes: tuple[int, ...]) -> tuple[int, int, int]:
        """Return pages, height and width of patches, limited by those of the planes."""
        count, height, width = planes[-3:]
        return min(self.deep, count), min(self.size, height), min(self.size, width)

    @property
    def reach(self) -> int:
        """Distance in pixels over which the result at a pixel depends on the input.

        The patches over a pixel belong to references within RADIUS, which in turn compare patches
        within RADIUS.
        """
        return 2 * RADIUS + self.size


@dataclass(frozen=True)
class Plan:
    """The denoising passes, run one after the other, for one noise level."""

    passes: tuple[Pass, ...]
    smooth: float  # b, the weight of the Tikhonov filter
    halves: bool = False  # whether low frequencies are also estimated at half the scale

    @property
    def reach(self) -> int:
        """Largest distance in pixels at which an input pixel affects the result of all passes."""
        return sum(one.reach for one in self.passes)


# The plan of a stack, at any level and quality. Chosen at noise of 10, 25 and 50 on films cut from
# photographs of BSDS500/train and on volumes of random blobs and cells. Patches span two pages.
# Patches of four would gain up to .8 dB without motion and .15 on volumes, and lose .3 to .5 with
# motion of some pixels a page. Patches of one page would lose 1 to 2 dB.
STACK = Plan(
    (
        Pass(6, 48, 1.1, 5, deep=2, band=16),
        Pass(7, 100, 0.0, 5, soft=True, deep=2, band=16),
        Pass(5, 40, 1.1, 3, deep=2, band=16),
    ),
    smooth=0.2,
)


def plan_for(sigma: float, options: Options, excess: float = 1.0, left: float = Pass.back) -> Plan:
    """Choose patch sizes, group sizes, grids and kernel for a noise level on the scale 0..255.

    `excess` is the largest ratio of actual to given noise variance. `left` is the deviation of the
    noise that the first pass leaves, as a share of the level: the second pass adds that share back.

    >>> plan_for(25.0, Options()).passes[0].size
    7
    """
    is_text, is_mika = options.content == "text", options.method == "mika"
    bandwidth = options.bandwidth or np.inf
    if options.bandwidth is None and options.method != "linear":
        narrowness = float(np.interp(12.0 if is_mika else sigma, *NARROWNESS))
        bandwidth = 1.0 / narrowness if narrowness else np.inf
    if options.pages > 1:
        stack = [replace(o, bandwidth=bandwidth, n_jobs=options.n_jobs) for o in STACK.passes]
        return replace(STACK, passes=tuple(stack))
    draft, passes = options.quality == "draft", []
    for name, stride in STRIDES[options.quality][: 1 if is_mika else None]:
        if name == "second" and options.shared:
            continue  # This pass would restore correlated or uneven noise, and lose up to .6 dB.
        sizes = (DRAFT if draft else PASSES)[name]
        size, group, tie = (_at(sigma, row) for row in sizes)
        pixels = round(size) - is_text
        counts = pixels, round(group), round(tie, 3), min(stride, pixels)
        back = left if name == "second" else Pass.back
        soft = name == "soft"
        passes.append(Pass(*counts, soft, bandwidth, excess, back, n_jobs=options.n_jobs))
    # Text gains nothing from estimates at half the scale.
    halves = not (is_text or draft or is_mika)
    smooth = 0.0 if is_mika else _at(sigma, SMOOTH)
    return Plan(tuple(passes), smooth, halves)


def _at(sigma: float, row: Sequence[float]) -> float:
    return float(np.interp(sigma, SIGMAS[-len(row) :], row))
