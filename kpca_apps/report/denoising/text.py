"""Sentences on the results of denoising."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from kpca_apps.denoise.result import (
    Comparison,
    DenoisingResult,
    DictionaryView,
    ImageOutcome,
    MeasuredFile,
    NoiseLaw,
    Trial,
    TrialResult,
)
from kpca_apps.report.text import (
    Verbatim,
    count,
    cut,
    in_prose,
    join_parts,
    number,
    percent,
    plural,
)

HasNoise = ImageOutcome | TrialResult | MeasuredFile  # an image whose kind of noise is known
_METHODS = {
    "noisy": "noisy",
    "denoised": "kernel PCA",
    "nl_means": "non-local means",
    "wavelet": "wavelet shrinkage",
}
KINDS = {
    "gaussian": "Gaussian noise",
    "poisson": "noise of counted light",
    "speckle": "speckle",
    "impulse": "impulse noise (salt and pepper)",
    "camera": "camera noise",
    "raw": "noise of the sensor (photons and readout)",
}
# Names of channels, by number of noise laws.
CHANNELS = {1: ("",), 2: ("one colour", "another"), 3: ("red", "green", "blue")}
MAX_NAMED = 3
MOST_LIKELY = 1e6  # largest likelihood ratio that is written as a number
TELLING = 0.005  # dB; smaller differences vanish in two decimals
_PRE_IMAGE = (
    "brought back by the fixed point z = sum g_i k(z, x_i) x_i / sum g_i k(z, x_i), "
    "k(x, y) = exp(-|x - y|^2 / c) (Mika et al. 1998, Kernel PCA and de-noising in feature spaces)"
)
_EDGE = (
    "the components kept have eigenvalues above .95 v (sqrt k + sqrt N)^2, the most that noise of "
    "variance v gives k patches of N pixels (Marchenko and Pastur 1967)"
)
_WIDTH = (
    "at finite width where the patches of a group differ far more than their noise does, as at "
    "print and drawn lines, elsewhere at infinite width, that is their principal components"
)
_FILTER = (
    "a Tikhonov filter K (K + .85 N v I)^-1 of the noisy patches, K the inner products of the "
    "patches of the first estimate (the second stage of NL-Ridge, Herbreteau and Kervrann 2022)"
)
# Sentences on each method of `kpca_apps.denoise.options`, and on dictionaries of clean examples.
_SENTENCES = {
    "linear": "Method: linear. Kernel PCA of groups of similar patches at infinite width, that is "
    f"their principal components: {_EDGE}. Between such passes {_FILTER}.",
    "rbf": f"Method: rbf. Kernel PCA of groups of similar patches, {_WIDTH}: {_EDGE}; "
    f"patches are {_PRE_IMAGE}. Between such passes {_FILTER}.",
    "mika": f"Method: mika. Kernel PCA of groups of similar patches, {_WIDTH}, once: {_EDGE}; "
    f"patches are {_PRE_IMAGE}.",
    "dictionary": "Method: mika, with a dictionary. Kernel PCA of clean examples: noisy images are "
    f"projected on the leading components and {_PRE_IMAGE}.",
}


def method_name(name: str) -> str:
    """Return the name of a method in words."""
    return _METHODS.get(name, name)


def method_sentence(settings: Mapping[str, Any]) -> str:
    """Describe a method, with its equation and its reference."""
    of_examples = settings.get("mode") == "dictionary"
    return _SENTENCES.get("dictionary" if of_examples else str(settings.get("method")), "")


def law_name(place: int) -> str:
    """Return the figure name of an image's noise law; image numbers start at 1."""
    return f"law_{place:04d}"


def has_figures(result: DenoisingResult) -> bool:
    """Whether a report has figures."""
    is_sure = any(image.evidence.is_sure for image in result.done)
    return len(result.done) > 1 or bool(compared_images(result)) or is_sure


def compared_images(result: DenoisingResult) -> list[tuple[ImageOutcome, Comparison]]:
    """Return the images whose PSNR to a clean image is finite, with their comparisons."""
    return [
        (image, image.comparison)
        for image in result.done
        if image.comparison is not None and math.isfinite(image.comparison.denoised.psnr)
    ]


def headline(result: DenoisingResult) -> list[str]:
    """Summarise a batch in one sentence, as a list of parts."""
    n_all, done, failed = len(result.images), result.done, result.failed
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
    return [start, *names, f"; {_gain(result) or noise_range(changed)}."]


def is_left(image: ImageOutcome) -> bool:
    """Whether an image was not changed because no noise was established."""
    if image.status != "ok" or image.noise == "impulse":
        return False
    return not image.established or (image.estimated and image.sigma == 0)


def _named(images: Sequence[ImageOutcome]) -> list[str]:
    names: list[list[str]] = [[cut(image.name)] for image in images[:MAX_NAMED]]
    if more := len(images) - len(names):
        names.append([f"{count(more)} more"])
    return join_parts(names)


def noise_range(images: Sequence[ImageOutcome]) -> str:
    """State the lowest and highest noise level of a batch."""
    if all(image.noise == "impulse" for image in images):
        return "impulse noise was removed"
    known = [image for image in images if image.sigma is not None]
    if not known:
        return "the noise level was not needed"
    was = "the noise was" if any(image.estimated for image in known) else "the noise was given as"
    # Levels are in image units, so each pixel type has its own range.
    by_type: dict[str, list[ImageOutcome]] = {}
    for image in known:
        if not image.is_relative:
            by_type.setdefault(image.dtype, []).append(image)
    ranges = []
    for dtype, alike in by_type.items():
        full = {image.data_range for image in alike}
        most = full.pop() if len(full) == 1 else None
        scale = f" of {number(most)}" if most else ""
        where = " where brightest" if all(map(is_at_brightest, alike)) else ""
        kind = f" in {dtype}" if len(by_type) > 1 else ""
        levels = _range([one for image in alike for one in _levels(image)])
        ranges.append([f"{levels}{scale}{where}{kind}"])
    if shares := [100 * (image.sigma or 0.0) for image in known if image.is_relative]:
        ranges.append([f"{_range(shares, 2)} % of the intensity"])
    return f"{was} {''.join(join_parts(ranges))}"


def laws_of(image: HasNoise) -> tuple[NoiseLaw, ...]:
    """Return the noise laws of an image whose noise surely grows with brightness."""
    return image.evidence.laws if image.noise == "poisson" and image.evidence.is_law else ()


def is_at_brightest(image: HasNoise) -> bool:
    """Whether the noise level applies at the largest value of the data range."""
    return image.noise == "poisson" and not laws_of(image)


def level_range(image: HasNoise) -> str:
    """Format the noise level, or its range, without units."""
    return _range(_levels(image))


def _levels(image: HasNoise) -> tuple[float, ...]:
    """Return the standard deviation of the noise; if it varies, the lowest and the highest."""
    ends = [law.deviations for law in laws_of(image)]
    if not ends:
        return (image.sigma or 0.0,)
    return min(low for low, _, _ in ends), max(high for _, _, high in ends)


def typical_level(image: ImageOutcome) -> float:
    """Return the standard deviation of the noise, at medium brightness if it varies."""
    middles = [law.deviations[1] for law in laws_of(image)]
    return math.hypot(*middles) / math.sqrt(len(middles)) if middles else image.sigma or 0.0


def _range(values: Sequence[float], digits: int = 3) -> str:
    low, high = number(min(values), digits), number(max(values), digits)
    return low if low == high else f"{low} to {high}"


def _gain(result: DenoisingResult) -> str:
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
    name = method_name(baseline)
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
    """Format a PSNR, which is infinite for equal images."""
    return f"{psnr:.{decimals}f}" if math.isfinite(psnr) else "equal"


def level_text(image: ImageOutcome | TrialResult) -> str:
    """Format the noise level with its units."""
    if image.is_relative:
        return f"{percent(image.sigma or 0.0)} of the intensity"
    where = " where brightest" if is_at_brightest(image) else ""
    scale = f" of {number(image.data_range)}" if image.data_range else ""
    return f"{level_range(image)}{scale}{where}"


def in_units(image: ImageOutcome | TrialResult, value: float) -> str:
    """Format a standard deviation in units of the image."""
    return f"{number(value)} of {number(image.data_range)}" if image.data_range else number(value)


def kind_text(image: ImageOutcome | TrialResult) -> str:
    """Name the kind of noise."""
    if image.noise == "poisson" and image.evidence.is_shared:
        rises = any(law.rises for law in image.evidence.laws)
        return (
            f"{KINDS['poisson']}, shared by neighbours" if rises else "noise that neighbours share"
        )
    return KINDS.get(image.noise, f"{image.noise} noise".strip())


def noise_sentence(image: ImageOutcome | TrialResult) -> str:
    """State the kind of noise and how the level is known."""
    evidence, what = image.evidence, kind_text(image)
    if image.sigma is None:
        return f"Taken as {what}."
    if not image.established:
        return left_sentence(image)
    how = "estimated from the image" if image.estimated else "as given"
    level = level_text(image)
    if image.noise == "impulse":
        text = f"Taken as {what}; beside the impulses there is noise of {level}, {how}."
    elif image.sigma == 0:
        text = f"No noise, {how}: the image was left as it is."
    else:
        between = ""
        if evidence.sigma_range and image.estimated:
            between = f" (in nine of ten such pictures {_range(evidence.sigma_range)})"
        why = f": {evidence.why}" if evidence.why else ""
        text = f"Noise of {level}{between}, {how}; taken as {what}{why}."
        text = " ".join([text, *law_sentences(image)])
    if not image.correlated or evidence.is_shared or "neighbouring" in evidence.why:
        return text
    advice = "" if image.noise == "camera" else ", which --noise camera is made for"
    return f"{text} Neighbouring pixels share it{advice}."


def left_sentence(image: ImageOutcome | TrialResult) -> str:
    """Explain why an image was not changed, and how to denoise it anyway."""
    pages = isinstance(image, ImageOutcome) and image.n_pages > 1
    start = "At least one of the pages was left" if pages else "Left"
    if image.noise == "raw":
        return f"{start} as it is: no noise could be measured, for the image {image.evidence.why}."
    option = image.evidence.option
    advice = f"{option} takes it out" if option else "if it is noise, give its level by --sigma"
    return f"{start} as it is: {_measured(image)}; {advice}."


def _measured(image: ImageOutcome | TrialResult) -> str:
    why = image.evidence.why or "may be fine texture"
    return f"what was measured ({level_text(image)}) {why}"


def law_sentences(image: ImageOutcome | TrialResult) -> list[str]:
    """State how noise grows with brightness, if that is sure, and name the second-best model."""
    sentences, evidence = [], image.evidence
    if found := laws_of(image):
        laws = [law_text(law) for law in found]
        if len(set(laws)) == 1:
            laws = laws[:1]
        else:
            laws = [f"{law} in {name}" for law, name in zip(laws, CHANNELS[len(laws)], strict=True)]
        blur = f", as after a blur of {number(found[0].blur)} pixels" if evidence.is_shared else ""
        sentences.append(
            f"At brightness x its variance is {in_prose(laws)}{blur}; in nine of ten such pictures "
            f"it is {interval_text(found)}."
        )
    if evidence.runner_up and evidence.log_odds is not None:
        sentences.append(f"{_capital(evidence.runner_up)} is {odds_text(evidence.log_odds)}.")
    return sentences


def law_lines(result: DenoisingResult) -> list[str]:
    """State how many images have a noise law, or the law of a single image."""
    images = [image for image in result.images if laws_of(image)]
    if not images:
        return []
    if len(result.images) == 1:
        return [f"Taken as {kind_text(images[0])}.", *law_sentences(images[0])]
    gains = [law.gain for image in images for law in laws_of(image)]
    shared = sum(image.evidence.is_shared for image in images)
    in_them = f"; neighbours share it in {count(shared)}" if shared else ""
    return [
        f"The noise of {count(len(images))} of {plural(len(result.images), 'image')} follows a law "
        f"of brightness, with a gain of {_range(gains)}{in_them}."
    ]


def left_note(result: DenoisingResult) -> list[str]:
    """State which images were not changed, and how to denoise them anyway."""
    left = [image for image in result.done if not image.established]
    if len(left) < 2:
        sentences = ((cut(one.name), left_sentence(one)) for one in left)
        return [f"{name}: {text[:1].lower()}{text[1:]}" for name, text in sentences]
    named = [image for image in left if image.evidence.option][:MAX_NAMED]
    advice = [f"{image.evidence.option} takes it out of {cut(image.name)}" for image in named]
    if len(left) > len(named):
        advice.append("the report says what does of each")
    return [
        f"{count(len(left))} images were left as they are, for what was measured may be fine "
        f"texture; {in_prose(advice)}."
    ]


def law_text(law: NoiseLaw) -> str:
    """Format the variance of the noise at brightness x."""
    low, _, high = law.deviations
    if not law.rises and high**2 < 1.1 * low**2:
        return number((high**2 + low**2) / 2)
    # Add digits if constant and gain * x nearly cancel at the darkest pixel.
    terms = max(abs(law.constant), abs(law.gain * law.brightness[0]))
    lost = math.log10(max(terms / max(low, 0.1 * high) ** 2, 1.0))
    digits = min(3 + round(lost), 6)
    slope = f"{number(law.gain, digits)} x"
    if abs(law.constant) < 0.005 * low**2:
        return slope
    return f"{slope} {'-' if law.constant < 0 else '+'} {number(abs(law.constant), digits)}"


def interval_text(laws: Sequence[NoiseLaw]) -> str:
    """Format the likely range of (true variance / variance by the law), over all channels."""
    low, high = min(law.interval[0] for law in laws), max(law.interval[1] for law in laws)
    if 0.99 <= low <= high <= 1.01:
        return "within 1 % of that"
    return f"{low:.2f} to {high:.2f} times that"


def odds_text(log_odds: float) -> str:
    """Format the likelihood ratio of the second-best model to the chosen model.

    >>> odds_text(-90.0), odds_text(-3.0), odds_text(0.1)
    ('over a million times less likely', '20 times less likely', 'about as likely')
    >>> odds_text(1.5)
    '4.5 times as likely, which is too little to go by'
    """
    if abs(log_odds) < 0.5:
        return "about as likely"
    times = math.exp(min(abs(log_odds), 700.0))
    how = "over a million" if times > MOST_LIKELY else number(float(f"{times:.2g}"), 2)
    if log_odds < 0:
        return f"{how} times less likely"
    return f"{how} times as likely, which is too little to go by"


def _capital(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def looks_like(image: ImageOutcome) -> str:
    """Describe the residual in a few words."""
    residual = image.residual
    if residual is None:
        return ""
    if residual.sd == 0:
        return "nothing"
    if residual.structured:
        return "noise and structure"
    # Both correlations are exactly 0 only if the image was too small to measure them.
    is_measured = residual.edge_correlation or residual.flat_correlation
    return "noise" if is_measured else "too small to tell"


def residual_sentence(image: ImageOutcome, *, has_strength: bool = True) -> str:
    """State how much was removed, if measured, and whether the removed part looks like noise.

    `has_strength` is False for a dictionary, which has no strength.
    """
    looks = looks_like(image)
    if image.residual is None or looks == "nothing":
        return "Nothing was removed." if looks else ""
    in_units = image.sigma and image.noise in ("gaussian", "camera")
    beside = f", beside noise of {number(image.sigma or 0.0)}" if in_units else ""
    advice = " A --strength below 1 keeps more of both." if has_strength else ""
    clipped = image.residual.clipped_mean
    end, change = ("black", "brightened") if clipped > 0 else ("white", "darkened")
    ends = {
        "noise": ". It looks like noise: it is as random at edges as in flat areas."
        if clipped == 0
        else f". It looks like noise, except near {end}, where clipping had {change} the image by "
        f"{number(abs(clipped))}.",
        "noise and structure": ", and structure shows in it: some detail went with the noise."
        + advice,
        "too small to tell": "; the image is too small to tell whether structure shows in it.",
    }
    size = number(image.residual.sd)
    return f"What was removed has a standard deviation of {size}{beside}{ends[looks]}"


def own_sentence(image: ImageOutcome) -> str:
    """State the options that were set for this image only."""
    words = [
        f"{name} {value:g}" if isinstance(value, float) else f"{name} {value or 'auto'}"
        for name, value in image.own_settings.items()
    ]
    return f"Set for this image alone: {in_prose(words)}." if words else ""


def likeness_sentence(comparison: Comparison) -> str:
    """State the PSNR of one image to the clean image, before and after denoising."""
    noisy, denoised = comparison.noisy, comparison.denoised
    if not math.isfinite(denoised.psnr):
        return "The denoised image is equal to the clean one."
    if not math.isfinite(noisy.psnr):
        return f"The image was equal to the clean one before; now PSNR is {denoised.psnr:.2f} dB."
    text = f"PSNR {noisy.psnr:.2f} to {denoised.psnr:.2f} dB"
    if noisy.ssim is not None and denoised.ssim is not None:
        text += f", SSIM {noisy.ssim:.3f} to {denoised.ssim:.3f}"
    baselines = [
        f"{method_name(name)} {decibels(quality.psnr)}"
        for name, quality in comparison.baselines.items()
    ]
    return f"{text}{f' ({in_prose(baselines)} dB)' if baselines else ''}."


def standing_sentences(result: DenoisingResult) -> list[list[str]]:
    """Compare the results with each baseline."""
    compared = [(image, image.comparison) for image in result.images if image.comparison]
    mean, sentences = result.mean_comparison, list[list[str]]()
    if mean is None:
        return []
    for baseline in mean.baselines:
        name, overall = method_name(baseline), _lead(mean, baseline)
        behind = [image for image, found in compared if _lead(found, baseline) < -TELLING]
        size = f"is {abs(overall):.2f} dB {'behind' if overall < 0 else 'ahead of'} {name}"
        if not math.isfinite(overall):
            size = "cannot be compared on average"
        text = f"Kernel PCA {size} on average; {name} is ahead on"
        if len(compared) == 1:
            sentences.append([f"Kernel PCA {size}."])
        elif behind:
            sentences.append([f"{text} {count(len(behind))}: ", *_named(behind), "."])
        else:
            sentences.append([f"{text} no image."])
    return sentences


def _lead(comparison: Comparison, baseline: str) -> float:
    """Return the PSNR of kernel PCA minus that of a baseline."""
    ours, other = comparison.denoised.psnr, comparison.baselines[baseline].psnr
    return 0.0 if ours == other else ours - other


def reason_text(image: ImageOutcome) -> Verbatim:
    """Return why an image failed, without the image's name at the start."""
    return cut(image.reason.removeprefix(f"{image.name}: ") or "no reason was given", 400)


def dictionary_sentence(dictionary: DictionaryView) -> str:
    """Describe the examples from which a dictionary was learned."""
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
    """Return the text that introduces a page of trials, as a list of parts to join."""
    n = len(result.trials)
    at = {1: "one strength", 2: "two strengths", 3: "three strengths"}.get(n, f"{n} strengths")
    if not result.established:
        return [
            "Every strength leaves ",
            cut(result.name),
            f" as it is: {_measured(result)}. With "
            f"{result.evidence.option or 'its level given by --sigma'} there are strengths to try.",
        ]
    return ["A piece of ", cut(result.name), f" denoised at {at}, to choose from."]


def trial_title(trial: Trial) -> str:
    """Return the title of a trial: its options in words."""
    words = in_prose([word.strip() for word in trial.option.split("--") if word.strip()])
    return _capital(words) or "With the options given"
