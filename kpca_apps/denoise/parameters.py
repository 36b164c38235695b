"""What each pass of the local denoiser uses at a given noise level.

The table was tuned at sigma 15, 25 and 50 on the scale 0..255. Between its columns the values
are interpolated in sigma; outside they are held.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kpca_apps.errors import ConfigError

__all__ = ["CONTENTS", "QUALITIES", "PassSettings", "Plan", "plan_for"]

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
    first : PassSettings
        Projection of the image.
    second : PassSettings or None
        Projection of the re-noised first estimate.
    wiener : PassSettings
        Wiener pass.
    last : tuple of PassSettings
        Projections of the re-noised mixture of the Wiener pass and the projection before.
    smooth : float
        Weight of the Wiener pass in the result; the rest is the last projection's.
    """

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


FIRST = {"size": (6, 7, 8), "group": (40, 48, 64), "tie": (1.1, 1.1, 1.1)}
SECOND = {"size": (5, 6, 7), "group": (40, 48, 64), "tie": (8.0, 6.0, 4.0)}
WIENER = {"size": (7, 8, 8), "group": (60, 90, 120), "tie": (0.0, 0.0, 0.0)}
LAST = {"size": (4, 5, 6), "group": (28, 36, 48), "tie": (1.1, 1.1, 1.1)}

SMOOTH = (0.35, 0.2, 0.2)
"""Faint noise leaves fine texture to the Wiener pass, which projection on few components loses."""

STRIDES: dict[str, tuple[int, int | None, int, tuple[int, ...]]] = {
    "fast": (6, None, 6, (4,)),
    "balanced": (5, 5, 5, (3,)),
    "high": (4, 4, 4, (3, 3)),
}

QUALITIES = tuple(STRIDES)

CONTENTS = ("photo", "text")


def plan_for(sigma: float, quality: str = "balanced", content: str = "photo") -> Plan:
    """Choose patch sizes, group sizes and grids for a noise level.

    Parameters
    ----------
    sigma : float
        Standard deviation of the noise on the scale 0..255.
    quality : {"fast", "balanced", "high"}
        Three, four or five passes.
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
    if content not in CONTENTS:
        raise ConfigError(f"content {content!r} is not one of {', '.join(CONTENTS)}")
    smaller = 1 if content == "text" else 0
    first, second, wiener, last = STRIDES[quality]
    return Plan(
        _settings(FIRST, sigma, first, smaller),
        None if second is None else _settings(SECOND, sigma, second, smaller),
        _settings(WIENER, sigma, wiener, smaller),
        tuple(_settings(LAST, sigma, stride, smaller) for stride in last),
        float(np.interp(sigma, SIGMAS, SMOOTH)),
    )


def _settings(
    table: dict[str, tuple[float, float, float]], sigma: float, stride: int, smaller: int
) -> PassSettings:
    """Interpolate one pass between the columns of its table."""
    size = round(float(np.interp(sigma, SIGMAS, table["size"]))) - smaller
    group = round(float(np.interp(sigma, SIGMAS, table["group"])))
    return PassSettings(
        size, group, round(float(np.interp(sigma, SIGMAS, table["tie"])), 3), min(stride, size)
    )
