"""Local denoising: kernel PCA on groups of similar patches, in three to five passes.

1. X, D1 = projection of Y.
2. Q, D2 = projection of X + t (Y - X), whose noise variance is s2 (t^2 + (1 - t^2) D1), t = .3:
   adding a part of the noise back brings detail the first pass lost above the edge (Osher et al.
   2005). Left out when it is to be fast: Q = X.
3. B, D3 = Wiener kernel PCA of Y, learned on Q.
4. A = .6 B + .4 Q, and Q becomes the projection of A + t (Y - A), in small patches: what they are
   matched in is nearly clean by now.
5. The same again.

The result is b B + (1 - b) Q, b = .2, or up to .35 where noise is faint. Y is the noisy image, s2
the variance of its noise and D s2 the variance of what is left of it: t^2 + (1 - t^2) D is that of
t Y + (1 - t) X when X is a projection of Y.

The same is done at half the scale, and so on, for the low frequencies of photographs (scales.py).

References
----------
Osher, Burger, Goldfarb, Xu & Yin 2005, Multiscale Model. Simul. 4(2).
Herbreteau & Kervrann 2022, SIAM J. Imaging Sci. 15(4) (the linear limit of pass 3).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kpca_apps.denoise.bands import Strip, noise_excess, project, reach, wiener
from kpca_apps.denoise.parameters import PassSettings, Plan, plan_for
from kpca_apps.denoise.progress import tell
from kpca_apps.denoise.scales import average_low_frequencies, halve
from kpca_apps.errors import ConfigError

__all__ = ["KERNELS", "Window", "denoise_plane", "denoise_planes"]

Planes = NDArray[np.float32]
Window = tuple[tuple[int, int], tuple[int, int]]
"""Rows from one up to another, and columns likewise."""

KERNELS = ("linear", "rbf")
"""Kernels of the Wiener pass. The RBF reaches the linear one from below as it widens, and has
not been better on Gaussian noise: it is there to be compared."""

STRIP_SAMPLES = 12_000_000
"""Pixels times channels worked on at once, margins not counted: some 800 MB."""

AGAIN = np.float32(0.3)
"""t: the share of the noise that is added back."""

SMOOTH_IN_PILOT = np.float32(0.6)
"""Weight of B in A."""

BLURRED = 6
"""Pixels on either side at half the scale that decide how the low frequencies of one change."""

AT_HALF = 0.25
"""Share of the work that is left for half the scale and below."""

SMALLEST = 16
"""Pixels a side of the smallest scale, at the least: two patches."""


def denoise_plane(
    noisy: NDArray[np.floating],
    sigma: float,
    *,
    quality: str = "balanced",
    kernel: str = "linear",
    content: str = "photo",
    match: NDArray[np.floating] | None = None,
    n_jobs: int | None = None,
) -> Planes:
    """Remove white Gaussian noise from one grey plane.

    Parameters
    ----------
    noisy : (h, w) array
        The image on the scale 0..255, not clipped.
    sigma : float >= 0
        Standard deviation of the noise on the same scale; 0 returns the image.
    quality : {"fast", "balanced", "high"}
        Three, four or five passes.
    kernel : {"linear", "rbf"}
        Kernel of the Wiener pass.
    content : {"photo", "text"}
        Text and drawings want smaller patches.
    match : (h, w) array, optional
        A clean image of the same scene to find similar patches in.
    n_jobs : int, optional
        Threads, in joblib's convention. The result does not depend on it.

    Returns
    -------
    (h, w) float32 array
        The estimate; the input is not changed.

    Raises
    ------
    ConfigError
        For an unknown quality, kernel or content, or a negative sigma.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> clean = np.full((32, 32), 100.0)
    >>> noisy = clean + 20 * rng.standard_normal(clean.shape)
    >>> float(np.std(denoise_plane(noisy, 20.0, quality="fast"))) < 4
    True
    """
    noisy = np.asarray(noisy)
    planes = denoise_planes(
        noisy[None], [sigma],
        quality=quality, kernel=kernel, content=content, match=match, n_jobs=n_jobs,
    )  # fmt: skip
    plane: Planes = planes[0]
    return plane


def denoise_planes(
    noisy: NDArray[np.floating],
    sigmas: ArrayLike,
    *,
    quality: str = "balanced",
    kernel: str = "linear",
    content: str = "photo",
    match: NDArray[np.floating] | None = None,
    n_jobs: int | None = None,
    strip_samples: int = STRIP_SAMPLES,
    scales: bool = True,
    wanted: Window | None = None,
) -> Planes:
    """Remove white Gaussian noise from planes of one scene, matched in the first of them.

    Parameters
    ----------
    noisy : (c, h, w) array
        Planes on the scale 0..255; put the one that shows the scene best (luminance) first.
    sigmas : (c,) array >= 0
        Standard deviation of the noise of each plane; planes with 0 are returned as they are.
    quality, kernel, content, match, n_jobs
        As for `denoise_plane`.
    strip_samples : int
        Pixels times channels worked on at once, about; larger images are cut into strips of rows,
        at least two margins high; the margins are as wide as the passes reach. The result
        does not depend on it.
    scales : bool
        Whether photographs are denoised at half the scale too, and so on. Only for white noise:
        of other noise more than half is left there.
    wanted : ((int, int), (int, int)), optional
        Rows from one up to another, and columns, of which the result is wanted: they are as in the
        result of the whole, to the last bit. Others may hold anything.

    Returns
    -------
    (c, h, w) float32 array
        The estimates.

    Raises
    ------
    ConfigError
        As for `denoise_plane`.
    """
    given = np.ascontiguousarray(noisy, np.float32)
    levels = np.array(sigmas, np.float32)
    if not ((levels >= 0) & (levels < np.inf)).all():
        raise ConfigError(f"sigma {np.asarray(sigmas).tolist()} is not a finite number from 0 up")
    if kernel not in KERNELS:
        raise ConfigError(f"kernel {kernel!r} is not one of {', '.join(KERNELS)}")
    active = levels > 0
    plan = plan_for(float(levels[active][0]) if active.any() else 0.0, quality, content)
    if not active.any() or given.size == 0:
        return given.copy()
    if match is None and not active[0]:
        match = given[0]
    guide = None if match is None else np.ascontiguousarray(match, np.float32)
    planes, levels = given if active.all() else given[active], levels[active]
    excess = noise_excess(planes[0], float(levels[0]), plan.first)
    scales = scales and content == "photo"
    way = _Way(quality, content, kernel == "rbf", excess, n_jobs, strip_samples, scales)
    window = wanted or ((0, given.shape[1]), (0, given.shape[2]))
    cleaned = _denoise_scales(planes, levels, guide, way, window)
    if active.all():
        return cleaned
    result = given.copy()
    result[active] = cleaned
    return result


@dataclass(frozen=True)
class _Way:
    """What is the same at every scale.

    Attributes
    ----------
    quality, content : str
        What plans are made of.
    rbf : bool
        Kernel of the Wiener pass.
    excess : float
        From `noise_excess`: of the finest scale, for at others detail passes for noise.
    n_jobs : int or None
        Threads.
    strip_samples : int
        Pixels times channels worked on at once.
    scales : bool
        Whether half the scale is worked on too, and so on.
    """

    quality: str
    content: str
    rbf: bool
    excess: float
    n_jobs: int | None
    strip_samples: int
    scales: bool


def _denoise_scales(
    planes: Planes,
    sigmas: NDArray[np.float32],
    guide: Planes | None,
    way: _Way,
    wanted: Window,
    done: float = 0.0,
) -> Planes:
    """Denoise at this scale and, where asked to, at half of it, and so on.

    Wanted are the pixels whose result is to be right; done is the share of the work before this.
    """
    plan = plan_for(float(sigmas[0]), way.quality, way.content)
    halves = way.scales and min(planes.shape[1:]) >= 2 * SMALLEST
    end = 1 - (1 - done) * (AT_HALF if halves else 0)
    strips = _Strips(planes, sigmas, guide, plan, way, done, end)
    if not halves:
        return strips.run(wanted)
    at_half = _halved(wanted, planes.shape[1:])
    fine = strips.run(_doubled(at_half, planes.shape[1:]))
    half_guide = None if guide is None else halve(guide)
    half = np.float32(0.5) * sigmas
    coarse = _denoise_scales(halve(planes), half, half_guide, way, at_half, end)
    average_low_frequencies(fine, coarse)
    return fine


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


class _Strips:
    """The chain of passes on an image cut into strips.

    Parameters
    ----------
    planes : (c, h, w) float32 array
        The noisy planes.
    sigmas : (c,) float32 array
        Their noise.
    guide : (h, w) float32 array or None
        Image to match in; ``None`` for the first plane and its estimates.
    plan : Plan
        The passes.
    way : _Way
        The rest.
    done, end : float
        Shares of the work on the image that are done before and after this.
    """

    def __init__(
        self,
        planes: Planes,
        sigmas: NDArray[np.float32],
        guide: Planes | None,
        plan: Plan,
        way: _Way,
        done: float,
        end: float,
    ) -> None:
        self.planes, self.guide, self.plan, self.way = planes, guide, plan, way
        self.variances, self.done, self.length = sigmas**2, done, end - done

    def run(self, wanted: Window) -> Planes:
        """Work through the strips of a window, each with a margin that is cut off again."""
        channels, height, width = self.planes.shape
        margin = sum(reach(settings) for settings in self.plan.passes)
        (start, stop), (left, right) = wanted
        across = (max(0, left - margin), min(width, right + margin))
        # In very wide images too, no more is thrown away than kept.
        rows = max(2 * margin, self.way.strip_samples // (channels * (across[1] - across[0])))
        if rows >= height and wanted == ((0, height), (0, width)):
            return self._chain((0, height), across, 1.0)
        result = self.planes.copy()
        for top in range(start, stop, rows):
            bottom = min(top + rows, stop)
            first = max(0, top - margin)
            share = (bottom - top) / (stop - start)
            strip = self._chain((first, min(height, bottom + margin)), across, share)
            inner = strip[:, top - first : bottom - first, left - across[0] : right - across[0]]
            result[:, top:bottom, left:right] = inner
        return result

    def _chain(self, down: tuple[int, int], across: tuple[int, int], share: float) -> Planes:
        """Run every pass of the plan on a piece, which is a share of the window."""
        plan, rows, columns = self.plan, slice(*down), slice(*across)
        planes = np.ascontiguousarray(self.planes[:, rows, columns])
        length = share * self.length / len(plan.passes)
        strip = Strip(
            first=down[0],
            left=across[0],
            rows=planes.shape[1],
            columns=planes.shape[2],
            whole=self.planes.shape[1:],
            n_jobs=self.way.n_jobs,
            advance=lambda part: self._advance(part * length),
        )
        none_left = np.ones_like(planes)
        pilot, leverage = self._project(planes, planes, none_left, np.float32(1), plan.first, strip)
        if plan.second is not None:
            pilot, leverage = self._project(planes, pilot, leverage, AGAIN, plan.second, strip)
        guide, variances = self._guide(pilot, strip), self.variances
        smooth, left = wiener(planes, pilot, guide, variances, plan.wiener, self.way.rbf, strip)
        for settings in plan.last:
            mixed = _mix(smooth, pilot, SMOOTH_IN_PILOT)
            leverage = _mix(left, leverage, SMOOTH_IN_PILOT)
            pilot, leverage = self._project(planes, mixed, leverage, AGAIN, settings, strip)
        return _mix(smooth, pilot, np.float32(plan.smooth))

    def _project(
        self,
        noisy: Planes,
        estimate: Planes,
        leverage: Planes,
        t: np.float32,
        settings: PassSettings,
        strip: Strip,
    ) -> tuple[Planes, Planes]:
        """Project an estimate with the share t of its noise added back."""
        s2 = self.variances[:, None, None]
        left = self.variances[0] * leverage[0] if self.guide is None else np.zeros_like(leverage[0])
        variance = s2 * (t * t + (np.float32(1) - t * t) * leverage)
        again, guide = estimate + t * (noisy - estimate), self._guide(estimate, strip)
        return project(again, guide, variance, left, settings, self.way.excess, strip)

    def _guide(self, estimate: Planes, strip: Strip) -> Planes:
        """Image to match in: the one given, or the first plane of an estimate."""
        if self.guide is None:
            own: Planes = estimate[0]
            return own
        rows = slice(strip.first, strip.first + strip.rows)
        columns = slice(strip.left, strip.left + strip.columns)
        return np.ascontiguousarray(self.guide[rows, columns])

    def _advance(self, share: float) -> None:
        self.done += share
        tell(self.done)


def _mix(a: Planes, b: Planes, share: np.float32) -> Planes:
    """Return share a + (1 - share) b."""
    return share * a + (np.float32(1) - share) * b
