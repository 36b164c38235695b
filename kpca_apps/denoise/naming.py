"""Which images a batch has, and what each result is called."""

from __future__ import annotations

import glob
import os
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from kpca_apps.errors import InputError, RefusedError
from kpca_apps.files.images.kinds import (
    HEAD,
    IMAGE_SUFFIXES,
    SUFFIXES_OF,
    image_kind,
    is_image,
)
from kpca_apps.files.names import one_line

__all__ = ["Planned", "find_images", "plan_outputs"]


@dataclass(frozen=True)
class Planned:
    """One image of a batch.

    Attributes
    ----------
    source : Path
        The file to read.
    name : str
        Where it stands in the tree given, with ``/`` between folders.
    output : str
        What the result is called in the output folder, likewise.
    """

    source: Path
    name: str
    output: str


def plan_outputs(
    inputs: Iterable[str | Path],
    out: str | Path,
    *,
    format: str = "same",
    passed_over: str | Path | None = None,
) -> tuple[tuple[Planned, ...], tuple[str, ...]]:
    """List the images of a batch and name their results, mirroring the tree they stand in.

    Parameters
    ----------
    inputs : iterable of str or Path
        Files, folders (with what is below them) and patterns such as ``photos/**/*.png``.
    out : str or Path
        Folder of the results. What lies in it is no input.
    format : {"same", "png", "tiff"}
        Another format than the input's changes the suffix.
    passed_over : str or Path, optional
        A folder around it, of which nothing is an input either.

    Returns
    -------
    planned : tuple of Planned
        Sorted by name.
    notes : tuple of str
        Whole sentences.

    Raises
    ------
    InputError
        If an input does not exist, or there is no image.
    RefusedError
        If two results would have one name, or one would take an input's place.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("a.jpg", "a.png"):
    ...         _ = Path(folder, name).write_bytes(b"")
    ...     planned, notes = plan_outputs([folder], Path(folder, "clean"), format="png")
    >>> [(image.name, image.output) for image in planned]
    [('a.jpg', 'a.jpg.png'), ('a.png', 'a.png')]
    """
    found, notes = find_images(inputs, passed_over or out)
    suffixes = [
        SUFFIXES_OF[format][0] if format in SUFFIXES_OF else _misnamed(source, name)
        for name, source in found
    ]
    outputs, renamed = _output_names([name for name, _ in found], suffixes)
    if format == "same":
        renamed = tuple(
            f'"{one_line(name)}" holds another kind of image than its name says: its result is '
            f'called "{one_line(output)}".'
            for (name, _), output in zip(found, outputs, strict=True)
            if name != output
        )
    planned = tuple(
        Planned(source, name, output) for (name, source), output in zip(found, outputs, strict=True)
    )
    sources = {_real(source): name for name, source in found}
    for image in planned:
        taken = sources.get(_real(Path(out, image.output)))
        if taken is not None:
            raise RefusedError(
                f"{one_line(taken)}: the result would take the place of this input; choose "
                "another output folder with --out."
            )
    return planned, (*notes, *renamed)


def find_images(
    inputs: Iterable[str | Path], out: str | Path | None = None
) -> tuple[list[tuple[str, Path]], tuple[str, ...]]:
    """List images with their names.

    Parameters
    ----------
    inputs : iterable of str or Path
        As for `plan_outputs`.
    out : str or Path, optional
        A folder to leave out.

    Returns
    -------
    images : list of (str, Path)
        Name and file, sorted by name, each file once.
    notes : tuple of str

    Raises
    ------
    InputError
        If an input does not exist, or there is no image.
    RefusedError
        If two different files have one name.
    """
    left_out = _real(Path(out)) if out is not None else None
    given = list(inputs)
    roots = [Path(one) for one in given if Path(one).is_dir()]
    found: dict[str, Path] = {}
    n_passed = 0
    for one in given:
        for name, source in _expand(one, several=len(roots) > 1):
            if left_out is not None and _lies_in(source, left_out, below=_base(one)):
                continue
            if source != Path(one) and not is_image(_head_of(source), source.name):
                n_passed += 1
                continue
            other = found.setdefault(name, source)
            if _real(other) != _real(source):
                raise RefusedError(
                    f"{one_line(name)}: two inputs have this name, "
                    f'"{one_line(str(other))}" and "{one_line(str(source))}"; give the folder '
                    "that holds both, or denoise them into two folders."
                )
    if not found:
        shown = ", ".join(one_line(str(one)) for one in given[:3]) or "nothing"
        raise InputError(f"{shown}: no image there; give PNG, TIFF or JPEG files, or their folder.")
    notes: tuple[str, ...] = ()
    if n_passed:
        what = "file is no image and was" if n_passed == 1 else "files are no images and were"
        notes = (f"{n_passed} {what} passed over.",)
    return sorted(found.items()), notes


def _lies_in(source: Path, out: Path, *, below: Path) -> bool:
    """Whether a file found in a folder is in the output folder below that; then it is a result."""
    base = _real(below)
    is_below = base.is_dir() and out != base and out.is_relative_to(base)
    return is_below and _real(source).is_relative_to(out)


def _real(path: Path) -> Path:
    """Return where links lead; those that run in a circle lead to themselves."""
    return Path(os.path.realpath(path))


def _expand(one: str | Path, *, several: bool) -> Iterator[tuple[str, Path]]:
    """Yield the name and place of each file an input stands for."""
    path = Path(one)
    if path.is_dir():
        prefix = PurePosixPath(path.resolve().name) if several else PurePosixPath()
        for source in _walk(path):
            yield str(prefix / source.relative_to(path).as_posix()), source
    elif path.exists() or path.is_symlink():
        yield path.name, path
    elif glob.has_magic(str(one)):
        base = _fixed_part(path)
        matches = sorted(glob.iglob(str(one), recursive=True))  # noqa: PTH207 - Path.glob refuses absolute ones
        if not matches:
            raise InputError(f"{one_line(str(one))}: no file matches; check the pattern.")
        for match in map(Path, matches):
            for source in _walk(match) if match.is_dir() else [match]:
                yield source.relative_to(base).as_posix(), source
    else:
        raise InputError(f"{one_line(str(one))}: no such file or folder.")


def _base(one: str | Path) -> Path:
    """Return the folder an input looks into."""
    path = Path(one)
    return path if path.exists() or not glob.has_magic(str(one)) else _fixed_part(path)


def _walk(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder; hidden ones, and links to folders, are passed over."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        raise InputError(
            f"{one_line(str(folder))}: the folder cannot be read ({error.strerror})."
        ) from None
    for entry in entries:
        if entry.name.startswith("."):
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(folder / entry.name)
        elif (folder / entry.name).is_file():
            yield folder / entry.name


def _fixed_part(pattern: Path) -> Path:
    """Return the folders of a pattern before its first wildcard."""
    fixed: list[str] = []
    for part in pattern.parts[:-1]:
        if glob.has_magic(part):
            break
        fixed.append(part)
    return Path(*fixed)


def _head_of(source: Path) -> bytes:
    """Return the first bytes of a file; nothing of a pipe or of what cannot be read."""
    if not source.is_file():
        return b""
    try:
        with source.open("rb") as file:
            return file.read(HEAD)
    except OSError:
        return b""


def _misnamed(source: Path, name: str) -> str | None:
    """Return the suffix an image should have that bears the suffix of another kind, or None."""
    suffix = PurePosixPath(name).suffix.lower()
    own = SUFFIXES_OF.get(image_kind(_head_of(source), name) or "", (suffix,))
    return own[0] if suffix in IMAGE_SUFFIXES and suffix not in own else None


def _output_names(
    names: list[str], suffixes: list[str | None]
) -> tuple[list[str], tuple[str, ...]]:
    """Give each name a suffix, if there is one; where two become one, keep the old suffix too."""
    wanted = [_with_suffix(name, suffix) for name, suffix in zip(names, suffixes, strict=True)]
    meeting: defaultdict[str, list[int]] = defaultdict(list)
    for at, output in enumerate(wanted):
        meeting[_folded(output)].append(at)
    notes = []
    for places in meeting.values():
        if len(places) == 1:
            continue
        for at in places:
            if wanted[at] != names[at]:
                wanted[at] = f"{names[at]}{suffixes[at]}"
                notes.append(
                    f'"{one_line(names[at])}" is written as "{one_line(wanted[at])}": another '
                    "image takes the shorter name."
                )
    seen: dict[str, str] = {}
    for name, output in zip(names, wanted, strict=True):
        other = seen.setdefault(output, name)
        if other != name:
            raise RefusedError(
                f'{one_line(name)}: its result would have the same name as that of "'
                f'{one_line(other)}"; rename one of them.'
            )
    return wanted, tuple(notes)


def _with_suffix(name: str, suffix: str | None) -> str:
    if suffix is None:
        return name
    path = PurePosixPath(name)
    same = next(own for own in SUFFIXES_OF.values() if suffix in own)
    return name if path.suffix.lower() in same else str(path.with_suffix(suffix))


def _folded(name: str) -> str:
    """Return a name as file systems that ignore case see it."""
    return unicodedata.normalize("NFC", name).casefold()
