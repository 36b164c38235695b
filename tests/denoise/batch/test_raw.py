from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from skimage.data import astronaut

from kpca_apps import denoise_kpca
from kpca_apps.denoise.batch.denoisers import GroupDenoiser
from kpca_apps.denoise.batch.examine.measuring import measure_file
from kpca_apps.denoise.batch.inputs import plan_outputs
from kpca_apps.denoise.batch.run import run_batch
from kpca_apps.denoise.batch.trial import try_strengths
from kpca_apps.denoise.options import Options
from kpca_apps.denoise.result import DenoisingResult
from kpca_apps.images.files import read_image
from tests.images.dng import NEUTRAL, XTRANS, exposed, mosaic_of, write_dng

pytest.importorskip("rawpy", reason='rawpy is not installed: pip install "kpca-apps[raw]"')

A, B = 1 / 200, 1e-4
FAST = GroupDenoiser(Options(quality="fast"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A noisy raw file, its rotated, truncated and clean versions, and a PNG."""
    made = tmp_path_factory.mktemp("raw")
    (made / "in").mkdir()
    (made / "clean").mkdir()
    mosaic = mosaic_of((astronaut()[:144, 140:300] / 255.0) ** 2.2 * NEUTRAL)

    def counts(light: NDArray[np.float64]) -> NDArray[np.uint16]:
        return np.clip(np.rint(256 + 3839 * light), 0, 4095).astype(np.uint16)

    noisy = counts(exposed(mosaic, A, B))
    write_dng(made / "in" / "a.dng", noisy, noise=(A, B))
    write_dng(made / "in" / "turned.dng", noisy, orientation=6)
    write_dng(made / "clean" / "a.dng", counts(mosaic))
    (made / "in" / "cut.dng").write_bytes((made / "in" / "a.dng").read_bytes()[:9000])
    Image.fromarray(astronaut()[:32, :32]).save(made / "in" / "b.png")
    return made


def batch(
    folder: Path, out: Path, denoiser: GroupDenoiser = FAST, **options: object
) -> DenoisingResult:
    return run_batch([folder / "in"], out, denoiser.settings, denoise=denoiser, **options)  # type: ignore[arg-type]


def test_raw_files_become_denoised_pictures(folder: Path, tmp_path: Path) -> None:
    result = batch(folder, tmp_path / "out", reference=folder / "clean")
    a, b, cut, turned = result.images
    assert [image.status for image in result.images] == ["ok", "ok", "failed", "ok"]
    assert (a.output, b.output, turned.output) == ("a.tif", "b.png", "turned.tif")
    assert cut.reason.startswith("cut.dng: its pixels are damaged or cut short")
    assert (a.format, a.dtype, a.shape, a.noise) == ("tiff", "uint16", (144, 160, 3), "raw")
    assert turned.shape == (160, 144, 3) and turned.orientation == 1
    assert a.comparison is not None and a.comparison.denoised.psnr > a.comparison.noisy.psnr + 4
    # The file's noise profile is used; without one, the noise is measured, with a similar result.
    assert (a.estimated, turned.estimated) == (False, True)
    assert a.sigma is not None and a.data_range == pytest.approx(65535)
    assert turned.sigma == pytest.approx(a.sigma, rel=0.1)
    upright = read_image(tmp_path / "out" / "turned.tif").page(0).astype(float)
    plain = np.rot90(read_image(tmp_path / "out" / "a.tif").page(0).astype(float), -1)
    assert np.mean(np.abs(upright - plain)) < 0.02 * 65535
    assert batch(folder, tmp_path / "out", reference=folder / "clean").n_resumed == 3


def test_a_frame_without_light_to_measure_is_left_as_it_is(tmp_path: Path) -> None:
    black = np.full((96, 96), 256, np.uint16)
    black[::7, ::7] = 300
    path = write_dng(tmp_path / "black.dng", black)
    outcome = run_batch([path], tmp_path / "out", FAST.settings, denoise=FAST).images[0]
    assert outcome.status == "ok" and not outcome.established
    assert outcome.evidence.why.startswith("is too small, or too much of it is black")
    kept = read_image(tmp_path / "out" / "black.tif").page(0)
    np.testing.assert_array_equal(kept, read_image(path).page(0))


def test_raw_files_become_denoised_raw_files(folder: Path, tmp_path: Path) -> None:
    files = [folder / "in" / "a.dng", folder / "in" / "b.png"]
    for kind in ("tiff", "dng"):
        result = run_batch(files, tmp_path / kind, FAST.settings, denoise=FAST, raw_out=kind)
        assert [image.reason for image in result.images] == ["", ""]
    a, b = result.images
    assert (a.output, a.format, b.output) == ("a.dng", "dng", "b.png")
    # Developing the written file gives the same picture as developing from memory.
    pictures = [read_image(tmp_path / name).page(0) for name in ("tiff/a.tif", "dng/a.dng")]
    np.testing.assert_array_equal(*pictures)
    again = run_batch(files, tmp_path / "dng", FAST.settings, denoise=FAST, raw_out="dng")
    assert again.n_resumed == 2
    planned, _ = plan_outputs([folder / "in"], folder / "out", raw_out="dng")
    assert [item.output for item in planned] == ["a.dng", "b.png", "cut.dng", "turned.dng"]


@pytest.mark.release
def test_strength_runs_from_the_file_as_it_is(folder: Path, tmp_path: Path) -> None:
    found = {}
    for strength in (0.0, 0.5, 1.0):
        denoiser = GroupDenoiser(Options(quality="fast", strength=strength))
        batch(folder, tmp_path / str(strength), denoiser)
        found[strength] = read_image(tmp_path / str(strength) / "a.tif").page(0).astype(float)
    given = read_image(folder / "in" / "a.dng").page(0)
    np.testing.assert_array_equal(found[0.0], given)
    changes = [np.mean(np.abs(found[strength] - given)) for strength in (0.5, 1.0)]
    assert 0.3 * changes[1] < changes[0] < 0.8 * changes[1]


@pytest.mark.release
def test_png_and_baselines_take_raw_files_too(folder: Path, tmp_path: Path) -> None:
    a = batch(
        folder, tmp_path, reference=folder / "clean", baselines=("wavelet",), format="png"
    ).images[0]
    assert a.output == "a.png" and read_image(tmp_path / "a.png").page(0).dtype == np.uint16
    assert a.comparison is not None
    baseline = a.comparison.baselines["wavelet"].psnr
    assert a.comparison.noisy.psnr + 1 < baseline < a.comparison.denoised.psnr


def test_a_level_a_kind_of_noise_and_a_range_are_refused(folder: Path, tmp_path: Path) -> None:
    for number, denoiser in enumerate(
        (
            replace(FAST, sigma=4.0),
            replace(FAST, data_range=255.0),
            replace(FAST, options=Options(quality="fast", noise="camera")),
        )
    ):
        a = batch(folder, tmp_path / str(number), denoiser).images[0]
        assert "cannot be used for a raw file" in a.reason
        assert a.status == "failed" and not a.bug


def test_options_for_pictures_only_are_rejected(folder: Path, tmp_path: Path) -> None:
    def denoise(pixels: NDArray[np.uint8], channel_axis: int | None) -> None:
        raise AssertionError

    a = run_batch([folder / "in" / "a.dng"], tmp_path, {}, denoise=denoise).images[0]  # type: ignore[arg-type]
    assert "develop it to a 16-bit TIFF first" in a.reason and not a.bug


def test_the_noise_of_a_raw_file_is_measured(folder: Path) -> None:
    known, found = (measure_file(folder / "in" / name, name)[0] for name in ("a.dng", "turned.dng"))
    assert not known.reason and not found.reason
    assert found.sigma == pytest.approx(known.sigma, rel=0.1)
    assert len(found.channel_sigma) == 3 and found.data_range == pytest.approx(65535)
    assert measure_file(folder / "in" / "cut.dng", "cut.dng")[0].reason.startswith("cut.dng: ")


@pytest.mark.release
def test_strengths_are_tried_on_the_mosaic(folder: Path) -> None:
    trial = try_strengths(read_image(folder / "in" / "turned.dng"), FAST)
    weaker, given, stronger = (t.residual_sd for t in trial.trials)
    assert 0 < weaker < given < stronger
    assert (trial.noise, trial.width, trial.height) == ("raw", 144, 160)


@pytest.mark.release
@pytest.mark.parametrize("pattern", ["RGGB", XTRANS], ids=["Bayer", "X-Trans"])
def test_denoising_before_development_is_better_than_after(tmp_path: Path, pattern: str) -> None:
    picture = np.tile(astronaut(), (2, 2, 1))[:514, :514]
    scene = mosaic_of((picture / 255.0) ** 2.2 * NEUTRAL, pattern)
    files = []
    for name, light in (("clean", scene), ("noisy", exposed(scene, A, B))):
        counts = np.clip(np.rint(256 + 3839 * light), 0, 4095).astype(np.uint16)
        files.append(read_image(write_dng(tmp_path / f"{name}.dng", counts, pattern=pattern)))
    clean, noisy = (image.page(0).astype(float) for image in files)
    assert files[1].mosaic is not None
    before = FAST.clean_mosaic(files[1].mosaic()).at(1.0)
    after = denoise_kpca(files[1].page(0), noise="camera", channel_axis=-1, quality="fast")
    errors = [np.sqrt(np.mean(np.square(image - clean))) for image in (noisy, after, before)]
    # `after` is at least 3.6 dB better than `noisy`. `before` is at least 5 dB better than `noisy`,
    # and at least .8 dB better than `after`.
    assert errors[1] < 0.66 * errors[0] and errors[2] < 0.563 * errors[0]
    assert errors[2] < 0.91 * errors[1]


def test_results_of_raw_files_are_named_as_pictures(folder: Path) -> None:
    planned, notes = plan_outputs([folder / "in"], folder / "out")
    assert [item.output for item in planned] == ["a.tif", "b.png", "cut.tif", "turned.tif"]
    assert not notes and not any(item.refused for item in planned)
