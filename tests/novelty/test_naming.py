from __future__ import annotations

import pytest

from kpca_apps.files.tables import table_from_frame
from kpca_apps.novelty.columns import ColumnOptions
from kpca_apps.novelty.options import ScreeningOptions
from kpca_apps.novelty.screening import screen_table
from tests.novelty.tables import frame_of

FRAME = frame_of(40)


@pytest.mark.parametrize(
    ("frame", "id_column", "note"),
    [
        (FRAME, None, "name the rows with --id name."),
        (FRAME.rename({"name": "bird's name"}), None, "--id 'bird'\"'\"'s name'."),
        (FRAME, "name", ""),
        (FRAME.drop("name"), None, ""),
        (FRAME.with_columns(other=FRAME["name"].reverse()), None, ""),
        (FRAME, "colour", '"colour" names 2 different rows of 40'),
    ],
)
def test_what_names_the_rows_is_said_once_where_it_is_in_doubt(
    frame: object, id_column: str | None, note: str
) -> None:
    options = ScreeningOptions(explain=1, columns=ColumnOptions(id=id_column))
    warnings = screen_table(frame, options=options).warnings
    said = [text for text in warnings if "--id" in text or "different rows" in text]
    assert len(said) == bool(note)
    assert all(note in text for text in said)


def test_the_rows_of_a_wide_table_carry_the_first_cells_and_those_of_their_reasons() -> None:
    frame = frame_of(40, odd=1)
    frame = frame.select(
        *[(frame["wing"] * (i % 7) + i * frame["mass"] % 13).alias(f"w{i}") for i in range(65)],
        frame["bill"],
    )
    result = screen_table(table_from_frame(frame), options=ScreeningOptions(explain=40))
    assert "first 60 of 66 columns" in str(result.settings["cells of listed rows"])
    for row in result.ranked:
        names = [name for name, _ in row.cells]
        reasons = {reason.column for reason in row.reasons}
        assert set(names) == {f"w{i}" for i in range(60)} | reasons
        assert names == [name for name in frame.columns if name in set(names)]
    narrow = screen_table(FRAME, options=ScreeningOptions(explain=0))
    assert "cells of listed rows" not in narrow.settings
