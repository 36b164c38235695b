#!/usr/bin/env bash
# DuckDB 2.0.1: read_csv of a table of three columns, one row of which has two cells.
# Guess before it was run: an error that names the row, or a NULL in it.
# Seen: a table of one column of texts, '1,2,3' and so on: as rows do not agree on a delimiter the
# sniffer takes a table without one. pandas fills the gap. The number of columns is the only sign.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q duckdb==2.0.1 pandas==3.1.1
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON'
import pathlib

import duckdb
import pandas as pd

pathlib.Path("short.csv").write_text("a,b,c\n1,2,3\n4,5\n1,2,3\n")
rows = duckdb.execute("select * from read_csv('short.csv')").fetchall()
filled = pd.read_csv("short.csv")
print(rows, filled.to_numpy().tolist())
assert filled.shape == (3, 3)
assert len(rows[0]) == 1, "fixed: three columns, or an error"
PYTHON
