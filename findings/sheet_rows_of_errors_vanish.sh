#!/usr/bin/env bash
# polars 2.1.0 with fastexcel 0.21.0: write_excel of a column with NaN and infinity, read again by
# read_excel.
# Guess before it was run: four rows come back, NaN and infinity as nulls or as texts of errors.
# Seen: one row of four comes back. The writer makes error cells of NaN and infinity (#NUM!, #DIV/0!),
# the reader makes nulls of error cells, and rows of nulls alone are dropped by default. Nothing is
# said; what was next to them, if it was read from another file, no longer fits.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q polars==2.1.0 fastexcel==0.21.0 xlsxwriter==3.2.9 pyarrow==26.0.1
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON'
import polars as pl

table = pl.DataFrame({"x": [1.0, float("nan"), float("inf"), None]})
table.write_excel("out.xlsx")
again = pl.read_excel("out.xlsx")
kept = pl.read_excel("out.xlsx", drop_empty_rows=False)
print(table.height, "rows written,", again.height, "read,", kept.height, "with drop_empty_rows=False")
assert again.height == 1, "fixed: rows of error cells stay"
PYTHON
