"""A model recognises its own table by the file's bytes and reading options."""

from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import polars as pl

from kpca_apps import fit_model, score_table
from kpca_apps.tables.frames import table_from_frame
from kpca_apps.tables.opening import open_table

SAME_TABLE = "model was fitted on this very table"


def rows(seed: int, n: int = 60) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, 3)).round(3)


def is_same(result: Any) -> bool:
    return any(SAME_TABLE in warning for warning in result.run.warnings)


def test_another_sheet_of_the_workbook_is_another_table(tmp_path: Path) -> None:
    path, other = tmp_path / "two.xlsx", rows(1)
    other[20] = 40.0
    book = openpyxl.Workbook()
    for title, cells in (("train", rows(0)), ("new", other)):
        sheet = book.create_sheet(title)
        for row in [["a", "b", "c"], *cells.tolist()]:
            sheet.append(row)
    del book["Sheet"]
    book.save(path)
    model = fit_model(path, sheet="train")
    result = score_table(model, path, sheet="new")
    assert result.rows.ranks[20] == 1 and not is_same(result)
    for sheet in ("train", 1, "1"):
        assert is_same(score_table(model, path, sheet=sheet))


def test_skipped_lines_and_another_delimiter_make_another_table(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    # Write cells to be split at ";" or at "|", below two lines that may each be the header.
    lines = [f"{a};{b}|{a}" for a, b in np.random.default_rng(0).integers(10, 99, (60, 2))]
    path.write_text("\n".join(["a;b|e", "c;d|f", *lines]) + "\n")
    sources = [
        open_table(path, skip_rows=1).source,
        open_table(path, skip_rows=0).source,
        open_table(path, delimiter="|").source,
        open_table(path, encoding="latin-1").source,
        open_table(path, bad_lines="skip").source,
    ]
    assert len({source.sha256 for source in sources}) == 1
    assert len({source.fingerprint for source in sources}) == len(sources)
    sniffed = open_table(path).source
    assert sniffed.fingerprint == open_table(path, delimiter=sniffed.delimiter).source.fingerprint


def test_frames_are_known_by_their_cells_names_and_types() -> None:
    frame = pl.DataFrame({"a": [1, 2, None], "b": ["x", None, "z"]})
    prints = [
        table_from_frame(other).source.fingerprint
        for other in (
            frame,
            frame[::-1],
            frame.rename({"a": "c"}),
            frame.with_columns(pl.col("a").cast(pl.Float64)),
            frame.with_columns(b=pl.lit("x")),
        )
    ]
    assert len({*prints}) == len(prints)
    again = pl.concat([frame[:1], frame[1:]], rechunk=False)
    assert table_from_frame(again).source.fingerprint == prints[0]
