import tempfile
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import numpy as np
from PIL import Image
from skimage import data

from kpca_apps.denoise.batch.examine.previews import make_previews
from kpca_apps.denoise.batch.run import run_batch
from kpca_apps.denoise.denoiser import denoise_with_info
from kpca_apps.denoise.result import (
    Comparison,
    ComponentView,
    DenoisingResult,
    DictionaryView,
    Evidence,
    ImageOutcome,
    ImagePreviews,
    NoiseLaw,
    Preview,
    Quality,
    Residual,
    Trial,
    TrialResult,
)

HOSTILE = "<script>alert(1)<\\script> {{7*7}} '\"&amp; #?%20 \u202egnp.png"
LONG = "long name " * 19 + ".png"
SETTINGS = {"quality": "fast", "noise": "auto"}


def _clean() -> dict[str, np.ndarray]:
    """Return small crops of photographs: grey, colour, 16 bits, wide and high."""
    astronaut, camera = data.astronaut(), data.camera()
    return {
        "camera.png": camera[100:240, 180:312],
        "deep.tif": camera[100:180, 180:260].astype(np.uint16) * 100,
        "eye.png": data.chelsea()[90:160, 120:210],
        "high.png": astronaut[:160, 200:220],
        "sub folder/wide #1.png": astronaut[100:124, :200],
        "tiny.png": camera[200:208, 240:248],
    }


@cache
def real() -> DenoisingResult:
    """Run the application on a batch of every kind of image, with clean images."""
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as name:
        noisy, clean = Path(name, "noisy"), Path(name, "clean")
        for file, pixels in _clean().items():
            most = np.iinfo(pixels.dtype).max if pixels.dtype == np.uint8 else 25500
            spoilt = np.clip(pixels + rng.normal(0, 0.08 * most, pixels.shape), 0, most)
            for folder, image in ((noisy, spoilt.astype(pixels.dtype)), (clean, pixels)):
                path = folder / file
                path.parent.mkdir(parents=True, exist_ok=True)
                Image.fromarray(image).save(path)
        (noisy / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\n")
        result = run_batch(
            [noisy],
            Path(name, "out"),
            SETTINGS,
            denoise=partial(denoise_with_info, **SETTINGS),
            reference=clean,
            baselines=("nl_means", "wavelet"),
        )
    return replace(result, command="kpca denoise run noisy", versions={"numpy": "2.1.0"})


@cache
def previews(seed: int = 0, shape: tuple[int, ...] = (40, 60)) -> ImagePreviews:
    before = np.random.default_rng(seed).integers(0, 256, shape).astype(np.uint8)
    return make_previews(before, before // 2 + 64)


def image(name: str = "a.png", sigma: float = 20.0, **changes: object) -> ImageOutcome:
    """Return an image without anything unusual."""
    usual = ImageOutcome(
        name,
        "ok",
        output=name,
        format="png",
        shape=(40, 60),
        dtype="uint8",
        n_pages=1,
        noise="gaussian",
        sigma=sigma,
        page_sigmas=(sigma,),
        estimated=True,
        data_range=255.0,
        residual=Residual(0.9 * sigma, 0.02, 0.01, structured=False),
        previews=previews(),
    )
    return replace(usual, **changes)  # type: ignore[arg-type]


def law(gain: float = 3.76, constant: float = -12.45, **changes: object) -> NoiseLaw:
    """Return the law of Poisson noise in an 8-bit image."""
    brightness = tuple(np.linspace(4.0, 80.0, 12).tolist())
    usual = NoiseLaw(
        gain,
        constant,
        blur=0.0,
        interval=(0.9, 1.1),
        established=True,
        clipped=False,
        log_odds_flat=-90.0,
        log_odds_white=0.0,
        brightness=brightness,
        variances=tuple(1.02 * (gain * x + constant) for x in brightness),
    )
    return replace(usual, **changes)  # type: ignore[arg-type]


def counted(name: str = "cells.tif", *laws: NoiseLaw, **changes: object) -> ImageOutcome:
    """Return an image with Poisson noise."""
    evidence = Evidence(
        why="it is stronger where the image is brighter",
        runner_up="noise as strong everywhere",
        log_odds=-90.0,
        laws=laws or (law(),),
    )
    return image(name, 30.8, noise="poisson", evidence=evidence, **changes)


def failed(
    name: str = "broken.png", reason: str = "ends too early; fetch it again."
) -> ImageOutcome:
    return ImageOutcome(name, "failed", reason=f"{name}: {reason}")


def compared(noisy: float, denoised: float, **baselines: float) -> Comparison:
    return Comparison(
        Quality(noisy, 0.4),
        Quality(denoised, 0.8),
        {name: Quality(psnr, 0.7) for name, psnr in baselines.items()},
    )


def many(n: int = 500) -> DenoisingResult:
    """Return a batch too large for one page."""
    images = [image(f"roll {i % 7}/{i:03d}.png", 5 + i % 40) for i in range(n)]
    return DenoisingResult((*images, *(failed(f"bad{i}.png") for i in range(20))), SETTINGS)


def hostile() -> DenoisingResult:
    """Return a batch whose names and notes might break a page."""
    images = (
        image(HOSTILE, notes=(f"note {HOSTILE}",)),
        image(LONG),
        failed(f"bad {HOSTILE}", f"reason {HOSTILE}"),
    )
    settings = {HOSTILE: HOSTILE}
    return DenoisingResult(images, settings, notes=(HOSTILE,) * 3, command=f"kpca {HOSTILE}")


def _tile(level: int) -> Preview:
    return make_previews(*[np.full((8, 8), level, np.uint8)] * 2).crops[0].after


def with_dictionary() -> DenoisingResult:
    components = tuple(
        ComponentView(number, 0.5**number, _tile(40 * number), _tile(255 - 40 * number))
        for number in (1, 2, 3)
    )
    rule = "Both were chosen by the error on held-out examples."
    dictionary = DictionaryView("d.kpca", 1200, 8, (8, 8, 1), 64, 3.25, rule, components)
    return DenoisingResult((image(), image("b.png")), SETTINGS, dictionary=dictionary)


def trial() -> TrialResult:
    """Return a trial of three strengths on a crop."""
    seen = previews()
    return TrialResult(
        name=HOSTILE,
        left=12,
        top=34,
        width=60,
        height=40,
        noise="gaussian",
        sigma=20.0,
        estimated=True,
        correlated=True,
        data_range=255.0,
        before=seen.before,
        trials=tuple(
            Trial(strength, f"--strength {strength}", seen.after, seen.residual, 20 * strength)
            for strength in (0.5, 0.75, 1.0)
        ),
        command="kpca denoise run a.png --strength 0.75",
        settings=SETTINGS,
        versions={"numpy": "2.1.0"},
    )


BATCHES = {
    "real": real,
    "one": lambda: DenoisingResult((image(),)),
    "two": lambda: DenoisingResult((image(), image("b.png", 10.0))),
    "all_failed": lambda: DenoisingResult((failed(), failed("b.png"))),
    "counted": lambda: DenoisingResult((counted(),)),
    "without_pictures": lambda: DenoisingResult((image(previews=None, residual=None),)),
    "many": lambda: many(30),
    "hostile": hostile,
    "with_dictionary": with_dictionary,
}
