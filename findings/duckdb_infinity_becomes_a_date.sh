#!/usr/bin/env bash
# DuckDB 2.0.1: read_csv of a column that holds 'inf' alone, as a measured ratio with a zero below it
# does.
# Guess before it was run: a column of doubles, infinity in it.
# Seen: a column of dates. The sniffer tries dates before numbers, and a date may be infinite; in
# Python it is 9999-12-31. With a finite number among the cells it is a column of text, though a cast
# to DOUBLE reads every cell.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q duckdb==2.0.1
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON'
import pathlib

import duckdb

pathlib.Path("ratio.csv").write_text("name,ratio\na,inf\nb,inf\n")
alone = duckdb.execute("select typeof(ratio), ratio from read_csv('ratio.csv')").fetchone()
pathlib.Path("ratio.csv").write_text("name,ratio\na,inf\nb,2.5\n")
beside = duckdb.execute("select typeof(ratio), ratio from read_csv('ratio.csv')").fetchone()
print(alone, beside)
assert beside[0] == "VARCHAR"
assert alone[0] == "DATE", "fixed: infinity is a number"
PYTHON
