import re
from importlib import import_module
from pathlib import Path

from kpca_apps import papers
from kpca_apps.errors import MemoryLimitError
from kpca_apps.papers.data import FILES, PaperData
from kpca_apps.papers.registry import REFERENCES, all_experiments, gathered, not_run, reproduce
from kpca_apps.papers.result import Claim, Experiment, Outcome

# Functions that no experiment calls directly, but that other methods use.
SERVE_OTHERS = {"assembled", "feature_distances"}


def experiment(run, *data):
    return Experiment("name", "Author (2001), Fig. 1", "A title", data, run, "As the paper has it.")


def outcome(data):
    right = Claim("a", 1.0, 1.0, 0.0, "reproduced")
    return Outcome((right, Claim("b", 1.0, 2.0, 0.5, "not reproduced")))


def too_large(data):
    raise MemoryLimitError("needs 90 GB")


def test_a_result_names_paper_title_and_method():
    done = reproduce(experiment(outcome), PaperData(None))
    assert (done.name, done.paper, done.title) == ("name", "Author (2001), Fig. 1", "A title")
    assert not done.failed and done.files == {}
    assert [claim.verdict for claim in done.outcome.claims] == ["reproduced", "not reproduced"]
    assert done.method == "As the paper has it."
    assert not_run(experiment(outcome), "lost").method == done.method


def test_missing_data_or_memory_does_not_stop_other_experiments():
    lacking = reproduce(experiment(outcome, "usps"), PaperData(Path("nowhere")))
    large = reproduce(experiment(too_large), PaperData(None))
    assert "usps/zip.train.gz" in lacking.failed and large.failed == "needs 90 GB"
    result = gathered([lacking, large, reproduce(experiment(outcome), PaperData(None))])
    assert result.n_failed == 2
    assert [result.count(v) for v in ("reproduced", "not reproduced", "not run")] == [1, 1, 2]
    assert set(result.versions) >= {"numpy", "kpca-apps"}


def test_the_checksums_of_the_data_go_along(monkeypatch):
    monkeypatch.setattr(PaperData, "require", lambda self, name: None)
    done = reproduce(experiment(outcome, "cancer", "segmentation"), PaperData(None))
    read = {file.path: file.sha256 for name in ("cancer", "segmentation") for file in FILES[name]}
    assert gathered([done]).files == read


def test_every_method_and_kernel_is_reached_by_an_experiment():
    """Each public function of the methods and each kernel is called by some experiment."""
    room = Path(papers.__file__).parent
    sources = "\n".join(path.read_text("utf-8") for path in (room / "experiments").rglob("*.py"))
    for path in (room / "kernels.py", *(room / "methods").glob("[!_]*.py")):
        name = ".".join(path.relative_to(room.parent).with_suffix("").parts)
        module = import_module(f"kpca_apps.{name}")
        public = {
            name
            for name, value in vars(module).items()
            if getattr(value, "__module__", "") == module.__name__ and not name.startswith("_")
            if not isinstance(value, type)
        }
        missing = {name for name in public if not re.search(rf"\b{name}\(", sources)}
        assert public and missing <= SERVE_OTHERS, (module.__name__, missing)


def test_the_texts_are_named_in_full_and_as_the_experiments_cite_them():
    assert gathered([]).references == REFERENCES
    cited = {(text.authors, text.year) for text in REFERENCES}
    assert len(cited) == len(REFERENCES) == 8 and all(
        text.title and text.where for text in REFERENCES
    )
    for experiment in all_experiments().values():
        for author, year in re.findall(r"(\w+)(?: et al\.)? \((\d{4})\)", experiment.paper):
            assert any(author in who and year == when for who, when in cited), experiment.paper
