"""Run exported rules in other programs; print where the rows found differ from `check`.

Each program takes pairs of a frame and its rules, and returns for each rule the rows that break it,
from 1, or None if the rule is not exported. Run it with or without an environment that has dqx
(``pip install databricks-labs-dqx pyspark pandas pyarrow``, and Java)::

    KPCA_DQX=DQX/bin/python python -m tests.novelty.relations.exports.engines
"""

import json
import os
import pickle
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

import duckdb
import polars as pl

from kpca_apps.names import one_line
from kpca_apps.novelty.relations.exports.pandera_schema import rules_as_pandera
from kpca_apps.novelty.relations.exports.sql import rules_as_dqx, rules_as_sql
from kpca_apps.novelty.relations.rule import HeldRules
from kpca_apps.novelty.relations.sentences import phrase, sentence
from tests.novelty.relations.ruled import as_texts, held, ruled_frame, with_cells

Broken = list[tuple[int, ...] | None]
Given = list[tuple[pl.DataFrame, HeldRules]]


def by_sql(given: Given) -> list[Broken]:
    """Run the exported script in DuckDB."""
    return [_in_duckdb(frame, rules) for frame, rules in given]


def _in_duckdb(frame: pl.DataFrame, rules: HeldRules) -> Broken:
    head, *parts = re.split(r"\n\n(?=-- )", rules_as_sql(rules, 'a "b'))
    comments = [one_line(sentence(held, rules.by_name), 1_000) for held in rules.rules]
    assert [part.split("\n")[0] for part in parts] == [f"-- {text}".rstrip() for text in comments]
    with duckdb.connect() as database:
        database.register("given", frame.to_arrow())
        database.execute('CREATE TABLE "a ""b" AS SELECT * FROM given')
        database.execute(head)
        broken: Broken = []
        for part in parts:
            if "\n-- left out, " in part:
                broken.append(None)
            else:
                rows = database.execute(part.replace("SELECT *", "SELECT rowid + 1", 1)).fetchall()
                broken.append(tuple(sorted(row for (row,) in rows)))
    return broken


# Validate in a subprocess: pandera changes how other libraries parse times with zones.
_VALIDATE = """
import json, pickle, sys
import pandera.errors
for schema, frame in pickle.load(sys.stdin.buffer):
    names, cases = {}, []
    exec(compile(schema, "schema.py", "exec"), names)
    checks = [check.name for check in names["schema"].checks]
    try:
        names["schema"].validate(frame, lazy=True)
    except pandera.errors.SchemaErrors as error:
        found = error.failure_cases
        cases = [*zip(found["check"], found["index"].astype(int).tolist())]
    print(json.dumps([checks, cases]))
"""


def by_pandera(given: Given, *, of_arrow: bool = False) -> list[Broken]:
    """Validate pandas frames with pandas or Arrow dtypes."""
    frames = [
        (rules_as_pandera(rules), frame.to_pandas(use_pyarrow_extension_array=of_arrow))
        for frame, rules in given
    ]
    command = [sys.executable, "-W", "ignore", "-c", _VALIDATE]
    done = subprocess.run(command, input=pickle.dumps(frames), capture_output=True)
    assert done.returncode == 0, done.stderr.decode()[-2_000:]
    broken = []
    for line, (_, rules) in zip(done.stdout.splitlines(), given, strict=True):
        checks, cases = json.loads(line)
        phrases = [phrase(held.rule, rules.by_name) for held in rules.rules]
        assert {check for check, _ in cases} <= {*checks} <= {*phrases}
        places = [sorted({place for check, place in cases if check == item}) for item in phrases]
        broken.append(
            [
                tuple(place + 1 for place in broken) if phrase in checks else None
                for phrase, broken in zip(phrases, places, strict=True)
            ]
        )
    return broken


# Print as JSON the checks of each file, and the rows that break them, counted from 1.
_IN_SPARK = """
import json, sys
from pathlib import Path
from unittest.mock import MagicMock
import yaml
from databricks.labs.dqx.engine import DQEngine
from databricks.sdk import WorkspaceClient
from pyspark.sql import SparkSession

builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
spark = builder.config("spark.sql.session.timeZone", "UTC").getOrCreate()
engine = DQEngine(MagicMock(spec=WorkspaceClient), spark)
for file in sorted(Path(sys.argv[1]).glob("*.yml")):
    checks = yaml.safe_load(file.read_text("utf-8"))
    status = DQEngine.validate_checks(checks)
    assert not status.has_errors, status.to_string()
    frame = spark.read.parquet(str(file.with_suffix(".parquet")))
    found = {check["name"]: [] for check in checks}
    for row in engine.apply_checks_by_metadata(frame, checks).collect():
        for warning in row["_warnings"] or []:
            found[warning["name"]].append(row["its row"] + 1)
    print("found", json.dumps({name: sorted(rows) for name, rows in found.items()}))
"""


def by_dqx(given: Given) -> list[Broken]:
    """Apply checks to Spark frames with the Python named by KPCA_DQX."""
    with tempfile.TemporaryDirectory() as folder:
        for number, (frame, rules) in enumerate(given):
            file = Path(folder, f"{number:04}.yml")
            file.write_text(rules_as_dqx(rules), encoding="utf-8")
            # Spark has no time type.
            frame.with_row_index("its row").cast({pl.Time: pl.String}).write_parquet(
                file.with_suffix(".parquet")
            )
        command = [os.environ["KPCA_DQX"], "-c", _IN_SPARK, folder]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith("found ")]
    broken = []
    for line, (_, rules) in zip(lines, given, strict=True):
        rows = json.loads(line.removeprefix("found "))
        phrases = [phrase(held.rule, rules.by_name) for held in rules.rules]
        broken.append([tuple(rows[phrase]) if phrase in rows else None for phrase in phrases])
    return broken


ENGINES: dict[str, Callable[[Given], list[Broken]]] = {
    "DuckDB": by_sql,
    "pandera": by_pandera,
    "pandera on types of Arrow": lambda given: by_pandera(given, of_arrow=True),
    "dqx": by_dqx,
}


def tables() -> dict[str, tuple[pl.DataFrame, HeldRules]]:
    """Return a table for each kind of cell, typed and as text, with its rules."""
    rules_of_tables = {}
    for kind, frame in (("typed", ruled_frame()), ("text", as_texts(ruled_frame()))):
        for cell, other in with_cells(frame):
            rules_of_tables[f"{kind}, {cell}"] = other, held(other, like=frame)
    return rules_of_tables


def differences(engine: str) -> tuple[Counter[str], list[str]]:
    """Compare the rows a program finds with those of `check`; return counts and differences."""
    given, counts, named = tables(), Counter[str](), []
    for (cell, (_, rules)), rows_found in zip(
        given.items(), ENGINES[engine]([*given.values()]), strict=True
    ):
        for entry, rows in zip(rules.rules, rows_found, strict=True):
            result = "left out" if rows is None else "same" if rows == entry.broken else "differs"
            counts[result] += 1
            if result == "differs":
                apart = sorted({*(rows or ())} ^ {*entry.broken})
                named.append(f"{cell}: {phrase(entry.rule, rules.by_name)}: {apart}")
    return counts, named


def main(engines: Iterable[str]) -> int:
    """Print each program's outcomes and differences; return the number of differences."""
    n_differ = 0
    for engine in engines:
        counts, named = differences(engine)
        n_differ += counts["differs"]
        print(f"{engine}: {dict(sorted(counts.items()))}")
        print(*named, sep="\n")
    return n_differ


if __name__ == "__main__":
    sys.exit(main(name for name in ENGINES if name != "dqx" or "KPCA_DQX" in os.environ))
