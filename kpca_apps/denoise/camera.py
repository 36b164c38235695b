"""Noise from a camera: shared by neighbouring pixels, so made white before it is taken out.

Demosaicking and JPEG make noise smooth: it is strong at low frequencies, where white-noise
denoising leaves it as blotches, and weak at high ones, where detail is then wiped out. The
spectrum of the noise is measured in flat patches of each plane; dividing the plane's spectrum by
it makes the noise white, at the price of a sharpened image. That is denoised, and the spectrum is
multiplied back. Before all that, brightness is bent so that noise is as strong in the dark as in
the light.

Colours, whose noise is mostly of low frequency and whose detail is little, are whitened wholly.
Luminance is whitened in part only: sharpening makes edges ring, so that patches have fewer alike,
and costs more there than what is left of the correlation.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.fft import dctn, idctn

from kpca_apps.denoise.colour import OPPONENT, from_opponent, to_opponent
from kpca_apps.denoise.noise import WIDTH
from kpca_apps.denoise.noise_spectrum import (
    COLOUR_GROWTH,
    LUMINANCE_GROWTH,
    noise_by_brightness,
    noise_spectrum,
)
from kpca_apps.denoise.settings import Settings
from kpca_apps.denoise.white import Denoised, clean_planes

__all__ = ["camera_levels", "denoise_camera"]

# Least gain of a frequency, the strongest being 1: below, noise counts as stronger than it is
# rather than have the image's finest detail (and rounding) blown up.
LEAST_GAIN = 0.25
# Power of the spectrum by which luminance and colours are divided: 1 whitens wholly.
WHITENED = (0.3, 1.0, 1.0)
# Level of the noise to denoise at, in terms of its strongest frequency: what is left of the
# correlation in luminance is stronger than on average at the frequencies that matter, and colour
# noise, once JPEG has been at it, is stronger still at frequencies too low to measure.
LEVEL = (0.8, 1.25, 1.25)
# Brightness is bent on so many knots, and as far beyond the image's as denoised values may lie.
KNOTS, MARGIN = 1024, 256.0


def denoise_camera(
    planes: NDArray[np.float32], sigma: float | None, settings: Settings
) -> Denoised:
    """Denoise planes whose noise is correlated, by whitening it.

    Parameters
    ----------
    planes : ndarray of shape (1, h, w) or (3, h, w)
        Grey, or red, green and blue, on the scale 0..255.
    sigma : float or None
        Deviation of the noise, all frequencies together. The share of each frequency and plane is
        measured in any case; None takes the measured total as well.
    settings : Settings

    Returns
    -------
    Denoised

    Notes
    -----
    Whitening a signal's noise before working on it is classical (North 1943; Van Trees 1968,
    "Detection, Estimation, and Modulation Theory" I, section 4.3). The spectra and their
    references: `kpca_apps.denoise.noise_spectrum`.

    Examples
    --------
    >>> noise = np.random.default_rng(0).standard_normal((1, 96, 97)).astype(np.float32)
    >>> smooth = 100 + 10 * (noise[..., 1:] + noise[..., :-1])
    >>> cleaned = denoise_camera(smooth, None, Settings(quality="fast")).planes
    >>> bool(smooth.std() > 14), bool(cleaned.std() < 2)
    (True, True)
    """
    bent = _Bent(planes)
    opponent = _bent_opponent(planes, bent)
    spectra = _spectra(opponent)
    if sigma is not None:
        total = np.sqrt(np.mean(np.square(spectra)))
        spectra = spectra * (sigma / total) if total > 0 else np.full_like(spectra, sigma)
    cleaned = _clean_whitened(opponent, spectra, settings)
    if len(planes) == 3:
        cleaned = from_opponent(cleaned)
    return Denoised(bent.back(cleaned), _levels(spectra))


def camera_levels(planes: NDArray[np.float32]) -> tuple[float, ...]:
    """Return the deviation of the noise, as it is taken out, in each plane.

    Parameters
    ----------
    planes : ndarray of shape (1, h, w) or (3, h, w)
        As for `denoise_camera`.

    Returns
    -------
    tuple of float
    """
    return _levels(_spectra(_bent_opponent(planes, _Bent(planes))))


def _bent_opponent(planes: NDArray[np.float32], bent: _Bent) -> NDArray[np.float32]:
    """Return planes with noise as strong everywhere: luminance and colours, or grey."""
    there = bent.there(planes)
    return to_opponent(there) if len(planes) == 3 else there


def _spectra(opponent: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the deviation of the noise in each plane at each frequency."""
    growths = (LUMINANCE_GROWTH, COLOUR_GROWTH, COLOUR_GROWTH)
    return np.array([noise_spectrum(p, g) for p, g in zip(opponent, growths, strict=False)])


def _levels(spectra: NDArray[np.float64]) -> tuple[float, ...]:
    """Return the deviation in each channel, all frequencies together."""
    levels = np.sqrt(np.mean(np.square(spectra), axis=(1, 2)))
    if len(levels) == 3:
        levels = np.sqrt(np.square(OPPONENT).T @ np.square(levels))
    return tuple(levels.tolist())


class _Bent:
    """A bending of brightness that makes noise measured in luminance as strong everywhere.

    Its slope is the noise's root mean square over its deviation at that brightness (the classical
    variance-stabilising transform, with a measured curve).
    """

    def __init__(self, planes: NDArray[np.float32]) -> None:
        grey = planes[0] if len(planes) == 1 else planes.mean(axis=0)
        brightness, deviation = noise_by_brightness(grey)
        low, high = float(planes.min()) - MARGIN, float(planes.max()) + MARGIN
        self.values = self.bent = np.linspace(low, high, KNOTS)
        if deviation.min() > 0:
            usual = np.sqrt(np.mean(np.square(deviation)))
            slope = usual / np.interp(self.values, brightness, deviation)
            areas = np.diff(self.values) * (slope[1:] + slope[:-1]) / 2.0
            self.bent = low + np.concatenate([[0.0], np.cumsum(areas)])

    def there(self, planes: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return planes bent, as a new array."""
        bent = np.empty_like(planes)
        for out, plane in zip(bent, planes, strict=True):
            out[...] = np.interp(plane, self.values, self.bent)
        return bent

    def back(self, planes: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return planes of which `there` made these, overwriting these."""
        for plane in planes:
            plane[...] = np.interp(plane, self.bent, self.values)
        return planes


def _clean_whitened(
    planes: NDArray[np.float32], spectra: NDArray[np.float64], settings: Settings
) -> NDArray[np.float32]:
    """Return the planes (c, h, w), which are overwritten, without noise of spectra (c, 8, 8)."""
    strongest = spectra.max(axis=(1, 2))
    gains = np.ones_like(spectra)
    for gain, spectrum, most, power in zip(gains, spectra, strongest, WHITENED, strict=False):
        if most > 0:
            gain[...] = np.maximum(spectrum / most, LEAST_GAIN) ** power
    for plane, gain in zip(planes, gains, strict=True):
        _filter(plane, 1.0 / _widened(gain, plane.shape))
    average = np.sqrt(np.mean(np.square(spectra / gains), axis=(1, 2)))
    levels = np.maximum(average, LEVEL[: len(planes)] * strongest)
    # The filter reaches over the whole image.
    settings = replace(settings, wanted=None)
    cleaned = clean_planes(planes, tuple(levels.tolist()), settings)
    for plane, gain in zip(cleaned, gains, strict=True):
        _filter(plane, _widened(gain, plane.shape))
    return cleaned


def _filter(plane: NDArray[np.float32], gain: NDArray[np.float32]) -> None:
    """Multiply the spectrum of a plane (h, w) by the gain of each frequency, in place."""
    spectrum = dctn(plane, norm="ortho")
    spectrum *= gain
    plane[...] = idctn(spectrum, norm="ortho", overwrite_x=True)


def _widened(gain: NDArray[np.float64], shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Return the gain of each frequency of a plane from that of an 8 x 8 patch's, linearly."""
    rows, columns = _hats(shape[0]), _hats(shape[1])
    return np.asarray(rows @ gain.astype(np.float32) @ columns.T)


def _hats(length: int) -> NDArray[np.float32]:
    """Return the weight (length, 8) of each of a patch's frequencies at a plane's."""
    position = np.minimum(np.arange(length) * (WIDTH / length), WIDTH - 1.0)
    distance = np.abs(position[:, np.newaxis] - np.arange(WIDTH))
    return np.asarray(np.maximum(1.0 - distance, 0.0), np.float32)
