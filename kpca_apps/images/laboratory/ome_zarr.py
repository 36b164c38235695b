"""OME-Zarr folders, 0.4 and 0.5 (extra "lab"): one image in chunks, with smaller copies.

Pages are read from the largest copy. Smaller copies are recomputed as its means, chunk by chunk.
Everything else in the folder (attributes, labels, tables) is copied.

Moore et al. (2021), "OME-NGFF: a next-generation file format", Nature Methods 18; its versions 0.4
and 0.5.
"""

from __future__ import annotations

import gzip
import io
import math
import os
import re
import shutil
import stat
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

import imagecodecs
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from kpca_apps.errors import InputError, require_library
from kpca_apps.images.laboratory.in_place import READ_TYPES
from kpca_apps.images.laboratory.ome import MOST_PAGES, Series, make_image, physical_sizes
from kpca_apps.images.large import Bands
from kpca_apps.images.types import (
    MAX_IN_BANDS,
    Format,
    ImageFile,
    Page,
    check_piece,
    check_size,
    damage_refused,
    rewrite,
)
from kpca_apps.names import one_line
from kpca_apps.system.files.windowed import spilled
from kpca_apps.system.quiet import warnings_ignored

HEAD = b"\0OME-Zarr\0"  # marker in place of the first bytes of a folder
MARKS = (".zgroup", "zarr.json")  # files that make a folder a group of arrays
_METADATA_FILES = ("zarr.json", ".zgroup", ".zattrs", ".zarray")
_AXES = {"time": "T", "channel": "C"}
_UNITS = {"angstrom": "Å", "nanometer": "nm", "micrometer": "µm", "millimeter": "mm", "meter": "m"}
_SECONDS = {"microsecond": "µs", "millisecond": "ms", "second": "s", "minute": "min", "hour": "h"}
_MOST_CHUNK = 1 << 30  # bytes of a chunk or shard
_RATIO = 50_000  # largest ratio of unpacked to packed bytes
# Codecs that compress chunks, and codecs that do not (some of these add a checksum).
_PACKINGS = frozenset({"blosc", "zstd", "gzip", "zlib", "lz4"})
_STEPS = frozenset("bytes transpose crc32c crc32 adler32 fletcher32 delta shuffle bitround".split())
_CHECKSUM = 4  # number of bytes of a crc32c checksum
_SLACK = 4096  # extra bytes allowed, for example for checksums
_EMPTY = (1 << 64) - 1  # marks a missing chunk in a shard
# A page may have _FEW_CHUNKS chunks plus one per _LEAST_CHUNK pixels, at most _MOST_CHUNKS.
_LEAST_CHUNK, _FEW_CHUNKS, _MOST_CHUNKS = 64, 1024, 1_000_000
_SLAB = 1 << 26  # bytes of a copy averaged at a time to compute the next smaller copy

Region = tuple[slice, ...]
# Start of a copy's first pixel and width of its pixels along an axis, in pixels of the larger copy.
Line = tuple[float, float]


@dataclass(frozen=True)
class _Pyramid:
    """The copies of an image, largest first."""

    folder: Path
    paths: tuple[str, ...]
    dtype: np.dtype[Any]
    lines: tuple[tuple[Line, ...], ...]  # one `Line` per axis for each smaller copy


def is_zarr(folder: Path) -> bool:
    """Return whether a folder is a group of Zarr arrays."""
    return any((folder / name).is_file() for name in MARKS)


def read_zarr(folder: Path) -> ImageFile:
    """Read an OME-Zarr folder with one image; channels, slices and times become pages."""
    require_library("zarr", "lab", "OME-Zarr folders")
    import zarr

    n_bytes, links = 0, list[Path]()
    for entry in folder.rglob("*"):
        entry_stat = entry.lstat()
        if stat.S_ISREG(entry_stat.st_mode):
            n_bytes += entry_stat.st_size
        elif not stat.S_ISDIR(entry_stat.st_mode):
            links.append(entry)  # a link, or a pipe, which would block if opened
    if any(link.name in _METADATA_FILES for link in links):
        raise InputError("keeps what it says of itself in a link or a pipe; copy the file there.")
    with damage_refused():
        group = zarr.open_group(str(folder), mode="r", use_consolidated=False)
        attributes: dict[str, Any] = group.attrs.asdict()
        attributes = dict(attributes.get("ome", attributes))
        scales = attributes.get("multiscales") or []
        if len(scales) != 1:
            raise InputError(f"{_explain_no_image(folder, attributes, len(scales))}.")
        names, units = _axes(scales[0])
        paths = tuple(str(one["path"]) for one in scales[0]["datasets"])
        for path in paths:
            if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
                raise InputError(f"a copy of it lies outside the folder ({one_line(path, 100)}).")
            place = folder / path
            if any(place == one or place in one.parents or one in place.parents for one in links):
                raise InputError("has links or pipes among its pixels; copy the files there.")
        arrays = [_opened(folder, path, "r") for path in paths]
        shapes = tuple(tuple(int(side) for side in array.shape) for array in arrays)
        dtype = np.dtype(arrays[0].dtype)
        for array in arrays:
            _packing(array)
            if 0 in (*array.chunks, *_written_sides(array)):
                raise ValueError("chunks without pixels")
        chunks = [math.prod(_written_sides(array)) * dtype.itemsize for array in arrays]
    native = dtype.newbyteorder("=")
    if f"{dtype.kind}{dtype.itemsize}" not in READ_TYPES:
        raise InputError(f"holds values of type {dtype}; save it in 32 bits first.")
    if any(len(shape) != len(names) for shape in shapes) or any(a.dtype != dtype for a in arrays):
        raise InputError("its copies do not fit its axes; it is damaged, make it again.")
    *counts, height, width = shapes[0]
    check_size((height, width), 0, 0, 1, MAX_IN_BANDS)
    n_pages = math.prod(counts)
    if not 1 <= n_pages <= MOST_PAGES or math.prod(shapes[0]) * dtype.itemsize > _RATIO * n_bytes:
        raise InputError(
            f"its {n_pages:,} pages of {width} x {height} pixels are more than its "
            f"{n_bytes:,} bytes can hold; it is damaged, fetch it again."
        )
    if max(chunks) > _MOST_CHUNK:
        raise InputError(
            f"has chunks of more than {_MOST_CHUNK >> 30} GB, each of which is read as a "
            "whole; save it in smaller ones first."
        )
    for array in arrays:
        pixels = array.shape[-2] * array.shape[-1]
        n_chunks = math.prod(-(-array.shape[axis] // array.chunks[axis]) for axis in (-2, -1))
        if n_chunks > min(_MOST_CHUNKS, _FEW_CHUNKS + pixels // _LEAST_CHUNK):
            raise InputError(
                f"has {n_chunks:,} chunks a page, which take too long to be read; save it "
                "in larger ones first."
            )
    for above, below in pairwise(shapes):
        if not all(map(_fits, above, below)) or above[:-3] != below[:-3]:
            raise InputError(
                f"its copies of {above} and {below} are not smaller by whole factors; "
                "save the largest alone first."
            )
    page = Page(height, width, 1, native)
    tall, wide = _written_sides(arrays[0])[-2:]
    with damage_refused():
        ome_attributes = _read_ome_attributes(attributes, scales[0], names, units, counts)
        pairs = zip(pairwise(scales[0]["datasets"]), pairwise(shapes), strict=True)
        pyramid = _Pyramid(
            folder, paths, dtype, tuple(_lines(*scaling, *sides) for scaling, sides in pairs)
        )
        series = [Series(names[:-2], tuple(counts), page, ome_attributes)]

    def window(number: int, rows: slice, columns: slice) -> NDArray[Any]:
        place = tuple(map(int, np.unravel_index(number, tuple(counts)))) if counts else ()
        with damage_refused():
            array = _opened(folder, paths[0], "r")
            sides = range(height)[rows], range(width)[columns]
            _check_chunks(folder / paths[0], array, place, sides)
            pixels = np.asarray(array[(*place, rows, columns)])
            if pixels.shape != tuple(map(len, sides)):
                raise ValueError("its pixels do not fit its header")
        return pixels.astype(native, copy=False)

    def whole(number: int) -> NDArray[Any]:
        check_piece(page)
        return window(number, slice(None), slice(None))

    with damage_refused():  # `make_image` writes texts of the file as XML, which may fail
        return make_image(
            "zarr",
            series,
            whole,
            window=window,
            blocks=((tall, wide),) * n_pages,
            rewrite=lambda out, pages: _write(pyramid, out, pages),
        )


def _opened(folder: Path, path: str, mode: Any) -> Any:
    import zarr

    return zarr.open_array(str(folder / path), mode=mode)


def _packing(array: Any) -> tuple[str, int]:
    """Return an array's compression codec, and the number of checksum bytes after the data.

    Raises ValueError for unknown codecs and for more than one compression, as numcodecs would
    accept any codec, including Python pickles.
    """
    meta = array.metadata
    if hasattr(meta, "codecs"):
        codecs = meta.codecs[0].codecs if array.shards else meta.codecs
    else:
        codecs = [*(meta.filters or ()), *([meta.compressor] if meta.compressor else [])]
    names = [_name(codec) for codec in codecs]
    packings = [name for name in names if name in _PACKINGS]
    if not {*names} <= _PACKINGS | _STEPS or len(packings) > 1:
        raise ValueError(f"chunks in {', '.join(names)}, where zstd, Blosc or gzip can be read")
    if not hasattr(meta, "codecs"):
        block: Any = np.zeros(1, array.dtype)
        for codec in codecs:  # encoding validates options of codecs
            block = codec.encode(block)
    if array.shards and not {*map(_name, meta.codecs[0].index_codecs)} <= {"bytes", "crc32c"}:
        raise ValueError("shards whose index is packed")
    if not packings:
        return "", 0
    behind = names[names.index(packings[0]) + 1 :]
    return packings[0], _CHECKSUM * behind.count("crc32c")


def _name(codec: Any) -> str:
    return type(codec).__name__.lower().removesuffix("codec")


def _plain_value(value: Any) -> Any:
    """Return a codec setting as a plain value; before zarr 3.4 it was an enum member."""
    return getattr(value, "value", value)


def _check_chunks(
    folder: Path, array: Any, place: tuple[int, ...], sides: tuple[range, range]
) -> None:
    """Raise ValueError if a chunk of these rows and columns is cut short or unpacks to too much.

    Blosc would read beyond the end of a cut chunk; other codecs could exhaust the memory.
    """
    (packing, behind), outer = _packing(array), _written_sides(array)
    if not packing:
        return
    before = tuple(index // side for index, side in zip(place, outer, strict=False))
    chunks = (
        range(side.start // step, -(-side.stop // step))
        for side, step in zip(sides, outer[-2:], strict=True)
    )
    most = math.prod(array.chunks) * array.dtype.itemsize + _SLACK
    for down, across in product(*chunks):
        path = folder / array.metadata.encode_chunk_key((*before, down, across))
        if path.is_file():
            with path.open("rb") as file:
                for at, n_bytes in _chunk_extents(file, array):
                    file.seek(at)
                    _check_packed(packing, file, n_bytes - behind, most)


def _chunk_extents(file: BinaryIO, array: Any) -> Iterator[tuple[int, int]]:
    n_bytes = os.fstat(file.fileno()).st_size
    if not array.shards:
        yield 0, n_bytes
        return
    codec = array.metadata.codecs[0]
    count = math.prod(array.shards) // math.prod(array.chunks)
    size = 16 * count + _CHECKSUM * any(_name(one) == "crc32c" for one in codec.index_codecs)
    if size > n_bytes:
        raise ValueError("a shard is cut short")
    file.seek(n_bytes - size if _plain_value(codec.index_location) == "end" else 0)
    orders = [_plain_value(one.endian) for one in codec.index_codecs if _name(one) == "bytes"]
    index = np.frombuffer(file.read(16 * count), ">u8" if orders == ["big"] else "<u8")
    for at, size_of_chunk in index.reshape(-1, 2).tolist():
        if (at, size_of_chunk) != (_EMPTY, _EMPTY):
            if at + size_of_chunk > n_bytes:
                raise ValueError("a shard is cut short")
            yield at, size_of_chunk


def _check_packed(packing: str, file: BinaryIO, n_bytes: int, most: int) -> None:
    """Raise ValueError if a packed chunk is cut short or unpacks to more than ``most`` bytes."""
    if packing in ("gzip", "zlib"):
        packed = file.read(n_bytes)
        if packing == "gzip":
            with gzip.open(io.BytesIO(packed)) as unpacked:
                size = len(unpacked.read(most + 1))
        else:
            size = len(zlib.decompressobj().decompress(packed, most + 1))
    elif packing == "zstd":
        # Decoding raises if the output exceeds `most`; a frame's header need not state the size.
        size = len(imagecodecs.zstd_decode(file.read(n_bytes), out=most))
    else:
        head = file.read(16)
        size = int.from_bytes(head[4:8] if packing == "blosc" else head[:4], "little")
        if packing == "blosc" and not 16 <= int.from_bytes(head[12:], "little") <= n_bytes:
            raise ValueError("a chunk is cut short")
    if size > most:
        raise ValueError("a chunk that becomes larger than its header says")


def _written_sides(array: Any) -> tuple[int, ...]:
    """Return the sides of a shard, or of a chunk if there are no shards."""
    return tuple(int(side) for side in (array.shards or array.chunks))


def _explain_no_image(folder: Path, attributes: Mapping[str, Any], n_scales: int) -> str:
    if n_scales:
        return f"holds {n_scales} images in one group; save each as a folder of its own first"
    inside = next((path.name for path in sorted(folder.iterdir()) if is_zarr(path)), "")
    what = "a plate of images" if "plate" in attributes else "no image itself"
    example = f", such as {one_line(inside, 40)}" if inside else ""
    return f"holds {what}; name the folders of its images{example}"


def _axes(scale: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
    """Return the axes as letters of TCZYX, and their units."""
    axes = scale.get("axes") or list("tczyx")
    names, units = "", {}
    for axis in axes:
        properties = {"name": axis} if isinstance(axis, str) else dict(axis)
        name = str(properties.get("name", ""))
        letter = _AXES.get(str(properties.get("type", "")), name[:1].upper())
        names += letter
        units[letter] = str(properties.get("unit", ""))
    if not re.fullmatch("T?C?Z?YX", names):
        listed = one_line(", ".join(names), 40)
        raise InputError(f"has the axes {listed}; rearrange it to t, c, z, y, x first.")
    return names, units


def _read_ome_attributes(
    attributes: Mapping[str, Any],
    scale: Mapping[str, Any],
    names: str,
    units: Mapping[str, str],
    counts: Sequence[int],
) -> dict[str, Any]:
    """Return pixel sizes, time step and channel names under OME's names."""
    factors = np.ones(len(names))
    for owner in (scale["datasets"][0], scale):
        if (scale_factors := _transform(owner, "scale", len(names))) is not None:
            factors *= scale_factors
    sizes = dict(zip(names, map(float, factors), strict=True))
    result: dict[str, Any] = {}
    for axis in "XYZ":
        if units.get(axis) in _UNITS:
            result |= physical_sizes({axis: sizes[axis]}, _UNITS[units[axis]])
    if units.get("T") in _SECONDS and sizes["T"] > 0:
        result |= {"TimeIncrement": sizes["T"], "TimeIncrementUnit": _SECONDS[units["T"]]}
    omero = attributes.get("omero")
    channels = omero.get("channels") if isinstance(omero, Mapping) else None
    n_channels = counts[names.index("C")] if "C" in names else 0
    if isinstance(channels, list) and len(channels) == n_channels:
        labels = [str(one.get("label", "")) for one in channels if isinstance(one, Mapping)]
        if len(labels) == n_channels:
            result["Channel"] = {"Name": labels}
    return result


def _transform(owner: Mapping[str, Any], kind: str, n_axes: int) -> NDArray[np.float64] | None:
    """Return the stated scale or translation of a copy, or of the image; None if absent."""
    for transformation in owner.get("coordinateTransformations") or ():
        values = transformation.get(kind) if isinstance(transformation, Mapping) else None
        if isinstance(values, list) and len(values) == n_axes:
            return np.array(values, float)
    return None


def _lines(
    above: Mapping[str, Any], below: Mapping[str, Any], whole: Sequence[int], sides: Sequence[int]
) -> tuple[Line, ...]:
    """Return where the pixels of a copy lie in the larger copy, along each axis.

    The stated scales and translations are used if the copies' ends then differ by less than a pixel
    of the smaller copy; otherwise, the pixels are spread evenly.
    """
    scale_above, scale_below = (_transform(owner, "scale", len(sides)) for owner in (above, below))
    begin, end = (_transform(owner, "translation", len(sides)) for owner in (above, below))
    steps, starts = np.divide(whole, sides), np.zeros(len(sides))
    if scale_above is not None and scale_below is not None and (scale_above > 0).all():
        ratio = scale_below / scale_above
        fits = (ratio >= 1) & (np.abs(ratio * sides - whole) < ratio)
        steps = np.where(fits, ratio, steps)
        if end is not None:
            # Translations refer to pixel centres.
            shift = (end - (0 if begin is None else begin)) / scale_above - (steps - 1) / 2
            starts = np.where(fits & (np.abs(shift) <= steps / 2), shift, 0.0)
    return tuple(zip(starts.tolist(), steps.tolist(), strict=True))


def _fits(above: int, below: int) -> bool:
    """Return whether side `below` is `above` divided by an integer, rounded down or up."""
    factor = max(1, round(above / below)) if below > 0 else 0
    return below >= 1 and factor >= 1 and below in (above // factor, -(-above // factor))


def _write(pyramid: _Pyramid, out: Path, pages: Iterable[NDArray[Any]]) -> None:
    """Write pages and their smaller copies into an empty folder, and copy everything else."""
    _copy_rest(pyramid, out)
    with warnings_ignored():
        _write_pages(_opened(out, pyramid.paths[0], "r+"), pages, out)
        for (above, below), lines in zip(pairwise(pyramid.paths), pyramid.lines, strict=True):
            _write_reduced(_opened(out, above, "r"), _opened(out, below, "r+"), lines)


def _copy_rest(pyramid: _Pyramid, out: Path) -> None:
    """Copy everything except the image's pixels; links and pipes are dropped."""
    copies = [pyramid.folder / path for path in pyramid.paths]
    for place, folders, names in os.walk(pyramid.folder):
        here = Path(place)
        folders[:] = sorted(name for name in folders if not (here / name).is_symlink())
        if any(here == copy or copy in here.parents for copy in copies):
            names = [name for name in names if name in _METADATA_FILES]
        target = out / here.relative_to(pyramid.folder)
        for name in names:
            if (here / name).is_file() and not (here / name).is_symlink():
                target.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(here / name, target / name)


def _write_pages(array: Any, pages: Iterable[Any], folder: Path) -> None:
    """Write pages to an array; pages that share chunks are collected in a file first."""
    counts, (height, width) = array.shape[:-2], array.shape[-2:]
    outer = _written_sides(array)
    shared_axis = next((axis for axis, side in enumerate(outer[:-2]) if side > 1), None)
    if shared_axis is None:
        for place, pixels in zip(np.ndindex(*counts), pages, strict=True):
            _fill(array, place, pixels)
        return
    source = iter(pages)
    for before in np.ndindex(*counts[:shared_axis]):
        for begin in range(0, counts[shared_axis], outer[shared_axis]):
            end = min(begin + outer[shared_axis], counts[shared_axis])
            sides = (end - begin, *counts[shared_axis + 1 :], height, width)
            buffer = spilled(sides, array.dtype, label="The pages of a chunk", folder=folder)
            for place in np.ndindex(*sides[:-2]):
                _fill(buffer, place, next(source))
            for region in _regions(sides, outer[shared_axis:]):
                along = slice(begin + region[0].start, begin + region[0].stop)
                array[(*before, along, *region[1:])] = buffer[region]
    if next(source, None) is not None:
        raise ValueError("more pages than the array has")


def _fill(array: Any, place: tuple[int, ...], pixels: Any) -> None:
    top = 0
    for band in pixels.each if isinstance(pixels, Bands) else [pixels]:
        array[(*place, slice(top, top + len(band)))] = band
        top += len(band)


def _regions(shape: Sequence[int], outer: Sequence[int]) -> Iterator[Region]:
    """Yield the regions of an array, at most `outer` in shape, that are written one by one."""
    counts = [-(-side // step) for side, step in zip(shape, outer, strict=True)]
    for place in np.ndindex(*counts):
        yield tuple(
            slice(n * step, min((n + 1) * step, side))
            for n, step, side in zip(place, outer, shape, strict=True)
        )


def _write_reduced(above: Any, below: Any, lines: Sequence[Line]) -> None:
    """Write the block means of an array to a smaller array."""
    for region in _regions(below.shape, _written_sides(below)):
        sides = [part.stop - part.start for part in region]
        means = np.empty(sides, below.dtype)
        # Write a few rows at a time, to hold little more than a chunk of the smaller array.
        row = math.prod(sides) // sides[-2] * math.prod(step for _, step in lines) * 8
        n_rows = max(1, int(_SLAB / row))
        for first in range(0, sides[-2], n_rows):
            last = min(first + n_rows, sides[-2])
            slab = list(region)
            slab[-2] = slice(region[-2].start + first, region[-2].start + last)
            means[..., first:last, :] = _means(above, slab, lines, below.dtype)
        below[region] = means


def _means(
    above: Any, region: Sequence[slice], lines: Sequence[Line], dtype: np.dtype[Any]
) -> NDArray[Any]:
    """Return the mean of the larger copy's pixels under each pixel of a region."""
    weights, covered_slices = [], []
    for part, (begin, step), side in zip(region, lines, above.shape, strict=True):
        places = np.round(begin + step * np.arange(part.start, part.stop), 6)
        lower, upper = np.clip(places, 0, side - 1), np.clip(places + step, 0, side)
        first, last = np.floor(lower).astype(int), np.ceil(upper).astype(int)
        counts = last - first
        rows = np.repeat(np.arange(len(places)), counts)
        columns = np.arange(len(rows)) + np.repeat(first - np.cumsum(counts) + counts, counts)
        covered = np.minimum(columns + 1, upper[rows]) - np.maximum(columns, lower[rows])
        covered_slices.append(slice(int(first[0]), int(last[-1])))
        weights_of_axis = (covered / (upper - lower)[rows], (rows, columns - first[0]))
        weights.append(csr_array(weights_of_axis, shape=(len(places), int(last[-1] - first[0]))))
    values = np.asarray(above[tuple(covered_slices)], np.float64)
    for axis, weights_of_axis in enumerate(weights):
        front = np.moveaxis(values, axis, 0)
        means = weights_of_axis @ front.reshape(len(front), -1)
        values = np.moveaxis(means.reshape(-1, *front.shape[1:]), 0, axis)
    return np.rint(values).astype(dtype) if dtype.kind in "ui" else values.astype(dtype)


FORMAT = Format(re.escape(HEAD), (".zarr",), read_zarr, rewrite, is_folder=True)
