"""A truncated JPEG is rejected, although libjpeg alone would fill missing pixels with grey."""

import io

import imagecodecs
import numpy as np
import pytest
from PIL import Image

from kpca_apps.errors import InputError
from kpca_apps.images.photographs import jpeg
from kpca_apps.images.photographs.jpeg import read_jpeg
from tests.hostile.images import encoded, saved, texture

END = b"\xff\xd9"
KINDS = {
    "grey": saved(texture(40, 56), "JPEG"),
    "colour": saved(texture(40, 56, 3), "JPEG"),
    "progressive": saved(texture(40, 56, 3), "JPEG", progressive=True),
    "restarts": saved(texture(40, 56, 3), "JPEG", restart_marker_rows=1, subsampling=0),
    "coarse colour": imagecodecs.jpeg8_encode(texture(40, 56, 3), subsampling="411"),
}


@pytest.fixture(params=["decoded once", "decoded twice"])
def decoder(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a test with each of two decoders; the second is used only if the first fails."""

    def fail(*arguments: object, **options: object) -> None:
        raise ValueError("Could not determine subsampling level of JPEG image")

    if request.param == "decoded twice":
        monkeypatch.setattr(jpeg.simplejpeg, "decode_jpeg", fail)


@pytest.mark.usefixtures("decoder")
@pytest.mark.parametrize("kind", KINDS)
def test_a_truncated_image_is_rejected_even_with_an_end_marker(kind: str) -> None:
    whole = KINDS[kind]
    scan = whole.index(b"\xff\xda") + 20
    with Image.open(io.BytesIO(whole)) as seen:
        np.testing.assert_array_equal(read_jpeg(whole).page(0), np.array(seen))
    for place in np.linspace(scan, len(whole) - 4, 25).astype(int):
        # Between scans, an appended end marker makes a valid file with fewer scans.
        is_between = 0xFF in whole[place - 1 : place + 1]
        for end in (b"",) if is_between else (b"", END):
            with pytest.raises(InputError, match="cut short"):
                read_jpeg(whole[:place] + end).page(0)


def test_missing_restart_intervals_are_refused() -> None:
    whole = KINDS["restarts"]
    marks = [whole.index(bytes([0xFF, 0xD0 + number])) for number in range(4)]
    for first, second in ((0, 1), (1, 2), (2, 3)):
        with pytest.raises(InputError):
            read_jpeg(whole[: marks[first]] + whole[marks[second] :]).page(0)


def test_colour_coarser_than_in_any_common_file_is_checked_too() -> None:
    whole = KINDS["colour"]
    content = bytearray(whole[: whole.index(b"\xff\xda") + 60] + END)
    content[content.index(b"\xff\xc0") + 11] = 0x31
    with pytest.raises(InputError, match="a scan ends too early"):
        read_jpeg(bytes(content)).page(0)


def test_damaged_metadata_costs_no_pixels() -> None:
    pixels = texture(40, 56, 3)
    plain = read_jpeg(saved(pixels, "JPEG")).page(0)
    for options in ({"icc_profile": b"no profile"}, {"exif": b"Exif\0\0II*\0\xff\xff\xff\xff"}):
        found = read_jpeg(saved(pixels, "JPEG", **options)).page(0)
        np.testing.assert_array_equal(found, plain)
    # The numbered parts of an ICC profile are misnumbered; an Exif thumbnail is truncated.
    content = saved(pixels, "JPEG", icc_profile=bytes(70_000))
    second = content.rindex(b"ICC_PROFILE\0") + 12
    wrong = content[:second] + b"\7\1" + content[second + 2 :]
    np.testing.assert_array_equal(read_jpeg(wrong).page(0), plain)
    thumbnail = saved(pixels[:16, :16], "JPEG")[:400]
    found = read_jpeg(saved(pixels, "JPEG", exif=b"Exif\0\0II*\0" + thumbnail)).page(0)
    np.testing.assert_array_equal(found, plain)


def test_segments_are_written_as_they_were() -> None:
    given = {"comment": b"a note", "icc_profile": bytes(70_000), "exif": b"Exif\0\0II*\0"}
    first = read_jpeg(saved(texture(16, 24), "JPEG", **given))
    second = read_jpeg(encoded(first))
    assert second.carried == first.carried and second.metadata.icc == bytes(70_000)


def test_thousands_of_empty_segments_take_no_time() -> None:
    whole = KINDS["grey"]
    padded = whole[:2] + b"\xff\xfe\0\2" * 100_000 + whole[2:]
    np.testing.assert_array_equal(read_jpeg(padded).page(0), read_jpeg(whole).page(0))


def test_jpegs_that_libjxl_rejects_are_read() -> None:
    # libjxl rejects two kinds of files: those whose restart intervals differ between scans, and
    # those with fill bytes before a marker.
    of_scans = saved(texture(40, 56, 3), "JPEG", progressive=True, restart_marker_rows=1)
    filled = KINDS["coarse colour"].removesuffix(END) + b"\xff\xff" + END
    for whole in (of_scans, filled):
        with Image.open(io.BytesIO(whole)) as seen:
            np.testing.assert_array_equal(read_jpeg(whole).page(0), np.array(seen))
        with pytest.raises(InputError):
            read_jpeg(whole[: len(whole) - 40] + END).page(0)


def test_writing_a_progressive_file_as_baseline_is_reported() -> None:
    content = saved(texture(40, 56, 3), "JPEG", progressive=True)
    assert "It is progressive, and written as a baseline JPEG." in read_jpeg(content).notes
    assert not read_jpeg(saved(texture(40, 56, 3), "JPEG")).notes
