"""Write scikit-learn's bundled breast-cancer table as a CSV with a label column.

Run ``python datasets/make_breast_cancer.py`` to write ``breast_cancer.csv`` again, byte for byte.
"""

from __future__ import annotations

import csv
import io
from pathlib import Path

from sklearn.datasets import load_breast_cancer

FOLDER = Path(__file__).resolve().parent


def files() -> dict[str, str]:
    """Return the file this script makes: name -> text."""
    data = load_breast_cancer()
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*data.feature_names, "diagnosis"])
    for values, target in zip(data.data, data.target, strict=True):
        # repr of a float gives the shortest text that reads back as the same number
        writer.writerow([*(repr(float(v)) for v in values), data.target_names[target]])
    return {"breast_cancer.csv": text.getvalue()}


if __name__ == "__main__":
    for name, content in files().items():
        (FOLDER / name).write_text(content, encoding="utf-8", newline="\n")
