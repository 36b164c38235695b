"""A file's pages denoised as one stack by a batch, against the same array from Python."""

from pathlib import Path

import numpy as np
import pytest
import tifffile
from typer.testing import CliRunner

from kpca_apps.cli.main import app
from kpca_apps.denoise.denoiser import denoise_kpca
from kpca_apps.errors import ConfigError

RUNNER = CliRunner()


def pages(count: int = 6) -> np.ndarray:
    clean = 120 + 60 * np.sin(np.arange(48)[:, None] / 5 + np.arange(40) / 4)
    noise = 15 * np.random.default_rng(0).standard_normal((count, 48, 40))
    return np.clip(np.round(clean + noise), 0, 255).astype(np.uint8)


def run(folder: Path, *options: str) -> tuple[int, str]:
    result = RUNNER.invoke(
        app, ["denoise", "run", str(folder / "a.tif"), "--out", str(folder / "out"), *options]
    )
    return result.exit_code, result.output


def test_channels_of_a_volume_are_stacks_of_their_own_and_keep_their_places(
    tmp_path: Path,
) -> None:
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


def test_pages_of_a_volume_are_not_taken_together_unasked_but_it_is_said(tmp_path: Path) -> None:
    tifffile.imwrite(tmp_path / "a.tif", pages(3), imagej=True, metadata={"axes": "ZYX"})
    code, output = run(tmp_path, "--sigma", "15", "--quality", "fast")
    assert code == 0, output
    report = (tmp_path / "out/report/report.html").read_text()
    assert "a volume or film, by its metadata: --stack denoises them together" in report
    one = denoise_kpca(pages(3)[1], sigma=15, quality="fast")
    np.testing.assert_array_equal(tifffile.imread(tmp_path / "out/images/a.tif")[1], np.round(one))


@pytest.mark.parametrize("kind", ["impulse", "camera"])
def test_what_stacks_cannot_be_denoised_for_is_said(tmp_path: Path, kind: str) -> None:
    tifffile.imwrite(tmp_path / "a.tif", pages(2), photometric="minisblack")
    options = ["--stack", "--noise", kind, "--out", str(tmp_path / "out")]
    result = RUNNER.invoke(app, ["denoise", "run", str(tmp_path / "a.tif"), *options])
    assert isinstance(result.exception, ConfigError)
    assert "means nothing with --stack" in str(result.exception)


def test_pages_of_several_sizes_are_no_stack(tmp_path: Path) -> None:
    with tifffile.TiffWriter(tmp_path / "a.tif") as file:
        file.write(pages(1)[0])
        file.write(pages(1)[0, :30])
    code, output = run(tmp_path, "--stack", "--sigma", "15")
    assert code != 0
    assert "page 2 is of another size or type than page 1" in " ".join(output.split())
