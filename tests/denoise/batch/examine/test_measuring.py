"""One noise estimate for all images of a kind in a batch."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from skimage import data

from kpca_apps.denoise.batch.denoisers import GroupDenoiser
from kpca_apps.denoise.batch.examine.measuring import (
    KnownNoise,
    measure_file,
    pooled,
    with_same_noise,
)
from kpca_apps.denoise.batch.inputs import plan_outputs
from kpca_apps.denoise.batch.pages import kind_of
from kpca_apps.denoise.batch.profile import KindNoise
from kpca_apps.denoise.batch.run import run_batch
from kpca_apps.denoise.denoiser import DenoiseInfo, measure_noise
from kpca_apps.denoise.estimate.law import typical_law
from kpca_apps.denoise.options import Options
from kpca_apps.denoise.result import NoiseLaw
from kpca_apps.images.files import read_image
from kpca_apps.names import one_line

SEEN = (1.0, 2.0, 3.0)
FAST = GroupDenoiser(Options(quality="fast"))


def law(gain: float, constant: float, blur: float = 0.0) -> NoiseLaw:
    return NoiseLaw(gain, constant, blur, (0.9, 1.1), True, False, -50.0, 0.0, SEEN, SEEN)


def info(noise: str, sigma: float, *laws: NoiseLaw, established: bool = True) -> DenoiseInfo:
    return DenoiseInfo(
        noise, sigma, (sigma,), True, False, 255.0, established=established, laws=laws
    )


def test_a_kind_gets_the_median_of_reliable_estimates() -> None:
    laws = [law(1.0, 5.0), law(2.0, 4.0), law(9.0, -3.0, 0.7)]
    found = [("a", info("poisson", 9.0, law)) for law in laws]
    found += [
        ("a", info("gaussian", 50.0)),
        ("a", info("poisson", 99.0, law(99.0, 99.0), established=False)),
        *(("b", info("gaussian", level)) for level in (3.0, 4.0, 8.0)),
        *(("c", info("camera", 4.0)) for _ in range(3)),
    ]
    a, b = pooled(KnownNoise(kind, one) for kind, one in found)
    (same,) = a.laws
    assert (a.images, same.gain, same.constant, same.blur) == ("a", 2.0, 4.0, 0.0)
    assert (b.images, b.sigma, b.laws) == ("b", (4.0,), ())
    assert typical_law(laws).brightness is SEEN


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of three images with Poisson noise and a smaller image without noise."""
    folder = tmp_path_factory.mktemp("in")
    rng = np.random.default_rng(0)
    light = data.camera()[:, 64:448] * 0.25
    for number, corner in enumerate((0, 128, 200)):
        counts = 4 * rng.poisson(light[corner : corner + 160, corner : corner + 160])
        Image.fromarray(np.minimum(counts, 255).astype(np.uint8)).save(folder / f"{number}.png")
    Image.fromarray(data.grass()[:96, :96]).save(folder / "clean.png")
    return folder


def test_each_image_is_denoised_with_the_noise_of_its_kind(folder: Path, tmp_path: Path) -> None:
    planned, _ = plan_outputs([folder], tmp_path / "out")
    denoiser = with_same_noise(planned, FAST, 1)
    (same,) = denoiser.same
    assert same.images == "160 x 160, 1 x uint8"
    gains = [
        measure_noise(read_image(folder / f"{n}.png", label="").page(0)).laws[0].gain
        for n in range(3)
    ]
    assert same.laws[0].gain == pytest.approx(np.median(gains), rel=1e-5)
    assert denoiser.of_kind("of no image") is denoiser
    result = run_batch([folder], tmp_path / "out", denoiser.settings, denoise=denoiser)
    *counted, clean = result.images
    assert [image.evidence.laws[0].gain for image in counted] == pytest.approx(
        [same.laws[0].gain] * 3, rel=1e-4
    )
    assert all("--same-noise" in image.notes[-1] for image in counted)
    assert not clean.established and not clean.notes
    assert run_batch([folder], tmp_path / "out", denoiser.settings, denoise=denoiser).n_resumed == 4
    # A different pooled estimate gives different settings, so results are not reused.
    other = replace(denoiser, same=(replace(same, laws=(law(3.0, 0.0),)),))
    assert other.settings != denoiser.settings
    assert "same_noise" not in FAST.settings


def test_kinds_are_distinguished_by_camera_and_sensitivity(tmp_path: Path) -> None:
    pixels = Image.fromarray(data.astronaut()[:32, :48])
    kinds = []
    for iso, turned in ((800, False), (800, True), (1600, False)):
        exif = Image.Exif()
        exif[271], exif[272] = "Maker", "Camera 5"
        exif.get_ifd(34665)[34855] = iso
        (pixels.rotate(90, expand=True) if turned else pixels).save(
            tmp_path / "a.jpg", exif=exif, quality=95
        )
        kinds.append(kind_of(read_image(tmp_path / "a.jpg", label="a.jpg")))
    assert kinds[0] == kinds[1] == "Maker Camera 5 at ISO 800, 3 x uint8" != kinds[2]
    pixels.save(tmp_path / "a.png")
    assert kind_of(read_image(tmp_path / "a.png", label="a.png")) == "48 x 32, 3 x uint8"


def test_a_page_of_one_value_is_left_whatever_the_noise_of_its_kind() -> None:
    same = (KindNoise("kind", 1, sigma=(5.0,)),)
    denoiser = GroupDenoiser(Options(quality="fast"), same=same).of_kind("kind")
    blank = np.full((24, 24), 7.0)
    np.testing.assert_array_equal(denoiser(blank, None)[0], blank)


@pytest.mark.parametrize("name", ["h\n(c).png", "\u202egnp.png", "x" * 180 + ".png"])
def test_a_file_that_cannot_be_measured_is_named_once(name: str, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    reason = measure_file(tmp_path / "a.png", name)[0].reason
    assert reason == f"{one_line(name, 200)}: is cut short; fetch the file again."
