#!/usr/bin/env bash
# deltalake 1.6.6: DeltaTable.delete('x > 1.5') of a table with NaN in x, read through pyarrow with
# the same condition before.
# Guess before it was run: rows of NaN stay, since NaN is not above 1.5 where the rows were looked at.
# Seen: they are deleted. The engine behind delete orders NaN above all numbers, pyarrow's filter
# compares as IEEE 754 says: it shows one row and two go. Nulls stay in both.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q deltalake==1.6.6 pyarrow==26.0.1
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON'
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, write_deltalake

write_deltalake("lake", pa.table({"x": [1.0, 2.0, float("nan"), None]}))
table = DeltaTable("lake")
shown = table.to_pyarrow_table().filter(pc.field("x") > 1.5).num_rows
deleted = table.delete("x > 1.5")["num_deleted_rows"]
print(shown, "rows shown,", deleted, "deleted, left:", table.to_pyarrow_table()["x"].to_pylist())
assert shown == 1
assert deleted == 2, "fixed: NaN is not above a number"
PYTHON
