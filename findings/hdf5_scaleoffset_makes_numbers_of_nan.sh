#!/usr/bin/env bash
# h5py 3.16.0 (HDF5's scale-offset filter): a float dataset with gaps, packed to two decimals.
# Guess before it was run: NaN comes back as NaN, and the other values to two decimals.
# Seen: NaN comes back as a usual number, the least value of the chunk; nothing tells the gaps from the data.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q h5py==3.16.0 numpy==2.4.6
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON'
import h5py
import numpy as np

written = np.array([21.504, np.nan, 19.871, 20.006])
with h5py.File("series.h5", "w") as file:
    file.create_dataset("temperature", data=written, scaleoffset=2)
with h5py.File("series.h5") as file:
    read = file["temperature"][:].round(2).tolist()
print("written", written.tolist(), "read", read)
assert read[0] == 21.5 and read[2:] == [19.87, 20.01], "changed: packed values"
assert read[1] == 19.87, "fixed: a gap is kept or refused"
PYTHON
