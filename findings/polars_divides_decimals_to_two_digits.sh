#!/usr/bin/env bash
# polars 2.1.0: a ratio of two columns of decimals with two digits, as Parquet and databases give
# amounts. Beside it pyarrow 26.0.1 and duckdb 2.0.1.
# Guess before it was run: at least six digits.
# Seen: two digits: 1.00 / 3.00 is 0.33 and 0.02 / 3.00 is 0.01. pyarrow keeps more, DuckDB gives a
# double.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q polars==2.1.0 pyarrow==26.0.1 duckdb==2.0.1
"$folder/venv/bin/python" - <<'PYTHON'
from decimal import Decimal

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

amounts = {"paid": [Decimal("1.00"), Decimal("0.02")], "rate": [Decimal("3.00")] * 2}
ratios = pl.DataFrame(amounts).select(pl.col("paid") / pl.col("rate"))["paid"]
arrow = pc.divide(*(pa.array(cells, pa.decimal128(5, 2)) for cells in amounts.values()))
[base] = duckdb.sql("select 1.00::decimal(10,2) / 3.00::decimal(10,2)").fetchall()
print(ratios.to_list(), arrow.to_pylist(), base)
assert ratios.to_list() == [Decimal("0.33"), Decimal("0.01")], "fixed: more digits"
assert abs(float(arrow[1].as_py()) - 0.02 / 3) < 1e-3 and abs(base[0] - 1 / 3) < 1e-9
PYTHON
