"""Denoising with a dictionary: kernel PCA of clean examples, projection, pre-image.

What the examples have in common is learned once: whole small images of one size (digits, glyphs,
aligned faces), or patches of larger ones. A noisy image is projected on the leading components
in feature space and the pre-image of the projection is the result; overlapping patches are
averaged. For photographs at large the local mode is better by decibels: a dictionary is for
images that resemble its examples.

References
----------
.. [1] Mika, Scholkopf, Smola, Muller, Scholz and Ratsch (1998), Kernel PCA and de-noising in
   feature spaces, NIPS 11.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from kpca_apps.denoise.dictionary_choice import LevelChoice, choose
from kpca_apps.denoise.dictionary_impulse import without_outliers
from kpca_apps.denoise.dictionary_level import LOWEST, ResidualLevel
from kpca_apps.denoise.dictionary_rows import (
    FEWEST,
    as_given,
    as_pixels,
    examples_from,
    over_patches,
    require_room,
    size_text,
    unit_of,
)
from kpca_apps.denoise.dictionary_state import load_dictionary, save_dictionary
from kpca_apps.denoise.noise import estimate_noise
from kpca_apps.engine.exact import fit_exact
from kpca_apps.engine.kernels import RBF
from kpca_apps.engine.preimage import PreImages, fixed_point
from kpca_apps.engine.seeding import seeded_generator
from kpca_apps.engine.subspace import KernelSubspace
from kpca_apps.errors import ConfigError, InputError

__all__ = ["DictionaryDenoiser", "DictionaryInfo"]

Matrix = NDArray[np.float64]
Course = NDArray[np.int64]

TOLERANCE, MAX_ITER = 1e-3, 100
"""A thousandth of the kernel's width is far below the noise; narrow kernels creep on for long."""


@dataclass(frozen=True)
class DictionaryInfo:
    """How an image was denoised.

    Attributes
    ----------
    sigma : float
        Noise level used, in the units of the image.
    estimated : bool
        Whether it was measured on the image rather than given.
    n_components : int
    iterations : float
        Mean number of fixed-point steps.
    converged : float
        Share of the pre-images that converged.
    """

    sigma: float
    estimated: bool
    n_components: int
    iterations: float
    converged: float


class DictionaryDenoiser:
    """Kernel PCA denoising of images that resemble its examples.

    Parameters
    ----------
    n_components : int >= 1, optional
        Components projected on. None: what denoises held-out examples best at the noise level.
    bandwidth : float > 0, optional
        c of the kernel exp(-|x - y|^2 / c), in squared units of the images; about the number of
        pixels times the squared spread of one. None: what denoises held-out examples best.
    patch_size : int >= 2, optional
        Width of patches; None for whole images, all of one size. Patches are compared without
        their mean.
    stride : int >= 1, optional
        Distance of neighbouring patches; a quarter of their width if None.
    sigma : float > 0, optional
        Noise level the choices are made for, in the units of the images. None: for several, of
        which the one nearest to the noise met is used; the model is larger for it.
    examples_sigma : float >= 0
        Noise level of the examples themselves, 0 for clean ones.
    max_examples : int >= 5
        Examples kept, drawn at random from more. Fitting takes time of the third power of it,
        denoising in proportion.
    n_jobs : int, optional
        Threads; results do not depend on it.
    random_state : int, optional
        Draws the examples and what is held out.

    Attributes
    ----------
    choices_ : tuple of LevelChoice
        Bandwidth and number of components by noise level, on the scale where the range is 1.
    subspaces_ : tuple of KernelSubspace
        One for each level.
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

    def __init__(
        self,
        n_components: int | None = None,
        *,
        bandwidth: float | None = None,
        patch_size: int | None = None,
        stride: int | None = None,
        sigma: float | None = None,
        examples_sigma: float = 0.0,
        max_examples: int = 2000,
        n_jobs: int | None = None,
        random_state: int | None = 0,
    ) -> None:
        self.n_components = n_components
        self.bandwidth = bandwidth
        self.patch_size = patch_size
        self.stride = stride
        self.sigma = sigma
        self.examples_sigma = examples_sigma
        self.max_examples = max_examples
        self.n_jobs = n_jobs
        self.random_state = random_state

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
            Whole images of one size, or images patches are drawn from.
        data_range : float, optional
            What counts as 1 inside. None: the largest value of an integer dtype, 1 for floats.
        names : sequence of str, optional
            What errors call the images.

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
        unit = unit_of(np.asarray(images[0]), data_range)
        rng = seeded_generator(self.random_state)
        rows, shape = examples_from(pixels, names, self.patch_size, self.max_examples, rng)
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
            fit_exact(RBF(1.0 / c.bandwidth), rows, rng=rng, n_components=c.components)
            for c in self.choices_
        ]
        # Arrays laid out as a file gives them back: products of others round otherwise.
        self.subspaces_ = tuple(fit.leading(fit.n_components) for fit in fits)
        return self

    def denoise(
        self,
        image: NDArray[Any],
        *,
        sigma: float | None = None,
        data_range: float | None = None,
        noise: str = "gaussian",
        name: str = "image",
    ) -> NDArray[np.floating[Any]]:
        """Return the denoised image; see `denoise_with_info`."""
        return self.denoise_with_info(
            image, sigma=sigma, data_range=data_range, noise=noise, name=name
        )[0]

    def denoise_with_info(
        self,
        image: NDArray[Any],
        *,
        sigma: float | None = None,
        data_range: float | None = None,
        noise: str = "gaussian",
        name: str = "image",
    ) -> tuple[NDArray[np.floating[Any]], DictionaryInfo]:
        """Denoise one image.

        Parameters
        ----------
        image : ndarray of shape (h, w) or (h, w, channels)
            Any real dtype; not changed.
        sigma : float >= 0, optional
            Noise level in the units of the image; 0 returns it as it is. None: measured; of a
            whole small image, as what it has outside the leading principal components of the
            examples beyond what they have there.
        data_range : float, optional
            As for `fit`.
        noise : {"gaussian", "impulse"}
            "impulse": pixels far from their denoised value are trusted less and the image is
            denoised anew, nine times in all; its noise level is the root mean square of what the
            impulses change.
        name : str
            What errors call the image.

        Returns
        -------
        denoised : ndarray of the image's shape
            float64 for a float64 image, else float32; in the image's units, an integer image's
            values within its dtype's range.
        info : DictionaryInfo

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
        if sigma is not None and not (np.isfinite(sigma) and sigma >= 0.0):
            raise ConfigError(f"sigma is {sigma}; give a finite number >= 0")
        if sigma == 0.0:
            return as_given(pixels * unit, image), DictionaryInfo(0.0, False, 0, 0.0, 1.0)
        level = self._level(pixels) if sigma is None else sigma / unit
        if sigma is None and data_range is None and level > 1.0:
            raise InputError(
                f"{name}: its noise measures {level:.3g} times the range; give the data range"
            )
        result, (iterations, converged, n) = self._denoised(pixels[None], level, noise)
        info = DictionaryInfo(
            sigma=level * unit,
            estimated=sigma is None,
            n_components=self.at_level(level)[1].n_components,
            iterations=float(iterations / n),
            converged=float(converged / n),
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
        """Denoise many whole images of one noise level at once: as one by one, but faster.

        Parameters
        ----------
        images : ndarray of shape (n, h, w) or (n, h, w, channels)
        sigma : float > 0
            In the units of the images.
        data_range, noise
            As for `denoise_with_info`.

        Returns
        -------
        ndarray of the shape of ``images``
        """
        if self.patch_size is not None:
            raise ConfigError("denoise_stack is for whole images: use denoise for each of these")
        if not (np.isfinite(sigma) and sigma > 0.0):
            raise ConfigError(f"sigma is {sigma}; give a finite number > 0")
        names = [f"image {i}" for i in range(len(images))]
        pixels = [
            self._fitting(as_pixels(image, name, data_range), name)
            for image, name in zip(images, names, strict=True)
        ]
        unit = unit_of(images, data_range)
        result, _ = self._denoised(np.stack(pixels), sigma / unit, noise)
        return as_given(result * unit, images)

    def component_images(self, count: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return pre-images two standard deviations to either side of the mean.

        Parameters
        ----------
        count : int >= 0
            Leading components shown, of the noise level in the middle.

        Returns
        -------
        below, above : ndarray of shape (count, h, w, channels)
            On the scale where the range is 1; of patches, without their mean.
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

        Raises
        ------
        InputError
            If the file cannot be written.
        """
        save_dictionary(path, self)

    @classmethod
    def load(cls, path: str | Path, *, n_jobs: int | None = None) -> DictionaryDenoiser:
        """Read a model that `save` wrote.

        Raises
        ------
        ModelFileError
            If the file is missing, damaged, or holds another kind of model.
        """
        model = load_dictionary(cls, path)
        model.n_jobs = n_jobs
        return model

    def check_parameters(self) -> None:
        """Refuse parameters that are out of their range, by a `ConfigError`."""
        for name, least, number in (
            ("n_components", 1, self.n_components),
            ("patch_size", 2, self.patch_size),
            ("stride", 1, self.stride),
            ("max_examples", FEWEST, self.max_examples),
        ):
            if number is not None and not (isinstance(number, int) and number >= least):
                raise ConfigError(f"{name} is {number!r}; give a whole number >= {least}")
        for name, value in (("bandwidth", self.bandwidth), ("sigma", self.sigma)):
            if value is not None and not (np.isfinite(value) and value > 0.0):
                raise ConfigError(f"{name} is {value!r}; give a finite number > 0")
        if not (np.isfinite(self.examples_sigma) and self.examples_sigma >= 0.0):
            raise ConfigError(f"examples_sigma is {self.examples_sigma!r}; give a number >= 0")
        if self.patch_size and self.stride and self.stride > self.patch_size:
            raise ConfigError(
                f"stride is {self.stride}, wider than patches of {self.patch_size}, so pixels "
                "would be missed: give a smaller stride"
            )

    def _fitting(self, pixels: Matrix, name: str) -> Matrix:
        """Return the pixels if the examples say something about them."""
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
        """Measure the noise level of an image on the scale where the range is 1."""
        if self.patch_size is None:
            return self.level_.of_rows(pixels.reshape(1, -1))
        channels = np.moveaxis(pixels, -1, 0)
        levels = [estimate_noise(channel, data_range=1.0).sigma for channel in channels]
        return max(float(np.sqrt(np.mean(np.square(levels)))), LOWEST)

    def at_level(self, level: float) -> tuple[LevelChoice, KernelSubspace]:
        """Return what was chosen for the nearest noise level, by ratio, where the range is 1."""
        ratios = [abs(np.log(level / choice.level)) for choice in self.choices_]
        nearest = int(np.argmin(ratios))
        return self.choices_[nearest], self.subspaces_[nearest]

    def _denoised(self, stack: Matrix, level: float, noise: str) -> tuple[Matrix, Course]:
        """Denoise images (n, h, w, channels), one alone in patches.

        Returned beside them: how many steps were taken, how many pre-images converged, and how
        many there were.
        """
        if noise not in ("gaussian", "impulse"):
            raise ConfigError(f"noise is {noise!r}; a dictionary knows 'gaussian' and 'impulse'")
        course = np.zeros(3, dtype=np.int64)

        def rows(subspace: KernelSubspace, noisy: Matrix) -> Matrix:
            found = self._pre_images(subspace, noisy)
            course[:] += found.iterations.sum(), found.converged.sum(), len(noisy)
            return found.points

        def once(subspace: KernelSubspace, stack: Matrix) -> Matrix:
            if self.patch_size is None:
                return rows(subspace, stack.reshape(len(stack), -1)).reshape(stack.shape)
            stride = self.stride or max(self.patch_size // 4, 1)
            return over_patches(partial(rows, subspace), stack[0], self.patch_size, stride)[None]

        found = once(self.at_level(level)[1], stack)
        if noise == "impulse":
            # Once the wildest pixels count for little, about half of the noise is left.
            choice, subspace = self.at_level(level / 2.0)
            spread = max(float(np.sqrt(choice.error)), LOWEST)
            found = without_outliers(partial(once, subspace), stack, found, spread)
        return found, course

    def _pre_images(self, subspace: KernelSubspace, rows: Matrix) -> PreImages:
        T = subspace.project(rows, n_jobs=self.n_jobs)
        return fixed_point(
            subspace, T, rows, tolerance=TOLERANCE, max_iter=MAX_ITER, n_jobs=self.n_jobs
        )
