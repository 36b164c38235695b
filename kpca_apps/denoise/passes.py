"""From one group to an image: kernel PCA on groups of similar patches, in three to five passes.

1. X, D1 = hard cut of Y.
2. Q, D2 = hard cut of X + t (Y - X), whose noise variance is s2 (t^2 + (1 - t^2) D1), t = .3:
   iterative regularisation brings detail the first pass lost above the edge (Osher et al. 2005).
   Left out when it is to be fast: Q = X.
3. B, D3 = soft cut of Y, learned on the pilot Q.
4. A = .6 B + .4 Q, and Q becomes the hard cut of A + t (Y - A), in small patches: what they are
   matched in is nearly clean by now.
5. The same again.

The result is b B + (1 - b) Q, b = .2, or up to .35 where noise is faint. Y is the noisy image, s2
the variance of its noise and D s2 the variance of what is left of it: t^2 + (1 - t^2) D is that of
t Y + (1 - t) X when X is a projection of Y. What a cut is: `kpca_apps.denoise.group`.

The same is done at half the scale, and so on, for the low frequencies of photographs: means of
2 x 2 pixels hold half the noise, and a patch of theirs shows four times the area. But the fine
estimate errs otherwise, so the two are averaged: E + (1/2) U G (C - H E), where E and C are the
estimates at the scale of the image and at half of it, H takes the means, G blurs and U enlarges
(Facciolo et al. 2017).

Bands of references are worked on in any order and summed in the order of the image, and a piece of
an image is worked on as if the rest were there: the same references, the same bands, the same
draws. So what a pixel gets does not depend on where the image was cut, nor on the number of
threads, to the last bit.

References
----------
Osher, Burger, Goldfarb, Xu & Yin 2005, Multiscale Model. Simul. 4(2).
Herbreteau & Kervrann 2022, SIAM J. Imaging Sci. 15(4) (the linear limit of pass 3).
Facciolo, Pierazzo & Morel 2017, SIAM J. Imaging Sci. 10(3) (conservative scale recomposition).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from scipy.ndimage import gaussian_filter

from kpca_apps.denoise._compiled import (
    RADIUS,
    denoise_band,
    origin_of,
    pad_guide,
    rbf_rows,
    survey_band,
)
from kpca_apps.denoise._small_matrices import padded_size
from kpca_apps.denoise.progress import tell
from kpca_apps.errors import ConfigError

__all__ = [
    "CONTENTS",
    "KEPT_NOWHERE",
    "KERNELS",
    "NOISES",
    "QUALITIES",
    "STRIP_SAMPLES",
    "Options",
    "PassSettings",
    "Plan",
    "Window",
    "average_low_frequencies",
    "denoise_planes",
    "enlarge",
    "halve",
    "is_kept",
    "noise_excess",
    "patch_grid",
    "patch_means",
    "plan_for",
    "reach",
    "run_pass",
    "warm_up",
]

Planes = NDArray[np.float32]
Rows = NDArray[np.int64]
Window = tuple[tuple[int, int], tuple[int, int]]
"""Rows from one up to another, and columns likewise."""

NOISES = ("gaussian", "poisson", "speckle", "impulse", "camera", "auto")
KERNELS = ("auto", "linear", "rbf")
CONTENTS = ("photo", "text")

NARROWNESS = ((25.0, 50.0), (0.25, 0.0))
"""Noise levels, and one over the bandwidth of the RBF kernel there, in mean squared distances of a
group's patches. Measured on text made for it, in dB over the linear kernel: at 12, 1.0; at 25, .5
at bandwidths of 3 to 4 and .3 at 8; at 50, -.1 at 4 and 0 at 8. On photographs, at 25: -.2 at 4,
and 0 from 64."""

# Any image is even long before; far above, noise levels would overflow.
LARGEST_FACTOR = 1000.0

SIGMAS = (15.0, 25.0, 50.0)
"""Noise levels the tables below were tuned at, on the scale 0..255; interpolated between them and
held outside."""

FIRST = {"size": (6, 7, 8), "group": (40, 48, 64), "tie": (1.1, 1.1, 1.1)}
SECOND = {"size": (5, 6, 7), "group": (40, 48, 64), "tie": (8.0, 6.0, 4.0)}
WIENER = {"size": (7, 8, 8), "group": (60, 90, 120), "tie": (0.0, 0.0, 0.0)}
LAST = {"size": (4, 5, 6), "group": (28, 36, 48), "tie": (1.1, 1.1, 1.1)}

SMOOTH = (0.35, 0.2, 0.2)
"""Faint noise leaves fine texture to the soft cut, which projection on few components loses."""

STRIDES: dict[str, tuple[int, int | None, int, tuple[int, ...]]] = {
    "fast": (6, None, 6, (4,)),
    "balanced": (5, 5, 5, (3,)),
    "high": (4, 4, 4, (3, 3)),
}
"""Pixels between references in each pass; None where it is left out."""

QUALITIES = tuple(STRIDES)

ADDED_BACK = np.float32(0.3)
"""t: the share of the residual that is added back."""

SMOOTH_IN_PILOT = np.float32(0.6)
"""Weight of B in A."""

STRIP_SAMPLES = 12_000_000
"""Pixels times channels worked on at once, margins not counted: some 800 MB."""

GRID_ROWS_A_BAND = 6

SURVEYED = 1600
"""Groups looked at, about, to see whether the noise level given is too low."""

QUIET = 0.05
"""Share of groups that hold little but noise, in all but the busiest images."""

QUIET_RATIO = 0.905
"""Residual variance of those groups over the noise variance when that is right; patches that
look alike share some of their noise, so less than 1. Measured: .84 to .89 on noise alone, .85 to
.90 on photographs at sigma 15 to 50, .97 to .99 with sigma given 10 % too low."""

STEEPNESS = 2.5
"""Matching hides most of an excess: this is what brings 10 % in sigma back to 20 % in variance."""

MOST_EXCESS = 1.25
"""Noise variance over the variance given that is allowed for: sigma 12 % too low."""

BLUR = 1.0
"""Deviation of G in pixels of the half scale: what is finer there has been aliased."""

HALF_SHARE = np.float32(0.5)

BLURRED = 6
"""Pixels on either side at half the scale that decide how the low frequencies of one change."""

AT_HALF = 0.25
"""Share of the work that is left for half the scale and below."""

SMALLEST = 16
"""Pixels a side of the smallest scale, at the least: two patches."""

KEPT_NOWHERE = (
    "The compiled code can be kept nowhere, so every run compiles it again: set NUMBA_CACHE_DIR to "
    "a folder that can be written to."
)


@dataclass(frozen=True)
class Options:
    """How to denoise, whatever the image. A value that is not on offer is a `ConfigError`.

    Attributes
    ----------
    noise : str
        One of `NOISES`.
    quality : {"fast", "balanced", "high"}
        Three, four or five passes.
    kernel : {"auto", "linear", "rbf"}
        "auto" is "rbf" for text and "linear" for photographs.
    bandwidth : float or None
        Of the RBF kernel: its c over the mean squared distance of a group's patches. None: by the
        noise level, 4 up to 25 of 255, wider above, infinite from 50.
    content : {"photo", "text"}
        Text and drawings want smaller patches, and nothing of the half scale.
    luma, chroma : float
        Factors from 0 to 1000 of the noise level taken out of luminance and colour; 0 leaves them
        alone.
    strength : float
        Share of the change that is made, 0 (none) to 1 (all).
    n_jobs : int or None
        Threads, in joblib's convention; the result does not depend on it.
    wanted : ((int, int), (int, int)) or None
        Rows from one up to another, and columns, of which the result is wanted, as of a preview:
        they are as in the whole, to the last bit; others may hold anything. None wants all.
    """

    noise: str = "auto"
    quality: str = "balanced"
    kernel: str = "auto"
    bandwidth: float | None = None
    content: str = "photo"
    luma: float = 1.0
    chroma: float = 1.0
    strength: float = 1.0
    n_jobs: int | None = None
    wanted: Window | None = None

    def __post_init__(self) -> None:
        offers = {"noise": NOISES, "quality": QUALITIES, "kernel": KERNELS, "content": CONTENTS}
        for name, offered in offers.items():
            value = getattr(self, name)
            if value not in offered:
                raise ConfigError(f"{name} is {value!r}; give one of {', '.join(offered)}")
        if self.bandwidth is not None:
            if self.is_linear:
                raise ConfigError("bandwidth is that of the RBF kernel; give kernel rbf with it")
            if not 0.0 < self.bandwidth < np.inf:
                raise ConfigError(f"bandwidth is {self.bandwidth}; give a finite number above 0")
        for name in ("luma", "chroma"):
            value = getattr(self, name)
            if not 0 <= value <= LARGEST_FACTOR:
                raise ConfigError(
                    f"{name} is {value:g}; give a factor from 0 to {LARGEST_FACTOR:g}, best near 1"
                )
        if not 0 <= self.strength <= 1:
            raise ConfigError(f"strength is {self.strength}; give a number from 0 to 1")
        workers: Any = self.n_jobs
        if workers is not None and (not isinstance(workers, Integral) or workers == 0):
            raise ConfigError(
                f"n_jobs is {workers!r}; give a whole number of workers, -1 for all processors"
            )

    @property
    def is_linear(self) -> bool:
        """Whether the kernel is of infinite width."""
        return self.kernel == "linear" or (self.kernel == "auto" and self.content == "photo")

    def bandwidth_at(self, sigma: float) -> float | None:
        """Return the bandwidth of the kernel at a noise level, None for an infinite one."""
        if self.is_linear:
            return None
        narrowness = float(np.interp(sigma, *NARROWNESS))
        return self.bandwidth or (1.0 / narrowness if narrowness else None)


@dataclass(frozen=True)
class PassSettings:
    """How one pass groups patches: pixels a side, patches a group, pixels between references.

    Candidates nearer than `tie` times the distance explained by noise are drawn at random; 0 takes
    the nearest.
    """

    size: int
    group: int
    tie: float
    stride: int


@dataclass(frozen=True)
class Plan:
    """The passes of one preset at one noise level, and the weight b of the soft cut."""

    first: PassSettings
    second: PassSettings | None
    wiener: PassSettings
    last: tuple[PassSettings, ...]
    smooth: float

    @property
    def passes(self) -> tuple[PassSettings, ...]:
        """The passes there are, in order."""
        second = () if self.second is None else (self.second,)
        return (self.first, *second, self.wiener, *self.last)


def plan_for(sigma: float, quality: str = "balanced", content: str = "photo") -> Plan:
    """Choose patch sizes, group sizes and grids for a noise level on the scale 0..255.

    >>> plan_for(25.0).first
    PassSettings(size=7, group=48, tie=1.1, stride=5)
    """

    def settings(table: dict[str, tuple[float, float, float]], stride: int) -> PassSettings:
        size, group, tie = (float(np.interp(sigma, SIGMAS, values)) for values in table.values())
        pixels = round(size) - (content == "text")
        return PassSettings(pixels, round(group), round(tie, 3), min(stride, pixels))

    first, second, wiener, last = STRIDES[quality]
    return Plan(
        settings(FIRST, first),
        None if second is None else settings(SECOND, second),
        settings(WIENER, wiener),
        tuple(settings(LAST, stride) for stride in last),
        float(np.interp(sigma, SIGMAS, SMOOTH)),
    )


def denoise_planes(
    noisy: NDArray[np.floating],
    sigmas: ArrayLike,
    options: Options,
    *,
    match: NDArray[np.floating] | None = None,
    strip_samples: int = STRIP_SAMPLES,
) -> Planes:
    """Remove white Gaussian noise from planes of one scene, matched in the first of them.

    The planes (c, h, w) are on the scale 0..255, not clipped, the one that shows the scene best
    (luminance) first; `sigmas` (c,) are the deviations of their noise, and planes with 0 are
    returned as they are. `match` (h, w) is a clean image of the same scene to find similar patches
    in instead. Larger images are cut into strips of rows of some `strip_samples` pixels times
    channels, at least two margins high; the margins are as wide as the passes reach.
    """
    given = np.ascontiguousarray(noisy, np.float32)
    levels = np.array(sigmas, np.float32)
    if not ((levels >= 0) & (levels < np.inf)).all():
        raise ConfigError(f"sigma {np.asarray(sigmas).tolist()} is not a finite number from 0 up")
    active = levels > 0
    if not active.any() or given.size == 0:
        return given.copy()
    if match is None and not active[0]:
        match = given[0]
    guide = None if match is None else np.ascontiguousarray(match, np.float32)
    planes, levels = given if active.all() else given[active], levels[active]
    plan = plan_for(float(levels[0]), options.quality, options.content)
    # Of the finest scale, for at others detail passes for noise.
    excess = noise_excess(planes[0], float(levels[0]), plan.first)
    wanted = options.wanted or ((0, given.shape[1]), (0, given.shape[2]))
    done = 0.0

    def advance(share: float) -> None:
        nonlocal done
        done += share
        tell(done)

    def at_scale(
        planes: Planes, levels: Planes, guide: Planes | None, wanted: Window, left: float
    ) -> Planes:
        """Denoise at this scale and at half of it, which takes what is left of the work."""
        plan = plan_for(float(levels[0]), options.quality, options.content)
        shape = planes.shape[1:]
        halves = options.content == "photo" and min(shape) >= 2 * SMALLEST
        length = left * (1 - AT_HALF) if halves else left
        scale = _Scale(
            planes=planes,
            variances=levels**2,
            guide=guide,
            plan=plan,
            bandwidth=options.bandwidth_at(float(levels[0])),
            excess=excess,
            n_jobs=options.n_jobs,
            advance=lambda share: advance(share * length),
        )
        if not halves:
            return scale.run(wanted, strip_samples)
        at_half = _halved(wanted, shape)
        fine = scale.run(_doubled(at_half, shape), strip_samples)
        half_guide = None if guide is None else halve(guide)
        half = np.float32(0.5) * levels
        coarse = at_scale(halve(planes), half, half_guide, at_half, left * AT_HALF)
        average_low_frequencies(fine, coarse)
        return fine

    cleaned = at_scale(planes, levels, guide, wanted, 1.0)
    if active.all():
        return cleaned
    result = given.copy()
    result[active] = cleaned
    return result


def _halved(wanted: Window, shape: tuple[int, ...]) -> Window:
    """Return what is to be right at half the scale, where low frequencies of a window change."""
    (top, bottom), (left, right) = wanted
    return (
        (max(0, top // 2 - BLURRED), min(shape[0] // 2, bottom // 2 + BLURRED)),
        (max(0, left // 2 - BLURRED), min(shape[1] // 2, right // 2 + BLURRED)),
    )


def _doubled(at_half: Window, shape: tuple[int, ...]) -> Window:
    """Return the pixels of a window at half the scale, and an odd last row or column."""
    (top, bottom), (left, right) = at_half
    return (
        (2 * top, shape[0] if bottom == shape[0] // 2 else 2 * bottom),
        (2 * left, shape[1] if right == shape[1] // 2 else 2 * right),
    )


@dataclass(frozen=True)
class _Scale:
    """The passes over an image at one scale; `advance` hears each share of them that is done."""

    planes: Planes
    variances: Planes
    guide: Planes | None
    plan: Plan
    bandwidth: float | None
    excess: float
    n_jobs: int | None
    advance: Callable[[float], None]

    def run(self, wanted: Window, strip_samples: int) -> Planes:
        """Work through the strips of a window, each with a margin that is cut off again."""
        channels, height, width = self.planes.shape
        margin = sum(reach(settings) for settings in self.plan.passes)
        (start, stop), (left, right) = wanted
        across = (max(0, left - margin), min(width, right + margin))
        # In very wide images too, no more is thrown away than kept.
        rows = max(2 * margin, strip_samples // (channels * (across[1] - across[0])))
        if rows >= height and wanted == ((0, height), (0, width)):
            return self._run_passes(((0, height), across), 1.0)
        result = self.planes.copy()
        for top in range(start, stop, rows):
            bottom = min(top + rows, stop)
            first = max(0, top - margin)
            piece = ((first, min(height, bottom + margin)), across)
            strip = self._run_passes(piece, (bottom - top) / (stop - start))
            inner = strip[:, top - first : bottom - first, left - across[0] : right - across[0]]
            result[:, top:bottom, left:right] = inner
        return result

    def _run_passes(self, piece: Window, share: float) -> Planes:
        """Run every pass of the plan on a piece, which is a share of the window."""
        plan, cut = self.plan, tuple(slice(*ends) for ends in piece)
        noisy = np.ascontiguousarray(self.planes[:, *cut])
        fixed = None if self.guide is None else np.ascontiguousarray(self.guide[cut])
        s2, length = self.variances[:, None, None], share / len(plan.passes)

        def one_pass(
            planes: Planes, estimate: Planes, variance: Planes, left: Planes | None,
            settings: PassSettings,
        ) -> tuple[Planes, Planes]:  # fmt: skip
            guide = estimate[0] if fixed is None else fixed
            pilot = estimate if left is None else None
            return run_pass(
                planes, guide, variance, settings, piece, self.planes.shape[1:], pilot=pilot,
                left=left, bandwidth=self.bandwidth, excess=self.excess,
                n_jobs=self.n_jobs, advance=lambda part: self.advance(part * length),
            )  # fmt: skip

        def hard(
            estimate: Planes, leverage: Planes, t: np.float32, settings: PassSettings
        ) -> tuple[Planes, Planes]:
            """Project an estimate with the share t of its residual added back."""
            left = self.variances[0] * leverage[0]
            variance = s2 * (t * t + (np.float32(1) - t * t) * leverage)
            again = estimate + t * (noisy - estimate)
            left = left if fixed is None else np.zeros_like(left)
            return one_pass(again, estimate, variance, left, settings)

        pilot, leverage = hard(noisy, np.ones_like(noisy), np.float32(1), plan.first)
        if plan.second is not None:
            pilot, leverage = hard(pilot, leverage, ADDED_BACK, plan.second)
        smooth, left = one_pass(noisy, pilot, s2, None, plan.wiener)
        for settings in plan.last:
            mixed = _mix(smooth, pilot, SMOOTH_IN_PILOT)
            leverage = _mix(left, leverage, SMOOTH_IN_PILOT)
            pilot, leverage = hard(mixed, leverage, ADDED_BACK, settings)
        return _mix(smooth, pilot, np.float32(plan.smooth))


def _mix(a: Planes, b: Planes, share: np.float32) -> Planes:
    """Return share a + (1 - share) b."""
    return share * a + (np.float32(1) - share) * b


def reach(settings: PassSettings) -> int:
    """Return how many pixels on either side decide what one pass makes of one.

    The patches over a pixel belong to references up to a radius away, and those compare with
    patches a radius further on.
    """
    return 2 * RADIUS + settings.size


def run_pass(
    planes: Planes,
    guide: Planes,
    variance: Planes,
    settings: PassSettings,
    piece: Window,
    whole: tuple[int, ...],
    *,
    pilot: Planes | None = None,
    left: Planes | None = None,
    bandwidth: float | None = None,
    excess: float = 1.0,
    n_jobs: int | None = None,
    advance: Callable[[float], None] = lambda share: None,
) -> tuple[Planes, Planes]:
    """Run one pass over a piece of an image; return the estimate and its leverage.

    `planes` (c, h, w) are denoised in groups matched in `guide` (h, w), and lie at `piece` of the
    `whole` image, of which height and width are given. `variance` (c, h, w) is that of their noise.
    With a `pilot` (c, h, w), a first estimate of the planes, the cut is soft, and `variance` one
    value a plane, (c, 1, 1). For the hard cut `left` (h, w) is the variance of the noise in the
    guide, and `excess` is from `noise_excess`. The leverage is the variance of the estimate over
    the noise's.
    """
    (first, _), (first_column, _) = piece
    shape = tall, wide = tuple(min(settings.size, side) for side in whole)
    window = np.outer(np.kaiser(tall, 2.0), np.kaiser(wide, 2.0)).astype(np.float32)
    tie = np.zeros((1, 1), np.float32)
    if left is not None:
        tie = patch_means(left, shape) * np.float32(settings.tie * 2 * window.size)
        variance = patch_means(variance, shape)
    height, width = planes.shape[1:]
    columns = patch_grid(whole[1], wide, settings.stride) - first_column
    columns = columns[(columns >= 0) & (columns + wide <= width)]
    bands = _bands(patch_grid(whole[0], tall, settings.stride), first, tall, height)
    padded, points = pad_guide(guide), planes if pilot is None else pilot
    sums = np.zeros((len(planes), 3, height, width), np.float32)
    parallel = Parallel(n_jobs=n_jobs, require="sharedmem", return_as="generator")
    parts = parallel(
        delayed(denoise_band)(
            padded, points, planes, variance, tie, window, settings.group, pilot is not None,
            bandwidth, np.float32(excess), rows, columns, origin_of(first, first_column), top, high,
        )
        for rows, top, high in bands
    )  # fmt: skip
    for (_, top, rows), part in zip(bands, parts, strict=True):
        sums[:, :, top : top + rows] += part
        advance(1 / len(bands))
    totals, weights, leverages = sums[:, 0], sums[:, 1], sums[:, 2]
    # Pixels no patch covers stay as they are.
    bare = weights == 0
    weights[bare] = np.float32(1)
    totals /= weights
    leverages /= weights
    totals[bare] = planes[bare]
    leverages[bare] = np.float32(1)
    return totals.copy(), leverages.copy()


def _bands(grid: Rows, first: int, tall: int, height: int) -> list[tuple[Rows, int, int]]:
    """Return the whole image's bands of references in a piece, and the rows each can reach."""
    found = []
    for start in range(0, len(grid), GRID_ROWS_A_BAND):
        band = grid[start : start + GRID_ROWS_A_BAND] - first
        band = band[(band >= 0) & (band + tall <= height)]
        if len(band):
            top = max(0, int(band[0]) - RADIUS)
            end = min(height, int(band[-1]) + tall + RADIUS)
            found.append((band, top, end - top))
    return found


def patch_grid(length: int, size: int, stride: int) -> Rows:
    """Return the corners of patches along one side, the last one always in.

    >>> patch_grid(10, 4, 4)
    array([0, 4, 6])
    """
    corners = np.arange(0, length - size + 1, stride)
    if corners[-1] != length - size:
        corners = np.append(corners, length - size)
    return corners


def patch_means(maps: Planes, shape: tuple[int, ...]) -> Planes:
    """Return the means of maps (..., h, w) over the patch at each position, by direct sums.

    >>> patch_means(np.array([[0, 2, 4]], np.float32), (1, 2))
    array([[1., 3.]], dtype=float32)
    """
    tall, wide = shape
    down, across = maps.shape[-2] - tall + 1, maps.shape[-1] - wide + 1
    columns = maps[..., :down, :].copy()
    for i in range(1, tall):
        columns += maps[..., i : i + down, :]
    means = columns[..., :across].copy()
    for j in range(1, wide):
        means += columns[..., j : j + across]
    means /= np.float32(tall * wide)
    return means


def noise_excess(plane: Planes, sigma: float, settings: PassSettings) -> float:
    """Return by how much the noise variance exceeds what it is said to be, at the least.

    From 1, where sigma is right or too high, to 1.25, as quiet groups of the first pass show it.
    """
    tall, wide = (min(settings.size, side) for side in plane.shape)
    step = max(settings.size, int(np.sqrt(plane.size / SURVEYED)))
    variance = np.float32(sigma**2)
    tie = np.float32(settings.tie * 2 * tall * wide) * variance
    ratios = survey_band(
        pad_guide(plane), plane, variance, tie, (tall, wide), settings.group,
        np.float32(MOST_EXCESS),
        patch_grid(plane.shape[0], tall, step), patch_grid(plane.shape[1], wide, step),
    )  # fmt: skip
    excess = 1.0 + STEEPNESS * (float(np.quantile(ratios, QUIET)) - QUIET_RATIO)
    return min(max(excess, 1.0), MOST_EXCESS)


def halve(planes: Planes) -> Planes:
    """Return means of 2 x 2 pixels; white noise stays white, with half the deviation.

    An odd last row or column is left out.

    >>> halve(np.array([[0, 2, 9], [4, 6, 9]], np.float32))
    array([[3.]], dtype=float32)
    """
    height, width = (side // 2 * 2 for side in planes.shape[-2:])
    rows = planes[..., 0:height:2, :width] + planes[..., 1:height:2, :width]
    means: Planes = np.float32(0.25) * (rows[..., 0::2] + rows[..., 1::2])
    return means


def enlarge(plane: Planes, shape: tuple[int, int]) -> Planes:
    """Interpolate a plane linearly to twice its size; what is outside is as the nearest inside.

    >>> enlarge(np.array([[0, 4]], np.float32), (1, 5))
    array([[0., 1., 3., 4., 4.]], dtype=float32)
    """
    near, quarter = np.float32(0.75), np.float32(0.25)
    for length in shape:
        # Twice as many rows, each at a quarter of the way from one old row to the next.
        padded = np.pad(plane, ((1, 2), (0, 0)), mode="edge")
        rows = np.empty((2 * len(plane) + 2, plane.shape[1]), np.float32)
        rows[0::2] = near * padded[1:-1] + quarter * padded[:-2]
        rows[1::2] = near * padded[1:-1] + quarter * padded[2:]
        plane = rows[:length].T
    return np.ascontiguousarray(plane)


def average_low_frequencies(fine: Planes, coarse: Planes) -> None:
    """Move the low frequencies of an estimate, in place, halfway to those at half the scale."""
    for plane, better in zip(fine, coarse, strict=True):
        change = gaussian_filter(better - halve(plane), BLUR)
        plane += HALF_SHARE * enlarge(change, plane.shape)


# Functions as numba has wrapped them, of which mypy sees the plain ones: a small one, the one that
# is compiled last, and one that is compiled for a kernel of finite width alone.
_FIRST: Any = padded_size
_LAST: Any = denoise_band
_FINITE: Any = rbf_rows


def is_kept() -> bool:
    """Whether compiled code is kept for later runs and for worker processes."""
    return bool(_LAST.stats.cache_path)


def warm_up(announce: Callable[[], None], *, is_linear: bool = True) -> None:
    """Load the inner loops, or announce that they are compiled, which takes a minute, and do so.

    Done before work starts, they are compiled once for a machine, and not in every worker.
    """
    if not (_is_compiled(_LAST) and (is_linear or _is_compiled(_FINITE))):
        announce()
    options = Options(quality="fast", kernel="linear" if is_linear else "rbf")
    denoise_planes(np.zeros((1, 24, 24), np.float32), [10.0], options)


def _is_compiled(function: Any) -> bool:
    """Whether a function is compiled, by this compiler.

    The index of a function may be there and be out of date, as after an upgrade of the compiler;
    a small function shows it, for it is compiled here if so.
    """
    if function.signatures:
        return True
    if not is_kept():
        return False
    # Numba's own reading of its index: empty where the source is another one. Dates of files do
    # not tell, for they change with every installation.
    fresh = bool(function._cache._cache_file._load_index())
    _FIRST(1)
    return fresh and not _FIRST.stats.cache_misses
