#!/usr/bin/env bash
# polars 2.1.0 with fastexcel 0.21.0: read_excel of a column of times of day (18:00, format hh:mm).
# Guess before it was run: a column of times, as from openpyxl.
# Seen: dates with times on the last day of 1899: 1899-12-31 18:00. The default engine knows dates,
# times and spans as one type of cell; openpyxl looks at the number format and gives 18:00. Joined
# with a table read by the other engine no row matches, and years lie a century off.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q polars==2.1.0 fastexcel==0.21.0 openpyxl==3.1.5 xlsxwriter==3.2.9 pyarrow==26.0.1
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON'
import datetime

import polars as pl
import xlsxwriter

book = xlsxwriter.Workbook("times.xlsx")
sheet = book.add_worksheet()
sheet.write(0, 0, "begins")
for row in (1, 2, 3):
    sheet.write(row, 0, 0.75, book.add_format({"num_format": "hh:mm"}))
book.close()
default = pl.read_excel("times.xlsx")["begins"]
other = pl.read_excel("times.xlsx", engine="openpyxl")["begins"]
print(default.dtype, default[0], "and", other.dtype, other[0])
assert other[0] == datetime.time(18, 0)
assert default[0] == datetime.datetime(1899, 12, 31, 18, 0), "fixed: a time of day"
PYTHON
