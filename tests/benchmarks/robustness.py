"""What a wrong noise level costs, on the 12 grey images of `set12.py`.

The noise is as in `set12.py`; the denoiser is told sigma times each factor.

    python tests/benchmarks/robustness.py --data FOLDER [--sigma 25] [--factors .8 .9 1.1 1.2]
                                          [--preset balanced] [--images 01 02 ...] [--bm3d]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from photographs import psnr
from set12 import NAMES, bm3d_denoiser, load_noisy, ours
from threadpoolctl import threadpool_limits


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with 01.png to 12.png")
    parser.add_argument("--sigma", type=float, default=25.0)
    parser.add_argument("--factors", type=float, nargs="+", default=[0.9, 1.1])
    parser.add_argument("--preset", default="balanced")
    parser.add_argument("--images", nargs="+", default=NAMES)
    parser.add_argument("--bm3d", action="store_true", help="measure bm3d instead")
    options = parser.parse_args()
    denoiser = bm3d_denoiser() if options.bm3d else ours(options.preset)
    factors = [1.0, *options.factors]
    reached = np.empty((len(options.images), len(factors)))
    for i, name in enumerate(options.images):
        clean, noisy = load_noisy(options.data, name, options.sigma)
        for j, factor in enumerate(factors):
            with threadpool_limits(1):
                reached[i, j] = psnr(denoiser(noisy, factor * options.sigma), clean)
        changes = "  ".join(f"{change:+.2f}" for change in reached[i, 1:] - reached[i, 0])
        print(f"{name}  {reached[i, 0]:.2f} dB  {changes}", flush=True)
    for j, factor in enumerate(factors[1:], start=1):
        change = reached[:, j] - reached[:, 0]
        print(f"sigma x {factor:g}: mean {change.mean():+.3f} dB, worst {change.min():+.3f}")


if __name__ == "__main__":
    main()
