"""The work on one image of a batch: read, denoise, store, read back and examine.

It runs in a worker process. It writes nothing but an unfinished file beside the result's place;
the batch gives that its name once it stands in the record.
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
from kpca_apps.denoise.batch.one_image.pages import (
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
from kpca_apps.errors import InputError, KpcaError, about, opening
from kpca_apps.images.files import encode_image, read_image, target_format
from kpca_apps.images.kinds import FORMATS
from kpca_apps.images.types import ImageFile
from kpca_apps.names import one_line
from kpca_apps.system.files.temporary import remove
from kpca_apps.system.stores.addresses import AnyPath, StorePath

BUG = "a bug in kpca"
IMPULSES = "Single pixels stand out, as in impulse noise (salt and pepper): try --noise impulse."
POOLED = "The noise level is that of images of its kind in this batch, by --same-noise."
ANEW = (
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
_MAX_NAME = 255  # bytes of a name that file systems hold


@dataclass(frozen=True)
class Run:
    """What is the same for all images of a run."""

    denoise: Denoiser
    folder: AnyPath  # of the results
    format: str
    settings: Mapping[str, Any]  # all that results depend on, for their keys in the record
    board: Path  # where the share that is done of each image is written, if somebody watches
    baselines: tuple[str, ...]
    raw_out: str = "tiff"  # what becomes of raw files: "tiff", a picture, or "dng", a mosaic
    force: bool = False  # whether what stands in the way of a result is replaced

    def of(self, own: Mapping[str, Any]) -> Run:
        """Return the run as it is for an image that has settings of its own."""
        if not own:
            return self
        assert isinstance(self.denoise, GroupDenoiser)
        return replace(self, denoise=self.denoise.changed(own), settings={**self.settings, **own})


@dataclass(frozen=True)
class Done:
    """An image that is done, as a worker hands it back and as the record keeps it."""

    outcome: ImageOutcome
    key: str = ""  # of all that the result depends on; empty if the image failed
    sha256: str = ""  # of the result
    source: str = ""  # hash of the image that it was made from
    compared: str = ""  # a hash of the reference, and the baselines
    partial: Path | None = None  # the new result, which has not its name yet

    def record(self) -> dict[str, Any]:
        """Return what is kept of it: nothing that is computed from the files, or asked for."""
        kept = asdict(self)
        for name in ("previews", "residual", "own_settings", "resumed", "seconds", "bug"):
            del kept["outcome"][name]
        del kept["partial"]
        return {"output": self.outcome.output, **kept}


@dataclass(frozen=True)
class Task:
    """One image to work on."""

    planned: Planned
    number: int  # in the run, from 1
    reference: AnyPath | None  # its clean image
    own: Mapping[str, Any] = field(default_factory=dict)  # its settings that are not the run's
    earlier: Done | None = None  # what the record holds of its result


def work(task: Task, run: Run) -> Done:
    """Work on one image; what is wrong with it, or with this program, comes back as its outcome.

    InputError where no further image can be written either.
    """
    name, run = task.planned.name, run.of(task.own)
    try:
        with listening(writing(run.board, task.number)):
            return _fresh(task, run) if task.earlier is None else _resumed(task, task.earlier, run)
    except UnwritableError:
        raise
    except KpcaError as error:
        return failed(name, str(error))
    except MemoryError:
        return failed(
            name, "takes more memory than available; use fewer workers, or cut the image."
        )
    except Exception as error:
        # A bug, which must not cost the other images their results.
        reason = f"{BUG}, {type(error).__name__}: {error}"
        return failed(name, reason, traceback.format_exc())


def failed(name: str, reason: str, bug: str = "") -> Done:
    """Return the outcome of an image of which nothing came, and why."""
    return Done(ImageOutcome(name, "failed", reason=named_reason(name, reason), bug=bug))


def lost(task: Task) -> Done:
    """Give up an image on which its worker process ended each time."""
    return failed(
        task.planned.name,
        "the system killed its worker process, most likely because memory ran out; use fewer "
        "--jobs, or cut the image.",
    )


def _fresh(task: Task, run: Run) -> Done:
    """Denoise an image into an unfinished file."""
    name, source, output = task.planned.name, task.planned.source, task.planned.output
    assert isinstance(source, Path)  # what lies in a store was copied
    assert isinstance(run.folder, Path)
    folder = run.folder
    image = read_image(source, label=name)
    as_negative = image.mosaic is not None and run.raw_out == "dng"
    written = "dng" if as_negative else target_format(image, run.format)
    denoise = _denoise_of_kind(image, run.denoise)
    is_pooled = denoise is not run.denoise
    # Whether some pixels are to stay as they are.
    is_of_a_part = denoise.mask is not None or denoise.region is not None
    if len(os.fsencode(Path(output).name)) > _MAX_NAME:
        raise InputError(
            f"{one_line(name, 200)}: the name of its result would be longer than {_MAX_NAME} "
            "bytes; give the image a shorter name."
        )
    reference, misfits = _clean_image(task, image)
    began = time.perf_counter()
    target = folder / output
    partial = partial_path(target, secrets.token_hex(4), task.number)
    # Made before the long work, which would be lost on a folder that cannot be written to.
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
        # Anew JPEG would lose a little, palettes would become RGB, and all for nothing.
        if is_copied := is_file and not any(info.established for info in infos):
            with opening(one_line(name)):
                original = source.open("rb")
            with original, writing_to(target):
                _write(partial, functools.partial(shutil.copyfileobj, original))
        seconds = time.perf_counter() - began
        sigma, data_range, other_types = _level_of_pages(image, infos)
        telling = next((info for info in infos if not info.established), infos[0])
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
            evidence=evidence_of(telling, str(run.settings.get("noise", "auto"))),
            own_settings=task.own,
            notes=(
                *(NEGATIVE if as_negative else () if is_copied else image.notes),
                *stack_note(image, source, denoise),
                *(() if is_of_a_part else left_note(stored, infos, denoise)),
                *(() if is_of_a_part else empty_note(infos)),
                *defects_note(infos),
                *other_types,
                *([ANEW] if written == "jpeg" and is_of_a_part and not is_copied else []),
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
    compared = _compared_with(reference, run)
    return Done(outcome, key, stored.sha256, image.sha256, compared, partial)


def _write(partial: Path, write: Callable[[Any], None]) -> None:
    """Write a result, a folder or a file, to the end, and to disk."""
    if partial.is_dir():
        write(partial)
        sync_tree(partial)
        return
    with partial.open("wb") as file:
        write(file)
        file.flush()
        os.fsync(file.fileno())


def _resumed(task: Task, earlier: Done, run: Run) -> Done:
    """Make what the record does not hold of an image that is done: previews, new comparisons."""
    name, source, output = task.planned.name, task.planned.source, task.planned.output
    assert isinstance(source, Path)
    assert isinstance(run.folder, Path)
    image = read_image(source, label=name)
    stored = read_image(run.folder / output, label=output)
    reference, misfits = _clean_image(task, image)
    # The file may have had another name, with the same result.
    outcome = replace(earlier.outcome, name=name, output=output)
    notes = (*(note for note in outcome.notes if not note.startswith(NOT_COMPARED)), *misfits)
    outcome = replace(outcome, own_settings=task.own, resumed=True, notes=notes)
    if earlier.compared != _compared_with(reference, run):
        outcome = replace(outcome, comparison=None)
    return Done(_examined(outcome, image, stored, reference, run.baselines), earlier.key)


def _clean_image(task: Task, image: ImageFile) -> tuple[ImageFile | None, tuple[str, ...]]:
    """Read what an image is compared with; one that does not fit costs the comparison alone."""
    assert not isinstance(task.reference, StorePath)
    try:
        return read_reference(task.reference, task.planned.name, image), ()
    except InputError as error:
        return None, (f"{NOT_COMPARED}{error}",)


def _compared_with(reference: ImageFile | None, run: Run) -> str:
    return "" if reference is None else f"{reference.sha256} {' '.join(run.baselines)}"


def _denoise_of_kind(image: ImageFile, denoise: Denoiser) -> Denoiser:
    """Return the denoiser for images of a kind whose noise is known, or the one of all."""
    is_uniform = all(page == image.pages[0] for page in image.pages)
    if denoise.from_profile and not is_uniform:
        raise InputError(
            f"{image.label}: its pages are of several kinds, but a profile applies to one; leave "
            "out --profile."
        )
    # The noise of raw files is pooled for a profile alone; most bring their own.
    known = is_uniform and (image.mosaic is None or denoise.from_profile)
    with about(image.label):
        return denoise.of_kind(kind_of(image)) if known else denoise


class UnwritableError(InputError):
    """No file can be written in the output folder."""


@contextmanager
def writing_to(target: Path) -> Iterator[None]:
    """Say of the system's errors that the place of a result cannot be written to."""
    try:
        yield
    except OSError as error:
        # Without a number it is not the system's word on a file, but a library's on an image.
        if error.errno is None:
            raise
        raise UnwritableError(
            f"{one_line(str(target), 200)}: cannot be written ({error.strerror}); make room or "
            "choose another folder with --out, then run the same command again to resume."
        ) from None


def _level_of_pages(
    image: ImageFile, infos: list[DenoiseInfo]
) -> tuple[float, float, tuple[str, ...]]:
    """Return level and range over the pages of the first one's type, and notes on the others.

    Levels of integers of 8 bits, of 16 bits and of floats are in units that do not go together, and
    those of speckle are shares of the intensity.
    """
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
    """Add the residual, previews and comparison, all from what stands in the files."""
    first, last = without_holes(*(shown_page(one, 0) for one in (image, stored)))
    clean = None if reference is None else without_holes(shown_page(reference, 0))[0]
    comparison = outcome.comparison
    if reference is not None and comparison is None:
        pages = []
        for number, sigma in enumerate(outcome.page_sigmas):
            noisy, found, sought = without_holes(
                *(shown_page(one, number) for one in (image, stored, reference))
            )
            # A speckle level is relative to the intensity, a raw file's in counts of the sensor.
            level = sigma * float(np.mean(noisy)) if outcome.is_relative else sigma
            if outcome.noise == "raw":
                level = measure_residual(noisy, found).sd
            span = dtype_range(noisy.dtype) or outcome.page_ranges[number] or 1.0
            pages.append(compare(noisy, found, sought, sigma=level, span=span, baselines=baselines))
        comparison = mean_comparison(pages)
    # A profile of inks is not for what they leave of white.
    orientation, icc = image.metadata.orientation, None if image.inks else image.metadata.icc
    return replace(
        outcome,
        residual=measure_residual(first, last),
        used_range=used_range(last),
        comparison=comparison,
        previews=make_previews(first, last, clean=clean, orientation=orientation, icc=icc),
    )
