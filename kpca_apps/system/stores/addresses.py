"""Addresses of object stores, known without asking any; light to import, for the help needs it."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import parse_qsl

STORE_SCHEMES = ("s3", "gs", "gcs", "az", "abfs", "abfss")
# A path has lost one of the slashes.
_ADDRESS = re.compile(rf"({'|'.join(STORE_SCHEMES)}):(/+)(.*)", re.IGNORECASE | re.DOTALL)
_SECRETS = re.compile(r"password|passwd|pwd|secret|token|signature|credential|^sig$", re.IGNORECASE)


def store_address(path: str | Path) -> str | None:
    """Return the address that is meant, of which a Path has lost a slash; None for other paths.

    >>> store_address(Path("s3://bucket/a.csv")), store_address("a.csv"), store_address("s3:/a.csv")
    ('s3://bucket/a.csv', None, None)
    """
    found = _ADDRESS.match(str(path))
    if found is None or (isinstance(path, str) and len(found[2]) == 1):
        return None
    return f"{found[1]}://{found[3]}"


def path_here(path: str | Path) -> Path:
    """Return the path of a file of this machine, which is never taken for an address.

    >>> path_here("data/a.csv"), store_address(path_here("s3:/bucket/a.csv"))
    (PosixPath('data/a.csv'), None)
    """
    here = Path(path)
    return here if store_address(here) is None else here.absolute()


def place_text(path: str | Path) -> str:
    """Write a path, or the address that is meant by it.

    >>> place_text(Path("s3://bucket/a.csv")), place_text(Path("a.csv"))
    ('s3://bucket/a.csv', 'a.csv')
    """
    return store_address(path) or str(path)


def names_secret(query: str) -> bool:
    """Tell whether a field of a query is called like a secret; names of objects may look like one.

    >>> names_secret("X-Amz-Signature=5f3a"), names_secret("a=b.png")
    (True, False)
    """
    try:
        fields = parse_qsl(query, keep_blank_values=True)
    except ValueError:
        return False
    return any(_SECRETS.search(name) for name, _ in fields)
