#!/usr/bin/env bash
# DuckDB 2.0.1: read_csv of a column of dates with years of two digits, all days below 13 (01/02/24).
# Guess before it was run: 2 January 2024, the month first.
# Seen: 24 February 2001, and 25/02/24 is 24 February 2025: with two digits the year is taken from the
# front, and every date of the column is a valid one, decades apart. With four digits the day is taken
# from the front.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q duckdb==2.0.1
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON'
import pathlib

import duckdb

seen = {}
for text in ("01/02/24", "25/02/24", "01/02/2024"):
    pathlib.Path("dates.csv").write_text("day,x\n" + f"{text},1\n" * 3)
    seen[text] = str(duckdb.execute("select day from read_csv('dates.csv')").fetchone()[0])
print(seen)
assert seen["01/02/24"] == "2001-02-24", "fixed: the year is not taken from the front"
PYTHON
