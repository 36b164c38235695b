"""Kernels that know their rows to be images: seen at a resolution, smoothed, or part by part.

A row holds the pixels of one image, row of the image after row. Kernels combine:
``SmoothedImage(OverRegions(Polynomial(3), 4, 4, 2, 2), 4, 4, 0.75)`` is the sum, over the parts
of smoothed images, of local correlations of three pixels.
"""

# Equations are those of Scholkopf, Smola and Muller (1996), MPI technical report 44.
# What `against`, `diagonal`, `describe` and `is_psd` promise stands on Kernel.
# ruff: noqa: D102
from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import DTypeLike

from kpca_apps.engine.kernels import Kernel, KernelRows, LinearlyMapped, Wrapped
from kpca_apps.engine.kernels.base import WeightedGradient, as_integer, as_number
from kpca_apps.papers.data import Labels
from kpca_apps.system.arrays import Matrix, Values
from kpca_apps.system.blas import one_blas_thread

# Pixels along a side that may be sampled or smoothed: the map of a side is a dense matrix, made in
# seconds for so many, and in minutes for three times as many.
LONGEST_SIDE = 2048

# Points of comparison for each pixel along a side, at most: between pixels an image is linear, so
# that more of them add next to nothing.
FINEST = 4


class _ImageMap(LinearlyMapped):
    """A linear map of images that acts on their rows and columns one after the other."""

    height: int
    width: int

    @property
    def gains_from_centring(self) -> bool | None:
        return None  # An image is what it is: its pixels stay where they are.

    @abstractmethod
    def _factors(self) -> tuple[Matrix, Matrix]:
        """Return R (r, height) and C (c, width); an image F becomes R F C'."""

    def map_rows(self, X: Matrix) -> Matrix:
        _check_pixels(X, self.height, self.width)
        R, C = self._factors()
        # Values too large are reported by whoever uses them, with the name of the kernel.
        with np.errstate(over="ignore", invalid="ignore"):
            mapped: Matrix = R @ X.reshape(len(X), self.height, self.width) @ C.T
        return mapped.reshape(len(X), -1)

    def pull_back(self, G: Matrix, d: int) -> Matrix:
        R, C = self._factors()
        gradients: Matrix = R.T @ G.reshape(len(G), len(R), len(C)) @ C
        return gradients.reshape(len(G), -1)

    def _check(self) -> None:
        self._require_kernel()
        self._set(height=as_integer("height", self.height, at_least=1))
        self._set(width=as_integer("width", self.width, at_least=1))
        if max(self.height, self.width) > LONGEST_SIDE:
            raise ValueError(
                f"height and width must be at most {LONGEST_SIDE}: make the images smaller first."
            )


@dataclass(frozen=True)
class ImageIntensity(_ImageMap):
    """A kernel of images as intensity distributions, compared at q x q points of one's choice.

    It stays of one size as q changes, and for height = width = q is that of the product of pixels.
    ``resolution``, q, is at most 4 sqrt(height width), or of a signal 4 for each of its pixels.
    """

    # A row becomes a function f on the unit square, linear between the centres of pixels, and the
    # inner product the midpoint sum of the integral, with Polynomial(d) (f_x.f_y)^d:
    #     height width / q^2  sum_ij f_x((i - 1/2)/q, (j - 1/2)/q) f_y((i - 1/2)/q, (j - 1/2)/q).
    # Eq. 66-68 and B.5; eq. 68 is the sum, the factor before it is ours.
    kernel: Kernel
    height: int
    width: int
    resolution: int

    def __post_init__(self) -> None:
        self._check()
        self._set(resolution=as_integer("resolution", self.resolution, at_least=1))
        # A side of one pixel has one point, so that a signal has all the points of its long side.
        short, long = sorted((self.height, self.width))
        most = FINEST * long if short == 1 else math.isqrt(FINEST**2 * short * long)
        if self.resolution > most:
            raise ValueError(
                f"resolution must be at most {most} for images of {self.height} x {self.width}: "
                "between pixels they are linear, and more points add nothing."
            )

    def _factors(self) -> tuple[Matrix, Matrix]:
        return _sampling(self.height, self.resolution), _sampling(self.width, self.resolution)

    def describe(self) -> str:
        return (
            f"{self.kernel.describe()} of {self.height} x {self.width} images at "
            f"{self.resolution} x {self.resolution} points"
        )


@dataclass(frozen=True)
class SmoothedImage(_ImageMap):
    """A kernel of smoothed images: the product of pixels x.y becomes sum_uv x_u c(u, v) y_v.

    ``sigma`` is the standard deviation of c in pixels: s sqrt(2) for images filtered with a
    Gaussian of width s before they are compared; as it goes to 0 this is the kernel inside.
    """

    # c is the Gaussian of the distance between pixels u and v, scaled so that far from the border
    # the weights of a pixel sum to 1 (eq. 70). Along a side of one pixel nothing is smoothed: such
    # a row is a signal.
    kernel: Kernel
    height: int
    width: int
    sigma: float

    def __post_init__(self) -> None:
        self._check()
        self._set(sigma=as_number("sigma", self.sigma, above=0.0))

    def _factors(self) -> tuple[Matrix, Matrix]:
        return _smoothing_root(self.height, self.sigma), _smoothing_root(self.width, self.sigma)

    def describe(self) -> str:
        return (
            f"{self.kernel.describe()} of {self.height} x {self.width} images smoothed over "
            f"{self.sigma:g} pixels"
        )


@dataclass(frozen=True)
class OverRegions(Wrapped):
    """The sum of a kernel over square regions of an image: k = sum_i k(x_i, y_i).

    With `Polynomial(d)` inside: correlations of d pixels, but only of pixels in one region. They
    begin every ``step`` pixels, at most ``size``, and must end with the image (eq. 71-72).
    """

    kernel: Kernel
    height: int
    width: int
    size: int
    step: int

    def __post_init__(self) -> None:
        self._require_kernel()
        for name in ("height", "width", "size", "step"):
            self._set(**{name: as_integer(name, getattr(self, name), at_least=1)})
        left = [(side - self.size) % self.step for side in (self.height, self.width)]
        if self.size > min(self.height, self.width) or self.step > self.size or any(left):
            raise ValueError(
                f"Regions of side {self.size} every {self.step} pixels do not cover images of "
                f"{self.height} x {self.width}: choose step <= size that divides what is left."
            )

    def against(self, Z: Matrix, dtype: DTypeLike = np.float64) -> KernelRows:
        _check_pixels(Z, self.height, self.width)
        parts = [(region, self.kernel.against(Z[:, region], dtype)) for region in self.regions()]

        def rows(X: Matrix) -> Values:
            _check_pixels(X, self.height, self.width)
            (region, inner), *others = parts
            total = inner(X[:, region])
            for region, inner in others:
                total += inner(X[:, region])
            return total

        return rows

    def diagonal(self, X: Matrix) -> Matrix:
        _check_pixels(X, self.height, self.width)
        total = np.zeros(len(X))
        for region in self.regions():
            total += self.kernel.diagonal(X[:, region])
        return total

    def regions(self) -> list[Labels]:
        """Return the pixel numbers of each region."""
        pixels = np.arange(self.height * self.width).reshape(self.height, self.width)
        tops = range(0, self.height - self.size + 1, self.step)
        lefts = range(0, self.width - self.size + 1, self.step)
        side = self.size
        return [pixels[i : i + side, j : j + side].ravel() for i in tops for j in lefts]

    def describe(self) -> str:
        return (
            f"sum over {self.size} x {self.size} regions, every {self.step}, of "
            f"{self.height} x {self.width} images of {self.kernel.describe()}"
        )

    def weighted_gradient(self, Z: Matrix) -> WeightedGradient:
        parts = [(part, self.kernel.weighted_gradient(Z[:, part])) for part in self.regions()]

        def rows(X: Matrix, C: Matrix) -> Matrix:
            gradients = np.zeros_like(X)
            for part, inner in parts:
                gradients[:, part] += inner(X[:, part], C)
            return gradients

        return rows

    def diagonal_gradient(self, X: Matrix) -> Matrix:
        gradients = np.zeros_like(X)
        for part in self.regions():
            gradients[:, part] += self.kernel.diagonal_gradient(X[:, part])
        return gradients


def _sampling(side: int, q: int) -> Matrix:
    """Return the weights (q, side) of linear interpolation at q midpoints, times sqrt(side / q).

    Beyond the centres of the outermost pixels the image is constant; along a side of one pixel it
    is so everywhere, and one point with the weight 1 stands for q.
    """
    if side == 1:
        return np.ones((1, 1))
    place = np.clip((np.arange(q) + 0.5) * side / q - 0.5, 0.0, side - 1.0)
    left = np.minimum(place.astype(np.intp), max(side - 2, 0))
    share = place - left
    weights = np.zeros((q, side))
    weights[np.arange(q), left] = 1.0 - share
    weights[np.arange(q), np.minimum(left + 1, side - 1)] += share
    return weights * math.sqrt(side / q)


@lru_cache(maxsize=4)
def _smoothing_root(side: int, sigma: float) -> Matrix:
    """Return the symmetric root (side, side) of exp(-(i - j)^2 / (2 sigma^2)) over its mass.

    Made once for all blocks of rows, and not to be written to.
    """
    if side == 1:
        return np.ones((1, 1))
    lag = np.arange(side, dtype=np.float64)
    # The sum over all integers; from here on it is the integral to the last digit.
    mass = math.sqrt(2.0 * math.pi) * sigma
    # Next to a very small sigma every distance is endless, and its weight 0.
    with np.errstate(over="ignore"), one_blas_thread():
        if sigma < 4.0:
            mass = float(np.exp(-0.5 * (np.arange(-200, 201) / sigma) ** 2).sum())
        values, vectors = np.linalg.eigh(np.exp(-0.5 * ((lag[:, None] - lag) / sigma) ** 2) / mass)
        root: Matrix = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    root.setflags(write=False)
    return root


def _check_pixels(X: Matrix, height: int, width: int) -> None:
    if X.shape[1] != height * width:
        raise ValueError(
            f"Images of {height} x {width} have {height * width} pixels, but the rows have "
            f"{X.shape[1]} columns."
        )
