"""Workers without access to the batch's folders produce the same bytes as this machine."""

import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from kpca_apps.denoise.batch.denoisers import GroupDenoiser
from kpca_apps.denoise.batch.run import run_batch
from kpca_apps.denoise.options import Options
from kpca_apps.denoise.result import ImageOutcome
from kpca_apps.system.workers import Workers
from tests.denoise.toy import contents, picture, save
from tests.system.cluster import Cluster, apart

pytestmark = [
    pytest.mark.release,
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning"),
]
DENOISER = GroupDenoiser(Options(quality="draft", n_jobs=1), sigma=20.0)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a folder that workers do not see, with noisy, clean and unreadable images."""
    place = tmp_path_factory.mktemp("cluster")
    images = place / "driver" / "in"
    for number in range(5):
        save(images, f"sub/{number}.png", picture(number, (32, 40)))
    save(images, "photo.jpg", picture(9, (32, 40, 3)), quality=95)
    save(place / "driver" / "clean", "sub/0.png", picture(7, (32, 40)))
    (images / "cut.png").write_bytes((images / "sub" / "0.png").read_bytes()[:300])
    (images / "sub" / "sound.tif").write_bytes(b"II*\0nothing of use")
    return place


@pytest.fixture(autouse=True)
def hidden_temporary_files(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(place / "driver"))


@pytest.fixture(scope="module")
def cluster(place: Path) -> Iterator[Cluster]:
    with apart(place, place / "driver", n_workers=2) as cluster:
        yield cluster


def test_images_on_workers_are_the_same_bytes_and_a_batch_goes_on(
    cluster: Cluster, place: Path
) -> None:
    driver = place / "driver"
    run = partial(
        run_batch,
        [driver / "in"],
        settings=DENOISER.settings,
        denoise=DENOISER,
        reference=driver / "clean",
    )
    here = run(driver / "here")
    killed: list[str] = []

    def kill_first(n_done: int, n_all: int, outcome: ImageOutcome) -> None:
        if not killed:
            killed.append(outcome.name)
            cluster.kill()

    with Workers("dask", scheduler=cluster.address) as workers:
        there = run(driver / "there", workers=workers, progress=kill_first)
        assert there == here
        assert contents(driver / "there") == contents(driver / "here")
        assert [image.status for image in there.images].count("failed") == 2
        # Only the missing result is computed again.
        (driver / "there" / "sub" / "1.png").unlink()
        again = run(driver / "there", workers=workers)
    assert again.n_resumed == 5
    assert contents(driver / "there") == contents(driver / "here")
    assert [image.previews for image in again.images] == [image.previews for image in here.images]
    assert not list(driver.rglob("*.partial"))
