"""Per-image settings are read from a table, checked by row and column, and applied."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from kpca_apps.denoise.batch.denoisers import GroupDenoiser
from kpca_apps.denoise.batch.per_image import read_per_image
from kpca_apps.denoise.batch.run import run_batch
from kpca_apps.denoise.batch.trial import per_image_lines
from kpca_apps.denoise.denoiser import denoise_kpca
from kpca_apps.denoise.options import Options
from kpca_apps.denoise.result import DenoisingResult
from kpca_apps.errors import InputError, RefusedError
from kpca_apps.images.files import read_image
from tests.denoise.toy import contents, picture, save

FAST = GroupDenoiser(Options(quality="fast"), sigma=20.0)
NAMES = ("a.png", "sub/b.png", "c, d.png")


def read(folder: Path, text: str, denoiser: GroupDenoiser = FAST) -> dict[str, dict[str, object]]:
    path = folder / "own.csv"
    path.write_text(text, encoding="utf-8")
    return {name: dict(own) for name, own in read_per_image(path, NAMES, denoiser).items()}


def test_an_empty_cell_is_as_for_the_others(tmp_path: Path) -> None:
    assert read(
        tmp_path,
        "file,strength,luma,sigma,noise\na.png,0.6,,auto,\nsub/b.png,,1.25,7,poisson\n"
        '"c, d.png",,,,\n',
    ) == {
        "a.png": {"strength": 0.6, "sigma": None},
        "sub/b.png": {"luma": 1.25, "sigma": 7.0, "noise": "poisson"},
        "c, d.png": {},
    }


def test_a_quality_is_taken_and_a_note_is_not(tmp_path: Path) -> None:
    found = read(tmp_path, "file,quality,note\na.png,high,too soft; see the eyes\nsub/b.png,,1\n")
    assert found == {"a.png": {"quality": "high"}, "sub/b.png": {}}


def test_a_name_kept_from_running_as_a_formula_is_found(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text("file,strength\n'=a.png,0.5\n'-b.png,0.7\n'c.png,0.9\n", encoding="utf-8")
    assert {
        name: own["strength"]
        for name, own in read_per_image(path, ("=a.png", "'-b.png", "'c.png"), FAST).items()
    } == {"=a.png": 0.5, "'-b.png": 0.7, "'c.png": 0.9}


def test_other_kinds_of_table_say_the_same(tmp_path: Path) -> None:
    assert read(tmp_path, "file;strength;chroma\na.png;0,6;1\n") == {
        "a.png": {"strength": 0.6, "chroma": 1.0}
    }
    typed = pl.DataFrame({"file": ["sub/b.png", "a.png"], "luma": [None, 0.8]})
    typed.write_parquet(tmp_path / "own.parquet")
    found = read_per_image(tmp_path / "own.parquet", NAMES, FAST)
    assert found == {"sub/b.png": {}, "a.png": {"luma": 0.8}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("file,strenght\na.png,1\n", 'column "strenght" is not one of .* Did you mean "strength"'),
        ("luma,chroma\n1,2\n", 'has no column "file"'),
        ("file,luma\nA.png,1\n", 'line 2, column "file": .*"A.png".* Did you mean "a.png"'),
        ("file,luma\na.png,1\n,2\n", 'line 3, column "file": is empty'),
        ("file,luma\na.png,1\na.png,2\n", 'line 3, column "file": .*row 1 already'),
        ("file,luma\na.png,1\nsub/b.png,much\n", 'line 3, column "luma": luma is "much"'),
        ("file,strength\na.png,2\n", 'line 2, column "strength": strength is 2'),
        ("file,chroma\na.png,1e9\n", 'line 2, column "chroma": chroma is 1e\\+09'),
        ("file,sigma\na.png,-1\n", 'line 2, column "sigma": sigma is -1'),
        ("file,sigma\na.png,some\n", 'line 2, column "sigma": sigma is "some"'),
        ("file,noise\na.png,pink\n", "line 2, column \"noise\": noise is 'pink'; give one of"),
        ("file,noise\na.png,3\n", 'line 2, column "noise": noise is'),
        (
            "file,quality\na.png,best\n",
            "line 2, column \"quality\": quality is 'best'; give one of",
        ),
        (f"file,quality\na.png,{3000 * '['}\n", r"quality is '\[+\.\.\.; give one of"),
    ],
)
def test_what_cannot_be_done_is_refused_by_row_and_column(
    text: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=message) as refusal:
        read(tmp_path, text)
    assert str(refusal.value).startswith(str(tmp_path / "own.csv"))
    assert "\n" not in str(refusal.value)


def test_a_row_of_a_typed_table_is_named_by_its_number(tmp_path: Path) -> None:
    pl.DataFrame({"file": ["a.png", "no.png"]}).write_parquet(tmp_path / "own.parquet")
    with pytest.raises(InputError, match="row 2, column"):
        read_per_image(tmp_path / "own.parquet", NAMES, FAST)


def test_noise_models_without_stacks_are_rejected(tmp_path: Path) -> None:
    stacked = GroupDenoiser(Options(), stack=True)
    with pytest.raises(InputError, match=r'column "noise": .* stack'):
        read(tmp_path, "file,noise\na.png,camera\n", stacked)


def test_the_lines_of_a_preview_are_read_back(tmp_path: Path) -> None:
    options = Options(strength=0.6, luma=1.3, chroma=0.85)
    found = read(tmp_path, per_image_lines("c, d.png", options))
    assert found == {"c, d.png": {"strength": 0.6, "luma": 1.3, "chroma": 0.85}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for seed, name in enumerate(("a.png", "b.png")):
        save(tmp_path / "in", name, picture(seed))
    return tmp_path


def run(folder: Path, own: dict[str, dict[str, object]], **options: object) -> DenoisingResult:
    return run_batch(
        [folder / "in"],
        folder / "out",
        FAST.settings,
        denoise=FAST,
        per_image=own,
        **options,  # type: ignore[arg-type]
    )


def test_each_image_is_denoised_with_its_own(folder: Path) -> None:
    own: dict[str, dict[str, object]] = {"b.png": {"strength": 0.5, "sigma": 9.0}}
    result = run(folder, own, jobs=2)
    assert [image.own_settings for image in result.images] == [{}, own["b.png"]]
    assert [image.sigma for image in result.images] == [20.0, 9.0]
    stored = read_image(folder / "out" / "b.png", label="b.png").page(0)
    expected = denoise_kpca(picture(1), sigma=9.0, strength=0.5, quality="fast")
    np.testing.assert_array_equal(stored, np.clip(np.rint(expected), 0, 255))


def test_only_images_whose_settings_changed_are_done_again(folder: Path) -> None:
    run(folder, {"b.png": {"luma": 0.8}})
    before = contents(folder / "out")
    again = run(folder, {"b.png": {"luma": 0.8}})
    assert [image.resumed for image in again.images] == [True, True]
    assert again.images[1].own_settings == {"luma": 0.8}
    with pytest.raises(RefusedError, match=r"b.png: .* other settings"):
        run(folder, {"b.png": {"luma": 0.7}})
    changed = run(folder, {"b.png": {"luma": 0.7}}, force=True)
    assert [image.resumed for image in changed.images] == [True, False]
    after = contents(folder / "out")
    assert (after["a.png"] == before["a.png"], after["b.png"] == before["b.png"]) == (True, False)


def test_settings_equal_to_the_batchs_change_nothing(folder: Path) -> None:
    run(folder, {})
    result = run(folder, {"a.png": {"sigma": 20.0, "strength": 1.0}})
    assert [image.resumed for image in result.images] == [True, True]
