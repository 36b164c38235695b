"""What an image's header may promise, checked before any pixel is read, and damage in one line."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from kpca_apps.errors import InputError
from kpca_apps.files.limits import require_memory
from kpca_apps.files.names import one_line

__all__ = ["DEFLATE_RATIO", "MAX_PIXELS", "check_promise", "check_size", "damage_refused"]

MAX_PIXELS = 178_000_000
# Deflate packs at most 1032 bytes into one; a header that promises more lies.
DEFLATE_RATIO = 1100

# What libpng would only warn of is refused here or harmless; without a handler it is printed.
logging.getLogger("imagecodecs").addHandler(logging.NullHandler())


def check_promise(
    label: str,
    height: int,
    width: int,
    pixel_bytes: float,
    packed: int | None = None,
    ratio: int = DEFLATE_RATIO,
) -> None:
    """Refuse a size that is nothing, too much for the file or the memory, or above the limit.

    `pixel_bytes` are those of a decoded pixel, `packed` those of all pixels in the file, of which
    one can become at most `ratio`.

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
    label: str, height: int, width: int, pixel_bytes: float, packed: int | None, ratio: int
) -> None:
    """Do the same without asking how much memory is left, which takes time."""
    promise = f"{label}: its header promises {width} x {height} pixels"
    if height < 1 or width < 1:
        raise InputError(f"{promise}; it is damaged, make it again.")
    if height * width > MAX_PIXELS:
        raise InputError(
            f"{promise}, above the limit of {MAX_PIXELS // 1_000_000} megapixels; cut it into "
            "smaller images."
        )
    if packed is not None and int(height * width * pixel_bytes) > ratio * packed + 4096:
        raise InputError(
            f"{promise}, more than its {packed} bytes can hold; it is damaged or cut short, fetch "
            "the file again."
        )


@contextmanager
def damage_refused(label: str) -> Iterator[None]:
    """Turn what a library raises on a damaged file, whatever that is, into one line."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except (InputError, MemoryError):
        raise
    except Exception as error:
        reason = one_line(str(error) or type(error).__name__, 100)
        raise InputError(
            f"{label}: its pixels are damaged or cut short ({reason}); fetch the file again."
        ) from None
