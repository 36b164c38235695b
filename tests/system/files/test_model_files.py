from __future__ import annotations

import io
import json
import os
import zipfile
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta
from numpy.typing import NDArray

from kpca_apps.errors import InputError, ModelFileError, RefusedError
from kpca_apps.system.files.model_files import (
    FORMAT_VERSION,
    check_model_path,
    load_model_file,
    save_model_file,
)
from tests.hostile.tables import zipped
from tests.system.model_parts import parts_of, read_parts, write_parts

Floats = NDArray[np.float64]
archive = partial(zipped, method=zipfile.ZIP_STORED)


class Shape(ABC):
    @abstractmethod
    def area(self) -> float: ...


@dataclass(frozen=True)
class Square(Shape):
    side: Annotated[float, Meta(gt=0)]

    def area(self) -> float:
        return self.side**2


@dataclass(frozen=True)
class Both(Shape):
    shapes: tuple[Shape, ...]

    def area(self) -> float:
        return sum(shape.area() for shape in self.shapes)


@dataclass(frozen=True, eq=False)
class Curve:
    x: Annotated[Floats, "n"]
    y: Annotated[Floats, "n", Meta(ge=0, lt=1)]


@dataclass(frozen=True, eq=False)
class Whole:
    name: str
    number: float
    count: Annotated[int, Meta(ge=0)] | None
    words: tuple[str, ...]
    shape: Shape
    curves: tuple[Curve, ...]
    points: Annotated[Floats, "n 2"]
    square: Annotated[Floats, "k k"] | Curve
    single: Annotated[NDArray[np.float32], "m", "NaN too"]
    index: Annotated[NDArray[np.int64], "n"]

    def validate(self) -> None:
        if self.name == "unnamed":
            raise ValueError("unnamed is no name")


X = np.array([0.5, 2.0])
WHOLE = Whole(
    name="b\n\U0001f427",
    number=1e-300,
    count=None,
    words=("a", ""),
    shape=Both((Square(2.0), Both((Square(0.5),)))),
    curves=(Curve(X, np.array([0.25, 0.0])), Curve(X, np.zeros(2))),
    points=np.arange(6.0).reshape(3, 2),
    square=np.eye(2),
    single=np.array([1.5, np.nan], dtype=np.float32),
    index=np.array([3, 0, 1]),
)
EMPTY = replace(
    WHOLE, points=np.empty((0, 2)), index=np.empty(0, dtype=np.int64), curves=(), words=()
)


def load(path: Path) -> Whole:
    return load_model_file(path, "test", Whole, "a test; make one")


def assert_same(one: Whole, other: Whole = WHOLE) -> None:
    first, second = parts_of(one), parts_of(other)
    assert first[0] == second[0] and first[1].keys() == second[1].keys()
    for name, array in first[1].items():
        np.testing.assert_array_equal(array, second[1][name], strict=True)
    assert one.points.flags.writeable


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("models") / "saved.kpca"
    save_model_file(path, "test", WHOLE)
    return path.read_bytes()


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models") / "scratch.kpca"


@pytest.mark.parametrize(
    "model",
    [WHOLE, EMPTY, replace(WHOLE, square=Curve(X, X / 4), count=7)],
    ids=["whole", "empty", "other of two types"],
)
def test_saved_models_are_restored(model: Whole, tmp_path: Path) -> None:
    path = tmp_path / "model.kpca"
    save_model_file(path, "test", model)
    again = load(path)
    assert_same(again, model)
    assert again.shape == model.shape


def test_numpy_opens_a_file_without_pickle(saved: bytes, scratch: Path) -> None:
    scratch.write_bytes(saved)
    with np.load(scratch, allow_pickle=False) as parts:
        np.testing.assert_array_equal(parts["points"], WHOLE.points)
        np.testing.assert_array_equal(parts["curves.0.y"], WHOLE.curves[0].y)


def test_same_model_is_the_same_bytes(saved: bytes, tmp_path: Path) -> None:
    path = tmp_path / "again.kpca"
    for points in (WHOLE.points.copy(), WHOLE.points.astype(">f8")):
        save_model_file(path, "test", replace(WHOLE, points=points))
        assert path.read_bytes() == saved


def test_the_layout_in_memory_is_kept(scratch: Path) -> None:
    for points in (WHOLE.points, np.asfortranarray(WHOLE.points)):
        save_model_file(scratch, "test", replace(WHOLE, points=points))
        again = load(scratch)
        assert again.points.flags.f_contiguous == points.flags.f_contiguous
        np.testing.assert_array_equal(again.points, points)


def test_an_array_in_two_places_is_stored_once(scratch: Path, saved: bytes) -> None:
    scratch.write_bytes(saved)
    assert not any(name.startswith("curves.1.x") for name in read_parts(scratch)[1])
    again = load(scratch)
    assert again.curves[0].x is again.curves[1].x


def test_numbers_of_numpy_are_numbers(scratch: Path) -> None:
    save_model_file(scratch, "test", replace(WHOLE, number=np.float64(0.1), count=np.int64(3)))
    again = load(scratch)
    assert (again.number, again.count) == (0.1, 3)


def refusal(path: Path, data: bytes) -> str:
    path.write_bytes(data)
    with pytest.raises(ModelFileError) as caught:
        load(path)
    message = str(caught.value)
    assert path.name in message
    assert "\n" not in message
    return message


@given(flips=st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 7)), min_size=1, max_size=3))
def test_flipped_bits_are_rejected_or_harmless(
    saved: bytes, scratch: Path, flips: list[tuple[int, int]]
) -> None:
    data = bytearray(saved)
    for position, bit in flips:
        data[position % len(data)] ^= 1 << bit
    scratch.write_bytes(data)
    try:
        model = load(scratch)
    except ModelFileError as error:
        assert "\n" not in str(error)
    else:
        assert_same(model)


@given(cut=st.integers(0, 10**6))
def test_a_file_cut_short_is_refused(saved: bytes, scratch: Path, cut: int) -> None:
    refusal(scratch, saved[: cut % len(saved)])


@given(data=st.binary(max_size=300))
def test_arbitrary_bytes_are_refused(scratch: Path, data: bytes) -> None:
    refusal(scratch, data)
    refusal(scratch, b"PK\x03\x04" + data)


NUMBER = {"type": "float64", "array": "points"}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": "unnamed"}, "Whole: unnamed is no name"),
        ({"name": 5}, "Expected `str`, got `int` - at `$.name`"),
        ({"name": "\ud800"}, "not a usable model file"),
        ({"number": None}, "Expected `float`, got `null`"),
        ({"number": True}, "Expected `float`, got `bool`"),
        ({"number": float("nan")}, "JSON is malformed"),
        ({"number": float("-inf")}, "JSON is malformed"),
        ({"count": 1.5}, "Expected `int | null`, got `float`"),
        ({"count": -1}, "Expected `int` >= 0"),
        ({"count": 2**70}, "not a usable model file"),
        ({"words": "ab"}, "Expected `array`, got `str`"),
        ({"words": [1]}, "Expected `str`, got `int`"),
        ({"more": 1}, "unknown field `more`"),
        ({"type": "Curve"}, "Invalid value 'Curve'"),
        ({"shape": {"type": "Square", "side": 0.0}}, "Expected `float` > 0"),
        ({"shape": {"type": "Square"}}, "missing required field `side`"),
        ({"shape": {"type": "Shape"}}, "no Shape is called 'Shape'"),
        ({"shape": {"type": "object"}}, "no Shape is called 'object'"),
        ({"shape": [1]}, "no Shape is called None"),
        ({"curves": [{"type": "Curve", "x": NUMBER, "y": NUMBER}]}, "Curve: x has shape (3, 2)"),
        ({"points": {"type": "float64", "array": "index"}}, "index is an array of type int64"),
        ({"points": {"type": "int64", "array": "index"}}, "Invalid value 'int64'"),
        ({"points": {"type": "float64", "array": "none"}}, "none.npy"),
        ({"points": {"type": "float64", "array": "square"}, "index": NUMBER}, "Invalid value"),
        ({"points": [[1.0, 2.0]]}, "Expected `object`, got `array`"),
        ({"square": {"type": "float64", "array": "points"}}, "Whole: square has shape (3, 2)"),
        ({"curves": []}, "belongs to nothing"),
    ],
    ids=str,
)
def test_json_that_contradicts_its_declaration_is_rejected(
    changes: dict[str, Any], words: str, saved: bytes, scratch: Path
) -> None:
    scratch.write_bytes(saved)
    document, arrays = read_parts(scratch)
    write_parts(scratch, {**document, "model": {**document["model"], **changes}}, arrays)
    assert words in refusal(scratch, scratch.read_bytes())


def test_nesting_of_shapes_is_limited(saved: bytes, scratch: Path) -> None:
    scratch.write_bytes(saved)
    document, arrays = read_parts(scratch)
    for depth, is_refused in ((14, False), (20, True), (5_000, True)):
        text = '{"type": "Both", "shapes": [' * depth + "]}" * depth
        data = json.dumps({**document, "model": {**document["model"], "shape": 0}})
        data = data.replace('"shape": 0', f'"shape": {text}')
        with zipfile.ZipFile(scratch, "w") as file:
            file.writestr("model.json", data)
            for name, array in arrays.items():
                file.writestr(f"{name}.npy", npy(array))
        if is_refused:
            refusal(scratch, scratch.read_bytes())
        else:
            assert load(scratch).shape.area() == 0


@pytest.mark.parametrize(
    ("name", "array", "words"),
    [
        ("points", np.zeros((3, 3)), "points has shape (3, 3)"),
        ("points", np.zeros(6), "points has shape (6,)"),
        ("points", np.zeros((4, 2)), "index has shape (3,)"),
        ("points", np.full((3, 2), np.inf), "points holds values that no fit leads to"),
        ("points", np.full((3, 2), np.nan), "points holds values that no fit leads to"),
        ("points", np.zeros((3, 2), dtype=np.float32), "points is an array of type float32"),
        ("points", np.zeros((3, 2), dtype=">f8"), "points is an array of type >f8"),
        ("points", np.zeros((3, 2), dtype="i4,f8"), "points is an array of type"),
        ("curves.0.y", np.array([0.0, 1.0]), "y holds values that no fit leads to"),
        ("curves.0.y", np.array([-1.0, 0.0]), "y holds values that no fit leads to"),
        ("square", np.zeros((2, 3)), "square has shape (2, 3)"),
        ("more", np.zeros(2), "more.npy belongs to nothing"),
    ],
)
def test_arrays_that_contradict_their_declaration_are_rejected(
    name: str, array: Any, words: str, saved: bytes, scratch: Path
) -> None:
    scratch.write_bytes(saved)
    document, arrays = read_parts(scratch)
    write_parts(scratch, document, {**arrays, name: array})
    assert words in refusal(scratch, scratch.read_bytes())


def document(**changes: Any) -> bytes:
    fields = {"format": "kpca-model", "format_version": FORMAT_VERSION, "kind": "test"}
    return json.dumps({**fields, "model": parts_of(EMPTY)[0], **changes}).encode("utf-8")


def npy(array: Any, **options: Any) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, **options)
    return buffer.getvalue()


def crafted(array: bytes) -> bytes:
    """Write a valid file except for its array `points`."""
    others = parts_of(EMPTY)[1]
    others["points"] = np.empty(0)
    members = [(f"{name}.npy", npy(part)) for name, part in others.items() if name != "points"]
    return archive(("model.json", document()), ("points.npy", array), *members)


def test_pickled_objects_are_never_loaded(scratch: Path, tmp_path: Path) -> None:
    class Mine:
        def __reduce__(self) -> tuple[Any, ...]:
            return Path.touch, (tmp_path / "harm",)

    data = npy(np.array([Mine()], dtype=object), allow_pickle=True)
    assert "an array of type object" in refusal(scratch, crafted(data))
    assert not (tmp_path / "harm").exists()


def test_a_header_larger_than_its_file_is_rejected(scratch: Path) -> None:
    data = npy(np.ones(2)).replace(b"(2,), }          ", b"(2000000000000,), }"[:19])
    assert "size is not what its header says" in refusal(scratch, crafted(data[:64] + data[64:]))


@pytest.mark.parametrize("shape", [(-2,), (-1, -2), (2**62, 4)])
def test_impossible_shapes(shape: tuple[int, ...], scratch: Path) -> None:
    buffer = io.BytesIO()
    header = {"descr": "<f8", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(buffer, header)
    refusal(scratch, crafted(buffer.getvalue() + bytes(16)))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_unexpected_parts(scratch: Path) -> None:
    good = ("model.json", document())
    points = ("points.npy", npy(np.empty((0, 2))))
    assert "its parts are not" in refusal(scratch, archive(good, good))
    assert "its parts are not" in refusal(scratch, archive(good, points, points))
    assert "its parts are not" in refusal(scratch, archive(points))
    assert "not a usable model file" in refusal(scratch, archive(good))
    assert "(it holds no model, or is damaged)" in refusal(scratch, b"a,b\n1,2\n")


def test_compressed_parts_are_rejected_so_there_are_no_bombs(scratch: Path) -> None:
    bomb = zipped(("model.json", document() + b" " * 10**6))
    assert len(bomb) < 20_000
    assert "unexpected part" in refusal(scratch, bomb)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (document(format="other"), "not written by this toolkit"),
        (document(format_version=FORMAT_VERSION + 1), "by a newer version"),
        (document(format_version=1), "written by an older kpca-apps"),
        (b'{"format": "kpca-model", "format_version": 1, "meta": {}, "arrays": []}', "fit the m"),
        (document(format_version="1"), "Expected `int`, got `str`"),
        (document(kind="other"), "scratch.kpca: not a test; make one"),
        (document(model=[]), "Expected `object`, got `array`"),
        (b"[" * 100_000, "not a usable model file"),
        (b"{\xff", "not a usable model file"),
        (b"null", "not a usable model file"),
    ],
)
def test_documents_that_do_not_fit(data: bytes, words: str, scratch: Path) -> None:
    assert words in refusal(scratch, archive(("model.json", data)))


def test_missing_model_names_the_nearest(saved: bytes, tmp_path: Path) -> None:
    (tmp_path / "model.kpca").write_bytes(saved)
    with pytest.raises(ModelFileError, match=r'Did you mean "model\.kpca"\?'):
        load(tmp_path / "mdoel.kpca")


def test_only_a_model_is_replaced_and_only_by_force(tmp_path: Path) -> None:
    model = tmp_path / "model.kpca"
    check_model_path(model)
    save_model_file(model, "test", WHOLE)
    with pytest.raises(RefusedError, match="exists already; replace it with --force"):
        check_model_path(model)
    check_model_path(model, force=True)


@pytest.mark.parametrize("kind", ["table", "link", "dead_link", "folder", "pipe", "zip", "empty"])
def test_other_files_are_never_replaced(tmp_path: Path, kind: str) -> None:
    path, model = tmp_path / "file", tmp_path / "model.kpca"
    save_model_file(model, "test", WHOLE)
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("model.json", '{"format": "other"}')
    elif kind.endswith("link"):
        path.symlink_to(model if kind == "link" else tmp_path / "nowhere")
    else:
        path.write_bytes(b"a,b\n1,2\n" if kind == "table" else b"")
    with pytest.raises(RefusedError, match="is not a model, so it is never replaced"):
        check_model_path(path, force=True)


def test_a_model_of_an_earlier_version_may_be_replaced(tmp_path: Path) -> None:
    path = tmp_path / "model.kpca"
    path.write_bytes(archive(("model.json", document(format_version=1))))
    check_model_path(path, force=True)


def test_named_pipes_are_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path):
        with pytest.raises(ModelFileError, match="is not a file"):
            load(path)


@pytest.mark.parametrize("name", ["nowhere/model.kpca", "a\0b"])
def test_a_model_that_cannot_be_named_is_one_line(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError) as caught:
        check_model_path(f"{tmp_path}/{name}")
    assert str(caught.value).isprintable()


def test_a_python_2_header_is_rejected(scratch: Path) -> None:
    """Numpy would correct such a header with a warning."""
    data = npy(np.zeros((2, 3))).replace(b"(2, 3)", b"(2L,3)")
    assert "header is damaged" in refusal(scratch, crafted(data))
