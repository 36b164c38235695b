"""The noise of a camera: detect it, measure it at each frequency, and remove it.

Neighbouring pixels of a photograph share noise: demosaicking and JPEG leave strong noise at low
frequencies and weak noise at high ones. White-noise denoising leaves blotches and removes detail.

Measuring. Quiet patches show too little noise if JPEG emptied them, and too much if all patches
have texture. So the deviation at frequency index k is modelled as exp(b_k + sum_j W_kj log q_j),
with q_j the deviations of quiet patches at four scales. W and b come from ridge regression on pairs
of photographs with and without noise (`tests/benchmarks/camera_constants.py`).

Detecting. Fine texture has the same spectrum as the noise of a camera. So part of the photograph is
denoised as if all of that were noise. The removed part ("method noise") is equally strong
everywhere if it is noise, and looks like the picture if it is texture (Buades, Coll, Morel 2005,
SIAM J. Multiscale Model. Simul. 4(2)). Logistic regression on a few features separates the two.

Removing. Dividing a plane's spectrum by the spectrum of its noise makes the noise white (North
1943; Van Trees 1968, "Detection, Estimation, and Modulation Theory" I, section 4.3), but sharpens
the image. The sharpened image is denoised, and its spectrum multiplied back. Colour planes are
whitened fully, luminance only in part: sharpened edges ring, so fewer patches are similar, which
costs more than the remaining correlation. Gamma makes photon noise nearly even over brightness.

Texture. Texture that looks like noise is removed with the noise: bark and canvas come out waxy. If
the removed part looks like the picture, some of it is put back. The constants are a compromise
between textures through a simulated camera, which gain contrast and decibels, and pairs, which lose
about .01 dB.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from scipy.fft import dctn, idctn, rfft2
from scipy.ndimage import gaussian_filter, uniform_filter
from scipy.special import expit
from scipy.stats import kurtosis

from kpca_apps.denoise.colour import extreme_pixels, from_opponent, noise_in_channels, to_opponent
from kpca_apps.denoise.estimate.patches import COSINES, WIDTH, patches_of
from kpca_apps.denoise.noise.camera_constants import COLOUR, GREY, LUMINANCE, PROBABILITY
from kpca_apps.denoise.noise.clipping import before_clipping
from kpca_apps.denoise.noise.model import Inspected, Levels, Measured, Planes
from kpca_apps.denoise.options import Options
from kpca_apps.denoise.passes.planes import denoise_planes
from kpca_apps.denoise.passes.scales import halve

Array = NDArray[np.float64]

# One entry for each deviation to measure: number of halvings of the scale; first and last frequency
# index measured; share of patches used. Indices 1 to 3 are measured in the patches with the least
# energy at indices 4 to 7, and the other way round.
QUIET = (
    *((halvings, 4, 7, share) for share in (0.1, 0.5) for halvings in range(4)),
    *((0, index, index, 0.1) for index in range(1, 8)),
)
FEWEST_QUIET = 40  # minimum number of patches in which a deviation is measured
ENOUGH_PATCHES = 40_000
SMALLEST = 128  # smaller images are tiled to this side (in pixels) before their scale is halved
# Noise levels, of 255. Noise well above the first level survives JPEG almost unchanged; noise well
# above the second is seldom hidden by texture.
STRONG = (2.0, 8.0)
FAINT_LOG = 0.1  # added to deviations (of 255) so that their logarithms are finite

# Factor by which measured deviations are raised: without it, they are too low half of the time, and
# remaining noise costs more than lost detail. The factor is within .1 dB of the best on each kind
# of noise.
LEAN = 1.25

# Minimum number by which whitening divides a frequency, relative to the strongest frequency. A
# lower number would amplify the finest image detail and rounding errors.
LEAST_GAIN = 0.25
# Luminance and colours are divided by this power of their noise spectrum: 1 whitens fully.
WHITENED = (0.5, 1.0, 1.0)
# Noise level at which to denoise, in multiples of the level at the strongest frequency. An average
# level is too low for the frequencies that matter, and after JPEG even the strongest level measured
# in colours is too low.
LEVEL = (1.0, 1.25, 1.25)
# Values of WHITENED and LEVEL in the test for camera noise, for which `PROBABILITY` was fitted.
LOOKED_AT = (0.3, 1.0, 1.0), (0.8, 1.25, 1.25)
# Detail is the difference from a Gaussian blur of deviation FINE (pixels). The correlation of the
# removed detail with the detail kept is measured in windows with sides of PLACE pixels.
FINE, PLACE = 1.4, 96
# If removed detail correlates with the picture by more than CHANCE, a share of it is put back: BACK
# times the excess. The share is smaller where the picture's own detail has less than about LEFT
# times the energy of the removed noise, as such faint detail may be noise, too.
CHANCE, BACK, LEFT = 0.2, 2.0, 0.3
# Options of a draft, a fast denoising that removes all noise. The removed noise is measured in the
# share QUIET_PLACES of the patches that have the least detail. Speckle is coarser where it is
# bright: with a dark tail, the strongest noise of BRIGHT_CLASSES classes of brightness counts (with
# synthetic speckle on 15 of BSDS500/train, 1, 3, 5 and 8 give 26.96, 27.29, 27.24 and 27.12 dB).
DRAFT = Options(quality="draft", luma=2.0, chroma=2.0)
QUIET_PLACES, BRIGHT_CLASSES = 0.1, 3
# A frequency is a spectral line if its power is far above the median of the power in a square of
# side NEAR_FREQUENCIES around it. LINE_BY_CHANCE is the probability of a line in a tile of noise.
# What a draft removes is not noise if lines have more than the share MOST_IN_LINES of its energy.
# Measured shares: about 0 for noise, .05 for repeated structure, from .15 up for halftone dots.
NEAR_FREQUENCIES, LINE_BY_CHANCE, MOST_IN_LINES = 17, 0.001, 0.1
# Dots of uneven size have few lines, but removing them changes edges: the size of the removed part
# then correlates with the slope of the rest by over MOST_AT_EDGES (28 screens: .38 to .55; with
# noise, if noise was removed: up to .35).
MOST_AT_EDGES = 0.36
# Noise has a dark tail if fine detail has a skewness below DARK_TAIL in a share of blocks above
# MOST_DARK, and if its variance varies by less than MOST_UNEVEN from the first to the ninth decile.
# In 18 retina scans the share is .87 to .97, and the variance varies by 1.7 to 1.9. With white or
# shared noise the share is at most .38; in gravel and print it is up to .87, but varies by 2.3.
DARK_TAIL, MOST_DARK, MOST_UNEVEN = -0.2, 0.75, 2.1
# Energy added to keep logarithms finite, and level of the faintest noise (planes span 0..255).
LEAST_ENERGY, FAINT = 1e-3, 1.0
# Sides in pixels of tiles to measure noise and to denoise a draft; maximum number per image side.
TILE, DRAFT_TILE, TILES = 160, 96, 2

ORDER = np.maximum.outer(np.arange(WIDTH), np.arange(WIDTH))
_INDEX = ORDER.ravel()
_COUNTS = np.bincount(_INDEX)


@dataclass(frozen=True)
class CameraNoise:
    """The measured noise of a camera."""

    spectra: Array  # (c, 8, 8), deviation at each frequency in grey, or in luminance and colours
    quiet: Array  # (c, 17), first result of `quiet_deviations`

    def scaled_to(self, sigma: float) -> CameraNoise:
        """Return the noise with the same spectrum, scaled to a given deviation."""
        total = float(np.sqrt(np.mean(np.square(self.spectra))))
        known = self.spectra * (sigma / total) if total > 0 else np.full_like(self.spectra, sigma)
        return replace(self, spectra=known)

    @property
    def levels(self) -> tuple[float, ...]:
        """The noise level in each channel."""
        levels = np.sqrt(np.mean(np.square(self.spectra), axis=(1, 2)))
        return tuple((noise_in_channels(levels) if len(levels) == 3 else levels).tolist())


def measure(image: Inspected) -> Measured:
    """Measure the noise at each frequency."""
    known = measure_camera(image.planes)
    opponent, extreme = to_opponent(image.planes), extreme_pixels(image.planes)
    classes = BRIGHT_CLASSES if len(opponent) == 1 and has_dark_tail(opponent) else 1
    spectra = removed_by_draft(opponent, known.spectra, extreme, classes)
    known = replace(known, spectra=with_lowest(np.maximum(known.spectra, spectra)))
    return Measured(known, known.levels)


def with_lowest(spectra: Array) -> Array:
    """Return deviations (c, 8, 8) with the lowest frequency extrapolated from the next two.

    In patches, the lowest frequency shows texture. The logarithm of the spectrum of blurred white
    noise falls with the square of the frequency.
    """
    near, far = (np.maximum(spectra[:, k, 0], FAINT_LOG) for k in (1, 2))
    lowest = spectra.copy()
    lowest[:, 0, 0] = near * np.maximum(near / far, 1.0) ** (1 / 3)
    return lowest


def removed_by_draft(
    planes: Planes, spectra: Array, extreme: NDArray[np.bool_], classes: int
) -> Array:
    """Return the deviation (c, 8, 8), by frequency, of what the fast denoising `DRAFT` removes.

    Only the patches in which it leaves least detail count, as their noise is wholly removed. Of the
    classes of brightness, the strongest counts.
    """
    taken, kept, ends = [], [], []
    for window in tiles_of(planes.shape[1:], DRAFT_TILE):
        tile = np.ascontiguousarray(planes[window])
        cleaned = whitened_denoising(tile, spectra, DRAFT)
        taken.append(_blocks(tile - cleaned))
        kept.append(_blocks(cleaned[:1], centred=False)[0])
        ends.append(_blocks(extreme[window[1:]][np.newaxis].astype(np.float32))[0])
    picture, removed = np.concatenate(kept), np.concatenate(taken, axis=1)
    activity, found = picture.var(axis=1), np.zeros_like(spectra)
    # Exclude patches with some pixels at an end of the range, where clipping removed noise.
    activity[np.ptp(np.concatenate(ends), axis=1) > 0] = np.inf
    few = round(QUIET_PLACES * len(activity) / classes)
    for some in map(np.sort, np.array_split(picture.mean(axis=1).argsort(kind="stable"), classes)):
        quiet = some[np.argsort(activity[some], kind="stable")][:few]
        powers = np.square(removed[:, quiet] @ COSINES).sum(axis=1)
        powers = powers.reshape(-1, WIDTH, WIDTH) / max(len(quiet), 1)
        found = np.maximum(found, np.sqrt((powers + powers.swapaxes(1, 2)) / 2))
    return found


def removes_pattern(planes: Planes, draft: Callable[[Planes], Planes]) -> bool:
    """Whether a draft, run on tiles with spectral lines in fine detail, removes a pattern."""
    scores = []
    for window in tiles_of(planes.shape[1:], DRAFT_TILE):
        grey, score = planes[window].mean(axis=0), 0.0
        fine = grey - gaussian_filter(grey, FINE)
        if min(grey.shape) > 1 and share_in_lines(fine) > MOST_IN_LINES:
            kept = draft(planes[window]).mean(axis=0)
            both = np.stack([np.abs(grey - kept).ravel(), np.hypot(*np.gradient(kept)).ravel()])
            with np.errstate(invalid="ignore"):
                at_edges = float(np.corrcoef(both)[0, 1])
            score = max(share_in_lines(grey - kept) / MOST_IN_LINES, at_edges / MOST_AT_EDGES)
        scores.append(score)
    return bool(np.mean(scores) > 1)


def share_in_lines(plane: NDArray[np.float32]) -> float:
    """Return the share of a plane's energy in spectral lines, which noise does not have."""
    window = np.outer(*(np.hanning(side) for side in plane.shape))
    power = np.square(np.abs(rfft2((plane - plane.mean()) * window)))
    least = np.log(power.size / LINE_BY_CHANCE) / np.log(2.0)
    wide = np.pad(power, NEAR_FREQUENCIES // 2, mode="edge")
    rows = sliding_window_view(wide, NEAR_FREQUENCIES, axis=1)
    # The median of a square is at least the least median of its rows, which takes less time.
    medians = np.partition(rows, NEAR_FREQUENCIES // 2, axis=2)[..., NEAR_FREQUENCIES // 2]
    lines = power > least * sliding_window_view(medians, NEAR_FREQUENCIES, axis=0).min(axis=2)
    squares = sliding_window_view(wide, (NEAR_FREQUENCIES, NEAR_FREQUENCIES))[lines]
    medians = np.median(squares.reshape(-1, NEAR_FREQUENCIES**2), axis=1)
    lines[lines] = power[lines] > least * medians
    return float(power[lines].sum() / max(power.sum(), LEAST_ENERGY))


def measure_camera(planes: Planes) -> CameraNoise:
    """Measure the noise of a grey plane, or of red, green and blue, on the scale 0..255."""
    # Luminance is (R + G + B) / sqrt(3). So scale a grey plane by 3 / sqrt(3), as if R = G = B.
    gain = np.float32(1.0 if len(planes) == 3 else 3**0.5)
    quiet, most = quiet_deviations(to_opponent(planes) * gain, extreme_pixels(planes))
    known = [(quiet[0], GREY)]
    if len(planes) == 3:
        # Colours have little texture, so they also help to measure the noise of luminance.
        known = [(with_colours(quiet), LUMINANCE), (quiet[1], COLOUR), (quiet[2], COLOUR)]
    spectra = []
    for (row, weights), limits in zip(known, most, strict=True):
        deviations = LEAN * (np.exp(weights[:, 0] + weights[:, 1:] @ row) - FAINT_LOG)
        deviations = np.clip(deviations, 0.0, limits)
        spectra.append(np.interp(ORDER, np.arange(1, WIDTH), deviations))
    return CameraNoise(np.array(spectra) / gain, quiet)


def with_colours(quiet: Array) -> Array:
    """Join the row of luminance in `quiet` and the mean of the rows of both colour planes."""
    return np.concatenate([quiet[0], quiet[1:].mean(axis=0)])


def quiet_deviations(planes: Planes, extreme: NDArray[np.bool_]) -> tuple[Array, Array]:
    """Return log deviations of quiet patches (c, 17), and deviations of all patches (c, 7).

    The first are in the order of `QUIET`; the last two columns distinguish strong noise, which
    quiet patches show unchanged, from faint noise. The deviations of all patches are by frequency
    index. Patches of one value, or with pixels at an end of the range, are left out.
    """
    short = np.ceil(SMALLEST / np.array(extreme.shape)).astype(int)
    if short.max() > 1:
        planes, extreme = np.tile(planes, (1, *short)), np.tile(extreme, short)
    found, most = np.empty((len(planes), len(QUIET))), np.empty((len(planes), WIDTH - 1))
    for halvings in range(max(row[0] for row in QUIET) + 1):
        if halvings:
            planes = halve(planes)
            height, width = planes.shape[1:]
            fours = extreme[: 2 * height, : 2 * width].reshape(height, 2, width, 2)
            extreme = np.asarray(fours.any(axis=(1, 3)))
        stride = max(1, int(np.sqrt(extreme.size / ENOUGH_PATCHES)))
        usable = patches_of(extreme, stride).sum(axis=1) < 2
        if not halvings:
            usable &= np.ptp(patches_of(planes[0], stride), axis=1) > 0
        if np.count_nonzero(usable) < FEWEST_QUIET:
            usable[:] = True
        for plane, row, limits in zip(planes, found, most, strict=True):
            energy = np.square(patches_of(plane, stride)[usable] @ COSINES)
            by_index = np.stack([energy[:, _INDEX == k].sum(axis=1) for k in range(WIDTH)])
            if not halvings:
                powers = by_index[1:].mean(axis=1, dtype=np.float64) / _COUNTS[1:]
                limits[...] = np.sqrt(powers)
            # Find the weakest patches by one half of the frequencies, and measure the other half in
            # them. Measured in the same half, the noise would look too weak.
            orders = [
                np.argsort(half.sum(axis=0), kind="stable")
                for half in (by_index[4:], by_index[1:4])
            ]
            for number, (scale, first, last, share) in enumerate(QUIET):
                if scale == halvings:
                    few = max(FEWEST_QUIET, round(share * len(energy)))
                    quietest = orders[first >= 4][:few]
                    power = by_index[first : last + 1, quietest].mean(axis=1, dtype=np.float64)
                    row[number] = np.sqrt(power.sum() / _COUNTS[first : last + 1].sum())
    logs = np.log(FAINT_LOG + found)
    levels = np.exp(2 * logs.mean(axis=1))
    strong = [np.log1p(levels / level**2) / 2 for level in STRONG]
    return np.column_stack([logs, *strong]), most


def camera_probability(planes: Planes) -> float:
    """Return the probability that a grey plane, or colours, contain the noise of a camera."""
    noise = measure_camera(planes)
    if max(noise.levels) < FAINT or min(planes.shape[1:]) < WIDTH:
        return 0.0
    weights = PROBABILITY[len(planes)]
    return float(expit(weights[0] + weights[1:] @ evidence(planes, noise)))


def evidence(planes: Planes, noise: CameraNoise) -> Array:
    """Return features of what denoising removes (the method noise), to tell noise from texture.

    Features 1 to 5, of luminance: log energy; log ratio of the picture's energy to that of the
    method noise; fall at low and at high frequencies; kurtosis. Further ones only of colours: log
    energy; mean squared correlation with luminance; unevenness; and deviations of quiet patches.
    """
    taken, kept = [], []
    # In grey, take blocks 9 pixels apart, at all offsets from the 8 x 8 blocks of a JPEG file.
    quality, apart = ("fast", WIDTH) if len(planes) == 3 else ("draft", WIDTH + 1)
    for window in tiles_of(planes.shape[1:], TILE):
        tile = to_opponent(np.ascontiguousarray(planes[window]))
        cleaned = whitened_denoising(tile, noise.spectra, Options(quality=quality), *LOOKED_AT)
        taken.append(_blocks(tile - cleaned, apart))
        kept.append(_blocks(cleaned, apart))
    residual, picture = np.concatenate(taken, axis=1), np.concatenate(kept, axis=1)
    energy, activity = (np.square(x).mean(axis=2) + LEAST_ENERGY for x in (residual, picture))
    spectrum = np.square(residual[0] @ COSINES).mean(axis=0)
    falls = np.diff(np.log(np.bincount(_INDEX, spectrum)[1:] / _COUNTS[1:] + LEAST_ENERGY))
    noisy, drawn = np.median(energy[0]), np.median(activity[0])
    features = [np.log(noisy), np.log(drawn / noisy), falls[0], falls[-2]]
    features.append(kurtosis(residual[0], axis=None))
    if len(planes) == 3:
        colour = energy[1] + energy[2]
        products = np.square((residual[:1] * residual[1:]).sum(axis=2))
        shared = products / (WIDTH**4 * energy[:1] * energy[1:])
        uneven = np.log(np.quantile(colour, 0.9) / np.median(colour))
        features += [np.log(np.median(colour)), shared.mean(), uneven, *with_colours(noise.quiet)]
    return np.array(features)


def has_dark_tail(planes: Planes) -> bool:
    """Whether even noise of a grey plane has a dark tail, as the logarithm of speckle has."""
    detail = _blocks(planes - gaussian_filter(planes[0], FINE), WIDTH + 1)[0]
    cut = _blocks((planes == planes.max()).astype(np.float32), WIDTH + 1)[0].any(axis=1)
    second, third = (np.power(detail, k).mean(axis=1) for k in (2, 3))
    is_dark = (third < DARK_TAIL * second**1.5) & ~cut
    if np.count_nonzero(is_dark) <= MOST_DARK * len(is_dark):
        return False
    low, high = np.quantile(second, (0.1, 0.9))
    return bool(high < MOST_UNEVEN * low)


def tiles_of(shape: tuple[int, ...], width: int) -> list[tuple[slice, slice, slice]]:
    """Return the windows of tiles spread evenly over an image."""
    corners = []
    for side in shape:
        tile = min(width, side)
        number = min(TILES, max(1, side // tile))
        starts = np.linspace(0, side - tile, 2 * number + 1)[1::2].astype(int)
        corners.append([slice(start, start + tile) for start in starts])
    return [(slice(None), rows, columns) for rows in corners[0] for columns in corners[1]]


def _blocks(planes: Planes, apart: int = WIDTH, *, centred: bool = True) -> Array:
    """Return blocks (c, n, 64) of 8 x 8 pixels, `apart` pixels apart, `centred` on their means."""
    if min(planes.shape[1:]) < WIDTH:
        return np.empty((len(planes), 0, WIDTH * WIDTH))
    blocks = np.stack([patches_of(plane, apart) for plane in planes]).astype(np.float64)
    return np.asarray(blocks - blocks.mean(axis=2, keepdims=True) if centred else blocks)


def denoise(planes: Planes, known: float | CameraNoise, options: Options) -> tuple[Planes, Levels]:
    """Denoise by whitening; a given level is spread over frequencies like the measured noise."""
    noise = measure_camera(planes).scaled_to(known) if isinstance(known, float) else known
    given = to_opponent(planes)
    # Denoise the whole image, as the whitening filter combines all pixels.
    cleaned = whitened_denoising(given, noise.spectra, replace(options, wanted=None))
    cleaned[0] = with_texture_back(given[0], cleaned[0])
    cleaned = from_opponent(cleaned)
    # In grey, a dark tail may be that of a logarithm, whose mean is wanted.
    bent, pairs = len(planes) == 3, zip(planes, cleaned, strict=True)
    return np.stack([before_clipping(*pair, may_be_bent=bent) for pair in pairs]), noise.levels


def with_texture_back(
    given: NDArray[np.float32], cleaned: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Return luminance with removed fine detail put back where it resembles the picture."""
    kept, taken = (plane - gaussian_filter(plane, FINE) for plane in (cleaned, given - cleaned))
    shared, of_kept, of_taken = (
        uniform_filter(product, PLACE) for product in (kept * taken, kept**2, taken**2)
    )
    likeness = shared / np.sqrt(np.maximum(of_kept * of_taken, LEAST_ENERGY**2))
    back = np.clip(BACK * (likeness - CHANCE), 0.0, 1.0)
    back *= of_kept / (of_kept + LEFT * np.median(of_taken) + LEAST_ENERGY)
    return np.asarray(cleaned + back * taken)


def whitened_denoising(
    planes: Planes,
    spectra: Array,
    options: Options,
    powers: tuple[float, ...] = WHITENED,
    least: tuple[float, ...] = LEVEL,
) -> Planes:
    """Denoise a grey plane, or luminance and colour planes, given their noise spectra (c, 8, 8).

    Each plane is divided by a power of its noise spectrum, and denoised at the remaining level, at
    least `least` times that of the strongest frequency. The defaults are those of a camera.
    """
    options = replace(options, shared=True)
    # Leave the lowest frequency out of the maximum, as few groups of patches show its noise.
    strongest = spectra.reshape(len(spectra), -1)[:, 1:].max(axis=1)
    gains, white = np.ones_like(spectra), np.empty_like(planes)
    for gain, spectrum, most, power in zip(gains, spectra, strongest, powers, strict=False):
        if most > 0:
            gain[...] = np.maximum(spectrum / most, LEAST_GAIN) ** power
    for out, plane, gain in zip(white, planes, gains, strict=True):
        out[...] = _filtered(plane, gain, options.pages, inverse=True)
    average = np.sqrt(np.mean(np.square(spectra / gains), axis=(1, 2)))
    levels = np.maximum(average, least[: len(planes)] * strongest)
    cleaned = denoise_planes(white, levels, options)
    for plane, gain in zip(cleaned, gains, strict=True):
        plane[...] = _filtered(plane, gain, options.pages)
    return cleaned


def _filtered(
    plane: NDArray[np.float32], gain: Array, n_pages: int = 1, *, inverse: bool = False
) -> NDArray[np.float32]:
    """Multiply or divide a plane's spectrum by `gain`, interpolated linearly to its frequencies.

    `gain` (8, 8) is for the frequencies of a patch. The vertically stacked pages are transformed
    one by one.
    """
    pages = plane.reshape(n_pages, -1, plane.shape[1])
    hats = []
    for length in pages.shape[1:]:
        position = np.minimum(np.arange(length) * (WIDTH / length), WIDTH - 1.0)
        distance = np.abs(position[:, np.newaxis] - np.arange(WIDTH))
        hats.append(np.asarray(np.maximum(1.0 - distance, 0.0), np.float32))
    widened = hats[0] @ gain.astype(np.float32) @ hats[1].T
    spectrum = dctn(pages, axes=(1, 2), norm="ortho")
    spectrum *= 1.0 / widened if inverse else widened
    filtered = idctn(spectrum, axes=(1, 2), norm="ortho", overwrite_x=True)
    return np.asarray(filtered.reshape(plane.shape))
