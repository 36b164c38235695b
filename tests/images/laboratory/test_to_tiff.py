"""CZI, ND2 and DICOM files are written as OME-TIFF with axes, pixel sizes and channel names."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile

from kpca_apps.errors import InputError
from kpca_apps.images.files import read_image
from kpca_apps.images.laboratory.czi import read_czi
from tests.hostile.images import encoded, texture
from tests.images.laboratory.nd2_files import nd2_file

rng = np.random.default_rng(0)


def as_tiff(path: Path) -> tuple[list[tuple[str, np.ndarray]], str]:
    """Write a file as TIFF; return its series, read by tifffile, and its OME-XML."""
    out = path.with_suffix(".tif")
    out.write_bytes(encoded(read_image(path)))
    assert encoded(read_image(path)) == out.read_bytes()
    with tifffile.TiffFile(out) as file:
        assert file.is_ome
        return [(part.axes, part.asarray()) for part in file.series], file.ome_metadata


def pixel_metadata(xml: str) -> Any:
    return pytest.importorskip("ome_types").from_xml(xml).images[0].pixels


def test_nd2(tmp_path: Path) -> None:
    pytest.importorskip("nd2")
    pixels = rng.integers(0, 4096, (3, 4, 2, 20, 30)).astype("u2")
    path = tmp_path / "a.nd2"
    path.write_bytes(nd2_file(pixels, names=["DAPI", "GFP"], size=0.25, step=1.5, ms=500.0))
    image = read_image(path)
    assert image.groups is not None and len(image.groups) == 6  # one per time and channel
    assert image.groups[0] == (0, 2, 4, 6)
    ((axes, values),), xml = as_tiff(path)
    assert axes == "TZCYX"
    np.testing.assert_array_equal(values, pixels)
    meta = pixel_metadata(xml)
    assert [channel.name for channel in meta.channels] == ["DAPI", "GFP"]
    assert (meta.physical_size_x, meta.physical_size_z, meta.time_increment) == (0.25, 1.5, 500)
    # One time per frame; each frame has two channels.
    assert [plane.delta_t for plane in meta.planes] == [500.0 * (n // 2) for n in range(24)]


def test_nd2_of_a_microscope(papers_folder: Path) -> None:
    """A Nikon A1 wrote `cluster.nd2`, which is in the source of pims_nd2 1.1."""
    nd2, path = pytest.importorskip("nd2"), papers_folder / "cluster.nd2"
    if not path.is_file():
        pytest.skip("cluster.nd2 is not there")
    with nd2.ND2File(path) as file:
        pixels, size = file.asarray(), file.voxel_size()
        names = [c.channel.name for c in file.metadata.channels]
    ((axes, values),), xml = as_tiff(path)
    assert axes == "TZCYX"
    np.testing.assert_array_equal(values, pixels)
    meta = pixel_metadata(xml)
    assert (meta.physical_size_x, meta.physical_size_y, meta.physical_size_z) == (
        size.x,
        size.y,
        size.z,
    )
    assert [channel.name for channel in meta.channels] == names
    assert len(meta.planes) == 60


def test_only_the_requested_part_of_large_files_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("nd2")
    frames = rng.integers(0, 4096, (1, 2, 1, 20, 30)).astype("u2")
    (tmp_path / "a.nd2").write_bytes(nd2_file(frames, names=["A"], size=1.0, step=1.0, ms=1.0))
    dicom(frames[0, :, 0], tmp_path)
    pytest.importorskip("astropy.io.fits").PrimaryHDU(frames[0, :, 0]).writeto(tmp_path / "a.fits")
    nibabel = pytest.importorskip("nibabel")
    scan = nibabel.Nifti1Image(frames[0, :, 0].astype("i2").T, np.eye(4))
    nibabel.save(scan, tmp_path / "a.nii.gz")
    monkeypatch.setattr("kpca_apps.images.files.FRONT", 100)
    for name in ("a.nd2", "a.dcm", "a.fits", "a.nii.gz"):
        np.testing.assert_array_equal(read_image(tmp_path / name).page(1), frames[0, 1, 0])


def test_names_lose_characters_invalid_in_xml(tmp_path: Path) -> None:
    pytest.importorskip("nd2")
    path = tmp_path / "a.nd2"
    pixels = np.zeros((1, 2, 1, 20, 30), "u2")
    path.write_bytes(nd2_file(pixels, names=["D\x01A\x0bPI"], size=0.25, step=1.5, ms=500.0))
    assert [c.name for c in pixel_metadata(as_tiff(path)[1]).channels] == ["DAPI"]


def test_czi(tmp_path: Path) -> None:
    czi = pytest.importorskip("pylibCZIrw.czi")
    pixels = rng.integers(0, 4096, (2, 3, 20, 60)).astype("u2")
    path = tmp_path / "a.czi"
    for packing in (
        "uncompressed:",
        "zstd0:ExplicitLevel=3",
        "zstd1:ExplicitLevel=3;PreProcess=HiLoByteUnpack",
    ):
        path.unlink(missing_ok=True)
        with czi.create_czi(str(path), compression_options=packing) as file:
            for channel, slice in np.ndindex(2, 3):
                for left in (0, 30):  # two tiles
                    file.write(
                        pixels[channel, slice, :, left : left + 30, np.newaxis],
                        plane={"C": channel, "Z": slice, "T": 0},
                        location=(left - 7, 5),
                    )
            file.write_metadata(
                "a film",
                channel_names={0: "DAPI", 1: "GFP"},
                scale_x=1e-7,
                scale_y=2e-7,
                scale_z=5e-7,
            )
        ((_, values),), xml = as_tiff(path)
        np.testing.assert_array_equal(values.reshape(pixels.shape), pixels)
        meta = pixel_metadata(xml)
        assert [channel.name for channel in meta.channels] == ["DAPI", "GFP"]
        assert meta.physical_size_x == pytest.approx(0.1)
        assert meta.physical_size_z == pytest.approx(0.5)
    assert read_image(path).groups == ((0, 1, 2), (3, 4, 5))


def test_czi_bytes_are_spooled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    czi = pytest.importorskip("pylibCZIrw.czi")
    pixels = rng.integers(0, 4096, (3, 20, 30, 1)).astype("u2")
    path, spools = tmp_path / "a.czi", tmp_path / "spools"
    with czi.create_czi(str(path)) as file:
        for z, page in enumerate(pixels):
            file.write(page, plane={"C": 0, "Z": z, "T": 0})
    spools.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(spools))
    image = read_czi(path.read_bytes())
    (laid,) = spools.iterdir()
    before = laid.stat()
    for number, page in enumerate(pixels):
        np.testing.assert_array_equal(image.page(number), page[..., 0])
    assert [*spools.iterdir()] == [laid] and laid.stat().st_mtime_ns == before.st_mtime_ns
    del image
    assert not [*spools.iterdir()]


def dicom(pixels: np.ndarray, folder: Path, **tags: Any) -> Path:
    """Write a DICOM file with patient data by pydicom."""
    pydicom = pytest.importorskip("pydicom")
    made = pydicom.Dataset()
    made.file_meta = pydicom.dataset.FileMetaDataset()
    made.file_meta.TransferSyntaxUID = tags.pop("syntax", pydicom.uid.ExplicitVRLittleEndian)
    made.file_meta.MediaStorageSOPClassUID = made.SOPClassUID = pydicom.uid.CTImageStorage
    made.file_meta.MediaStorageSOPInstanceUID = made.SOPInstanceUID = "1.2.3"
    made.PatientName, made.PatientID, made.StudyDate = "Doe^Jane", "4711", "20240101"
    frames, height, width = pixels.shape[:3]
    made.Rows, made.Columns, made.NumberOfFrames = height, width, frames
    made.SamplesPerPixel = pixels.shape[3] if pixels.ndim == 4 else 1
    made.BitsAllocated = made.BitsStored = 8 * pixels.itemsize
    made.HighBit, made.PixelRepresentation = made.BitsStored - 1, int(pixels.dtype.kind == "i")
    made.PhotometricInterpretation = "RGB" if pixels.ndim == 4 else "MONOCHROME2"
    if pixels.ndim == 4:
        made.PlanarConfiguration = 0
    made.PixelSpacing, made.SpacingBetweenSlices = [0.5, 0.25], 2.0
    for name, value in tags.items():
        setattr(made, name, value)
    where = {"f4": "FloatPixelData", "f8": "DoubleFloatPixelData"}.get(pixels.dtype.str[1:])
    if where:
        del made.BitsStored, made.HighBit, made.PixelRepresentation
    setattr(made, where or "PixelData", pixels.astype(pixels.dtype.newbyteorder("<")).tobytes())
    path = folder / "a.dcm"
    made.save_as(path, enforce_file_format=True)
    return path


@pytest.mark.parametrize("dtype", ["u1", "u2", "i2"])
def test_dicom(dtype: str, tmp_path: Path) -> None:
    pixels = rng.integers(0, 250, (3, 20, 30)).astype(dtype)
    path = dicom(pixels, tmp_path)
    ((axes, values),), xml = as_tiff(path)
    assert (axes, values.dtype) == ("ZYX", np.dtype(dtype))
    np.testing.assert_array_equal(values, pixels)
    meta = pixel_metadata(xml)
    assert (meta.physical_size_x, meta.physical_size_y, meta.physical_size_z) == (0.25, 0.5, 2.0)
    content = path.with_suffix(".tif").read_bytes()
    assert not any(word in content for word in (b"Doe", b"4711", b"20240101", b"1.2.3"))


def test_dicom_in_units_inverted_and_in_colour(tmp_path: Path) -> None:
    grey = rng.integers(0, 4096, (1, 20, 30)).astype("u2")
    path = dicom(grey, tmp_path, BitsStored=12, HighBit=11, RescaleSlope=1, RescaleIntercept=-1024)
    ((_, values),), _ = as_tiff(path)
    np.testing.assert_array_equal(values, grey[0].astype("i2") - 1024)
    assert values.dtype == np.int16
    path = dicom(grey, tmp_path, RescaleSlope=0.5, RescaleIntercept=3)
    ((_, values),), _ = as_tiff(path)
    np.testing.assert_array_equal(values, (grey[0] * 0.5 + 3).astype("f4"))
    path = dicom(grey, tmp_path, BitsStored=12, HighBit=11, PhotometricInterpretation="MONOCHROME1")
    ((_, values),), _ = as_tiff(path)
    np.testing.assert_array_equal(values, 4095 - grey[0])
    path = dicom(
        grey, tmp_path, BitsStored=12, HighBit=11, PhotometricInterpretation="MONOCHROME1",
        RescaleSlope=0.5, RescaleIntercept=3,
    )  # fmt: skip
    ((_, values),), _ = as_tiff(path)
    np.testing.assert_array_equal(values, ((4095 - grey[0]) * 0.5 + 3).astype("f4"))
    colour = texture(20, 30, 3)[np.newaxis]
    ((_, values),), _ = as_tiff(dicom(colour, tmp_path))
    np.testing.assert_array_equal(values, colour[0])


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_dicom_of_floats(dtype: str, tmp_path: Path) -> None:
    pydicom = pytest.importorskip("pydicom")
    pixels = rng.uniform(-1, 2, (2, 20, 30)).astype(dtype)
    path = dicom(pixels, tmp_path)
    np.testing.assert_array_equal(pydicom.dcmread(path).pixel_array, pixels)
    ((_, values),), _ = as_tiff(path)
    np.testing.assert_array_equal(values, pixels)
    assert values.dtype == dtype


def test_dicom_packed_in_runs(tmp_path: Path) -> None:
    pydicom = pytest.importorskip("pydicom")
    pixels = np.repeat(rng.integers(0, 250, (2, 20, 3)), 10, axis=2).astype("u2")
    path = dicom(pixels, tmp_path)
    packed = pydicom.dcmread(path)
    packed.compress(pydicom.uid.RLELossless)
    packed.save_as(path)
    ((_, values),), _ = as_tiff(path)
    np.testing.assert_array_equal(values, pixels)
    with pytest.raises(InputError, match="bits"):
        read_image(dicom(pixels, tmp_path, BitsAllocated=12))


def test_dicom_frames_may_have_their_own_scaling(tmp_path: Path) -> None:
    pydicom = pytest.importorskip("pydicom")

    def sequence(*items: dict[str, Any]) -> Any:
        found = []
        for item in items:
            found.append(pydicom.Dataset())
            for name, value in item.items():
                setattr(found[-1], name, value)
        return pydicom.Sequence(found)

    pixels = rng.integers(0, 4096, (2, 20, 30)).astype("u2")
    measures = sequence({"PixelSpacing": [0.5, 0.75], "SpacingBetweenSlices": 3.0})
    scaled = [
        {"PixelValueTransformationSequence": sequence({"RescaleSlope": s, "RescaleIntercept": i})}
        for s, i in ((1, 0), (0.5, 10))
    ]
    path = dicom(
        pixels,
        tmp_path,
        SharedFunctionalGroupsSequence=sequence({"PixelMeasuresSequence": measures}),
        PerFrameFunctionalGroupsSequence=sequence(*scaled),
    )
    ((_, values),), xml = as_tiff(path)
    np.testing.assert_array_equal(values[0], pixels[0])
    np.testing.assert_array_equal(values[1], pixels[1] * np.float32(0.5) + 10)
    meta = pixel_metadata(xml)
    assert (meta.physical_size_x, meta.physical_size_y, meta.physical_size_z) == (0.75, 0.5, 3.0)


def test_dicom_whose_rescaling_is_too_large_is_refused(tmp_path: Path) -> None:
    path = dicom(np.full((1, 20, 30), 7, "u2"), tmp_path, RescaleSlope="1e300", RescaleIntercept=0)
    with pytest.raises(InputError, match="rescaling, 1e\\+300 times"):
        read_image(path).page(0)


def test_dicom_packed_as_a_whole_is_refused(tmp_path: Path) -> None:
    whole = pytest.importorskip("pydicom").uid.DeflatedExplicitVRLittleEndian
    with pytest.raises(InputError, match="packed as a whole"):
        read_image(dicom(np.zeros((1, 20, 30), "u1"), tmp_path, syntax=whole))
