"""What an image's header may promise, checked before any pixel is read; and damage in one line."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from kpca_apps.errors import InputError
from kpca_apps.files.names import one_line

__all__ = ["DEFLATE_RATIO", "MAX_PIXELS", "check_size", "damage_refused"]

MAX_PIXELS = 178_000_000
# Deflate packs at most 1032 bytes into one; a header that promises more lies.
DEFLATE_RATIO = 1100
# What libpng only warns of is harmless; without a handler it would be printed.
logging.getLogger("imagecodecs").addHandler(logging.NullHandler())


def check_size(
    label: str, size: tuple[int, int], pixel_bytes: float, packed: float, ratio: int
) -> None:
    """Refuse a (height, width) above the limit, or of more than `packed` bytes can hold.

    One of these can become at most `ratio` bytes of pixels, of which one has `pixel_bytes`.
    """
    height, width = size
    promise = f"{label}: its header promises {width} x {height} pixels"
    if height < 1 or width < 1:
        raise InputError(f"{promise}; it is damaged, make it again.")
    if height * width > MAX_PIXELS:
        raise InputError(
            f"{promise}, above the limit of {MAX_PIXELS // 1_000_000} megapixels; cut it into "
            "smaller images."
        )
    if height * width * pixel_bytes > ratio * packed + 4096:
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
