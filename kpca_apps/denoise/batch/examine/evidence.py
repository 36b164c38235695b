"""Explain, in results and reports, why a noise model was chosen for an image."""

from __future__ import annotations

import math
from dataclasses import replace

from kpca_apps.denoise.estimate.info import DenoiseInfo
from kpca_apps.denoise.estimate.law import DARK_SHARES
from kpca_apps.denoise.noise.choose import FAINT
from kpca_apps.denoise.result import Evidence, NoiseLaw

DIGITS = 6  # digits stored of a law's gain and constant; gain * black may nearly cancel constant
POINT_DIGITS = 4  # significant digits stored of measured points
ROUNDING = 1 / 255 / 12**0.5  # deviation of rounding to 8 bits, as a share of the range
LEAST_ODDS = 1e-12  # least probability, so that its logarithm is finite
FLAT, WHITE = "noise as strong everywhere", "white noise"
RISING = "noise that grows with brightness"


def evidence_of(info: DenoiseInfo, requested: str = "auto") -> Evidence:
    """Return why a noise model was chosen; `requested` is the value of ``--noise``."""
    if info.noise == "raw":
        unseen = "is too small, or too much of it is black or white"
        return Evidence() if info.established else Evidence(why=unseen)
    if not info.estimated:
        return Evidence()
    # Leave out channels whose pixels are all equal: their noise law has gain and constant 0.
    laws = tuple(kept_law(law) for law in info.laws if law.gain or law.constant)
    found = Evidence(option=_option(info, laws), sigma_range=info.sigma_range, laws=laws)
    runner_up, log_odds = "", None
    if found.is_sure and info.established and requested == "auto":
        runner_up, log_odds = _runner_up(info.noise, laws)
    return replace(found, why=_why(info, requested, found), runner_up=runner_up, log_odds=log_odds)


def kept_law(law: NoiseLaw) -> NoiseLaw:
    """Return a noise law with numbers rounded to significant digits, as results store them."""
    return replace(
        law,
        gain=_short(law.gain),
        constant=_short(law.constant),
        interval=(_short(law.interval[0]), _short(law.interval[1])),
        log_odds_flat=_short(law.log_odds_flat),
        log_odds_white=_short(law.log_odds_white),
        brightness=tuple(_short(x, POINT_DIGITS) for x in law.brightness),
        variances=tuple(_short(x, POINT_DIGITS) for x in law.variances),
    )


def _short(value: float, digits: int = DIGITS) -> float:
    return float(f"{value:.{digits}g}")


def _runner_up(noise: str, laws: tuple[NoiseLaw, ...]) -> tuple[str, float | None]:
    """Return the likeliest other model, and its log odds against the chosen model."""
    # Compare constant noise with the mean likelihood of all laws by which noise grows with light.
    flat = sum(law.log_odds_flat for law in laws)
    n_rising = len(DARK_SHARES) ** len(laws) - 1
    rising = math.log(max(-math.expm1(flat), LEAST_ODDS) / n_rising) - flat
    others: dict[str, float] = {}
    if noise == "poisson":
        others = {FLAT: -rising} if any(law.rises for law in laws) else {RISING: rising}
    elif noise == "gaussian":
        others = {RISING: rising}
    if laws[0].shared and noise in ("poisson", "camera"):
        others[WHITE] = laws[0].log_odds_white  # all channels share one blur
    if not others:
        return "", None
    name = max(others, key=lambda one: others[one])
    return name, _short(others[name], POINT_DIGITS)


def _why(info: DenoiseInfo, requested: str, found: Evidence) -> str:
    rises = any(law.rises for law in found.laws)
    if not info.established:
        if info.pattern:
            return "is a regular pattern or a dither, such as the screen of a printed picture"
        faint = info.sigma <= FAINT * info.data_range
        return f"{'is too faint to distinguish from' if faint else 'may be'} fine texture"
    if requested != "auto":
        # With a dictionary (`n_components` is set), no reason is given for the noise model.
        return "it was requested" if info.n_components is None else ""
    if info.noise == "camera":
        return "neighbouring pixels share it, as in photographs that a camera saved"
    if info.noise == "poisson":
        stronger = "it is stronger where the image is brighter"
        both = f"{stronger}, and neighbouring pixels share it"
        return (both if found.is_shared else stronger) if rises else "neighbouring pixels share it"
    if info.noise == "speckle":
        return "it grows in proportion to the brightness"
    if info.noise != "gaussian" or not info.sigma:
        return ""
    if info.place_range:
        low, high = (f"{level:.3g}" for level in info.place_range)
        return f"it differs from place to place, from {low} to {high}"
    if not found.laws:
        return "the image shows too little to tell whether it grows with brightness"
    if not found.is_sure:
        return "its growth with brightness cannot be distinguished from texture"
    return "" if rises else "it seems as strong in dark as in bright areas"


def _option(info: DenoiseInfo, laws: tuple[NoiseLaw, ...]) -> str:
    """Return the option that denoises an image left unchanged; none for patterns and rounding."""
    if info.established or not info.sigma or info.noise != "gaussian" or info.pattern:
        return ""
    if laws and all(law.established and law.rises for law in laws):
        return "--noise poisson"
    if info.sigma < ROUNDING * info.data_range:
        return ""
    # Write three digits, as 1230 rather than 1.23e+03.
    return f"--sigma {float(f'{info.sigma:.3g}'):g}"
