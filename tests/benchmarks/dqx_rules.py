"""Run exported checks in Spark by dqx: rows that each rule finds, beside those found here.

A table that breaks every kind of rule, typed and as text; needs Java and an environment that has
dqx (``pip install databricks-labs-dqx "pyspark<4" "pandas<3" pyarrow``), of which the Python is
given::

    python -m tests.benchmarks.dqx_rules DQX/bin/python

Prints a line for each rule and ends non-zero where rows differ. Spark's rows have no order, so that
rules of one are left out.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from kpca_apps.novelty.relations.exports.dqx import rules_as_dqx
from kpca_apps.novelty.relations.rule import Sorted
from kpca_apps.novelty.relations.sentences import phrase
from tests.novelty.relations.ruled import as_texts, held, ruled_frame

# Prints as JSON the rows, from 1, that each check of two files finds.
IN_SPARK = """
import json, sys
from unittest.mock import MagicMock
import yaml
from databricks.labs.dqx.engine import DQEngine
from databricks.sdk import WorkspaceClient
from pyspark.sql import SparkSession

builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
spark = builder.config("spark.sql.session.timeZone", "UTC").getOrCreate()
engine = DQEngine(MagicMock(spec=WorkspaceClient), spark)
checks = yaml.safe_load(open(sys.argv[1], encoding="utf-8"))
status = DQEngine.validate_checks(checks)
assert not status.has_errors, status.to_string()
frame = spark.read.parquet(sys.argv[2])
found = {check["name"]: [] for check in checks}
for row in engine.apply_checks_by_metadata(frame, checks).collect():
    for warning in row["_warnings"] or []:
        found[warning["name"]].append(row["its row"] + 1)
print("found", json.dumps({name: sorted(rows) for name, rows in found.items()}))
"""


def main(python: str) -> int:
    """Compare the rows of each rule; return how many rules differ."""
    n_wrong = 0
    for kind, frame in (("typed", ruled_frame()), ("texts", as_texts(ruled_frame()))):
        rules = held(frame)
        with tempfile.TemporaryDirectory() as folder:
            checks, table = Path(folder, "checks.yml"), Path(folder, "table.parquet")
            checks.write_text(rules_as_dqx(rules), encoding="utf-8")
            frame.with_row_index("its row").write_parquet(table)
            command = [python, "-c", IN_SPARK, str(checks), str(table)]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        found = json.loads(done.stdout.rpartition("found ")[2])
        for of in rules.rules:
            said = phrase(of.rule, rules.by_name)
            if not isinstance(of.rule, Sorted):
                agrees = found[said] == [*of.broken]
                n_wrong += not agrees
                print(f"{kind}  {'same' if agrees else 'OTHER'}  {of.n_broken:>4} rows  {said}")
    return n_wrong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
