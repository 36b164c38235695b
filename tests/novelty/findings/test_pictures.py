from dataclasses import replace

import numpy as np
import polars as pl

from kpca_apps.novelty.columns.plan import ColumnOptions
from kpca_apps.novelty.run import screen
from kpca_apps.novelty.screening.model import ScreeningOptions
from kpca_apps.tables.frames import table_from_frame
from kpca_apps.tables.table import parted


def frame() -> pl.DataFrame:
    """Return a table with wrong "height" in rows 6 to 8 and wrong "kind" in row 10."""
    rng = np.random.default_rng(0)
    size = rng.normal(50, 5, 300)
    height = size + rng.normal(0, 0.5, 300)
    height[5:8] = [400.0, 420.0, 410.0]
    kind = np.where(size > 50, "large", "small")
    kind[9] = "large" if kind[9] == "small" else "small"
    weight = (size * 2).tolist()
    weight[20] = None
    names = [f"N{i}A" for i in range(300)]
    notes = {"name": names, "kind": kind, "size": size, "weight": weight, "height": height}
    return pl.DataFrame(notes)


OPTIONS = ScreeningOptions(count=4)


def test_the_plane_has_the_column_that_explains_most() -> None:
    result, _ = screen(table_from_frame(frame()), options=OPTIONS)
    plane = result.pictures.plane
    assert plane is not None and plane.y is not None
    parts = {column.name: column.reason_share for column in result.columns}
    assert sorted((parts[plane.x.name], parts[plane.y.name])) == sorted(parts.values())[-2:]
    assert plane.x.name == "height"
    by_rank = dict(zip(plane.rank.tolist(), plane.x.values, strict=True))
    for row in result.ranked[:4]:
        assert by_rank[row.rank] == frame()["height"][row.row - 1]
    assert plane.flagged.sum() == 4 and len(plane.rank) == plane.n_rows == 300


def test_hidden_columns_are_not_drawn() -> None:
    hidden = ColumnOptions(hide=("height", "size"))
    result, _ = screen(table_from_frame(frame()), options=replace(OPTIONS, columns=hidden))
    assert result.pictures.plane is not None and result.pictures.plane.y is not None
    assert {result.pictures.plane.x.name, result.pictures.plane.y.name} == {"weight", "kind"}
    all_hidden = ColumnOptions(hide=("height", "size", "weight", "kind"))
    result, _ = screen(table_from_frame(frame()), options=replace(OPTIONS, columns=all_hidden))
    assert result.pictures.plane is None


def test_a_cell_without_value_has_no_place() -> None:
    only = ColumnOptions(exclude=("height", "kind"))
    result, _ = screen(table_from_frame(frame()), options=replace(OPTIONS, columns=only))
    assert result.pictures.plane is not None and result.pictures.plane.y is not None
    weight = next(
        axis for axis in (result.pictures.plane.x, result.pictures.plane.y) if axis.name == "weight"
    )
    assert np.isnan(weight.values).sum() == 1


def test_a_table_in_parts_has_the_same_plane() -> None:
    table = table_from_frame(frame())
    whole = screen(table, options=OPTIONS)[0].pictures.plane
    parts = screen(parted(table, part_rows=100), options=OPTIONS)[0].pictures.plane
    assert whole is not None and parts is not None
    assert whole.x.name == parts.x.name
    for here, there in ((whole.x.values, parts.x.values), (whole.rank, parts.rank)):
        assert np.array_equal(here, there)


def test_rows_reported_elsewhere_are_named_too() -> None:
    result, _ = screen(table_from_frame(frame()), options=OPTIONS)
    assert result.findings.odd_cells
    for cell in result.findings.odd_cells:
        assert result.lists.ids[cell.row] == f"N{cell.row - 1}A"


def test_gaps_that_were_filled_are_no_reason_to_doubt() -> None:
    result, _ = screen(table_from_frame(frame()), options=OPTIONS)
    first, rest = (
        result.run.warnings[: result.run.n_doubts],
        result.run.warnings[result.run.n_doubts :],
    )
    assert any("filled with" in text for text in rest)
    assert any("Rows are named by" in text for text in rest)
    assert not any("filled with" in text for text in first)
