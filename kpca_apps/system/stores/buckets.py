"""Objects of a store, by address: ``s3://bucket/key``, ``gs://bucket/key``, ``az://container/key``.

By pyarrow's file systems: they list, read and write bytes of any kind (polars reads some kinds of
tables), and find credentials as the tools of each store do. None is ever shown.
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

CHUNK = 1 << 23  # bytes asked for at once
ASKED = 16  # objects that are asked for at once, where many are
PROBE = ".kpca-writable"  # an object that is made and removed, to see whether that may be
# Not "detect", which would pack, or unpack, what has the name of a packed file.
_AS_IT_IS: dict[str, Any] = {"compression": None}
# Seconds until a store that does not answer is given up, and tries.
CONNECT, REQUEST, TRIES = 10.0, 30.0, 3
LISTED = 600.0  # seconds until a listing is taken for one that never ends
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
    """An object below a place, or a folder of objects."""

    name: str  # relative to the place, parts separated by slashes
    is_folder: bool
    modified: float  # seconds since 1970; 0 of folders
    n_bytes: int = 0


@dataclass(frozen=True)
class Place:
    """An object of a store, or what is a folder to it: all objects whose names begin alike."""

    address: str  # as it was given, without a slash at its end
    path: str  # bucket and key
    system: Any  # a file system of pyarrow

    def inside(self, name: str) -> Place:
        """Return a place below this one."""
        return Place(f"{self.address}/{name}", f"{self.path}/{name}", self.system)

    @property
    def name(self) -> str:
        """The last part of its path."""
        return self.path.rpartition("/")[2]

    def kind(self) -> str:
        """Tell ``"file"``, ``"folder"`` or ``""``, where there is nothing."""
        from pyarrow.fs import FileType

        found = self._info().type
        return {FileType.File: "file", FileType.Directory: "folder"}.get(found, "")

    def items(self, *, recursive: bool = False) -> list[Item]:
        """Return what lies in a folder, by name; nothing where there is no folder."""
        from pyarrow.fs import FileSelector, FileType

        # Of Google's store only objects are listed, and a folder is known by those in it.
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

        for one in self._asked(lambda: self.system.get_file_info(chosen), look):
            try:
                name = one.path[len(self.path) + 1 :]
            except UnicodeDecodeError:
                raise InputError(
                    "holds an object whose name is not UTF-8; copy it to another name.",
                    self.address,
                ) from None
            is_folder = one.type == FileType.Directory
            if not recursive and "/" in name:
                name, is_folder = name.partition("/")[0], True
            if is_folder and name in items:
                continue  # an object whose name is that of a folder too
            modified = 0.0 if is_folder else (one.mtime_ns or 0) / 1e9
            items[name] = Item(name, is_folder, modified, 0 if is_folder else one.size or 0)
        return sorted((one for one in items.values() if one.name), key=lambda one: one.name)

    def copyable(self, hidden: tuple[str, ...], *, recursive: bool = False) -> list[Item]:
        """Return what lies in a folder, but for names of which a part begins as hidden ones do.

        A name is refused that no path on disk can have, or that would lead out of a folder there.
        """
        found = []
        for one in self.items(recursive=recursive):
            if any(part.startswith(hidden) for part in one.name.split("/")):
                continue
            if not is_path(one.name):
                raise InputError(
                    "has an empty part in its name, or another that no folder here can have; copy "
                    "it to another name.",
                    f"{self.address}/{one.name}",
                )
            found.append(one)
        return found

    def chunks(self) -> Iterator[bytes]:
        """Yield the bytes of an object; one that is changed meanwhile, or cut short, is refused."""
        before, n_bytes, stream = self._info(), 0, self._stream()
        # One without an end would fill the disk.
        while n_bytes <= (before.size or 0) and (chunk := self._asked(lambda: stream.read(CHUNK))):
            n_bytes += len(chunk)
            yield chunk
        after = self._info()
        if (after.size, after.mtime) != (before.size, before.mtime) or n_bytes != after.size:
            raise InputError("was changed while it was read; run again.", self.address)

    def n_bytes(self) -> int:
        """Return the size of an object."""
        return int(self._info().size or 0)

    def opened(self) -> Any:
        """Open an object as a file of Arrow, which reads any of its bytes."""
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
        """Upload a file: the object is there whole, or not at all.

        In one step: what is written in several appears as far as it came where an interrupt falls
        between them. Written in pieces, it would also wait for the store in memory.
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
        """Remove an object, unless another run has done so."""
        self._removed(self.system.delete_file)

    def remove_folder(self) -> None:
        """Remove all objects of a folder, if there is one."""
        # Google's store has no object for a folder, and misses it at the end.
        if self.kind() == "folder":
            self._removed(self.system.delete_dir)

    def _removed(self, remove: Callable[[str], None]) -> None:
        def removed() -> None:
            with suppress(FileNotFoundError):
                remove(self.path)

        self._asked(removed)

    def require_writable(self) -> None:
        """Refuse a folder in which no object can be made."""
        probe = self.inside(PROBE)
        probe.write([])
        probe.remove()

    def _stream(self) -> Any:
        """Open an object for reading from its beginning.

        Where any byte can be read, Google's store keeps Python from hearing an interrupt.
        """
        return self._asked(lambda: self.system.open_input_stream(self.path, **_AS_IT_IS))

    def _info(self) -> Any:
        return self._asked(lambda: self.system.get_file_info(self.path))

    def missing(self, what: str = "there is no such object (404).") -> str:
        """Say that nothing is there, or no bucket of that name."""
        # Who may not look at a bucket is not told of it.
        with suppress(InputError):
            if not replace(self, path=self.path.partition("/")[0]).kind():
                return _NO_BUCKET
        return what

    def _asked(self, call: Callable[[], T], look: Callable[[], None] | None = None) -> T:
        """Ask the store; what it refuses is told in one line, and an interrupt heard meanwhile."""
        try:
            with _told(self.address):
                return heard_while(call, look)
        except FileNotFoundError:
            raise InputError(self.missing(), self.address) from None


@contextmanager
def here(path: AnyPath) -> Iterator[Path]:
    """Give a file, or a folder, as it lies on disk, for as long as the block runs.

    Of what lies in a store it is a copy, of the same name.
    """
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
    """Copy some items of a folder in a store to one on disk, which is made."""
    folder.mkdir()
    for one in items:
        if one.is_folder:
            with _named(place.inside(one.name)):
                (folder / one.name).mkdir(parents=True, exist_ok=True)
        else:
            _download(place.inside(one.name), folder / one.name)


def _download(place: Place, target: Path) -> None:
    with _named(place):
        target.parent.mkdir(parents=True, exist_ok=True)
        require_disk(target.parent, place.n_bytes(), place.address)
        write_spool(target, place.chunks())


@contextmanager
def _named(place: Place) -> Iterator[None]:
    """Say of an object that no file can have its name."""
    try:
        yield
    except (OSError, ValueError) as error:
        if isinstance(error, KpcaError):
            raise
        raise InputError(
            "has a name that no file here can have; copy it to another.", place.address
        ) from None


def is_path(name: str) -> bool:
    """Tell whether a file in a folder here can have the name of an object.

    >>> is_path("a/b.png"), is_path("a//b.png"), is_path("../b.png")
    (True, False, False)
    """
    on_disk = Path(name)
    is_plain = {"", ".", ".."}.isdisjoint({*name.split("/"), *on_disk.parts})
    return is_plain and not on_disk.anchor


def matching(
    place: Place, hidden: tuple[str, ...], *, folders: bool = False
) -> tuple[Place, list[Item]]:
    """Return the folder above the first wildcard of a pattern, and the objects in it that fit.

    ``**`` is any number of parts of a name; with `folders`, a folder that fits is all that lies
    below it. Of an address without wildcards it is the place itself, and nothing.
    """
    parts = place.path.split("/")
    n_fixed = next((k for k, part in enumerate(parts) if _PATTERN.search(part)), len(parts))
    wanted = parts[n_fixed:]
    end = len(place.address) - len("/".join(wanted)) - 1
    start = Place(place.address[:end], "/".join(parts[:n_fixed]), place.system)
    if not wanted:
        return place, []

    is_deep = len(wanted) > 1 or wanted == ["**"]
    found = start.copyable(hidden, recursive=is_deep)
    if folders and not is_deep:
        for one in [one for one in found if one.is_folder and _fits(one.name, wanted)]:
            below = start.inside(one.name).copyable(hidden, recursive=True)
            found += [replace(item, name=f"{one.name}/{item.name}") for item in below]
    fitting = [one for one in found if _fits(one.name, wanted, below=folders)]
    return start, [one for one in fitting if not one.is_folder]


def _fits(name: str, wanted: list[str], *, below: bool = False) -> bool:
    """Tell whether the parts of a pattern fit those of a name, or of a folder above it.

    >>> _fits("a/b/c.png", ["**", "*.png"]), _fits("a/b/c.png", ["a"], below=True)
    (True, True)
    """
    names = name.split("/")
    reached = {0}  # how many parts of the name the pattern can stand for so far
    for part in wanted:
        if part == "**":
            first = min(reached, default=len(names))  # at the end of a name nothing is below it
            reached = {*range(first, len(names) + 1)} if first < len(names) else set()
        else:
            reached = {n + 1 for n in reached if n < len(names) and fnmatchcase(names[n], part)}
    return bool(reached) if below else len(names) in reached


def nothing_there(start: Place, place: Place) -> str:
    """Say that a pattern, or an address without wildcards, names nothing."""
    return start.missing() if start is place else start.missing("no object has such a name.")


def place_of(address: str | StorePath) -> Place:
    """Find the store of an address; only Amazon is asked anything yet: where the bucket lies."""
    shown = str(located(address))
    scheme, _, rest = shown.partition("://")
    bucket, _, key = rest.partition("/")
    bucket, _, host = bucket.partition("@")
    with _told(shown):
        system = {"s3": _s3, "gs": _gs, "az": _az}[STORES[scheme]](bucket, host.partition(".")[0])
    return Place(shown, f"{bucket}/{key}" if key else bucket, system)


def endpoint() -> str | None:
    """Return where S3 is asked for, if not at Amazon's."""
    return os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or None


def _s3(bucket: str, _account: str) -> Any:
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    return _s3_system(endpoint(), region, "" if region or endpoint() else bucket)


@cache
def _s3_system(url: str | None, region: str | None, bucket: str) -> Any:
    from pyarrow import fs

    options: dict[str, Any] = {}
    if url is not None:
        # Stores that are not Amazon's mostly have no regions, and a signature needs one.
        region = region or "us-east-1"
        parts = urlsplit(url)
        options = {"endpoint_override": parts.netloc + parts.path, "scheme": parts.scheme}
    elif region is None:
        try:
            region = heard_while(lambda: fs.resolve_s3_region(bucket))
        except OSError:
            region = None  # as the library finds it
    retry = fs.AwsStandardS3RetryStrategy(max_attempts=TRIES)
    return fs.S3FileSystem(
        region=region,
        connect_timeout=CONNECT,
        request_timeout=REQUEST,
        retry_strategy=retry,
        **options,
    )


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
    given = {name: value for name, _, value in (one.partition("=") for one in text.split(";"))}
    if given.get("UseDevelopmentStorage", "").lower() == "true":
        raise ConfigError(
            "AZURE_STORAGE_CONNECTION_STRING says UseDevelopmentStorage, which is not known here; "
            "name the emulator's AccountName, AccountKey and BlobEndpoint."
        )
    try:
        place = urlsplit(given.get("BlobEndpoint", ""))
    except ValueError:
        raise ConfigError(
            "the BlobEndpoint of AZURE_STORAGE_CONNECTION_STRING is no address; give one such as "
            "https://account.blob.core.windows.net."
        ) from None
    # With a signature for a key, only the place may say whose it is.
    found = re.match(r"(\w+)\.blob\.", place.netloc)
    owner = given.get("AccountName") or (found[1] if found else "")
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
    key = key or given.get("AccountKey")
    scheme = place.scheme or given.get("DefaultEndpointsProtocol", "https")
    suffix = given.get("EndpointSuffix", "core.windows.net")
    # Another host than Azure's own has the account in front, or as the first part of its paths.
    host = place.netloc or f"{account}.blob.{suffix}"
    host = host.removeprefix(account) if host.startswith(f"{account}.") else host
    return fs.AzureFileSystem(
        account,
        account_key=key,
        sas_token=None if key else given.get("SharedAccessSignature"),
        blob_storage_authority=host,
        blob_storage_scheme=scheme,
        dfs_storage_authority=host.replace(".blob.", ".dfs.", 1),
        dfs_storage_scheme=scheme,
    )


@contextmanager
def _told(address: str) -> Iterator[None]:
    """Turn what a store, or the way to it, says into one line."""
    import pyarrow as pa

    try:
        yield
    except FileNotFoundError:
        raise  # it is known by who asked what it is
    except (OSError, pa.ArrowException) as error:
        raise InputError(reason(str(error), address), address) from None


def reason(text: str, address: str = "s3://") -> str:
    """Say in one line what went wrong, by what a library says of it."""
    if region := re.search(r"located in '([\w-]+)'", text):
        return f"the bucket lies in another region; set AWS_REGION={region[1]}."
    text = re.sub(r"'[^']*'", "it", text)  # names may hold any word
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
        return f"the store cannot be reached; see to the network, and to {_PLACES[store]}."
    told = re.sub(r"\s*\(Request ID: [^)]*\)", "", text.strip().partition("\n")[0])
    return f"the store refuses: {one_line(told.rstrip('.'), 160)}."
