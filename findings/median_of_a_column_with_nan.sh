#!/usr/bin/env bash
# pyarrow 26.0.1, polars 2.1.0, DuckDB 2.0.1 and NumPy: the median of 1, 2, 3, NaN, NaN.
# Guess before it was run: NaN or 3 everywhere, as each sorts NaN last or lets it spread.
# Seen: pyarrow leaves NaN out without being asked and answers 2, though its mean of the same column
# is NaN; polars and DuckDB count NaN as the largest and answer 3; NumPy answers NaN. Columns with
# gaps written as NaN have other medians in each.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q pyarrow==26.0.1 polars==2.1.0 duckdb==2.0.1 numpy==2.4.6
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON'
import math

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

values = [1.0, 2.0, 3.0, math.nan, math.nan]
table = pl.DataFrame({"x": values})
table.write_parquet("x.parquet")
seen = {
    "pyarrow": pc.quantile(pa.array(values), 0.5)[0].as_py(),
    "polars": table["x"].median(),
    "DuckDB": duckdb.execute("select median(x) from 'x.parquet'").fetchone()[0],
    "NumPy": float(np.median(values)),
}
print(seen, "mean in pyarrow:", pc.mean(pa.array(values)))
assert (seen["polars"], seen["DuckDB"]) == (3.0, 3.0)
assert math.isnan(seen["NumPy"])
assert seen["pyarrow"] == 2.0, "fixed: as its mean does"
PYTHON
