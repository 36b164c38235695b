"""Process one image of a batch in a worker: read, denoise, write, read back and examine.

The worker writes only a temporary file beside the target. The batch records and renames it.
"""

from __future__ import annotations

import functools
import os
import secrets
import shutil
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from kpca_apps.denoise.batch.denoisers import Denoiser, GroupDenoiser
from kpca_apps.denoise.batch.examine.comparing import compare, measure_residual, read_reference
from kpca_apps.denoise.batch.examine.evidence import evidence_of
from kpca_apps.denoise.batch.examine.previews import make_previews, used_range
from kpca_apps.denoise.batch.inputs import Planned, named_reason
from kpca_apps.denoise.batch.manifest import batch_key, partial_path, sync_tree
from kpca_apps.denoise.batch.pages import (
    defects_note,
    denoised_pages,
    empty_note,
    kind_of,
    left_note,
    shown_page,
    stack_note,
    without_holes,
    write_negative,
)
from kpca_apps.denoise.estimate.info import DenoiseInfo
from kpca_apps.denoise.image import dtype_range
from kpca_apps.denoise.options import is_relative
from kpca_apps.denoise.progress import listening, writing
from kpca_apps.denoise.result import ImageOutcome, mean_comparison
from kpca_apps.errors import InputError, KpcaError, opening
from kpca_apps.images.files import encode_image, read_image, target_format
from kpca_apps.images.kinds import FORMATS
from kpca_apps.images.types import ImageFile
from kpca_apps.names import one_line
from kpca_apps.system.files.temporary import remove
from kpca_apps.system.stores.addresses import AnyPath, StorePath

BUG = "a bug in kpca"
IMPULSES = "Single pixels stand out, as in impulse noise (salt and pepper): try --noise impulse."
POOLED = "The noise level is that of images of its kind in this batch, by --same-noise."
REENCODED = (
    "JPEG is encoded again, which slightly changes the part that was not denoised: --format png "
    "keeps it."
)
DITHERED = (
    "Integers cannot hold fractions of its low counts, so they are spread over neighbouring "
    "pixels, which keeps the total; save it as float32 first to keep the fractions."
)
IN_BANDS = (
    "A page this large is denoised in pieces: lone pixels, dead lines and padding are not "
    "counted, fractions of low counts are rounded, and the share of pixels without data is that "
    "of the squares in which noise was measured."
)
NOT_COMPARED = "Not compared: "
PROFILED = "The noise is that of images of its kind, by --profile."
NEGATIVE = ("Denoised as the sensor saw it, and written as a mosaic, to be developed as before.",)
_MAX_NAME = 255  # maximum number of bytes of a file name


@dataclass(frozen=True)
class Run:
    """Settings shared by all images of a run."""

    denoise: Denoiser
    folder: AnyPath  # folder of the results
    format: str
    settings: Mapping[str, Any]  # everything on which results depend, hashed into `Done.key`
    board: Path  # file for the progress of each image, if progress is displayed
    baselines: tuple[str, ...]
    raw_out: str = "tiff"  # output for raw files: "tiff" for a picture, "dng" for a mosaic
    force: bool = False  # whether results may replace any file at their target

    def of(self, own: Mapping[str, Any]) -> Run:
        """Return the run with an image's own settings."""
        if not own:
            return self
        assert isinstance(self.denoise, GroupDenoiser)
        return replace(self, denoise=self.denoise.changed(own), settings={**self.settings, **own})


@dataclass(frozen=True)
class Done:
    """A processed image, as the worker returns it and the record stores it."""

    outcome: ImageOutcome
    key: str = ""  # hash of everything on which the result depends; empty if the image failed
    sha256: str = ""  # SHA-256 of the result
    source: str = ""  # SHA-256 of the input
    compared: str = ""  # hash of the reference and the names of the baselines
    partial: Path | None = None  # temporary file or folder of a new result

    def record(self) -> dict[str, Any]:
        """Return the fields to store. A resumed run recomputes deleted fields that it needs."""
        stored = asdict(self)
        for name in ("previews", "residual", "own_settings", "resumed", "seconds", "bug"):
            del stored["outcome"][name]
        del stored["partial"]
        return {"output": self.outcome.output, **stored}


@dataclass(frozen=True)
class Task:
    """An image to process."""

    planned: Planned
    number: int  # number of the image in the run, from 1
    reference: AnyPath | None  # clean image, if there is one
    own: Mapping[str, Any] = field(default_factory=dict)  # settings that differ from the run's
    earlier: Done | None = None  # record of an existing result


def work(task: Task, run: Run) -> Done:
    """Process one image; faults of the image and bugs of this program become failed outcomes.

    Raises UnwritableError if no further image can be written either.
    """
    name, run = task.planned.name, run.of(task.own)
    try:
        with listening(writing(run.board, task.number)):
            return _denoise(task, run) if task.earlier is None else _resume(task, task.earlier, run)
    except UnwritableError:
        raise
    except KpcaError as error:
        return failed(name, str(error))
    except MemoryError:
        return failed(
            name, "takes more memory than available; use fewer workers, or cut the image."
        )
    except Exception as error:
        # A bug must not cost the other images their results.
        return failed(name, f"{BUG}, {type(error).__name__}: {error}", traceback.format_exc())


def failed(name: str, reason: str, bug: str = "") -> Done:
    """Return the outcome of an image without a result; the outcome states the reason."""
    return Done(ImageOutcome(name, "failed", reason=named_reason(name, reason), bug=bug))


def lost(task: Task) -> Done:
    """Return the outcome of an image whose worker process was killed on each attempt."""
    return failed(
        task.planned.name,
        "the system killed its worker process, most likely because memory ran out; use fewer "
        "--jobs, or cut the image.",
    )


def _denoise(task: Task, run: Run) -> Done:
    """Denoise an image into a temporary file."""
    name, source, output = task.planned.name, task.planned.source, task.planned.output
    assert isinstance(source, Path)  # images in a store were downloaded
    assert isinstance(run.folder, Path)
    folder = run.folder
    image = read_image(source, label=name)
    as_negative = image.mosaic is not None and run.raw_out == "dng"
    written = "dng" if as_negative else target_format(image, run.format)
    denoise = _denoise_of_kind(image, run.denoise)
    is_pooled = denoise is not run.denoise
    is_of_a_part = denoise.mask is not None or denoise.region is not None
    if len(os.fsencode(Path(output).name)) > _MAX_NAME:
        raise InputError(
            f"the name of its result would be longer than {_MAX_NAME} bytes; give the image a "
            "shorter name."
        )
    reference, misfits = _clean_image(task, image)
    began = time.perf_counter()
    target = folder / output
    partial = partial_path(target, secrets.token_hex(4), task.number)
    # Fail before denoising if the folder cannot be written to.
    with writing_to(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        if not as_negative and FORMATS[written].is_folder:
            partial.mkdir()
        else:
            partial.open("xb").close()
    try:
        infos: list[DenoiseInfo] = []

        def write(place: Any) -> None:
            if as_negative:
                write_negative(place, image, denoise, infos)
            else:
                pages = denoised_pages(image, source, denoise, folder, infos)
                encode_image(place, pages, image, format=run.format)

        with writing_to(target):
            _write(partial, write)
        is_file = written == image.format and not FORMATS[written].is_folder
        # Copy the file of an unchanged image: JPEG would lose quality, and a palette become RGB.
        if is_copied := is_file and not any(info.established for info in infos):
            with opening(one_line(name)):
                original = source.open("rb")
            with original, writing_to(target):
                _write(partial, functools.partial(shutil.copyfileobj, original))
        seconds = time.perf_counter() - began
        sigma, data_range, other_types = _level_of_pages(image, infos)
        unchanged = next((info for info in infos if not info.established), infos[0])
        impulses = any(info.impulses for info in infos)
        stored = read_image(partial, label=name, name=target.name)
        if is_copied and stored.sha256 != image.sha256:
            raise InputError("was changed during the run; run again.", one_line(name))
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
            impulses=impulses,
            evidence=evidence_of(unchanged, str(run.settings.get("noise", "auto"))),
            own_settings=task.own,
            notes=(
                *(NEGATIVE if as_negative else () if is_copied else image.notes),
                *stack_note(image, source, denoise),
                *(() if is_of_a_part else left_note(stored, infos, denoise)),
                *(() if is_of_a_part else empty_note(infos)),
                *defects_note(infos),
                *other_types,
                *([REENCODED] if written == "jpeg" and is_of_a_part and not is_copied else []),
                *([IMPULSES] if impulses else []),
                *([DITHERED] if any(info.dithered for info in infos) else []),
                *([IN_BANDS] if any(page.is_large for page in image.pages) else []),
                *([PROFILED if denoise.from_profile else POOLED] if is_pooled else []),
                *misfits,
            ),
            seconds=seconds,
        )
        outcome = _examined(outcome, image, stored, reference, run.baselines)
    except BaseException:
        remove(partial)
        raise
    key = batch_key(image.sha256, output, run.settings)
    return Done(outcome, key, stored.sha256, image.sha256, _compared_with(reference, run), partial)


def _write(partial: Path, write: Callable[[Any], None]) -> None:
    """Call `write` with the folder `partial`, or with the opened file, and flush either to disk."""
    if partial.is_dir():
        write(partial)
    else:
        with partial.open("wb") as file:
            write(file)
    sync_tree(partial)


def _resume(task: Task, earlier: Done, run: Run) -> Done:
    """Recompute previews and comparisons, which the record does not store."""
    name, source, output = task.planned.name, task.planned.source, task.planned.output
    assert isinstance(source, Path)
    assert isinstance(run.folder, Path)
    image = read_image(source, label=name)
    stored = read_image(run.folder / output, label=output)
    reference, misfits = _clean_image(task, image)
    # An earlier run may have used another name for the input.
    outcome = replace(earlier.outcome, name=name, output=output)
    notes = (*(note for note in outcome.notes if not note.startswith(NOT_COMPARED)), *misfits)
    outcome = replace(outcome, own_settings=task.own, resumed=True, notes=notes)
    if earlier.compared != _compared_with(reference, run):
        outcome = replace(outcome, comparison=None)
    return Done(_examined(outcome, image, stored, reference, run.baselines), earlier.key)


def _clean_image(task: Task, image: ImageFile) -> tuple[ImageFile | None, tuple[str, ...]]:
    """Read the reference of an image; if it does not fit the image, return a note instead."""
    assert not isinstance(task.reference, StorePath)
    try:
        return read_reference(task.reference, task.planned.name, image), ()
    except InputError as error:
        return None, (f"{NOT_COMPARED}{error}",)


def _compared_with(reference: ImageFile | None, run: Run) -> str:
    return "" if reference is None else f"{reference.sha256} {' '.join(run.baselines)}"


def _denoise_of_kind(image: ImageFile, denoise: Denoiser) -> Denoiser:
    """Return the denoiser with the known noise of the image's kind, or the denoiser unchanged."""
    is_uniform = all(page == image.pages[0] for page in image.pages)
    if denoise.from_profile and not is_uniform:
        raise InputError(
            "its pages are of several kinds, but a profile applies to one; leave out --profile."
        )
    # Most raw files state their own noise: only a profile, if given, replaces it.
    known = is_uniform and (image.mosaic is None or denoise.from_profile)
    return denoise.of_kind(kind_of(image)) if known else denoise


class UnwritableError(InputError):
    """The output folder cannot be written to."""


@contextmanager
def writing_to(target: Path) -> Iterator[None]:
    """Turn a system error into an `UnwritableError` that names the target."""
    try:
        yield
    except OSError as error:
        # An error without errno comes from a library that decodes an image.
        if error.errno is None:
            raise
        raise UnwritableError(
            f"{one_line(str(target), 200)}: cannot be written ({error.strerror}); make room or "
            "choose another folder with --out, then run the same command again to resume."
        ) from None


def _level_of_pages(
    image: ImageFile, infos: list[DenoiseInfo]
) -> tuple[float, float, tuple[str, ...]]:
    """Return noise level, data range (both for pages of the first page's pixel type), and notes."""
    by_type: dict[str, list[DenoiseInfo]] = {}
    for page, info in zip(image.pages, infos, strict=True):
        kind = info.noise if is_relative(info.noise) else str(page.dtype)
        by_type.setdefault(kind, []).append(info)
    (own, alike), *others = by_type.items()
    notes = []
    for dtype, pages in others:
        levels = sorted({f"{info.sigma:.3g}" for info in pages}, key=float)
        which = "1 page" if len(pages) == 1 else f"{len(pages)} pages"
        most = f"{max(info.data_range for info in pages):.6g}"
        whole = "the intensity" if is_relative(pages[0].noise) else most
        notes.append(
            f"The noise level is that of the pages of {own}; on {which} of {dtype} it is "
            f"{' to '.join(levels[:: max(1, len(levels) - 1)])} of {whole}."
        )
    level = float(np.sqrt(np.mean([info.sigma**2 for info in alike])))
    return level, max(float(info.data_range) for info in alike), tuple(notes)


def _examined(
    outcome: ImageOutcome,
    image: ImageFile,
    stored: ImageFile,
    reference: ImageFile | None,
    baselines: Sequence[str],
) -> ImageOutcome:
    """Add residual, previews and comparison, computed from the written file."""
    first, last = without_holes(*(shown_page(one, 0) for one in (image, stored)))
    clean = None if reference is None else without_holes(shown_page(reference, 0))[0]
    comparison = outcome.comparison
    if reference is not None and comparison is None:
        pages = []
        for number, sigma in enumerate(outcome.page_sigmas):
            noisy, found, sought = without_holes(
                *(shown_page(one, number) for one in (image, stored, reference))
            )
            # Speckle levels are relative to the intensity; raw levels are in sensor counts.
            level = sigma * float(np.mean(noisy)) if outcome.is_relative else sigma
            if outcome.noise == "raw":
                level = measure_residual(noisy, found).sd
            span = dtype_range(noisy.dtype) or outcome.page_ranges[number] or 1.0
            pages.append(compare(noisy, found, sought, sigma=level, span=span, baselines=baselines))
        comparison = mean_comparison(pages)
    # The profile of a CMYK image describes four inks, but previews are red, green and blue.
    orientation, icc = image.metadata.orientation, None if image.inks else image.metadata.icc
    return replace(
        outcome,
        residual=measure_residual(first, last),
        used_range=used_range(last),
        comparison=comparison,
        previews=make_previews(first, last, clean=clean, orientation=orientation, icc=icc),
    )
