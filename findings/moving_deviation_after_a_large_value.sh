#!/usr/bin/env bash
# bottleneck 1.6.0: move_std over ten values, in a series at 1e9 with a deviation of 1, after one value
# of 1e15. polars 2.1.0 beside it.
# Guess before it was run: exact again once the large value has left the window.
# Seen: wrong by up to .58, half of the deviation, to the end of the series: what the large value
# rounded away stays in the running sums. polars is right to 1e-6.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q bottleneck==1.6.0 polars==2.1.0 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import bottleneck as bn
import numpy as np
import polars as pl

series = 1e9 + np.random.default_rng(0).normal(size=1000)
series[300] = 1e15
right = np.lib.stride_tricks.sliding_window_view(series, 10).std(axis=1)[311:]
moving = np.abs(bn.move_std(series, 10)[320:] - right)
polars = np.abs(pl.Series(series).rolling_std(10, ddof=0).to_numpy()[320:] - right)
print(moving.max(), np.median(moving), polars.max())
assert polars.max() < 1e-6
assert moving.max() > 0.1, "fixed: exact again"
PYTHON
