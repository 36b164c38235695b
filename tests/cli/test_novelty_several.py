import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run, assert_refused
from tests.novelty.tables import frame_of


def split(folder: Path) -> list[str]:
    """Split the table into three files of twenty rows; return its lines."""
    header, *rows = (folder / "birds.csv").read_text().splitlines()
    (folder / "data").mkdir()
    for place, name in enumerate(("a.csv", "b.csv", "c.csv")):
        part = rows[20 * place : 20 * place + 20]
        (folder / "data" / name).write_text("\n".join([header, *part, ""]))
    return [header, *rows]


def test_a_hidden_file_name_is_not_printed(kpca: Run, folder: Path) -> None:
    split(folder)
    done = kpca("screen", "data", "--hide", "file").ok()
    home = folder / "kpca-novelty-data"
    for text in (done.err, *((home / n).read_text() for n in ("report.html", "result.json"))):
        assert not any(name in text for name in ("a.csv", "b.csv", "c.csv"))


def test_a_line_that_several_files_have_is_named_by_its_row(kpca: Run, folder: Path) -> None:
    split(folder)
    assert kpca("screen", "data").code == 0
    model = "kpca-novelty-data/model.kpca"
    refused = kpca("explain", model, "data", "--line", 5)
    assert_refused(
        refused, 3, "rows 4 of a.csv, 24 of b.csv, 44 of c.csv; name one, as with --row 4"
    )
    done = kpca("explain", model, "data/a.csv", "data/b.csv", "data/c.csv", "--row", 24).ok()
    assert "line 5 of b.csv" in " ".join((done.out + done.err).split())


def test_titles_and_bad_lines_are_left_out_and_reported(kpca: Run, folder: Path) -> None:
    lines = split(folder)
    lines[30:30] = ["damaged"]
    (folder / "t.csv").write_text("\n".join(["Birds of May", "", *lines, ""]))
    done = kpca("screen", "t.csv")
    assert done.code == 3
    assert "t.csv: line 33 has 1 cell" in done.err and "--bad-lines skip" in done.err
    done = kpca("screen", "t.csv", "--bad-lines", "skip").ok()
    assert 'lines 1-2 (title "Birds of May")' in done.heard
    assert "1 bad line was left out: line 33 has 1 cell" in done.heard


@pytest.mark.release
def test_names_that_polars_takes_for_patterns_change_no_number(kpca: Run, folder: Path) -> None:
    names = {"wing": "*", "bill": "^.*$", "mass": "^(kind|colour)$"}
    for place, renamed in (("plain", {}), ("odd", names)):
        for part, seed in (("old", 1), ("new", 2)):
            frame_of(60, seed, odd=3).rename(renamed).write_csv(folder / f"{part}.csv")
            words = ("--id", "name", "--out", f"{part} {place}")
            assert kpca("screen", f"{part}.csv", *words).code == 0
        assert kpca("diff", f"old {place}", f"new {place}", "--out", place).code == 0
    plain, odd = (json.loads(Path(item, "result.json").read_text()) for item in ("plain", "odd"))
    for kind in ("appeared", "removed", "stayed"):
        rows = [[(r["name"], r["before"], r["now"], len(r["changed"])) for r in diff[kind]]
                for diff in (plain, odd)]  # fmt: skip
        assert rows[0] == rows[1]
    assert len(plain["moved"]) == len(odd["moved"])
