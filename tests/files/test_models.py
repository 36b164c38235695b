"""Model files: what is saved comes back, and nothing else gets in."""

from __future__ import annotations

import io
import json
import math
import os
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpca_apps.errors import InputError, ModelFileError, RefusedError
from kpca_apps.files.models import (
    FORMAT,
    FORMAT_VERSION,
    check_model_path,
    load_archive,
    save_archive,
)

META: dict[str, Any] = {"threshold": math.inf, "names": ["a", "b\n"], "deep": {"x": [1, None]}}
ARRAYS = {
    "points": np.arange(6.0).reshape(3, 2),
    "small": np.array([1.5, np.nan], dtype=np.float32),
    "counts": np.array([], dtype=np.int64),
    "mask": np.array([[True], [False]]),
    "levels": np.array(["ab", "\U0001f427"]),
    "scalar": np.array(2.0),
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("models") / "saved.kpca"
    save_archive(path, META, ARRAYS)
    return path.read_bytes()


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models") / "scratch.kpca"


def assert_same(arrays: dict[str, Any]) -> None:
    assert set(arrays) == set(ARRAYS)
    for name, array in ARRAYS.items():
        assert arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(arrays[name], array, strict=True)
        assert arrays[name].flags.writeable


def test_what_is_saved_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "model.kpca"
    save_archive(path, META, ARRAYS)
    meta, arrays = load_archive(path)
    assert meta == META
    assert_same(arrays)


def test_same_model_is_the_same_bytes(saved: bytes, tmp_path: Path) -> None:
    path = tmp_path / "again.kpca"
    save_archive(path, META, dict(reversed(ARRAYS.items())))
    assert path.read_bytes() == saved


def test_memory_layout_and_byte_order_do_not_matter(tmp_path: Path) -> None:
    path = tmp_path / "model.kpca"
    array = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    save_archive(path, {}, {"f": array, "big": array.astype(">f8"), "empty": np.array([""])})
    arrays = load_archive(path)[1]
    np.testing.assert_array_equal(arrays["f"], array)
    np.testing.assert_array_equal(arrays["big"], array)
    assert arrays["empty"].tolist() == [""]


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("objects", np.array([None])),
        ("complex", np.array([1j])),
        ("../up", np.zeros(1)),
        ("", np.zeros(1)),
    ],
)
def test_what_cannot_be_stored_is_refused(name: str, array: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot store array"):
        save_archive(tmp_path / "model.kpca", {}, {name: array})
    assert list(tmp_path.iterdir()) == []


def refusal(path: Path, data: bytes) -> str:
    path.write_bytes(data)
    with pytest.raises(ModelFileError) as caught:
        load_archive(path)
    message = str(caught.value)
    assert path.name in message
    assert "\n" not in message
    return message


@given(flips=st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 7)), min_size=1, max_size=3))
def test_flipped_bits_are_refused_or_do_no_harm(
    saved: bytes, scratch: Path, flips: list[tuple[int, int]]
) -> None:
    data = bytearray(saved)
    for position, bit in flips:
        data[position % len(data)] ^= 1 << bit
    scratch.write_bytes(data)
    try:
        meta, arrays = load_archive(scratch)
    except ModelFileError as error:
        assert "\n" not in str(error)
    else:
        assert meta == META
        assert_same(arrays)


@given(cut=st.integers(0, 10**6))
def test_a_file_cut_short_is_refused(saved: bytes, scratch: Path, cut: int) -> None:
    refusal(scratch, saved[: cut % len(saved)])


@given(data=st.binary(max_size=300))
def test_arbitrary_bytes_are_refused(scratch: Path, data: bytes) -> None:
    refusal(scratch, data)
    refusal(scratch, b"PK\x03\x04" + data)


def archive(members: list[tuple[str, bytes]], compression: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as file:
        for name, data in members:
            file.writestr(zipfile.ZipInfo(name), data, compress_type=compression)
    return buffer.getvalue()


def document(**changes: Any) -> bytes:
    fields = {"format": FORMAT, "format_version": FORMAT_VERSION, "arrays": [], "meta": {}}
    return json.dumps({**fields, **changes}).encode("utf-8")


def npy(array: Any, **options: Any) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, **options)
    return buffer.getvalue()


def crafted(array: bytes) -> bytes:
    return archive([("model.json", document(arrays=["a"])), ("a.npy", array)])


def test_the_helper_makes_good_files(scratch: Path) -> None:
    scratch.write_bytes(crafted(npy(np.ones(2))))
    assert load_archive(scratch)[1]["a"].tolist() == [1.0, 1.0]


def test_pickled_objects_are_never_loaded(scratch: Path, tmp_path: Path) -> None:
    class Mine:
        def __reduce__(self) -> tuple[Any, ...]:
            return Path.touch, (tmp_path / "harm",)

    data = npy(np.array([Mine()], dtype=object), allow_pickle=True)
    assert "an array of type object" in refusal(scratch, crafted(data))
    assert not (tmp_path / "harm").exists()


def test_header_that_promises_more_than_the_file_holds(scratch: Path) -> None:
    data = npy(np.ones(2)).replace(b"(2,), }          ", b"(2000000000000,), }"[:19])
    assert "size is not what its header says" in refusal(scratch, crafted(data[:64] + data[64:]))


@pytest.mark.parametrize("shape", [(-2,), (-1, -2), (2**62, 4)])
def test_impossible_shapes(shape: tuple[int, ...], scratch: Path) -> None:
    buffer = io.BytesIO()
    header = {"descr": "<f8", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(buffer, header)
    refusal(scratch, crafted(buffer.getvalue() + bytes(16)))


def test_values_that_are_no_values_of_their_type(scratch: Path) -> None:
    booleans = npy(np.array([True]))[:-1] + b"\x02"
    assert "booleans with other values" in refusal(scratch, crafted(booleans))
    text = npy(np.array(["x"]))[:-4] + struct.pack("<I", 0x110000)
    assert "impossible characters" in refusal(scratch, crafted(text))


@pytest.mark.parametrize(
    "array", [npy(np.array([1j])), npy(np.zeros(2, dtype="i4,f8")), npy(np.zeros(2, ">f8"))]
)
def test_types_not_on_the_list(array: bytes, scratch: Path) -> None:
    assert "an array of type" in refusal(scratch, crafted(array))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_unexpected_parts(scratch: Path) -> None:
    good = ("model.json", document())
    assert "unexpected part" in refusal(scratch, archive([good, ("../evil.npy", npy(np.ones(1)))]))
    assert "unexpected part" in refusal(scratch, archive([good, ("run.py", b"1")]))
    assert "its parts are not" in refusal(scratch, archive([good, good]))
    assert "its parts are not" in refusal(scratch, archive([("a.npy", npy(np.ones(1)))]))
    assert "missing or added" in refusal(scratch, archive([good, ("a.npy", npy(np.ones(1)))]))


def test_packed_parts_are_refused_so_there_are_no_bombs(scratch: Path) -> None:
    bomb = archive([("model.json", document() + b" " * 10**6)], zipfile.ZIP_DEFLATED)
    assert len(bomb) < 10_000
    assert "unexpected part" in refusal(scratch, bomb)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (document(format="other"), "not written by this toolkit"),
        (document(format_version=FORMAT_VERSION + 1), "by a newer version"),
        (document(format_version="1"), "has no version"),
        (document(meta=[]), "settings are missing"),
        (b"[" * 100_000, "not a usable model file"),
        (b"{\xff", "not a usable model file"),
        (b"null", "not written by this toolkit"),
    ],
)
def test_documents_that_do_not_fit(data: bytes, words: str, scratch: Path) -> None:
    assert words in refusal(scratch, archive([("model.json", data)]))


def test_missing_model_names_the_nearest(saved: bytes, tmp_path: Path) -> None:
    (tmp_path / "model.kpca").write_bytes(saved)
    with pytest.raises(ModelFileError, match=r'Did you mean "model\.kpca"\?'):
        load_archive(tmp_path / "mdoel.kpca")


def test_model_in_a_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be written"):
        save_archive(tmp_path / "nowhere" / "model.kpca", {}, {})


def test_only_a_model_is_replaced_and_only_by_force(tmp_path: Path) -> None:
    model = tmp_path / "model.kpca"
    check_model_path(model)
    save_archive(model, {}, {"x": np.zeros(2)})
    with pytest.raises(RefusedError, match="exists already; replace it with --force"):
        check_model_path(model)
    check_model_path(model, force=True)


@pytest.mark.parametrize("kind", ["table", "link", "dead_link", "folder", "pipe", "zip", "empty"])
def test_what_is_no_model_is_never_replaced(tmp_path: Path, kind: str) -> None:
    path, model = tmp_path / "file", tmp_path / "model.kpca"
    save_archive(model, {}, {})
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


@pytest.mark.parametrize("name", ["nowhere/model.kpca", "a\0b"])
def test_a_model_that_cannot_be_named_is_one_line(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError) as caught:
        check_model_path(f"{tmp_path}/{name}")
    assert str(caught.value).isprintable()
