"""Objects in stores: ``s3://bucket/key``, ``gs://bucket/key``, ``az://container/key``.

Pyarrow's file systems list, read and write the objects. They find credentials where each store's
own tools do. Credentials are never shown.
"""

from __future__ import annotations

import mmap
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from fnmatch import fnmatchcase
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from kpca_apps.errors import ConfigError, InputError, KpcaError
from kpca_apps.names import one_line
from kpca_apps.system.files.spools import require_disk, spool_folder, write_spool
from kpca_apps.system.interrupts import heard_while
from kpca_apps.system.stores.addresses import CREDENTIALS, STORES, AnyPath, StorePath, located

T = TypeVar("T")

CHUNK = 1 << 23  # bytes per request
CONCURRENT = 16  # maximum number of simultaneous requests
PROBE = ".kpca-writable"  # name of an object that is written and removed to test permissions
# By default, pyarrow would compress or decompress objects with names like "x.gz".
_AS_IT_IS: dict[str, Any] = {"compression": None}
# Timeouts of a connection and of a request, in seconds, and number of attempts.
CONNECT, REQUEST, TRIES = 10.0, 30.0, 3
LISTED = 600.0  # seconds after which listing a folder is stopped
_PLACES = {"s3": "AWS_ENDPOINT_URL", "gs": "STORAGE_EMULATOR_HOST", "az": "the name of the account"}
_DENIED = re.compile(
    r"ACCESS_DENIED|INVALID_ACCESS_KEY_ID|SIGNATURE|EXPIRED|ExpiredToken|InvalidToken|"
    r"HTTP status 40[13]|PERMISSION_DENIED|UNAUTHENTICATED|OAuth2|Authenti|Authoriz|CREDENTIAL|"
    r"InvalidAccessKeyId|40[13] (Forbidden|Unauthorized)|AccessDenied",
    re.IGNORECASE,
)
_NO_BUCKET = "there is no such bucket (404)."
_PATTERN = re.compile(r"[*?[]")
_SLOW = re.compile(r"curlCode: 28|curl error \[28\]|timed? ?out", re.IGNORECASE)
_CUT = re.compile(r"curlCode: 18|curl error \[18\]|partial file", re.IGNORECASE)
_UNREACHABLE = re.compile(
    r"NETWORK_CONNECTION|curl error|UNAVAILABLE|Fail to get a new connection|error sending request"
)


@dataclass(frozen=True)
class Item:
    """An object or folder below a place."""

    name: str  # relative to the place, with parts separated by slashes
    is_folder: bool
    modified: float  # seconds since 1970; 0 for folders
    n_bytes: int = 0


@dataclass(frozen=True)
class Place:
    """An object in a store, or a folder, which is all objects with a common prefix."""

    address: str  # the address as given, without a trailing slash
    path: str  # the bucket and the key in it
    system: Any  # a pyarrow file system

    def inside(self, name: str) -> Place:
        """Return a place below this one."""
        return Place(f"{self.address}/{name}", f"{self.path}/{name}", self.system)

    @property
    def name(self) -> str:
        """Last part of the path."""
        return self.path.rpartition("/")[2]

    def kind(self) -> str:
        """Return ``"file"``, ``"folder"``, or ``""`` if nothing is there."""
        from pyarrow.fs import FileType

        return {FileType.File: "file", FileType.Directory: "folder"}.get(self._info().type, "")

    def items(self, *, recursive: bool = False) -> list[Item]:
        """Return the content of a folder sorted by name; empty if there is no folder."""
        from pyarrow.fs import FileSelector, FileType

        # Google's store lists only objects, so derive the folders from all names.
        deep = recursive or self.system.type_name == "gcs"
        chosen = FileSelector(self.path, recursive=deep, allow_not_found=True)
        items: dict[str, Item] = {}
        end = time.monotonic() + LISTED

        def look() -> None:
            if time.monotonic() > end:
                raise InputError(
                    "lists objects without an end, or too many; name a folder with fewer.",
                    self.address,
                )

        for info in self._asked(lambda: self.system.get_file_info(chosen), look):
            try:
                name = info.path[len(self.path) + 1 :]
            except UnicodeDecodeError:
                raise InputError(
                    "holds an object whose name is not UTF-8; copy it to another name.",
                    self.address,
                ) from None
            is_folder = info.type == FileType.Directory
            if not recursive and "/" in name:
                name, is_folder = name.partition("/")[0], True
            if is_folder and name in items:
                continue  # already listed, as a folder or as an object of the same name
            modified = 0.0 if is_folder else (info.mtime_ns or 0) / 1e9
            items[name] = Item(name, is_folder, modified, 0 if is_folder else info.size or 0)
        return sorted((info for info in items.values() if info.name), key=lambda info: info.name)

    def copyable(self, hidden: tuple[str, ...], *, recursive: bool = False) -> list[Item]:
        """Return the content of a folder; skip names in which a part begins with a `hidden` prefix.

        Raises InputError for a name that cannot exist on a disk or would lead outside the folder.
        """
        items = []
        for item in self.items(recursive=recursive):
            if any(part.startswith(hidden) for part in item.name.split("/")):
                continue
            if not is_path(item.name):
                raise InputError(
                    "has an empty part in its name, or another that no folder here can have; copy "
                    "it to another name.",
                    f"{self.address}/{item.name}",
                )
            items.append(item)
        return items

    def chunks(self) -> Iterator[bytes]:
        """Yield the bytes of an object; raise if the object changes meanwhile or is cut short."""
        before, n_bytes, stream = self._info(), 0, self._stream()
        # Stop at the known size, as an endless object would fill the disk.
        while n_bytes <= (before.size or 0) and (chunk := self._asked(lambda: stream.read(CHUNK))):
            n_bytes += len(chunk)
            yield chunk
        after = self._info()
        if (after.size, after.mtime) != (before.size, before.mtime) or n_bytes != after.size:
            raise InputError("was changed while it was read; run again.", self.address)

    def n_bytes(self) -> int:
        """Return the size of an object in bytes."""
        return int(self._info().size or 0)

    def opened(self) -> Any:
        """Return an object as an Arrow file with random access."""
        return self._asked(lambda: self.system.open_input_file(self.path))

    def head(self, n_bytes: int) -> bytes:
        """Return the first bytes of an object."""
        stream = self._stream()
        return self._asked(lambda: bytes(stream.read(n_bytes)))

    def write(self, chunks: Iterable[bytes]) -> None:
        """Upload an object."""
        stream = self._asked(lambda: self.system.open_output_stream(self.path, **_AS_IT_IS))
        for chunk in chunks:
            self._asked(partial(stream.write, chunk))
        self._asked(stream.close)

    def upload(self, path: Path) -> None:
        """Upload a file so that the object appears completely or not at all.

        Uses a single write. An interrupt between several writes would leave a partial object, and
        the store's client would hold pending pieces in memory.
        """

        def put() -> None:
            with path.open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else b""
            stream = self.system.open_output_stream(self.path, **_AS_IT_IS)
            stream.write(content)
            stream.close()

        self._asked(put)

    def remove(self) -> None:
        """Remove an object, if it exists."""
        self._removed(self.system.delete_file)

    def remove_folder(self) -> None:
        """Remove all objects of a folder, if it exists."""
        # Google's store has no objects for folders: its library removes the content, then raises.
        if self.kind() == "folder":
            self._removed(self.system.delete_dir)

    def _removed(self, remove: Callable[[str], None]) -> None:
        def removed() -> None:
            with suppress(FileNotFoundError):
                remove(self.path)

        self._asked(removed)

    def require_writable(self) -> None:
        """Raise InputError if no object can be written to the folder."""
        probe = self.inside(PROBE)
        probe.write([])
        probe.remove()

    def _stream(self) -> Any:
        """Open an object for sequential reading.

        While a random-access file of Google's store is read, Python cannot handle an interrupt.
        """
        return self._asked(lambda: self.system.open_input_stream(self.path, **_AS_IT_IS))

    def _info(self) -> Any:
        return self._asked(lambda: self.system.get_file_info(self.path))

    def missing(self, what: str = "there is no such object (404).") -> str:
        """Return the message for a missing object or bucket."""
        # Without permission to list a bucket, its existence is unknown.
        with suppress(InputError):
            if not replace(self, path=self.path.partition("/")[0]).kind():
                return _NO_BUCKET
        return what

    def _asked(self, call: Callable[[], T], look: Callable[[], None] | None = None) -> T:
        try:
            with _one_line_errors(self.address):
                return heard_while(call, look)
        except FileNotFoundError:
            raise InputError(self.missing(), self.address) from None


@contextmanager
def here(path: AnyPath) -> Iterator[Path]:
    """Yield a local path; for a store, the path of a temporary copy of the file or folder."""
    if isinstance(path, Path):
        yield path
        return
    place = place_of(path)
    with closing(spool_folder()) as held:
        copy = held.path / place.name
        if place.kind() == "folder":
            download(place, place.copyable((), recursive=True), copy)
        else:
            _download(place, copy)
        yield copy


def download(place: Place, items: Iterable[Item], folder: Path) -> None:
    """Copy items of a folder in a store to a new local folder."""
    folder.mkdir()
    for item in items:
        if item.is_folder:
            with _named(place.inside(item.name)):
                (folder / item.name).mkdir(parents=True, exist_ok=True)
        else:
            _download(place.inside(item.name), folder / item.name)


def _download(place: Place, target: Path) -> None:
    with _named(place):
        target.parent.mkdir(parents=True, exist_ok=True)
        require_disk(target.parent, place.n_bytes(), place.address)
        write_spool(target, place.chunks())


@contextmanager
def _named(place: Place) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        if isinstance(error, KpcaError):
            raise
        raise InputError(
            "has a name that no file here can have; copy it to another.", place.address
        ) from None


def is_path(name: str) -> bool:
    """Return whether an object's name can be the path of a local file below a folder.

    >>> is_path("a/b.png"), is_path("a//b.png"), is_path("../b.png")
    (True, False, False)
    """
    on_disk = Path(name)
    return {"", ".", ".."}.isdisjoint({*name.split("/"), *on_disk.parts}) and not on_disk.anchor


def matching(
    place: Place, hidden: tuple[str, ...], *, folders: bool = False
) -> tuple[Place, list[Item]]:
    """Return the folder above a pattern's first wildcard, and the matching objects in the folder.

    ``**`` matches any number of name parts. With `folders`, a matching folder stands for all
    objects below it. Without wildcards, returns the place itself and an empty list.
    """
    parts = place.path.split("/")
    n_fixed = next((k for k, part in enumerate(parts) if _PATTERN.search(part)), len(parts))
    wanted = parts[n_fixed:]
    end = len(place.address) - len("/".join(wanted)) - 1
    start = Place(place.address[:end], "/".join(parts[:n_fixed]), place.system)
    if not wanted:
        return place, []

    is_deep = len(wanted) > 1 or wanted == ["**"]
    items = start.copyable(hidden, recursive=is_deep)
    if folders and not is_deep:
        for one in [one for one in items if one.is_folder and _fits(one.name, wanted)]:
            below = start.inside(one.name).copyable(hidden, recursive=True)
            items += [replace(item, name=f"{one.name}/{item.name}") for item in below]
    matches = [one for one in items if _fits(one.name, wanted, below=folders)]
    return start, [one for one in matches if not one.is_folder]


def _fits(name: str, wanted: list[str], *, below: bool = False) -> bool:
    """Return whether a pattern matches a name or, with `below`, a folder above the name.

    >>> _fits("a/b/c.png", ["**", "*.png"]), _fits("a/b/c.png", ["a"], below=True)
    (True, True)
    """
    names = name.split("/")
    reached = {0}  # contains n if the pattern so far matches the name's first n parts
    for part in wanted:
        if part == "**":
            first = min(reached, default=len(names))  # if no name part is left, ** does not match
            reached = {*range(first, len(names) + 1)} if first < len(names) else set()
        else:
            reached = {n + 1 for n in reached if n < len(names) and fnmatchcase(names[n], part)}
    return bool(reached) if below else len(names) in reached


def nothing_there(start: Place, place: Place) -> str:
    """Return the error message for a pattern or an address that matches nothing."""
    return start.missing() if start is place else start.missing("no object has such a name.")


def place_of(address: str | StorePath) -> Place:
    """Return an address as a `Place`. The only request is for the region of an Amazon bucket."""
    shown = str(located(address))
    scheme, _, rest = shown.partition("://")
    bucket, _, key = rest.partition("/")
    bucket, _, host = bucket.partition("@")
    with _one_line_errors(shown):
        system = {"s3": _s3, "gs": _gs, "az": _az}[STORES[scheme]](bucket, host.partition(".")[0])
    return Place(shown, f"{bucket}/{key}" if key else bucket, system)


def endpoint() -> str | None:
    """Return the S3 endpoint if it is not Amazon's, else None."""
    return os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or None


def _s3(bucket: str, _account: str) -> Any:
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    return _s3_system(endpoint(), region, "" if region or endpoint() else bucket)


@cache
def _s3_system(url: str | None, region: str | None, bucket: str) -> Any:
    from pyarrow import fs

    options: dict[str, Any] = {}
    if url is not None:
        # Stores other than Amazon's mostly have no regions, but signing a request needs a region.
        region = region or "us-east-1"
        parts = urlsplit(url)
        options = {"endpoint_override": parts.netloc + parts.path, "scheme": parts.scheme}
    elif region is None:
        try:
            region = heard_while(lambda: fs.resolve_s3_region(bucket))
        except OSError:
            region = None  # the library will look up the region
    options |= {"connect_timeout": CONNECT, "request_timeout": REQUEST}
    retry = fs.AwsStandardS3RetryStrategy(max_attempts=TRIES)
    return fs.S3FileSystem(region=region, retry_strategy=retry, **options)


def _gs(_bucket: str, _account: str) -> Any:
    from pyarrow import fs

    options: dict[str, Any] = {}
    if url := os.environ.get("STORAGE_EMULATOR_HOST"):
        scheme, _, host = url.rpartition("://")
        options = {"anonymous": True, "scheme": scheme or "http", "endpoint_override": host}
    return fs.GcsFileSystem(retry_time_limit=timedelta(seconds=REQUEST), **options)


def _az(_bucket: str, account: str) -> Any:
    from pyarrow import fs

    def of_environment(*names: str) -> str | None:
        return next(filter(None, map(os.environ.get, names)), None)

    text = os.environ.get("AZURE_STORAGE_CONNECTION_STRING", "")
    settings = {name: value for name, _, value in (part.partition("=") for part in text.split(";"))}
    if settings.get("UseDevelopmentStorage", "").lower() == "true":
        raise ConfigError(
            "AZURE_STORAGE_CONNECTION_STRING says UseDevelopmentStorage, which is not known here; "
            "name the emulator's AccountName, AccountKey and BlobEndpoint."
        )
    try:
        place = urlsplit(settings.get("BlobEndpoint", ""))
    except ValueError:
        raise ConfigError(
            "the BlobEndpoint of AZURE_STORAGE_CONNECTION_STRING is no address; give one such as "
            "https://account.blob.core.windows.net."
        ) from None
    # A shared access signature belongs to the account in the endpoint's host name.
    host_match = re.match(r"(\w+)\.blob\.", place.netloc)
    owner = settings.get("AccountName") or (host_match[1] if host_match else "")
    account = account or of_environment("AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_ACCOUNT_NAME") or ""
    account = account or owner
    if not account:
        raise ConfigError(
            "an address az:// names no storage account; set AZURE_STORAGE_ACCOUNT, or name it "
            "as abfss://container@account.dfs.core.windows.net/folder."
        )
    key = of_environment("AZURE_STORAGE_KEY", "AZURE_STORAGE_ACCOUNT_KEY")
    if owner != account:
        return fs.AzureFileSystem(account, account_key=key)
    key = key or settings.get("AccountKey")
    scheme = place.scheme or settings.get("DefaultEndpointsProtocol", "https")
    suffix = settings.get("EndpointSuffix", "core.windows.net")
    # The account is either the prefix of the host's name or the first part of the path.
    host = place.netloc or f"{account}.blob.{suffix}"
    host = host.removeprefix(account) if host.startswith(f"{account}.") else host
    return fs.AzureFileSystem(
        account,
        account_key=key,
        sas_token=None if key else settings.get("SharedAccessSignature"),
        blob_storage_authority=host,
        blob_storage_scheme=scheme,
        dfs_storage_authority=host.replace(".blob.", ".dfs.", 1),
        dfs_storage_scheme=scheme,
    )


@contextmanager
def _one_line_errors(address: str) -> Iterator[None]:
    import pyarrow as pa

    try:
        yield
    except FileNotFoundError:
        raise  # the caller knows which object is missing
    except (OSError, pa.ArrowException) as error:
        raise InputError(reason(str(error), address), address) from None


def reason(text: str, address: str = "s3://") -> str:
    """Return a one-line reason for the error message of a store's library."""
    if region := re.search(r"located in '([\w-]+)'", text):
        return f"the bucket lies in another region; set AWS_REGION={region[1]}."
    text = re.sub(r"'[^']*'", "it", text)  # remove quoted names, which may contain any word
    if "HTTP status 301" in text:
        return "the bucket lies in another region; set AWS_REGION to it."
    if re.search(r"NO_SUCH_BUCKET|NoSuchBucket|ContainerNotFound|bucket does not exist", text):
        return _NO_BUCKET
    if _SLOW.search(text):
        return f"the store did not answer for {REQUEST:g} s; try again later."
    if _CUT.search(text):
        return "the store broke off in the middle of the object; try again."
    store = {"g": "gs", "a": "az"}.get(address[:1].lower(), "s3")
    if _DENIED.search(text):
        return (
            "access is denied (403): no credentials were found, or they do not allow it; set "
            f"{CREDENTIALS[store]}."
        )
    if re.search(r"SLOW_DOWN|HTTP status (code: )?50\d|\b50\d [A-Z]", text):
        return "the store is overloaded, or fails (5xx); try again later."
    if _UNREACHABLE.search(text):
        return f"the store cannot be reached; check the network, and {_PLACES[store]}."
    first_line = re.sub(r"\s*\(Request ID: [^)]*\)", "", text.strip().partition("\n")[0])
    return f"the store refuses: {one_line(first_line.rstrip('.'), 160)}."
