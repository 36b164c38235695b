"""Pass image files of all kinds through reader and writer; what comes out is judged by others.

Some seventy files, made by Pillow, tifffile, imagecodecs, imageio and scikit-image, are read and
written back with unchanged pixels, as their own kind::

    python -m tests.benchmarks.image_files

"read" is whether the pixels read are those that were put in (of packing with loss: those another
decoder sees), "written" whether another decoder sees them in the file written (JPEG: within a few
grey levels), "metadata" whether a library that did not write the original lists the same in both:
Pillow for what others wrote, and for what Pillow wrote tifffile (TIFF) or a list of chunks,
segments or boxes as they stand in the file.
"""

from __future__ import annotations

import io
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import imagecodecs
import imageio.v3 as imageio
import numpy as np
import skimage.io
import tifffile
from PIL import Image, ImageCms, ImageSequence
from PIL.PngImagePlugin import PngInfo
from PIL.TiffImagePlugin import ImageFileDirectory_v2

from kpca_apps.images.files import read_image
from kpca_apps.images.lossless import boxes
from tests.benchmarks.mutated_images import picture
from tests.hostile.images import saved, tiff, write_image

# How pixels are stored, and pictures that are not written: what a writer may choose.
STORAGE = {254, 255, 256, 257, 258, 259, 262, 266, 273, 277, 278, 279, 284, 317, 322, 323, 324, 325}
STORAGE |= {330, 338, 339, 347, 529, 530, 531, 532, 34665, 34853}
# What PNG, JPEG and RIFF need for the pixels.
NEEDED = {b"IHDR", b"IDAT", b"IEND", b"PLTE", b"tRNS", b"sBIT", b"VP8 ", b"VP8L", b"VP8X", b"ALPH"}
JPEG_LEVELS = 24


class Made(NamedTuple):
    name: str
    writer: str
    data: bytes
    pages: list[np.ndarray] | None  # None where packing loses


def exif() -> Image.Exif:
    made = Image.Exif()
    made[274], made[271], made[272], made[306] = 6, "Maker", "Model", "2024:01:02 03:04:05"
    made[282], made[283], made[296] = 300.0, 300.0, 2
    made.get_ifd(34665)[33434] = 0.004
    made.get_ifd(34665)[37510] = b"ASCII\0\0\0a comment"
    made.get_ifd(34853)[1] = "N"
    return made


def through_skimage(pixels: np.ndarray, suffix: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"made{suffix}")
        skimage.io.imsave(path, pixels, check_contrast=False)
        return path.read_bytes()


def png_files(profile: bytes) -> Iterator[Made]:
    grey, colour, deep = picture(40, 50), picture(40, 50, 3), picture(40, 50, dtype="uint16")
    everything = {"exif": exif(), "icc_profile": profile, "dpi": (300, 300)}
    text = PngInfo()
    text.add_text("Title", "dunes")
    text.add_itxt("XML:com.adobe.xmp", "<x:xmpmeta/>")
    text.add_text("Comment", "packed " * 50, zip=True)
    for channels, mode in ((2, "LA"), (3, "RGB"), (4, "RGBA")):
        pixels = picture(40, 50, channels)
        yield Made(f"PNG {mode} 8", "Pillow", saved(pixels, "PNG"), [pixels])
        pixels = picture(40, 50, channels, dtype="uint16")
        yield Made(f"PNG {mode} 16", "imagecodecs", imagecodecs.png_encode(pixels), [pixels])
    yield Made("PNG grey 8", "Pillow", saved(grey, "PNG"), [grey])
    yield Made("PNG grey 16", "Pillow", saved(deep, "PNG"), [deep])
    yield Made(
        "PNG all metadata", "Pillow", saved(colour, "PNG", pnginfo=text, **everything), [colour]
    )
    few = Image.fromarray(colour).quantize(13)
    for bits in (8, 4):
        data = saved_picture(few, "PNG", bits=bits)
        yield Made(f"PNG palette {bits}", "Pillow", data, [np.array(few.convert("RGB"))])
    clear = saved_picture(few, "PNG", transparency=bytes(range(0, 260, 20)))
    seen = np.array(Image.open(io.BytesIO(clear)).convert("RGBA"))
    yield Made("PNG palette, clear", "Pillow", clear, [seen])
    alpha = np.where(grey == 7, 0, 255).astype(np.uint8)
    keyed = saved(grey, "PNG", transparency=7)
    yield Made("PNG grey, clear 7", "Pillow", keyed, [np.dstack([grey, alpha])])
    yield Made("PNG", "imageio", imageio.imwrite("<bytes>", colour, extension=".png"), [colour])
    yield Made("PNG", "scikit-image", through_skimage(colour, ".png"), [colour])


def saved_picture(image: Image.Image, kind: str, **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def tiff_files(profile: bytes) -> Iterator[Made]:
    grey, colour, deep = picture(40, 50), picture(40, 50, 3), picture(40, 50, dtype="uint16")
    single, double = picture(40, 50, dtype="float32"), picture(40, 50, dtype="float64")
    rgb = {"photometric": "rgb"}
    tags = [
        (34675, 7, len(profile), profile, True),
        (274, 3, 1, 6, True),
        (65000, 12, 1, 0.1, True),
    ]
    tags += [(700, 1, 12, b"<x:xmpmeta/>", True), (315, 2, 0, "Artist", True)]
    for name, pixels, options in (
        ("grey 8", grey, {}),
        ("RGB 16, big-endian", picture(40, 50, 3, dtype="uint16"), {"byteorder": ">", **rgb}),
        ("float32", single, {"description": "heights", "resolution": (300, 300)}),
        ("float64, BigTIFF", double, {"bigtiff": True}),
        ("float32, predictor", single, {"compression": "zlib", "predictor": 3}),
        ("Deflate, predictor", colour, {"compression": "zlib", "predictor": True, **rgb}),
        ("LZW, big-endian", deep, {"compression": "lzw", "predictor": True, "byteorder": ">"}),
        ("PackBits", grey, {"compression": "packbits", "rowsperstrip": 7}),
        ("LZMA", deep, {"compression": "lzma"}),
        ("Zstandard", colour, {"compression": "zstd", **rgb}),
        ("PNG inside", colour, {"compression": "png", **rgb}),
        ("JPEG 2000 inside", deep, {"compression": "jpeg2000"}),
        (
            "JPEG XL inside",
            colour,
            {"compression": "jpegxl", "compressionargs": {"lossless": True}, **rgb},
        ),
        (
            "WebP inside",
            colour,
            {"compression": "webp", "compressionargs": {"lossless": True}, **rgb},
        ),
        ("LERC inside", single, {"compression": "lerc"}),
        ("JPEG inside", None, {"compression": "jpeg", "tile": (16, 16), **rgb}),
        (
            "planes",
            np.moveaxis(colour, -1, 0),
            {"planarconfig": "separate", "compression": "zlib", **rgb},
        ),
        ("tiles", picture(70, 90, 3), {"tile": (32, 48), "compression": "zlib", **rgb}),
        (
            "tiled planes, BigTIFF",
            picture(3, 70, 90),
            {"tile": (32, 48), "planarconfig": "separate", "bigtiff": True, **rgb},
        ),
        ("alpha", picture(40, 50, 4), {"extrasamples": ["unassalpha"], **rgb}),
        ("multiplied alpha", picture(40, 50, 4), {"extrasamples": ["assocalpha"], **rgb}),
        (
            "grey and alpha",
            picture(40, 50, 2),
            {"photometric": "minisblack", "planarconfig": "contig", "extrasamples": ["unassalpha"]},
        ),
        ("counts from white", grey, {"photometric": "miniswhite"}),
        (
            "profile, XMP, private tags",
            colour,
            {"extratags": tags, "resolution": (300, 300, 2), **rgb},
        ),
    ):
        data = tiff(colour if pixels is None else pixels, **options)
        pages = None if pixels is None else [pixels]
        if "plane" in name:
            pages = [np.moveaxis(pixels, 0, -1)]
        if "white" in name:
            pages = [255 - grey]
        yield Made(f"TIFF {name}", "tifffile", data, pages)
    stack = picture(12, 40, 50, dtype="uint16")
    for name, options in (
        ("ImageJ stack", {"imagej": True, "metadata": {"axes": "ZYX", "Info": "a note"}}),
        ("OME-XML", {"ome": True, "metadata": {"axes": "ZYX", "PhysicalSizeX": 0.5}}),
        ("12 pages, Deflate", {"compression": "zlib", "photometric": "minisblack"}),
    ):
        yield Made(f"TIFF {name}", "tifffile", tiff(stack, **options), list(stack))
    file = io.BytesIO()
    with tifffile.TiffWriter(file) as writer:
        for number, pixels in enumerate((grey, deep, single)):
            writer.write(pixels, description=f"page {number}", metadata=None)
    yield Made("TIFF pages of three types", "tifffile", file.getvalue(), [grey, deep, single])
    yield Made(
        "TIFF EXIF, GPS, profile",
        "Pillow",
        saved(colour, "TIFF", exif=exif(), icc_profile=profile),
        [colour],
    )
    yield Made("TIFF LZW", "Pillow", saved(colour, "TIFF", compression="tiff_lzw"), [colour])
    yield Made("TIFF JPEG inside", "Pillow", saved(colour, "TIFF", compression="jpeg"), None)
    yield Made("TIFF 16", "Pillow", saved(deep, "TIFF", compression="tiff_adobe_deflate"), [deep])
    first, *rest = (Image.fromarray(page) for page in stack)
    several = saved_picture(first, "TIFF", save_all=True, append_images=rest)
    yield Made("TIFF 12 pages", "Pillow", several, list(stack))
    yield Made("TIFF", "imageio", imageio.imwrite("<bytes>", colour, extension=".tif"), [colour])
    yield Made("TIFF float", "scikit-image", through_skimage(single, ".tif"), [single])


def jpeg_files(profile: bytes) -> Iterator[Made]:
    grey, colour = picture(40, 50), picture(40, 50, 3)
    record = b"\x1c\2\x50\0\6Artist\0"
    iptc = b"Photoshop 3.0\08BIM\4\4\0\0" + len(record).to_bytes(4, "big") + record
    iptc = b"\xff\xed" + (2 + len(iptc)).to_bytes(2, "big") + iptc
    xmp = b"http://ns.adobe.com/xap/1.0/\0<x:xmpmeta/>"
    everything = {"exif": exif(), "icc_profile": profile, "comment": b"a note", "xmp": xmp[29:]}
    for name, pixels, options in (
        ("grey", grey, {"dpi": (300, 300)}),
        ("all metadata", colour, {**everything, "extra": iptc}),
        ("progressive", colour, {"progressive": True}),
        ("restarts", colour, {"restart_marker_rows": 1, "subsampling": 0}),
    ):
        yield Made(f"JPEG {name}", "Pillow", saved(pixels, "JPEG", **options), None)
    for sampling in ("440", "422", "411"):
        data = imagecodecs.jpeg8_encode(colour, subsampling=sampling)
        yield Made(f"JPEG {sampling}", "imagecodecs", data, None)
    several = saved_picture(
        Image.fromarray(colour), "MPO", save_all=True, append_images=[Image.fromarray(grey)]
    )
    yield Made("JPEG of two pictures", "Pillow", several, None)
    yield Made("JPEG", "imageio", imageio.imwrite("<bytes>", colour, extension=".jpg"), None)


def other_files(profile: bytes) -> Iterator[Made]:
    grey, colour, deep = picture(40, 50), picture(40, 50, 3), picture(40, 50, dtype="uint16")
    wide, single = picture(40, 50, 3, dtype="uint16"), picture(40, 50, dtype="float32")
    everything = {"exif": exif(), "icc_profile": profile, "xmp": b"<x:xmpmeta/>"}
    rgba = picture(40, 50, 4)
    yield Made("WebP", "Pillow", saved(colour, "WEBP"), None)
    yield Made(
        "WebP all metadata",
        "Pillow",
        saved(rgba, "WEBP", lossless=True, exact=True, **everything),
        [rgba],
    )
    yield Made("WebP", "imagecodecs", imagecodecs.webp_encode(colour, lossless=True), [colour])
    yield Made("JPEG 2000", "Pillow", saved(colour, "JPEG2000"), [colour])
    for pixels in (deep, wide, rgba):
        shape = f"{'x'.join(map(str, pixels.shape[2:]))} {8 * pixels.itemsize}"
        stream = imagecodecs.jpeg2k_encode(pixels, level=0, reversible=True)
        yield Made(f"JPEG 2000 {shape}", "imagecodecs", stream, [pixels])
        stream = imagecodecs.jpegxl_encode(pixels, lossless=True)
        yield Made(f"JPEG XL {shape}", "imagecodecs", stream, [pixels])
    bare = imagecodecs.jpeg2k_encode(grey, level=0, reversible=True, codecformat="j2k")
    yield Made("JPEG 2000 stream", "imagecodecs", bare, [grey])
    for pixels, name in ((grey, "grey"), (colour, "RGB")):
        yield Made(f"BMP {name}", "Pillow", saved(pixels, "BMP", dpi=(300, 300)), [pixels])
        yield Made(f"Netpbm {name}", "Pillow", saved(pixels, "PPM"), [pixels])
    few = Image.fromarray(colour).quantize(13)
    yield Made("BMP palette", "Pillow", saved_picture(few, "BMP"), [np.array(few.convert("RGB"))])
    yield Made("BMP", "imagecodecs", imagecodecs.bmp_encode(colour), [colour])
    yield Made("Netpbm 16", "Pillow", saved(deep, "PPM"), [deep])
    yield Made("Netpbm float", "Pillow", saved(single, "PPM"), [single])


def decoded(path: Path, kind: str) -> list[np.ndarray]:
    """Return the pages as a library other than the reader's sees them, where there is one."""
    if kind == "TIFF":
        try:
            with Image.open(path) as image:
                return [np.array(page) for page in ImageSequence.Iterator(image)]
        except OSError:
            return [page.asarray() for page in tifffile.TiffFile(path).pages]
    data = path.read_bytes()
    if kind == "JPEG XL":
        return [imagecodecs.jpegxl_decode(data)]
    if kind == "JPEG 2000":
        return [imagecodecs.jpeg2k_decode(data)]
    with Image.open(path) as image:
        if kind == "PNG" and "16" in (
            image.png.im_rawmode if hasattr(image.png, "im_rawmode") else ""
        ):
            return [imagecodecs.apng_decode(data)]
        return [np.array(image)]


def pages_alike(path: Path, kind: str, name: str, expected: list[np.ndarray]) -> bool:
    """Whether another decoder sees the pages expected."""
    if kind == "TIFF":
        with tifffile.TiffFile(path) as file:
            seen = [page.asarray() for page in file.pages]
        if "plane" in name:
            seen = [np.moveaxis(page, 0, -1) for page in seen]
        if "white" in name:
            seen = [255 - page for page in seen]
    elif kind == "PNG":
        seen = [imagecodecs.apng_decode(path.read_bytes())]
    else:
        seen = decoded(path, kind)
    if kind == "JPEG":
        return abs(seen[0].astype(int) - expected[0]).max() <= JPEG_LEVELS
    return len(seen) == len(expected) and all(map(np.array_equal, seen, expected))


def listed(path: Path, kind: str, writer: str) -> Any:
    """List a file's metadata by a library that did not write the original."""
    data = path.read_bytes()
    if kind == "TIFF" and writer == "Pillow":
        with tifffile.TiffFile(path) as file:
            pages = [{tag.code: tag.value for tag in page.tags} for page in file.pages]
        found = [{code: tags[code] for code in tags.keys() - STORAGE} for tags in pages]
        return str([sorted(page.items()) for page in found]), str(pages[0].get(34665))
    if kind == "TIFF":
        # Not Image.open, which knows no pixels of 64 bits and few compressions.
        file, found = io.BytesIO(data), []
        directory = ImageFileDirectory_v2(file.read(16 if data[2] + data[3] == 43 else 8))
        while directory.next and not file.seek(directory.next):
            directory.reset()
            directory.load(file)
            found.append({code: directory[code] for code in directory.keys() - STORAGE})
        return str([sorted(page.items()) for page in found])
    if kind == "PNG" and writer == "Pillow":
        return sorted(chunk for chunk in chunks(data, 8, ">") if chunk[0] not in NEEDED)
    if kind == "WebP" and writer == "Pillow":
        return sorted(chunk for chunk in chunks(data, 12, "<") if chunk[0] not in NEEDED)
    if kind == "JPEG" and writer == "Pillow":
        return sorted(found for found in segments(data) if not found.startswith(b"\xe2MPF"))
    if kind.startswith("JPEG ") and not data.startswith((b"\xff\x4f", b"\xff\x0a")):
        return sorted(box for box in boxes(data) if box[0] in (b"uuid", b"xml ", b"Exif"))
    if kind == "JPEG XL" or data.startswith(b"\xff\x4f"):
        return []
    with Image.open(path) as image:
        names = ("dpi", "icc_profile", "exif", "xmp", "comment", "jfif_density", "gamma")
        return {name: image.info[name] for name in names if name in image.info}


def chunks(data: bytes, place: int, order: str) -> Iterator[tuple[bytes, bytes]]:
    """Yield name and content of PNG chunks (most significant byte first) or RIFF chunks."""
    is_png = order == ">"
    while place + 8 <= len(data):
        halves = data[place : place + 4], data[place + 4 : place + 8]
        name, length = halves[::-1] if is_png else halves
        size = int.from_bytes(length, "big" if is_png else "little")
        yield name, data[place + 8 : place + 8 + size]
        place += 12 + size if is_png else 8 + size + size % 2


def segments(data: bytes) -> Iterator[bytes]:
    """Yield code and content of the segments of metadata."""
    place = 2
    while data[place + 1] != 0xDA:
        end = place + 2 + int.from_bytes(data[place + 2 : place + 4], "big")
        if data[place + 1] >= 0xE0 and data[place + 1] != 0xEE:
            yield data[place + 1 : place + 2] + data[place + 4 : end]
        place = end


def main() -> int:
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    made = [
        one for make in (png_files, tiff_files, jpeg_files, other_files) for one in make(profile)
    ]
    kinds = ("TIFF", "PNG", "JPEG 2000", "JPEG XL", "JPEG", "WebP", "BMP", "Netpbm")
    n_wrong = 0
    print(f"{'file':32}{'made by':14}{'read':6}{'written':9}{'metadata':10}notes")
    with tempfile.TemporaryDirectory() as folder:
        for name, writer, data, expected in made:
            kind = next(
                kind
                for kind in kinds
                if name.startswith(kind) and not name.startswith("JPEG 2000 inside")
            )
            before, after = Path(folder, "before"), Path(folder, "after")
            before.write_bytes(data)
            image = read_image(before, label=name)
            pages = [image.page(number) for number in range(len(image.pages))]
            truth = decoded(before, kind) if expected is None else expected
            read = len(pages) == len(truth) and all(map(np.array_equal, pages, truth))
            write_image(after, iter(pages), image)
            written = pages_alike(after, kind, name, pages)
            first, second = (listed(path, kind, writer) for path in (before, after))
            same = first == second
            if not same:
                print(f"{first}\n{second}"[:2000])
            n_wrong += not (read and written and same)
            words = ["yes" if found else "NO" for found in (read, written, same)]
            notes = " ".join(image.notes)
            print(f"{name:32}{writer:14}{words[0]:6}{words[1]:9}{words[2]:10}{notes}")
    print(f"{len(made)} files, {n_wrong} of them not as they should be.")
    return 1 if n_wrong else 0


if __name__ == "__main__":
    sys.exit(main())
