#!/usr/bin/env bash
# pyarrow 26.0.1: parquet.read_table with a filter, on a column with a missing value.
# Guess before it was run: "!=" and "not in" with one value keep the same rows, without the missing one, as in SQL.
# Seen: "!=" drops the row with the missing value, "not in" keeps it. A list that names None beside the
# value drops it again.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q pyarrow==26.0.1
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON'
import pyarrow as pa
import pyarrow.parquet as pq

pq.write_table(pa.table({"site": ["A", "B", None]}), "sites.parquet")


def kept(operator, value):
    return pq.read_table("sites.parquet", filters=[("site", operator, value)])["site"].to_pylist()


seen = {"!=": kept("!=", "A"), "not in": kept("not in", ["A"]), "not in, None": kept("not in", ["A", None])}
print(seen)
assert seen["!="] == ["B"], "changed: != keeps missing values"
assert seen["not in"] == ["B", None], "fixed: not in drops missing values"
assert seen["not in, None"] == ["B"]
PYTHON
