"""Addresses of object stores, and one-line errors of store libraries; no store is needed."""

from __future__ import annotations

import glob
import pickle
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyarrow.fs import FileInfo, FileType, LocalFileSystem

from kpca_apps.errors import ConfigError, InputError
from kpca_apps.system.stores import buckets
from kpca_apps.system.stores.addresses import StorePath, located
from kpca_apps.system.stores.buckets import Item, matching, place_of, reason
from kpca_apps.tables.opening import open_table
from tests.stores import SECRET


def test_an_address_is_a_text_and_a_path_is_of_this_machine() -> None:
    folder = located("S3://bucket/folder/")
    assert isinstance(folder, StorePath)
    below = folder / "a" / "b.png"
    assert str(below) == "s3://bucket/folder/a/b.png"
    assert (below.name, below.relative_to(folder).parts) == ("b.png", ("a", "b.png"))
    assert pickle.loads(pickle.dumps(below)) == below == located(str(below))
    for path in ("s3", "data/s3://x", "C:/x", "https://host/x", "file:///x", "s3:/x", "./s3://x"):
        assert located(path) == Path(path)
    assert isinstance(located(Path("s3://bucket/x")), Path)


@pytest.mark.parametrize("address", ["s3://bucket/../x", "s3://", "s3://bucket/a/./b"])
def test_names_that_lead_elsewhere_are_refused(address: str) -> None:
    with pytest.raises(InputError, match="is no address"):
        place_of(address)


@pytest.mark.parametrize(
    "address",
    [
        f"s3://AKIA:{SECRET}@bucket/rows.csv",
        f"az://box/rows.csv?sv=2024&sig={SECRET}",
        f"s3://bucket/rows.csv?X-Amz-Signature={SECRET}",
    ],
)
def test_credentials_in_an_address_are_refused_and_not_repeated(address: str) -> None:
    with pytest.raises(ConfigError) as caught:
        open_table(address)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("address", ["az://box/rows.csv", "abfss://box/rows.csv"])
def test_azure_needs_an_account(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT", raising=False)
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT_NAME", raising=False)
    with pytest.raises(ConfigError, match="names no storage account; set AZURE_STORAGE_ACCOUNT"):
        place_of(address)


# Connection string -> account, key, signature, host suffix and scheme.
CONNECTIONS = {
    "AccountName=ada;AccountKey=a2V5": ("ada", "a2V5", None, ".blob.core.windows.net", "https"),
    "DefaultEndpointsProtocol=http;AccountName=ada;AccountKey=a2V5;EndpointSuffix=core.local":
    ("ada", "a2V5", None, ".blob.core.local", "http"),
    "AccountName=blob;AccountKey=a2V5;BlobEndpoint=http://blobstore.local:1/blob":
    ("blob", "a2V5", None, "blobstore.local:1", "http"),
    "BlobEndpoint=https://ada.blob.core.windows.net/;SharedAccessSignature=sv=1&sig=x%3D":
    ("ada", None, "sv=1&sig=x%3D", ".blob.core.windows.net", "https"),
}  # fmt: skip


@pytest.mark.parametrize("text", CONNECTIONS)
def test_an_azure_connection_string_gives_host_and_account(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    options: dict[str, str | None] = {}
    monkeypatch.setattr(
        "pyarrow.fs.AzureFileSystem", lambda name, **more: options.update(more, name=name)
    )
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", text)
    place_of("az://box/rows.csv")
    names = ("name", "account_key", "sas_token", "blob_storage_authority", "blob_storage_scheme")
    assert tuple(map(options.get, names)) == CONNECTIONS[text]
    assert options["dfs_storage_authority"] == CONNECTIONS[text][3].replace(".blob.", ".dfs.")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("UseDevelopmentStorage=true", "UseDevelopmentStorage, which is not known here"),
        ("AccountName=ada;BlobEndpoint=http://[::1", "BlobEndpoint of .* is no address"),
    ],
)
def test_a_connection_string_that_cannot_be_used_is_refused(
    text: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", text)
    with pytest.raises(ConfigError, match=message):
        place_of("az://box/rows.csv")


# Error messages of pyarrow 26 and deltalake 1.6 when a store refuses.
MESSAGES = {
    "AWS Error NO_SUCH_BUCKET during ListObjectsV2 operation: The specified bucket does not exist "
    "(Request ID: 9q5N)": "there is no such bucket (404).",
    "When getting information for key '403.csv' in bucket 'denied-SIGNATURE': AWS Error "
    "NETWORK_CONNECTION during HeadObject operation: curlCode: 6, Could not resolve hostname":
    "the store cannot be reached",
    "AWS Error ACCESS_DENIED during HeadObject operation: No response body.": "access is denied",
    "AWS Error UNKNOWN (HTTP status 301) during HeadObject operation: No response body. Looks like "
    "the configured region is '' while the bucket is located in 'eu-west-1'.":
    "the bucket lies in another region; set AWS_REGION=eu-west-1.",
    "google::cloud::Status(UNAVAILABLE: Retry policy exhausted, with a last message of Could not "
    "create a OAuth2 access token to authenticate the request.": "access is denied",
    "google::cloud::Status(UNAVAILABLE: Retry policy exhausted, with a last message of "
    "PerformWork() - CURL error [7]=Could not connect to server": "the store cannot be reached",
    "Kernel error -> Generic S3 error Error performing GET http://127.0.0.1:9/b/x/_delta_log/ in "
    "2.2s, after 10 retries - HTTP error error sending request client error (Connect) tcp connect "
    "error Connection refused (os error 111)": "the store cannot be reached",
    "AWS Error INTERNAL_FAILURE during PutObject operation: We lost it. (Request ID: 9q5N)":
    "the store refuses: AWS Error INTERNAL_FAILURE during PutObject operation: We lost it.",
}  # fmt: skip


@pytest.mark.parametrize("error", MESSAGES)
def test_library_errors_become_one_line_with_a_remedy(error: str) -> None:
    assert reason(error).startswith(MESSAGES[error])


def test_credentials_are_named_as_those_of_the_store() -> None:
    denied = "Azure Error: [AuthorizationFailure]"
    assert "AZURE_STORAGE_ACCOUNT" in reason(denied, "abfss://box@ada.dfs.core.windows.net/x")
    assert "gcloud" in reason("PERMISSION_DENIED", "gs://bucket/x")


def test_a_probe_that_another_run_removed_is_no_refusal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = buckets.Place("s3://box", str(tmp_path), LocalFileSystem())
    write = buckets.Place.write

    def write_and_lose(probe: buckets.Place, chunks: Iterable[bytes]) -> None:
        write(probe, chunks)
        Path(probe.path).unlink()

    monkeypatch.setattr(buckets.Place, "write", write_and_lose)
    place.require_writable()
    assert not list(tmp_path.iterdir())


def test_an_address_without_a_bucket_is_reported_as_typed() -> None:
    with pytest.raises(InputError, match=r"^s3:///data\.csv: names no bucket"):
        place_of("s3:///data.csv")


NAMES = ["a.png", "s.png", "sub/b.png", "sub/s/c.png", "sub/s/x/d.txt", "x/sub/e.png", ".h/f.png"]


def test_patterns_name_what_they_name_on_disk(tmp_path: Path) -> None:
    for name in NAMES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    for n_parts in (1, 2, 3):
        for parts in product(["**", "*", "s*", "sub", "*.png"], repeat=n_parts):
            pattern = "/".join(parts)
            place = buckets.Place(f"s3:/{tmp_path}/{pattern}", f"{tmp_path}/{pattern}", LOCAL)
            # For images, a pattern selects everything below a matching folder.
            fitting = map(Path, glob.glob(f"{tmp_path}/{pattern}", recursive=True))  # noqa: PTH207
            below = [[path, *path.rglob("*")] for path in fitting]
            shown = {entry for found in below for entry in found if entry.is_file()}
            if pattern != "sub":
                assert named(place, folders=True) == shown - {tmp_path / ".h/f.png"}, pattern
            # For tables, a pattern selects files. Before Python 3.13, a pathlib pattern that ends
            # in "**" matches only folders.
            if "*" in pattern and parts[-1] != "**":
                files = {path for path in tmp_path.glob(pattern) if path.is_file()}
                assert named(place) == files - {tmp_path / ".h/f.png"}, pattern


LOCAL = LocalFileSystem()


def named(place: buckets.Place, *, folders: bool = False) -> set[Path]:
    start, found = matching(place, (".",), folders=folders)
    assert start.address == f"s3:/{start.path}"
    return {Path(start.path, entry.name) for entry in found}


def test_an_undecodable_name_is_reported_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    named = FileInfo(b"box/in/caf\xe9.png", FileType.File)  # type: ignore[arg-type]
    system = SimpleNamespace(type_name="s3", get_file_info=lambda _: [named])
    with pytest.raises(InputError, match="whose name is not UTF-8") as caught:
        buckets.Place("s3://box/in", "box/in", system).items()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["./z.png", "x/./z.png", "x/../z.png", "x//z.png"])
def test_names_that_no_local_path_can_have_are_rejected(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(buckets.Place, "items", lambda *_, **__: [Item(name, False, 0.0)])
    with pytest.raises(InputError, match="that no folder here can have"):
        buckets.Place("s3://box", "box", LOCAL).copyable((), recursive=True)
