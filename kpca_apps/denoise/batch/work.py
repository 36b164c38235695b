"""The work on one image of a batch: read, denoise, store, read back and examine.

It runs in a worker process. It writes nothing but an unfinished file beside the result's place;
the batch gives that its name once it stands in the record.
"""

from __future__ import annotations

import os
import secrets
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kpca_apps.denoise.batch.comparing import compare, measure_residual
from kpca_apps.denoise.batch.evidence import evidence_of
from kpca_apps.denoise.batch.inputs import Planned, colours_of, read_reference
from kpca_apps.denoise.batch.manifest import batch_key, partial_path
from kpca_apps.denoise.batch.previews import make_previews, used_range
from kpca_apps.denoise.image import dtype_range
from kpca_apps.denoise.noise.model import DenoiseInfo
from kpca_apps.denoise.progress import listening, part, writing
from kpca_apps.denoise.result import ImageOutcome, mean_comparison
from kpca_apps.errors import InputError, KpcaError
from kpca_apps.images.front_door import encode_image, read_image, target_format
from kpca_apps.images.stacks import page_groups
from kpca_apps.images.tags import camera_and_iso
from kpca_apps.images.types import ImageFile, Mosaic
from kpca_apps.names import one_line

BUG = "a bug in kpca"
IMPULSES = (
    "Single pixels stand out as impulse noise (salt and pepper) makes them: try --noise impulse."
)
POOLED = "The noise is what is typical of images of its kind in this batch, by --same-noise."
_MAX_NAME = 255  # bytes of a name that file systems hold

Denoise = Callable[..., tuple[NDArray[Any], DenoiseInfo]]


@dataclass(frozen=True)
class Run:
    """What is the same for all images of a run."""

    denoise: Denoise
    folder: Path  # of the results
    format: str
    settings: Mapping[str, Any]  # all that results depend on, for their keys in the record
    board: Path  # where the share that is done of each image is written, if somebody watches
    baselines: tuple[str, ...]

    def of(self, own: Mapping[str, Any]) -> Run:
        """Return the run as it is for an image that has settings of its own."""
        if not own:
            return self
        denoiser: Any = self.denoise
        return replace(self, denoise=denoiser.changed(own), settings={**self.settings, **own})


@dataclass(frozen=True)
class Task:
    """One image to work on."""

    planned: Planned
    number: int  # in the run, from 1
    reference: Path | None  # its clean image
    own: Mapping[str, Any] = field(default_factory=dict)  # its settings that are not the run's
    # Of an image that an earlier run finished: what it found, and the record's key and `compared`.
    outcome: ImageOutcome | None = None
    key: str = ""
    compared: str = ""


@dataclass(frozen=True)
class Done:
    """What a worker gives back: for the record, if there is a new result in `partial`."""

    outcome: ImageOutcome
    key: str = ""  # empty if the image failed
    partial: Path | None = None
    sha256: str = ""
    compared: str = ""  # a hash of the reference, and the baselines


def work(task: Task, run: Run) -> Done:
    """Work on one image; what is wrong with it, or with this program, comes back as its outcome.

    InputError where no further image can be written either.
    """
    name, run = task.planned.name, run.of(task.own)
    try:
        with listening(writing(run.board, task.number)):
            return _fresh(task, run) if task.outcome is None else _resumed(task, task.outcome, run)
    except _UnwritableError:
        raise
    except KpcaError as error:
        return failed(name, str(error))
    except MemoryError:
        reason = "takes more memory than there is; use fewer workers, or cut the image."
        return failed(name, reason)
    except Exception as error:
        # A bug, which must not cost the other images their results.
        reason = f"{BUG}, {type(error).__name__}: {error}"
        return failed(name, reason, traceback.format_exc())


def failed(name: str, reason: str, bug: str = "") -> Done:
    """Say in one line, which begins with the name, why there is no result."""
    label = one_line(name, 200)
    named = reason if reason.startswith(label) else f"{label}: {reason}"
    return Done(ImageOutcome(name, "failed", reason=one_line(named, 500), bug=bug))


def lost(task: Task) -> Done:
    """Give up an image on which its worker process ended each time."""
    reason = (
        "the system ended the process that worked on it, most likely for want of memory; use fewer "
        "--jobs, or cut the image."
    )
    return failed(task.planned.name, reason)


def _fresh(task: Task, run: Run) -> Done:
    name, output = task.planned.name, task.planned.output
    image = read_image(task.planned.source, label=name)
    written = target_format(image, run.format)
    alike: Any = getattr(run.denoise, "of_kind", None)
    uniform = image.mosaic is None and all(page == image.pages[0] for page in image.pages)
    own = alike(kind_of(image)) if alike and uniform else run.denoise
    is_pooled = own is not run.denoise
    run = replace(run, denoise=own)
    if len(os.fsencode(Path(output).name)) > _MAX_NAME:
        raise InputError(
            f"{one_line(name, 200)}: the name of its result would be longer than {_MAX_NAME} "
            "bytes; give the image a shorter name."
        )
    reference = read_reference(task.reference, name, image)
    began = time.perf_counter()
    target = run.folder / output
    partial = partial_path(target, secrets.token_hex(4), task.number)
    # Made before the long work, which would be lost on a folder that cannot be written to.
    with _writing_to(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        partial.open("xb").close()
    try:
        infos: list[DenoiseInfo] = []
        with _writing_to(target), partial.open("wb") as file:
            encode_image(
                file, _denoised(image, task.planned.source, run, infos), image, format=run.format
            )
            file.flush()
            os.fsync(file.fileno())
        seconds = time.perf_counter() - began
        sigma, data_range, other_types = _pooled(image, infos)
        telling = next((info for info in infos if not info.established), infos[0])
        stored = read_image(partial, label=name)
        outcome = ImageOutcome(
            name=name,
            status="ok",
            output=output,
            format=written,
            shape=image.pages[0].shape,
            dtype=str(image.pages[0].dtype),
            n_pages=len(image.pages),
            orientation=image.metadata.orientation,
            noise=infos[0].noise,
            sigma=sigma,
            page_sigmas=tuple(float(info.sigma) for info in infos),
            page_ranges=tuple(float(info.data_range) for info in infos),
            estimated=is_pooled or any(info.estimated for info in infos),
            correlated=any(info.correlated for info in infos),
            data_range=data_range,
            established=all(info.established for info in infos),
            impulses=any(info.impulses for info in infos),
            evidence=evidence_of(telling, str(run.settings.get("noise", "auto"))),
            own_settings=task.own,
            notes=(
                *image.notes,
                *_stack_note(image, task.planned.source, run.denoise),
                *other_types,
                *([IMPULSES] if any(info.impulses for info in infos) else []),
                *([POOLED] if is_pooled else []),
            ),
            seconds=seconds,
        )
        outcome = _examined(outcome, image, stored, reference, run)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    key = batch_key(image.sha256, output, run.settings)
    return Done(outcome, key, partial, stored.sha256, _compared_with(reference, run))


def kind_of(image: ImageFile) -> str:
    """Return what tells images apart whose noise may differ: camera and ISO, or else the size."""
    page = image.pages[0]
    channels = page.shape[2] if len(page.shape) == 3 else 1
    where = " x ".join(map(str, page.shape[1::-1]))
    return f"{camera_and_iso(image.metadata.exif) or where}, {channels} x {page.dtype}"


def _resumed(task: Task, outcome: ImageOutcome, run: Run) -> Done:
    """Make what the record does not hold of an image that is done: previews, new comparisons."""
    name, output = task.planned.name, task.planned.output
    image = read_image(task.planned.source, label=name)
    stored = read_image(run.folder / output, label=output)
    reference = read_reference(task.reference, name, image)
    if task.compared != _compared_with(reference, run):
        outcome = replace(outcome, comparison=None)
    outcome = _examined(outcome, image, stored, reference, run)
    return Done(replace(outcome, own_settings=task.own, resumed=True), task.key)


def _compared_with(reference: ImageFile | None, run: Run) -> str:
    return "" if reference is None else f"{reference.sha256} {' '.join(run.baselines)}"


class _UnwritableError(InputError):
    """No file can be written in the output folder."""


@contextmanager
def _writing_to(target: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        # Without a number it is not the system's word on a file, but a library's on an image.
        if error.errno is None:
            raise
        raise _UnwritableError(
            f"{one_line(str(target), 200)}: cannot be written ({error.strerror}); make room or "
            "choose another folder with --out, then run the same command again: what is done is "
            "kept."
        ) from None


@contextmanager
def _not_of_writing() -> Iterator[None]:
    """Keep the system's errors while a page is denoised apart from those of the file written."""
    try:
        yield
    except OSError as error:
        raise RuntimeError(f"{type(error).__name__}: {error}") from error


def _denoised(
    image: ImageFile, source: Path, run: Run, infos: list[DenoiseInfo]
) -> Iterator[NDArray[Any]]:
    """Yield each page denoised, in the type it was stored in; alpha stays as it is.

    What was found out about each is added to `infos`.
    """
    if image.mosaic is not None:
        picture, info = _denoised_raw(image.mosaic(), run)
        infos.append(info)
        yield picture
        return
    n_pages, stack = len(image.pages), getattr(run.denoise, "stack", False)
    pages = _stacks(image, source, run) if stack and n_pages > 1 else _singly(image, run)
    for number, (page, (denoised, info)) in enumerate(zip(image.pages, pages, strict=True)):
        stored = as_stored(denoised, page.dtype)
        if page.alpha:
            alpha = image.page(number)[..., -1:]
            stored = np.concatenate([stored.reshape(*stored.shape[:2], -1), alpha], axis=2)
        infos.append(info)
        yield stored


def _singly(image: ImageFile, run: Run) -> Iterator[tuple[NDArray[Any], DenoiseInfo]]:
    """Yield each page denoised on its own."""
    for number in range(len(image.pages)):
        with part(number, len(image.pages)), _not_of_writing():
            colours = colours_of(image.page(number))
            denoised = run.denoise(colours, channel_axis=-1 if colours.ndim == 3 else None)
        yield denoised


def _stacks(image: ImageFile, source: Path, run: Run) -> Iterator[tuple[NDArray[Any], DenoiseInfo]]:
    """Yield each page denoised with the others of its stack, in their order in the file."""
    for number, page in enumerate(image.pages, 1):
        if page != image.pages[0]:
            raise InputError(
                f"{image.label}: page {number} is of another size or type than page 1, so that its "
                "pages are no stack; leave out --stack."
            )
    groups = page_groups(source, len(image.pages))
    if groups == ():
        raise InputError(
            f"{image.label}: its metadata describe other pages than the {len(image.pages)} it has, "
            "so that it is not clear which are a stack; write it anew, or leave out --stack."
        )
    groups = groups or (tuple(range(len(image.pages))),)
    denoise: Any = run.denoise
    # Pages of stacks that lie between those of others wait in a file for their turn.
    waiting = tuple(chain(*groups)) != tuple(range(len(image.pages)))
    with tempfile.TemporaryFile(dir=run.folder) if waiting else nullcontext() as file:
        kept: Any = None
        infos: dict[int, DenoiseInfo] = {}
        for place, group in enumerate(groups):
            stream = denoise.stacked(lambda number: colours_of(image.page(number)), group)
            for number in group:
                with part(place, len(groups)), _not_of_writing():
                    pixels, infos[number] = next(stream)
                if file is None:
                    yield pixels, infos[number]
                    continue
                if kept is None:
                    shape = (len(image.pages), *pixels.shape)
                    kept = np.memmap(file, pixels.dtype, "w+", shape=shape)
                kept[number] = pixels
        for number in range(len(image.pages)) if file is not None else ():
            yield np.array(kept[number]), infos[number]


def _stack_note(image: ImageFile, source: Path, denoise: Any) -> tuple[str, ...]:
    """Say so where pages that are one volume or film were denoised each on its own."""
    if getattr(denoise, "stack", True) or len(image.pages) == 1 or image.format != "tiff":
        return ()
    groups = page_groups(source, len(image.pages))
    if groups is None:
        return ("If its pages are one volume or film, --stack denoises them together.",)
    if len(groups) in (0, len(image.pages)):
        return ()
    return ("Its pages are a volume or film, by its metadata: --stack denoises them together.",)


def _denoised_raw(mosaic: Mosaic, run: Run) -> tuple[NDArray[Any], DenoiseInfo]:
    """Return the picture of a mosaic that is denoised before it is developed."""
    denoiser: Any = run.denoise
    if not hasattr(denoiser, "clean_mosaic"):
        raise InputError(
            "a raw file is denoised by kernel PCA on groups of patches alone, without a model; "
            "develop it to a 16-bit TIFF first"
        )
    cleaned = denoiser.clean_mosaic(mosaic)
    return cleaned.at(denoiser.options.strength), cleaned.info


def as_stored(values: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return values in the type of a file: of integers rounded, and within its range."""
    if dtype.kind not in "ui":
        return values.astype(dtype)
    limits = np.iinfo(dtype)
    return np.asarray(np.clip(np.rint(values), limits.min, limits.max), dtype)


def _pooled(image: ImageFile, infos: list[DenoiseInfo]) -> tuple[float, float, tuple[str, ...]]:
    """Return level and range over the pages of the first one's type, and notes on the others.

    Levels of integers of 8 bits, of 16 bits and of floats are in units that do not go together.
    """
    by_type: dict[str, list[DenoiseInfo]] = {}
    for page, info in zip(image.pages, infos, strict=True):
        by_type.setdefault(str(page.dtype), []).append(info)
    (own, alike), *others = by_type.items()
    notes = []
    for dtype, pages in others:
        levels = sorted({f"{info.sigma:.3g}" for info in pages}, key=float)
        which = "1 page" if len(pages) == 1 else f"{len(pages)} pages"
        notes.append(
            f"The noise level is that of the pages of {own}; on {which} of {dtype} it is "
            f"{' to '.join(levels[:: max(1, len(levels) - 1)])} of "
            f"{max(info.data_range for info in pages):.6g}."
        )
    level = float(np.sqrt(np.mean([info.sigma**2 for info in alike])))
    return level, max(float(info.data_range) for info in alike), tuple(notes)


def _examined(
    outcome: ImageOutcome,
    image: ImageFile,
    stored: ImageFile,
    reference: ImageFile | None,
    run: Run,
) -> ImageOutcome:
    """Add the residual, previews and comparison, all from what stands in the files."""
    first, last = colours_of(image.page(0)), colours_of(stored.page(0))
    clean = None if reference is None else colours_of(reference.page(0))
    comparison = outcome.comparison
    if reference is not None and comparison is None:
        pages = []
        for number, sigma in enumerate(outcome.page_sigmas):
            noisy, found, sought = (colours_of(f.page(number)) for f in (image, stored, reference))
            # A speckle level is relative to the intensity, a raw file's in counts of the sensor.
            level = sigma * float(np.mean(noisy)) if outcome.noise == "speckle" else sigma
            if outcome.noise == "raw":
                level = measure_residual(noisy, found).sd
            span = dtype_range(noisy.dtype) or outcome.page_ranges[number] or 1.0
            pages.append(
                compare(noisy, found, sought, sigma=level, span=span, baselines=run.baselines)
            )
        comparison = mean_comparison(pages)
    orientation, icc = image.metadata.orientation, image.metadata.icc
    return replace(
        outcome,
        residual=measure_residual(first, last),
        used_range=used_range(last),
        comparison=comparison,
        previews=make_previews(first, last, clean=clean, orientation=orientation, icc=icc),
    )
