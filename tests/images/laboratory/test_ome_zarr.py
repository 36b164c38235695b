"""OME-Zarr folders keep their layout, with recomputed lower resolutions."""

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import imagecodecs
import numpy as np
import pytest

from kpca_apps.denoise.batch.inputs import find_images
from kpca_apps.denoise.batch.one_image.elsewhere import _contents
from kpca_apps.denoise.batch.results import _put
from kpca_apps.denoise.batch.run import run_batch
from kpca_apps.denoise.estimate.info import DenoiseInfo
from kpca_apps.errors import InputError, RefusedError
from kpca_apps.images.files import encode_image, read_image
from kpca_apps.images.laboratory.ome_zarr import _check_packed
from tests.hostile.images import texture
from tests.quick import quick

zarr = pytest.importorskip("zarr")
SHAPE = (2, 5, 37, 50)  # channels, slices, rows, columns


def made(
    folder: Path,
    pixels: np.ndarray,
    *,
    version: int = 3,
    chunks: tuple[int, ...] = (1, 1, 37, 50),
    shards: tuple[int, ...] | None = None,
    reduced: bool = True,
) -> Path:
    """Write an image with axes c, z, y, x and two lower resolutions with unrelated content."""
    group = zarr.open_group(str(folder), mode="w", zarr_format=version)
    sides = pixels.shape
    for level in range(3 if reduced else 1):
        array = group.create_array(
            str(level), shape=sides, chunks=chunks, shards=shards, dtype=pixels.dtype
        )
        array[:] = pixels if level == 0 else 1
        array.attrs["note"] = level
        sides = (sides[0], sides[1], (sides[2] + 1) // 2, sides[3] // 2)
    scales = [[1.0, 2.0, 0.5 * 2**level, 0.25 * 2**level] for level in range(3)]
    multiscales = {
        "axes": [
            {"name": "c", "type": "channel"},
            *({"name": a, "type": "space", "unit": "micrometer"} for a in "zyx"),
        ],
        "datasets": [
            {
                "path": str(level),
                "coordinateTransformations": [{"type": "scale", "scale": scales[level]}],
            }
            for level in range(3 if reduced else 1)
        ],
    }
    attributes: dict[str, Any] = {
        "multiscales": [multiscales],
        "omero": {"channels": [{"label": "DAPI"}, {"label": "GFP"}]},
    }
    if version == 2:
        multiscales["version"] = "0.4"
        group.attrs.update(attributes)
    else:
        group.attrs["ome"] = {"version": "0.5", **attributes}
    group.create_group("labels").create_array("0", shape=(4,), chunks=(4,), dtype="u1")[:] = 7
    return folder


def written(folder: Path, out: Path, add: int = 0) -> Path:
    image = read_image(folder)
    out.mkdir()
    pages = (image.page(n) + np.array(add, image.pages[n].dtype) for n in range(len(image.pages)))
    encode_image(out, pages, image)
    return out


def halved(pixels: np.ndarray) -> np.ndarray:
    """Average 2 x 2 blocks of rows and columns, shorter ones at the end of an odd side."""
    height, width = pixels.shape[-2:]
    rows = [pixels[..., y : y + 2, :].mean(axis=-2) for y in range(0, height, 2)]
    values = np.stack(rows, axis=-2)
    columns = [values[..., x : x + 2].mean(axis=-1) for x in range(0, width, 2)]
    return np.rint(np.stack(columns, axis=-1)).astype(pixels.dtype)


LAYOUTS = [
    (2, (1, 1, 16, 16), None),
    (2, (2, 1, 37, 50), None),
    (3, (1, 1, 16, 16), None),
    (3, (1, 3, 32, 32), None),
    (3, (2, 1, 37, 50), None),
    (3, (1, 1, 16, 16), (1, 2, 32, 32)),
]


@pytest.mark.parametrize(
    ("version", "chunks", "shards"), quick(LAYOUTS, LAYOUTS[1], LAYOUTS[3], LAYOUTS[5])
)
def test_an_image_keeps_its_layout(
    version: int, chunks: tuple[int, ...], shards: tuple[int, ...] | None, tmp_path: Path
) -> None:
    pixels = texture(*SHAPE).astype("u2") * 200
    folder = made(tmp_path / "a.zarr", pixels, version=version, chunks=chunks, shards=shards)
    image = read_image(folder)
    assert (image.format, len(image.pages)) == ("zarr", 10)
    assert image.groups == ((0, 1, 2, 3, 4), (5, 6, 7, 8, 9))
    np.testing.assert_array_equal(image.page(7), pixels[1, 2])
    out = written(folder, tmp_path / "b.zarr", add=3)
    names = {path.relative_to(out) for path in out.rglob("*")}
    assert names == {path.relative_to(folder) for path in folder.rglob("*")}
    for path in folder.rglob("*"):
        if path.name in (".zattrs", ".zarray", ".zgroup", "zarr.json"):
            assert (out / path.relative_to(folder)).read_bytes() == path.read_bytes()
    expected = pixels + np.uint16(3)
    for level in range(3):
        found = zarr.open_array(str(out / str(level)), mode="r")
        expected = expected[..., : found.shape[-1]]  # an odd last column is dropped
        np.testing.assert_array_equal(found[:], expected)
        expected = halved(expected)
    np.testing.assert_array_equal(zarr.open_array(str(out / "labels/0"), mode="r")[:], 7)


@pytest.mark.parametrize("translated", [False, True])
@pytest.mark.parametrize("side", [201, 207])
def test_lower_resolutions_lie_at_the_stated_positions(
    side: int, translated: bool, tmp_path: Path
) -> None:
    """Each pixel of a downscaled ramp lies at the position given by scale and translation."""
    ramp = np.add.outer(np.zeros(side), np.arange(side) + 0.5).astype("f4")[np.newaxis, np.newaxis]
    folder, sides, datasets = tmp_path / "a.zarr", [side], []
    group = zarr.open_group(str(folder), mode="w", zarr_format=3)
    for level in range(5):
        own = sides[-1]
        group.create_array(str(level), shape=(1, 1, own, own), chunks=(1, 1, 64, 64), dtype="f4")
        # As some writers do, make the pixels of each resolution cover exactly the whole image, even
        # if the scale is then not a power of 2.
        scale = side / own
        transforms = [{"type": "scale", "scale": [1.0, 1.0, scale, scale]}]
        if translated:
            move = (scale - 1) / 2
            transforms.append({"type": "translation", "translation": [0.0, 0.0, move, move]})
        datasets.append({"path": str(level), "coordinateTransformations": transforms})
        sides.append(own // 2)
    group["0"][:] = ramp
    axes = [{"name": "c", "type": "channel"}, *({"name": a, "type": "space"} for a in "zyx")]
    group.attrs["ome"] = {
        "version": "0.5", "multiscales": [{"axes": axes, "datasets": datasets}],
    }  # fmt: skip
    out = written(folder, tmp_path / "b.zarr")
    for level, own in enumerate(sides[:5]):
        row = zarr.open_array(str(out / str(level)), mode="r")[0, 0, 0]
        np.testing.assert_allclose(row, (np.arange(own) + 0.5) * side / own, atol=0.02 * side / own)


@pytest.mark.parametrize("codec", ["ZstdCodec", "GzipCodec", "BloscCodec"])
def test_checksums_follow_compressed_data(codec: str, tmp_path: Path) -> None:
    folder = made(tmp_path / "a.zarr", texture(*SHAPE), reduced=False)
    packing = [getattr(zarr.codecs, codec)(), zarr.codecs.Crc32cCodec()]
    array = zarr.create_array(
        str(folder / "0"), shape=SHAPE, dtype="u1", chunks=SHAPE, compressors=packing,
        overwrite=True,
    )  # fmt: skip
    array[:] = texture(*SHAPE)
    np.testing.assert_array_equal(read_image(folder).page(1), texture(*SHAPE)[0, 1])


@pytest.mark.parametrize(("version", "driver"), [(2, "zarr"), (3, "zarr3")])
def test_another_library_reads_it(version: int, driver: str, tmp_path: Path) -> None:
    tensorstore = pytest.importorskip("tensorstore")
    pixels = texture(*SHAPE).astype("f4")
    out = written(made(tmp_path / "a.zarr", pixels, version=version), tmp_path / "b.zarr")
    place = {"driver": "file", "path": str(out / "0")}
    found = tensorstore.open({"driver": driver, "kvstore": place}, open=True).result()
    np.testing.assert_array_equal(found.read().result(), pixels)


def test_folders_without_an_image_or_with_outside_paths_are_rejected(tmp_path: Path) -> None:
    pixels = texture(*SHAPE)
    plate = tmp_path / "plate.zarr"
    zarr.open_group(str(plate), mode="w").attrs["ome"] = {"plate": {}}
    made(plate / "image", pixels)
    outside = made(tmp_path / "out.zarr", pixels)
    shapes = made(tmp_path / "shapes.zarr", pixels)
    for folder, change in ((outside, {"path": "../a.zarr/0"}), (shapes, {"path": "labels/0"})):
        metadata = json.loads((folder / "zarr.json").read_text())
        metadata["attributes"]["ome"]["multiscales"][0]["datasets"][1] |= change
        (folder / "zarr.json").write_text(json.dumps(metadata))
    for folder, words in (
        (plate, "plate of images; .* such as image"),
        (outside, "lies outside"),
        (shapes, "do not fit"),
    ):
        with pytest.raises(InputError, match=words):
            read_image(folder)


def test_a_packed_chunk_that_is_cut_is_refused(tmp_path: Path) -> None:
    folder = made(tmp_path / "a.zarr", texture(*SHAPE))
    chunk = folder / "0/c/0/0/0/0"
    chunk.write_bytes(chunk.read_bytes()[:-5])
    with pytest.raises(InputError, match="damaged"):
        read_image(folder).page(0)


def lighter(pixels: np.ndarray, channel_axis: int | None) -> tuple[np.ndarray, DenoiseInfo]:
    return pixels + 1.0, DenoiseInfo("gaussian", 2.0, (2.0,), True, False, 255.0)


def test_a_batch_finds_keeps_and_replaces_folders(tmp_path: Path) -> None:
    pixels = texture(*SHAPE) // 2
    made(tmp_path / "in/a/one.zarr", pixels)
    made(tmp_path / "in/two.ome.zarr", pixels, version=2)
    found, _ = find_images([tmp_path / "in"])
    assert [name for name, *_ in found] == ["a/one.zarr", "two.ome.zarr"]
    out, settings = tmp_path / "out", {"by": 1}
    first = run_batch([tmp_path / "in"], out, settings, denoise=lighter)
    assert [(image.reason, image.resumed) for image in first.images] == [("", False)] * 2
    result = zarr.open_array(str(out / "a/one.zarr/0"), mode="r")
    np.testing.assert_array_equal(result[:], pixels + 1)
    again = run_batch([tmp_path / "in"], out, settings, denoise=lighter)
    assert [image.resumed for image in again.images] == [True, True]
    (out / "a/one.zarr/0/c/0/0/0/0").write_bytes(b"damage")
    with pytest.raises(RefusedError, match="--force"):
        run_batch([tmp_path / "in"], out, settings, denoise=lighter)
    forced = run_batch([tmp_path / "in"], out, settings, denoise=lighter, force=True)
    assert [image.resumed for image in forced.images] == [False, True]
    np.testing.assert_array_equal(
        zarr.open_array(str(out / "a/one.zarr/0"), mode="r")[:], pixels + 1
    )
    assert not [path for path in out.rglob("*") if path.name.startswith(".kpca")]
    alone = run_batch(
        [tmp_path / "in/a/one.zarr"], tmp_path / "tiff", {}, denoise=lighter, format="tiff"
    )
    assert alone.images[0].output == "one.tif"


@pytest.mark.skipif(sys.platform != "linux", reason="folders trade names in one step on Linux")
def test_a_replaced_folder_is_never_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A killed run leaves the earlier folder or the new one, never neither."""
    for name in ("new", "old"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "zarr.json").write_text(name)

    def rename(*_: object) -> None:
        raise AssertionError("first one goes, then the other comes")

    monkeypatch.setattr(Path, "replace", rename)
    _put(tmp_path / "new", tmp_path / "old")
    assert (tmp_path / "old" / "zarr.json").read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["old"]


@pytest.mark.parametrize("bad", [5, [{"type": "scale", "scale": [{}, 1, 1, 1]}]])
def test_invalid_sizes_are_rejected(bad: Any, tmp_path: Path) -> None:
    folder = made(tmp_path / "a.zarr", texture(*SHAPE))
    meta = json.loads((folder / "zarr.json").read_text())
    meta["attributes"]["ome"]["multiscales"][0]["datasets"][0]["coordinateTransformations"] = bad
    (folder / "zarr.json").write_text(json.dumps(meta))
    with pytest.raises(InputError, match="damaged"):
        read_image(folder)


@pytest.mark.parametrize("place", ["0", "1/zarr.json", "0/c/0", "zarr.json"])
def test_links_to_pixels_or_metadata_are_rejected(place: str, tmp_path: Path) -> None:
    folder = made(tmp_path / "a.zarr", texture(*SHAPE))
    (folder / place).rename(tmp_path / "outside")
    (folder / place).symlink_to(tmp_path / "outside")
    with pytest.raises(InputError, match="link"):
        read_image(folder)
    if place.endswith(".json") and place != "zarr.json":
        (folder / place).unlink()
        os.mkfifo(folder / place)
        with pytest.raises(InputError, match="pipe"):
            read_image(folder)


def test_links_beside_pixels_are_ignored(tmp_path: Path) -> None:
    folder = made(tmp_path / "a.zarr", texture(*SHAPE))
    before = read_image(folder).sha256
    (tmp_path / "secret").write_text("secret")
    (folder / "notes.txt").symlink_to(tmp_path / "secret")
    os.mkfifo(folder / "pipe")
    assert read_image(folder).sha256 == before and "notes.txt" not in _contents(folder)
    assert not (written(folder, tmp_path / "b.zarr") / "notes.txt").exists()


@pytest.mark.parametrize("shards", [None, (1, 2, 40, 50)])
@pytest.mark.parametrize("codec", ["ZstdCodec", "GzipCodec", "BloscCodec"])
def test_a_chunk_that_decompresses_beyond_its_size_is_rejected(
    codec: str, shards: tuple[int, ...] | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, chunks = tmp_path / "a.zarr", (1, 1, 20, 25)
    made(folder, texture(*SHAPE), reduced=False)
    packing = [getattr(zarr.codecs, codec)()]
    options = {"chunks": chunks, "shards": shards, "compressors": packing, "overwrite": True}
    zarr.create_array(str(folder / "0"), shape=SHAPE, dtype="u1", **options)[:] = texture(*SHAPE)
    np.testing.assert_array_equal(read_image(folder).page(1), texture(*SHAPE)[0, 1])
    # Claim chunks that are much smaller than their content.
    metadata = json.loads((folder / "0/zarr.json").read_text())
    for place in [metadata["chunk_grid"], *(metadata["codecs"] if shards else ())]:
        *counts, tall, wide = place["configuration"]["chunk_shape"]
        place["configuration"]["chunk_shape"] = [*counts, tall // 10, wide // 5]
    monkeypatch.setattr("kpca_apps.images.laboratory.ome_zarr._SLACK", 10)
    (folder / "0/zarr.json").write_text(json.dumps(metadata))
    with pytest.raises(InputError, match=r"larger than|buffer is too small"):
        read_image(folder).page(1)


@pytest.mark.parametrize("codec", ["Zlib", "LZ4", "Zstd", "GZip", "Blosc", "Pickle", "BZ2"])
def test_compressors_of_old_folders_are_checked(codec: str, tmp_path: Path) -> None:
    numcodecs = pytest.importorskip("numcodecs")
    folder = made(tmp_path / "a.zarr", texture(*SHAPE), version=2, reduced=False)
    is_known = codec not in ("Pickle", "BZ2")
    packing = {"compressors": getattr(numcodecs, codec if codec != "Pickle" else "Zlib")()}
    array = zarr.create_array(
        str(folder / "0"), zarr_format=2, shape=SHAPE, dtype="u1", chunks=SHAPE, overwrite=True,
        **packing,
    )  # fmt: skip
    array[:] = texture(*SHAPE)
    if codec == "Pickle":
        metadata = json.loads((folder / "0/.zarray").read_text())
        (folder / "0/.zarray").write_text(json.dumps({**metadata, "compressor": {"id": "pickle"}}))
    if is_known:
        np.testing.assert_array_equal(read_image(folder).page(3), texture(*SHAPE)[0, 3])
        return
    with pytest.raises(InputError, match="damaged"):
        read_image(folder)


def test_a_page_of_endless_chunks_is_refused(tmp_path: Path) -> None:
    folder = made(tmp_path / "a.zarr", texture(*SHAPE), chunks=(2, 5, 37, 50), reduced=False)
    metadata = json.loads((folder / "0/zarr.json").read_text())
    metadata["shape"] = [1, 1, 1000, 1000]
    metadata["chunk_grid"]["configuration"]["chunk_shape"] = [1, 1, 1, 1]
    (folder / "0/zarr.json").write_text(json.dumps(metadata))
    with pytest.raises(InputError, match="1,000,000 chunks a page"):
        read_image(folder)


def test_zstd_without_a_content_size_is_decompressed_with_a_bound() -> None:
    # A Zstandard frame with a block that repeats one byte 100,000 times, without a content size
    # (RFC 8878).
    block = (1 | 1 << 1 | 100_000 << 3).to_bytes(3, "little") + b"a"
    packed = b"\x28\xb5\x2f\xfd" + bytes([0, 0x40]) + block
    with tempfile.TemporaryFile() as file:
        file.write(packed)
        file.seek(0)
        _check_packed("zstd", file, len(packed), 100_000)
        file.seek(0)
        with pytest.raises(imagecodecs.ZstdError):
            _check_packed("zstd", file, len(packed), 99_999)
