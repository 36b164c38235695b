"""What denoising did, in sentences."""

from __future__ import annotations

import math
from collections.abc import Sequence

from kpca_apps.denoise.result import (
    Comparison,
    DenoisingResult,
    DictionaryView,
    ImageOutcome,
    Trial,
    TrialResult,
)
from kpca_apps.report.text import (
    Verbatim,
    count,
    cut,
    join,
    join_parts,
    number,
    percent,
    plural,
)

METHODS = {
    "noisy": "noisy",
    "denoised": "kernel PCA",
    "nl_means": "non-local means",
    "wavelet": "wavelet shrinkage",
}
KINDS = {
    "gaussian": "Gaussian noise",
    "poisson": "Poisson (photon) noise",
    "speckle": "speckle",
    "impulse": "impulse noise (salt and pepper)",
    "camera": "camera noise",
    "raw": "noise of the sensor (photons and readout)",
}
MAX_NAMED = 3
TELLING = 0.005  # dB; less is no difference in two decimals


def has_figures(result: DenoisingResult) -> bool:
    """Whether there is anything to draw: several images, or comparisons."""
    n_done = sum(image.status == "ok" for image in result.images)
    return n_done > 1 or bool(compared_images(result))


def compared_images(result: DenoisingResult) -> list[tuple[ImageOutcome, Comparison]]:
    """Return the images whose likeness to a clean one is a finite number, with it."""
    return [
        (image, image.comparison)
        for image in result.images
        if image.status == "ok"
        and image.comparison is not None
        and math.isfinite(image.comparison.denoised.psnr)
    ]


def headline(result: DenoisingResult) -> str:
    """Say what became of a batch in one plain sentence."""
    return "".join(headline_parts(result))


def headline_parts(result: DenoisingResult) -> list[str]:
    """Return the sentence of `headline` in parts; `Verbatim` parts are names of files."""
    n_all, failed = len(result.images), result.failed
    done = [image for image in result.images if image.status == "ok"]
    if not done:
        who = "The only image" if n_all == 1 else f"None of {plural(n_all, 'image')}"
        return [f"{who} could {'not ' * (n_all == 1)}be denoised: ", *_named(failed), "."]
    changed = [image for image in done if not is_left(image)]
    names = [f", {count(len(failed))} failed: ", *_named(failed)] if failed else []
    if not changed:
        where = f"in {count(len(done))} " if failed else ""
        who = "The image was not" if n_all == 1 else f"None of {plural(n_all, 'image')} was"
        return [f"{who} denoised: {where}no noise could be established", *names, "."]
    share = "" if len(changed) == n_all else f"{count(len(changed))} of "
    n_left = len(done) - len(changed)
    as_was = "it was" if n_left == 1 else "they were"
    left = f", {count(n_left)} left as {as_was}" if n_left else ""
    start = f"{share}{plural(n_all, 'image')} denoised{left}"
    return [start, *names, f"; {_gain(result) or _noise_range(changed)}."]


def is_left(image: ImageOutcome) -> bool:
    """Whether an image was left as it was, because no noise was found in it for sure."""
    if image.status != "ok" or image.noise == "impulse":
        return False
    return not image.established or (image.estimated and image.sigma == 0)


def _named(images: Sequence[ImageOutcome]) -> list[str]:
    """Name a few images, and say how many more there are."""
    names: list[list[str]] = [[cut(image.name)] for image in images[:MAX_NAMED]]
    if more := len(images) - len(names):
        names.append([f"{count(more)} more"])
    return join_parts(names)


def _noise_range(images: Sequence[ImageOutcome]) -> str:
    """Say the lowest and the highest noise level of a batch."""
    if all(image.noise == "impulse" for image in images):
        return "impulse noise was removed"
    known = [image for image in images if image.sigma is not None]
    if not known:
        return "the noise level was not needed"
    was = "the noise was" if any(image.estimated for image in known) else "the noise was given as"
    if all(image.noise == "speckle" for image in known):
        return f"{was} {_range([100 * (i.sigma or 0.0) for i in known], 2)} % of the intensity"
    ranges = {image.data_range for image in known}
    where = " where brightest" if all(image.noise == "poisson" for image in known) else ""
    if len(ranges) == 1 and None not in ranges:
        most = number(ranges.pop() or 0.0)
        return f"{was} {_range([image.sigma or 0.0 for image in known])} of {most}{where}"
    levels = [100 * (image.sigma or 0.0) / image.own_range for image in known]
    return f"{was} {_range(levels, 2)} % of the range of values{where}"


def _range(values: Sequence[float], digits: int = 3) -> str:
    low, high = number(min(values), digits), number(max(values), digits)
    return low if low == high else f"{low} to {high}"


def _gain(result: DenoisingResult) -> str:
    """Say how much nearer to the clean images the batch came; nothing if that is not known."""
    mean = result.mean_comparison
    if mean is None or not math.isfinite(mean.noisy.psnr + mean.denoised.psnr):
        return ""
    compared = sum(image.comparison is not None for image in result.images)
    of = "" if compared == len(result.images) - result.n_failed else f" of {count(compared)}"
    average = " on average" if compared > 1 or of else ""
    rose = "fell" if mean.denoised.psnr < mean.noisy.psnr else "rose"
    text = (
        f"PSNR{of} {rose} from {decibels(mean.noisy.psnr, 1)} to "
        f"{decibels(mean.denoised.psnr, 1)} dB{average}"
    )
    baseline = best_baseline(mean)
    if baseline is None:
        return text
    ahead = mean.denoised.psnr - mean.baselines[baseline].psnr
    name = METHODS.get(baseline, baseline)
    if abs(ahead) < 0.05:
        return f"{text}, as much as with {name}"
    return f"{text}, {abs(ahead):.1f} dB {'above' if ahead > 0 else 'below'} {name}"


def best_baseline(comparison: Comparison) -> str | None:
    """Return the baseline with the highest finite PSNR."""
    psnrs = {
        name: one.psnr for name, one in comparison.baselines.items() if math.isfinite(one.psnr)
    }
    return max(psnrs, key=lambda name: psnrs[name]) if psnrs else None


def decibels(psnr: float, decimals: int = 2) -> str:
    """Write a PSNR, which is infinite for equal images."""
    return f"{psnr:.{decimals}f}" if math.isfinite(psnr) else "equal"


def level_text(image: ImageOutcome | TrialResult, value: float) -> str:
    """Write a level of noise on its scale."""
    if image.noise == "speckle":
        return f"{percent(value)} of the intensity"
    where = " where brightest" if image.noise == "poisson" else ""
    scale = f" of {number(image.data_range)}" if image.data_range else ""
    return f"{number(value)}{scale}{where}"


def in_units(image: ImageOutcome | TrialResult, value: float) -> str:
    """Write what was removed, in units of the image whatever its noise.

    Examples
    --------
    >>> in_units(ImageOutcome("a.png", "ok", noise="speckle", data_range=255.0), 24.81)
    '24.8 of 255'
    """
    return f"{number(value)} of {number(image.data_range)}" if image.data_range else number(value)


def noise_sentence(image: ImageOutcome | TrialResult) -> str:
    """Say what noise was met and how that is known."""
    what = KINDS.get(image.noise, f"{image.noise} noise".strip())
    if image.sigma is None:
        return f"Taken as {what}."
    how = "estimated from the image" if image.estimated else "as given"
    level = level_text(image, image.sigma)
    if image.noise == "impulse":
        text = f"Taken as {what}; beside the impulses there is noise of {level}, {how}."
    elif not image.established:
        text = (
            f"No noise could be established: {level} was measured, but may be texture, and the "
            "image was left as it was."
        )
    elif image.sigma == 0:
        text = f"No noise, {how}: the image was left as it is."
    else:
        text = f"Noise of {level}, {how}; taken as {what}."
    if not image.correlated:
        return text
    advice = "" if image.noise == "camera" else ", which --noise camera is made for"
    return f"{text} Neighbouring pixels share it{advice}."


def looks_like(image: ImageOutcome) -> str:
    """Say in a word or two what the residual looks like."""
    residual = image.residual
    if residual is None:
        return ""
    if residual.sd == 0:
        return "nothing"
    if residual.structured:
        return "noise and structure"
    # Both are 0 only where the image was too small to measure them.
    return (
        "noise" if residual.edge_correlation or residual.flat_correlation else "too small to tell"
    )


def residual_sentence(image: ImageOutcome, *, has_strength: bool = True) -> str:
    """Say how much was removed, if that was measured, and whether it looks like noise.

    `has_strength` tells whether a lower strength can be asked for; a dictionary has none.
    """
    residual = image.residual
    if residual is None:
        return ""
    if residual.sd == 0:
        return "Nothing was removed."
    size = number(residual.sd)
    in_units = image.sigma and image.noise in ("gaussian", "camera")
    beside = f", beside noise of {number(image.sigma or 0.0)}" if in_units else ""
    start = f"What was removed has a standard deviation of {size}{beside}"
    if residual.structured:
        advice = " A --strength below 1 keeps more of both." if has_strength else ""
        return f"{start}, and structure shows in it: some detail went with the noise.{advice}"
    if looks_like(image) == "too small to tell":
        return f"{start}; the image is too small to tell whether structure shows in it."
    return f"{start}. It looks like noise: no structure was found in it."


def own_sentence(image: ImageOutcome) -> str:
    """Say what was asked for this image alone."""
    own = {name: "auto" if value is None else value for name, value in image.own_settings.items()}
    words = [
        f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in own.items()
    ]
    return f"Asked for this image alone: {join(words)}." if words else ""


def likeness_sentence(comparison: Comparison) -> str:
    """Say how near to the clean image one image came."""
    noisy, denoised = comparison.noisy, comparison.denoised
    if not math.isfinite(denoised.psnr):
        return "The denoised image is equal to the clean one."
    if not math.isfinite(noisy.psnr):
        return f"The image was equal to the clean one before; now PSNR is {denoised.psnr:.2f} dB."
    text = f"PSNR {noisy.psnr:.2f} to {denoised.psnr:.2f} dB"
    if noisy.ssim is not None and denoised.ssim is not None:
        text += f", SSIM {noisy.ssim:.3f} to {denoised.ssim:.3f}"
    baselines = [
        f"{METHODS.get(name, name)} {decibels(quality.psnr)}"
        for name, quality in comparison.baselines.items()
    ]
    return f"{text}{f' ({join(baselines)} dB)' if baselines else ''}."


def standing_sentences(result: DenoisingResult) -> list[list[str]]:
    """Say where each baseline stands, in parts; `Verbatim` parts are names of files."""
    compared = [image for image in result.images if image.comparison is not None]
    mean = result.mean_comparison
    if mean is None:
        return []
    return [_standing(baseline, mean, compared) for baseline in mean.baselines]


def _standing(baseline: str, mean: Comparison, images: Sequence[ImageOutcome]) -> list[str]:
    overall = mean.denoised.psnr - mean.baselines[baseline].psnr
    name = METHODS.get(baseline, baseline)
    behind = [
        image
        for image in images
        if image.comparison is not None and _lead(image.comparison, baseline) < -TELLING
    ]
    size = "cannot be compared on average"
    if math.isfinite(overall):
        size = f"is {abs(overall):.2f} dB {'behind' if overall < 0 else 'ahead of'} {name}"
    if len(images) == 1:
        return [f"Kernel PCA {size}."]
    text = f"Kernel PCA {size} on average; {name} is ahead on"
    if not behind:
        return [f"{text} no image."]
    return [f"{text} {count(len(behind))}: ", *_named(behind), "."]


def _lead(comparison: Comparison, baseline: str) -> float:
    """Return by how many dB kernel PCA is ahead on one image; both may be infinite."""
    ours, other = comparison.denoised.psnr, comparison.baselines[baseline].psnr
    return 0.0 if ours == other else ours - other


def reason_text(image: ImageOutcome) -> Verbatim:
    """Return why an image failed, without its name in front."""
    return cut(image.reason.removeprefix(f"{image.name}: ") or "no reason was given", 400)


def dictionary_sentence(dictionary: DictionaryView) -> str:
    """Say what a dictionary learned from."""
    height, width = dictionary.shape[:2]
    colour = ", in colour" if dictionary.shape[2:] not in ((), (1,)) else ""
    one, several = ("whole image", "whole images")
    if dictionary.patch_size is not None:
        one, several = ("patch", "patches")
    return (
        f"Learned from {count(dictionary.n_examples)} "
        f"{one if dictionary.n_examples == 1 else several} of {height} x {width} pixels{colour}. "
        f"Each is projected on {plural(dictionary.n_components, 'component')}, "
        f"with a bandwidth of {number(dictionary.bandwidth)}."
    )


def trial_sentence(result: TrialResult) -> list[str]:
    """Say what a trial page shows, in parts."""
    n = len(result.trials)
    strengths = {1: "one strength", 2: "two strengths", 3: "three strengths"}
    at = strengths.get(n, f"{n} strengths")
    if not result.established:
        return [
            f"No noise could be established ({level_text(result, result.sigma)} was measured, but "
            "may be texture), so every strength leaves ",
            cut(result.name),
            " as it was. With the level given by --sigma there are strengths to try.",
        ]
    return ["A piece of ", cut(result.name), f" denoised at {at}, to choose from."]


def trial_title(trial: Trial) -> str:
    """Call a strength by what asks for it.

    Examples
    --------
    >>> from kpca_apps.denoise.result import Preview
    >>> seen = Preview("image/png", b"", 1, 1)
    >>> trial_title(Trial(1.3, "--luma 1.3 --chroma 1.3", seen, seen, 5.0))
    'Luma 1.3 and chroma 1.3'
    """
    words = join([word.strip() for word in trial.option.split("--") if word.strip()])
    return f"{words[:1].upper()}{words[1:]}" or "As asked for"
