"""The two ways a batch is denoised, as functions that can be sent to a worker process."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kpca_apps.denoise.denoiser import Cleaned, DenoiseInfo, clean_image
from kpca_apps.denoise.dictionary_rows import unit_of
from kpca_apps.denoise.examples import widest_range
from kpca_apps.denoise.settings import Settings
from kpca_apps.errors import InputError

if TYPE_CHECKING:
    from kpca_apps.denoise.dictionary import DictionaryDenoiser

__all__ = ["DictionaryMode", "LocalMode"]

_NAME = "image"


@dataclass(frozen=True)
class LocalMode:
    """Denoise by kernel PCA on groups of similar patches of the image itself.

    Attributes
    ----------
    options : Settings
    sigma : float or None
        Noise level in the units of the image; None estimates it.
    data_range : float or None
        As for `kpca_apps.denoise.denoiser.denoise_kpca`.

    Examples
    --------
    >>> mode = LocalMode(Settings(quality="fast"), sigma=0.0)
    >>> denoised, info = mode(np.zeros((8, 8), np.uint8), channel_axis=None)
    >>> info.noise, mode.settings["quality"]
    ('gaussian', 'fast')
    """

    options: Settings
    sigma: float | None = None
    data_range: float | None = None

    def __call__(
        self, pixels: NDArray[Any], channel_axis: int | None
    ) -> tuple[NDArray[np.floating], DenoiseInfo]:
        """Denoise pixels (h, w) or (h, w, 3)."""
        cleaned = self.clean(pixels, channel_axis)
        return cleaned.at(self.options.strength), cleaned.info

    def clean(self, pixels: NDArray[Any], channel_axis: int | None) -> Cleaned:
        """Denoise pixels (h, w) or (h, w, 3), to be had at any strength."""
        with warnings.catch_warnings():
            # The batch says once what there is to doubt about a level, not for each image.
            warnings.simplefilter("ignore", UserWarning)
            return clean_image(
                pixels,
                self.options,
                sigma=self.sigma,
                data_range=self.data_range,
                channel_axis=channel_axis,
            )

    @property
    def settings(self) -> Mapping[str, Any]:
        """All that the result depends on, in what JSON can hold."""
        options = asdict(self.options)
        del options["n_jobs"], options["wanted"]
        return {"mode": "local", **options, "sigma": self.sigma, "data_range": self.data_range}


@dataclass(frozen=True)
class DictionaryMode:
    """Denoise with what clean examples have in common.

    Attributes
    ----------
    model : DictionaryDenoiser
    sha256 : str
        Of the model file.
    sigma, data_range : float or None
        As for `LocalMode`.
    """

    model: DictionaryDenoiser
    sha256: str
    sigma: float | None = None
    data_range: float | None = None

    def __call__(
        self, pixels: NDArray[Any], channel_axis: int | None
    ) -> tuple[NDArray[np.floating], DenoiseInfo]:
        """Denoise pixels (h, w) or (h, w, 3)."""
        unit = unit_of(pixels, self.data_range)
        widest = self.data_range or widest_range([pixels])
        if self.sigma is not None and self.sigma > widest:
            raise InputError(
                f"sigma is {self.sigma:g}, above the data range of {widest:g}: give sigma in the "
                "units of the image"
            )
        try:
            denoised, info = self.model.denoise_with_info(
                pixels, sigma=self.sigma, data_range=self.data_range, name=_NAME
            )
        except InputError as error:
            # The batch names the file.
            raise InputError(str(error).removeprefix(f"{_NAME}: ")) from None
        n_channels = 1 if channel_axis is None else pixels.shape[channel_axis]
        return denoised, DenoiseInfo(
            noise="gaussian",
            sigma=info.sigma,
            channel_sigma=(info.sigma,) * n_channels,
            estimated=info.estimated,
            correlated=False,
            whiteness=1.0,
            data_range=unit,
        )

    @property
    def settings(self) -> Mapping[str, Any]:
        """All that the result depends on, in what JSON can hold."""
        return {
            "mode": "dictionary",
            "model": self.sha256,
            "sigma": self.sigma,
            "data_range": self.data_range,
        }
