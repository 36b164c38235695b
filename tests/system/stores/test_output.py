"""Output in an object store is complete or marked unfinished; only --force replaces a run."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from kpca_apps.errors import InputError
from kpca_apps.system.stores import buckets
from kpca_apps.system.stores.output import output_folder
from tests.stores import BUCKET, held, moto_store, s3_environment

pytestmark = pytest.mark.release


def run(address: str, *names: str, force: bool = False) -> None:
    folder = output_folder(address, force=force)
    folder.check()
    with folder as building:
        for name in names:
            path = building / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(name)


def test_an_upload_that_was_killed_looks_unfinished_and_is_replaced(
    store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    class KilledError(BaseException):
        pass

    upload, n_uploaded = buckets.Place.upload, 0

    def dies(place: buckets.Place, path: Path) -> None:
        nonlocal n_uploaded
        n_uploaded += 1
        if n_uploaded == 2:
            raise KilledError
        upload(place, path)

    address = f"s3://{BUCKET}/killed"
    with monkeypatch.context() as patched, pytest.raises(KilledError):
        patched.setattr(buckets.Place, "upload", dies)
        run(address, "a.csv", "b.csv")
    assert held(store, "killed").keys() == {"a.csv", "run.json.partial"}
    run(address, "b.csv")
    assert held(store, "killed").keys() == {"b.csv", "run.json"}


def test_a_store_that_disappears_gives_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    # Restore the environment last: it holds the address of the stopped server.
    with patch.dict(os.environ), ExitStack() as running:
        running.enter_context(moto_store())
        upload, n_uploaded = buckets.Place.upload, 0

        def upload_until_stopped(place: buckets.Place, path: Path) -> None:
            nonlocal n_uploaded
            n_uploaded += 1
            if n_uploaded == 2:
                running.close()
            upload(place, path)

        monkeypatch.setattr(buckets.Place, "upload", upload_until_stopped)
        with s3_environment(os.environ["AWS_ENDPOINT_URL"]):
            with pytest.raises(InputError, match=r"lost.*cannot be reached") as error:
                run(f"s3://{BUCKET}/lost", "a.csv", "b.csv")
        assert "\n" not in str(error.value)


def test_nothing_is_uploaded_of_a_run_that_failed(store: Any) -> None:
    folder = output_folder(f"s3://{BUCKET}/failed")
    with pytest.raises(KeyboardInterrupt), folder as building:
        Path(building, "report.html").touch()
        raise KeyboardInterrupt
    assert not held(store, "failed")


def test_an_unwritable_store_is_reported_before_any_work(store: Any) -> None:
    with pytest.raises(InputError, match=r"there is no such bucket \(404\)"):
        output_folder("s3://no-such-bucket/out").check()
    with s3_environment("http://127.0.0.1:9"), pytest.raises(InputError, match="cannot be reach"):
        output_folder(f"s3://{BUCKET}/out").check()
