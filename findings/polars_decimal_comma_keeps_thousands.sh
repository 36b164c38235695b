#!/usr/bin/env bash
# polars 2.1.0: read_csv(separator=';', decimal_comma=True) of amounts such as 1.234,56.
# Guess before it was run: numbers, since who writes a decimal comma writes dots between thousands.
# Seen: one amount above 999 makes a column of texts of all; below that it is a column of numbers. So
# the type depends on the largest amount of the month, and a file that was read well for a year turns
# to text.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q polars==2.1.0
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON'
import io

import polars as pl

kinds = [
    pl.read_csv(io.StringIO(f"name;amount\na;{amount}\nb;7,50\n"), separator=";", decimal_comma=True)["amount"].dtype
    for amount in ("999,00", "1234,56", "1.234,56")
]
print(kinds)
assert kinds[0] == kinds[1] == pl.Float64
assert kinds[2] == pl.String, "fixed: dots between thousands are read"
PYTHON
