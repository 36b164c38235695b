"""A table read in parts gives the same result as in memory, with any scheduler."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import roc_auc_score

from kpca_apps.errors import InputError
from kpca_apps.novelty.columns.parts import Execution, take_rows
from kpca_apps.novelty.columns.plan import ColumnOptions
from kpca_apps.novelty.compare.comparison import compare_table
from kpca_apps.novelty.explain import Line, explain_row
from kpca_apps.novelty.result import ScreeningResult
from kpca_apps.novelty.run import score, screen
from kpca_apps.novelty.screening.fit import fit_table
from kpca_apps.novelty.screening.model import NoveltyModel, ScreeningOptions, load_model, save_model
from kpca_apps.novelty.written_tables import write_tables
from kpca_apps.options import LearnFrom
from kpca_apps.report.result_json import result_to_json
from kpca_apps.system.workers import Workers
from kpca_apps.tables.frames import table_from_frame
from kpca_apps.tables.opening import read_table
from kpca_apps.tables.table import PartedTable, Table
from tests.novelty.tables import changed
from tests.tables.whole_and_parts import in_parts

# Dask closes workers while their connections are in use, which gives the warnings ignored here.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")

ONLY_IN_PARTS = ("read", "rows drawn for columns and figures")
DRAWN = 300


@pytest.fixture
def small_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lower the sample size from 100,000 rows to 300."""
    for module in ("novelty.screening.model", "engine.rows"):
        monkeypatch.setattr(f"kpca_apps.{module}.SAMPLE_ROWS", DRAWN)


def mixed(n_rows: int, seed: int = 0) -> pl.DataFrame:
    """Return rows on a ring with categories, gaps, faults and dates; every fiftieth row is odd."""
    rng = np.random.default_rng(seed)
    angle = rng.uniform(0, 6, n_rows)
    planted = np.arange(n_rows) % 50 == 20
    radius = np.where(planted, 3.0, 1.0)
    x = [f"{value:.4f}" for value in radius * np.cos(angle) + 0.05 * rng.normal(size=n_rows)]
    y = [f"{value:.4f}" for value in radius * np.sin(angle) + 0.05 * rng.normal(size=n_rows)]
    x[5], x[n_rows - 3], y[7] = "1O.5", "?!", ""
    return pl.DataFrame(
        {
            "bird": [f"b{row}" for row in range(n_rows)],
            "x": x,
            "y": y,
            "kind": rng.choice(["rook", "crow", "daw"], n_rows),
            "age": [None if row % 37 == 5 else row % 11 for row in range(n_rows)],
            "seen": [f"2020-0{1 + row % 9}-{1 + row % 28:02d}" for row in range(n_rows)],
            "planted": planted.astype(int),
        }
    )


OPTIONS = ScreeningOptions(
    share=0.02, columns=ColumnOptions(id="bird", exclude=("planted",)), explain=5, seed=3
)
LABELLED = replace(OPTIONS, columns=ColumnOptions(id="bird", label="planted"))


@pytest.fixture(scope="module")
def birds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("birds") / "birds.csv"
    mixed(700).write_csv(path)
    return path


@pytest.fixture(scope="module")
def whole(birds: Path) -> ScreeningResult:
    return screen(read_table(birds), options=OPTIONS)[0]


@pytest.fixture(autouse=True)
def no_baselines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kpca_apps.novelty.compare.baselines.BASELINES", ())


def assert_same(whole: ScreeningResult, parted: ScreeningResult, atol: float = 1e-10) -> None:
    np.testing.assert_allclose(parted.rows.scores, whole.rows.scores, rtol=0, atol=atol)
    np.testing.assert_array_equal(parted.rows.is_flagged, whole.rows.is_flagged)
    np.testing.assert_array_equal(parted.rows.ranks, whole.rows.ranks)
    if whole.rows.p_values is not None:
        np.testing.assert_allclose(parted.rows.p_values, whole.rows.p_values, rtol=0, atol=atol)
    settings = {k: v for k, v in parted.run.settings.items() if k not in ONLY_IN_PARTS}
    assert settings.keys() == whole.run.settings.keys()
    assert set(whole.run.warnings) <= set(parted.run.warnings)
    for entry, other in zip(whole.ranked, parted.ranked, strict=True):
        assert (entry.row, entry.line, entry.id, entry.cells) == (
            other.row,
            other.line,
            other.id,
            other.cells,
        )
        assert entry.hints == other.hints
        assert [(r.column, r.seen, r.expected) for r in entry.reasons] == [
            (r.column, r.seen, r.expected) for r in other.reasons
        ]
    assert (parted.findings.odd_cells, parted.findings.n_odd_cells) == (
        whole.findings.odd_cells,
        whole.findings.n_odd_cells,
    )
    for profile, of_parts in zip(whole.columns, parted.columns, strict=True):
        assert (profile.role, profile.n_missing) == (of_parts.role, of_parts.n_missing)


def test_a_table_in_parts_is_screened_as_one_in_memory(birds: Path) -> None:
    whole = screen(read_table(birds), options=LABELLED)[0]
    parted = screen(in_parts(birds, 128), options=LABELLED)[0]
    assert_same(whole, parted)
    assert any(
        "2 cells are not numbers and count as missing, first on line 7" in w
        for w in parted.run.warnings
    )
    assert next(w for w in parted.run.warnings if w not in whole.run.warnings).startswith(
        "The table has 700 rows and is read in parts"
    )
    assert parted.run.settings["read"] == "in parts of 128 rows"
    assert parted.evaluations[0].methods[0].auroc == pytest.approx(
        whole.evaluations[0].methods[0].auroc, abs=1e-12
    )


@pytest.mark.release
@pytest.mark.parametrize("rule", [{"fdr": 0.2}, {"count": 9}])
def test_a_reference_and_a_table_may_both_be_in_parts(
    birds: Path, tmp_path: Path, rule: dict[str, float]
) -> None:
    clean = tmp_path / "clean.csv"
    mixed(400, seed=1).filter(pl.col("planted") == 0).drop("planted").write_csv(clean)
    given = ScreeningOptions(**rule, columns=ColumnOptions(exclude=("bird", "planted")), explain=3)
    whole = screen(read_table(birds), reference=read_table(clean), options=given)[0]
    assert_same(
        whole, screen(in_parts(birds, 128), reference=in_parts(clean, 128), options=given)[0]
    )


@pytest.mark.usefixtures("small_sample")
@pytest.mark.parametrize("learn_from", ["sample", "all"])
def test_all_rows_are_scored_whether_a_sample_is_learned_from_or_all(
    birds: Path, learn_from: LearnFrom
) -> None:
    options = replace(LABELLED, learn_from=learn_from)
    result, model = screen(in_parts(birds, 128), options=options)
    assert model.n_training == {"sample": 300, "all": 700}[learn_from]
    assert result.run.settings.get("rows learned from") == {"sample": 300, "all": None}[learn_from]
    assert any("was learned from 300 rows" in w for w in result.run.warnings) == (
        learn_from == "sample"
    )
    assert result.n_flagged == 14
    assert (result.n_rows, result.run.settings["rows drawn for columns and figures"]) == (700, 300)
    assert roc_auc_score(pl.read_csv(birds)["planted"].to_numpy(), result.rows.scores) > 0.95
    assert sorted(result.rows.ranks) == list(range(1, 701))
    missing = {column.name: column.n_missing for column in result.columns}
    assert (missing["x"], missing["y"], missing["age"]) == (2, 1, 19)
    assert "300 rows drawn from it are judged" in result.evaluations[0].setting


@pytest.mark.usefixtures("small_sample")
@pytest.mark.parametrize("clean", [False, True])
def test_a_model_of_a_sample_is_that_of_the_sample_as_a_table(birds: Path, clean: bool) -> None:
    settings = ScreeningOptions(columns=ColumnOptions(exclude=("bird", "planted")), explain=3)
    parted = in_parts(birds, 128)
    model, rows = fit_table(parted, settings, clean=clean)
    drawn = take_rows(parted, rows.sample_index, Execution())
    of_drawn, _ = fit_table(drawn, settings, clean=clean)
    index, of_all = rows.sample_index, model.training_scores
    np.testing.assert_array_equal(of_all[index], of_drawn.training_scores)
    others = np.setdiff1d(np.arange(700), index)
    as_new = score(of_drawn, take_rows(parted, others, Execution())).rows.scores
    np.testing.assert_allclose(of_all[others], as_new, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(model.detector.landmarks, index[of_drawn.detector.landmarks])
    near = model.detector.neighbours
    np.testing.assert_array_equal(
        near.rows, rows.encoder.matrix(take_rows(parted, near.index, Execution()))
    )
    if clean:
        assert model.detector.threshold == of_drawn.detector.threshold
    else:
        assert (of_all > model.detector.flags_above).sum() == 7


@pytest.mark.usefixtures("small_sample")
def test_accepted_rows_are_never_listed_though_few_of_them_are_drawn(birds: Path) -> None:
    accept = table_from_frame(mixed(700).select("bird")[20:320:50])
    settings = replace(OPTIONS, count=14, share=None)
    result, model = screen(in_parts(birds, 128), accept=[accept], options=settings)
    assert result.rows.is_accepted is not None
    assert (result.rows.is_accepted.sum(), result.n_flagged) == (6, 14)
    assert not (result.rows.is_flagged & result.rows.is_accepted).any()
    assert result.lists.accepted is not None
    assert result.lists.accepted.statement.endswith(
        "not listed; where it drew them, the model learned them as normal."
    )
    assert (result.rows.scores[~result.rows.is_accepted] > model.detector.flags_above).sum() == 14


@pytest.mark.usefixtures("small_sample")
def test_bytes_of_a_sample_are_the_same_for_any_number_of_threads(
    birds: Path, tmp_path: Path
) -> None:
    bytes_of = set()
    for n_workers in (1, 3):
        with Workers("threads", n_workers=n_workers) as workers:
            table = in_parts(birds, 128)
            screened = screen(table, options=OPTIONS, execution=Execution(workers))
            bytes_of.add(written_bytes(*screened, table, tmp_path, workers))
    assert len(bytes_of) == 1


def written_bytes(
    result: ScreeningResult, model: NoveltyModel, table: PartedTable, folder: Path, workers: Workers
) -> bytes:
    named, execution = changed(result, flagged_file="flagged.csv"), Execution(workers)
    write_tables(folder, table, named, model.encoder.plan, execution=execution)
    lists = [(folder / name).read_bytes() for name in ("scored.csv", "flagged.csv")]
    return b"".join(lists) + result_to_json(result).encode()


@pytest.mark.release
def test_other_processes_find_the_same(birds: Path, whole: ScreeningResult) -> None:
    with Workers("processes", n_workers=2) as workers:
        assert_same(
            whole, screen(in_parts(birds, 256), options=OPTIONS, execution=Execution(workers))[0]
        )


def test_a_part_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    path = tmp_path / "changing.parquet"
    mixed(300).write_parquet(path)
    table = in_parts(path, 128)
    mixed(299).write_parquet(path)
    words = r"Rows 1 to 128: .*changing\.parquet: the file was changed"
    with pytest.raises(InputError, match=words):
        screen(table)


@pytest.mark.release
def test_scores_of_many_training_rows_are_not_saved_and_the_table_is_reported(
    birds: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("novelty.screening.model", "engine.rows"):
        monkeypatch.setattr(f"kpca_apps.{module}.SAMPLE_ROWS", 300)
    settings = ScreeningOptions(columns=ColumnOptions(exclude=("bird", "planted")), explain=3)
    model = fit_table(in_parts(birds, 128), settings)[0]
    assert len(model.training_scores) == 700
    save_model(model, tmp_path / "m.kpca")
    again = load_model(tmp_path / "m.kpca")
    assert len(again.training_scores) == 0
    result = score(again, in_parts(birds, 128))
    assert any(
        "too many rows for their leave-one-out scores to be saved" in w for w in result.run.warnings
    )
    monkeypatch.undo()
    new = score(again, read_table(birds))
    np.testing.assert_allclose(result.rows.scores, new.rows.scores, rtol=0, atol=1e-12)


@pytest.mark.release
def test_one_row_of_many_is_explained(birds: Path) -> None:
    model = fit_table(read_table(birds), OPTIONS, clean=False)[0]
    for row in ("b411", "412", Line(413)):
        whole, _ = explain_row(model, read_table(birds), row)
        parted, _ = explain_row(model, in_parts(birds, 128), row)
        assert parted == whole
        assert whole.row == 412


def test_a_comparison_draws_rows_from_a_large_table(
    birds: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kpca_apps.engine.rows.SAMPLE_ROWS", 300)
    result = compare_table(in_parts(birds, 128), LABELLED)
    assert result.evaluations[0].n_rows == 300
    assert result.run.warnings[0] == (
        "The table has 700 rows; the methods were compared on 300 drawn from them."
    )


@pytest.mark.release
def test_a_large_table_in_memory_is_cut_into_parts(
    birds: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kpca_apps.novelty.columns.parts.SAMPLE_ROWS", 300)
    table = read_table(birds)
    assert isinstance(table, Table)
    assert screen(table, options=OPTIONS)[0].run.settings["read"] == "in parts of 700 rows"
