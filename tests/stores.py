"""Object stores for tests: moto's server, which is S3's interface, and one that misbehaves."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from unittest.mock import patch

import pytest

BUCKET = "kpca-tests"
SECRET = "wJalrXUtnFEMIbPxRfiCYEXAMPLEKEY"


@contextmanager
def s3_environment(url: str) -> Iterator[None]:
    """Set where S3 is and who asks, as a user would."""
    settings = {
        "AWS_ENDPOINT_URL": url, "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE",
        "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }  # fmt: skip
    with patch.dict(os.environ, settings):
        yield


@contextmanager
def moto_store(bucket: str = BUCKET) -> Iterator[Any]:
    """Run moto's server with one empty bucket; what is given is boto3's client of it."""
    server_of = pytest.importorskip("moto.server", reason="needs moto's server of S3")
    import boto3

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = server_of.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    _, port = server.get_host_and_port()
    url = f"http://127.0.0.1:{port}"
    try:
        with s3_environment(url):
            client = boto3.client("s3", endpoint_url=url)
            client.create_bucket(Bucket=bucket)
            yield client
    finally:
        server.stop()


class _Misbehaving(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    fault = ""

    def log_message(self, *words: Any) -> None:
        pass

    def do_HEAD(self) -> None:
        region = {"x-amz-bucket-region": "eu-west-1"}
        status, more = {"region": (301, region), "down": (503, {})}.get(self.fault, (200, {}))
        self.send_response(status)
        self._end({"Content-Length": "8000" if status == 200 else "0", **more})

    def do_GET(self) -> None:
        if self.fault == "slow":
            time.sleep(3)
        self.send_response(206)
        self._end({"Content-Length": "8000", "Content-Range": "bytes 0-7999/8000"})
        self.wfile.write(b"a,b\n" * 1000)
        self.close_connection = True

    def _end(self, headers: dict[str, str]) -> None:
        dated = {"Last-Modified": "Wed, 21 Oct 2015 07:28:00 GMT", "ETag": '"x"', **headers}
        for name, value in dated.items():
            self.send_header(name, value)
        self.end_headers()


@contextmanager
def misbehaving_store(fault: str) -> Iterator[None]:
    """Run a server of one object of 8,000 bytes, which sends half of it, or nothing in time."""
    handler = type("Handler", (_Misbehaving,), {"fault": fault})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        with s3_environment(f"http://127.0.0.1:{server.server_address[1]}"):
            yield
    finally:
        server.shutdown()
        server.server_close()
