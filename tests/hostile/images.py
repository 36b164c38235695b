"""Malformed and malicious image files, generated on the spot and never stored."""

import io
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import tifffile
from PIL import Image

from kpca_apps.images.files import encode_image
from kpca_apps.images.photographs.png import SIGNATURE
from kpca_apps.images.types import ImageFile

NAMES: tuple[str, ...] = (
    "<script>alert(1)</script>.png".replace("/", "_"),
    "height\n(cm).png",
    "\u202egnp.exe.png",
    "{{ 7 * 7 }}.png",
    "a b  c.PNG",
    "no-suffix",
    "-rf.png",
    "*.png",
    "[a].png",
    "\u05e9\u05dc\u05d5\u05dd.png",
    "x" * 200 + ".png",
)


def chunk(name: bytes, content: bytes) -> bytes:
    body = name + content
    return struct.pack(">I", len(content)) + body + struct.pack(">I", zlib.crc32(body))


def png(
    width: int,
    height: int,
    rows: bytes,
    *,
    depth: int = 8,
    colour: int = 0,
    lacing: int = 0,
    before: bytes = b"",
) -> bytes:
    """Return a PNG file of these filtered rows, valid or not."""
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, lacing)
    pixels = chunk(b"IDAT", zlib.compress(rows, 9))
    return SIGNATURE + chunk(b"IHDR", header) + before + pixels + chunk(b"IEND", b"")


def saved(pixels: np.ndarray, kind: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, kind, **options)
    return buffer.getvalue()


def tiff(pixels: np.ndarray, **options: Any) -> bytes:
    buffer = io.BytesIO()
    tifffile.imwrite(buffer, pixels, **options)
    return buffer.getvalue()


def texture(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8)


def refused_images() -> dict[str, tuple[str, bytes, str]]:
    """Return, for each fault, a file name, its content and words of the refusal."""
    grey, colour = texture(20, 30), texture(20, 30, 3)
    good_png, good_jpeg = saved(grey, "PNG"), saved(colour, "JPEG")
    good_tiff = tiff(grey, compression="zlib")
    plain_tiff = tiff(grey)
    bilevel = io.BytesIO()
    Image.new("1", (20, 30)).save(bilevel, "PNG")
    bilevel_tiff = io.BytesIO()
    Image.new("1", (20, 30)).save(bilevel_tiff, "TIFF")
    colours = tiff(grey, photometric="palette", colormap=np.zeros((3, 256), np.uint16))
    few = colours.replace(struct.pack("<HHI", 320, 3, 768), struct.pack("<HHI", 320, 3, 600))
    animated = io.BytesIO()
    frames = [Image.fromarray(texture(8, 8)), Image.fromarray(255 - texture(8, 8))]
    frames[0].save(animated, "PNG", save_all=True, append_images=frames[1:])
    gif = io.BytesIO()
    frames[0].save(gif, "GIF", save_all=True, append_images=frames[1:])
    webp = io.BytesIO()
    frames[0].convert("RGB").save(webp, "WEBP", save_all=True, append_images=frames[1:])
    bomb = png(1, 1, b"\0\0")[:8] + chunk(
        b"IHDR", struct.pack(">IIBBBBB", 60000, 60000, 8, 2, 0, 0, 0)
    )
    bomb += chunk(b"IDAT", zlib.compress(bytes(10_000))) + chunk(b"IEND", b"")
    small_bomb = png(12000, 12000, bytes(10_000))
    frame = good_jpeg.index(b"\xff\xc0")
    jpeg_bomb = good_jpeg[: frame + 5] + b"\xff\xff\xff\xff" + good_jpeg[frame + 9 :]
    flipped = bytearray(good_png)
    flipped[good_png.index(b"IDAT") + 20] ^= 255
    wrong_sum = good_png[:-13] + bytes([good_png[-13] ^ 1]) + good_png[-12:]
    wrong_filter = png(4, 2, b"\x09abcd\0abcd")
    circle = bytearray(plain_tiff)
    first = struct.unpack_from("<I", circle, 4)[0]
    n_tags = struct.unpack_from("<H", circle, first)[0]
    struct.pack_into("<I", circle, first + 2 + 12 * n_tags, first)
    return {
        "zero bytes": ("a.png", b"", "empty"),
        "text": ("a.png", b"<html>not found</html>", "not an image"),
        "png cut": ("a.png", good_png[:-40], "cut short"),
        "png cut in the header": ("a.png", good_png[:20], "cut short"),
        "png of few rows": ("a.png", png(30, 20, bytes(31 * 4)), "cut short"),
        "png flipped": ("a.png", bytes(flipped), "damaged"),
        "png checksum": ("a.png", wrong_sum, "its IDAT chunk is damaged"),
        "png filter 9": ("a.png", wrong_filter, "damaged"),
        "png of no pixels": ("a.png", png(0, 5, b""), "0 x 5"),
        "png of 1 bit": ("a.png", bilevel.getvalue(), "1 bit"),
        "png of depth 3": ("a.png", png(4, 2, b"\0" * 10, depth=3), "header is damaged"),
        "png palette short": (
            "a.png",
            png(2, 1, b"\0\0\5", colour=3, before=chunk(b"PLTE", b"abc")),
            "palette",
        ),
        "apng": ("a.png", animated.getvalue(), "animated"),
        "gif": ("a.gif", gif.getvalue(), "GIF"),
        "DICOM": ("a.dcm", b"II*\0\x08\0\0\0" + bytes(120) + b"DICM\x02\0", "damaged"),
        "FITS": ("a.fits", b"SIMPLE  =                    T", "damaged"),
        "NumPy": ("a.npy", b"\x93NUMPY\x01\0", "save it as a TIFF first"),
        "PPM": ("a.ppm", b"P6\n4 4\n65535\n" + bytes(96), "convert it to PNG or TIFF first"),
        "PGM": ("a.pgm", b"P5\n4 4\n7\n" + bytes(16), "few levels"),
        "PGM cut": ("a.pgm", b"P5\n4 4\n255\n" + bytes(15), "cut short"),
        "PAM": ("a.pam", b"P7\nWIDTH 4\n", "Netpbm"),
        "webp": ("a.webp", webp.getvalue(), "WebP"),
        "bomb": ("a.png", bomb, "60000 x 60000"),
        "bomb within the limit": ("a.png", small_bomb, "can hold"),
        "jpeg bomb": ("a.jpg", jpeg_bomb, "65535 x 65535"),
        "jpeg cut": ("a.jpg", good_jpeg[: len(good_jpeg) // 2], "cut short"),
        "jpeg cut in the header": ("a.jpg", good_jpeg[:30], "cut short"),
        "tiff cut": ("a.tif", good_tiff[:-100], "cut short"),
        "tiff header only": ("a.tif", good_tiff[:8], "beyond the end"),
        "tiff circle": ("a.tif", bytes(circle), "circle"),
        "tiff beyond the end": ("a.tif", bigtiff_beyond_the_end(), "beyond the end"),
        "tiff without depths": ("a.tif", tiff_without_depths(), "1 bit"),
        "tiff palette": ("a.tif", few, "palette"),
        "tiff of 1 bit": ("a.tif", bilevel_tiff.getvalue(), "1 bit"),
        "tiff of 64-bit integers": ("a.tif", tiff(grey.astype(np.uint64)), "64 bits"),
        "tiff complex": ("a.tif", tiff(grey.astype(np.complex64)), "unknown"),
        "tiff of 5 channels": (
            "a.tif",
            tiff(texture(20, 30, 5), photometric="minisblack", planarconfig="contig"),
            "5 channels",
        ),
        "tiff of 2 channels": (
            "a.tif",
            tiff(texture(20, 30, 2), photometric="minisblack", planarconfig="contig"),
            "2 channels",
        ),
        "raw by name": ("a.NEF", plain_tiff, "LibRaw"),
        "raw by tag": ("a.tif", tiff(grey, extratags=[(50706, 1, 4, b"\1\4\0\0")]), "raw file"),
        "heic": ("a.heic", b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", "damaged"),
        "bmp of 1 bit": ("a.bmp", saved(grey > 99, "BMP"), "1 bit"),
        "bmp cut": ("a.bmp", saved(grey, "BMP")[:-50], "cut short"),
    }


def bigtiff_beyond_the_end() -> bytes:
    """Return a BigTIFF whose first directory lies beyond the end of any file."""
    return b"II+\0\x08\0\0\0" + b"\xff" * 8


def tiff_without_depths() -> bytes:
    """Return a TIFF whose BitsPerSample tag is empty."""
    content = tiff(texture(20, 30))
    entry = struct.pack("<HHI", 258, 3, 1)
    return content.replace(entry, entry[:4] + bytes(4))


def encoded(like: ImageFile, pages: Any = None, **options: str) -> bytes:
    """Encode pixels (default: those of `like`) in the format of the image `like`."""
    file = io.BytesIO()
    own = (like.page(number) for number in range(len(like.pages)))
    encode_image(file, own if pages is None else pages, like, **options)
    return file.getvalue()


def write_image(path: Path, pages: Any, like: ImageFile, **options: str) -> None:
    """Write pixels in the format of the image `like`."""
    path.write_bytes(encoded(like, pages, **options))
