"""URIs of tables: ``postgresql://``, ``sqlite://``, ``s3://``."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from kpca_apps.errors import ConfigError
from kpca_apps.names import without_password
from kpca_apps.system.stores.addresses import STORE_SCHEMES, names_secret

# A single letter is a drive of Windows, not a scheme.
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")


def scheme_of(path: Any) -> str | None:
    """Return the scheme of a URI, in lower case; None for a path.

    >>> scheme_of("sqlite:///shop.db"), scheme_of("data/shop.csv"), scheme_of("C://shop.csv")
    ('sqlite', None, None)
    """
    # A Path is never a URI, as it merges repeated slashes.
    found = None if isinstance(path, Path) else _SCHEME.match(str(path))
    return None if found is None else found[1].lower()


def with_file(uri: str, change: Callable[[str], str]) -> str:
    """Change the file's path in the URI of a SQLite or DuckDB file; return other URIs unchanged.

    >>> with_file("sqlite:////home/ada/shop.db#orders", lambda path: path.rpartition("/")[2])
    'sqlite:///shop.db#orders'
    """
    found = re.match(r"((?:sqlite|duckdb):///)([^#]*)", uri, re.IGNORECASE)
    if found is None:
        return uri
    return found[1] + change(found[2]) + uri[found.end() :]


def refuse_password(text: str) -> None:
    """Raise ConfigError if a text contains the password of a URI.

    >>> refuse_password("postgresql://ada:rosebud@db/shop")
    Traceback (most recent call last):
    kpca_apps.errors.ConfigError: an address holds a password, which other users could read in \
process lists and logs: remove it, and give it in the environment (PGPASSWORD), ~/.pgpass or \
pg_service.conf. In user names, write @ as %40.
    """
    if "://" not in text:
        return
    is_secret = without_password(text) != text
    if not is_secret and "?" in text:
        with suppress(ValueError):
            is_secret = names_secret(urlsplit(text).query)
    if is_secret:
        by = "the environment (PGPASSWORD), ~/.pgpass or pg_service.conf"
        if scheme_of(text) in STORE_SCHEMES:
            by = "the environment, such as AWS_PROFILE, or the files of the store's own tools"
        raise ConfigError(
            "an address holds a password, which other users could read in process lists and "
            f"logs: remove it, and give it in {by}. In user names, write @ as %40."
        )
