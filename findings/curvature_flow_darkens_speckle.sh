#!/usr/bin/env bash
# SimpleITK 2.5.7: CurvatureFlow and CurvatureAnisotropicDiffusion of noise that is skewed (speckle).
# Guess before it was run: smoothing keeps the mean of an even region within a thousandth.
# Seen: CurvatureFlow, five steps, takes an even region of speckle from 60.4 to 57.6, and twenty steps
# to 54.8, since it shrinks the small bright spots and keeps the wide dark ground;
# CurvatureAnisotropicDiffusion takes it to 58.0. GradientAnisotropicDiffusion keeps 60.4, and the
# mean of symmetric noise stays within 1 % with all three.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q simpleitk==2.5.7 numpy==2.4.6
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON'
import numpy as np
import SimpleITK as sitk

rng = np.random.default_rng(0)
speckle = rng.gamma(2, 30, (128, 128)).astype(np.float32)
symmetric = rng.normal(60, 42, (128, 128)).astype(np.float32)


def means(picture):
    image = sitk.GetImageFromArray(picture)
    smoothed = {
        "CurvatureFlow, 5 steps": sitk.CurvatureFlow(image, 0.05, 5),
        "CurvatureFlow, 20 steps": sitk.CurvatureFlow(image, 0.05, 20),
        "CurvatureAnisotropicDiffusion": sitk.CurvatureAnisotropicDiffusion(image, 0.0625, 3.0, 1, 5),
        "GradientAnisotropicDiffusion": sitk.GradientAnisotropicDiffusion(image, 0.0625, 3.0, 1, 5),
    }
    found = {name: sitk.GetArrayFromImage(result).mean() for name, result in smoothed.items()}
    return {"before": picture.mean()} | found


for kind, picture in (("speckle", speckle), ("symmetric", symmetric)):
    print(kind, {name: round(float(mean), 1) for name, mean in means(picture).items()})
after = means(speckle)
assert after["CurvatureFlow, 20 steps"] < 0.93 * after["before"], "fixed: the mean is kept"
PYTHON
