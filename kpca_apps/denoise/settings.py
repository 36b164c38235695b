"""The options of denoising that every noise model shares, checked once."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

from kpca_apps.denoise.local import KERNELS, Window
from kpca_apps.denoise.parameters import CONTENTS, QUALITIES
from kpca_apps.errors import ConfigError

__all__ = ["NOISES", "Settings"]

NOISES = ("gaussian", "poisson", "speckle", "impulse", "camera", "auto")
# Any image is even long before; far above, noise levels would overflow.
LARGEST_FACTOR = 1000.0


@dataclass(frozen=True)
class Settings:
    """How to denoise, whatever the image.

    Attributes
    ----------
    noise : str
        One of `NOISES`.
    quality, kernel, content : str
        As for `kpca_apps.denoise.local.denoise_plane`.
    luma, chroma : float
        Factors from 0 to 1000 of the noise level taken out of luminance and colour; 0 leaves them
        alone.
    strength : float
        Share of the change that is made, 0 (none) to 1 (all).
    n_jobs : int or None
        Workers; the result does not depend on it.
    wanted : ((int, int), (int, int)) or None
        Rows from one up to another, and columns, of which the result is wanted, as of a preview;
        others may hold anything. None wants all.

    Raises
    ------
    ConfigError
        A value that is not on offer.
    """

    noise: str = "auto"
    quality: str = "balanced"
    kernel: str = "linear"
    content: str = "photo"
    luma: float = 1.0
    chroma: float = 1.0
    strength: float = 1.0
    n_jobs: int | None = None
    wanted: Window | None = None

    def __post_init__(self) -> None:
        offers = {
            "noise": NOISES,
            "quality": QUALITIES,
            "kernel": KERNELS,
            "content": CONTENTS,
        }
        for name, offered in offers.items():
            value = getattr(self, name)
            if value not in offered:
                raise ConfigError(f"{name} is {value!r}; give one of {', '.join(offered)}")
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
