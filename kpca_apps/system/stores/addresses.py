"""Addresses of object stores, known without asking any; light to import, for the help needs it."""

from __future__ import annotations

import re
from pathlib import Path

STORE_SCHEMES = ("s3", "gs", "gcs", "az", "abfs", "abfss")
# A path has lost one of the slashes.
_ADDRESS = re.compile(rf"({'|'.join(STORE_SCHEMES)}):/+(.*)", re.IGNORECASE | re.DOTALL)


def store_address(path: str | Path) -> str | None:
    """Return the address that is meant, of which a Path has lost a slash; None for other paths.

    >>> store_address(Path("s3://bucket/a.csv")), store_address("a.csv")
    ('s3://bucket/a.csv', None)
    """
    found = _ADDRESS.match(str(path))
    return None if found is None else f"{found[1]}://{found[2]}"


def place_text(path: str | Path) -> str:
    """Write a path, or the address that is meant by it.

    >>> place_text(Path("s3://bucket/a.csv")), place_text(Path("a.csv"))
    ('s3://bucket/a.csv', 'a.csv')
    """
    return store_address(path) or str(path)
