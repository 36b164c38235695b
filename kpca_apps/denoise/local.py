"""Local denoising: kernel PCA on groups of similar patches, in two to four passes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kpca_apps.denoise.bands import Strip, project, wiener
from kpca_apps.denoise.parameters import Plan, plan_for

__all__ = ["denoise_plane", "denoise_planes"]

Planes = NDArray[np.float32]


def denoise_plane(
    noisy: Planes,
    sigma: float,
    *,
    quality: str = "balanced",
    content: str = "photo",
    n_jobs: int | None = None,
) -> Planes:
    planes = denoise_planes(
        noisy[None], np.array([sigma]), quality=quality, content=content, n_jobs=n_jobs
    )
    return planes[0]


def denoise_planes(
    noisy: Planes,
    sigmas: NDArray[np.floating],
    *,
    quality: str = "balanced",
    content: str = "photo",
    n_jobs: int | None = None,
) -> Planes:
    plan = plan_for(float(sigmas[0]), quality, content)
    strip = Strip(0, noisy.shape[1], noisy.shape[1:], n_jobs)
    return _chain(np.ascontiguousarray(noisy, np.float32), np.asarray(sigmas, np.float32), plan, strip)


def _renoised(estimate: Planes, noisy: Planes, share: float) -> Planes:
    return estimate + np.float32(share) * (noisy - estimate)


def _chain(noisy: Planes, sigmas: Planes, plan: Plan, strip: Strip) -> Planes:
    s2 = (sigmas**2)[:, None, None]
    flat = np.broadcast_to(s2, noisy.shape).copy()
    estimate, leverage = project(noisy, noisy[0], flat, flat[0], plan.first, strip)
    if plan.second is not None:
        t2 = np.float32(0.09)
        estimate, leverage = project(
            _renoised(estimate, noisy, 0.3), estimate[0], s2 * (t2 + (1 - t2) * leverage),
            s2[0] * leverage[0], plan.second, strip)
    smooth, smooth_leverage = wiener(noisy, estimate, estimate[0], sigmas**2, plan.wiener, strip)
    if plan.last is None:
        return np.float32(0.7) * smooth + np.float32(0.3) * estimate
    mixed = np.float32(0.6) * smooth + np.float32(0.4) * estimate
    mixed_leverage = np.float32(0.6) * smooth_leverage + np.float32(0.4) * leverage
    t2 = np.float32(0.16)
    again, _ = project(
        _renoised(mixed, noisy, 0.4), mixed[0], s2 * (t2 + (1 - t2) * mixed_leverage),
        s2[0] * mixed_leverage[0], plan.last, strip)
    return np.float32(0.5) * (smooth + again)
