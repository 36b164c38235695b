"""Take model files apart and reassemble them without the package's own checks."""

from __future__ import annotations

import io
import json
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from kpca_apps.system.files.model_files import FORMAT_VERSION, load_model_file, save_model_file

Document = dict[str, Any]
Arrays = dict[str, NDArray[Any]]
Model = TypeVar("Model")


def read_parts(path: Path) -> tuple[Document, Arrays]:
    with np.load(path, allow_pickle=False) as parts:
        document = json.loads(parts["model.json"])
        return document, {name: parts[name] for name in parts.files if name != "model.json"}


def write_parts(path: Path, document: Document, arrays: Mapping[str, NDArray[Any]]) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("model.json", json.dumps(document))
        for name, array in arrays.items():
            buffer = io.BytesIO()
            np.save(buffer, array, allow_pickle=True)
            archive.writestr(f"{name}.npy", buffer.getvalue())


def parts_of(model: object) -> tuple[Document, Arrays]:
    """Return a model file's content: the JSON of the model itself, and the arrays."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "m.kpca")
        save_model_file(path, "test", model)
        document, arrays = read_parts(path)
        return document["model"], arrays


def model_from(make: type[Model], model: Document, arrays: Mapping[str, NDArray[Any]]) -> Model:
    """Load a model from these parts."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "m.kpca")
        document = {
            "format": "kpca-model",
            "format_version": FORMAT_VERSION,
            "kind": "test",
            "model": model,
        }
        write_parts(path, document, arrays)
        return load_model_file(path, "test", make, "a test")


def from_file(model: Model) -> Model:
    return model_from(type(model), *parts_of(model))
