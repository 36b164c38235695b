"""What an image's header may promise, checked before any pixel is read."""

from __future__ import annotations

from kpca_apps.errors import InputError
from kpca_apps.files.limits import require_memory

__all__ = ["DEFLATE_RATIO", "MAX_PIXELS", "check_promise", "check_size"]

MAX_PIXELS = 178_000_000
# Deflate packs at most 1032 bytes into one; a header that promises more lies.
DEFLATE_RATIO = 1100


def check_promise(
    label: str,
    height: int,
    width: int,
    pixel_bytes: float,
    packed: int | None = None,
    ratio: int = DEFLATE_RATIO,
) -> None:
    """Refuse an image whose header promises nothing, too much, or more than the file can hold.

    Parameters
    ----------
    label : str
        The file, as the user named it.
    height, width : int
        From the header.
    pixel_bytes : float
        Bytes of a pixel, decoded.
    packed : int, optional
        Bytes of packed pixels in the file, where a bound is known for how far they unpack.
    ratio : int
        That bound: bytes that one packed byte can at most become.

    Raises
    ------
    InputError
        With the size promised.
    MemoryLimitError
        If decoding it would not fit into memory.

    Examples
    --------
    >>> check_promise("a.png", 3000, 4000, 3, packed=5_000_000)
    >>> check_promise("b.png", 60000, 60000, 3)
    Traceback (most recent call last):
    kpca_apps.errors.InputError: b.png: its header promises 60000 x 60000 pixels, above the limit
    of 178 megapixels; cut it into smaller images.
    """
    check_size(label, height, width, pixel_bytes, packed, ratio)
    require_memory(label, int(height * width * pixel_bytes))


def check_size(
    label: str,
    height: int,
    width: int,
    pixel_bytes: float,
    packed: int | None,
    ratio: int = DEFLATE_RATIO,
) -> None:
    """Do the same without asking how much memory is left, which takes time.

    Parameters
    ----------
    label, height, width, pixel_bytes, packed, ratio
        As for `check_promise`.

    Raises
    ------
    InputError
        With the size promised.
    """
    if height < 1 or width < 1:
        raise InputError(
            f"{label}: its header promises {width} x {height} pixels; it is damaged, make it again."
        )
    if height * width > MAX_PIXELS:
        raise InputError(
            f"{label}: its header promises {width} x {height} pixels, above the limit of "
            f"{MAX_PIXELS // 1_000_000} megapixels; cut it into smaller images."
        )
    decoded = int(height * width * pixel_bytes)
    if packed is not None and decoded > ratio * packed + 4096:
        raise InputError(
            f"{label}: its header promises {width} x {height} pixels, more than its {packed} bytes "
            "can hold; it is damaged or cut short, fetch the file again."
        )
