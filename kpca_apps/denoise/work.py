"""The work on one image of a batch: read, denoise, store, read back and examine.

It runs in a worker process. It writes nothing but an unfinished file beside the result's place;
the batch gives that its name once it stands in the record.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from kpca_apps.denoise.comparing import compare, measure_residual, value_span
from kpca_apps.denoise.manifest import batch_key
from kpca_apps.denoise.naming import Planned
from kpca_apps.denoise.previews import make_previews
from kpca_apps.denoise.result import Comparison, ImageOutcome, mean_quality
from kpca_apps.errors import InputError, KpcaError
from kpca_apps.files.images import ImageFile, encode_image, read_image, target_format
from kpca_apps.files.names import one_line

__all__ = [
    "Denoise",
    "Done",
    "NoiseInfo",
    "Task",
    "as_stored",
    "colours_of",
    "partial_path",
    "work",
]


# What file systems hold.
_MAX_NAME = 255


class NoiseInfo(Protocol):
    """What a denoising function says of an image; see `kpca_apps.denoise.denoiser.DenoiseInfo`."""

    @property
    def noise(self) -> str:
        """The noise model used."""

    @property
    def sigma(self) -> float:
        """Noise level used, in the units of the image."""

    @property
    def estimated(self) -> bool:
        """Whether the level was estimated."""

    @property
    def correlated(self) -> bool:
        """Whether neighbouring pixels share their noise."""

    @property
    def data_range(self) -> float:
        """Range of values assumed."""

    @property
    def established(self) -> bool:
        """Whether there is noise for sure; where not, the image was left as it was."""

    @property
    def impulses(self) -> bool:
        """Whether single pixels stand out, though the noise was not taken for impulses."""


Denoise = Callable[..., tuple[NDArray[Any], NoiseInfo]]


@dataclass(frozen=True)
class Task:
    """One image to work on, and how.

    Attributes
    ----------
    planned : Planned
    folder : Path
        The output folder.
    format : str
        ``"same"``, ``"png"`` or ``"tiff"``.
    settings : mapping
        Of which the key in the record is made.
    token : str
        8 hexadecimal digits that mark this run's unfinished files.
    owner : int
        Process number of the run.
    reference : Path or None
        The clean image.
    rivals : tuple of str
    outcome : ImageOutcome or None
        What an earlier run found, if it finished this image: only previews are made.
    compared : str
        What that run compared it with, as `Done.compared`.
    """

    planned: Planned
    folder: Path
    format: str
    settings: Mapping[str, Any]
    token: str
    owner: int
    reference: Path | None = None
    rivals: tuple[str, ...] = ()
    outcome: ImageOutcome | None = None
    compared: str = ""


@dataclass(frozen=True)
class Done:
    """What a worker gives back.

    Attributes
    ----------
    planned : Planned
    outcome : ImageOutcome
    key, sha256 : str
        For the record; empty if nothing was written.
    compared : str
        Hash of the reference, and the rivals; empty without a reference.
    fatal : str
        Why no further image can be written; empty if one can.
    """

    planned: Planned
    outcome: ImageOutcome
    key: str = ""
    sha256: str = ""
    compared: str = ""
    fatal: str = ""


def work(task: Task, denoise: Denoise) -> Done:
    """Work on one image; what is wrong with it comes back as its outcome.

    Parameters
    ----------
    task : Task
    denoise : callable
        ``denoise(pixels, channel_axis=...)`` gives the denoised array and a `NoiseInfo`.

    Returns
    -------
    Done
    """
    planned = task.planned
    try:
        # One thread for linear algebra: sums in another order would be other bytes.
        with threadpool_limits(1):
            return _resumed(task) if task.outcome is not None else _fresh(task, denoise)
    except KpcaError as error:
        reason = str(error)
    except MemoryError:
        reason = "takes more memory than there is; use fewer workers, or cut the image."
    except (ArithmeticError, AssertionError, LookupError, TypeError, ValueError, OSError) as error:
        reason = f"unexpected {type(error).__name__}: {error}"
    label = one_line(planned.name, 200)
    named = reason if reason.startswith(label) else f"{label}: {reason}"
    return Done(planned, ImageOutcome(planned.name, "failed", reason=one_line(named, 500)))


def partial_path(folder: Path, output: str, token: str) -> Path:
    """Return the place of an unfinished result."""
    target = folder / output
    return target.with_name(f".{target.name[:40]}.{token}.partial")


def _fresh(task: Task, denoise: Denoise) -> Done:
    image = read_image(task.planned.source, label=task.planned.name)
    written = target_format(image, task.format)
    _require_name(task.planned)
    reference = _reference(task, image)
    partial = partial_path(task.folder, task.planned.output, task.token)
    infos: list[NoiseInfo] = []
    began = time.perf_counter()
    try:
        fatal = _store(partial, _denoised(image, denoise, infos), image, task)
        if fatal:
            outcome = ImageOutcome(task.planned.name, "failed", reason=fatal)
            return Done(task.planned, outcome, fatal=fatal)
        seconds = time.perf_counter() - began
        stored = read_image(partial, label=task.planned.name)
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
            sigma=float(np.sqrt(np.mean([info.sigma**2 for info in infos]))),
            page_sigmas=tuple(float(info.sigma) for info in infos),
            estimated=any(info.estimated for info in infos),
            correlated=any(info.correlated for info in infos),
            data_range=float(infos[0].data_range),
            established=all(info.established for info in infos),
            impulses=any(info.impulses for info in infos),
            notes=(*image.notes, *_doubts(infos)),
            seconds=seconds,
        )
        outcome = _examined(outcome, image, stored, reference, task)
        key = batch_key(image.sha256, task.planned.output, task.settings)
        return Done(task.planned, outcome, key, stored.sha256, _compared_with(task, reference))
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def _doubts(infos: list[NoiseInfo]) -> tuple[str, ...]:
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
    reference = _reference(task, image)
    outcome = task.outcome
    if task.compared != _compared_with(task, reference):
        outcome = replace(outcome, comparison=None)
    outcome = _examined(outcome, image, stored, reference, task)
    return Done(task.planned, replace(outcome, resumed=True))


def _denoised(image: ImageFile, denoise: Denoise, infos: list[NoiseInfo]) -> Iterator[NDArray[Any]]:
    """Yield each page denoised, in the type it was stored in; alpha stays as it is."""
    for number, page in enumerate(image.pages):
        pixels = image.page(number)
        colours = colours_of(pixels)
        denoised, info = denoise(colours, channel_axis=-1 if colours.ndim == 3 else None)
        infos.append(info)
        stored = as_stored(denoised, page.dtype)
        if page.alpha:
            stored = np.concatenate(
                [stored.reshape(*stored.shape[:2], -1), pixels[..., -1:]], axis=2
            )
        yield stored


def colours_of(pixels: NDArray[Any]) -> NDArray[Any]:
    """Return an image without its alpha channel.

    Examples
    --------
    >>> colours_of(np.zeros((4, 5, 2))).shape, colours_of(np.zeros((4, 5, 4))).shape
    ((4, 5), (4, 5, 3))
    """
    if pixels.ndim == 3 and pixels.shape[2] == 2:
        return pixels[..., 0]
    if pixels.ndim == 3 and pixels.shape[2] == 4:
        return pixels[..., :3]
    return pixels


def as_stored(values: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return values in the type of a file: rounded, and within its range, if that is of integers.

    Examples
    --------
    >>> as_stored(np.array([-3.0, 7.6, 300.0]), np.dtype(np.uint8)).tolist()
    [0, 8, 255]
    """
    if dtype.kind not in "ui":
        return values.astype(dtype)
    limits = np.iinfo(dtype)
    return np.asarray(np.clip(np.rint(values), limits.min, limits.max), dtype)


def _store(partial: Path, pages: Iterator[NDArray[Any]], image: ImageFile, task: Task) -> str:
    """Write an unfinished file, flushed to disk; return why no file can be written, or nothing."""
    _require_run(task.owner)
    try:
        partial.parent.mkdir(parents=True, exist_ok=True)
        # Opened before the long work, which would be lost on a folder that cannot be written to.
        with partial.open("xb") as file:
            encode_image(file, _while_run(pages, task.owner), image, format=task.format)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        partial.unlink(missing_ok=True)
        if error.errno is None:
            # Not the system's word on a file, but a library's on an image.
            raise
        return _unwritable(task, error)
    return ""


def _while_run(pages: Iterator[NDArray[Any]], owner: int) -> Iterator[NDArray[Any]]:
    """Yield pages as long as the run lives: a worker may outlive it for a while."""
    for pixels in pages:
        _require_run(owner)
        yield pixels


def _require_run(owner: int) -> None:
    if owner not in (os.getpid(), os.getppid()):
        raise InputError("the run was ended before this image was done.")


def _unwritable(task: Task, error: OSError) -> str:
    where = one_line(str(task.folder / task.planned.output), 200)
    return (
        f"{where}: cannot be written ({error.strerror}); make room or choose another folder with "
        "--out, then run the same command again: what is done is kept."
    )


def _reference(task: Task, image: ImageFile) -> ImageFile | None:
    """Open the clean image and see that it fits."""
    if task.reference is None:
        return None
    label = f"{task.planned.name}: its reference {task.reference.name}"
    try:
        clean = read_image(task.reference, label=label)
    except InputError as error:
        raise InputError(str(error)) from None
    for number, (one, other) in enumerate(zip(image.pages, clean.pages, strict=False), 1):
        if _without_alpha(one.shape) != _without_alpha(other.shape):
            where = f" (page {number})" if len(image.pages) > 1 else ""
            raise InputError(
                f"{label} has shape {_shown(other.shape)} and the image{where} "
                f"{_shown(one.shape)}; give a reference of the same size and channels."
            )
    if len(image.pages) != len(clean.pages):
        raise InputError(
            f"{label} has {len(clean.pages)} pages and the image {len(image.pages)}; give a "
            "reference with the same pages."
        )
    if image.pages[0].dtype != clean.pages[0].dtype:
        raise InputError(
            f"{label} holds {clean.pages[0].dtype} and the image {image.pages[0].dtype}; give a "
            "reference of the same type."
        )
    return clean


def _without_alpha(shape: tuple[int, ...]) -> tuple[int, ...]:
    channels = shape[2] if len(shape) == 3 else 1
    return (*shape[:2], 3 if channels >= 3 else 1)


def _shown(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape))


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
                span=value_span(noisy, outcome.data_range),
                rivals=rivals,
            )
        )
    return Comparison(
        noisy=mean_quality([one.noisy for one in found]),
        denoised=mean_quality([one.denoised for one in found]),
        rivals={name: mean_quality([one.rivals[name] for one in found]) for name in rivals},
    )
