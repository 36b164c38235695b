#!/usr/bin/env bash
# polars 2.1.0, DuckDB 2.0.1 and pandas 3.1.1: a column of 01/02/2024, all days below 13, dates asked
# for.
# Guess before it was run: text in polars, month first in DuckDB, as in America.
# Seen: polars and DuckDB read 1 February, pandas 2 January, none with a word. So the same export is
# read otherwise by what writes the model and what scores with it, and both look right.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q polars==2.1.0 duckdb==2.0.1 pandas==3.1.1
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON'
import pathlib

import duckdb
import pandas as pd
import polars as pl

pathlib.Path("dates.csv").write_text("day,x\n" + "01/02/2024,1\n" * 3)
seen = {
    "polars": str(pl.read_csv("dates.csv", try_parse_dates=True)["day"][0]),
    "DuckDB": str(duckdb.execute("select day from read_csv('dates.csv')").fetchone()[0]),
    "pandas": str(pd.read_csv("dates.csv", parse_dates=["day"])["day"][0].date()),
}
print(seen)
assert seen == {"polars": "2024-02-01", "DuckDB": "2024-02-01", "pandas": "2024-01-02"}, "changed"
PYTHON
