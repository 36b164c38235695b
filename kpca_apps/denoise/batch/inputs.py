"""Find the input images of a batch, name their results, and match them with clean images."""

from __future__ import annotations

import glob
import os
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain, takewhile
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from kpca_apps.errors import ConfigError, InputError, RefusedError, opening
from kpca_apps.images.kinds import (
    FORMATS,
    IMAGE_SUFFIXES,
    head_of,
    image_kind,
    is_image,
    refusal,
    written_kind,
)
from kpca_apps.images.laboratory.ome_zarr import MARKS
from kpca_apps.names import one_line
from kpca_apps.system.stores.addresses import AnyPath, StorePath, located
from kpca_apps.system.stores.buckets import CONCURRENT, is_path, matching, nothing_there, place_of
from kpca_apps.system.workers import Workers

_ARRAY = re.compile(rb'"node_type"\s*:\s*"array"')
_NO_PATH = (
    "has a name that a file here cannot have (an empty part, . or .., or a folder that is "
    "another object); copy it to another name."
)
_MAX_METADATA = 1 << 20  # maximum number of bytes of a Zarr array's metadata


class Planned(NamedTuple):
    """One image of a batch."""

    name: str  # path relative to the given folder, with "/" between folders
    source: AnyPath
    head: bytes = b""  # first bytes of the file, or empty if it cannot be read
    refused: str = ""  # why the file is refused (the end of a sentence), or empty
    n_bytes: int = 0  # size of an object in a store, from the listing of the store
    output: str = ""  # name of the result, or empty if there is none


def plan_outputs(
    inputs: Iterable[str | AnyPath],
    out: str | AnyPath,
    *,
    format: str = "same",
    raw_out: str = "tiff",
    passed_over: str | AnyPath | None = None,
) -> tuple[tuple[Planned, ...], tuple[str, ...]]:
    """Find the images of a batch, and name results to mirror the input folders."""
    folder = located(out)
    found, notes = find_images(inputs, passed_over or out)
    kinds = {one.name: image_kind(one.head, one.name) for one in found if not one.refused}
    outputs, renamed = _output_names(
        {
            name: _new_suffix(name, kind, "dng" if (kind, raw_out) == ("raw", "dng") else format)
            for name, kind in kinds.items()
        }
    )
    if format == "same":
        renamed = tuple(
            f'"{one_line(name)}" is not the kind of image that its name says: its result is named '
            f'"{one_line(output)}".'
            for name, output in outputs.items()
            if name != output and written_kind(kinds[name], format) == kinds[name]
        )
    planned = tuple(
        one._replace(
            head=b"",
            refused=one.refused or refusal(kinds[one.name]) * bool(one.head),
            output=outputs.get(one.name, ""),
        )
        for one in found
    )
    sources = {real(one.source): one.name for one in found}
    for image in filter(lambda one: one.output, planned):
        taken = sources.get(real(folder / image.output))
        if taken is not None:
            raise RefusedError(
                f"{one_line(taken)}: the result would replace this input; choose another output "
                "folder with --out."
            )
    return planned, (*notes, *renamed)


def find_images(
    inputs: Iterable[str | AnyPath], out: str | AnyPath | None = None
) -> tuple[list[Planned], tuple[str, ...]]:
    """Find images by paths, patterns and addresses, except in the output folder; sort by name."""
    excluded = None if out is None else real(located(out))
    given = list(inputs)
    several = sum(map(_is_tree, given)) > 1
    found: dict[str, Planned] = {}
    n_passed = 0
    for one in given:
        base, files, nameless = _expand(one, several=several)
        for name in nameless:
            if is_image(b"", name):
                found[name] = Planned(name, base, refused=_NO_PATH)
            else:
                n_passed += 1
        base = real(base)
        is_folder = isinstance(base, StorePath) or base.is_dir()
        below = excluded if excluded and is_folder and base in excluded.parents else None
        if below is not None:
            files = [file for file in files if not real(file.source).is_relative_to(below)]
        # Read the first bytes from a store concurrently.
        is_far = any(isinstance(file.source, StorePath) for file in files)
        with Workers("threads" if is_far else "serial", n_workers=CONCURRENT) as workers:
            heads = list(workers.map_partitions(head_of, [file.source for file in files]))
        for file, head in zip(files, heads, strict=True):
            if file.source != located(one) and not is_image(head, file.source.name):
                n_passed += 1
                continue
            other = found.setdefault(file.name, file._replace(head=head)).source
            if real(other) != real(file.source):
                raise RefusedError(
                    f"{one_line(file.name)}: two inputs have this name, "
                    f'"{one_line(str(other))}" and "{one_line(str(file.source))}"; give '
                    "the folder that holds both, or denoise them into two folders."
                )
    if not found:
        label = ", ".join(one_line(str(one)) for one in given[:3]) or "nothing"
        raise InputError(f"{label}: no image there; give PNG, TIFF or JPEG files, or their folder.")
    notes: tuple[str, ...] = ()
    if n_passed:
        what = "file is not an image and was" if n_passed == 1 else "files are not images and were"
        notes = (f"{n_passed} {what} passed over.",)
    return sorted(found.values()), notes


def real(path: AnyPath) -> AnyPath:
    """Return a path with links resolved; circular links stay unresolved."""
    return path if isinstance(path, StorePath) else Path(os.path.realpath(path))


def _expand(one: str | AnyPath, *, several: bool) -> tuple[AnyPath, list[Planned], list[str]]:
    """Return an input's base folder, its files, and names that no local file can have."""
    path = located(one)
    if isinstance(path, StorePath):
        return _expand_address(path, several=several)
    above = path.parent if len(path.parts) > 1 else path.absolute().parent
    if _is_array(path) and head_of(above):
        raise InputError(
            f"this is an array of an OME-Zarr image; name {one_line(str(above), 200)}.", str(one)
        )
    if _is_tree(path):
        base, files = path, list(_walk(path))
        prefix = PurePosixPath(path.resolve().name if several else "")
    elif path.exists() or path.is_symlink():
        return path, [Planned(path.name or path.resolve().name, path)], []
    elif glob.has_magic(str(one)):
        base = Path(*takewhile(lambda part: not glob.has_magic(part), path.parts[:-1]))
        prefix = PurePosixPath()
        matches = sorted(glob.iglob(str(one), recursive=True))  # noqa: PTH207 - Path.glob refuses absolute ones
        if not matches:
            raise InputError("no file matches; check the pattern.", str(one))
        found = map(Path, matches)
        files = [file for match in found for file in (_walk(match) if _is_tree(match) else [match])]
    else:
        raise InputError(f"{one_line(str(one))}: no such file or folder.")
    named = [Planned(str(prefix / file.relative_to(base).as_posix()), file) for file in files]
    return base, named, []


def _expand_address(one: StorePath, *, several: bool) -> tuple[StorePath, list[Planned], list[str]]:
    """Return the results of `_expand` for an address of a store."""
    start = place = place_of(one)
    kind, prefix = place.kind(), ""
    if kind == "file" or (kind and head_of(one)):
        return one, [Planned(one.name, one, n_bytes=place.n_bytes())], []
    if kind:
        found = place.items(recursive=True)
        prefix = f"{place.name}/" * several
    else:
        start, found = matching(place, (), folders=True)
    given = {one.name: one.n_bytes for one in found if not one.is_folder}
    nameless = {
        name
        for name in given
        if not is_path(name)
        or any(name[:end] in given for end, letter in enumerate(name) if letter == "/")
    }
    names = images_among(sorted(given.keys() - nameless))
    if not (kind or names):
        raise InputError(nothing_there(start, place), place.address)
    base = StorePath(start.address)
    return (
        base,
        [Planned(prefix + name, base / name, n_bytes=given.get(name, 0)) for name in names],
        [f"{prefix}{name}" for name in sorted(nameless)],
    )


def images_among(names: Iterable[str]) -> list[str]:
    """Return object names except hidden ones; a folder that is an image counts as one name.

    >>> images_among(["a.png", ".b.png", "c.zarr/.zgroup", "c.zarr/0/.zarray", "c.zarr/0/0"])
    ['a.png', 'c.zarr']
    """
    given = [PurePosixPath(name) for name in names]
    folders = {name.parent for name in given if name.name in MARKS}
    found = dict[str, None]()
    for name in given:
        # Choose the outermost folder, as an image may contain other images, such as labels.
        shown = next((one for one in reversed(name.parents) if one in folders), name)
        if not any(part.startswith(".") for part in shown.parts):
            found[str(shown)] = None
    return list(found)


def _is_array(folder: Path) -> bool:
    """Return whether a folder is a single Zarr array; an image is a folder of several arrays."""
    with suppress(OSError):
        if (folder / ".zarray").is_file():
            return True
        with (folder / "zarr.json").open("rb") as file:
            return _ARRAY.search(file.read(_MAX_METADATA)) is not None
    return False


def _is_tree(given: str | AnyPath) -> bool:
    """Return whether a path is a folder, but not an image."""
    path = located(given)
    if isinstance(path, StorePath):
        return place_of(path).kind() == "folder" and not head_of(path)
    return path.is_dir() and not head_of(path)


def _walk(folder: Path) -> Iterator[Path]:
    """Yield files and image folders below a folder, except hidden and linked folders."""

    def refuse(error: OSError) -> None:
        label = one_line(str(error.filename))
        raise InputError(f"{label}: the folder cannot be read ({error.strerror}).") from None

    for place, folders, files in os.walk(folder, onerror=refuse):
        seen = [Path(place, name) for name in folders if not name.startswith(".")]
        images = [path for path in seen if not path.is_symlink() and head_of(path)]
        folders[:] = [path.name for path in seen if path not in images]
        yield from images
        found = (Path(place, name) for name in files if not name.startswith("."))
        yield from (path for path in found if path.is_file())


def _new_suffix(name: str, kind: str | None, format: str) -> str | None:
    """Return the suffix of a result; None if the image's own suffix fits."""
    suffix, written = PurePosixPath(name).suffix.lower(), written_kind(kind, format)
    own = FORMATS[written].suffixes if written in FORMATS else (suffix,)
    own = (".dng",) if written == "dng" else own
    is_kept = format == "same" and written == kind and suffix not in IMAGE_SUFFIXES
    return None if suffix in own or is_kept else own[0]


def _output_names(suffixes: dict[str, str | None]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return names of results; append suffixes where replacing suffixes gives duplicates."""
    wanted = {
        name: str(PurePosixPath(name).with_suffix(suffix)) if suffix else name
        for name, suffix in suffixes.items()
    }
    # On some file systems, names that differ only in case or in Unicode form are the same file.
    seen = {name: unicodedata.normalize("NFC", one).casefold() for name, one in wanted.items()}
    times, notes = Counter(seen.values()), []
    for name in [name for name in wanted if times[seen[name]] > 1 and wanted[name] != name]:
        wanted[name] = f"{name}{suffixes[name]}"
        notes.append(
            f'"{one_line(name)}" is written as "{one_line(wanted[name])}": another image takes the '
            "shorter name."
        )
    first: dict[str, str] = {}
    for name, output in wanted.items():
        other = first.setdefault(output, name)
        if other != name:
            raise RefusedError(
                f'{one_line(name)}: its result would have the same name as that of "'
                f'{one_line(other)}"; rename one of them.'
            )
    return wanted, tuple(notes)


def find_references(
    planned: tuple[Planned, ...], reference: str | AnyPath | None
) -> tuple[dict[str, AnyPath], tuple[str, ...]]:
    """Return each input's clean image, from a file or folder, and a note on inputs without one."""
    if reference is None:
        return {}, ()
    base = located(reference)
    found: dict[str, AnyPath] = {}
    if (isinstance(base, Path) and base.is_file()) or head_of(base):
        if len(planned) > 1:
            raise ConfigError(f"is one image for {len(planned)} inputs; name a folder.", base)
        found = {planned[0].name: base}
    elif isinstance(base, Path) and not base.is_dir():
        raise InputError("no such folder of clean images.", base)
    else:
        with opening(str(base)):
            there = {*_names_like(planned, base)}
        alike: dict[PurePosixPath, str] = {}  # first image of each name without suffix
        for name in sorted(name for name in there if is_image(b"", name)):
            alike.setdefault(PurePosixPath(name).with_suffix(""), name)
        for image in planned:
            like = alike.get(PurePosixPath(image.name).with_suffix(""), "")
            if name := image.name if image.name in there else like:
                found[image.name] = base / name
    if not found:
        raise InputError(
            f'holds no image named like an input, such as "{one_line(planned[0].name)}"; give '
            "clean images the names of the noisy ones.",
            base,
        )
    for image in planned:
        clean = found.get(image.name)
        if clean is not None and real(clean) == real(image.source):
            raise ConfigError(
                f"{one_line(image.name)} is the noisy image itself; name the folder of the clean "
                "ones with --reference.",
                base,
            )
    missing = len(planned) - len(found)
    if not missing:
        return found, ()
    what = "1 image has" if missing == 1 else f"{missing} images have"
    return found, (f"{what} no clean image to compare with.",)


def _names_like(planned: tuple[Planned, ...], folder: AnyPath) -> list[str]:
    """Return the names of files and image folders in a folder's counterparts of input folders."""
    if isinstance(folder, Path):
        places = {(folder / image.name).parent for image in planned}
        paths = chain.from_iterable(place.iterdir() for place in places if place.is_dir())
        found = (path for path in paths if path.is_file() or head_of(path))
        return [path.relative_to(folder).as_posix() for path in found]
    items = place_of(folder).copyable((), recursive=True)
    return images_among(one.name for one in items if not one.is_folder)


def named_reason(name: str, reason: str) -> str:
    """Return one line with an image's name and the reason why there is no result."""
    label = one_line(name, 200)
    return one_line(reason if reason.startswith(label) else f"{label}: {reason}", 500)
