"""CMYK files stay CMYK with their ICC profiles, checked with Pillow and tifffile."""

import io
from pathlib import Path

import numpy as np
import pytest
import tifffile
from PIL import Image

from kpca_apps.denoise.batch.denoisers import GroupDenoiser
from kpca_apps.denoise.batch.run import run_batch
from kpca_apps.denoise.options import Options
from kpca_apps.errors import ConfigError
from kpca_apps.images.files import read_image
from tests.hostile.images import encoded, texture, tiff


def smooth(*shape: int) -> np.ndarray:
    """Return smooth ink levels, which JPEG changes little."""
    rows, columns = np.indices(shape[:2])
    return np.stack([rows, columns, rows + columns, 90 - rows], axis=2).astype("u1")


def written(path: Path, format: str = "same") -> Path:
    image = read_image(path)
    assert [page.channels for page in image.pages] == [3, 1] * (len(image.pages) // 2)
    out = path.with_name("out.jpg" if image.format == "jpeg" and format == "same" else "out.tif")
    out.write_bytes(encoded(image, format=format))
    return out


def test_jpeg(tmp_path: Path) -> None:
    inks, path = smooth(60, 80), tmp_path / "a.jpg"
    picture = Image.frombytes("CMYK", (80, 60), inks.tobytes())
    picture.save(path, quality=100, subsampling=0, icc_profile=b"of inks", dpi=(300, 300))
    image = read_image(path)
    # Pages hold light, not ink: white where there is no ink.
    assert np.abs(image.page(0).astype(int) - (255 - inks[..., :3])).max() <= 3
    with Image.open(written(path)) as seen:
        assert (seen.mode, seen.info["icc_profile"]) == ("CMYK", b"of inks")
        assert np.abs(np.array(seen).astype(int) - inks).max() <= 6
    with tifffile.TiffFile(written(path, "tiff")) as file:
        page = file.pages[0]
        assert (page.photometric.name, page.tags[34675].value) == ("SEPARATED", b"of inks")
        np.testing.assert_array_equal(page.asarray()[..., 3], 255 - image.page(1))
    with pytest.raises(ConfigError, match="CMYK"):
        written(path, "png")


@pytest.mark.parametrize("planar", ["contig", "separate"])
@pytest.mark.parametrize("dtype", ["u1", "u2"])
def test_tiff(dtype: str, planar: str, tmp_path: Path) -> None:
    inks = texture(2, 20, 30, 4).astype(dtype)
    stored = np.moveaxis(inks, 3, 1) if planar == "separate" else inks
    path = tmp_path / "a.tif"
    options = {"photometric": "separated", "planarconfig": planar, "compression": "zlib"}
    with tifffile.TiffWriter(path) as writer:
        for page in stored:
            writer.write(page, **options, contiguous=False)
    out = written(path)
    with tifffile.TiffFile(out) as file:
        for page, expected in zip(file.pages, stored, strict=True):
            assert page.photometric.name == "SEPARATED"
            np.testing.assert_array_equal(page.asarray(), expected)
    first = tiff(inks[0], **{**options, "planarconfig": "contig"})
    if dtype == "u1":
        with Image.open(out) as seen, Image.open(io.BytesIO(first)) as own:
            assert seen.mode == "CMYK"
            np.testing.assert_array_equal(np.array(seen), np.array(own))


def test_lower_resolutions_are_recognised_by_their_inks(tmp_path: Path) -> None:
    path, options = tmp_path / "a.tif", {"photometric": "separated", "tile": (16, 16)}
    with tifffile.TiffWriter(path) as writer:
        for side in (64, 32):
            writer.write(texture(side, side, 4), **options, contiguous=False)
    image = read_image(path)
    assert image.copies == {2: 0, 3: 1}
    assert [page.channels for page in image.pages] == [3, 1, 3, 1]
    denoiser = GroupDenoiser(Options(quality="draft"), sigma=20.0)
    out = tmp_path / "out"
    (done,) = run_batch([path], out, denoiser.settings, denoise=denoiser).images
    assert done.reason == ""
    whole, small = (tifffile.imread(out / "a.tif", key=key).astype(float) for key in (0, 1))
    np.testing.assert_allclose(
        small, whole.reshape(32, 2, 32, 2, 4).mean(axis=(1, 3)), rtol=0, atol=1
    )
