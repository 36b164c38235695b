"""What each pass of the local denoiser uses at a given noise level.

The table was tuned at sigma 15, 25 and 50 on the scale 0..255. Between its columns the values
are interpolated in sigma; outside they are held.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kpca_apps.errors import ConfigError

__all__ = ["QUALITIES", "PassSettings", "Plan", "plan_for"]

SIGMAS = (15.0, 25.0, 50.0)
"""Noise levels the table below was tuned at, on the scale 0..255."""


@dataclass(frozen=True)
class PassSettings:
    """How one pass groups patches.

    Attributes
    ----------
    size : int
        Pixels on a side of a patch.
    group : int
        Patches a group.
    tie : float
        Candidates nearer than this many times the distance explained by noise are drawn at
        random; 0 takes the nearest.
    stride : int
        Pixels between references.
    """

    size: int
    group: int
    tie: float
    stride: int


@dataclass(frozen=True)
class Plan:
    """The passes of one preset.

    Attributes
    ----------
    first, second, wiener, last : PassSettings or None
        Projection of the image; projection of the re-noised first estimate; Wiener pass;
        projection of the re-noised mixture. ``None`` for passes the preset leaves out.
    """

    first: PassSettings
    second: PassSettings | None
    wiener: PassSettings
    last: PassSettings | None

    @property
    def passes(self) -> tuple[PassSettings, ...]:
        """The passes there are, in order."""
        every = (self.first, self.second, self.wiener, self.last)
        return tuple(settings for settings in every if settings is not None)


FIRST = {"size": (6, 7, 8), "group": (40, 48, 64), "tie": (1.1, 1.1, 1.1)}
AGAIN = {"size": (5, 6, 7), "group": (40, 48, 64), "tie": (8.0, 6.0, 4.0)}
WIENER = {"size": (7, 8, 8), "group": (60, 90, 120), "tie": (0.0, 0.0, 0.0)}

STRIDES: dict[str, tuple[int | None, int | None, int, int | None]] = {
    "fast": (6, None, 6, None),
    "balanced": (5, 4, 4, None),
    "high": (4, 4, 4, 4),
}

QUALITIES = tuple(STRIDES)


def plan_for(sigma: float, quality: str = "balanced", content: str = "photo") -> Plan:
    """Choose patch sizes, group sizes and grids for a noise level.

    Parameters
    ----------
    sigma : float
        Standard deviation of the noise on the scale 0..255.
    quality : {"fast", "balanced", "high"}
        Two, three or four passes.
    content : {"photo", "text"}
        Text and drawings want smaller patches.

    Returns
    -------
    Plan
        The passes.

    Raises
    ------
    ConfigError
        For a quality or content that does not exist.

    Examples
    --------
    >>> plan_for(25.0).first
    PassSettings(size=7, group=48, tie=1.1, stride=5)
    >>> plan_for(25.0, "fast").second is None
    True
    """
    if quality not in STRIDES:
        raise ConfigError(f"quality {quality!r} is not one of {', '.join(QUALITIES)}")
    if content not in ("photo", "text"):
        raise ConfigError(f"content {content!r} is not one of photo, text")
    smaller = 1 if content == "text" else 0
    made = [
        None if stride is None else _settings(table, sigma, stride, smaller)
        for table, stride in zip((FIRST, AGAIN, WIENER, AGAIN), STRIDES[quality], strict=True)
    ]
    first, second, wiener, last = made
    assert first is not None and wiener is not None
    return Plan(first, second, wiener, last)


def _settings(
    table: dict[str, tuple[float, float, float]], sigma: float, stride: int, smaller: int
) -> PassSettings:
    """Interpolate one pass between the columns of its table."""
    size = round(float(np.interp(sigma, SIGMAS, table["size"]))) - smaller
    group = round(float(np.interp(sigma, SIGMAS, table["group"])))
    return PassSettings(
        size, group, round(float(np.interp(sigma, SIGMAS, table["tie"])), 3), min(stride, size)
    )
