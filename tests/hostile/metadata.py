"""Workbooks and images with hostile texts in every field of their formats.

Texts that a library refuses to write are patched into its file as bytes.
"""

import io
import json
import re
import zipfile
from collections.abc import Callable, Sequence
from itertools import cycle, islice
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import numpy as np
import tifffile
import xlsxwriter
from PIL import Image
from PIL.PngImagePlugin import PngInfo

Fields = Callable[[int], list[str]]

MAKE, MODEL, SOFTWARE, ARTIST, COMMENT, EXIF, ISO = 271, 272, 305, 315, 37510, 34665, 34855


def in_xml(text: str) -> str:
    """Remove characters that XML cannot hold, even escaped."""
    return re.sub("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "", text)


def write_workbook(path: Path, cells: dict[str, list[Any]], texts: Sequence[str]) -> None:
    """Write a table, and the texts as comments, formula values, sheets, names and properties."""
    names = list(dict.fromkeys(filter(str.strip, map(in_xml, texts))))
    with xlsxwriter.Workbook(
        path, {"strings_to_urls": False, "strings_to_formulas": False}
    ) as book:
        sheet = book.add_worksheet("sheet 0")
        for column, (name, values) in enumerate(cells.items()):
            sheet.write_string(0, column, name[:32_767])
            sheet.write_comment(0, column, name[:200], {"author": name[:200]})
            for row, value in enumerate(values, 1):
                if isinstance(value, str) and row % 7 == 0:
                    sheet.write_formula(row, column, '="x"', None, value)
                elif isinstance(value, str):
                    sheet.write_string(row, column, value)
                else:
                    sheet.write_number(row, column, value)
        for place in range(1, len(names)):
            book.add_worksheet(f"sheet {place}").write_row(0, 0, ["a", place])
            book.define_name(f"name_{place}", "='sheet 0'!$A$1")
        keys = ("title", "subject", "author", "manager", "company", "category", "keywords",
                "comments", "status", "hyperlink_base")  # fmt: skip
        book.set_properties(dict(zip(keys, islice(cycle(names), len(keys)), strict=True)))
        for place, text in enumerate(names):
            book.set_custom_property(f"property {place}", text[:255])
    named = {f"sheet {place}": name for place, name in enumerate(names)}
    named |= {f"name_{place}": name for place, name in enumerate(names)}
    named |= {f"property {place}": name for place, name in enumerate(names)}

    def put(match: re.Match[str]) -> str:
        return f" name={quoteattr(named[match[1]])}" if match[1] in named else match[0]

    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    for part in ("xl/workbook.xml", "docProps/custom.xml"):
        parts[part] = re.sub(r' name="([^"]*)"', put, parts[part].decode()).encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for part, data in parts.items():
            archive.writestr(part, data)


def _exif(text: str) -> Image.Exif:
    exif = Image.Exif()
    data = text.encode("utf-8", "replace").replace(b"\0", b"")
    for tag in (MAKE, MODEL, SOFTWARE, ARTIST):
        exif[tag] = data
    exif.get_ifd(EXIF).update({ISO: 800, COMMENT: b"ASCII\0\0\0" + data})
    return exif


def jpeg(path: Path, pixels: np.ndarray, text: str) -> None:
    comment, xmp = text.encode("utf-8", "replace"), f"<x:xmpmeta>{in_xml(text)}</x:xmpmeta>"
    Image.fromarray(pixels).save(path, exif=_exif(text), comment=comment, xmp=xmp.encode())


def png(path: Path, pixels: np.ndarray, text: str) -> None:
    info, bare = PngInfo(), text.replace("\0", "")
    for key in ("Title", "Author", "Description", "Software", "Comment"):
        info.add_itxt(key, bare, zip=key == "Author")
        info.add_text(f"{key} 2", bare.encode("latin-1", "replace"), zip=key == "Title")
    Image.fromarray(pixels).save(path, pnginfo=info, exif=_exif(text))


def tiff(path: Path, pixels: np.ndarray, text: str) -> None:
    data = text.encode("utf-8", "replace").replace(b"\0", b"") + b"\0"
    tags = [(tag, 2, len(data), data, True) for tag in (MAKE, MODEL, 269, 285, 316, 33432, 700)]
    tifffile.imwrite(path, pixels, description=data, software=data, extratags=tags, metadata=None)


def ome_tiff(path: Path, pixels: np.ndarray, text: str) -> None:
    bare = in_xml(text)
    info = {"axes": "CYX", "Name": bare, "Description": bare,
            "Channel": {"Name": [bare, bare]}, "PhysicalSizeX": 0.1, "PhysicalSizeXUnit": bare,
            "MapAnnotation": {bare: bare}}  # fmt: skip
    tifffile.imwrite(path, np.stack([pixels, pixels]), ome=True, metadata=info)


def imagej(path: Path, pixels: np.ndarray, text: str) -> None:
    bare = text.replace("\0", "").encode("ascii", "replace").decode()
    info = {"axes": "ZYX", "unit": bare, "Info": text, "Labels": [text, text], "spacing": 2.0}
    tifffile.imwrite(path, np.stack([pixels, pixels]), imagej=True, metadata=info)


def fits(path: Path, pixels: np.ndarray, text: str) -> None:
    from astropy.io import fits as library

    file, marked = io.BytesIO(), "X" * 20
    first = library.PrimaryHDU(pixels)
    for key in ("OBJECT", "BUNIT", "TELESCOP", "CTYPE1", "COMMENT", "HISTORY"):
        first.header[key] = marked
    beside = library.ImageHDU(np.ones_like(pixels), name=f"VAR_{marked}")
    library.HDUList([first, beside]).writeto(file)
    data = text.replace("'", "").encode("utf-8", "replace")[:20].ljust(20)
    path.write_bytes(file.getvalue().replace(marked.encode(), data))


def dicom(path: Path, pixels: np.ndarray, text: str, *, meaning: str = "MONOCHROME2") -> None:
    import pydicom
    from pydicom.dataset import FileDataset, FileMetaDataset
    from pydicom.uid import ExplicitVRLittleEndian, SecondaryCaptureImageStorage, generate_uid

    with pydicom.config.disable_value_validation():
        meta = FileMetaDataset()
        meta.TransferSyntaxUID = ExplicitVRLittleEndian
        meta.MediaStorageSOPClassUID = SecondaryCaptureImageStorage
        meta.MediaStorageSOPInstanceUID = generate_uid()
        header = FileDataset(str(path), {}, file_meta=meta, preamble=bytes(128))
        header.SpecificCharacterSet = "ISO_IR 192"
        header.PhotometricInterpretation = meaning.encode("utf-8", "replace").decode("latin-1")
        header.Rows, header.Columns = pixels.shape
        header.SamplesPerPixel, header.PixelRepresentation = 1, 0
        header.BitsAllocated = header.BitsStored = 8
        header.HighBit, header.PixelData = 7, pixels.tobytes()
        header["PixelData"].VR = "OB"
        bare = re.sub(r"[\\\0]", "", text)
        for key in ("PatientName", "StudyDescription", "Manufacturer", "RescaleType"):
            setattr(header, key, bare)
        header.save_as(path, enforce_file_format=True)


def nifti(path: Path, pixels: np.ndarray, text: str) -> None:
    import nibabel

    image = nibabel.Nifti1Image(pixels, np.eye(4))
    data = text.encode("utf-8", "replace")
    for key, size in (("descrip", 80), ("aux_file", 24), ("intent_name", 16)):
        image.header[key] = data[:size]
    image.header.extensions.append(nibabel.nifti1.Nifti1Extension("comment", data))
    nibabel.save(image, path)


def mrc(path: Path, pixels: np.ndarray, text: str) -> None:
    import mrcfile

    with mrcfile.new(path) as file:
        file.set_data(pixels.astype("i2"))
        file.header.label[0] = text.encode("utf-8", "replace")[:80]


def czi(path: Path, pixels: np.ndarray, text: str) -> None:
    from pylibCZIrw.czi import create_czi

    with create_czi(str(path), compression_options="uncompressed:") as file:
        file.write(pixels[..., np.newaxis], plane={"C": 0, "Z": 0, "T": 0})
        file.write_metadata("X" * 400, channel_names={0: "X" * 400})
    bare = escape(in_xml(text)[:60]).encode()
    path.write_bytes(path.read_bytes().replace(b"X" * 400, bare.ljust(400)))


def nd2(path: Path, pixels: np.ndarray, text: str) -> None:
    from tests.images.laboratory.nd2_files import nd2_file

    frames = pixels[np.newaxis, np.newaxis, np.newaxis].astype("u2")
    path.write_bytes(nd2_file(frames, names=[text], size=0.1, step=1.0, ms=1.0))


def zarr(path: Path, pixels: np.ndarray, text: str, *, place: str = "", copy: str = "0") -> None:
    """Write an OME-Zarr with the text as names of channels, units, notes or an axis."""
    import zarr as library

    group = library.open_group(str(path), mode="w", zarr_format=3)
    group.create_array("0", shape=(1, *pixels.shape), chunks=(1, 8, 8), dtype=pixels.dtype)
    library.open_array(str(path / "0"), mode="r+")[0] = pixels
    axes = [{"name": "c", "type": "channel"}, {"name": "y", "type": "space", "unit": text},
            {"name": place or "x", "type": place or "space", "unit": text}]  # fmt: skip
    scale = {"name": text, "axes": axes, "datasets": [{"path": copy, "coordinateTransformations": [
        {"type": "scale", "scale": [1.0, 0.1, 0.1]}]}]}  # fmt: skip
    channel = {"label": text, "color": text, "window": {}}
    ome = {"version": "0.5", "multiscales": [scale], "omero": {"channels": [channel]}}
    file = path / "zarr.json"
    held = json.loads(file.read_text("utf-8"))
    held["attributes"] = {"ome": ome, text: text}
    file.write_text(json.dumps(held), "utf-8")


KINDS: dict[str, Callable[[Path, np.ndarray, str], None]] = {
    "jpg": jpeg, "png": png, "tif": tiff, "ome.tif": ome_tiff, "ij.tif": imagej, "fits": fits,
    "dcm": dicom, "nii": nifti, "mrc": mrc, "czi": czi, "nd2": nd2, "zarr": zarr,
}  # fmt: skip
