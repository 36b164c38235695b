"""JSON documents that ``kpca denoise`` prints, other than the result of a run."""

from __future__ import annotations

from kpca_apps.denoise.batch.profile import KIND, KindNoise
from kpca_apps.denoise.dictionary.choosing import LevelChoice
from kpca_apps.denoise.result import MeasuredFile
from kpca_apps.report.document import Document, Part

PLANNED_IMAGES = Document(
    "planned images",
    "Which file becomes which: kpca denoise run --dry-run --json.",
    added={
        "images": [
            Part("PlannedImage", "An image and its result.", added={"name": str, "output": str})
        ]
    },
)
EXAMPLE_IMAGES = Document(
    "example images",
    "Images that a dictionary would be learned from: kpca denoise fit --dry-run --json.",
    added={"images": [Part("Example", "An image.", added={"name": str, "shape": tuple[int, ...]})]},
)
FITTED_DICTIONARY = Document(
    "fitted dictionary",
    "A dictionary that was learned: kpca denoise fit --json.",
    added={
        "model": str,
        "n_examples": int,
        "shape": tuple[int, ...],
        "patch_size": int | None,
        "rule": str,
        "choices": tuple[LevelChoice, ...],
    },
)
_MEASURED = "The noise of an image's first page, or why it could not be measured."
MEASURED_NOISE = Document(
    "measured noise",
    'The noise of images, status "ok", or why it could not be measured: kpca denoise noise --json.',
    added={"images": [Part("MeasuredImage", _MEASURED, ((MeasuredFile, ()),), {"status": str})]},
)
NOISE_PROFILE = Document(
    KIND,
    "The noise of images of some kinds, to be used again: kpca denoise noise --save.",
    added={"kinds": tuple[KindNoise, ...]},
)
DOCUMENTS = (PLANNED_IMAGES, EXAMPLE_IMAGES, FITTED_DICTIONARY, MEASURED_NOISE, NOISE_PROFILE)
