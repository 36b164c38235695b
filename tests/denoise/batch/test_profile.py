"""A noise profile file stores a measured noise model for later runs; invalid files are rejected."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from kpca_apps.denoise.batch.denoisers import GroupDenoiser
from kpca_apps.denoise.batch.examine.evidence import kept_law
from kpca_apps.denoise.batch.examine.measuring import measure_file, pooled
from kpca_apps.denoise.batch.profile import KIND, VERSION, KindNoise, read_profile
from kpca_apps.denoise.batch.run import run_batch
from kpca_apps.denoise.estimate.law import law_of_nothing
from kpca_apps.denoise.options import Options
from kpca_apps.errors import InputError, KpcaError
from kpca_apps.images.files import read_image
from tests.denoise.toy import save

SIZE = (160, 160)
STRONG = kept_law(replace(law_of_nothing(0.0), gain=300.0))


def photograph(seed: int, *, counts: float = 0.0, sigma: float = 0.0) -> np.ndarray:
    """A smooth gradient with Poisson noise at a given gain, or with white noise."""
    rng, light = np.random.default_rng(seed), np.add.outer(np.arange(160), np.arange(160)) * 0.5
    noisy = counts * rng.poisson(light / counts) if counts else light
    noisy = noisy + sigma * rng.standard_normal(SIZE)
    return np.clip(np.rint(noisy + 20 * (not counts)), 0, 255).astype(np.uint8)


def stored(path: Path, same: tuple[KindNoise, ...], **changed: Any) -> Path:
    document = {"kind": KIND, "schema_version": VERSION, "kinds": list(map(asdict, same))}
    path.write_text(json.dumps(document | changed))
    return path


def found_in(folder: Path) -> tuple[KindNoise, ...]:
    known = [measure_file(path, path.name)[1] for path in sorted(folder.iterdir())]
    return pooled(noise for noise in known if noise is not None)


@pytest.mark.parametrize("noise", [{"sigma": 9.0}, {"counts": 4.0}])
def test_a_saved_profile_denoises_an_image_that_does_not_show_its_noise(
    tmp_path: Path, noise: dict[str, float]
) -> None:
    for seed in range(3):
        save(tmp_path / "set", f"{seed}.png", photograph(seed, **noise))
    (profile,) = same = read_profile(stored(tmp_path / "profile.json", found_in(tmp_path / "set")))
    assert (profile.images, profile.n_images) == ("160 x 160, 1 x uint8", 3)
    if profile.sigma:
        assert profile.sigma[0] == pytest.approx(9.0, rel=0.1)
    else:
        assert profile.laws[0].gain == pytest.approx(4.0, rel=0.15)
    save(tmp_path / "in", "other.png", photograph(9, **noise))
    denoiser = GroupDenoiser(Options(quality="draft"), same=same, from_profile=True)
    result = run_batch([tmp_path / "in"], tmp_path / "out", denoiser.settings, denoise=denoiser)
    (image,) = result.images
    assert image.noise == ("gaussian" if profile.sigma else "poisson")
    assert image.notes[-1] == "The noise is that of images of its kind, by --profile."
    with Image.open(tmp_path / "out" / "other.png") as opened:
        change = np.std(np.asarray(opened).astype(float) - photograph(9, **noise))
    assert change > 4
    # With the noise found in the set itself, not read from the profile, pixels differ by at most 1.
    again = GroupDenoiser(Options(quality="draft"), same=found_in(tmp_path / "set"))
    run_batch([tmp_path / "in"], tmp_path / "again", again.settings, denoise=again)
    first, second = (read_image(tmp_path / name / "other.png").page(0) for name in ("out", "again"))
    assert np.abs(first.astype(int) - second).max() <= 1


def test_images_of_another_kind_are_not_denoised(tmp_path: Path) -> None:
    same = (KindNoise("160 x 160, 1 x uint8", 2, sigma=(9.0,)),)
    save(tmp_path / "in", "a.png", photograph(0, sigma=9))
    save(tmp_path / "in", "small.png", photograph(0)[:96])
    denoiser = GroupDenoiser(
        Options(quality="draft"), same=read_profile(stored(tmp_path / "p", same)), from_profile=True
    )
    a, small = run_batch(
        [tmp_path / "in"], tmp_path / "out", denoiser.settings, denoise=denoiser
    ).images
    assert (a.status, a.sigma) == ("ok", 9.0)
    assert small.reason.startswith("small.png: is of a kind (160 x 96, 1 x uint8)")


def test_noise_curves_of_raw_files_are_saved(tmp_path: Path) -> None:
    pytest.importorskip("rawpy", reason='rawpy is not installed: pip install "kpca-apps[raw]"')
    from tests.images.dng import exposed, mosaic_of, write_dng

    light = mosaic_of(np.repeat(photograph(0)[..., np.newaxis] / 255.0, 3, axis=2))
    for seed in range(3):
        counts = 256 + 3839 * exposed(light, 1 / 200, 1e-4, seed)
        (tmp_path / "set").mkdir(exist_ok=True)
        write_dng(
            tmp_path / "set" / f"{seed}.dng", np.clip(np.rint(counts), 0, 4095).astype(np.uint16)
        )
    (profile,) = read_profile(stored(tmp_path / "p", found_in(tmp_path / "set")))
    a, b = profile.curves[0]
    truth = np.sqrt(65535**2 * (0.4 / 200 + 1e-4))
    assert np.sqrt(a * 0.4 * 65535 + b) == pytest.approx(truth, rel=0.15)
    denoiser = GroupDenoiser(Options(quality="draft"), same=(profile,), from_profile=True)
    image = read_image(tmp_path / "set" / "0.dng")
    assert image.mosaic is not None
    cleaned = denoiser.of_kind(profile.images).clean_mosaic(image.mosaic())
    assert not cleaned.info.estimated
    assert np.std(cleaned.light - cleaned.mosaic.light) > 0.5 * truth


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"kind": "measured noise"}, "is not a noise profile"),
        ({"schema_version": 9}, "is of version 9, and 1 is read"),
        ({"kinds": []}, "holds no noise"),
        ({"kinds": None}, "is damaged"),
        ({"kinds": [{"images": "a", "n_images": 1}]}, "impossible noise"),
        ({"kinds": [{"images": "a", "n_images": 1, "sigma": [-1.0]}]}, "impossible noise"),
        ({"kinds": [{"images": "a", "n_images": 1, "sigma": "x"}]}, "is damaged"),
        ({"kinds": [{"images": "a", "n_images": 1, "sigma": [True]}]}, "is damaged"),
        ({"kinds": [{"images": "a", "n_images": 1, "sigma": [1e308]}]}, "impossible noise"),
        ({"kinds": [{"images": "a", "n_images": 1, "sigma": [float("nan")]}]}, "is damaged"),
        (
            {"kinds": [{"images": "a", "n_images": 1, "curves": 3 * [[1e9, 0.0]]}]},
            "impossible noise",
        ),
        ({"kinds": 2 * [{"images": "a", "n_images": 1, "sigma": [1.0]}]}, "impossible noise"),
    ],
)
def test_other_files_are_rejected_as_profiles(
    tmp_path: Path, changed: dict[str, Any], message: str
) -> None:
    path = stored(tmp_path / "p.json", (KindNoise("a", 1, sigma=(1.0,)),), **changed)
    with pytest.raises(InputError, match=message) as refused:
        read_profile(path)
    assert "make one with kpca denoise noise" in str(refused.value) and "\n" not in str(
        refused.value
    )


def test_a_file_without_json_is_rejected(tmp_path: Path) -> None:
    for content, what in (
        (b"", "is not a noise profile"),
        (b"\xff\xfe", "is not a noise profile"),
        (b"[" * 100_000, "is not a noise profile"),
        (b"\x89PNG\r\n", "line 1, byte 1 .0x89. is not utf-8 text"),
        (b"{", "is damaged"),
    ):
        (tmp_path / "p.json").write_bytes(content)
        with pytest.raises(InputError, match=rf"p\.json: {what}"):
            read_profile(tmp_path / "p.json")
    with pytest.raises(InputError, match="no such file"):
        read_profile(tmp_path / "none.json")


@pytest.mark.parametrize(
    "same",
    [
        KindNoise("160 x 160, 1 x uint8", 1, sigma=(300.0,)),
        KindNoise("160 x 160, 1 x uint8", 1, laws=(STRONG,)),
    ],
)
def test_noise_above_the_range_of_an_image_is_refused(tmp_path: Path, same: KindNoise) -> None:
    (known,) = read_profile(stored(tmp_path / "p.json", (same,)))
    denoiser = GroupDenoiser(Options(quality="draft"), same=(known,), from_profile=True)
    with pytest.raises(KpcaError, match=r"above the (data )?range of"):
        denoiser.of_kind(known.images).clean(photograph(0, sigma=9))
