"""CZI, ND2 and DICOM files come out as OME-TIFF with axes, sizes and names of channels."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import imagecodecs
import numpy as np
import pytest
import tifffile

from kpca_apps.errors import InputError
from kpca_apps.images.files import read_image
from kpca_apps.images.laboratory.czi import _Entry, _pixels, _Side
from kpca_apps.images.types import Page
from tests.hostile.images import texture, write_image
from tests.images.laboratory.nd2_files import nd2_file

rng = np.random.default_rng(0)


def as_tiff(path: Path) -> tuple[list[tuple[str, np.ndarray]], str]:
    """Write a file as a TIFF and return its series, by tifffile, and its OME-XML."""
    image, out = read_image(path), path.with_suffix(".tif")
    write_image(out, (image.page(n) for n in range(len(image.pages))), image)
    before = out.read_bytes()
    write_image(out, (image.page(n) for n in range(len(image.pages))), read_image(path))
    assert out.read_bytes() == before
    with tifffile.TiffFile(out) as file:
        assert file.is_ome
        found = [(one.axes, one.asarray()) for one in file.series]
        return found, file.ome_metadata


def pixels_said(xml: str) -> Any:
    return pytest.importorskip("ome_types").from_xml(xml).images[0].pixels


def test_nd2(tmp_path: Path) -> None:
    pytest.importorskip("nd2")
    pixels = rng.integers(0, 4096, (3, 4, 2, 20, 30)).astype("u2")
    path = tmp_path / "a.nd2"
    path.write_bytes(nd2_file(pixels, names=["DAPI", "GFP"], size=0.25, step=1.5, ms=500.0))
    image = read_image(path)
    assert image.groups is not None and len(image.groups) == 6  # each time and channel
    assert image.groups[0] == (0, 2, 4, 6)
    ((axes, values),), xml = as_tiff(path)
    assert axes == "TZCYX"
    np.testing.assert_array_equal(values, pixels)
    said = pixels_said(xml)
    assert [one.name for one in said.channels] == ["DAPI", "GFP"]
    assert (said.physical_size_x, said.physical_size_z, said.time_increment) == (0.25, 1.5, 500)
    # Of the frames, each of two channels.
    assert [one.delta_t for one in said.planes] == [500.0 * (n // 2) for n in range(24)]


def test_nd2_of_a_microscope(papers_folder: Path) -> None:
    """`cluster.nd2` of the source of pims_nd2 1.1, which an A1 of Nikon wrote."""
    nd2, path = pytest.importorskip("nd2"), papers_folder / "cluster.nd2"
    if not path.is_file():
        pytest.skip("cluster.nd2 is not there")
    with nd2.ND2File(path) as file:
        pixels, size = file.asarray(), file.voxel_size()
        names = [one.channel.name for one in file.metadata.channels]
    ((axes, values),), xml = as_tiff(path)
    assert axes == "TZCYX"
    np.testing.assert_array_equal(values, pixels)
    said = pixels_said(xml)
    assert (said.physical_size_x, said.physical_size_y, said.physical_size_z) == (
        size.x,
        size.y,
        size.z,
    )
    assert [one.name for one in said.channels] == names
    assert len(said.planes) == 60


def test_large_files_are_read_where_they_are_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("nd2")
    frames = rng.integers(0, 4096, (1, 2, 1, 20, 30)).astype("u2")
    (tmp_path / "a.nd2").write_bytes(nd2_file(frames, names=["A"], size=1.0, step=1.0, ms=1.0))
    dicom(frames[0, :, 0], tmp_path)
    fits = pytest.importorskip("astropy.io.fits")
    fits.PrimaryHDU(frames[0, :, 0]).writeto(tmp_path / "a.fits")
    nibabel = pytest.importorskip("nibabel")
    scan = nibabel.Nifti1Image(frames[0, :, 0].astype("i2").T, np.eye(4))
    nibabel.save(scan, tmp_path / "a.nii.gz")
    monkeypatch.setattr("kpca_apps.images.files.FRONT", 100)
    for name in ("a.nd2", "a.dcm", "a.fits", "a.nii.gz"):
        image = read_image(tmp_path / name)
        np.testing.assert_array_equal(image.page(1), frames[0, 1, 0])


def test_names_lose_what_xml_cannot_hold(tmp_path: Path) -> None:
    pytest.importorskip("nd2")
    path = tmp_path / "a.nd2"
    pixels = np.zeros((1, 2, 1, 20, 30), "u2")
    path.write_bytes(nd2_file(pixels, names=["D\x01A\x0bPI"], size=0.25, step=1.5, ms=500.0))
    assert [one.name for one in pixels_said(as_tiff(path)[1]).channels] == ["DAPI"]


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
        said = pixels_said(xml)
        assert [one.name for one in said.channels] == ["DAPI", "GFP"]
        assert said.physical_size_x == pytest.approx(0.1)
        assert said.physical_size_z == pytest.approx(0.5)
    assert read_image(path).groups == ((0, 1, 2), (3, 4, 5))


def test_czi_keeps_when_frames_were_taken(tmp_path: Path) -> None:
    czi = pytest.importorskip("pylibCZIrw.czi")
    pixels = rng.integers(0, 4096, (3, 20, 30)).astype("u2")
    path = tmp_path / "a.czi"
    with czi.create_czi(str(path), compression_options="uncompressed:") as file:
        for time, page in enumerate(pixels):
            file.write(page[..., np.newaxis], plane={"C": 0, "Z": 0, "T": time})
    # Attachments, which that library does not write.
    whole, kind = bytearray(path.read_bytes()), b"CZTIMS\0\0"
    times = struct.pack("<ii3d", 32, 3, 0.0, 1.5, 4.0)
    entry = b"A1" + bytes(10) + struct.pack("<qi", len(whole), 0) + bytes(16) + kind + bytes(80)
    attached = struct.pack("<i12x", len(times)) + entry + bytes(112) + times
    listed = struct.pack("<i252x", 1) + entry
    for name, content in ((b"ZISRAWATTACH", attached), (b"ZISRAWATTDIR", listed)):
        where = len(whole)
        whole += name.ljust(16, b"\0") + struct.pack("<qq", len(content), len(content)) + content
    whole[32 + 72 : 32 + 80] = struct.pack("<q", where)
    path.write_bytes(whole)
    with pytest.importorskip("czifile").CziFile(path) as file:  # that they are what they should be
        (found,) = file.attachments()
        np.testing.assert_array_equal(found.data(), [0.0, 1.5, 4.0])
    ((axes, values),), xml = as_tiff(path)
    assert axes == "TYX"
    np.testing.assert_array_equal(values, pixels)
    assert [one.delta_t for one in pixels_said(xml).planes] == [0.0, 1.5, 4.0]


def dicom(pixels: np.ndarray, folder: Path, **said: Any) -> Path:
    """A DICOM file with a patient, as pydicom writes it."""
    pydicom = pytest.importorskip("pydicom")
    made = pydicom.Dataset()
    made.file_meta = pydicom.dataset.FileMetaDataset()
    made.file_meta.TransferSyntaxUID = said.pop("syntax", pydicom.uid.ExplicitVRLittleEndian)
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
    for name, value in said.items():
        setattr(made, name, value)
    made.PixelData = pixels.astype(pixels.dtype.newbyteorder("<")).tobytes()
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
    said = pixels_said(xml)
    assert (said.physical_size_x, said.physical_size_y, said.physical_size_z) == (0.25, 0.5, 2.0)
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
    colour = texture(20, 30, 3)[np.newaxis]
    ((_, values),), _ = as_tiff(dicom(colour, tmp_path))
    np.testing.assert_array_equal(values, colour[0])


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


def test_dicom_of_frames_that_are_scaled_each_in_its_way(tmp_path: Path) -> None:
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
    said = pixels_said(xml)
    assert (said.physical_size_x, said.physical_size_y, said.physical_size_z) == (0.75, 0.5, 3.0)


def test_dicom_packed_as_a_whole_is_refused(tmp_path: Path) -> None:
    pydicom = pytest.importorskip("pydicom")
    whole = pydicom.uid.DeflatedExplicitVRLittleEndian
    with pytest.raises(InputError, match="packed as a whole"):
        read_image(dicom(np.zeros((1, 20, 30), "u1"), tmp_path, syntax=whole))


def test_a_czi_that_leads_to_one_tile_many_times_is_refused(tmp_path: Path) -> None:
    czi = pytest.importorskip("pylibCZIrw.czi")
    path = tmp_path / "a.czi"
    with czi.create_czi(str(path), compression_options="zstd0:ExplicitLevel=3") as file:
        file.write(np.zeros((1000, 1000, 1), "u1"), plane={"C": 0, "Z": 0, "T": 0})
    whole = bytearray(path.read_bytes())
    (place,) = struct.unpack_from("<q", whole, 32 + 52)
    begin = place + 32 + 128
    (n_sides,) = struct.unpack_from("<i", whole, begin + 28)
    entry = whole[begin : begin + 32 + 20 * n_sides]
    listed = struct.pack("<i124x", 5000) + 5000 * entry
    struct.pack_into("<q", whole, 32 + 52, len(whole))
    whole += struct.pack("<16sqq", b"ZISRAWDIRECTORY", len(listed), len(listed)) + listed
    path.write_bytes(whole)
    with pytest.raises(InputError, match="more pixels than its"):
        read_image(path)


def test_a_czi_tile_of_another_size_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    pixels = texture(40, 60)
    made = bytes(imagecodecs.jpegxr_encode(pixels))
    head = struct.pack("<16sqq", b"ZISRAWSUBBLOCK", 0, 0) + struct.pack("<iiq", 0, 0, len(made))
    data, page = head + bytes(240) + made, Page(40, 60, 1, np.dtype("u1"))
    sides = {"X": _Side(0, 60, 60), "Y": _Side(0, 40, 40)}
    whole = _Entry(0, 0, 4, is_smaller=False, sides=sides)
    np.testing.assert_array_equal(_pixels(data, whole, page)[..., 0], pixels)
    monkeypatch.delattr(imagecodecs, "jpegxr_decode")
    with pytest.raises(ValueError, match="another size"):
        _pixels(data, replace(whole, sides={**sides, "Y": _Side(0, 39, 39)}), page)
