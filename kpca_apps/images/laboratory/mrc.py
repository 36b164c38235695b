"""MRC files of electron microscopes (images, volumes and stacks), by mrcfile (extra "lab").

Cheng et al. (2015), "MRC2014: Extensions to the MRC format header for electron cryo-microscopy and
tomography", J. Structural Biology 192(2).
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from kpca_apps.errors import InputError, require_library
from kpca_apps.images.laboratory.in_place import Plane, find_planes, write_in_place
from kpca_apps.images.laboratory.ome import Series, make_image, physical_sizes
from kpca_apps.images.large import Content
from kpca_apps.images.types import Format, ImageFile, damage_refused, rewrite

_HEADER = 1024
_EXTENDED = slice(92, 96)  # bytes of the header with the size of the extended header
_STATISTICS, _DEVIATION = 76, 216  # offsets of minimum, maximum and mean, and of the deviation
_MOST_SIGNED = 127  # largest signed byte
_MODES = {0: "i1", 1: "i2", 2: "f4", 6: "u2", 12: "f2"}


def read_mrc(data: Content) -> ImageFile:
    """Read an MRC file of 8- or 16-bit integers, or 16- or 32-bit floats."""
    require_library("mrcfile", "lab", "MRC files")
    from mrcfile.mrcinterpreter import MrcInterpreter

    with damage_refused():
        head = bytearray(data[:_HEADER])
        size, head[_EXTENDED] = head[_EXTENDED], bytes(4)  # skip the extended header
        opened = MrcInterpreter(io.BytesIO(head), permissive=True, header_only=True)
        header = opened.header
        order: Literal["<", ">"] = ">" if header.mode.dtype.str.startswith(">") else "<"
        mode, (extended,) = int(header.mode), struct.unpack(f"{order}i", size)
        nx, ny, nz, mz = (int(header[name]) for name in ("nx", "ny", "nz", "mz"))
        kind, voxel = int(header.ispg), opened.voxel_size
        # Some writers store unsigned bytes as mode 0, which shows in the stated range.
        is_unsigned = mode == 0 and header.dmin >= 0 and header.dmax > _MOST_SIGNED
        sizes = {axis: float(voxel[axis.lower()]) for axis in "XYZ"}
    if mode not in _MODES:
        raise InputError(
            f"holds values of MRC mode {mode}, which are complex or rare; save it in mode "
            "0, 1, 2, 6 or 12 first."
        )
    stored = np.dtype("u1" if is_unsigned else _MODES[mode]).newbyteorder(order)
    planes = find_planes(data, _HEADER + max(0, extended), (nz, ny, nx), stored)
    # The file holds a stack of images, a volume, or volumes of mz sections each; see MRC2014.
    n_volumes = nz // mz if kind > 400 and mz > 0 and nz % mz == 0 else 1
    axes = "T" if kind < 1 else "Z" if n_volumes == 1 else "TZ"
    counts = (n_volumes, nz // n_volumes)[-len(axes) :]
    series = [Series(axes, counts, planes[0].page, physical_sizes(sizes, "Å"))]
    return make_image(
        "mrc",
        series,
        lambda number: planes[number].read(data),
        has_groups=kind >= 1,
        rewrite=partial(_write, content=data, planes=planes, order=order),
    )


def _write(
    file: Any, pages: Iterable[NDArray[Any]], content: Content, planes: list[Plane], order: str
) -> None:
    """Write the pages, and update the statistics in the header."""
    low, high, total, square, count = np.inf, -np.inf, 0.0, 0.0, 0

    def updating_statistics() -> Iterator[NDArray[Any]]:
        nonlocal low, high, total, square, count
        for pixels in pages:
            values = pixels.astype(np.float64)
            low, high = min(low, float(values.min())), max(high, float(values.max()))
            # Update the squared deviations as in Chan et al. (1983), Am. Statistician 37(3).
            mean, n_new = float(values.mean()), values.size
            shift = mean - (total / count if count else mean)
            square += float(((values - mean) ** 2).sum())
            square += shift**2 * count * n_new / (count + n_new)
            total, count = total + mean * n_new, count + n_new
            yield pixels

    write_in_place(file, updating_statistics(), content, planes)
    file.seek(_STATISTICS)
    file.write(struct.pack(f"{order}3f", low, high, total / count))
    file.seek(_DEVIATION)
    file.write(struct.pack(f"{order}f", (square / count) ** 0.5))


FORMAT = Format(rb".{208}MAP[ \0]", (".mrc", ".mrcs"), read_mrc, rewrite)
