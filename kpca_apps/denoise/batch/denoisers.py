"""The denoisers of a batch, which can be sent to worker processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kpca_apps.denoise.batch.profile import KindNoise
from kpca_apps.denoise.denoiser import Cleaned, Given, clean_image
from kpca_apps.denoise.estimate.info import DenoiseInfo
from kpca_apps.denoise.image import dtype_range, value_range
from kpca_apps.denoise.masks import Mask, numbers_in
from kpca_apps.denoise.mosaic import clean_mosaic
from kpca_apps.denoise.noise.choose import sampled_pages
from kpca_apps.denoise.options import STACK_NOISES, Options
from kpca_apps.denoise.passes.planes import page_blocks
from kpca_apps.denoise.progress import part
from kpca_apps.denoise.regions import Region
from kpca_apps.denoise.result import NoiseLaw
from kpca_apps.errors import ConfigError, InputError
from kpca_apps.images.types import Mosaic
from kpca_apps.system.memory import available_bytes
from kpca_apps.system.stores.addresses import AnyPath

if TYPE_CHECKING:
    from kpca_apps.denoise.dictionary import DictionaryDenoiser

STACK_BYTES = 90  # bytes of memory per pixel and channel of a block of pages, as measured
Denoised = tuple[NDArray[np.floating], DenoiseInfo]


@dataclass(frozen=True)
class CleanedMosaic:
    """A denoised mosaic, which can be developed at any strength."""

    mosaic: Mosaic
    light: NDArray[np.float32]
    info: DenoiseInfo

    def at(self, strength: float) -> NDArray[np.uint16]:
        """Return the picture developed at a strength from 0 (noisy) to 1 (denoised)."""
        return self.mosaic.developed(self.light_at(strength))

    def light_at(self, strength: float) -> NDArray[np.float32]:
        """Return the mosaic mixed at a strength from 0 (noisy) to 1 (denoised)."""
        noisy = self.mosaic.light
        return noisy + np.float32(strength) * (self.light - noisy)


@dataclass(frozen=True, kw_only=True)
class Denoiser:
    """Base class: denoises page by page, and refuses large pages and raw files."""

    stack: bool = False  # whether the pages of a file form a volume or film
    mask: AnyPath | None = None  # mask file, 0 at pixels without data
    region: Region | None = None  # part to denoise
    from_profile: bool = False  # whether to refuse images of a kind that the profile lacks
    can_stack = False
    strength = 1.0

    def __call__(
        self, pixels: NDArray[Any], channel_axis: int | None, mask: Mask | None = None
    ) -> Denoised:
        """Denoise pixels (h, w) or (h, w, 3); `mask` is True at pixels with data."""
        raise NotImplementedError

    def of_kind(self, kind: str) -> Denoiser:
        """Return the denoiser for images of a kind, with the noise of that kind if known."""
        return self

    def of_large_page(self) -> GroupDenoiser:
        """Return a denoiser for pages too large for memory; this base class raises ConfigError."""
        raise ConfigError("so large a page can only be denoised without a model; cut the image")

    def clean_mosaic(self, mosaic: Mosaic) -> CleanedMosaic:
        """Denoise the mosaic of a raw file; this base class cannot, and raises InputError."""
        raise InputError(
            "a raw file can only be denoised without a model; develop it to a 16-bit TIFF first"
        )


@dataclass(frozen=True)
class PageDenoiser(Denoiser):
    """Denoise pages by a function, which treats all pixels as data."""

    function: Callable[..., Denoised]

    def __call__(
        self, pixels: NDArray[Any], channel_axis: int | None, mask: Mask | None = None
    ) -> Denoised:
        """Denoise pixels (h, w) or (h, w, 3)."""
        return self.function(pixels, channel_axis=channel_axis)


@dataclass(frozen=True)
class GroupDenoiser(Denoiser):
    """Denoise by kernel PCA on groups of similar patches of an image; see `denoise_kpca`."""

    options: Options
    sigma: float | tuple[float, ...] | None = None
    data_range: float | None = None
    laws: tuple[NoiseLaw, ...] = ()  # known noise law of each channel, in the image's units
    same: tuple[KindNoise, ...] = ()  # known noise by kind of image
    # Raw files: known a and b of the noise variance a x + b.
    curves: tuple[tuple[float, float], ...] = ()
    mask_sha256: str = ""
    stripes: NDArray[np.float32] | None = None  # known stripes; see `Given`
    can_stack = True

    @property
    def strength(self) -> float:  # type: ignore[override]
        """Strength from 0 (unchanged) to 1 (denoised)."""
        return self.options.strength

    def of_kind(self, kind: str) -> GroupDenoiser:
        """Return the denoiser for images of a kind, with the noise of that kind if known."""
        for one in self.same:
            if one.images == kind:
                sigma, laws = one.sigma or None, one.laws
                return replace(self, sigma=sigma, laws=laws, curves=one.curves)
        if self.from_profile:
            raise InputError(
                f"is of a kind ({kind}) that the profile does not have; measure the noise of such "
                "images with kpca denoise noise --save, or leave out --profile"
            )
        return self

    def __call__(
        self, pixels: NDArray[Any], channel_axis: int | None, mask: Mask | None = None
    ) -> Denoised:
        """Denoise pixels (h, w) or (h, w, 3)."""
        cleaned = self.clean(pixels, mask=mask)
        return cleaned.at(self.options.strength), cleaned.info

    def stacked(
        self, page: Callable[[int], tuple[NDArray[Any], Mask | None]], numbers: Sequence[int]
    ) -> Iterator[Denoised]:
        """Yield a stack's pages, denoised in blocks; `page` returns a page's pixels and mask."""

        def read(chosen: Sequence[int]) -> tuple[NDArray[Any], Mask]:
            pages, masks = [], []
            for number in chosen:
                pixels, data = page(number)
                data = numbers_in(pixels, data, pixels.ndim == 3)
                infinite = np.isinf(pixels)
                infinite[~data] = False
                if infinite.any():
                    row, column = np.argwhere(infinite)[0][:2]
                    raise InputError(
                        f"page {number + 1} holds {pixels[row, column]} at row {row}, column "
                        f"{column}; replace such pixels first, with NaN where there are no data"
                    )
                pages.append(pixels)
                masks.append(data)
            return np.stack(pages), np.stack(masks)

        some, data = read([numbers[place] for place in sampled_pages(len(numbers))])
        samples = some[0].size
        known, info = self.knowing(some, data)
        del some
        blocks = list(page_blocks(len(numbers), samples))
        need = STACK_BYTES * samples * max(stop - begin for _, _, begin, stop in blocks)
        if need > (there_is := available_bytes()):
            raise InputError(
                f"as a stack, pages of this size take {need / 1e9:.1f} GB of memory, and "
                f"{there_is / 1e9:.1f} GB are free; cut them, or leave out --stack"
            )
        for place, (first, end, begin, stop) in enumerate(blocks):
            block, data = read(numbers[begin:stop])
            if info.established and data.any():
                with part(place, len(blocks)):
                    block = known.clean(block, stack_axis=0, mask=data).at(self.options.strength)
            for pixels in block[first - begin : end - begin]:
                yield pixels, info

    def of_large_page(self) -> GroupDenoiser:
        """Return this denoiser, or raise an error for options that need a whole page."""
        if self.options.noise not in STACK_NOISES:
            raise ConfigError(
                f"noise is {self.options.noise!r}, but a page of this size can only be denoised "
                f"for {', '.join(STACK_NOISES)} noise; cut the image"
            )
        self._refuse_parts("so large a page; cut the image")
        return self

    def _refuse_parts(self, what: str) -> None:
        for name in ("mask", "region"):
            if getattr(self, name) is not None:
                raise ConfigError(f"{name} cannot be used for {what}")

    def knowing(
        self, some: NDArray[Any], data: Mask | None = None
    ) -> tuple[GroupDenoiser, DenoiseInfo]:
        """Measure the noise of `some` pages; return a denoiser for it, and the measured values."""
        unchanged = replace(self, options=replace(self.options, strength=0.0))
        info = unchanged.clean(some, stack_axis=0, mask=data).info
        known = replace(self, sigma=info.channel_sigma, data_range=info.data_range)
        if info.noise == "poisson":
            # A level alone would mean noise of equal strength everywhere.
            known = replace(known, options=replace(self.options, noise="poisson"))
            if self.sigma is None and len(info.laws) == len(info.channel_sigma):
                known = replace(known, sigma=None, laws=info.laws)
        return known, info

    def clean(
        self, pixels: NDArray[Any], stack_axis: int | None = None, mask: Mask | None = None
    ) -> Cleaned:
        """Denoise pixels (h, w) or (h, w, 3), or a stack of such pages."""
        sigma, has_colours = self.sigma, pixels.ndim == (3 if stack_axis is None else 4)
        widest = dtype_range(pixels.dtype) if self.same else None
        if widest is not None:
            for law in self.laws:
                if (level := float(law.variance(widest)) ** 0.5) > widest:
                    raise InputError(
                        f"its noise, {level:g} where brightest, is above the range of its values, "
                        f"{widest:g}; measure the noise of its kind again"
                    )
        if self.same and isinstance(sigma, tuple) and widest is None:
            # Limit the level to the page's range, which is small if the page is nearly constant.
            most = value_range(pixels, self.data_range)[0]
            sigma = tuple(min(level, most) for level in sigma)
        return clean_image(
            pixels,
            self.options,
            Given(sigma, self.data_range, self.region, self.laws, self.stripes),
            channel_axis=-1 if has_colours else None,
            stack_axis=stack_axis,
            mask=mask,
        )

    def clean_mosaic(self, mosaic: Mosaic) -> CleanedMosaic:
        """Denoise the mosaic of a raw file."""
        self._refuse_parts("a raw file, which is developed as a whole; leave it out")
        noise = None if self.options.noise == "auto" else self.options.noise
        given = {"noise": noise, "sigma": self.sigma, "data_range": self.data_range}
        for name in (name for name, value in given.items() if value is not None):
            raise ConfigError(
                f"{name} cannot be used for a raw file, whose noise is known or measured; "
                "leave it out, and give luma and chroma above 1 to smooth more"
            )
        curves = np.array(self.curves) if self.curves else mosaic.noise
        cleaned = clean_mosaic(mosaic.light, mosaic.pattern, mosaic.white, curves, self.options)
        return CleanedMosaic(mosaic, *cleaned)

    def changed(self, own: Mapping[str, Any]) -> GroupDenoiser:
        """Return the denoiser with an image's own settings."""
        others = {name: value for name, value in own.items() if name != "sigma"}
        # With two pages, Options refuses settings that stacks do not support.
        options = replace(self.options, **others, pages=2 if self.stack else 1)
        options = replace(options, pages=self.options.pages)
        return replace(self, options=options, sigma=own.get("sigma", self.sigma))

    def by_threads(self, n_jobs: int) -> GroupDenoiser:
        """Return this denoiser with `n_jobs` threads."""
        return replace(self, options=replace(self.options, n_jobs=n_jobs))

    @property
    def settings(self) -> Mapping[str, Any]:
        """All settings on which the result depends, as JSON values."""
        options = asdict(self.options)
        del options["n_jobs"], options["wanted"], options["pages"], options["shared"]
        if self.options.method == "linear":
            del options["bandwidth"]
        known = {"sigma": self.sigma, "data_range": self.data_range, "stack": self.stack}
        key = "profile" if self.from_profile else "same_noise"
        same = {key: [str(one) for one in self.same]} if self.same else {}
        where: dict[str, Any] = {"mask": self.mask_sha256} if self.mask else {}
        where |= {"region": list(self.region)} if self.region else {}
        return {"mode": "local", **options, **known, **same, **where}


@dataclass(frozen=True)
class ExampleDenoiser(Denoiser):
    """Denoise Gaussian or impulse noise with a dictionary; `sha256` is the hash of its file."""

    model: DictionaryDenoiser
    sha256: str
    noise: str = "gaussian"
    sigma: float | None = None
    data_range: float | None = None

    def by_threads(self, n_jobs: int) -> ExampleDenoiser:
        """Set the number of threads that `model` uses; return this denoiser itself, not a copy."""
        self.model.n_jobs = n_jobs
        return self

    def __call__(
        self, pixels: NDArray[Any], channel_axis: int | None, mask: Mask | None = None
    ) -> Denoised:
        """Denoise pixels (h, w) or (h, w, 3). The mask is ignored: all pixels count as data."""
        widest = value_range(pixels, self.data_range)[0]
        if self.sigma is not None and self.sigma > widest:
            raise InputError(
                f"sigma is {self.sigma:g}, above the data range of {widest:g}: give sigma in the "
                "units of the image"
            )
        try:
            return self.model.denoise_with_info(
                pixels, sigma=self.sigma, data_range=self.data_range, noise=self.noise
            )
        except InputError as error:
            # The batch puts the file's name before the message.
            raise InputError(str(error).removeprefix("image: ")) from None

    @property
    def settings(self) -> Mapping[str, Any]:
        """All settings on which the result depends, as JSON values."""
        return {
            "mode": "dictionary",
            "method": "mika",
            "model": self.sha256,
            "noise": self.noise,
            "sigma": self.sigma,
            "data_range": self.data_range,
        }
