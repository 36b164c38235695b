"""What is done at one noise level: sizes of patches and groups, grids and kernel of each pass."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from kpca_apps.denoise.options import Options
from kpca_apps.denoise.passes.groups import RADIUS

# Noise levels, and one over the bandwidth of the RBF kernel there, in squared distances that noise
# alone makes. Measured on print in fonts of TeX and STIX, drawings, photographs of scikit-learn and
# textures, in dB over the linear kernel: print 1.2 at 12 and .3 at 25; at 50 binary print loses .3.
# Photographs lose nothing, but at 5 with 12 in place of 29, where grass loses .15.
NARROWNESS = ((0.0, 12.0, 25.0, 50.0), (0.0, 1 / 12, 1 / 12, 0.0))

# Noise levels the tables below were tuned at, on the scale 0..255; interpolated between them and
# held outside.
SIGMAS = (15.0, 25.0, 50.0)
# Pixels a side of a patch, patches a group, and the `tie` of `Pass` at those levels.
PASSES = {
    "first": ((6, 7, 8), (40, 48, 64), (1.1, 1.1, 1.1)),
    "second": ((5, 6, 7), (40, 48, 64), (8.0, 6.0, 4.0)),
    "soft": ((7, 8, 8), (60, 90, 120), (0.0, 0.0, 0.0)),
    "last": ((4, 5, 6), (28, 36, 48), (1.1, 1.1, 1.1)),
}
# For a draft, whose groups are of fewer patches than a patch has pixels, which costs the less:
# chosen on ten photographs of BSDS500/train.
DRAFT = {
    "first": ((7, 8, 8), (32, 48, 48), (1.1, 1.1, 1.1)),
    "soft": ((8, 8, 8), (48, 48, 48), (0.0, 0.0, 0.0)),
    "last": ((6, 6, 7), (40, 40, 48), (3.0, 2.0, 1.1)),
}
# b: faint noise leaves fine texture to the Tikhonov filter, which projection on few components
# loses.
SMOOTH = (0.35, 0.2, 0.2)
# The passes of each preset, and the pixels between their references.
STRIDES = {
    "draft": (("first", 8), ("soft", 8), ("last", 7)),
    "fast": (("first", 6), ("soft", 7), ("last", 4)),
    "balanced": (("first", 5), ("second", 5), ("soft", 5), ("last", 3)),
    "high": (("first", 4), ("second", 4), ("soft", 4), ("last", 3), ("last", 3)),
}


@dataclass(frozen=True)
class Pass:
    """How one pass groups patches, and how it denoises a group."""

    size: int  # pixels a side of a patch
    group: int  # patches
    tie: float  # candidates nearer than so many times what noise explains are drawn at random
    stride: int  # pixels between references
    soft: bool = False  # Tikhonov filter, else truncation
    bandwidth: float = np.inf  # of the RBF kernel
    excess: float = 1.0  # noise variance over the one given that the edge may follow
    back: float = 0.3  # share of the residual that is added to the estimate before
    deep: int = 1  # pages that a patch spans
    band: int = 6  # rows of references worked on at once

    def shape(self, planes: tuple[int, ...]) -> tuple[int, int, int]:
        """Return pages, height and width of the patches of planes, which may be smaller."""
        count, height, width = planes[-3:]
        return min(self.deep, count), min(self.size, height), min(self.size, width)

    @property
    def reach(self) -> int:
        """How many pixels on either side decide what a pass makes of one.

        The patches over a pixel belong to references up to a radius away, and those compare with
        patches a radius further on.
        """
        return 2 * RADIUS + self.size


@dataclass(frozen=True)
class Plan:
    """What is done at one noise level."""

    passes: tuple[Pass, ...]
    smooth: float  # b, the weight of the Tikhonov filter
    halves: bool = False  # whether low frequencies are taken from half the scale, too

    @property
    def reach(self) -> int:
        """How many pixels on either side decide what all passes make of one."""
        return sum(one.reach for one in self.passes)


# Of pages denoised together, at any level and quality. Chosen at noise of 10, 25 and 50 on films
# cut from photographs of BSDS500/train and on volumes of random blobs and cells. Patches of four
# pages gain up to .8 dB where nothing moves, .15 on the volumes, and lose .3 to .5 in films that
# move by some pixels a page; those of one page lose 1 to 2 dB.
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

    The noise variance may exceed that of the level so many times. The second pass adds back as much
    noise as the first one left: a deviation of `left` times the level.

    >>> plan_for(25.0, Options()).passes[0].size
    7
    """
    is_text, is_mika = options.content == "text", options.method == "mika"
    bandwidth = options.bandwidth or np.inf
    if options.bandwidth is None and options.method != "linear":
        narrowness = float(np.interp(12.0 if is_mika else sigma, *NARROWNESS))
        bandwidth = 1.0 / narrowness if narrowness else np.inf
    if options.pages > 1:
        return replace(STACK, passes=tuple(replace(o, bandwidth=bandwidth) for o in STACK.passes))
    draft, passes = options.quality == "draft", []
    for name, stride in STRIDES[options.quality][: 1 if is_mika else None]:
        if name == "second" and options.shared:
            continue  # It would bring back what the first left: up to .6 dB are lost.
        sizes = (DRAFT if draft else PASSES)[name]
        size, group, tie = (float(np.interp(sigma, SIGMAS, row)) for row in sizes)
        # Text and drawings want smaller patches.
        pixels = round(size) - is_text
        counts = pixels, round(group), round(tie, 3), min(stride, pixels)
        back = left if name == "second" else Pass.back
        passes.append(Pass(*counts, name == "soft", bandwidth, excess, back))
    # Text has nothing of the half scale.
    halves = not (is_text or draft or is_mika)
    smooth = 0.0 if is_mika else float(np.interp(sigma, SIGMAS, SMOOTH))
    return Plan(tuple(passes), smooth, halves)
