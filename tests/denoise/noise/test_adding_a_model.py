"""Adding a noise model as CONTRIBUTING describes: a module, and an entry in the registry."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import tifffile
from skimage import data

# Module of a noise model. Its noise level is the standard deviation of the noise in the square root
# of the intensity.
MODEL = '''
"""Noise that is white in the square root of the intensity."""

import numpy as np

from kpca_apps.denoise.noise.gaussian import denoise_gaussian
from kpca_apps.denoise.noise.model import Measured


def measure(seen):
    levels = tuple(float(np.diff(np.sqrt(plane)).std() / 2**0.5) for plane in seen.planes)
    return Measured(levels, levels, black=seen.black)


def denoise(planes, known, options):
    levels = known if isinstance(known, tuple) else (float(known),) * len(planes)
    unit = 255 / 16  # roots of 0 to 255
    roots = (np.sqrt(np.maximum(planes, 0)) * unit).astype(np.float32)
    cleaned = denoise_gaussian(roots, tuple(level * unit for level in levels), options)
    return np.square(cleaned / unit), levels
'''
RUN = """
import sys
import kpca_apps.denoise.noise as room
from kpca_apps.denoise import options

room.__path__.append(sys.argv[1])
options.NOISE_MODELS["rooted"] = options.NoiseModel("white in its root", from_black=True)
options.NOISES = (*options.NOISE_MODELS, "auto")
from kpca_apps.cli.main import main

sys.exit(main(["denoise", "run", *sys.argv[2:]]))
"""


def test_a_noise_model_in_its_own_module_works_in_the_command(tmp_path: Path) -> None:
    clean = data.camera()[100:196, 170:266].astype(np.float64)
    noise = np.random.default_rng(0).normal(size=clean.shape)
    noisy = np.square(np.maximum(np.sqrt(clean) + 0.8 * noise, 0)).astype(np.float32)
    tifffile.imwrite(tmp_path / "a.tif", noisy)
    (tmp_path / "rooted.py").write_text(MODEL)
    shown = [sys.executable, "-c", RUN, str(tmp_path)]
    words = ["a.tif", "--noise", "rooted", "--quality", "fast", "--out", "out"]
    done = subprocess.run([*shown, *words], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    cleaned = tifffile.imread(next(Path(tmp_path, "out").rglob("a.tif")))
    assert np.mean((cleaned - clean) ** 2) < 0.4 * np.mean((noisy - clean) ** 2)
    helped = subprocess.run([*shown, "--help"], capture_output=True, text=True)
    assert "white in its root" in " ".join(helped.stdout.replace("\u2502", " ").split())
