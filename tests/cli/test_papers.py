import json
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kpca_apps.papers import registry
from kpca_apps.papers.data import PaperData
from kpca_apps.papers.registry import all_experiments
from kpca_apps.papers.result import Outcome
from kpca_apps.report.papers import page as gallery
from tests.cli.conftest import Run, assert_refused


@pytest.fixture
def kpca(papers: Run) -> Run:
    return papers


def test_every_experiment_is_listed(kpca: Run) -> None:
    done = kpca("list")
    assert done.code == 0 and done.err == ""
    known = all_experiments()
    lines = done.out.splitlines()
    assert all(len(line) <= 80 for line in lines)
    rows = [line.split(maxsplit=1) for line in lines[1:] if line[:2] == "  " and line[2] != " "]
    names = [name for name, _ in rows]
    assert names == list(known)
    assert [rest.split("  ")[0] for _, rest in rows] == [
        ", ".join(known[name].data) or "none" for name in names
    ]
    assert "Hoffmann (2007)" in lines
    assert any(line.endswith("Three clusters, exp(-0.3 |x - y|^2) [Fig. 1]") for line in lines)
    listed = json.loads(kpca("list", "--json").out)["experiments"]
    assert [trial["name"] for trial in listed] == names
    assert {"name": "chairs", "data": []}.items() <= {
        key: value for trial in listed if trial["name"] == "chairs" for key, value in trial.items()
    }.items()


@pytest.mark.release
def test_an_experiment_leaves_a_page_its_figures_and_its_numbers(kpca: Run) -> None:
    done = kpca("run", "clusters")
    assert done.code == 0 and done.out == "kpca-papers-clusters/report.html\n"
    assert "clusters: 1 reproduced and 1 reproduced with a condition." in done.err
    folder = Path("kpca-papers-clusters")
    html = (folder / "report.html").read_text(encoding="utf-8")
    assert "Three clusters" in html and ">kpca papers run clusters<" in html
    assert {path.name for path in (folder / "figures").iterdir()} == {
        "clusters-1.png",
        "clusters-2.png",
    }
    content = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    assert [claim["verdict"] for claim in content["experiments"][0]["claims"]] == [
        "reproduced",
        "reproduced with a condition",
    ]


def test_an_experiment_without_its_data_says_how_to_get_it(kpca: Run) -> None:
    done = kpca("run", "usps")
    assert done.code == 3
    assert done.err.rstrip("\n") == (
        "error: usps: needs usps/zip.train.gz: get the data with kpca papers fetch FOLDER, then "
        "name the folder with --data."
    )
    assert not Path("kpca-papers-usps").exists()


@pytest.mark.release
def test_experiments_without_data_run_if_others_lack_theirs(
    kpca: Run, undrawn: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = all_experiments()
    few = {name: known[name] for name in ("clusters", "usps", "chairs")}
    monkeypatch.setattr(registry, "all_experiments", lambda: few)
    Path("empty").mkdir()
    done = kpca("run", "all", "--data", "empty")
    assert done.code == 5 and "not run: usps: usps/zip.train.gz: not in the data folder" in done.err
    assert "not run: chairs: the images cannot be had" in done.err
    assert "1 of 3 experiments could not be run; chairs cannot be tried: the data" in done.heard
    html = Path("kpca-papers-all/report.html").read_text(encoding="utf-8")
    assert "Three clusters" in html and "Not run: usps/zip.train.gz" in html
    assert "--data empty" in html


def test_bad_input_ends_before_any_work(kpca: Run) -> None:
    Path("a-file").write_text("", encoding="utf-8")
    Path("loop").symlink_to("loop")
    for words, code, message in (
        (("run", "no such"), 2, 'no experiment "no such". For the names, run: kpca papers list'),
        (
            ("run", "half-moon"),
            2,
            '"half-moon". Did you mean "half-moons"? For the names, run: kpca papers list',
        ),
        (("run", "clusters", "--data", "a-file"), 3, "a-file: is not a folder"),
        (("run", "clusters", "--data", "nowhere"), 3, "nowhere: is not a folder"),
        (("run", "clusters", "--data", "loop/deep"), 3, "loop/deep: cannot be read (Too many"),
        (("run", "clusters", "--out", "lost/deep"), 3, "does not exist"),
        (("run", "clusters", "--data", ""), 2, "--data is empty"),
        (("fetch", ""), 2, "a word of the command is empty"),
    ):
        assert_refused(kpca(*words), code, message)
    Path("kpca-papers-clusters").mkdir()
    Path("kpca-papers-clusters/mine.txt").write_text("mine", encoding="utf-8")
    assert kpca("run", "clusters", "--force").code == 4
    assert Path("kpca-papers-clusters/mine.txt").read_text(encoding="utf-8") == "mine"


def _with_failure(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """Replace the experiments by three, the second of which raises an error."""
    known = all_experiments()

    def fail(data: PaperData) -> Outcome:
        raise error

    few = {name: known[name] for name in ("chairs", "course", "statements")}
    few["course"] = replace(few["course"], run=fail)
    monkeypatch.setattr(registry, "all_experiments", lambda: few)


def test_an_interrupt_keeps_what_is_done(kpca: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    _with_failure(monkeypatch, KeyboardInterrupt())
    done = kpca("run", "all")
    assert done.code == 130 and done.out == ""
    assert [line for line in done.err.splitlines() if line.startswith("error")] == [
        "error: interrupted; 1 of 3 experiments were done, and are saved in "
        "kpca-papers-all/report.html"
    ]
    content = json.loads(Path("kpca-papers-all/result.json").read_text(encoding="utf-8"))
    assert [trial["failed"] for trial in content["experiments"]] == [
        "",
        "interrupted before it was done.",
        "interrupted before it was done.",
    ]
    html = Path("kpca-papers-all/report.html").read_text(encoding="utf-8")
    assert "Not run: interrupted before it was done." in html


def _interrupting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Raise an interrupt while the page is rendered."""
    render = gallery.render_gallery

    def interrupted(result: Any) -> str:
        signal.raise_signal(signal.SIGINT)
        return render(result)

    monkeypatch.setattr(gallery, "render_gallery", interrupted)


def test_a_second_interrupt_does_not_lose_what_the_first_kept(
    kpca: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    _with_failure(monkeypatch, KeyboardInterrupt())
    _interrupting(monkeypatch)
    before = signal.getsignal(signal.SIGINT)
    done = kpca("run", "all")
    assert done.code == 130
    assert done.err.splitlines()[-2:] == [
        "interrupted; writing the 1 experiment done",
        "error: interrupted; 1 of 3 experiments were done, and are saved in "
        "kpca-papers-all/report.html",
    ]
    assert Path("kpca-papers-all/report.html").is_file()
    assert signal.getsignal(signal.SIGINT) is before


def test_an_interrupt_while_drawing_comes_too_late(
    kpca: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    _interrupting(monkeypatch)
    done = kpca("run", "chairs")
    assert (done.code, done.out) == (0, "kpca-papers-chairs/report.html\n")


def test_an_interrupted_run_replaces_no_earlier_result(
    kpca: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert kpca("run", "chairs", "--out", "x").code == 0
    before = {path: path.read_bytes() for path in Path("x").iterdir()}
    _with_failure(monkeypatch, KeyboardInterrupt())
    for _ in range(2):
        done = kpca("run", "all", "--out", "x", "--force")
        assert done.code == 130 and done.err.endswith(
            "are saved in x.interrupted/report.html; x is as it was\n"
        )
    assert {path: path.read_bytes() for path in Path("x").iterdir()} == before
    assert json.loads(Path("x.interrupted/result.json").read_text(encoding="utf-8"))
    assert sorted(map(str, Path().iterdir())) == ["x", "x.interrupted"]
    Path("x.interrupted/mine").touch()
    other = 'x.interrupted: exists and holds something other than an earlier run, "mine"'
    assert_refused(kpca("run", "all", "--out", "x", "--force"), 4, other)


def test_an_interrupt_before_anything_is_done_leaves_nothing(
    kpca: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    _with_failure(monkeypatch, KeyboardInterrupt())
    done = kpca("run", "course")
    assert done.code == 130 and done.err == "error: interrupted; nothing was written\n"
    assert not Path("kpca-papers-course").exists()


@pytest.mark.release
@pytest.mark.parametrize(
    ("error", "message"),
    [
        (MemoryError(), "not run: course: the memory of this machine does not suffice."),
        (
            ZeroDivisionError("by zero"),
            "not run: course: a bug in kpca, ZeroDivisionError: by zero",
        ),
    ],
)
def test_a_failed_experiment_does_not_lose_the_others(
    kpca: Run, monkeypatch: pytest.MonkeyPatch, error: Exception, message: str
) -> None:
    _with_failure(monkeypatch, error)
    done = kpca("run", "all", "--quiet")
    assert done.code == 5 and done.err.startswith(message) and len(done.err.splitlines()) == 1
    page = Path("kpca-papers-all/report.html").read_text(encoding="utf-8")
    assert "Statements put to the test" in page and "MPI chairs" in page


def test_a_page_that_memory_does_not_suffice_for_has_its_own_sentence(
    kpca: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_much(result: Any) -> str:
        raise MemoryError

    monkeypatch.setattr(gallery, "render_gallery", too_much)
    done = kpca("run", "chairs", "--quiet")
    assert done.code == 4 and len(done.err.splitlines()) == 1
    assert "run the experiments one by one" in done.err and "--landmarks" not in done.err
    assert [*Path().iterdir()] == []


def test_plotting_is_imported_before_the_first_experiment(
    kpca: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    _with_failure(monkeypatch, AssertionError("an experiment was run"))
    monkeypatch.setitem(sys.modules, "kpca_apps.report.papers.page", None)
    done = kpca("run", "course")
    assert done.code == 1 and "kpca_apps.report.papers.page" in done.err


def test_a_bug_in_the_only_experiment_is_reported_as_a_bug(
    kpca: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    _with_failure(monkeypatch, ZeroDivisionError("by zero"))
    done = kpca("run", "course")
    assert done.code == 1 and "a bug in kpca, ZeroDivisionError" in done.err


def test_only_json_goes_to_stdout(kpca: Run) -> None:
    def refuse(constant: str) -> None:
        raise ValueError(constant)

    content = json.loads(kpca("run", "statements", "--json").out, parse_constant=refuse)
    written = Path("kpca-papers-statements/result.json").read_text(encoding="utf-8")
    assert content == json.loads(written, parse_constant=refuse)
    assert [trial["name"] for trial in content["experiments"]] == ["statements"]


def test_a_run_without_figures_can_be_replaced(kpca: Run) -> None:
    for words in ((), ("--force",)):
        assert kpca("run", "chairs", *words).code == 0
    assert not Path("kpca-papers-chairs/figures").exists()
    assert_refused(kpca("run", "chairs"), 4, "replace it with --force")
