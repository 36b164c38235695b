"""What a batch is denoised with: two functions that can be sent to a worker process."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kpca_apps.denoise.denoiser import Cleaned, DenoiseInfo, clean_image
from kpca_apps.denoise.image import value_range
from kpca_apps.denoise.options import Options
from kpca_apps.errors import InputError

if TYPE_CHECKING:
    from kpca_apps.denoise.dictionary import DictionaryDenoiser

__all__ = ["ExampleDenoiser", "GroupDenoiser"]

_NAME = "image"


@dataclass(frozen=True)
class GroupDenoiser:
    """Denoise by kernel PCA on groups of similar patches of an image; see `denoise_kpca`."""

    options: Options
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
class ExampleDenoiser:
    """Denoise gaussian or impulse noise with a dictionary, whose file has the hash given."""

    model: DictionaryDenoiser
    sha256: str
    noise: str = "gaussian"
    sigma: float | None = None
    data_range: float | None = None

    def __call__(
        self, pixels: NDArray[Any], channel_axis: int | None
    ) -> tuple[NDArray[np.floating], DenoiseInfo]:
        """Denoise pixels (h, w) or (h, w, 3)."""
        widest = value_range(pixels, self.data_range)[0]
        if self.sigma is not None and self.sigma > widest:
            raise InputError(
                f"sigma is {self.sigma:g}, above the data range of {widest:g}: give sigma in the "
                "units of the image"
            )
        try:
            return self.model.denoise_with_info(
                pixels, sigma=self.sigma, data_range=self.data_range, noise=self.noise, name=_NAME
            )
        except InputError as error:
            # The batch names the file.
            raise InputError(str(error).removeprefix(f"{_NAME}: ")) from None

    @property
    def settings(self) -> Mapping[str, Any]:
        """All that the result depends on, in what JSON can hold."""
        return {
            "mode": "dictionary",
            "model": self.sha256,
            "noise": self.noise,
            "sigma": self.sigma,
            "data_range": self.data_range,
        }
