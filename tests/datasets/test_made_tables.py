import csv
import hashlib
import json
import runpy
from datetime import date
from pathlib import Path

import pytest


def read_rows(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8", newline="") as handle:
        return list(csv.reader(handle))


@pytest.mark.parametrize(
    "script", ["make_penguins_faults.py", "make_breast_cancer.py", "make_ring_line_square.py"]
)
def test_script_makes_the_committed_bytes(datasets: Path, script: str) -> None:
    made = runpy.run_path(str(datasets / script))["files"]()
    assert made
    for name, text in made.items():
        assert (datasets / name).read_bytes() == text.encode(), name


def test_raw_penguins_are_the_published_bytes(datasets: Path) -> None:
    digest = hashlib.sha256((datasets / "penguins_raw.csv").read_bytes()).hexdigest()
    assert digest in (datasets / "README.md").read_text(encoding="utf-8")


def test_fault_list_names_every_changed_cell_and_no_other(datasets: Path) -> None:
    raw = read_rows(datasets / "penguins_raw.csv")
    faulty = read_rows(datasets / "penguins_faults.csv")
    faults = json.loads((datasets / "penguins_faults.json").read_text(encoding="utf-8"))
    header = raw[0]
    assert faulty[0] == header and len(faulty) == len(raw)
    changed = {
        (line, name, before, after)
        for line, (old, new) in enumerate(zip(raw, faulty, strict=True), start=1)
        for name, before, after in zip(header, old, new, strict=True)
        if before != after
    }
    listed = {
        (fault["line"], cell["column"], cell["before"], cell["after"])
        for fault in faults
        for cell in fault["cells"]
    }
    assert listed == changed
    assert all(fault["row"] == fault["line"] - 1 for fault in faults)
    assert len({fault["row"] for fault in faults}) == len(faults) == 13


def test_the_impossible_date_is_impossible(datasets: Path) -> None:
    faults = json.loads((datasets / "penguins_faults.json").read_text(encoding="utf-8"))
    (fault,) = [f for f in faults if f["kind"] == "impossible date"]
    with pytest.raises(ValueError, match="day"):
        date.fromisoformat(fault["cells"][0]["after"])


def test_notes_list_every_kind_of_fault(datasets: Path) -> None:
    notes = (datasets / "README.md").read_text(encoding="utf-8")
    faults = json.loads((datasets / "penguins_faults.json").read_text(encoding="utf-8"))
    kinds = sorted(fault["kind"] for fault in faults)
    table = notes.split("| kind | what happened |")[1].split("##")[0].splitlines()[2:]
    assert sorted(line.split("|")[1].strip() for line in table if line) == kinds


def test_tables_have_the_size_the_notes_say(datasets: Path) -> None:
    notes = (datasets / "README.md").read_text(encoding="utf-8")
    for path in sorted(datasets.glob("*.csv")):
        rows = read_rows(path)
        assert f"| `{path.name}` | {len(rows) - 1} x {len(rows[0])} |" in notes
        assert {len(row) for row in rows} == {len(rows[0])}
        assert path.stat().st_size < 300_000
