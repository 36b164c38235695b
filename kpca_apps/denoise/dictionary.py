"""Denoising with a dictionary: kernel PCA of clean examples, projection, pre-image.

Examples are whole small images of one size (digits, glyphs, aligned faces), or patches of larger
ones. A noisy image is projected on their leading components in feature space, and the pre-image of
the projection is the result [1]_; overlapping patches are averaged. For photographs at large the
image's own groups of patches are better by decibels.

Bandwidth and number of components are chosen by held-out reconstruction, for each noise level, for
both grow as the noise falls: a fifth of the examples is held out, noise of a known level is added
to them, and what denoises them best is taken. Where the examples are noisy themselves, with
deviation s, no clean held-out image exists. Then more noise e ~ N(0, s^2) is drawn, y + a e is
denoised, and the result is compared with y - e / a: the two noises are uncorrelated, so the
comparison ranks results as the clean image would [2]_.

The noise level of an image too small to measure it on is what the examples cannot explain: outside
their leading principal components lies little of a clean image and most of white noise, whose
energy there is sigma^2 times the number of dimensions left. Against impulse noise, pixels far from
their denoised value are replaced by it, in part or wholly, and the image is denoised again, a few
times over [3]_: iteratively reweighted least squares with the weights of Welsch [4]_, where least
squares would let a few wild pixels pull the whole projection.

References
----------
.. [1] Mika, Scholkopf, Smola, Muller, Scholz and Ratsch (1998), Kernel PCA and de-noising in
   feature spaces, NIPS 11.
.. [2] Pang, Zheng, Quan and Ji (2021), Recorrupted-to-recorrupted: unsupervised deep learning for
   image denoising, CVPR.
.. [3] Takahashi and Kurita (2002), Robust de-noising by kernel PCA, ICANN, 739-744.
.. [4] Holland and Welsch (1977), Robust regression using iteratively reweighted least-squares,
   Communications in Statistics A 6, 813-827.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Self

import numpy as np
from msgspec import Meta
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from scipy.linalg import eigh

from kpca_apps.denoise.image import dtype_range
from kpca_apps.denoise.noise.level import estimate_noise
from kpca_apps.denoise.noise.model import DenoiseInfo
from kpca_apps.denoise.passes.one_pass import patch_grid
from kpca_apps.engine.exact import fit_exact
from kpca_apps.engine.kernels import RBF
from kpca_apps.engine.landmarks import uniform_landmarks
from kpca_apps.engine.preimage.fixed_point import fixed_point
from kpca_apps.engine.seeding import seeded_generator
from kpca_apps.engine.subspace import KernelSubspace
from kpca_apps.errors import ConfigError, InputError
from kpca_apps.system.blas import one_blas_thread
from kpca_apps.system.model_files import load_model_file, save_model_file

__all__ = ["DictionaryDenoiser"]

Matrix = NDArray[np.float64]
Course = NDArray[np.int64]
# A noise level, held-out rows with such noise, what their denoised form is compared with, and the
# noise of that comparison as a mean square.
Trial = tuple[float, Matrix, Matrix, float]

# A thousandth of the kernel's width is far below the noise; narrow kernels creep on for long.
TOLERANCE, MAX_ITER = 1e-3, 100
TRIED_ITER = 50  # steps while bandwidths are tried
LEVELS = (0.125, 0.25, 0.5, 1.0)  # tried where no level is given, in deviations of the pixels
# Bandwidths tried first, in mean squared distances between examples; the row is continued while
# an end of it is best at some level, but not beyond the nearest example alone, and linear PCA.
FACTORS, NARROWEST, WIDEST = (1.0, 2.0, 4.0), 2.0**-4, 2.0**6
LARGEST_FIT, LARGEST_HELD_OUT, MOST_DIRECTIONS = 1000, 150, 256
INDIFFERENT = 0.01  # relative difference of errors that is not worth more components
# a of the module's text; smaller: an input nearer to the examples, a noisier comparison.
RECORRUPTION = 0.5
LOWEST = 1e-3  # least noise level distinguished from none, on the scale where the range is 1
WELSCH = 2.985  # width of the weights in deviations: 95 % efficient where no pixel is wild [4]_
ROUNDS = 8  # the first halve the error; after these it changes by a few per cent
FEWEST = 5  # examples below which nothing can be held out
BAND = 4608  # patches held at a time, at least one row of them
KIND = "denoise-dictionary"
LARGEST = 1e100  # modulus above which no number of a fitted dictionary lies


@dataclass(frozen=True)
class LevelChoice:
    """What held-out reconstruction chose for one noise level."""

    level: Annotated[float, Meta(gt=0)]  # in the units of the examples
    bandwidth: float  # c of exp(-|x - y|^2 / c)
    components: int
    error: Annotated[float, Meta(ge=0)]  # mean square of a pixel; an estimate for noisy examples


class DictionaryDenoiser:
    """Kernel PCA denoising of images that resemble its examples.

    Parameters
    ----------
    n_components : int >= 1, optional
        Components projected on. None: what denoises held-out examples best at the noise level.
    bandwidth : float > 0, optional
        c of the kernel ``exp(-|x - y|^2 / c)``, in squared units of the images; about the
        number of pixels times the squared spread of one. None: what denoises held-out examples
        best.
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
            What counts as 1 inside. None: the range of an unsigned dtype of 8 or 16 bits, else 1.
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
        pixels = [_as_pixels(x, n, data_range) for x, n in zip(images, names, strict=True)]
        if not pixels:
            raise InputError(f"there are no images to learn from: give at least {FEWEST}")
        unit = unit_of(np.asarray(images[0]), data_range)
        rng = seeded_generator(self.random_state)
        rows, shape = _examples_from(pixels, names, self.patch_size, self.max_examples, rng)
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
            Noise level in the units of the image; 0 returns it as it is. None: measured; of a
            whole small image, as what it has outside the leading principal components of the
            examples beyond what they have there.
        data_range : float, optional
            As for `fit`.
        noise : {"gaussian", "impulse"}
            For "impulse" the image is denoised nine times, and each time the pixels far from
            their denoised value count less; ``sigma`` is then the root mean square of the change
            that the impulses make.
        name : str
            What errors call the image.

        Returns
        -------
        denoised : ndarray of the image's shape
            float64 for a float64 image, else float32; in the image's units, an integer image's
            values within its dtype's range.
        info : DenoiseInfo
            With n_components, iterations and converged of the dictionary.

        Raises
        ------
        InputError
            If the image cannot be used or does not fit the examples.
        ConfigError
            If ``sigma`` is negative or not finite, or ``noise`` is neither kind.
        """
        image = np.asarray(image)
        pixels = self._fitting(_as_pixels(image, name, data_range), name)
        unit = unit_of(image, data_range)
        if sigma is not None and not (np.isfinite(sigma) and sigma >= 0.0):
            raise ConfigError(f"sigma is {sigma}; give a finite number >= 0")
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
            whiteness=1.0,
            data_range=unit,
            n_components=n_components,
            iterations=float(course[0] / course[2]),
            converged=float(course[1] / course[2]),
        )
        return _as_given(result[0] * unit, image), info

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
            self._fitting(_as_pixels(image, name, data_range), name)
            for image, name in zip(images, names, strict=True)
        ]
        unit = unit_of(images, data_range)
        result, _ = self._denoised(np.stack(pixels), sigma / unit, noise)
        return _as_given(result * unit, images)

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
                f"{name}: is {_size_text(pixels.shape)}, but the model learned whole images of "
                f"{_size_text(self.shape_)}: use images of that size, or fit with --patch-size N"
            )
        if pixels.shape[2] != self.shape_[2]:
            raise InputError(
                f"{name}: has {pixels.shape[2]} channels, but the model learned from images with "
                f"{self.shape_[2]}: fit a model on such images"
            )
        if self.patch_size is not None:
            _require_room(pixels, self.patch_size, name)
        return pixels

    def _level(self, pixels: Matrix) -> float:
        """Measure the noise level of an image on the scale where the range is 1."""
        if self.patch_size is None:
            return self.level_.of_rows(pixels.reshape(1, -1))
        channels = np.moveaxis(pixels, -1, 0)
        levels = [estimate_noise(channel, data_range=1.0).sigma for channel in channels]
        return max(float(np.sqrt(np.mean(np.square(levels)))), LOWEST)

    def at_level(self, level: float) -> tuple[LevelChoice, KernelSubspace]:
        """Return what was chosen for the nearest noise level, by ratio, where the range is 1.

        Parameters
        ----------
        level : float
            Noise level, on the scale where the range of values is 1.

        Returns
        -------
        tuple of LevelChoice and KernelSubspace
        """
        ratios = [abs(np.log(level / choice.level)) for choice in self.choices_]
        nearest = int(np.argmin(ratios))
        return self.choices_[nearest], self.subspaces_[nearest]

    def _denoised(self, stack: Matrix, level: float, noise: str) -> tuple[Matrix, Course]:
        """Denoise images (n, h, w, channels), one alone in patches."""
        # Fixed-point steps, pre-images that converged, and their number.
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
            denoise = partial(of_rows, subspace)
            return over_patches(denoise, stack[0], self.patch_size, stride)[None]

        found = of_images(self.at_level(level)[1], stack)
        if noise == "impulse":
            # Once the wildest pixels count for little, about half of the noise is left.
            choice, subspace = self.at_level(level / 2.0)
            spread = max(float(np.sqrt(choice.error)), LOWEST)
            found = without_outliers(partial(of_images, subspace), stack, found, spread)
        return found, course


def choose(
    examples: Matrix,
    rng: np.random.Generator,
    *,
    sigma: float | None = None,
    examples_sigma: float = 0.0,
    bandwidth: float | None = None,
    n_components: int | None = None,
    n_jobs: int | None = None,
) -> tuple[LevelChoice, ...]:
    """Choose bandwidth and number of components, where not given, for examples (n, d).

    One choice for each level, increasing: `sigma`, or several if None (`LEVELS`); that of noisy
    examples is about their own.
    """
    n = len(examples)
    order = rng.permutation(n)
    held_out, rest = np.split(order, [min(max(n // 5, 1), LARGEST_HELD_OUT)])
    fitted = examples[rest[uniform_landmarks(len(rest), LARGEST_FIT, rng)]]
    if sigma is None:
        spread = float(np.sqrt(examples.var(axis=0).mean())) or 1.0
        levels = [spread * level for level in LEVELS]
    else:
        levels = [sigma]
    trials = _trials(examples[held_out], rng, levels, examples_sigma)
    if n_components is None:
        largest = max(3 * len(fitted) // 4, 1)
        counts = [*(2**k for k in range(1, 20) if 2**k < largest), largest]
    else:
        counts = [n_components]

    def errors_at(c: float) -> Matrix:
        return _errors(c, fitted, trials, counts, n_jobs)

    if bandwidth is None:
        scale = 2.0 * float(examples.var(axis=0).sum()) or 1.0
        errors = _search(lambda factor: errors_at(factor * scale))
        errors = {factor * scale: by_level for factor, by_level in errors.items()}
    else:
        errors = {bandwidth: errors_at(bandwidth)}
    # Components are chosen with at most 1,000 examples, and their number raised in proportion.
    raised = n / len(fitted) if n_components is None else 1.0
    chosen = []
    for i, (level, _, _, inherent) in enumerate(trials):
        c = min(errors, key=lambda c: errors[c][i].min())
        # The fewest components that do as well: errors are flat.
        first = int((errors[c][i] <= (1.0 + INDIFFERENT) * errors[c][i].min()).argmax())
        error = max(float(errors[c][i][first]) - inherent, 0.0)
        chosen.append(LevelChoice(level, float(c), round(raised * counts[first]), error))
    return tuple(chosen)


def _search(errors_at: Callable[[float], Matrix]) -> dict[float, Matrix]:
    """Return the errors at factors among which each level has its best, to a root of 2."""
    errors = {factor: errors_at(factor) for factor in FACTORS}
    while True:
        best, low, high = _best(errors), min(errors), max(errors)
        ends = {low: low / 2.0, high: high * 2.0}
        further = [f for end, f in ends.items() if end in best and NARROWEST <= f <= WIDEST]
        if not further:
            break
        errors |= {factor: errors_at(factor) for factor in further}
    between = sorted({f * step for f in _best(errors) for step in (0.5**0.5, 2.0**0.5)})
    return errors | {factor: errors_at(factor) for factor in between}


def _best(errors: dict[float, Matrix]) -> set[float]:
    """Return the factors that are best at some level."""
    levels = range(len(next(iter(errors.values()))))
    return {min(errors, key=lambda f: errors[f][i].min()) for i in levels}


def _errors(
    c: float, fitted: Matrix, trials: list[Trial], counts: list[int], n_jobs: int | None
) -> Matrix:
    """Return the mean squared errors at one bandwidth, shape ``(levels, counts)``."""
    # The iteration that finds the components starts anywhere; the same place for all bandwidths.
    subspace = fit_exact(
        RBF(1.0 / c),
        fitted,
        rng=np.random.default_rng(0),
        n_components=max(counts),
        n_jobs=n_jobs,
    )
    errors = np.empty((len(trials), len(counts)))
    for row, (_, noisy, target, _) in zip(errors, trials, strict=True):
        T = subspace.project(noisy, n_jobs=n_jobs)
        for column, q in enumerate(counts):
            part = subspace.leading(q)
            kept = np.ascontiguousarray(T[:, : part.n_components])
            found = fixed_point(
                part, kept, noisy, tolerance=TOLERANCE, max_iter=TRIED_ITER, n_jobs=n_jobs
            )
            row[column] = np.mean((found.points - target) ** 2)
    return errors


def _trials(
    held_out: Matrix, rng: np.random.Generator, levels: Sequence[float], examples_sigma: float
) -> list[Trial]:
    noise = rng.standard_normal(held_out.shape)
    if examples_sigma == 0.0:
        return [(level, held_out + level * noise, held_out, 0.0) for level in levels]
    level = examples_sigma * float(np.hypot(1.0, RECORRUPTION))
    added = examples_sigma * noise
    target = held_out - added / RECORRUPTION
    inherent = examples_sigma**2 * (1.0 + RECORRUPTION**-2)
    return [(level, held_out + RECORRUPTION * added, target, inherent)]


@dataclass(frozen=True, eq=False)
class ResidualLevel:
    """How much of a clean example lies outside the leading directions."""

    mean: Annotated[Matrix, "d", Meta(gt=-LARGEST, lt=LARGEST)]
    # Orthonormal, r at most half of d.
    directions: Annotated[Matrix, "d r", Meta(gt=-2, lt=2)]
    # Mean squared length of a held-out example outside them.
    clean_energy: Annotated[float, Meta(ge=0)]

    def validate(self) -> None:
        """Refuse as many directions as there are dimensions: nothing would lie outside."""
        if self.directions.shape[1] >= len(self.mean):
            raise ValueError(f"{self.directions.shape[1]} directions")

    @classmethod
    def fit(cls, examples: Matrix, rng: np.random.Generator, examples_sigma: float = 0.0) -> Self:
        """Learn the directions from three quarters of the examples, the energy from the rest.

        The noise of the examples themselves is taken off their energy.
        """
        order = rng.permutation(len(examples))
        rest, used = np.split(examples[order], [max(len(examples) // 4, 1)])
        used = used[:LARGEST_FIT]
        mean = used.mean(axis=0)
        r = min(examples.shape[1] // 2, len(used) // 2, MOST_DIRECTIONS)
        level = cls(mean, _leading_directions(used - mean, r), 0.0)
        noise = (examples.shape[1] - level.directions.shape[1]) * examples_sigma**2
        return cls(mean, level.directions, max(level._energy(rest) - noise, 0.0))

    def of_rows(self, rows: Matrix) -> float:
        """Return the noise level of noisy rows, at least `LOWEST`."""
        left = self.directions.shape[0] - self.directions.shape[1]
        variance = (self._energy(rows) - self.clean_energy) / left
        return float(np.sqrt(max(variance, LOWEST**2)))

    def _energy(self, rows: Matrix) -> float:
        """Return the mean squared length of rows outside the directions."""
        centred = rows - self.mean
        with one_blas_thread():
            inside = centred @ self.directions
        return float(((centred**2).sum(axis=1) - (inside**2).sum(axis=1)).mean())


def _leading_directions(centred: Matrix, r: int) -> Matrix:
    """Return the r leading principal directions, fewer where the rows span fewer."""
    if r == 0:
        return np.empty((centred.shape[1], 0))
    with one_blas_thread():
        wide = centred.shape[1] > len(centred)
        moment = centred @ centred.T if wide else centred.T @ centred
        order = len(moment)
        values, vectors = eigh(moment, subset_by_index=(order - r, order - 1))
        keep = values > 1e-12 * max(float(np.trace(moment)), np.finfo(np.float64).tiny)
        vectors = vectors[:, keep]
        if wide:
            vectors = (centred.T @ vectors) / np.sqrt(values[keep])
    return np.ascontiguousarray(vectors)


def without_outliers(
    denoise: Callable[[Matrix], Matrix], pixels: Matrix, found: Matrix, spread: float
) -> Matrix:
    """Denoise while trusting a pixel the less, the farther it is from its denoised value.

    `found` is a first result, `spread` the deviation of a sound pixel about its denoised value.
    """
    for _ in range(ROUNDS):
        weights = np.exp(-np.square((pixels - found) / (WELSCH * spread)))
        found = denoise(found + weights * (pixels - found))
    return found


def _as_pixels(image: NDArray[Any], name: str, data_range: float | None) -> Matrix:
    """Return an image as float64 on the scale where its range is 1, shape ``(h, w, channels)``."""
    image = np.asarray(image)
    if image.dtype.kind not in "buif":
        raise InputError(f"{name}: has dtype {image.dtype}; give real numbers (integer or float)")
    if image.ndim not in (2, 3) or image.size == 0:
        raise InputError(
            f"{name}: has shape {image.shape}; give one image, height x width, or height x width "
            "x channels"
        )
    pixels = np.array(image, dtype=np.float64).reshape(*image.shape[:2], -1)
    pixels /= unit_of(image, data_range)
    if not np.isfinite(pixels).all():
        row, column, _ = np.argwhere(~np.isfinite(pixels))[0]
        raise InputError(
            f"{name}: is not finite at row {row}, column {column}; replace such pixels first"
        )
    return pixels


def _examples_from(
    images: Sequence[Matrix],
    names: Sequence[str],
    patch_size: int | None,
    most: int,
    rng: np.random.Generator,
) -> tuple[Matrix, tuple[int, ...]]:
    """Return examples as rows, and the height, width and channels of one."""
    if patch_size is None:
        shape = images[0].shape
        for image, name in zip(images, names, strict=True):
            if image.shape != shape:
                raise InputError(
                    f"{name}: is {_size_text(image.shape)}, but {names[0]} is "
                    f"{_size_text(shape)}: give whole images of one size, or a patch size"
                )
        rows = np.stack([image.ravel() for image in images])
        if len(rows) > most:
            rows = rows[np.sort(rng.choice(len(rows), most, replace=False))]
    else:
        rows = _drawn_patches(images, names, patch_size, most, rng)
        shape = (patch_size, patch_size, images[0].shape[2])
        rows -= _patch_means(rows, shape[2])
    if len(rows) < FEWEST:
        raise InputError(f"too few examples to learn from ({len(rows)}): give at least {FEWEST}")
    return rows, shape


def _drawn_patches(
    images: Sequence[Matrix],
    names: Sequence[str],
    patch_size: int,
    most: int,
    rng: np.random.Generator,
) -> Matrix:
    """Draw patches, each of all images' patches as likely as any other, shape ``(n, pixels)``."""
    windows = []
    for image, name in zip(images, names, strict=True):
        _require_room(image, patch_size, name)
        if image.shape[2] != images[0].shape[2]:
            raise InputError(
                f"{name}: has {image.shape[2]} channels, but {names[0]} has "
                f"{images[0].shape[2]}: fit one model for grey and one for colour images"
            )
        windows.append(_windows(image, patch_size))
    ends = np.cumsum([w.shape[0] * w.shape[1] for w in windows])
    total = int(ends[-1])
    chosen = np.sort(rng.choice(total, size=min(most, total), replace=False))
    which = np.searchsorted(ends, chosen, side="right")
    rows = [
        windows[i][np.divmod(k - (ends[i - 1] if i else 0), windows[i].shape[1])].ravel()
        for i, k in zip(which.tolist(), chosen.tolist(), strict=True)
    ]
    return np.stack(rows)


def over_patches(
    function: Callable[[Matrix], Matrix], image: Matrix, patch_size: int, stride: int
) -> Matrix:
    """Apply a function to all patches (n, pixels) of an image (h, w, channels), and average.

    Patches are given without their means. They are held a band at a time.
    """
    sums, counts = np.zeros(image.shape), np.zeros((*image.shape[:2], 1))
    windows, channels = _windows(image, patch_size), image.shape[2]
    grid, columns = (patch_grid(side, patch_size, stride) for side in image.shape[:2])
    step = max(BAND // len(columns), 1)
    for rows in (grid[first : first + step] for first in range(0, len(grid), step)):
        patches = windows[np.ix_(rows, columns)].reshape(len(rows) * len(columns), -1)
        means = _patch_means(patches, channels)
        block = (function(patches - means) + means).reshape(
            len(rows), len(columns), patch_size, patch_size, channels
        )
        for i in range(patch_size):
            for j in range(patch_size):
                where = np.ix_(rows + i, columns + j)
                sums[where] += block[:, :, i, j]
                counts[where] += 1.0
    return np.asarray(sums / counts)


def _require_room(image: Matrix, patch_size: int, name: str) -> None:
    """Refuse an image smaller than a patch."""
    if min(image.shape[:2]) < patch_size:
        raise InputError(
            f"{name}: is {_size_text(image.shape)}, smaller than a patch of {patch_size} x "
            f"{patch_size}: use a smaller patch size"
        )


def _size_text(shape: tuple[int, ...]) -> str:
    """Return a size for people."""
    text = f"{shape[0]} x {shape[1]} pixels"
    return text if shape[2] == 1 else f"{text} with {shape[2]} channels"


def _windows(image: Matrix, patch_size: int) -> Matrix:
    """Return all patches without copying, shape ``(rows, columns, p, p, channels)``."""
    windows = sliding_window_view(image, (patch_size, patch_size), axis=(0, 1))
    return np.moveaxis(windows, 2, -1)


def _patch_means(patches: Matrix, channels: int) -> Matrix:
    """Return each patch's mean in each channel, repeated over its pixels, shape ``(n, pixels)``."""
    by_channel = patches.reshape(len(patches), -1, channels).mean(axis=1)
    return np.tile(by_channel, patches.shape[1] // channels)


def unit_of(image: NDArray[Any], data_range: float | None) -> float:
    """Return the value that counts as 1: the range given, that of the dtype, or 1."""
    if data_range is None:
        return dtype_range(image.dtype) or 1.0
    if not (np.isfinite(data_range) and data_range > 0.0):
        raise ConfigError(f"data_range is {data_range}; give a finite number > 0")
    return data_range


def _as_given(values: Matrix, image: NDArray[Any]) -> NDArray[np.floating[Any]]:
    """Return values in the shape and range of an image: float64 for float64, else float32."""
    out = values.reshape(image.shape)
    if image.dtype.kind in "ui":
        limits = np.iinfo(image.dtype)
        out = np.clip(out, limits.min, limits.max)
    return out.astype(np.float64 if image.dtype == np.float64 else np.float32)


@dataclass(frozen=True)
class Parameters:
    """Parameters of a dictionary that its noise levels and patches depend on."""

    n_components: Annotated[int, Meta(ge=1)] | None
    bandwidth: Annotated[float, Meta(gt=0)] | None
    patch_size: Annotated[int, Meta(ge=2)] | None
    stride: Annotated[int, Meta(ge=1)] | None
    sigma: Annotated[float, Meta(gt=0)] | None
    examples_sigma: Annotated[float, Meta(ge=0)]


@dataclass(frozen=True, eq=False)
class DictionaryState:
    """What a dictionary learned; its examples are part of it, once for all noise levels."""

    parameters: Parameters
    shape: tuple[int, ...]
    choices: tuple[LevelChoice, ...]
    subspaces: tuple[KernelSubspace, ...]
    level: ResidualLevel

    def validate(self) -> None:
        """Refuse parts that do not fit together here, before they fail in a user's run."""
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
    """Return whether a subspace can have been fitted here, and no square in it overflows."""
    kernel = subspace.kernel
    arrays = (subspace.points, subspace.weights, subspace.offset, subspace.mean_weights)
    return (
        isinstance(kernel, RBF)
        and kernel.gamma < LARGEST
        and bool((subspace.variances >= 0.0).all())
        and all(np.abs(array).max(initial=0.0) < LARGEST for array in arrays)
    )
