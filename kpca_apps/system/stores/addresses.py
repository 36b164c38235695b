"""Addresses of object stores, parsed without network access.

The command's help imports this module, so importing must be fast.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePath, PurePosixPath
from urllib.parse import parse_qsl

from kpca_apps.errors import ConfigError, InputError

STORES = {"s3": "s3", "gs": "gs", "gcs": "gs", "az": "az", "abfs": "az", "abfss": "az"}
STORE_SCHEMES = tuple(STORES)
CREDENTIALS = {
    "s3": "AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS, or run gcloud auth application-default login",
    "az": "AZURE_STORAGE_ACCOUNT and AZURE_STORAGE_KEY, or run az login",
}
_ADDRESS = re.compile(rf"({'|'.join(STORE_SCHEMES)})://(.*)", re.IGNORECASE | re.DOTALL)
_SECRETS = re.compile(r"password|passwd|pwd|secret|token|signature|credential|^sig$", re.IGNORECASE)


class StorePath(PurePosixPath):
    """The address of an object or folder in a store, with the interface of a path.

    A plain `Path` is always local, even if its text looks like an address.
    """

    def __str__(self) -> str:
        scheme, _, rest = super().__str__().partition("/")
        return f"{scheme}//{rest}"


AnyPath = Path | StorePath


def located(place: str | AnyPath) -> AnyPath:
    """Convert a text to a store address or a local path; raise for an invalid address.

    >>> located("s3://bucket/in") / "a.csv", located("./s3:/a.csv"), located(Path("s3://bucket"))
    (StorePath('s3://bucket/in/a.csv'), PosixPath('s3:/a.csv'), PosixPath('s3:/bucket'))
    """
    if isinstance(place, PurePath):
        return place
    if (match := _ADDRESS.fullmatch(place)) is None:
        return Path(place)
    scheme, rest = match[1].lower(), match[2].rstrip("/")
    if match[2].startswith("/"):
        raise InputError("names no bucket; name it, as in s3://bucket/table.csv.", place)
    bucket, _, key = rest.partition("/")
    # Some Azure addresses have the form container@account.
    container = bucket.partition("@")[0] if scheme.startswith("abfs") else bucket
    if "@" in container or ":" in container or names_secret(key.partition("?")[2]):
        raise ConfigError(
            "an address of a store holds more than bucket and name, such as credentials; leave "
            f"that out, and set {CREDENTIALS[STORES[scheme]]}."
        )
    shown = f"{scheme}://{rest}"
    if not container or not {"", ".", ".."}.isdisjoint(key.split("/") if key else ()):
        raise InputError("is no address; name one such as s3://bucket/folder/table.csv.", shown)
    return StorePath(shown)


def names_secret(query: str) -> bool:
    """Return whether a field of an address's query has a name like that of a secret.

    >>> names_secret("X-Amz-Signature=5f3a"), names_secret("a=b.png")
    (True, False)
    """
    try:
        fields = parse_qsl(query, keep_blank_values=True)
    except ValueError:
        return False
    return any(_SECRETS.search(name) for name, _ in fields)
