"""A batch denoises the pages of a file as one stack, as Python denoises the array."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import tifffile
from skimage.data import camera
from typer.testing import CliRunner

from kpca_apps.cli.main import app
from kpca_apps.denoise.batch.denoisers import GroupDenoiser
from kpca_apps.denoise.denoiser import clean_image, denoise_kpca
from kpca_apps.denoise.options import Options

# It takes long to compile the denoising loops for stacks.
pytestmark = pytest.mark.release

RUNNER = CliRunner()


def pages(count: int = 6) -> np.ndarray:
    clean = 120 + 60 * np.sin(np.arange(48)[:, None] / 5 + np.arange(40) / 4)
    noise = 15 * np.random.default_rng(0).standard_normal((count, 48, 40))
    return np.clip(np.round(clean + noise), 0, 255).astype(np.uint8)


def run(folder: Path, *options: str) -> tuple[int, str]:
    words = ["denoise", "run", str(folder / "a.tif"), "--out", str(folder / "out"), *options]
    result = RUNNER.invoke(app, words, standalone_mode=False)
    return result.return_value, result.output


def test_channels_of_a_volume_are_stacks_of_their_own_and_keep_their_places(tmp_path: Path) -> None:
    volume = np.stack([pages(), pages()[:, ::-1]], axis=1)
    tifffile.imwrite(tmp_path / "a.tif", volume, imagej=True, metadata={"axes": "ZCYX"})
    code, output = run(tmp_path, "--stack", "--sigma", "15")
    assert code == 0, output
    with tifffile.TiffFile(tmp_path / "out/images/a.tif") as file:
        assert file.series[0].axes == "ZCYX"
        found = file.asarray()
    for channel in (0, 1):
        alone = denoise_kpca(volume[:, channel], sigma=15, stack_axis=0)
        np.testing.assert_array_equal(found[:, channel], np.round(alone))


def test_a_stack_of_counted_light_is_denoised_by_its_law() -> None:
    rng = np.random.default_rng(0)
    light = camera()[100:260, 180:340] * 0.5
    clean = 2.0 * light + 100
    stack = np.stack([2.0 * rng.poisson(light) + 100 for _ in range(6)]).astype(np.uint16)
    denoiser = GroupDenoiser(Options(quality="fast"), stack=True)
    found = [page for page, _ in denoiser.stacked(lambda number: (stack[number], None), range(6))]
    whole = clean_image(stack, Options(quality="fast"), stack_axis=0)
    assert whole.info.noise == "poisson"
    errors = [float(np.std(page - clean)) for page in (*found, *whole.at(1.0))]
    assert max(errors[:6]) < 1.1 * max(errors[6:]) and max(errors) < 0.5 * np.std(stack[0] - clean)


def test_pages_of_a_volume_are_stacked_only_on_request_with_a_note(tmp_path: Path) -> None:
    tifffile.imwrite(tmp_path / "a.tif", pages(3), imagej=True, metadata={"axes": "ZYX"})
    code, output = run(tmp_path, "--sigma", "15", "--quality", "fast")
    assert code == 0, output
    report = (tmp_path / "out/report/report.html").read_text()
    assert "its pages are a volume or film: --stack denoises them together" in report
    page = denoise_kpca(pages(3)[1], sigma=15, quality="fast")
    np.testing.assert_array_equal(tifffile.imread(tmp_path / "out/images/a.tif")[1], np.round(page))


def test_the_level_of_each_channel_and_of_light_is_that_of_the_array(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    clean = np.broadcast_to((120 + 40 * np.sin(np.arange(48) / 6))[:, None, None], (48, 48, 3))
    film = np.clip(np.round(clean + rng.normal(size=(5, 48, 48, 3)) * [25, 5, 5]), 0, 255)
    light = np.minimum(rng.poisson(clean[..., 0] / 8, (5, 48, 48)) * 8, 255)
    for noisy, options in ((film, {"noise": "gaussian"}), (light, {"noise": "poisson"})):
        noisy = noisy.astype(np.uint8)
        photometric = "rgb" if noisy.ndim == 4 else "minisblack"
        tifffile.imwrite(tmp_path / "a.tif", noisy, photometric=photometric, metadata=None)
        code, output = run(tmp_path, "--stack", "--force", "--noise", options["noise"])
        assert code == 0, output
        axis = -1 if noisy.ndim == 4 else None
        alone = denoise_kpca(noisy, stack_axis=0, channel_axis=axis, **options)
        found = tifffile.imread(tmp_path / "out/images/a.tif")
        np.testing.assert_array_equal(found, np.round(alone))
        truth = clean if noisy.ndim == 4 else clean[..., 0]
        assert np.std(found - truth) < 0.3 * np.std(noisy - truth)


def test_black_pages_do_not_hide_the_noise(tmp_path: Path) -> None:
    film = pages(16)
    film[::2] = 0
    tifffile.imwrite(tmp_path / "a.tif", film, photometric="minisblack", metadata=None)
    code, output = run(tmp_path, "--stack")
    assert code == 0, output
    found = tifffile.imread(tmp_path / "out/images/a.tif")
    assert np.std(np.diff(found[1::2].astype(float), axis=0)) < 10  # the input has 21


def of_several_sizes(path: Path) -> None:
    with tifffile.TiffWriter(path) as file:
        file.write(pages(1)[0])
        file.write(pages(1)[0, :30])


def described_otherwise(path: Path) -> None:
    described = "ImageJ=1.5\nimages=4\nchannels=2\nslices=2\n"
    tifffile.imwrite(path, pages(3), photometric="minisblack", metadata=None, description=described)


def with_a_hole(path: Path) -> None:
    film = pages(20).astype(np.float32)
    film[12, 3, 4] = np.inf
    tifffile.imwrite(path, film, photometric="minisblack", metadata=None)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (of_several_sizes, "page 2 has another size or type than page 1"),
        (described_otherwise, "do not match its 3 pages"),
        (with_a_hole, "page 13 holds inf at row 3, column 4"),
    ],
)
def test_other_files_fail_as_stacks_in_one_line(
    make: Callable[[Path], None], words: str, tmp_path: Path
) -> None:
    make(tmp_path / "a.tif")
    code, output = run(tmp_path, "--stack", "--sigma", "15")
    assert code != 0
    assert words in " ".join(output.split())


def test_memory_is_checked_before_a_stack_is_denoised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kpca_apps.denoise.batch.denoisers.available_bytes", lambda: 10**5)
    tifffile.imwrite(tmp_path / "a.tif", pages(3), photometric="minisblack", metadata=None)
    code, output = run(tmp_path, "--stack", "--sigma", "15", "--jobs", "1")
    assert code != 0
    assert "GB of memory" in output
