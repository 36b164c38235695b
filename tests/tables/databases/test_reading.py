"""Database tables have the cells, types, order and keys that the native libraries return."""

from functools import partial
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest

from kpca_apps.errors import InputError, KpcaError
from kpca_apps.novelty.columns.parts import AnyTable
from kpca_apps.novelty.run import screen
from kpca_apps.novelty.written_tables import found_columns
from kpca_apps.tables.databases.address import sql_name
from kpca_apps.tables.opening import open_table, read_table
from kpca_apps.tables.table import PartedTable
from tests.novelty.tables import frame_of
from tests.tables.databases.conftest import Make

KINDS = ["sqlite", "duckdb", pytest.param("postgresql", marks=pytest.mark.release)]
FRAME = frame_of(60, odd=3).with_row_index("bird").cast({"bird": pl.Int64})
HOSTILE = 'x"; DROP TABLE birds; --'
pytestmark = pytest.mark.parametrize("kind", KINDS)


def test_cells_are_those_that_were_put_in(make: Make) -> None:
    gaps = FRAME.with_columns(
        pl.when(pl.int_range(pl.len()) % 7 == k).then(None).otherwise(pl.col(name)).alias(name)
        for k, name in enumerate(FRAME.columns[1:])
    )
    uri = make(gaps, key="bird")
    whole = read_table(uri, table_name="birds")
    parts = open_table(f"{uri}#birds", in_memory_rows=9, part_rows=16)
    assert isinstance(parts, PartedTable) and len(parts.parts) == 4
    assert whole.frame.equals(gaps)
    assert pl.concat([part.frame for part in parts.tables()]).equals(gaps)
    assert whole.source == parts.source
    assert whole.source.key_column == "bird" and whole.source.name == "birds"
    assert whole.source.format == uri.partition(":")[0]


def test_the_only_table_needs_no_name_and_others_are_named(make: Make, kind: str) -> None:
    uri = make(FRAME)
    assert read_table(uri).frame.equals(FRAME)
    make(FRAME[:9], name="eggs")
    with pytest.raises(KpcaError, match=r"--table or --query .*: birds and eggs\."):
        read_table(uri)
    with pytest.raises(InputError, match=r'no table "brids"\. Did you mean "birds"'):
        read_table(uri, table_name="brids")


def test_a_query_keeps_its_order_and_ends_as_it_likes(make: Make) -> None:
    uri, names = make(FRAME), FRAME.columns
    first = names[1]
    query = f"SELECT bird, {sql_name(first)} FROM birds ORDER BY bird DESC LIMIT 40 -- the last\n ;"
    table = read_table(uri, query=query)
    assert table.frame.equals(FRAME.select("bird", first).reverse()[:40])
    assert table.source.notes == () and table.source.key_columns == ()
    loose = read_table(uri, query="WITH a AS (SELECT 1 AS b) SELECT bird, b FROM birds, a")
    assert "no ORDER BY" in loose.source.notes[0] and loose.columns == ("bird", "b")
    assert loose.source.fingerprint != table.source.fingerprint


def test_hostile_names_and_cells_are_only_names_and_cells(make: Make) -> None:
    frame = pl.DataFrame({HOSTILE: ["'; DROP TABLE birds; --", "\\", '"', "a\nb"], 'a"b': range(4)})
    uri = make(frame.cast({'a"b': pl.Int64}), name=HOSTILE)
    make(FRAME)
    table = read_table(uri, table_name=sql_name(HOSTILE))
    assert table.columns == tuple(frame.columns)
    assert table.frame[HOSTILE].to_list() == frame[HOSTILE].to_list()
    assert read_table(uri, table_name="birds").frame.equals(FRAME)


@pytest.mark.parametrize(
    "query",
    [
        "DROP TABLE birds", "SELECT 1; DROP TABLE birds", "SELECT 1) AS q; DROP TABLE birds; --",
        "WITH a AS (DELETE FROM birds RETURNING *) SELECT * FROM a", "UPDATE birds SET bird = 1",
        "SELECT * INTO eggs FROM birds", "VALUES (1) UNION DELETE FROM birds", "FROM",
        "SELECT nothing FROM birds", "SELECT * FROM read_text('/etc/hostname')",
        "SELECT * FROM read_csv('/etc/hostname')", "SELECT * FROM birds WHERE 1 = ", "SELECT /* 1",
    ],
)  # fmt: skip
def test_anything_but_one_select_is_refused_and_changes_nothing(make: Make, query: str) -> None:
    uri = make(FRAME)
    with pytest.raises(KpcaError) as refused:
        read_table(uri, query=query)
    assert "\n" not in str(refused.value) and "Traceback" not in str(refused.value)
    assert read_table(uri, table_name="birds").frame.equals(FRAME)


def test_a_query_without_rows_or_a_name_twice(make: Make) -> None:
    uri = make(FRAME)
    with pytest.raises(InputError, match="no rows"):
        read_table(uri, query="SELECT * FROM birds WHERE bird < 0")
    twice = read_table(uri, query="SELECT bird, bird FROM birds ORDER BY bird")
    assert twice.columns == ("bird", "bird_2") and twice.source.renamed == (("bird_2", "bird"),)
    assert all(twice.frame[name].to_list() == [*range(60)] for name in twice.columns)


def test_scores_are_those_of_the_same_parquet_file(make: Make, tmp_path: Path) -> None:
    FRAME.write_parquet(tmp_path / "birds.parquet")
    uri = make(FRAME, key="bird")
    for how in (open_table, partial(open_table, in_memory_rows=50, part_rows=32)):
        expected = scored_columns(how(tmp_path / "birds.parquet"))
        assert scored_columns(how(uri, table_name="birds")).equals(expected)
        assert scored_columns(how(uri, query="SELECT * FROM birds ORDER BY bird")).equals(expected)


def scored_columns(table: AnyTable) -> pl.DataFrame:
    """Return the columns that a screening adds to each row."""
    columns = found_columns(screen(table)[0])
    return pl.DataFrame({name: column for name, column in columns.items() if column is not None})


def test_the_primary_key_names_the_rows_and_is_not_learned_from(make: Make) -> None:
    # Only the key shows that these numbers identify the rows.
    frame = FRAME.with_columns(bird=(pl.col("bird") * 37 + 5) ** 2 % 99991)
    uri = make(frame.cast({"bird": pl.Int64}), key="bird")
    result = screen(read_table(uri, query="SELECT * FROM birds ORDER BY bird"))[0]
    assert result.lists.id_column != "bird"
    result = screen(read_table(uri))[0]
    assert result.lists.id_column == "bird"
    (key,) = (column for column in result.columns if column.name == "bird")
    assert not key.used and key.why == "the primary key of the table"


ENDLESS = {
    "sqlite": "WITH RECURSIVE r (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r) SELECT i FROM r",
    "duckdb": "SELECT range AS i FROM range(1000000000000)",
}


def test_a_query_whose_batches_never_end_is_bounded(
    make: Make, kind: str, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kind not in ENDLESS:
        pytest.skip("PostgreSQL writes a series to its own disk before it sends the first row")
    uri = make(FRAME)
    with pytest.raises(InputError, match=r"longer than the 0\.5 s of --timeout"):
        read_table(uri, query=ENDLESS[kind], timeout=0.5)
    monkeypatch.setattr("kpca_apps.system.files.spools._RESERVE", 1)
    monkeypatch.setattr("shutil.disk_usage", lambda folder: SimpleNamespace(free=10_000_000))
    # SQLite first runs the whole query only to find the types of the columns. Without a LIMIT, that
    # run would never end.
    query = f"{ENDLESS[kind]} LIMIT 1500000"
    with pytest.raises(InputError, match=r"no room for more than .* read less \(LIMIT"):
        read_table(uri, query=query)
    assert not [*temporary.iterdir()]
