"""FITS, MRC and NIfTI files keep their content, as read by astropy, mrcfile and nibabel."""

import gzip
import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from kpca_apps.denoise.batch.denoisers import GroupDenoiser
from kpca_apps.denoise.batch.run import run_batch
from kpca_apps.denoise.options import Options
from kpca_apps.errors import InputError
from kpca_apps.images.files import read_image
from kpca_apps.images.laboratory.in_place import Plane, Scaling, write_in_place
from kpca_apps.images.types import ImageFile, Page
from tests.hostile.images import encoded, write_image

fits = pytest.importorskip("astropy.io.fits")
mrcfile = pytest.importorskip("mrcfile")
nibabel = pytest.importorskip("nibabel")

rng = np.random.default_rng(0)
CUBE = rng.normal(100, 20, (3, 20, 30)).astype("f4")


def pages_of(image: ImageFile) -> np.ndarray:
    return np.stack([image.page(number) for number in range(len(image.pages))])


def rewrite(path: Path, change: Callable[[np.ndarray], np.ndarray] = lambda pixels: pixels) -> Path:
    """Write the modified pixels of a file in the same format; return the new path."""
    image = read_image(path)
    out = path.with_name(f"again-{path.name}")
    pages = [change(image.page(number)) for number in range(len(image.pages))]
    write_image(out, iter(pages), image)
    return out


def test_fits_keeps_headers_tables_and_masks(tmp_path: Path) -> None:
    first = fits.PrimaryHDU()
    first.header["OBJECT"] = "M 31"
    first.header["LONGTEXT"] = "x" * 100
    science = fits.ImageHDU(CUBE, name="SCI")
    science.header["CTYPE3"] = "FREQ"
    science.header["DATAMAX"] = 1e9
    table = fits.BinTableHDU.from_columns([fits.Column("a", "E", array=np.arange(5.0))])
    mask = fits.ImageHDU(np.ones((20, 30), "i2"), name="DQ")
    path = tmp_path / "a.fits"
    fits.HDUList([first, science, table, mask]).writeto(path, checksum=True)
    image = read_image(path)
    assert len(image.pages) == 3
    assert any("DQ" in note for note in image.notes)
    with (
        fits.open(rewrite(path, lambda page: page + 1), checksum=True) as out,
        fits.open(path) as own,
    ):
        np.testing.assert_array_equal(out["SCI"].data, CUBE + 1)
        np.testing.assert_array_equal(out["DQ"].data, own["DQ"].data)
        np.testing.assert_array_equal(out[2].data, own[2].data)
        assert out[0].header == own[0].header
        dropped = {"CHECKSUM", "DATASUM", "DATAMAX"}
        for card in own["SCI"].header.cards:
            assert (card.keyword in out["SCI"].header) == (card.keyword not in dropped)
        assert out.verify("exception") is None


@pytest.mark.parametrize("name", ["BPM", "IVAR", "OBJMASK", "RMS", "FLG", "INVVAR", "IVAR_BLUE"])
def test_fits_extensions_without_pictures_are_kept(name: str, tmp_path: Path) -> None:
    path, beside = tmp_path / "a.fits", fits.ImageHDU(CUBE[0] * 2, name=name)
    fits.HDUList([fits.PrimaryHDU(CUBE[0]), beside]).writeto(path)
    image = read_image(path)
    assert len(image.pages) == 1 and any(name in note for note in image.notes)
    with fits.open(rewrite(path, lambda page: page + 1)) as out:
        np.testing.assert_array_equal(out[0].data, CUBE[0] + 1)
        np.testing.assert_array_equal(out[name].data, CUBE[0] * 2)


def test_fits_pixels_without_a_value_are_nan_and_stay_so(tmp_path: Path) -> None:
    counts = rng.integers(0, 1000, (20, 30)).astype("i2")
    counts[3, 4] = -32768
    image = fits.PrimaryHDU(counts)
    image.header["BSCALE"], image.header["BZERO"], image.header["BLANK"] = 0.5, 100.0, -32768
    path = tmp_path / "a.fits"
    path.write_bytes(_bytes(image))
    found = read_image(path).page(0)
    assert np.isnan(found[3, 4]) and np.isnan(found).sum() == 1
    with fits.open(path) as own:
        np.testing.assert_array_equal(own[0].data, found)
    assert rewrite(path).read_bytes() == path.read_bytes()
    # A pixel whose value equals the blank value is not written as blank.
    darkest = rewrite(path, lambda page: np.where(np.isnan(page), page, -1e9).astype(page.dtype))
    assert np.isnan(read_image(darkest).page(0)).sum() == 1


@pytest.mark.parametrize(("dtype", "blank"), [("u1", 255), ("u1", 0), ("i2", 32767), ("u1", 300)])
def test_any_integer_may_be_the_blank_value(dtype: str, blank: int, tmp_path: Path) -> None:
    path = tmp_path / "a.fits"
    image = fits.PrimaryHDU(np.arange(600).reshape(20, 30).astype(dtype))
    image.header["BLANK"] = blank  # 300 does not fit 8 bits
    image.writeto(path, output_verify="ignore")
    missing = np.isnan(pages_of(read_image(path))[0].astype(float))
    np.testing.assert_array_equal(missing, image.data == blank)
    assert rewrite(path).read_bytes() == path.read_bytes()


def test_a_batch_neither_uses_nor_changes_blank_pixels(tmp_path: Path) -> None:
    counts = rng.normal(500, 20, (64, 80)).astype("i2")
    hole = np.hypot(*np.indices(counts.shape) - [[[32]], [[40]]]) < 12
    counts[hole] = -32768
    image = fits.PrimaryHDU(counts)
    image.header["BSCALE"], image.header["BZERO"], image.header["BLANK"] = 0.5, 100.0, -32768
    path = tmp_path / "in" / "a.fits"
    path.parent.mkdir()
    path.write_bytes(_bytes(image))
    denoiser = GroupDenoiser(Options(quality="draft"), sigma=10.0)
    out = tmp_path / "out"
    (done,) = run_batch([path.parent], out, denoiser.settings, denoise=denoiser).images
    assert done.reason == ""
    with fits.open(out / "a.fits") as found:
        assert np.array_equal(np.isnan(found[0].data), hole)
        assert np.nanstd(found[0].data) < 3  # was 10


@pytest.mark.parametrize("name", ["BSCALE", "BZERO", "BLANK"])
def test_text_in_place_of_a_fits_number_is_damage(name: str, tmp_path: Path) -> None:
    image = fits.PrimaryHDU(rng.integers(0, 1000, (20, 30)).astype("i2"))
    for key, value in {"BSCALE": 0.5, "BZERO": 100.0, "BLANK": -32768, name: "'x'"}.items():
        image.header[key] = value
    path = tmp_path / "a.fits"
    path.write_bytes(_bytes(image))
    with pytest.raises(InputError, match="its header is damaged; fetch the file again"):
        read_image(path)


def _bytes(hdu: object) -> bytes:
    """Encode the integers of a FITS image as they are, and add its scaling and blank value."""
    raw, header = hdu.data, hdu.header
    plain = io.BytesIO()
    fits.PrimaryHDU(raw).writeto(plain)
    content = bytearray(plain.getvalue())
    cards = [f"{name:8}= {header[name]:>20}".ljust(80) for name in ("BSCALE", "BZERO", "BLANK")]
    end = content.index(b"END" + b" " * 77)
    content[end : end + 80 * 4] = ("".join(cards) + "END".ljust(80)).encode()
    return bytes(content)


@pytest.mark.parametrize("kind", ["volume", "images", "volumes"])
@pytest.mark.parametrize("dtype", ["i1", "i2", "u2", "f2", "f4"])
@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.filterwarnings("ignore:Setting the dtype:DeprecationWarning")  # raised by mrcfile
def test_mrc(kind: str, dtype: str, order: str, tmp_path: Path) -> None:
    pixels = (CUBE / 10).astype(np.dtype(dtype).newbyteorder(order))
    path = tmp_path / "a.mrc"
    with mrcfile.new(path) as file:
        file.set_data(np.stack([pixels, pixels]) if kind == "volumes" else pixels)
        file.set_image_stack() if kind == "images" else None
        file.voxel_size = (1.5, 1.5, 2.5)
        file.set_extended_header(np.arange(16, dtype="u1"))
        file.header.exttyp = b"SERI"
        file.add_label("a note")
    image = read_image(path)
    expected = {"volume": ((0, 1, 2),), "images": None, "volumes": ((0, 1, 2), (3, 4, 5))}
    assert image.groups == expected[kind]
    lighter = rewrite(path, lambda page: page + np.array(1, page.dtype))
    messages = io.StringIO()
    assert mrcfile.validate(lighter, print_file=messages), messages.getvalue()
    with mrcfile.open(lighter) as out, mrcfile.open(path) as own:
        np.testing.assert_array_equal(out.data, own.data + np.array(1, dtype))
        assert out.voxel_size == own.voxel_size
        assert out.extended_header.tobytes() == own.extended_header.tobytes()
        assert out.header.dmax == pytest.approx(own.header.dmax + 1, rel=1e-3)
        for name in out.header.dtype.names:
            if name not in ("dmin", "dmax", "dmean", "rms"):
                assert np.array_equal(out.header[name], own.header[name]), name


@pytest.mark.parametrize("kind", ["Nifti1Image", "Nifti2Image"])
@pytest.mark.parametrize("suffix", [".nii", ".nii.gz"])
@pytest.mark.parametrize("dtype", ["u1", "i2", "u2", "i4", "f4", "f8"])
def test_nifti(kind: str, suffix: str, dtype: str, tmp_path: Path) -> None:
    values = rng.normal(100, 20, (30, 20, 4, 2))
    affine = np.array([[0, 2, 0, 5], [2, 0, 0, 6], [0, 0, 3, 7], [0, 0, 0, 1.0]])
    made = getattr(nibabel, kind)(values, affine)
    made.header.set_data_dtype(dtype)
    made.header.set_xyzt_units("mm", "sec")
    made.header.extensions.append(nibabel.nifti1.Nifti1Extension("comment", b"a note"))
    path = tmp_path / f"a{suffix}"
    nibabel.save(made, path)
    image = read_image(path)
    assert image.groups == ((0, 1, 2, 3), (4, 5, 6, 7))
    own, out = nibabel.load(path), nibabel.load(rewrite(path))
    np.testing.assert_allclose(
        pages_of(image), own.get_fdata().transpose(3, 2, 1, 0).reshape(8, 20, 30),
        rtol=1e-6,
    )  # fmt: skip
    np.testing.assert_array_equal(out.dataobj.get_unscaled(), own.dataobj.get_unscaled())
    np.testing.assert_array_equal(out.affine, own.affine)
    assert out.header == own.header and out.header.extensions == own.header.extensions
    if suffix == ".nii.gz":
        assert gzip.decompress(rewrite(path).read_bytes()) == gzip.decompress(path.read_bytes())


def test_data_without_brightness_are_rejected(tmp_path: Path) -> None:
    made = nibabel.Nifti1Image(np.ones((5, 5, 2), "i2"), np.eye(4))
    made.header.set_intent("label")
    nibabel.save(made, tmp_path / "a.nii")
    waves = CUBE.astype("c8")
    with mrcfile.new(tmp_path / "a.mrc") as file:
        file.set_data(waves)
    fits.PrimaryHDU(np.ones((5, 5), "i8")).writeto(tmp_path / "a.fits")
    fits.PrimaryHDU(np.ones(5, "f4")).writeto(tmp_path / "b.fits")
    packed = fits.CompImageHDU(CUBE[0])
    fits.HDUList([fits.PrimaryHDU(), packed]).writeto(tmp_path / "c.fits")
    for name, words in (
        ("a.nii", "labels"),
        ("a.mrc", "complex"),
        ("a.fits", "32 bits"),
        ("b.fits", "no image"),
        ("c.fits", "funpack"),
    ):
        with pytest.raises(InputError, match=words):
            read_image(tmp_path / name)


def test_only_the_requested_part_of_a_large_file_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.mrc"
    with mrcfile.new(path) as file:
        file.set_data(CUBE)
    monkeypatch.setattr("kpca_apps.images.files.FRONT", 100)
    assert encoded(read_image(path))[1024:] == path.read_bytes()[1024:]


@pytest.mark.parametrize(
    ("stored", "slope", "offset", "blank", "dtype"),
    [("i2", 1, 32768, None, "u2"), ("u1", 1, -128, None, "i1"), ("i2", 0.5, 3, None, "f4"),
     ("i2", 1, 0, 7, "f4"), ("i4", 0.1, 0, None, "f8"), ("i2", 1e-4, 1000, None, "f8"),
     (">u4", 1, -(2.0**31), None, "i4"), ("u1", -2, 5, 0, "f4")],
)  # fmt: skip
def test_values_and_stored_integers_correspond(
    stored: str, slope: float, offset: float, blank: int | None, dtype: str
) -> None:
    kind, scaling = np.dtype(stored), Scaling(slope, offset, blank)
    limits = np.iinfo(kind)
    raw = rng.integers(limits.min, limits.max, 500, np.int64, endpoint=True).astype(kind)
    raw[:2] = limits.min, limits.max
    values = scaling.values(raw)
    assert values.dtype == dtype
    expected = raw.astype("f8") * slope + offset
    expected[raw == blank] = np.nan
    np.testing.assert_allclose(values, expected, rtol=1e-6)
    np.testing.assert_array_equal(scaling.stored(values, kind), raw)
    if blank is not None:
        assert blank not in scaling.stored(np.nan_to_num(values), kind)


@pytest.mark.parametrize(("slope", "offset"), [(1e305, 0.0), (1e308, 1e308), (-1e306, 0.0)])
@pytest.mark.parametrize("dtype", ["i2", "f4", "f8"])
def test_overflow_is_blamed_on_the_rescaling(slope: float, offset: float, dtype: str) -> None:
    with pytest.raises(InputError, match="rescaling"):
        Scaling(slope, offset).values(np.array([1000, 30000], dtype))
    # A pixel that is infinite in the file did not overflow, so it is no error.
    assert np.isinf(Scaling(2.0, 1.0).values(np.array([np.inf], "f4")))


@pytest.mark.parametrize(
    ("name", "value"),
    [("NAXIS2", "'x'"), ("NAXIS2", "9" * 20), ("NAXIS2", "2.5"), ("BITPIX", "'x'"), ("NAXIS2", "")],
)
def test_fits_with_a_false_header_is_rejected_in_plain_words(
    name: str, value: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.fits"
    fits.PrimaryHDU(CUBE[0]).writeto(path)
    content = bytearray(path.read_bytes())
    place = content.index(f"{name:8}=".encode())
    content[place : place + 80] = f"{name:8}= {value:>20}".ljust(80).encode()
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"^a\.fits: its header is damaged; fetch"):
        read_image(path, label="a.fits")


def test_nifti_packed_tenfold_is_read(tmp_path: Path) -> None:
    values = np.zeros((128, 128, 100), "i2")
    values[20:50, 30:90] = rng.integers(0, 200, (30, 60, 100))
    path = tmp_path / "a.nii.gz"
    nibabel.save(nibabel.Nifti1Image(values, np.eye(4)), path)
    assert path.stat().st_size < values.nbytes / 5
    np.testing.assert_array_equal(pages_of(read_image(path)), values.T)


def test_fits_whose_images_lie_over_one_another_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.fits"
    images = [fits.ImageHDU(CUBE), fits.ImageHDU(CUBE)]
    images[0].header["DATAMAX"] = images[1].header["DATAMAX"] = 1.0
    fits.HDUList([fits.PrimaryHDU(), *images]).writeto(path)
    content = path.read_bytes()
    card = b"GCOUNT  =                    "
    # The first header claims no pixels (GCOUNT 0), and the next header stands in their place.
    first, second = content.split(b"XTENSION")[1:]
    lie = first[: first.index(b"END     ")].replace(card + b"1", card + b"0")
    lie += first[len(lie) : 2880 - 8]
    path.write_bytes(content[:2880] + b"XTENSION" + lie + b"XTENSION" + second)
    with pytest.raises(InputError, match="over one another"):
        read_image(path)


def test_written_areas_are_skipped() -> None:
    file, content = io.BytesIO(), bytes(range(100))
    plane = Plane(20, Page(4, 10, 1, np.dtype("u1")), np.dtype("u1"))
    write_in_place(file, [np.full((4, 10), 7, "u1")], content, [plane], [(30, b"ab"), (70, b"cd")])
    assert file.getvalue() == content[:20] + b"\7" * 40 + content[60:70] + b"cd" + content[72:]


def test_fits_of_too_many_pages_in_all_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kpca_apps.images.laboratory.fits.MOST_PAGES", 5)
    path = tmp_path / "a.fits"
    fits.HDUList([fits.PrimaryHDU(CUBE), fits.ImageHDU(CUBE)]).writeto(path)
    with pytest.raises(InputError, match="more than 5 pages"):
        read_image(path)
