"""Object stores for tests: emulators of S3, Google and Azure, and a faulty server for all three."""

import importlib.util
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from unittest.mock import patch

import pytest

from kpca_apps.system.stores.buckets import place_of

BUCKET = "kpca-tests"
# The fixed development account of Microsoft's storage emulator.
ACCOUNT = "devstoreaccount1"
ACCOUNT_KEY = (
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)
SECRET = "wJalrXUtnFEMIbPxRfiCYEXAMPLEKEY"


@contextmanager
def s3_environment(url: str) -> Iterator[None]:
    """Set S3's address and credentials in the environment, as a user would."""
    settings = {
        "AWS_ENDPOINT_URL": url, "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE",
        "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }  # fmt: skip
    with patch.dict(os.environ, settings):
        yield


@contextmanager
def moto_store(bucket: str = BUCKET) -> Iterator[Any]:
    """Run moto's server with one empty bucket; yield its boto3 client."""
    if importlib.util.find_spec("moto") is None:
        pytest.skip("needs moto's server of S3")
    import boto3

    with started([sys.executable, "-m", "moto.server"], "-H", "-p") as port:
        url = f"http://127.0.0.1:{port}"
        with s3_environment(url):
            client = boto3.client("s3", endpoint_url=url)
            client.create_bucket(Bucket=bucket)
            yield client


@contextmanager
def s3_store() -> Iterator[str]:
    """Run moto's server with one empty bucket; yield the bucket's address."""
    with moto_store():
        yield f"s3://{BUCKET}"


def held(store: Any, prefix: str = "out") -> dict[str, bytes]:
    """Return the objects below a folder of the bucket, without empty folder markers."""
    objects = store.list_objects_v2(Bucket=BUCKET, Prefix=f"{prefix}/").get("Contents", [])
    keys = [item["Key"] for item in objects if not item["Key"].endswith("/")]
    return {
        key.removeprefix(f"{prefix}/"): store.get_object(Bucket=BUCKET, Key=key)["Body"].read()
        for key in keys
    }


@contextmanager
def google_store(bucket: str = BUCKET) -> Iterator[str]:
    """Run a Google Cloud Storage emulator with one empty bucket; yield its address."""
    if importlib.util.find_spec("gcp_storage_emulator") is None:
        pytest.skip("needs gcp-storage-emulator")
    words = ["-m", "gcp_storage_emulator", "start", "--in-memory", "--default-bucket", bucket]
    with started([sys.executable, *words], "--host", "--port") as port:
        with patch.dict(os.environ, {"STORAGE_EMULATOR_HOST": f"http://127.0.0.1:{port}"}):
            yield f"gs://{bucket}"


@contextmanager
def azure_store(container: str = BUCKET) -> Iterator[str]:
    """Run Azurite, if installed, with one empty container; yield its address."""
    program = shutil.which("azurite-blob")
    if program is None:
        pytest.skip("needs Azurite (npm install azurite)")
    with tempfile.TemporaryDirectory() as folder:
        words = [program, "--location", folder, "--skipApiVersionCheck", "--silent"]
        with started(words, "--blobHost", "--blobPort") as port:
            with azure_environment(f"http://127.0.0.1:{port}"):
                place_of(f"az://{container}").system.create_dir(container)
                yield f"az://{container}"


@contextmanager
def azure_environment(url: str, key: str = ACCOUNT_KEY) -> Iterator[None]:
    """Set Azure's address and credentials in the environment, as a user would."""
    parts = {"AccountName": ACCOUNT, "AccountKey": key, "BlobEndpoint": f"{url}/{ACCOUNT}"}
    text = ";".join(f"{name}={value}" for name, value in parts.items())
    with patch.dict(os.environ, {"AZURE_STORAGE_CONNECTION_STRING": text}):
        yield


@contextmanager
def started(words: list[str], host: str, port: str) -> Iterator[int]:
    """Run a server in a subprocess for the length of the context; yield its port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        number = free.getsockname()[1]
    options = [host, "127.0.0.1", port, str(number)]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen([*words, *options], **quiet)
    try:
        for _ in range(600):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", number)) == 0:
                    break
            time.sleep(0.1)
        yield number
    finally:
        process.kill()
        process.wait()


_OBJECT = (
    b'{"name": "rows.csv", "bucket": "bucket", "size": "8000", "generation": "1", "metageneration":'
    b' "1", "updated": "2015-10-21T07:28:00Z", "timeCreated": "2015-10-21T07:28:00Z"}'
)
_LIST = (
    b'<?xml version="1.0" encoding="utf-8"?><EnumerationResults><Blobs><Blob><Name>rows.csv</Name>'
    b"<Properties><Last-Modified>Wed, 21 Oct 2015 07:28:00 GMT</Last-Modified><Etag>x</Etag>"
    b"<Content-Length>8000</Content-Length><BlobType>BlockBlob</BlobType></Properties></Blob>"
    b"</Blobs><NextMarker /></EnumerationResults>"
)


# S3's response to listing a bucket with more objects than one page holds.
_PAGE = (
    b'<?xml version="1.0" encoding="utf-8"?><ListBucketResult><IsTruncated>true</IsTruncated>'
    b"<NextContinuationToken>more</NextContinuationToken><Contents><Key>in/rows.csv</Key>"
    b"<LastModified>2015-10-21T07:28:00.000Z</LastModified><Size>8000</Size></Contents>"
    b"</ListBucketResult>"
)


class _Misbehaving(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    fault = ""

    def log_message(self, *words: Any) -> None:
        pass

    def do_HEAD(self) -> None:
        region = {"x-amz-bucket-region": "eu-west-1"}
        failing = {"region": (301, region), "down": (503, {}), "denied": (403, {})}
        status, more = failing.get(self.fault, (200, {}))
        self.send_response(status)
        self._end({"Content-Length": "8000" if status == 200 else "0", **more})

    def do_GET(self) -> None:
        if self.fault == "slow":
            time.sleep(3)
        if self.fault == "endless" and "list-type=2" in self.path:
            self.send_response(200)
            self._end({"Content-Length": str(len(_PAGE)), "Content-Type": "application/xml"})
            self.wfile.write(_PAGE)
            return
        if self.fault in ("down", "denied"):
            self.do_HEAD()
            return
        if self.path.startswith("/storage/v1/") and "alt=media" not in self.path:
            # Google's response for the metadata of an object.
            self.send_response(200)
            self._end({"Content-Length": str(len(_OBJECT)), "Content-Type": "application/json"})
            self.wfile.write(_OBJECT)
            return
        if "comp=list" in self.path:
            # Azure's response for the list of blobs in a container.
            self.send_response(200)
            self._end({"Content-Length": str(len(_LIST)), "Content-Type": "application/xml"})
            self.wfile.write(_LIST)
            return
        self.send_response(206)
        self._end({"Content-Length": "8000", "Content-Range": "bytes 0-7999/8000"})
        self.wfile.write(b"a,b\n" * 1000)
        self.close_connection = True

    def _end(self, headers: dict[str, str]) -> None:
        date = "Wed, 21 Oct 2015 07:28:00 GMT"
        # The Azure library crashes without these headers.
        azure = {"x-ms-creation-time": date, "x-ms-blob-type": "BlockBlob"}
        azure |= {"x-ms-server-encrypted": "true", "x-ms-lease-state": "available"}
        for name, value in {"Last-Modified": date, "ETag": '"x"', **azure, **headers}.items():
            self.send_header(name, value)
        self.end_headers()


@contextmanager
def misbehaving_store(fault: str) -> Iterator[None]:
    """Run a server whose one object of 8,000 bytes arrives only half, or too late."""
    handler = type("Handler", (_Misbehaving,), {"fault": fault})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        url = f"http://127.0.0.1:{server.server_address[1]}"
        google = patch.dict(os.environ, {"STORAGE_EMULATOR_HOST": url})
        with s3_environment(url), azure_environment(url), google:
            yield
    finally:
        server.shutdown()
        server.server_close()
