#!/usr/bin/env bash
# pyreadstat 1.3.7: write_xport, then read_xport, of numbers beyond what the file's IBM floats hold (7e75).
# Guess before it was run: an error, as write_dta raises for an integer outside its range.
# Seen: no error. 1e80 comes back as infinity and 1e-90 as 0, in the same file that keeps all digits of pi.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q pyreadstat==1.3.7 pandas==3.1.1 numpy==2.4.6
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON'
import math

import pandas as pd
import pyreadstat

written = [1e80, 1e-90, math.pi]
pyreadstat.write_xport(pd.DataFrame({"VALUE": written}), "values.xpt")
read = pyreadstat.read_xport("values.xpt")[0]["VALUE"].tolist()
print("written", written, "read", read)
assert read == [math.inf, 0, math.pi], "fixed: numbers out of range are kept or refused"
PYTHON
