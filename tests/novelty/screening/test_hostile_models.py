"""A valid model archive with invalid values is refused in one line, or works."""

import copy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from kpca_apps.errors import ModelFileError
from kpca_apps.novelty.columns.plan import ColumnOptions
from kpca_apps.novelty.explain import explain_row
from kpca_apps.novelty.run import score
from kpca_apps.novelty.screening.fit import fit_table
from kpca_apps.novelty.screening.model import ScreeningOptions, load_model, save_model
from kpca_apps.tables.frames import table_from_frame
from kpca_apps.tables.table import Table
from tests.novelty.tables import frame_of
from tests.quick import quick
from tests.system.model_parts import Arrays, Document, read_parts, write_parts

HOSTILE: tuple[Any, ...] = (
    None,
    5,
    True,
    "x",
    [],
    {},
    1e300,
    -1,
    float("nan"),
    "l" * 5000,
    "\ud800",
    2**70,
)


def mixed(n: int) -> Table:
    frame = frame_of(n)
    extra = {
        "when": [f"{1 + i % 28:02d}/0{1 + i % 9}/2020" for i in range(n)],
        "price": [f"{i * i % 37 + 1000},{i % 90 + 10} EUR" for i in range(n)],
        "sick": ["Yes" if i % 3 else "no" for i in range(n)],
        "note": [f"seen at lake {i % 11} by {'two ' * (i % 5)}people, no {i}" for i in range(n)],
    }
    return table_from_frame(frame.with_columns(**{k: pl.Series(v) for k, v in extra.items()}), "m")


@pytest.fixture(scope="module")
def table() -> Table:
    return mixed(24)


@pytest.fixture(scope="module")
def archives(table: Table, tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Document, Any]]:
    """Return three saved models: with Tikhonov filter, with truncation, and with groups."""
    path = tmp_path_factory.mktemp("sound") / "m.kpca"
    documents = []
    for options in (ScreeningOptions(), ScreeningOptions(method="hoffmann")):
        save_model(fit_table(table, options)[0], path)
        documents.append(read_parts(path))
    by = ScreeningOptions(columns=ColumnOptions(by=("sick",)))
    save_model(fit_table(mixed(156), by)[0], path)
    return [*documents, read_parts(path)]


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of each value of a document; in a list, only the first and last."""
    if path:
        yield path
    keys = [*value] if isinstance(value, dict) else []
    if isinstance(value, list) and value:
        keys = sorted({0, len(value) - 1})
    for key in keys:
        yield from leaves(value[key], (*path, key))


def changed(document: Document, path: tuple[Any, ...], value: Any) -> Document:
    other = copy.deepcopy(document)
    parent: Any = other
    for key in path[:-1]:
        parent = parent[key]
    parent[path[-1]] = value
    return other


def refused_or_works(path: Path, table: Table) -> None:
    try:
        model = load_model(path)
        result = score(model, table)
    except ModelFileError as error:
        assert "\n" not in str(error) and len(str(error)) < 400
        return
    assert np.isfinite(result.rows.scores).all()
    explain_row(model, table, row="1")


def test_the_table_has_every_kind_of_column(table: Table, archives: list[Any]) -> None:
    roles = {column["role"] for column in archives[0][0]["model"]["encoder"]["plan"]["specs"]}
    assert roles >= {"numeric", "boolean", "categorical", "datetime", "text", "identifier"}


@pytest.mark.parametrize("which", quick([0, 1, 2], 1), ids=["soft", "hard", "groups"])
def test_no_value_of_another_kind_fails_later(
    which: int, archives: list[tuple[Document, Arrays]], table: Table, tmp_path: Path
) -> None:
    document, arrays = archives[which]
    # Replace each value by one hostile value only, as all combinations would take minutes. All
    # documents have the same encoder, so only the first changes it.
    parts = [leaf for leaf in leaves(document) if which == 0 or leaf[1:2] != ("encoder",)]
    if which == 2:
        parts = [leaf for leaf in parts if leaf[1:2] in (("groups",), ("group_threshold",))]
        # Change only every third part, and only of the first group: a group has the same parts as
        # the models without groups, where all parts are changed.
        parts = [leaf for leaf in parts if len(leaf) < 4 or leaf[2] == 0][::3]
    for number, leaf in enumerate(parts):
        value = HOSTILE[(5 * number + which) % len(HOSTILE)]
        write_parts(tmp_path / "bad.kpca", changed(document, leaf, value), arrays)
        refused_or_works(tmp_path / "bad.kpca", table)


@pytest.mark.parametrize(
    ("leaf", "value"),
    [
        (("rule", "name"), []),
        (("rule", "name"), "luck"),
        (("encoder", "plan", "specs", 0, "name"), 5),
        (("encoder", "plan", "specs", 0, "why"), 5),
        (("encoder", "plan", "specs", 1, "name"), "name"),
        (("encoder", "plan", "specs", 1, "role"), "datetime"),
        (("encoder", "plan", "specs", 1, "format", "decimal"), "(a+)+"),
        (("encoder", "coders", 0, "features"), [0, 1]),
        (("encoder", "coders", 0, "type"), "LevelCoder"),
        (("encoder", "coders", 0, "notation", "order"), "yyy"),
        (("options", "share"), "x"),
        (("options", "share"), 5),
        (("versions",), []),
        (("versions", "numpy"), 2),
        (("source", "n_rows"), 23),
        (("detector", "calibration"), "split"),
        (("detector", "threshold"), float("nan")),
        (("detector", "n_features_in"), 10**12),
        (("detector", "groups"), [[0]]),
        (("detector", "parameters", "share"), 2.0),
        (("detector", "combined", "oddest_zero"), -1e308),
        (("detector", "combined", "oddest_slope"), 1e308),
    ],
    ids=str,
)
def test_values_that_no_fit_leads_to_are_one_line(
    leaf: tuple[Any, ...], value: object, archives: list[tuple[Document, Arrays]], tmp_path: Path
) -> None:
    document, arrays = archives[0]
    write_parts(tmp_path / "bad.kpca", changed(document, ("model", *leaf), value), arrays)
    with pytest.raises(ModelFileError, match=r"bad\.kpca: not a usable model file .*; give a mod"):
        load_model(tmp_path / "bad.kpca")


@pytest.mark.parametrize(
    ("leaf", "value"),
    [
        (("groups",), []),
        (("groups", 1, "values"), ["no"]),
        (("groups", 0, "values"), ["no", "Yes"]),
        (("groups", 0, "n_rows"), 10**9),
        (("groups", 0, "detector", "parameters", "contaminated"), True),
        (("groups", 0, "detector", "combined"), None),
        (("group_threshold",), 3.0),
        (("options", "columns", "by"), []),
        (("options", "columns", "by"), ["name"]),
    ],
    ids=str,
)
def test_groups_that_no_fit_leads_to_are_one_line(
    leaf: tuple[Any, ...], value: object, archives: list[tuple[Document, Arrays]], tmp_path: Path
) -> None:
    document, arrays = archives[2]
    assert document["model"]["groups"][0]["values"] == ["Yes"]
    assert document["model"]["groups"][1]["values"] == ["no"]
    changes = changed(document, ("model", *leaf), value)
    if leaf[-2:] == (1, "values"):  # two groups with the same value
        changes["model"]["groups"][0]["values"] = value
    write_parts(tmp_path / "bad.kpca", changes, arrays)
    with pytest.raises(ModelFileError, match=r"bad\.kpca"):
        load_model(tmp_path / "bad.kpca")


@pytest.mark.parametrize("name", ["mean", "scale", "precision"])
def test_moments_that_are_none_are_refused(
    name: str, archives: list[tuple[Document, Arrays]], tmp_path: Path
) -> None:
    document, arrays = archives[0]
    sound = arrays[f"encoder.imputer.{name}"]
    for bad in (sound[:-1], sound * np.nan, sound.astype(np.int64), np.zeros_like(sound)):
        if name == "mean" and not bad.any() and bad.shape == sound.shape:
            continue  # means may be zero
        write_parts(tmp_path / "bad.kpca", document, {**arrays, f"encoder.imputer.{name}": bad})
        with pytest.raises(ModelFileError, match=r"bad\.kpca"):
            load_model(tmp_path / "bad.kpca")


def test_a_hard_cut_of_huge_numbers_is_refused(
    archives: list[tuple[Document, Arrays]], tmp_path: Path
) -> None:
    """The first row gets a finite score, but the other rows do not."""
    document, arrays = archives[1]
    bad = arrays["detector.subspace.mean_weights"].copy()
    bad[3] = -1e308
    write_parts(tmp_path / "bad.kpca", document, {**arrays, "detector.subspace.mean_weights": bad})
    with pytest.raises(ModelFileError, match="mean_weights holds values that no fit leads to"):
        load_model(tmp_path / "bad.kpca")


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("landmarks", lambda a: np.arange(len(a) + 9)),
        ("landmarks", lambda a: a[::-1].copy()),
        ("views.widths", lambda a: np.full_like(a, 1e-320)),
        ("views.scales.sd", np.zeros_like),
        ("combined.cells.usual", np.zeros_like),
        ("combined.cells.map.scale", np.zeros_like),
        ("combined.cells.map.moments", np.zeros_like),
        ("combined.cells.columns.deviation", lambda a: np.full_like(a, 1e-308)),
        ("combined.cells.columns.factor", lambda a: np.full_like(a, 1e150)),
        ("combined.cells.alone.exponents", lambda a: np.full_like(a, 1e308)),
        ("combined.cells.given_others.knots", lambda a: a[:, ::-1].copy()),
        ("combined.error.0.surprise", lambda a: a - 1e308),
        ("combined.weights", lambda a: np.full_like(a, 1e308)),
        ("combined.cells.share", lambda a: -a),
        ("combined.cells.map.number", lambda a: np.full_like(a, a[0])),
        ("combined.cells.map.polynomial", lambda a: np.full_like(a, a[0])),
        ("combined.cells.map.equals", lambda a: np.full_like(a, np.inf)),
    ],
)
def test_a_score_that_some_rows_would_not_have_is_refused_at_once(
    name: str, damage: Callable[..., Any], archives: list[tuple[Document, Arrays]], tmp_path: Path
) -> None:
    document, arrays = archives[0]
    bad = {**arrays, f"detector.{name}": damage(arrays[f"detector.{name}"])}
    write_parts(tmp_path / "bad.kpca", document, bad)
    with pytest.raises(ModelFileError, match=r"bad\.kpca"):
        load_model(tmp_path / "bad.kpca")


def test_features_without_columns_get_no_memory(
    archives: list[tuple[Document, Arrays]], tmp_path: Path
) -> None:
    """One group of 100,000 features would need a matrix of 80 GB."""
    document, arrays = archives[0]
    part, added = "detector.combined.cells", 100_000
    last = np.full(added, arrays[f"{part}.map.group"][-1])
    bad = {**arrays}
    for name, more in (
        ("map.group", last),
        ("columns.mean", np.zeros(added)),
        ("columns.deviation", np.ones(added)),
    ):
        bad[f"{part}.{name}"] = np.r_[arrays[f"{part}.{name}"], more]
    bad[f"{part}.columns.factor"] = np.zeros((0, len(bad[f"{part}.map.group"])))
    write_parts(tmp_path / "bad.kpca", document, bad)
    with pytest.raises(ModelFileError, match=r"bad\.kpca"):
        load_model(tmp_path / "bad.kpca")
