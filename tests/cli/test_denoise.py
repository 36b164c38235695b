import json
import shlex
import subprocess
import sys
from functools import cache, partial
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from PIL import Image
from skimage import data

from kpca_apps.cli.denoise import options as denoise_options
from kpca_apps.cli.denoise.fit import _channel_lines, _law_lines, _noise_lines
from kpca_apps.cli.denoise.run import IMAGES
from kpca_apps.denoise.denoiser import denoise_kpca, measure_noise
from kpca_apps.denoise.options import NOISES
from kpca_apps.denoise.result import Evidence, MeasuredFile, NoiseLaw
from kpca_apps.images.files import FORMATS
from tests.cli.conftest import Run, assert_refused
from tests.cli.conftest import result as result_of
from tests.denoise.toy import contents
from tests.images.dng import write_dng
from tests.quick import quick

FAST = ("--quality", "fast", "--jobs", 1)
GIVEN = (*FAST, "--sigma", 20)


def noisy(seed: int = 0, shape: tuple[int, ...] = (24, 28), sigma: float = 20.0) -> np.ndarray:
    columns = np.arange(shape[1]).reshape((-1,) + (1,) * (len(shape) - 2))
    clean = np.broadcast_to(120 + 60 * np.sin(columns / 5), shape)
    noise = np.random.default_rng(seed).normal(0, sigma, shape)
    return np.clip(np.rint(clean + noise), 0, 255).astype(np.uint8)


def save(name: str, pixels: np.ndarray, **options: object) -> None:
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(name, **options)


def load(name: str | Path) -> np.ndarray:
    with Image.open(name) as image:
        return np.asarray(image)


result = partial(result_of, "kpca-denoised/report")


@pytest.fixture
def kpca(
    compiled: None, undrawn: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_kpca: Run
) -> Run:
    """Run ``kpca denoise ...`` in a folder with two grey images and a coloured one in ``in``."""
    monkeypatch.chdir(tmp_path)
    save("in/a.png", noisy(0))
    save("in/sub/b.png", noisy(1, (24, 24, 3)))
    save("in/c.tif", noisy(2))
    return partial(run_kpca, "denoise")


def test_choices_are_those_of_the_application() -> None:
    assert get_args(denoise_options.NoiseName) == ("auto", *NOISES[:-1])
    assert get_args(denoise_options.FormatName) == FORMATS


def test_a_folder_becomes_a_tree_of_images_and_a_report(kpca: Run) -> None:
    done = kpca("run", "in", *FAST)
    assert (done.code, done.out) == (0, "kpca-denoised/report/report.html\n"), done.err
    images = Path("kpca-denoised", IMAGES)
    assert sorted(contents(images)) == ["a.png", "c.tif", "sub/b.png"]
    expected = denoise_kpca(noisy(0), quality="fast", noise="auto")
    assert np.array_equal(load(images / "a.png"), np.clip(np.rint(expected), 0, 255))
    report = contents(Path("kpca-denoised/report"))
    assert sorted(report) == ["report.html", "result.json", "run.json"]
    assert b"../images/sub/b.png" in report["report.html"]
    assert done.err.startswith("3 images denoised; the noise was ")
    assert max(map(len, done.err.splitlines())) <= 80


@cache
def by_function(**options: Any) -> np.ndarray:
    given = {"quality": "fast", "noise": "auto", **options}
    return np.clip(np.rint(denoise_kpca(noisy(1, (24, 24, 3)), channel_axis=-1, **given)), 0, 255)


@pytest.mark.parametrize(
    "options",
    quick(
        [
            {"sigma": 35},
            {"noise": "camera"},
            {"noise": "poisson"},
            {"quality": "balanced"},
            {"content": "text"},
            {"method": "mika"},
            {"bandwidth": 2.0},
            {"luma": 0.5},
            {"chroma": 0},
            {"strength": 0.5},
            {"data_range": 500, "noise": "poisson", "sigma": 20},
        ],
        {"sigma": 35},
        {"quality": "balanced"},
        {"luma": 0.5},
        {"chroma": 0},
        {"strength": 0.5},
        {"data_range": 500, "noise": "poisson", "sigma": 20},
    ),
)
def test_every_option_does_what_the_function_does(options: dict[str, Any], kpca: Run) -> None:
    words = [
        word
        for name, value in {"quality": "fast", **options}.items()
        for word in (f"--{name.replace('_', '-')}", value)
    ]
    kpca("run", "in/sub/b.png", "--jobs", 1, *words).ok()
    made = load(Path("kpca-denoised", IMAGES, "b.png"))
    np.testing.assert_array_equal(made, by_function(**options))
    assert not np.array_equal(made, by_function())


def test_a_reference_and_baselines(kpca: Run) -> None:
    save("in/c.tif", noisy(2, sigma=10))
    for name in ("a.png", "c.tif"):
        save(f"clean/{name}", noisy(0, sigma=0.0))
    done = kpca("run", "in/a.png", "in/c.tif", "--reference", "clean", "--compare", *FAST).ok()
    mean = result()["mean_comparison"]
    assert set(mean["baselines"]) == {"nl_means", "wavelet"}
    assert mean["denoised"]["psnr"] > mean["noisy"]["psnr"] + 3
    assert "PSNR rose from " in done.heard and "ahead of non-local means" in done.heard
    levels = [image["sigma"] for image in result()["images"]]
    assert f"The noise was {min(levels):.3g} to {max(levels):.3g} of 255." in done.heard
    assert_refused(kpca("run", "in", "--compare", *FAST), 2, "--reference")


def test_failures_are_listed_and_the_rest_is_done(kpca: Run) -> None:
    Path("in/bad.png").write_bytes(Path("in/a.png").read_bytes()[:100])
    Path("in/empty.jpg").write_bytes(b"")
    done = kpca("run", "in", *GIVEN, "--quiet")
    assert (done.code, done.out) == (5, "kpca-denoised/report/report.html\n")
    lines = done.err.splitlines()
    assert len(lines) == 2 and lines[0].startswith("failed: bad.png: ")
    assert lines[1].startswith("failed: empty.jpg: the file is empty")
    assert sorted(contents(Path("kpca-denoised", IMAGES))) == ["a.png", "c.tif", "sub/b.png"]
    assert b"bad.png" in Path("kpca-denoised/report/report.html").read_bytes()


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("run", "in", "--out", "dangling"), 4, "is a link that leads nowhere"),
        (("run", "in", "--out", "linked", "--force"), 4, "so results would be written elsewhere"),
        (("run", "in", "--out", "back", "--force"), 4, "would replace this input"),
        (("run", "in", "--out", "taken", "--force"), 4, "taken/report"),
        (("run", "in", "--out", "x" * 400), 3, "xxx...: cannot be made (File name too long)"),
        (("run", "in", "--reference", "in"), 2, "in: a.png is the noisy image itself"),
        (("run", "in/a.png", "--reference", "in/a.png"), 2, "is the noisy image itself"),
        (("run", "in", "--region", "0,0,8,8", "--preview"), 2, "--preview chooses its own part"),
        (("run", "in", "--mask", "own.csv"), 3, "own.csv: is not an image that can be read"),
        (("run", "in", "--model", "x", "--per-image", "own.csv"), 2, "--per-image cannot be used"),
        (
            ("run", "in", "--workers", "processes", "--scheduler", "tcp://127.0.0.1:9"),
            2,
            "--workers processes are on this machine: leave one of them out",
        ),
        (("fit", "in/a.png", "--model", "in/a.png"), 4, "in/a.png"),
    ],
)
def test_mistakes_are_one_line_and_write_nothing(
    words: tuple[str, ...], code: int, message: str, kpca: Run
) -> None:
    Path("own.csv").write_text("file,luma\na.png,-1\n")
    Path("dangling").symlink_to("nowhere")
    for folder in ("linked", "back", "taken/report", "elsewhere"):
        Path(folder).mkdir(parents=True)
    Path("linked", IMAGES).symlink_to("../elsewhere")
    Path("back", IMAGES).symlink_to("../in")
    Path("taken/report/notes.txt").write_text("mine", encoding="utf-8")
    before = contents(Path())
    assert_refused(kpca(*words), code, message)
    assert contents(Path()) == before
    assert not Path("kpca-denoised").exists()


def test_a_level_below_one_step_is_doubted(kpca: Run) -> None:
    done = kpca("run", "in/a.png", *FAST, "--sigma", 0.1)
    assert done.code == 0
    assert "if you meant a share of the range, give 25.5." in done.heard
    assert len(result()["notes"]) == 1
    assert kpca("run", "in/a.png", *FAST, "--sigma", 1, "--force").code == 0
    assert result()["notes"] == []


def test_a_range_the_image_lies_far_beyond_is_a_failure_in_one_line(kpca: Run) -> None:
    done = kpca("run", "in/a.png", *GIVEN, "--data-range", 1e-9)
    assert (done.code, "give the data range in the units of the image" in done.err) == (5, True)
    assert done.err.startswith("failed: a.png: image holds values from ")


def test_slow_imports_are_lazy() -> None:
    code = (
        "import sys, kpca_apps.report.denoising.page;"
        "print({'matplotlib', 'numba', 'scipy', 'sklearn'} & set(sys.modules), end=' ');"
        "import kpca_apps.cli.denoise.run;"
        "print({'matplotlib', 'polars', 'sklearn'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set() set()\n"


def test_results_are_no_inputs_of_the_next_run(kpca: Run) -> None:
    for inputs in ((".",), ("**/*.png",), ("in", "kpca-denoised"), ("in", "kpca-denoised")):
        done = kpca("run", *inputs, *FAST, "--dry-run")
        assert len(done.out.splitlines()) == (2 if inputs == ("**/*.png",) else 3)
        save("kpca-denoised/images/a.png", noisy())
        save("kpca-denoised/report/figures/noise.png", noisy())


def test_hostile_names_reach_no_terminal(kpca: Run) -> None:
    name = "\x1b[31m<b>&\u202e.png"
    save(name, noisy())
    save("-rf.png", noisy())
    for words in ((name,), ("--", "-rf.png")):
        for extra in (("--dry-run",), ()):
            done = kpca("run", *GIVEN, *extra, *words).ok()
            assert not {"\x1b", "\u202e"} & set(done.out + done.err)
        assert kpca(*shlex.split(str(result()["command"]))[2:]).code == 0 or name in words
        assert "<b>&" not in Path("kpca-denoised/report/report.html").read_text(encoding="utf-8")


def test_a_dry_run_lists_no_result_of_a_kind_that_is_not_read(kpca: Run) -> None:
    save("in/moves.gif", noisy())
    Path("in/notes.png").write_text("no image", encoding="utf-8")
    Path("in/empty.png").touch()
    dry = kpca("run", "in", *FAST, "--dry-run")
    assert dry.code == 0
    names = [line.split(" -> ")[0] for line in dry.out.splitlines()]
    assert names == ["a.png", "c.tif", "empty.png", "sub/b.png"]
    foreseen = sorted(line for line in dry.err.splitlines())
    assert foreseen[0].startswith("failed: moves.gif: is a GIF, which is not read; ")
    assert foreseen[1].startswith("failed: notes.png: is not an image that can be read")
    rows = json.loads(kpca("run", "in", *FAST, "--dry-run", "--json").out)["images"]
    assert [row["name"] for row in rows] == names
    # The run prints the warnings that the preview foresaw.
    done = kpca("run", "in", *FAST, "--quiet")
    assert done.code == 5
    assert set(foreseen) < set(done.err.splitlines())


def test_json_config_and_dry_run(kpca: Run) -> None:
    config = 'quality = "fast"\nsigma = "12"\njobs = 1\n'
    Path("run.toml").write_text(config, encoding="utf-8")
    dry = kpca("run", "in", "--config", "run.toml", "--dry-run")
    assert (dry.code, dry.err) == (0, "")
    assert dry.out.splitlines()[0] == "a.png -> kpca-denoised/images/a.png"
    assert not Path("kpca-denoised").exists()
    rows = json.loads(kpca("run", "in", "--dry-run", "--json", "--format", "png").out)["images"]
    assert rows[1] == {"name": "c.tif", "output": "kpca-denoised/images/c.png"}
    done = kpca("run", "in", "--config", "run.toml", "--json", "--quiet")
    assert (done.code, done.err) == (0, "")
    assert json.loads(done.out) == result()
    assert done.out == Path("kpca-denoised/report/result.json").read_text(encoding="utf-8")
    settings = result()["settings"]
    assert (settings["quality"], settings["sigma"]) == ("fast", 12.0)
    assert str(result()["command"]) == "kpca denoise run in --sigma 12 --quality fast"


def test_noise_is_a_table_of_what_the_library_measures(kpca: Run) -> None:
    Path("in/bad.png").write_bytes(b"")
    done = kpca("noise", "in")
    assert done.code == 5 and done.err.startswith("failed: bad.png: the file is empty")
    first, _, in_channels = done.out.partition("\n\n")
    head, *rows = first.splitlines()
    assert head.split()[:2] == ["file", "sigma"]
    assert [row.split()[0] for row in rows] == ["a.png", "c.tif", "sub/b.png"]
    assert [row.split()[0] for row in in_channels.splitlines()[1:]] == ["sub/b.png"]
    expected = measure_noise(noisy(0)).sigma
    assert rows[0].split()[1] == f"{expected:.3g}" and rows[0].endswith("28 x 24")
    assert rows[2].endswith("24 x 24")
    images = json.loads(kpca("noise", "in", "--json").out)["images"]
    assert [image["status"] for image in images] == ["ok", "failed", "ok", "ok"]
    assert images[0]["sigma"] == expected and len(images[3]["channel_sigma"]) == 3


def test_raw_files_are_written_as_raw_files_on_request(kpca: Run) -> None:
    pytest.importorskip("rawpy", reason="raw files need the extra raw")
    light = np.random.default_rng(0).normal(1200, 40, (96, 96)).astype(np.uint16)
    write_dng(Path("a.dng"), light)
    for words, name in (((), "a.tif"), (("--raw-out", "dng"), "a.dng")):
        out = f"as-{name}"
        assert kpca("run", "a.dng", *FAST, *words, "--out", out).code == 0
        assert [path.name for path in Path(out, IMAGES).glob("a.*")] == [name]
    assert_refused(kpca("run", "a.dng", "--raw-out", "png"), 2, "--raw-out")


def test_a_preview_offers_three_strengths(kpca: Run) -> None:
    done = kpca("run", "in", *FAST, "--preview", "--luma", 1.2)
    assert (done.code, done.out) == (0, "kpca-preview-a/report.html\n"), done.err
    there = kpca("run", "in", *FAST, "--preview", "--luma", 1.2, "--out", "here", "--json")
    assert there.out == Path("here/preview/result.json").read_text(encoding="utf-8")
    assert "A preview of a.png, the first of 3 images" in done.heard
    assert not Path("kpca-denoised").exists()
    run = result_of("kpca-preview-a")
    assert str(run["command"]) == "kpca denoise run in --quality fast --luma 1.2"
    trials = run["trials"]
    assert [item["option"] for item in trials] == ["--strength 0.6", "--strength 1", "--luma 1.56"]
    assert "Luma 1.56: removes" in done.err and done.err.count(" of 255.\n") == 3


def test_the_line_of_a_preview_gives_one_image_its_own_options(kpca: Run) -> None:
    done = kpca("run", "in", *GIVEN, "--preview")
    lines = done.err.splitlines()
    header = lines.index("file,strength,luma,chroma")
    assert lines[header + 1 : header + 4] == ["a.png,0.6,1,1", "a.png,1,1,1", "a.png,1,1.3,1"]
    Path("own.csv").write_text(result_of("kpca-preview-a")["trials"][0]["per_image"])
    done = kpca("run", "in", *GIVEN, "--per-image", "own.csv").ok()
    assert "--per-image own.csv" in result()["command"]
    own = {image["name"]: image["own_settings"] for image in result()["images"]}
    assert own == {"a.png": {"strength": 0.6, "luma": 1, "chroma": 1}, "c.tif": {}, "sub/b.png": {}}
    page = Path("kpca-denoised/report/report.html").read_text()
    assert page.count("Set for this image alone: strength 0.6, luma 1 and chroma 1.") == 1
    # A preview starts from the options that the --per-image file gives for the image.
    kpca("run", "in", *GIVEN, "--preview", "--per-image", "own.csv")
    assert result_of("kpca-preview-a")["trials"][1]["per_image"].endswith("a.png,0.6,1,1\n")


def test_possible_texture_is_left_unchanged_and_reported(kpca: Run) -> None:
    save("mixed/a.png", data.grass()[:96, :96])
    save("mixed/b.png", noisy(1, (64, 64)))
    stderr = kpca("run", "mixed", *FAST).heard
    images = result()["images"]
    assert [image["established"] for image in images] == [False, True]
    option = images[0]["evidence"]["option"]
    assert "a.png: left as it is: what was measured" in stderr
    assert f"{option} takes it out." in stderr
    np.testing.assert_array_equal(load(f"kpca-denoised/{IMAGES}/a.png"), load("mixed/a.png"))
    measured = kpca("noise", "mixed")
    assert "?: no noise could be established" in measured.heard
    assert f"{option} (for a.png)" in measured.heard
    assert ["?" in line for line in measured.out.splitlines()[1:]] == [True, False]
    # With the suggested option the run denoises the image.
    again = kpca("run", "mixed/a.png", "--quality", "fast", *option.split(), "--out", "again")
    assert (again.code, "left as" in again.err) == (0, False)
    assert np.any(load(f"again/{IMAGES}/a.png") != load("mixed/a.png"))
    # If no strength changes the image, a preview also reports the reason.
    tried = kpca("run", "mixed/a.png", *FAST, "--preview").heard
    assert "as it is: what was measured (" in tried and "removes 0" not in tried


def test_impulses_mistaken_for_gaussian_noise_are_reported(kpca: Run) -> None:
    pixels = data.camera()[:64, :64].copy()
    pixels[np.random.default_rng(0).random(pixels.shape) < 0.05] = 255
    save("salt/a.png", pixels)
    for words in (("run", "salt", *FAST), ("noise", "salt")):
        assert "--noise impulse" in kpca(*words).err


def test_a_noise_law_is_reported_wherever_noise_is(kpca: Run) -> None:
    rng = np.random.default_rng(0)
    light = data.camera()[:160, 150:310] * 0.5
    counts = rng.poisson(light) * 2.0 + rng.normal(100, 3, light.shape)
    save("cells.tif", np.clip(counts, 0, None).astype(np.uint16))
    table, laws = kpca("noise", "cells.tif").out.split("\n\n")
    assert "poisson" in table
    assert "variance at x" in laws
    (line,) = laws.splitlines()[1:]
    gain = float(line.split()[1])
    assert gain == pytest.approx(2, rel=0.15)
    (listed,) = json.loads(kpca("noise", "cells.tif", "--json").out)["images"]
    assert listed["evidence"]["laws"][0]["gain"] == pytest.approx(gain, rel=0.01)
    stderr = kpca("run", "cells.tif", *FAST).heard
    assert f"At brightness x its variance is {line.split('  ')[1]}" in stderr
    (image,) = result()["images"]
    assert image["evidence"] == listed["evidence"]
    page = Path("kpca-denoised/report/report.html").read_text(encoding="utf-8")
    assert "taken as noise of counted light" in page
    # A second run restores the report from the stored record.
    assert kpca("run", "cells.tif", *FAST).code == 0
    assert Path("kpca-denoised/report/report.html").read_text(encoding="utf-8") == page


def test_the_table_of_noise_fits_a_terminal(kpca: Run) -> None:
    names = [f"scans-of-the-old-survey-of-the-coast-sheet-{i}.png" for i in range(3)]
    for name in names:
        save(f"late/{name}", noisy(0, (24, 24)))
    lines = kpca("noise", "late").out.splitlines()
    assert max(map(len, lines)) <= 80
    shown = [line.split()[0] for line in lines[1:]]
    assert [name[-6:] for name in shown] == [name[-6:] for name in names]
    assert all(len(item) < len(name) for item, name in zip(shown, names, strict=True))
    save(f"late/{'long' * 20}.png", noisy(3, (96, 96, 3)))
    assert max(map(len, kpca("noise", "late").out.splitlines())) <= 80
    shared = noisy(4, (96, 96))[..., np.newaxis] // 2 + np.array([0, 10, 20])
    save("shared.png", shared.astype(np.uint8))
    assert "yes" in kpca("noise", "shared.png").out
    assert "share their noise" in kpca("noise", "shared.png").err
    stdout = " ".join(kpca("noise", "--help").out.split())
    assert all(word in stdout for word in ("unchanged", "shared:", "impulses:", 'marked "?"'))


def test_tables_of_noise_in_colour_fit_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    brightness, variances = (20.0, 200.0), (0.9, 2.4)
    law = NoiseLaw(0.00822, 0.736, 0.712, (0.72, 1.39), True, False, -9.0, 9.0,
                   brightness, variances)  # fmt: skip
    files = [
        MeasuredFile(
            name, "", (240, 240, 3), "uint16", "poisson", 2.14, (0.243, 0.0582, 0.236), 255.0, True,
            established, True, Evidence(laws=(law,) * 3),
        )
        for name, established in (("astronaut.png", True), ("camera.png", False))
    ]  # fmt: skip
    for table in (_noise_lines(files), _channel_lines(files), _law_lines(files)):
        assert max(map(len, table)) <= 80
        assert "astronaut.png" in table[1]
    (_, red, *_) = _law_lines(files)
    assert red.split("  ")[-1] == "yes (0.712 px)"
    assert "0.243  0.0582  0.236" in _channel_lines(files)[1]


def test_the_noise_of_a_set_is_kept_and_used(kpca: Run) -> None:
    rng = np.random.default_rng(0)
    for name in ("set/a.png", "set/b.png", "others/c.png"):
        Path(name).parent.mkdir(exist_ok=True)
        noisy = np.clip(90 + 9 * rng.normal(size=(96, 96)), 0, 255).astype(np.uint8)
        Image.fromarray(noisy).save(name)
    done = kpca("noise", "set", "--save", "p.json", "--json")
    assert done.code == 0
    assert "Saved from 2 images: 96 x 96 pixels, 1 channel of uint8." in done.heard
    kinds = json.loads(Path("p.json").read_text())["kinds"]
    assert kinds[0]["sigma"][0] == pytest.approx(9, rel=0.1)
    assert kpca("noise", "set", "--save", "p.json").code == 4
    assert kpca("noise", "set", "--save", "p.json", "--force").code == 0
    done = kpca("run", "others", *FAST, "--profile", "p.json", "--json")
    assert done.code == 0
    (image,) = json.loads(done.out)["images"]
    assert image["sigma"] == pytest.approx(kinds[0]["sigma"][0])
    assert "taken from --profile p.json, not measured." in done.heard


def test_the_same_noise_for_a_batch_is_measured_and_reported(kpca: Run) -> None:
    for number in range(2):
        save(f"alike/{number}.png", noisy(number, (96, 96)))
    kpca("run", "alike", *FAST, "--same-noise").ok()
    images = result()["images"]
    assert images[0]["sigma"] == images[1]["sigma"]
    assert all("--same-noise" in image["notes"][-1] for image in images)


def test_replaced_pixels_are_named_in_the_terminal(kpca: Run) -> None:
    spoilt = noisy(3, (96, 96), 5.0)
    spoilt[40, 40], spoilt[60, 20] = 255, 0
    for number in range(6):
        save(f"spoilt/{number}.png", spoilt)
    save("spoilt/0 Treated as defects.tif", noisy(4, (96, 96), 5.0))
    printed = kpca("run", "spoilt", *FAST).ok().heard
    assert printed.count("Treated as defects: 2 lone pixels") == 5
    assert "0 Treated" not in printed and "More notes are in the report." in printed
