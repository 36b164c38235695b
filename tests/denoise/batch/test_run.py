"""A batch continues past bad files, never overwrites foreign files, and can resume anywhere."""

import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import tifffile
from PIL import Image

from kpca_apps.denoise.batch.manifest import MANIFEST, only_batch
from kpca_apps.denoise.batch.run import run_batch
from kpca_apps.denoise.result import DenoisingResult
from kpca_apps.errors import ConfigError, InputError, RefusedError
from tests.denoise.killing import N_IMAGES, all_files, kill_and_resume, make_inputs
from tests.denoise.toy import SETTINGS, Info, contents, picture, save, smooth
from tests.hostile.images import NAMES
from tests.interrupts import HEARS_INTERRUPTS
from tests.quick import quick


def run(folder: Path, out: str = "out", **options: object) -> DenoisingResult:
    options = {"denoise": smooth, "settings": SETTINGS} | options
    return run_batch([folder / "in"], folder / out, **options)  # type: ignore[arg-type]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three images in a small tree, and a file that is not an image."""
    save(tmp_path / "in", "grey.png", picture(0))
    save(tmp_path / "in", "sub/colour.png", picture(1, (24, 30, 3)))
    save(tmp_path / "in", "sub/deeper/photo.jpg", picture(2, (24, 32, 3)), quality=95)
    (tmp_path / "in" / "readme.txt").write_text("not an image")
    return tmp_path


def test_results_mirror_the_tree_and_hold_what_was_denoised(folder: Path) -> None:
    result = run(folder)
    names = ["grey.png", "sub/colour.png", "sub/deeper/photo.jpg"]
    assert [image.name for image in result.images] == names
    assert [image.status for image in result.images] == ["ok"] * 3
    assert list(contents(folder / "out")) == names
    assert result.notes == ("1 file is not an image and was passed over.",)
    with Image.open(folder / "out" / "sub" / "colour.png") as seen:
        expected = np.rint(smooth(picture(1, (24, 30, 3)), -1)[0])
        np.testing.assert_array_equal(np.array(seen), expected)
    first = result.images[0]
    assert (first.shape, first.dtype, first.format, first.sigma) == ((24, 30), "uint8", "png", 5.0)


@pytest.mark.release
def test_one_result_for_any_number_of_workers(folder: Path) -> None:
    calls: list[tuple[int, int]] = []
    alone = run(folder, progress=lambda done, total, outcome: calls.append((done, total)))
    assert calls == [(1, 3), (2, 3), (3, 3)]
    for jobs in (2,):
        assert run(folder, f"out{jobs}", jobs=jobs) == alone
        assert contents(folder / f"out{jobs}") == contents(folder / "out")


def test_a_file_renamed_to_the_same_result_is_resumed(tmp_path: Path) -> None:
    save(tmp_path / "in", "a.tif", picture(0))
    run(tmp_path, format="png")
    (tmp_path / "in" / "a.tif").rename(tmp_path / "in" / "a.tiff")
    (image,) = run(tmp_path, format="png").images
    assert (image.name, image.output, image.resumed) == ("a.tiff", "a.png", True)


def test_alpha_pages_and_depth_come_through(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    deep = rng.integers(0, 65536, (2, 20, 16)).astype(np.uint16)
    floats = rng.normal(size=(20, 16)).astype(np.float32)
    veiled = picture(3, (20, 16, 4))
    faint = picture(4, (20, 16, 2))
    (tmp_path / "in").mkdir()
    tifffile.imwrite(tmp_path / "in" / "deep.tif", deep, photometric="minisblack")
    tifffile.imwrite(tmp_path / "in" / "floats.tif", floats)
    save(tmp_path / "in", "veiled.png", veiled)
    save(tmp_path / "in", "faint.png", faint)
    result = run(tmp_path)
    assert result.n_failed == 0
    assert [image.n_pages for image in result.images] == [2, 1, 1, 1]
    stored = tifffile.imread(tmp_path / "out" / "deep.tif")
    expected = np.stack([np.rint(smooth(page, None)[0]) for page in deep])
    assert stored.dtype == np.uint16
    np.testing.assert_array_equal(stored, expected)
    np.testing.assert_array_equal(
        tifffile.imread(tmp_path / "out" / "floats.tif"), smooth(floats, None)[0]
    )
    with Image.open(tmp_path / "out" / "veiled.png") as seen:
        np.testing.assert_array_equal(np.array(seen)[..., 3], veiled[..., 3])
    with Image.open(tmp_path / "out" / "faint.png") as seen:
        assert seen.mode == "LA"
        np.testing.assert_array_equal(np.array(seen)[..., 1], faint[..., 1])


def test_values_beyond_the_type_are_cut_not_wrapped(folder: Path) -> None:
    def brighten(pixels: np.ndarray, channel_axis: int | None) -> tuple[np.ndarray, Info]:
        return pixels.astype(np.float32) * 3 - 100, Info()

    run(folder, denoise=brighten)
    with Image.open(folder / "out" / "grey.png") as seen:
        expected = np.clip(picture(0).astype(int) * 3 - 100, 0, 255)
        np.testing.assert_array_equal(np.array(seen), expected)


def test_resuming_repeats_nothing(folder: Path) -> None:
    first = run(folder)
    stamps = {path: path.stat().st_mtime_ns for path in (folder / "out").rglob("*.*")}

    def never(pixels: np.ndarray, channel_axis: int | None) -> tuple[np.ndarray, Info]:
        raise AssertionError("denoised again")

    second = run(folder, denoise=never)
    assert second == first
    assert (first.n_resumed, second.n_resumed) == (0, 3)
    assert {path: path.stat().st_mtime_ns for path in stamps} == stamps


def test_a_missing_result_and_a_changed_input_are_processed_again(folder: Path) -> None:
    run(folder)
    whole = contents(folder / "out")
    (folder / "out" / "grey.png").unlink()
    assert run(folder).n_resumed == 2
    assert contents(folder / "out") == whole
    save(folder / "in", "grey.png", picture(9))
    with pytest.raises(RefusedError, match=r"grey\.png: was made from another input"):
        run(folder)
    assert contents(folder / "out") == whole
    assert run(folder, force=True).n_resumed == 2
    assert contents(folder / "out")["grey.png"] != whole["grey.png"]


def test_other_settings_need_another_folder_or_force(folder: Path) -> None:
    run(folder)
    whole = contents(folder / "out")
    other = {"settings": {"weight": 0.25}, "denoise": partial(smooth, weight=0.25)}
    with pytest.raises(RefusedError):
        run(folder, **other)
    assert contents(folder / "out") == whole
    run(folder, **other, force=True)
    assert contents(folder / "out")["grey.png"] != whole["grey.png"]
    # With the same settings again, results are reused even with `force`.
    assert run(folder, **other, force=True).n_resumed == 3


def test_foreign_files_are_not_overwritten(folder: Path) -> None:
    (folder / "out" / "sub").mkdir(parents=True)
    (folder / "out" / "sub" / "colour.png").write_bytes(b"precious")
    with pytest.raises(RefusedError, match=r"sub/colour\.png: exists"):
        run(folder)
    assert contents(folder / "out") == {"sub/colour.png": b"precious"}
    assert run(folder, force=True).n_failed == 0


def test_a_file_that_appears_meanwhile_is_kept(folder: Path) -> None:
    def slow(pixels: np.ndarray, channel_axis: int | None) -> tuple[np.ndarray, Info]:
        (folder / "out" / "grey.png").write_bytes(b"precious")
        return smooth(pixels, channel_axis)

    assert run(folder, denoise=slow).failed[0].name == "grey.png"
    assert contents(folder / "out")["grey.png"] == b"precious"


def test_inputs_are_never_overwritten(folder: Path) -> None:
    for force in (False, True):
        with pytest.raises(RefusedError, match="replace this input"):
            run_batch([folder / "in"], folder / "in", SETTINGS, denoise=smooth, force=force)
        with pytest.raises(RefusedError):
            run_batch(
                [folder / "in" / "grey.png", folder / "in" / "sub"],
                folder / "in" / "sub" / ".." / ".." / "in",
                SETTINGS,
                denoise=smooth,
                force=force,
            )
    before = contents(folder / "in")
    run(folder, "in/clean")
    after = contents(folder / "in")
    assert {name: after[name] for name in before} == before
    # Results inside the input folder are not inputs of the next run.
    assert run(folder, "in/clean").n_resumed == 3


def test_a_link_in_the_output_folder_is_not_followed(folder: Path) -> None:
    (folder / "elsewhere").mkdir()
    (folder / "out").mkdir()
    (folder / "out" / "sub").symlink_to(folder / "elsewhere")
    with pytest.raises(RefusedError, match="points outside it"):
        run(folder)
    assert contents(folder / "elsewhere") == {}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, bytes]]:
    """A folder of inputs, and the results of an uninterrupted batch on it."""
    folder = tmp_path_factory.mktemp("killed")
    return folder, make_inputs(folder)


@pytest.mark.parametrize("seed", quick(range(5), 1))
def test_a_killed_batch_ends_with_the_same_bytes(
    seed: int, whole: tuple[Path, dict[str, bytes]]
) -> None:
    folder, expected = whole
    name = f"out{seed}"
    n_before, n_resumed = kill_and_resume(folder, name, jobs=1 + seed // 4, seed=seed)
    assert all_files(folder / name) == expected
    assert n_resumed == n_before <= N_IMAGES


def test_unfinished_files_of_a_killed_run_are_removed(folder: Path) -> None:
    (folder / "out" / "sub").mkdir(parents=True)
    orphan = folder / "out" / "sub" / ".kpca-denoise-0123abcd-7.partial"
    orphan.write_bytes(b"half")
    other = folder / "out" / "sub" / "notes.partial"
    other.write_bytes(b"mine")
    run(folder)
    assert not orphan.exists()
    assert other.exists()


def test_an_interrupt_leaves_nothing_partial(folder: Path) -> None:
    def stop(pixels: np.ndarray, channel_axis: int | None) -> tuple[np.ndarray, Info]:
        if pixels.ndim == 3:
            raise KeyboardInterrupt
        return smooth(pixels, channel_axis)

    with pytest.raises(KeyboardInterrupt):
        run(folder, denoise=stop)
    assert list(contents(folder / "out")) == ["grey.png"]
    assert not (folder / "out" / "sub").exists()
    assert run(folder).n_resumed == 1


@pytest.mark.skipif(sys.platform == "win32", reason="no signals to hold back")
def test_workers_leave_an_interrupt_to_the_run(folder: Path) -> None:
    # Use a fresh process: earlier tests may have started the process that forks workers.
    code = HEARS_INTERRUPTS + (
        "import sys\n"
        "from kpca_apps.denoise.batch.run import run_batch\n"
        "from tests.denoise.toy import SETTINGS, unheard\n"
        "result = run_batch([sys.argv[1]], sys.argv[2], SETTINGS, denoise=unheard, jobs=2)\n"
        "assert not result.failed, result.failed\n"
        "assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())\n"
    )
    command = [sys.executable, "-c", code, str(folder / "in"), str(folder / "out")]
    root = Path(__file__).resolve().parents[3]
    done = subprocess.run(command, capture_output=True, text=True, cwd=root, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_two_runs_do_not_share_a_folder(folder: Path) -> None:
    (folder / "out").mkdir()
    with only_batch(folder / "out"), pytest.raises(RefusedError):
        run(folder)


def test_hostile_names_come_through(tmp_path: Path) -> None:
    for number, name in enumerate(NAMES):
        save(tmp_path / "in", name, picture(number), format="PNG")
    assert run(tmp_path).n_failed == 0
    assert sorted(contents(tmp_path / "out")) == sorted(NAMES)


def test_references_are_found_and_compared(folder: Path) -> None:
    save(folder / "clean", "grey.tif", smooth(picture(0), None)[0].astype(np.uint8))
    result = run(folder, reference=folder / "clean", baselines=("nl_means",))
    compared = result.images[0].comparison
    assert compared is not None
    error = np.mean(
        (np.rint(smooth(picture(0), None)[0]) - np.floor(smooth(picture(0), None)[0])) ** 2
    )
    assert compared.denoised.psnr == pytest.approx(10 * np.log10(255**2 / error))
    assert compared.noisy.psnr < compared.denoised.psnr and set(compared.baselines) == {"nl_means"}
    assert result.mean_comparison == compared
    assert any("2 images have no clean image" in note for note in result.notes)
    # Results are compared again only if the comparison's options change.
    assert run(folder, reference=folder / "clean", baselines=("nl_means",)) == result
    other = run(folder, reference=folder / "clean").images[0].comparison
    assert other is not None
    assert (other.denoised, other.baselines) == (compared.denoised, {})


def test_a_reference_that_does_not_fit_costs_the_comparison_alone(folder: Path) -> None:
    save(folder / "clean", "grey.png", picture(0, (24, 31)))
    (folder / "clean" / "sub").symlink_to(folder / "elsewhere")
    save(folder / "elsewhere", "colour.PNG", picture(0, (24, 30, 3)))
    result = run(folder, reference=folder / "clean")
    assert not result.failed
    images = {image.name: image for image in result.images}
    assert images["grey.png"].comparison is None
    assert [note for note in images["grey.png"].notes if "24 x 31 and the image 24 x 30" in note]
    assert images["sub/colour.png"].comparison is not None
    assert run(folder, reference=folder / "clean").images == result.images
    # The note disappears once the reference fits.
    save(folder / "clean", "grey.png", picture(0, (24, 30)))
    again = run(folder, reference=folder / "clean").images[0]
    assert (again.comparison is not None, again.notes) == (True, run(folder).images[0].notes)


def test_options_that_contradict_each_other_are_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for options, words in (
        ({"jobs": 0}, "jobs"),
        ({"format": "gif"}, "format"),
        ({"baselines": ("nl_means",)}, "--reference"),
        ({"baselines": ("bm3d",), "reference": folder}, "baseline"),
    ):
        with pytest.raises(ConfigError, match=words):
            run(folder, **options)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="holds no image named"):
        (folder / "empty").mkdir()
        run(folder, reference=folder / "empty")
    monkeypatch.setattr(Path, "iterdir", lambda _: (_ for _ in ()).throw(PermissionError))
    with pytest.raises(InputError, match="empty: no permission to read it"):
        run(folder, reference=folder / "empty")
    assert not (folder / "out" / MANIFEST).exists()
