#!/usr/bin/env bash
# polars 2.1.0, pyarrow 26.0.1 and DuckDB 2.0.1: a folder of Parquet partitioned by a code (code=007,
# code=1e5, code=0x1).
# Guess before it was run: all three read 007 as 7 and keep the other two as text.
# Seen: 007 is 7 in polars and pyarrow, '007' in DuckDB; 1e5 is 100000.0 in polars, text in the
# others; 0x1 is 1 in pyarrow and DuckDB, text in polars. The key is a name of a folder, so nobody
# stored its type: give a schema.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q polars==2.1.0 pyarrow==26.0.1 duckdb==2.0.1
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON'
import pathlib

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

seen = {}
for code in ("007", "1e5", "0x1"):
    folder = pathlib.Path("lake" + code, f"code={code}")
    folder.mkdir(parents=True)
    pq.write_table(pa.table({"x": [1]}), folder / "part.parquet")
    files = f"{folder.parent}/*/*.parquet"
    query = f"select code from read_parquet('{files}', hive_partitioning=true)"
    seen[code] = (
        pl.scan_parquet(files, hive_partitioning=True).collect()["code"][0],
        ds.dataset(folder.parent, partitioning="hive").to_table()["code"][0].as_py(),
        duckdb.execute(query).fetchone()[0],
    )
print("polars, pyarrow, DuckDB:", seen)
assert seen == {"007": (7, 7, "007"), "1e5": (100000.0, "1e5", "1e5"), "0x1": ("0x1", 1, 1)}, "changed"
PYTHON
