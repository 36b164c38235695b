"""`DictionaryDenoiser`, which denoises images that resemble its examples, and its file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Self

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from kpca_apps.denoise.dictionary.choosing import TOLERANCE, LevelChoice, choose
from kpca_apps.denoise.dictionary.level import LARGEST, LOWEST, ResidualLevel
from kpca_apps.denoise.dictionary.pixels import (
    FEWEST,
    as_given,
    as_pixels,
    check_levels,
    examples_from,
    over_patches,
    require_room,
    size_text,
    unit_of,
)
from kpca_apps.denoise.estimate.info import DenoiseInfo
from kpca_apps.denoise.estimate.level import estimate_noise
from kpca_apps.denoise.options import LARGEST_RANGE
from kpca_apps.engine.exact import fit_exact
from kpca_apps.engine.kernels import RBF
from kpca_apps.engine.plan import FitOptions
from kpca_apps.engine.preimage.fixed_point import fixed_point
from kpca_apps.engine.seeding import seeded_generator
from kpca_apps.engine.subspace import KernelSubspace
from kpca_apps.errors import ConfigError, InputError, ParameterError
from kpca_apps.names import shown
from kpca_apps.options import check_jobs, is_number
from kpca_apps.system.arrays import Matrix
from kpca_apps.system.files.model_files import load_model_file, save_model_file

Course = NDArray[np.int64]

MAX_ITER = 100
WELSCH = 2.985  # width of the weights, in deviations: 95 % efficient without outliers
ROUNDS = 8  # number of rounds; more rounds change the error by a few per cent
KIND = "denoise-dictionary"


@dataclass(eq=False)
class DictionaryDenoiser:
    """Kernel PCA denoising of images that resemble its examples.

    Parameters
    ----------
    n_components : int >= 1, optional
        Number of components to project on. None: the number that denoises held-out examples best.
    bandwidth : float > 0, optional
        c of the kernel ``exp(-|x - y|^2 / c)``, in squared units of the images; about the number of
        pixels times the variance of a pixel. None: the value that denoises held-out examples best.
    patch_size : int >= 2, optional
        Width of patches; None for whole images of one size. The mean of a patch is subtracted.
    stride : int >= 1, optional
        Distance between neighbouring patches; None: a quarter of their width.
    sigma : float > 0, optional
        Noise level for which to choose components and bandwidth, in the units of the images. None:
        several levels, of which the nearest is used; this makes the model larger.
    examples_sigma : float >= 0
        Noise level of the examples themselves, 0 for clean examples.
    max_examples : int >= 5
        Largest number of examples, drawn at random. The time to fit grows with its cube, the time
        to denoise in proportion.
    n_jobs : int, optional
        Number of threads; results do not depend on it.
    random_state : int, optional
        Seed for drawing the examples and the held-out examples.

    Attributes
    ----------
    choices_ : tuple of LevelChoice
        Bandwidth and number of components for each noise level, for images with range 1.
    subspaces_ : tuple of KernelSubspace
        Subspace for each noise level.
    shape_ : tuple of int
        Height, width and channels of an example.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> images = load_digits().images / 16.0
    >>> model = DictionaryDenoiser(sigma=0.25).fit(images[:300])
    >>> noisy = images[300] + np.random.default_rng(0).normal(0.0, 0.25, (8, 8))
    >>> clean = model.denoise(noisy)
    >>> bool(np.mean((clean - images[300]) ** 2) < 0.5 * np.mean((noisy - images[300]) ** 2))
    True
    """

    n_components: int | None = None
    _: KW_ONLY
    bandwidth: float | None = None
    patch_size: int | None = None
    stride: int | None = None
    sigma: float | None = None
    examples_sigma: float = 0.0
    max_examples: int = 2000
    n_jobs: int | None = None
    random_state: int | None = 0

    def fit(
        self,
        images: Sequence[NDArray[Any]] | NDArray[Any],
        *,
        data_range: float | None = None,
        names: Sequence[str] | None = None,
    ) -> Self:
        """Learn from examples.

        Parameters
        ----------
        images : sequence of ndarray of shape (h, w) or (h, w, channels)
            Whole images of one size, or images to draw patches from.
        data_range : float, optional
            Range of values. None: that of an unsigned dtype of 8 or 16 bits, else 1.
        names : sequence of str, optional
            Names of the images in errors.

        Returns
        -------
        self

        Raises
        ------
        ConfigError
            If a parameter is out of its range.
        InputError
            If an image cannot be used, or there are too few.
        """
        self.check_parameters()
        names = names or [f"image {i}" for i in range(len(images))]
        pixels = [as_pixels(x, n, data_range) for x, n in zip(images, names, strict=True)]
        if not pixels:
            raise InputError(f"there are no images to learn from: give at least {FEWEST}")
        check_levels(self, images, data_range)
        unit = unit_of(np.asarray(images[0]), data_range)
        rng = seeded_generator(self.random_state)
        rows, shape = examples_from(pixels, names, self.patch_size, self.max_examples, rng)
        if self.n_components is not None and self.n_components >= len(rows):
            raise ParameterError(
                "n_components",
                f"is {self.n_components}, but {len(rows):,} examples have {len(rows) - 1:,} "
                "components at most; give fewer, or leave it out",
            )
        self.shape_: tuple[int, ...] = shape
        self.choices_ = choose(
            rows,
            rng,
            sigma=None if self.sigma is None else self.sigma / unit,
            examples_sigma=self.examples_sigma / unit,
            bandwidth=None if self.bandwidth is None else self.bandwidth / unit**2,
            n_components=self.n_components,
            n_jobs=self.n_jobs,
        )
        self.level_ = ResidualLevel.fit(rows, rng, self.examples_sigma / unit)
        fits = [
            fit_exact(RBF(1.0 / c.bandwidth), rows, rng=rng, options=FitOptions(c.components))
            for c in self.choices_
        ]
        # Use the memory layout of a loaded model, as the layout affects the rounding of products.
        self.subspaces_ = tuple(fit.leading(fit.n_components) for fit in fits)
        return self

    def denoise(self, image: NDArray[Any], **options: Any) -> NDArray[np.floating[Any]]:
        """Return the denoised image; the options are those of `denoise_with_info`.

        Parameters
        ----------
        image : ndarray of shape (h, w), or with a last axis of channels
            As for `denoise_with_info`.
        **options : dict
            As for `denoise_with_info`.

        Returns
        -------
        ndarray
            The denoised image, in the image's units.
        """
        return self.denoise_with_info(image, **options)[0]

    def denoise_with_info(
        self,
        image: NDArray[Any],
        *,
        sigma: float | None = None,
        data_range: float | None = None,
        noise: str = "gaussian",
        name: str = "image",
    ) -> tuple[NDArray[np.floating[Any]], DenoiseInfo]:
        """Denoise one image.

        Parameters
        ----------
        image : ndarray of shape (h, w) or (h, w, channels)
            Any real dtype; not changed.
        sigma : float >= 0, optional
            Noise level in the units of the image; 0 returns the image unchanged. None: measured; in
            a whole small image, from its energy outside the leading principal components of the
            examples.
        data_range : float, optional
            As for `fit`.
        noise : {"gaussian", "impulse"}
            For "impulse", the image is denoised nine times, with less and less weight on pixels far
            from their denoised value; ``sigma`` is then the root mean square change by the
            impulses.
        name : str
            Name of the image in errors.

        Returns
        -------
        denoised : ndarray of the image's shape
            float64 for a float64 image, else float32; in the image's units, an integer image's
            values within its dtype's range.
        info : DenoiseInfo
            Includes n_components, iterations and converged.

        Raises
        ------
        InputError
            If the image cannot be used or does not fit the examples.
        ConfigError
            If ``sigma`` is negative or not finite, or ``noise`` is neither kind.
        """
        image = np.asarray(image)
        pixels = self._fitting(as_pixels(image, name, data_range), name)
        unit = unit_of(image, data_range)
        if sigma is not None and not is_number(sigma, 0.0, LARGEST_RANGE):
            raise ConfigError(f"sigma is {shown(sigma)}; give a finite number >= 0")
        if noise not in ("gaussian", "impulse"):
            raise ConfigError(f"noise is {noise!r}; give 'gaussian' or 'impulse' with a dictionary")
        level = self._level(pixels) if sigma is None else sigma / unit
        if sigma is None and data_range is None and level > 1.0:
            raise InputError(
                f"{name}: its noise measures {level:.3g} times the range; give the data range"
            )
        result, n_components, course = pixels[None], 0, np.array([0, 1, 1])
        if level > 0.0:
            result, course = self._denoised(result, level, noise)
            n_components = self.at_level(level)[1].n_components
        info = DenoiseInfo(
            noise=noise,
            sigma=level * unit,
            channel_sigma=(level * unit,) * pixels.shape[2],
            estimated=sigma is None,
            correlated=False,
            data_range=unit,
            n_components=n_components,
            iterations=float(course[0] / course[2]),
            converged=float(course[1] / course[2]),
        )
        return as_given(result[0] * unit, image), info

    def denoise_stack(
        self,
        images: NDArray[Any],
        sigma: float,
        *,
        data_range: float | None = None,
        noise: str = "gaussian",
    ) -> NDArray[np.floating[Any]]:
        """Denoise many whole images of one noise level at once; results equal those of `denoise`.

        Parameters
        ----------
        images : ndarray of shape (n, h, w) or (n, h, w, channels)
        sigma : float > 0
            Noise level in the units of the images.
        data_range, noise
            As for `denoise_with_info`.

        Returns
        -------
        ndarray of the shape of ``images``
        """
        if self.patch_size is not None:
            raise ConfigError("denoise_stack is for whole images: use denoise for each of these")
        if not (is_number(sigma, 0.0, LARGEST_RANGE) and sigma):
            raise ConfigError(f"sigma is {shown(sigma)}; give a finite number > 0")
        names = [f"image {i}" for i in range(len(images))]
        pixels = [
            self._fitting(as_pixels(image, name, data_range), name)
            for image, name in zip(images, names, strict=True)
        ]
        unit = unit_of(images, data_range)
        result, _ = self._denoised(np.stack(pixels), sigma / unit, noise)
        return as_given(result * unit, images)

    def component_images(self, count: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return pre-images of the mean minus and plus two deviations along each component.

        Parameters
        ----------
        count : int >= 0
            Number of leading components, at the middle noise level.

        Returns
        -------
        below, above : ndarray of shape (count, h, w, channels)
            Scaled to a range of 1; patches without their mean.
        """
        subspace = self.subspaces_[len(self.subspaces_) // 2]
        count = min(count, subspace.n_components)
        T = np.zeros((count, subspace.n_components))
        np.fill_diagonal(T, 2.0 * np.sqrt(subspace.variances[:count]))
        sides = [fixed_point(subspace, sign * T, n_jobs=self.n_jobs) for sign in (-1.0, 1.0)]
        below, above = (side.points.reshape(count, *self.shape_) for side in sides)
        return below, above

    def save(self, path: str | Path) -> None:
        """Write the model to a file.

        Parameters
        ----------
        path : str or Path
            File to write.

        Raises
        ------
        InputError
            If the file cannot be written.
        """
        first, *others = self.subspaces_
        parameters = {name: getattr(self, name) for name in Parameters.__dataclass_fields__}
        state = DictionaryState(
            parameters=Parameters(**parameters),
            shape=self.shape_,
            choices=self.choices_,
            subspaces=(first, *(replace(other, points=first.points) for other in others)),
            level=self.level_,
        )
        save_model_file(path, KIND, state)

    @classmethod
    def load(cls, path: str | Path, *, n_jobs: int | None = None) -> Self:
        """Read a model that `save` wrote.

        Raises
        ------
        ModelFileError
            If the file is missing, damaged, or holds another kind of model.
        """
        wanted = "a denoising model; fit one with kpca denoise fit"
        state = load_model_file(path, KIND, DictionaryState, wanted)
        model = cls(**vars(state.parameters), n_jobs=n_jobs)
        model.shape_, model.choices_ = state.shape, state.choices
        model.subspaces_, model.level_ = state.subspaces, state.level
        return model

    def check_parameters(self) -> None:
        """Raise ConfigError for parameters out of range."""
        counts = {"n_components": 1, "patch_size": 2, "stride": 1, "max_examples": FEWEST}
        for name, least in counts.items():
            number = getattr(self, name)
            if number is not None and not is_number(number, least, whole=True):
                raise ParameterError(
                    name, f"is {shown(number, whole=True)}; give a whole number >= {least}"
                )
        for name in ("bandwidth", "sigma"):
            value = getattr(self, name)
            if value is not None and not (is_number(value, 0.0) and value):
                raise ParameterError(name, f"is {shown(value)}; give a finite number > 0")
        if not is_number(self.examples_sigma, 0.0):
            raise ParameterError(
                "examples_sigma", f"is {shown(self.examples_sigma)}; give a number >= 0"
            )
        check_jobs("n_jobs", self.n_jobs)
        if self.patch_size and self.stride and self.stride > self.patch_size:
            raise ParameterError(
                "stride",
                f"is {self.stride}, wider than patches of {self.patch_size}, so pixels would be "
                "missed: give a smaller one",
            )

    def _fitting(self, pixels: Matrix, name: str) -> Matrix:
        """Return the pixels if their size and channels fit the examples, or raise InputError."""
        if self.patch_size is None and pixels.shape != self.shape_:
            raise InputError(
                f"{name}: is {size_text(pixels.shape)}, but the model learned whole images of "
                f"{size_text(self.shape_)}: use images of that size, or fit with --patch-size N"
            )
        if pixels.shape[2] != self.shape_[2]:
            raise InputError(
                f"{name}: has {pixels.shape[2]} channels, but the model learned from images with "
                f"{self.shape_[2]}: fit a model on such images"
            )
        if self.patch_size is not None:
            require_room(pixels, self.patch_size, name)
        return pixels

    def _level(self, pixels: Matrix) -> float:
        """Return the noise level of an image, relative to the range."""
        if self.patch_size is None:
            return self.level_.of_rows(pixels.reshape(1, -1))
        channels = np.moveaxis(pixels, -1, 0)
        levels = [estimate_noise(channel, data_range=1.0).sigma for channel in channels]
        return max(float(np.sqrt(np.mean(np.square(levels)))), LOWEST)

    def at_level(self, level: float) -> tuple[LevelChoice, KernelSubspace]:
        """Return choice and subspace for the nearest noise level, by ratio.

        Parameters
        ----------
        level : float
            Noise level relative to the range.

        Returns
        -------
        tuple of LevelChoice and KernelSubspace
        """
        nearest = int(np.argmin([abs(np.log(level / choice.level)) for choice in self.choices_]))
        return self.choices_[nearest], self.subspaces_[nearest]

    def _denoised(self, stack: Matrix, level: float, noise: str) -> tuple[Matrix, Course]:
        """Denoise images (n, h, w, channels); a model of patches takes one image."""
        # Numbers of fixed-point steps, of converged pre-images, and of all pre-images.
        course = np.zeros(3, dtype=np.int64)

        def of_rows(subspace: KernelSubspace, noisy: Matrix) -> Matrix:
            T = subspace.project(noisy, n_jobs=self.n_jobs)
            found = fixed_point(
                subspace, T, noisy, tolerance=TOLERANCE, max_iter=MAX_ITER, n_jobs=self.n_jobs
            )
            course[:] += found.iterations.sum(), found.converged.sum(), len(noisy)
            return found.points

        def of_images(subspace: KernelSubspace, stack: Matrix) -> Matrix:
            if self.patch_size is None:
                return of_rows(subspace, stack.reshape(len(stack), -1)).reshape(stack.shape)
            stride = self.stride or max(self.patch_size // 4, 1)
            return over_patches(partial(of_rows, subspace), stack[0], self.patch_size, stride)[None]

        found = of_images(self.at_level(level)[1], stack)
        if noise == "impulse":
            # With little weight on outliers, about half of the noise remains.
            choice, subspace = self.at_level(level / 2.0)
            spread = max(float(np.sqrt(choice.error)), LOWEST)
            for _ in range(ROUNDS):
                # Pixels far from what was found get less weight.
                weights = np.exp(-np.square((stack - found) / (WELSCH * spread)))
                found = of_images(subspace, found + weights * (stack - found))
        return found, course


@dataclass(frozen=True)
class Parameters:
    """Parameters of a dictionary that are stored in its file."""

    n_components: Annotated[int, Meta(ge=1)] | None
    bandwidth: Annotated[float, Meta(gt=0)] | None
    patch_size: Annotated[int, Meta(ge=2)] | None
    stride: Annotated[int, Meta(ge=1)] | None
    sigma: Annotated[float, Meta(gt=0)] | None
    examples_sigma: Annotated[float, Meta(ge=0)]


@dataclass(frozen=True, eq=False)
class DictionaryState:
    """Fitted state of a dictionary; the examples are shared by all noise levels."""

    parameters: Parameters
    shape: tuple[int, ...]
    choices: tuple[LevelChoice, ...]
    subspaces: tuple[KernelSubspace, ...]
    level: ResidualLevel

    def validate(self) -> None:
        """Raise ValueError if the parts do not fit together."""
        pixels = int(np.prod(self.shape, dtype=object))
        fits = (
            len(self.choices) == len(self.subspaces) > 0
            and len(self.shape) == 3
            and min(self.shape) > 0
            and len(self.level.mean) == pixels
            and all(s.points.shape[1] == pixels and _usable(s) for s in self.subspaces)
            and self.parameters.patch_size in (None, self.shape[0])
            and (self.parameters.stride or 0) <= (self.parameters.patch_size or np.inf)
        )
        if not fits:
            raise ValueError("its parts do not fit together")


def _usable(subspace: KernelSubspace) -> bool:
    """Return whether a fit could yield this subspace, with numbers small enough to be squared."""
    kernel = subspace.kernel
    arrays = (subspace.points, subspace.weights, subspace.offset, subspace.mean_weights)
    return (
        isinstance(kernel, RBF)
        and kernel.gamma < LARGEST
        and bool((subspace.variances >= 0.0).all())
        and all(np.abs(array).max(initial=0.0) < LARGEST for array in arrays)
    )
