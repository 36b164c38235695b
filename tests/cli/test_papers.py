"""``kpca papers`` as a user meets it: words, files, exit codes."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from kpca_apps.cli.main import main
from kpca_apps.papers import data as data_module
from kpca_apps.papers import registry
from kpca_apps.papers.data import FILES, PaperFile
from kpca_apps.papers.registry import all_experiments
from tests.cli.conftest import Done, Run


@pytest.fixture
def kpca(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Run:
    """Run ``kpca papers ...`` in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("KPCA_DEBUG", raising=False)

    def run(*words: object) -> Done:
        capsys.readouterr()
        code = main(["papers", *map(str, words)])
        captured = capsys.readouterr()
        return Done(code, captured.out, captured.err)

    return run


@pytest.fixture
def copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[PaperFile]:
    """Two data files with addresses on this machine."""
    files = []
    for name, content in (("one.csv", b"1 2\n"), ("two.csv", b"3 4\n")):
        (tmp_path / name).write_bytes(content)
        digest = hashlib.sha256(content).hexdigest()
        files.append(PaperFile(f"set/{name}", digest, (tmp_path / name).as_uri()))
    for name in tuple(FILES):
        monkeypatch.delitem(data_module.FILES, name)
    monkeypatch.setitem(data_module.FILES, "set", tuple(files))
    return files


def test_every_experiment_is_listed(kpca: Run) -> None:
    done = kpca("list")
    assert done.code == 0 and done.err == ""
    names = [line.split()[0] for line in done.out.splitlines()[1:]]
    assert names == list(all_experiments())
    told = json.loads(kpca("list", "--json").out)
    assert [one["name"] for one in told] == names
    assert {"name": "chairs", "data": []}.items() <= {
        key: value for one in told if one["name"] == "chairs" for key, value in one.items()
    }.items()


def test_an_experiment_leaves_a_page_its_figures_and_its_numbers(kpca: Run) -> None:
    done = kpca("run", "clusters")
    assert done.code == 0
    assert done.out == "kpca-papers/report.html\n"
    assert "clusters: 1 reproduced and 1 reproduced with a condition." in done.err
    folder = Path("kpca-papers")
    html = (folder / "report.html").read_text(encoding="utf-8")
    assert "Three clusters" in html and "kpca papers run clusters --force" in html
    assert {path.name for path in (folder / "figures").iterdir()} == {
        "clusters-1.png",
        "clusters-2.png",
    }
    told = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    assert [claim["verdict"] for claim in told["experiments"][0]["claims"]] == [
        "reproduced",
        "reproduced with a condition",
    ]


def test_the_same_command_gives_the_same_bytes(kpca: Run) -> None:
    first, second = (
        kpca("run", "course", "--out", name, "--json", "--quiet") for name in ("a", "b")
    )
    assert json.loads(first.out)["experiments"] == json.loads(second.out)["experiments"]
    assert first.err == second.err == ""
    for name in ("figures/course-1.png", "figures/course-3.png"):
        assert Path("a", name).read_bytes() == Path("b", name).read_bytes()
    pages = [Path(name, "report.html").read_text(encoding="utf-8") for name in ("a", "b")]
    assert pages[0].replace("--out a", "--out b") == pages[1]


def test_an_experiment_without_its_data_says_how_to_get_it(kpca: Run) -> None:
    done = kpca("run", "usps")
    assert done.code == 3
    assert done.err.splitlines()[-1] == (
        "error: usps: needs usps/zip.train.gz: get the data with kpca papers fetch FOLDER, then "
        "name the folder with --data."
    )
    assert not Path("kpca-papers").exists()


def test_what_needs_no_data_runs_beside_what_lacks_it(
    kpca: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = all_experiments()
    few = {name: known[name] for name in ("clusters", "usps", "chairs")}
    monkeypatch.setattr(registry, "all_experiments", lambda: few)
    Path("empty").mkdir()
    done = kpca("run", "all", "--data", "empty")
    assert done.code == 5
    assert "not run: usps: usps/zip.train.gz: not in the data folder" in done.err
    assert "1 of 3 experiments not run." in done.err
    html = Path("kpca-papers/report.html").read_text(encoding="utf-8")
    assert "Three clusters" in html and "Not run: usps/zip.train.gz" in html
    assert "--data empty" in html


def test_bad_input_ends_before_any_work(kpca: Run) -> None:
    for words, code, told in (
        (("run", "nobody"), 2, "no experiment 'nobody'"),
        (("run", "clusters", "--data", "nowhere"), 3, "nowhere: no folder"),
        (("run", "clusters", "--out", "gone/deep"), 3, "does not exist"),
    ):
        done = kpca(*words)
        assert done.code == code and told in done.err
        assert len(done.err.splitlines()) == 1
    Path("kpca-papers").mkdir()
    Path("kpca-papers/mine.txt").write_text("mine", encoding="utf-8")
    assert kpca("run", "clusters", "--force").code == 4
    assert Path("kpca-papers/mine.txt").read_text(encoding="utf-8") == "mine"


def test_files_are_fetched_once_and_checked(kpca: Run, copies: list[PaperFile]) -> None:
    done = kpca("fetch", "papers")
    assert done.code == 0 and done.out == "papers\n"
    assert Path("papers/set/one.csv").read_bytes() == b"1 2\n"
    assert "2 of 2 files are there, 0 from before." in done.err
    Path("papers/set/one.csv").write_bytes(b"damaged")
    Path("two.csv").unlink()
    again = kpca("fetch", "papers")
    assert again.code == 0 and "2 of 2 files are there, 1 from before." in again.err
    assert Path("papers/set/one.csv").read_bytes() == b"1 2\n"


def test_what_is_not_the_file_is_not_kept(kpca: Run, copies: list[PaperFile]) -> None:
    Path("one.csv").write_bytes(b"something else")
    Path("two.csv").unlink()
    done = kpca("fetch", "papers")
    assert done.code == 5
    assert "failed: set/one.csv: another file stands at" in done.err
    assert "failed: set/two.csv: cannot be fetched" in done.err
    assert list(Path("papers").rglob("*.csv")) == []
    assert kpca("fetch", "gone/deep").code == 3
