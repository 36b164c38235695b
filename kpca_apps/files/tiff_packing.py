"""How TIFF packs the bytes of a strip or tile: unpacked, within bounds.

References
----------
TIFF Revision 6.0 (Adobe, 1992), sections 9, 13 and 14; TIFF Technical Note 3 (Adobe, 2005).
"""

from __future__ import annotations

import lzma
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kpca_apps.compiling import machine_code
from kpca_apps.files.images_limits import DEFLATE_RATIO
from kpca_apps.files.tiff_tags import TiffError

__all__ = ["PLAIN", "RATIOS", "UNPREDICTED", "ZIP", "apply_predictor", "undo_predictor", "unpack"]

PLAIN, LZW, ZIP, OLD_ZIP, PACKBITS, LZMA = 1, 5, 8, 32946, 32773, 34925
# The schemes that are read, and how many bytes one packed byte can at most become.
RATIOS = {
    PLAIN: 1,
    PACKBITS: 64,
    ZIP: DEFLATE_RATIO,
    OLD_ZIP: DEFLATE_RATIO,
    LZW: 2800,
    LZMA: 16_000,
}
# With these a predictor is named in vain, as libtiff has it.
UNPREDICTED = frozenset({PLAIN, PACKBITS})
_CLEAR, _END, _FIRST = 256, 257, 258


def unpack(packed: bytes, scheme: int, n_bytes: int) -> bytes:
    r"""Unpack a strip or tile.

    Parameters
    ----------
    packed : bytes
    scheme : int
        TIFF's number, one of `RATIOS`.
    n_bytes : int
        Bytes expected; no more are made.

    Returns
    -------
    bytes
        Of length `n_bytes`.

    Raises
    ------
    TiffError
        If the data are damaged or too few.

    Examples
    --------
    >>> unpack(b"\xfe\x07\x01\x01\x02", PACKBITS, 5)
    b'\x07\x07\x07\x01\x02'
    """
    try:
        if scheme in (ZIP, OLD_ZIP):
            raw = zlib.decompressobj().decompress(packed, n_bytes) if n_bytes else b""
        elif scheme == LZMA:
            raw = lzma.LZMADecompressor().decompress(packed, n_bytes)
        elif scheme == PLAIN:
            raw = packed[:n_bytes]
        else:
            out = np.zeros(n_bytes, np.uint8)
            loop = _unpack_lzw if scheme == LZW else _unpack_bits
            raw = out[: loop(np.frombuffer(packed, np.uint8), out)].tobytes()
    except (zlib.error, lzma.LZMAError):
        raise TiffError("its pixels are damaged") from None
    if len(raw) < n_bytes:
        raise TiffError("its pixels are damaged or cut short")
    return raw


def undo_predictor(
    rows: NDArray[np.uint8], predictor: int, dtype: np.dtype[Any], samples: int
) -> NDArray[Any]:
    """Turn unpacked bytes into values.

    Parameters
    ----------
    rows : ndarray of shape (h, w * samples * itemsize), uint8
    predictor : {1, 2, 3}
        None, differences of neighbouring pixels, or of the bytes of floats.
    dtype : numpy.dtype
        Of the values, in the file's byte order.
    samples : int
        Interleaved channels.

    Returns
    -------
    ndarray of shape (h, w, samples)
        In the machine's byte order.
    """
    native = dtype.newbyteorder("=")
    if predictor == 3:
        size = dtype.itemsize
        sums = np.cumsum(rows.reshape(len(rows), -1, samples), axis=1, dtype=np.uint8)
        # Of each row first the highest bytes of all values, then the next.
        planes = sums.reshape(len(rows), size, -1)
        values = np.ascontiguousarray(planes.transpose(0, 2, 1)).view(dtype.newbyteorder(">"))
        return values.reshape(len(rows), -1, samples).astype(native)
    values = np.ascontiguousarray(rows).view(dtype).astype(native)
    values = values.reshape(len(rows), -1, samples)
    if predictor == 2:
        whole = values.view(f"u{dtype.itemsize}")
        np.cumsum(whole, axis=1, dtype=whole.dtype, out=whole)
    return values


def apply_predictor(values: NDArray[Any]) -> NDArray[Any]:
    """Replace pixels by their differences from the one before, modulo the range of integers.

    Parameters
    ----------
    values : ndarray of shape (h, w, samples), uint8 or uint16

    Returns
    -------
    ndarray of the same shape and dtype
    """
    differences = values.copy()
    differences[:, 1:] -= values[:, :-1]
    return differences


@machine_code()
def _unpack_bits(packed: NDArray[np.uint8], out: NDArray[np.uint8]) -> int:
    """Unpack run lengths; return the number of bytes made."""
    place = 0
    made = 0
    while place < len(packed) and made < len(out):
        control = np.int64(packed[place])
        place += 1
        if control < 128:
            for _ in range(control + 1):
                if place < len(packed) and made < len(out):
                    out[made] = packed[place]
                    made += 1
                place += 1
        elif control > 128 and place < len(packed):
            for _ in range(257 - control):
                if made < len(out):
                    out[made] = packed[place]
                    made += 1
            place += 1
    return made


@machine_code()
def _unpack_lzw(packed: NDArray[np.uint8], out: NDArray[np.uint8]) -> int:
    """Unpack LZW codes, highest bit first; return the number of bytes made.

    A code's string is kept as the place and length of its first appearance in what is made.
    """
    starts = np.zeros(4097, np.int64)
    lengths = np.zeros(4097, np.int64)
    n_codes, width, made = _FIRST, 9, 0
    before_start, before_length = -1, 0
    bits, n_bits = np.int64(0), 0
    for byte in packed:
        bits = ((bits << 8) | np.int64(byte)) & 0xFFFFFF
        n_bits += 8
        if n_bits < width:
            continue
        n_bits -= width
        code = (bits >> n_bits) & ((1 << width) - 1)
        if code == _END or made >= len(out):
            break
        if code == _CLEAR:
            n_codes, width, before_start = _FIRST, 9, -1
            continue
        if code >= n_codes and (before_start < 0 or code > n_codes):
            break
        start, length = made, 1
        if code < _CLEAR:
            out[made] = code
        else:
            # The newest code stands for the string before and its own first byte.
            source = before_start if code == n_codes else starts[code]
            length = before_length + 1 if code == n_codes else lengths[code]
            length = min(length, len(out) - made)
            for at in range(length):
                out[made + at] = out[source + at]
        made += length
        if before_start >= 0 and n_codes < 4096:
            starts[n_codes] = before_start
            lengths[n_codes] = before_length + 1
            n_codes += 1
        before_start, before_length = start, length
        if n_codes >= (1 << width) - 1 and width < 12:
            width += 1
    return made
