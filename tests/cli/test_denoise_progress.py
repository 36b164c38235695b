import errno
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from kpca_apps.cli.console import Console, image_progress
from kpca_apps.cli.denoise.processors import count_samples
from kpca_apps.denoise.batch.denoisers import GroupDenoiser
from kpca_apps.denoise.options import Options
from kpca_apps.denoise.progress import listening, part
from kpca_apps.denoise.result import ImageOutcome
from tests.cli.conftest import Run, Terminal, assert_refused
from tests.cli.test_denoise import GIVEN, kpca, noisy, save
from tests.interrupts import HEARS_INTERRUPTS
from tests.quick import quick

__all__ = ["kpca"]

STOPPED = "interrupted; run the same command again to resume: 1 of 4 are done"


def outcome(name: str, **fields: Any) -> ImageOutcome:
    return ImageOutcome(name, fields.pop("status", "ok"), **fields)


def test_a_terminal_shows_a_bar_and_failures_above_it(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("COLUMNS", "80")
    names = [f"{number}.png" for number in range(9)]
    with image_progress(Console(), dict.fromkeys(names, 100)) as (show, _):
        show(outcome(names[0], resumed=True))
        for name in names[1:]:
            show(outcome(name, status="failed", reason=f"{name}: \x1b[31mis cut short."))
    shown = terminal.getvalue()
    assert shown.count("failed: ") == 5 and "More failures are listed in the report." in shown
    assert "9 of 9" in shown and "\x1b[31mis cut" not in shown


@pytest.mark.parametrize("jobs", quick([1, 2], 1))
def test_a_terminal_shows_how_far_one_image_is(
    jobs: int, kpca: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr("kpca_apps.denoise.progress._PAUSE", 0.01)
    monkeypatch.setattr("kpca_apps.cli.denoise.processors._START_UP", 1)
    monkeypatch.setenv("TERM", "xterm")
    for number in range(jobs):
        save(f"large/{number}.png", np.tile(noisy(number, (60, 70)), (7, 7)))
    assert kpca("run", Path("large").resolve(), *GIVEN[:2], *GIVEN[4:], "--jobs", jobs).code == 0
    shown = re.findall(r"([0-9]+) of [0-9]+.*?([0-9]+)%", terminal.getvalue())
    before_any = {int(percent) for n_done, percent in shown if n_done == "0"}
    # Progress is redrawn at intervals of time, so the number of values between 0 and 100 varies.
    assert len(before_any - {0, 100}) >= 2


@pytest.mark.parametrize("noise", quick(["gaussian", "poisson", "impulse", "camera"], "gaussian"))
def test_shares_of_an_image_grow_up_to_all_of_it(noise: str) -> None:
    rng = np.random.default_rng(0)
    pages = [rng.normal(100, 20, (40, 36, 3)).clip(0, 255).astype(np.uint8) for _ in range(2)]
    heard: list[float] = []
    mode = GroupDenoiser(Options(quality="fast", noise=noise))
    with listening(heard.append):
        for number, page in enumerate(pages):
            with part(number, 2):
                mode(page, channel_axis=-1)
    assert len(heard) > 10 and heard == sorted(heard) and heard[0] < 0.1
    assert heard[-1] == pytest.approx(1)


def test_elsewhere_failures_are_lines_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    for quiet in (False, True):
        with image_progress(Console(quiet), {"a.png": 1, "b.png": 1}) as (show, within):
            assert within is None
            show(outcome("a.png"))
            show(outcome("b.png", status="failed", reason="b.png: \x07is empty."))
        assert capsys.readouterr().err == "failed: b.png: \\x07is empty.\n"


@pytest.mark.parametrize("shape", [(20, 30), (20, 30, 3), (20, 30, 4)])
def test_samples_are_counted_by_the_header(shape: tuple[int, ...], tmp_path: Path) -> None:
    Image.fromarray(np.zeros(shape, np.uint8)).save(tmp_path / "a.png")
    assert count_samples(tmp_path / "a.png") == 600 * min(shape[2] if shape[2:] else 1, 3)


@pytest.mark.skipif(sys.platform == "win32", reason="no pipes with names")
def test_non_images_count_by_their_size(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"123")
    os.mkfifo(tmp_path / "pipe.png")  # opening the pipe would block forever
    assert [count_samples(tmp_path / f"{name}.png") for name in ("a", "none", "pipe")] == [3, 0, 0]


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (OSError(errno.ENOSPC, "No space left"), 3, "The images are done and kept"),
        (KeyboardInterrupt(), 130, "the images are done and the report is not"),
    ],
)
def test_an_end_at_the_report_leaves_the_images(
    error: BaseException, code: int, message: str, kpca: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(result: object) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr("kpca_apps.report.denoising.page.denoising_pages", fail)
        assert_refused(kpca("run", "in", *GIVEN), code, message)
    assert sorted(path.name for path in Path("kpca-denoised").iterdir()) == ["images"]
    assert "All of these were done by an earlier run." in kpca("run", "in", *GIVEN).err


def test_an_interrupt_prints_how_to_resume(kpca: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from kpca_apps.denoise.batch import denoisers

    whole, calls = denoisers.clean_image, []

    def interrupted(*args: Any, **options: Any) -> Any:
        calls.append(1)
        if len(calls) == 2:
            signal.raise_signal(signal.SIGTERM)
        return whole(*args, **options)

    # A failing image counts as done neither in this run nor in the next.
    Path("in/0.png").write_bytes(b"no image")
    with monkeypatch.context() as patch:
        patch.setattr(denoisers, "clean_image", interrupted)
        done = kpca("run", "in", *GIVEN)
    assert (done.code, done.out) == (128 + signal.SIGTERM, "")
    assert done.err.splitlines()[1:] == [f"error: {STOPPED}"]
    assert not Path("kpca-denoised/report").exists()
    again = kpca("run", "in", *GIVEN)
    assert again.code == 5
    assert "Of these 1 was done by an earlier run and 2 by this one." in again.err


def test_a_bug_ends_as_one_after_the_other_images_are_done(
    kpca: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kpca_apps.denoise.batch import denoisers

    whole = denoisers.clean_image

    def fail_in_colour(pixels: np.ndarray, *args: Any, **options: Any) -> Any:
        if pixels.ndim == 3:
            raise AssertionError("no such case")
        return whole(pixels, *args, **options)

    monkeypatch.setattr(denoisers, "clean_image", fail_in_colour)
    done = kpca("run", "in", *GIVEN)
    assert (done.code, done.out) == (1, "kpca-denoised/report/report.html\n")
    last = done.err.splitlines()[-1]
    assert last.startswith("error: a bug in kpca, RuntimeError: sub/b.png: AssertionError: no such")
    assert sorted(path.name for path in Path("kpca-denoised/images").glob("[!.]*")) == [
        "a.png",
        "c.tif",
        "manifest.jsonl",
    ]
    monkeypatch.setenv("KPCA_DEBUG", "1")
    with pytest.raises(RuntimeError) as bug:
        kpca("run", "in", *GIVEN)
    assert "in fail_in_colour" in "".join(bug.value.__notes__)


@pytest.mark.skipif(sys.platform == "win32", reason="no process groups to interrupt")
def test_an_interrupt_at_the_keyboard_ends_workers_without_a_word(kpca: Run) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (24, 24), dtype=np.uint8)
    for number in range(4):
        save(f"many/{number:02}.png", noise)
    words = ["run", "many", "--sigma", "10", "--jobs", "2", "--quality", "fast"]
    # Signal the whole process group, as Ctrl-C does, as soon as one image is done.
    code = (
        f"{HEARS_INTERRUPTS}\nimport os\n"
        "from kpca_apps.cli.main import main\n"
        "from kpca_apps.denoise.batch.manifest import Manifest\n"
        "add = Manifest.add\n"
        "def add_and_interrupt(*args):\n"
        "    add(*args)\n"
        "    os.killpg(0, signal.SIGINT)\n"
        "Manifest.add = add_and_interrupt\n"
        f"raise SystemExit(main(['denoise', *{words!r}]))\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-W", "default", "-c", code],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    _, stderr = process.communicate()
    assert process.returncode == 130
    # A machine without compiled code reports the compilation first.
    lines = [line for line in stderr.splitlines() if not line.startswith("Compiling for")]
    assert len(lines) == 1
    assert lines[0].startswith("error: interrupted; run the same command again to resume: ")
