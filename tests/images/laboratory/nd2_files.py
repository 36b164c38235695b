"""Write ND2 files as Nikon's software (version 3) does; no library writes them."""

import io
import struct
from typing import Any

import numpy as np

_MAGIC, _NAME = 0x0ABECEDA, 4072


def _element(name: str, value: Any) -> bytes:
    """Encode a named value in the format of the metadata."""
    title = (name + "\0").encode("utf-16-le")

    def head(kind: int) -> bytes:
        return struct.pack("BB", kind, len(title) // 2) + title

    if isinstance(value, dict):
        items = b"".join(_element(*item) for item in value.items())
        length = len(head(11)) + 12 + len(items)
        return head(11) + struct.pack("<IQ", len(value), length) + items + bytes(8 * len(value))
    if isinstance(value, bool):
        return head(1) + struct.pack("B", value)
    if isinstance(value, int):
        return head(3) + struct.pack("<I", value)
    if isinstance(value, float):
        return head(6) + struct.pack("<d", value)
    return head(8) + (value + "\0").encode("utf-16-le")


def nd2_file(pixels: np.ndarray, *, names: list[str], size: float, step: float, ms: float) -> bytes:
    """Encode frames of shape (times, slices, channels, rows, columns) as an ND2 file."""
    times, slices, channels, height, width = pixels.shape
    attributes = {
        "uiWidth": width,
        "uiHeight": height,
        "uiWidthBytes": width * channels * pixels.itemsize,
        "uiComp": channels,
        "uiBpcInMemory": 8 * pixels.itemsize,
        "uiBpcSignificant": 8 * pixels.itemsize,
        "uiSequenceCount": times * slices,
        "eCompression": 2,
    }
    planes = {
        f"a{n}": {
            "sDescription": name,
            "uiCompCount": 1,
            "uiSampleIndex": n,
            "pFluorescentProbe": {"m_sName": name},
        }
        for n, name in enumerate(names)
    }
    metadata = {
        "bCalibrated": True,
        "dCalibration": size,
        "sPicturePlanes": {"uiCount": channels, "sPlaneNew": planes},
    }
    stack = {"eType": 4, "uLoopPars": {"uiCount": slices, "dZStep": step}}
    film = {
        "eType": 1,
        "uLoopPars": {
            "uiCount": times, "dStart": 0.0, "dPeriod": ms, "dDuration": ms * times
        },
        "ppNextLevelEx": {"i0000000000": stack},
    }  # fmt: skip
    chunks = {
        "ImageAttributesLV!": _element("SLxImageAttributes", attributes),
        "ImageMetadataSeqLV|0!": _element("SLxPictureMetadata", metadata),
        "ImageMetadataLV!": _element("SLxExperiment", film),
        "ImageTextInfoLV!": _element("SLxImageTextInfo", {"TextInfoItem_0": ""}),
    }
    for number, frame in enumerate(pixels.reshape(-1, channels, height, width)):
        raw = np.ascontiguousarray(np.moveaxis(frame, 0, -1)).tobytes()
        chunks[f"ImageDataSeq|{number}!"] = bytes(8) + raw
    frames = np.arange(times * slices) * ms
    chunks["CustomData|AcqTimesCache!"] = frames.astype("<f8").tobytes()
    file = io.BytesIO()
    start = b"ND2 FILE SIGNATURE CHUNK NAME01!"
    file.write(struct.pack("<IIQ32s64s", _MAGIC, 32, 64, start, b"Ver3.0"))
    where = b""
    for name, data in chunks.items():
        where += name.encode() + struct.pack("<QQ", file.tell(), len(data))
        file.write(
            struct.pack("<IIQ", _MAGIC, _NAME, len(data)) + name.encode().ljust(_NAME, b"\0")
        )
        file.write(data)
    end, place = b"ND2 CHUNK MAP SIGNATURE 0000001!", file.tell()
    where += end + struct.pack("<Q", place)
    title = b"ND2 FILEMAP SIGNATURE NAME 0001!"
    file.write(struct.pack("<IIQ", _MAGIC, len(title), len(where)) + title + where)
    return file.getvalue()
