"""Addresses of object stores, known without asking any; light to import, for the help needs it."""

from __future__ import annotations

import re
from pathlib import Path

SCHEMES = ("s3", "gs", "gcs", "az", "abfs", "abfss")
# A path has lost one of the slashes.
_ADDRESS = re.compile(rf"({'|'.join(SCHEMES)}):/+(.*)", re.IGNORECASE | re.DOTALL)


def address_of(path: str | Path) -> str | None:
    """Return the address that is meant, of which a Path has lost a slash; None for other paths.

    >>> address_of("s3://bucket/a.csv"), address_of(Path("s3://bucket")), address_of("a.csv")
    ('s3://bucket/a.csv', 's3://bucket', None)
    """
    found = _ADDRESS.match(str(path))
    return None if found is None else f"{found[1]}://{found[2]}"
