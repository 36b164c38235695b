#!/usr/bin/env bash
# statsmodels 0.15.0: robust.scale.qn_scale (Rousseeuw and Croux 1993) of few normal values.
# Guess before it was run: within 5 % of the deviation from ten values on, since the estimator is
# known for its correction in small samples.
# Seen: 39 % too large at 10 values, 64 % at 6, 7 % at 50: the factor for small samples of the paper's
# authors is not applied. As the scale of a limit for outliers it lets the first ones through; mad of
# the same values errs the other way, by 8 % at 10.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q statsmodels==0.15.0
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON'
import numpy as np
from statsmodels.robust.scale import mad, qn_scale

rng = np.random.default_rng(0)
means = {}
for size in (6, 10, 50):
    draws = rng.normal(size=(1500, size))
    means[size] = [float(np.mean([scale(draw) for draw in draws])) for scale in (qn_scale, mad)]
print({size: [round(value, 3) for value in pair] for size, pair in means.items()})
assert means[10][0] > 1.2, "fixed: corrected for small samples"
PYTHON
