"""The work on one image of a batch: read, denoise, store, read back and examine.

It runs in a worker process. It writes nothing but an unfinished file beside the result's place;
the batch gives that its name once it stands in the record.
"""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from kpca_apps.denoise.batch.comparing import compare, measure_residual
from kpca_apps.denoise.batch.inputs import Planned, colours_of, read_reference
from kpca_apps.denoise.batch.manifest import batch_key
from kpca_apps.denoise.batch.previews import make_previews
from kpca_apps.denoise.denoiser import DenoiseInfo
from kpca_apps.denoise.image import dtype_range
from kpca_apps.denoise.progress import listening, part, writing
from kpca_apps.denoise.result import Comparison, ImageOutcome, mean_quality
from kpca_apps.errors import InputError, KpcaError
from kpca_apps.files.images.front_door import encode_image, read_image, target_format
from kpca_apps.files.images.types import ImageFile
from kpca_apps.files.names import one_line

__all__ = [
    "BUG",
    "Denoise",
    "Done",
    "Task",
    "as_stored",
    "work",
]


# What file systems hold.
_MAX_NAME = 255
BUG = "a bug in kpca"


Denoise = Callable[..., tuple[NDArray[Any], DenoiseInfo]]


@dataclass(frozen=True)
class Task:
    """One image to work on, and how.

    The unfinished result goes to `partial`, a name that no other image of any run has, and the
    share that is done to `board`, if somebody watches; `number` is that of the image in the run,
    `owner` the process number of the run. `settings` make the key in the record. `outcome` is what
    an earlier run found, if it finished this image, with `key` and `compared` of its record: then
    only previews are made.
    """

    planned: Planned
    folder: Path
    format: str
    settings: Mapping[str, Any]
    partial: Path
    board: Path
    number: int
    owner: int
    reference: Path | None = None
    rivals: tuple[str, ...] = ()
    outcome: ImageOutcome | None = None
    key: str = ""
    compared: str = ""


@dataclass(frozen=True)
class Done:
    """What a worker gives back.

    For the record: `key`, empty if the image failed; `sha256`, empty if nothing was written;
    `compared`, a hash of the reference and the baselines. `fatal` says why no further image can be
    written.
    """

    task: Task
    outcome: ImageOutcome
    key: str = ""
    sha256: str = ""
    compared: str = ""
    fatal: str = ""


def work(task: Task, denoise: Denoise) -> Done:
    """Work on one image; what is wrong with it, or with this program, comes back as its outcome."""
    trace = ""
    try:
        # One thread for linear algebra: sums in another order would be other bytes.
        with threadpool_limits(1), listening(writing(task.board, task.number)):
            return _resumed(task) if task.outcome is not None else _fresh(task, denoise)
    except KpcaError as error:
        reason = str(error)
    except MemoryError:
        reason = "takes more memory than there is; use fewer workers, or cut the image."
    except Exception as error:
        # A bug, which must not cost the other images their results.
        reason, trace = f"{BUG}, {type(error).__name__}: {error}", traceback.format_exc()
    name = task.planned.name
    label = one_line(name, 200)
    named = one_line(reason if reason.startswith(label) else f"{label}: {reason}", 500)
    return Done(task, ImageOutcome(name, "failed", reason=named, bug=trace))


def _fresh(task: Task, denoise: Denoise) -> Done:
    image = read_image(task.planned.source, label=task.planned.name)
    written = target_format(image, task.format)
    _require_name(task.planned)
    reference = read_reference(task.reference, task.planned.name, image)
    began = time.perf_counter()
    try:
        infos = _denoise_into(task.partial, image, denoise, task)
    except _UnwritableError as error:
        outcome = ImageOutcome(task.planned.name, "failed", reason=str(error))
        return Done(task, outcome, fatal=outcome.reason)
    seconds = time.perf_counter() - began
    sigma, data_range, other_types = _pooled(image, infos)
    try:
        stored = read_image(task.partial, label=task.planned.name)
        outcome = ImageOutcome(
            name=task.planned.name,
            status="ok",
            output=task.planned.output,
            format=written,
            shape=image.pages[0].shape,
            dtype=str(image.pages[0].dtype),
            n_pages=len(image.pages),
            orientation=image.metadata.orientation,
            noise=infos[0].noise,
            sigma=sigma,
            page_sigmas=tuple(float(info.sigma) for info in infos),
            page_ranges=tuple(float(info.data_range) for info in infos),
            estimated=any(info.estimated for info in infos),
            correlated=any(info.correlated for info in infos),
            data_range=data_range,
            established=all(info.established for info in infos),
            impulses=any(info.impulses for info in infos),
            notes=(*image.notes, *other_types, *_doubts(infos)),
            seconds=seconds,
        )
        outcome = _examined(outcome, image, stored, reference, task)
    except BaseException:
        task.partial.unlink(missing_ok=True)
        raise
    key = batch_key(image.sha256, task.planned.output, task.settings)
    return Done(task, outcome, key, stored.sha256, _compared_with(task, reference))


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


def _doubts(infos: list[DenoiseInfo]) -> tuple[str, ...]:
    """Say so where nothing was done for want of noise, or what was done is the wrong thing."""
    sentences = []
    if any(info.estimated and not info.established for info in infos):
        page = "the image" if len(infos) == 1 else "at least one of the pages"
        sentences.append(
            f"No noise could be established in {page}, which was left as it was: what was measured "
            "may be texture. If it is noisy, give the level by --sigma, or --noise camera for a "
            "photograph as a camera saved it."
        )
    if any(info.impulses for info in infos):
        sentences.append(
            "Single pixels stand out as impulse noise (salt and pepper) makes them: try "
            "--noise impulse."
        )
    return tuple(sentences)


def _require_name(planned: Planned) -> None:
    """Refuse an image whose result would have too long a name, before the long work."""
    name = Path(planned.output).name
    if len(os.fsencode(name)) > _MAX_NAME:
        raise InputError(
            f"{one_line(planned.name, 200)}: the name of its result would be longer than "
            f"{_MAX_NAME} bytes; give the image a shorter name."
        )


def _resumed(task: Task) -> Done:
    """Make what the record does not hold of an image that is done: previews, new comparisons."""
    if task.outcome is None:
        raise RuntimeError("nothing to resume")
    image = read_image(task.planned.source, label=task.planned.name)
    stored = read_image(task.folder / task.planned.output, label=task.planned.output)
    reference = read_reference(task.reference, task.planned.name, image)
    outcome = task.outcome
    if task.compared != _compared_with(task, reference):
        outcome = replace(outcome, comparison=None)
    outcome = _examined(outcome, image, stored, reference, task)
    return Done(task, replace(outcome, resumed=True), task.key)


def as_stored(values: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return values in the type of a file: of integers rounded, and within its range."""
    if dtype.kind not in "ui":
        return values.astype(dtype)
    limits = np.iinfo(dtype)
    return np.asarray(np.clip(np.rint(values), limits.min, limits.max), dtype)


class _UnwritableError(Exception):
    """No file can be written in the output folder."""


def _denoise_into(place: Path, image: ImageFile, denoise: Denoise, task: Task) -> list[DenoiseInfo]:
    """Denoise every page, and write an unfinished file of them, flushed to disk."""
    _require_run(task.owner)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        # Opened before the long work, which would be lost on a folder that cannot be written to.
        file = place.open("xb")
    except OSError as error:
        raise _unwritable(task, error) from None
    try:
        with file:
            pages, infos = _denoised(image, denoise, task.owner)
            encode_image(file, pages, image, format=task.format)
            file.flush()
            os.fsync(file.fileno())
    except BaseException as error:
        place.unlink(missing_ok=True)
        # Without a number it is not the system's word on a file, but a library's on an image.
        if isinstance(error, OSError) and error.errno is not None:
            raise _unwritable(task, error) from None
        raise
    return infos


def _denoised(
    image: ImageFile, denoise: Denoise, owner: int
) -> tuple[list[NDArray[Any]], list[DenoiseInfo]]:
    """Return each page denoised, in the type it was stored in; alpha stays as it is."""
    pages, infos = [], []
    for number, page in enumerate(image.pages):
        pixels = image.page(number)
        colours = colours_of(pixels)
        with part(number, len(image.pages)):
            denoised, info = denoise(colours, channel_axis=-1 if colours.ndim == 3 else None)
        stored = as_stored(denoised, page.dtype)
        if page.alpha:
            stored = np.concatenate(
                [stored.reshape(*stored.shape[:2], -1), pixels[..., -1:]], axis=2
            )
        pages.append(stored)
        infos.append(info)
        # A worker may outlive the run for a while.
        _require_run(owner)
    return pages, infos


def _require_run(owner: int) -> None:
    if owner not in (os.getpid(), os.getppid()):
        raise InputError("the run was ended before this image was done.")


def _unwritable(task: Task, error: OSError) -> _UnwritableError:
    where = one_line(str(task.folder / task.planned.output), 200)
    return _UnwritableError(
        f"{where}: cannot be written ({error.strerror}); make room or choose another folder with "
        "--out, then run the same command again: what is done is kept."
    )


def _examined(
    outcome: ImageOutcome,
    image: ImageFile,
    stored: ImageFile,
    reference: ImageFile | None,
    task: Task,
) -> ImageOutcome:
    """Add the residual, previews and comparison, all from what stands in the files."""
    first, last = colours_of(image.page(0)), colours_of(stored.page(0))
    clean = None if reference is None else colours_of(reference.page(0))
    comparison = outcome.comparison
    if reference is not None and comparison is None:
        comparison = _compared(outcome, image, stored, reference, task.rivals)
    return replace(
        outcome,
        residual=measure_residual(first, last),
        comparison=comparison,
        previews=make_previews(
            first,
            last,
            clean=clean,
            orientation=image.metadata.orientation,
            icc=image.metadata.icc,
        ),
    )


def _compared_with(task: Task, reference: ImageFile | None) -> str:
    return "" if reference is None else f"{reference.sha256} {' '.join(task.rivals)}"


def _compared(
    outcome: ImageOutcome,
    image: ImageFile,
    stored: ImageFile,
    reference: ImageFile,
    rivals: tuple[str, ...],
) -> Comparison:
    """Compare page by page and take means."""
    found = []
    for number, sigma in enumerate(outcome.page_sigmas):
        noisy, clean = colours_of(image.page(number)), colours_of(reference.page(number))
        # A speckle level is relative to the intensity.
        level = sigma * float(np.mean(noisy)) if outcome.noise == "speckle" else sigma
        found.append(
            compare(
                noisy,
                colours_of(stored.page(number)),
                clean,
                sigma=level,
                span=dtype_range(noisy.dtype) or outcome.page_ranges[number] or 1.0,
                rivals=rivals,
            )
        )
    return Comparison(
        noisy=mean_quality([one.noisy for one in found]),
        denoised=mean_quality([one.denoised for one in found]),
        rivals={name: mean_quality([one.rivals[name] for one in found]) for name in rivals},
    )
