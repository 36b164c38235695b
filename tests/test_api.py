import inspect
import re
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from kpca_apps import (
    ConfigError,
    Execution,
    InputError,
    Screening,
    check_rules,
    find_rules,
    fit_model,
    load_model,
    open_table,
    save_model,
    score_table,
    screen_table,
)
from kpca_apps.novelty.columns.plan import ColumnOptions
from kpca_apps.novelty.run import screen
from kpca_apps.novelty.screening.model import RULES, ScreeningOptions
from kpca_apps.novelty.written_tables import found_columns
from kpca_apps.options import READING
from kpca_apps.report.novelty.page import render_in_notebook, render_screening
from kpca_apps.system import workers
from kpca_apps.tables.input_file import Reading
from tests.novelty.tables import correlated, frame_of
from tests.report.examples import SCREENINGS

FUNCTIONS = (screen_table, fit_model, score_table)


def birds(n: int = 60, seed: int = 0, *, odd: int = 3) -> pd.DataFrame:
    """Return the shared test table as a pandas frame, with the names as its index."""
    columns = frame_of(n, seed, odd=odd).drop("kind").to_dict(as_series=False)
    return pd.DataFrame(columns).set_index("name")


@pytest.fixture(scope="module")
def result() -> Screening:
    return screen_table(birds(), count=3)


def test_every_option_is_a_keyword_with_its_default() -> None:
    known: dict[str, Any] = vars(ScreeningOptions()) | vars(ColumnOptions())
    del known["columns"], known["layout"]
    for function, lacking in ((screen_table, set()), (fit_model, {"positive"})):
        defaults = {n: option.default for n, option in signature(function).items() if n in known}
        assert defaults == {n: value for n, value in known.items() if n not in lacking}
    of_model = dict.fromkeys((*RULES, "id", "label", "positive", "explain", "jobs", "hide"))
    defaults = {n: option.default for n, option in signature(score_table).items() if n in known}
    assert defaults == of_model
    assert {*READING} == {*Reading.__annotations__}
    with pytest.raises(TypeError, match=r"argument 'shar'. Did you mean \"share\""):
        screen_table(birds(), shar=0.1)  # type: ignore[call-arg]


def signature(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    return dict(inspect.signature(function).parameters)


def test_keywords_do_what_options_do() -> None:
    table = correlated(80, odd=4)
    columns = ColumnOptions(id="name", label="kind", categorical=("colour",), exclude=("mass",))
    given = ScreeningOptions(share=0.05, columns=columns, positive="odd", seed=3, n_landmarks=40)
    expected, _ = screen(table, options=given)
    result = screen_table(
        frame_of(80, odd=4),
        share=0.05,
        id="name",
        label="kind",
        positive="odd",
        exclude="mass",
        categorical=["colour"],
        seed=3,
        n_landmarks=40,
    )
    assert result.rows.scores.tobytes() == expected.rows.scores.tobytes()
    assert result.ranked == expected.ranked and result.evaluations[0].positive == "odd"
    assert result.run.command == (
        "kpca_apps.screen_table(table, share=0.05, id='name', label='kind', positive='odd', "
        "exclude='mass', categorical=['colour'], n_landmarks=40, seed=3)"
    )


def test_paths_frames_and_tables_are_the_same_table(tmp_path: Path) -> None:
    frame = frame_of(40).select("wing", "bill", "mass")
    path = tmp_path / "birds.csv"
    frame.write_csv(path)
    given = (frame, path, str(path), open_table(path), frame.to_arrow(), frame.to_numpy())
    scores = [screen_table(table, explain=0).rows.scores for table in given]
    assert all(np.allclose(scores[0], other, rtol=1e-12) for other in scores[1:])
    with pytest.raises(InputError, match="int is"):
        screen_table(3)
    with pytest.raises(InputError, match=r"^reference: list"):
        screen_table(frame, reference=[3])


def test_reading_options_apply_to_paths_and_not_to_frames(tmp_path: Path) -> None:
    path = tmp_path / "birds.csv"
    frame = frame_of(40).select("wing", "bill")
    path.write_bytes(frame.write_csv(separator="|").encode("utf-16"))
    found = screen_table(path, delimiter="bar", encoding="utf-16", explain=0)
    assert (found.source.delimiter, found.source.encoding) == ("|", "utf-16")
    assert found.run.command.startswith("kpca_apps.screen_table('birds.csv', explain=0, delimiter=")
    score_table(found.model, path, delimiter="|")
    screen_table(frame, reference=path, delimiter="|", explain=0)
    for function, given in ((screen_table, (frame,)), (score_table, (found.model, frame))):
        with pytest.raises(ConfigError, match="delimiter= says how a file is read: give its path"):
            function(*given, delimiter="|")  # type: ignore[operator]


def test_several_files_are_one_table(tmp_path: Path) -> None:
    paths = [tmp_path / "a.csv", tmp_path / "b.csv"]
    frame = frame_of(40).select("wing", "bill")
    for path, half in zip(paths, (frame[:20], frame[20:]), strict=True):
        path.write_text("A title\n" + half.write_csv())
    paths[0].write_text(paths[0].read_text() + "1,2,3\n")
    with pytest.raises(InputError, match="leave such lines out with bad_lines= skip"):
        screen_table(paths, skip_rows=1)
    result = screen_table(paths, skip_rows=1, bad_lines="skip", count=2, explain=0)
    assert result.n_rows == 40
    assert result.to_frame()["wing"].cast(pl.Float64).to_list() == frame["wing"].to_list()
    assert result.run.command == (
        "kpca_apps.screen_table(['a.csv', 'b.csv'], count=2, explain=0, skip_rows=1, "
        "bad_lines='skip')"
    )
    model = fit_model(paths[1], skip_rows=1)
    assert score_table(model, str(tmp_path / "b*.csv"), skip_rows=1, explain=0).n_rows == 20


def test_the_index_of_pandas_names_the_rows_and_comes_back(result: Screening) -> None:
    frame = birds()
    assert [row.id for row in result.ranked[:3]] == [
        frame.index[row.row - 1] for row in result.ranked[:3]
    ]
    assert {column.name: column.role for column in result.columns}["name"] == "id"
    whole = result.to_frame()
    pd.testing.assert_index_equal(whole.index, frame.index)
    pd.testing.assert_frame_equal(whole[frame.columns], frame)
    assert list(whole.columns[4:]) == [
        name for name, values in found_columns(result).items() if values is not None
    ]
    np.testing.assert_array_equal(whole["novelty_score"], result.rows.scores)
    assert whole["flagged"].dtype == bool
    flagged = result.flagged()
    expected = whole[whole["flagged"]].sort_values("rank")
    pd.testing.assert_frame_equal(flagged[whole.columns], expected)
    assert set(flagged.columns) - set(whole.columns) == {"row", "hint"}
    assert set(flagged.index) == {"bird 0057", "bird 0058", "bird 0059"}
    # An input column named like an added column is renamed.
    renamed = screen_table(frame.rename(columns={"mass": "rank"}), explain=0)
    assert list(renamed.to_frame().columns)[:4] == ["wing", "bill", "rank_input", "colour"]


def test_another_column_names_the_rows_on_request() -> None:
    frame = birds().assign(code=[f"c{k:03d}" for k in range(60)])
    result = screen_table(frame, id="code", explain=0)
    assert result.ranked[0].id == frame["code"].iloc[result.ranked[0].row - 1]
    assert "name" not in {column.name for column in result.columns}
    assert result.to_frame().index.name == "name"
    with pytest.raises(ConfigError, match=r"^table: id= names a column .* Did you mean .code.\?"):
        screen_table(frame, id="kode")


def test_numbers_that_pandas_holds_as_categories_are_categories() -> None:
    frame = birds(120).assign(zone=pd.Categorical(np.arange(120) % 12))

    def role(**options: Any) -> str:
        columns = screen_table(frame, explain=0, **options).columns
        return next(column.role for column in columns if column.name == "zone")

    assert role() == "categorical" and role(numeric="zone") == "numeric"
    assert role(exclude=["zone"]) == "excluded" and role(label="zone", positive="0") == "label"
    model = fit_model(frame)
    some, same = frame.iloc[:60], frame.assign(zone=np.arange(120) % 12).iloc[:60]
    np.testing.assert_array_equal(
        score_table(model, some, explain=0).rows.scores,
        score_table(model, same, explain=0).rows.scores,
    )


def test_the_index_of_a_reference_is_no_column_of_it() -> None:
    table, clean = birds(odd=0).reset_index(drop=True), birds(80, seed=1, odd=0)
    expected = screen_table(table, reference=clean.reset_index(drop=True), explain=0).rows.scores
    for reference in (clean, clean.reset_index(drop=True).iloc[::-1]):
        result = screen_table(table, reference=reference, explain=0)
        assert [column.name for column in result.columns] == ["wing", "bill", "mass", "colour"]
    np.testing.assert_array_equal(
        screen_table(table, reference=clean, explain=0).rows.scores, expected
    )


def test_the_index_names_scored_rows_unless_the_model_knows_better() -> None:
    frame = birds().assign(code=[f"c{k:03d}" for k in range(60)])
    by_code, plain = fit_model(frame, id="code"), fit_model(frame.reset_index(drop=True))
    some = frame.iloc[5:25]
    assert score_table(by_code, some).ranked[0].id.startswith("c0")  # type: ignore[union-attr]
    assert score_table(by_code, some.drop(columns="code")).ranked[0].id.startswith("bird")  # type: ignore[union-attr]
    named = score_table(plain, some)
    assert named.ranked[0].id.startswith("bird")  # type: ignore[union-attr]
    assert not any("left unused" in text for text in named.run.warnings)
    assert {column.name: column.role for column in named.columns}["name"] == "id"
    hidden = score_table(plain, some, hide="name")
    assert "bird" not in repr(hidden) + hidden._repr_html_()


def test_non_text_names_are_written_as_text() -> None:
    frame = birds().reset_index(drop=True)
    numbered = frame.set_axis(range(4), axis=1)
    left_out = screen_table(numbered, exclude=[3], categorical=(), id=0, explain=0)
    assert [column.role for column in left_out.columns] == ["id", "numeric", "numeric", "excluded"]
    pairs = frame.set_axis(pd.MultiIndex.from_product([["a", "b"], ["x", "y"]]), axis=1)
    result = screen_table(pairs, exclude=[("b", "y")], explain=0)
    assert [column.name for column in result.columns] == ["a / x", "a / y", "b / x", "b / y"]
    assert result.to_frame().columns.nlevels == 2


def test_a_model_is_fitted_saved_and_scores_frames(tmp_path: Path) -> None:
    clean, new = birds(100, odd=0), birds(30, seed=1)
    save_model(fit_model(clean, alpha=0.1), tmp_path / "m.kpca")
    result = score_table(load_model(tmp_path / "m.kpca"), new)
    assert result.to_frame().index.equals(new.index)
    np.testing.assert_array_equal(result.rows.is_flagged, result.rows.p_values <= 0.1)
    as_screened = screen_table(new, reference=clean, alpha=0.1)
    np.testing.assert_array_equal(result.rows.scores, as_screened.rows.scores)
    # A screening's model scores like any other model.
    again = score_table(as_screened.model, new, count=2, explain=1)
    assert (again.n_flagged, again.flagged().shape[0]) == (2, again.n_listed)
    assert again.run.command == "kpca_apps.score_table(model, table, count=2, explain=1)"
    assert as_screened.run.command == (
        "kpca_apps.screen_table(table, reference=reference, alpha=0.1)"
    )


def test_a_path_in_place_of_a_model_is_refused() -> None:
    with pytest.raises(ConfigError, match="model= takes a fitted model, such as load_model"):
        score_table("birds.kpca", birds(30))  # type: ignore[arg-type]


def test_tables_read_in_parts_come_back_whole_and_in_part(tmp_path: Path) -> None:
    path = tmp_path / "birds.csv"
    frame_of(150, odd=4).drop("kind").write_csv(path)
    parted = screen_table(open_table(path, in_memory_rows=50, part_rows=64), count=4, explain=0)
    whole = screen_table(path, count=4, explain=0)
    assert parted.to_frame().select("name", "wing").equals(whole.to_frame().select("name", "wing"))
    assert parted.to_frame()["rank"].to_list() == parted.rows.ranks.tolist()
    flagged = parted.flagged()
    assert flagged["rank"].to_list() == [1, 2, 3, 4]
    assert set(flagged["name"]) == {f"bird {k:04d}" for k in range(146, 150)}


def test_no_row_flagged_is_a_frame_without_rows(tmp_path: Path) -> None:
    clean = birds(10, odd=0)
    path = tmp_path / "birds.csv"
    clean.reset_index().to_csv(path, index=False)
    for table in (clean, path, open_table(path, in_memory_rows=4, part_rows=4)):
        result = score_table(fit_model(clean, fdr=0.001), table, explain=0)
        assert result.n_flagged == 0 and len(result.flagged()) == 0
        assert [*result.flagged().columns] == [*result.to_frame().columns, "row", "hint"]


def test_errors_and_warnings_name_keywords() -> None:
    for options, message in (
        ({"count": 60}, "^count= 60 would flag every one"),
        ({"n_landmarks": 1}, "^n_landmarks= must be at least 2"),
        ({"method": "hoffmann", "components": 60}, "^components= 60 is too much for 60"),
        ({"share": 0.1, "count": 2}, "^share= and count= cannot be combined"),
        ({"alpha": 0.1}, "give them with reference=, or use share= or count="),
        ({"exclude": "wnig"}, r"exclude= names a column .* Did you mean .wing.\?"),
    ):
        with pytest.raises(ConfigError, match=message):
            screen_table(birds(), **options)  # type: ignore[arg-type]
    numbered = birds().reset_index(drop=True).assign(code=np.random.default_rng(0).permutation(60))
    result = screen_table(numbered, explain=0)
    words = " ".join((*result.run.warnings, *(column.why for column in result.columns)))
    assert "numeric=" in words and "--" not in words


def test_the_text_of_a_result_is_a_few_lines(result: Screening) -> None:
    first, *rows = repr(result).splitlines()
    oddest = result.ranked[0]
    assert first.startswith(f"3 of 60 rows stand out; {oddest.id} (row {oddest.row}) most: ")
    assert 1 <= len(rows) <= 4
    assert max(map(len, rows)) < 80
    assert rows[0].startswith(f"1. {oddest.id} (row {oddest.row}): {oddest.reasons[0].column} ")
    assert "array" not in repr(result)
    html = result._repr_html_()
    assert html == render_in_notebook(result)
    assert html.startswith('<div class="kpca-screening">') and "3 of 60 rows stand out" in html


def test_a_hidden_index_is_in_no_frame_by_default() -> None:
    frame = birds(odd=0).set_axis([f"secret {k:02d}" for k in range(60)])
    frame.iloc[7, frame.columns.get_loc("bill")] = 77777.125
    result = screen_table(frame, hide=["bill", "index"])
    assert not re.search("secret [0-9]|77,?777", repr(result) + result._repr_html_())
    # Rows are identified by position.
    assert result.to_frame()["bill"].isna().all() and result.to_frame().index[7] == 7
    assert result.flagged().loc[7, result.to_frame().columns].equals(result.to_frame().loc[7])
    kept = result.flagged(keep_hidden=True)
    assert kept.loc["secret 07", "bill"] == result.to_frame(keep_hidden=True).iloc[7]["bill"]
    assert kept.loc["secret 07", "bill"] == 77777.125


def test_a_call_cites_no_hidden_value(tmp_path: Path) -> None:
    frame = frame_of(60, odd=3)
    settings = {"label": "kind", "positive": "odd", "count": 3}
    seen = screen_table(frame, **settings)  # type: ignore[arg-type]
    assert "positive='odd'" in seen.run.command
    hidden = screen_table(frame, **settings, hide="KIND")  # type: ignore[arg-type]
    assert "positive='(hidden)'" in hidden.run.command and "hide='KIND'" in hidden.run.command
    hidden.save_report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "(hidden)" in page and "&#39;odd&#39;" not in page
    scored = score_table(hidden.model, frame, label="kind", positive="odd")
    assert "positive='(hidden)'" in scored.run.command
    other = screen_table(frame, **settings, hide="colour")  # type: ignore[arg-type]
    assert "positive='odd'" in other.run.command


@pytest.mark.parametrize("library", ["polars", "pyarrow", "dict", "file"])
def test_hidden_columns_are_empty_in_frames_of_every_kind(library: str, tmp_path: Path) -> None:
    frame = pl.from_pandas(birds(odd=0).reset_index(drop=True))
    frame.write_parquet(tmp_path / "birds.parquet")
    given = {
        "polars": frame,
        "pyarrow": frame.to_arrow(),
        "dict": frame.to_dict(as_series=False),
        "file": tmp_path / "birds.parquet",
    }[library]
    result = screen_table(given, hide="bill")

    def cells(frame: Any) -> pl.Series:
        assert type(frame) is (pa.Table if library == "pyarrow" else pl.DataFrame)
        return pl.Series(pl.DataFrame(frame)["bill"])

    assert cells(result.to_frame()).dtype == cells(result.to_frame(keep_hidden=True)).dtype
    assert cells(result.to_frame()).null_count() == 60
    assert cells(result.flagged()).null_count() == result.n_flagged == 1
    assert cells(result.to_frame(keep_hidden=True)).equals(frame["bill"])
    assert "bill" in frame.columns and frame["bill"].null_count() == 0


def test_the_report_is_saved_as_the_page_it_is(result: Screening, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text("an older one")
    result.save_report(path)
    assert path.read_text("utf-8") == result.to_html() == render_screening(result)
    result.save_report(str(tmp_path / "again.HTM"))
    with pytest.raises(ConfigError, match=r"report: a report is a page; end its name with"):
        result.save_report(tmp_path / "report")
    with pytest.raises(InputError):
        result.save_report(tmp_path / "nowhere" / "report.html")


@pytest.mark.parametrize("name", SCREENINGS)
def test_a_notebook_shows_the_first_screen(name: str) -> None:
    result = SCREENINGS[name]()
    html = render_in_notebook(result)
    assert len(html.encode()) < 200_000 and html.count("<style>") == html.count("</style>") == 1
    assert not re.search(r"<(script|link|iframe|img|html|body|head|title|form)\b", html)
    assert not re.search(
        r"\b(src|href|id|on[a-z]+)\s*=", re.sub(r"(?s)<style>.*</style>|&[^;]+;|>[^<]*<", "", html)
    )
    # If a list is cut, the page says where to find the rest.
    assert ".flagged()" in html
    shown = re.search(r'(?s)<ul class="warnings".*?</ul>', html)
    n_shown = shown[0].count("<li>") if shown else 0
    more = re.search("([0-9]+) more warning", html)
    assert n_shown + (int(more[1]) if more else 0) == len(result.run.warnings)


@pytest.mark.release
def test_pandas_is_not_needed() -> None:
    code = (
        "import sys\n"
        "class NoPandas:\n"
        "    def find_spec(self, name, *others):\n"
        "        if name.split('.')[0] == 'pandas':\n"
        "            raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, NoPandas())\n"
        "import polars as pl, pyarrow as pa\n"
        "from kpca_apps import screen_table\n"
        "sizes = [10.0 + i % 7 for i in range(40)]\n"
        "columns = {'height': [*sizes, 10.0], 'weight': [*sizes, 16.0]}\n"
        "for given in (columns, pl.DataFrame(columns), pa.table(columns)):\n"
        "    result = screen_table(given)\n"
        "    assert pl.DataFrame(result.flagged())['weight'].to_list() == [16.0]\n"
        "    assert result._repr_html_()\n"
        "assert 'pandas' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.release
def test_rows_judged_fine_are_given_in_any_form(tmp_path: Path) -> None:
    frame = birds()
    fine = screen_table(frame, count=3).flagged().iloc[:2]
    path = tmp_path / "fine.csv"
    fine.to_csv(path)
    names = {"name": list(fine.index)}
    results = [screen_table(frame, accept=form, count=2) for form in (fine, path, names)]
    for result in results:
        assert result.lists.accepted is not None and result.lists.accepted.n_rows == 2
        assert result.flagged().index.intersection(fine.index).empty
        assert not [text for text in result.run.warnings if "ignored" in text or "match" in text]
        assert result.rows.scores.tobytes() == results[0].rows.scores.tobytes()
    assert results[0].to_frame().query("accepted").index.tolist() == sorted(fine.index)
    assert results[1].run.command == ("kpca_apps.screen_table(table, accept='fine.csv', count=2)")
    again = score_table(results[0].model, frame, accept=names)
    assert again.rows.is_flagged.tolist() == results[0].rows.is_flagged.tolist()
    # If the index only counts rows, accepted rows are matched by their columns, not by the index.
    counted = frame.reset_index()
    again = screen_table(counted, accept=screen_table(counted, count=3).flagged().iloc[:2], count=2)
    assert again.lists.accepted is not None and again.lists.accepted.n_rows == 2
    assert not [text for text in again.run.warnings if "nothing" in text]


@pytest.mark.parametrize("option", ["hide", "exclude", "categorical", "numeric", "by"])
@pytest.mark.parametrize("given", [True, 5, 1.5])
def test_invalid_column_names_are_refused_by_their_option(option: str, given: Any) -> None:
    frame = {"a": [i % 7 for i in range(40)], "b": [i % 5 for i in range(40)]}
    with pytest.raises(ConfigError, match=f"^{option}= takes a name or a list of names, got"):
        screen_table(frame, **{option: given})
    rules = find_rules(frame)
    if option == "hide":
        with pytest.raises(ConfigError, match=r"^hide= takes a name"):
            check_rules(frame, rules, hide=given)
        with pytest.raises(ConfigError, match=r"^hide= takes a name"):
            score_table(fit_model(frame), frame, hide=given)


def test_jobs_alone_are_the_threads_of_a_table_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, started = tmp_path / "table.csv", list[int]()
    pl.DataFrame(np.random.default_rng(0).normal(size=(100_500, 2)), ["a", "b"]).write_csv(path)

    class Pool(ThreadPoolExecutor):
        def __init__(self, max_workers: int) -> None:
            started.append(max_workers)
            super().__init__(max_workers)

    monkeypatch.setattr(workers, "ThreadPoolExecutor", Pool)
    screen_table(path, jobs=3, count=5)
    assert started and {*started} == {3}


def test_names_of_columns_are_not_made_into_keywords() -> None:
    numbers = [f"{i / 2}" for i in range(26)]
    cells = [*numbers, *(f"low {i}" for i in range(14))]
    frame = {"net--share": cells, "of --count 3": cells}
    notes = " ".join(screen_table({**frame, "x": [i % 7 for i in range(40)]}).run.warnings)
    assert '"net--share"' in notes and '"of --count 3"' in notes and "numeric=" in notes
    with pytest.raises(ConfigError, match='exclude= names a column "gross--share"'):
        screen_table(frame, exclude="gross--share")


def test_underflow_errors_enabled_by_the_caller_do_no_harm() -> None:
    rng = np.random.default_rng(0)
    table = {"a": rng.normal(size=200), "b": [*rng.normal(size=199), 1e5]}
    with np.errstate(all="raise"):
        result = screen_table(table)
    assert np.array_equal(result.rows.scores, screen_table(table).rows.scores)


def test_workers_are_a_keyword(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    pl.DataFrame({"a": rng.normal(size=900), "b": rng.normal(size=900)}).write_parquet(
        tmp_path / "many.parquet"
    )
    table = open_table(tmp_path / "many.parquet", in_memory_rows=100, part_rows=300)
    alone = screen_table(table, count=5)
    shared = screen_table(table, count=5, workers="threads", jobs=2)
    np.testing.assert_allclose(shared.rows.scores, alone.rows.scores, rtol=0, atol=1e-10)
    with pytest.raises(ConfigError, match=r"scheduler= is the address .* leave one of them out"):
        screen_table(table, workers="threads", scheduler="tcp://127.0.0.1:1")
    with pytest.raises(ConfigError, match="leave workers=, scheduler= and work_dir= out"):
        screen_table(table, workers="threads", execution=Execution())


def test_a_list_in_place_of_a_word_is_quoted_with_a_suggestion() -> None:
    with pytest.raises(ConfigError, match=r"""got "\['blocks'\]"\. Did you mean "blocks"\?"""):
        screen_table(birds(), method=["blocks"])  # type: ignore[arg-type]


def test_no_columns_may_be_none() -> None:
    assert screen_table(birds(), exclude=None, count=2).n_flagged == 2  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [{"format": "xls"}, {"flagged": "xls"}])
def test_nothing_is_written_in_a_format_that_is_not_known(
    result: Screening, wrong: dict[str, Any], tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=rf"^{next(iter(wrong))}= must be csv, .*got 'xls'"):
        result.save_tables(tmp_path / "out", **wrong)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("components", [1.0, 2.0, 1.5])
def test_components_are_a_whole_number_or_a_share_by_their_type(components: float) -> None:
    table = pl.DataFrame(np.random.default_rng(0).normal(size=(60, 3)))
    with pytest.raises(ConfigError, match=f"a share of the variance below 1, got {components}"):
        screen_table(table, method="hoffmann", components=components)
    for whole in (1, np.int64(1), np.uint8(1)):
        assert (
            screen_table(table, method="hoffmann", components=whole).run.settings["components"] == 1
        )
