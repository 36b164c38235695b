"""Draw the two-dimensional table with a ring, a line, a square and noise.

The picture follows Hoffmann (2007, section 4.1), whose own points may not be passed on: these
are our own draws. Run ``python datasets/make_ring_line_square.py`` to write
``ring_line_square.csv`` again, byte for byte.
"""

from __future__ import annotations

import math
import random
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
SEED = 2007
N_SHAPE, N_NOISE = 260, 40


def ring(draw: random.Random) -> tuple[float, float]:
    """Return a point of a ring around (-0.9, 0.6), radii 0.40 to 0.55."""
    angle = 2 * math.pi * draw.random()
    radius = 0.40 + 0.15 * draw.random()
    return -0.9 + radius * math.cos(angle), 0.6 + radius * math.sin(angle)


def line(draw: random.Random) -> tuple[float, float]:
    """Return a point of a thin slanted bar from (-1.4, -1.0) to (0.0, -0.4)."""
    along = draw.random()
    return -1.4 + 1.4 * along, -1.0 + 0.6 * along + 0.06 * (draw.random() - 0.5)


def square(draw: random.Random) -> tuple[float, float]:
    """Return a point of a filled square with corners (0.4, -0.4) and (1.4, 0.6)."""
    return 0.4 + draw.random(), -0.4 + draw.random()


def noise(draw: random.Random) -> tuple[float, float]:
    """Return a point anywhere in the frame; a few will fall inside a shape."""
    return -2.0 + 4.0 * draw.random(), -1.6 + 3.2 * draw.random()


def files() -> dict[str, str]:
    """Return the file this script makes: name -> text."""
    draw = random.Random(SEED)
    lines = ["x,y,noise"]
    for shape in (ring, line, square):
        lines += ["{:.3f},{:.3f},no".format(*shape(draw)) for _ in range(N_SHAPE)]
    lines += ["{:.3f},{:.3f},yes".format(*noise(draw)) for _ in range(N_NOISE)]
    return {"ring_line_square.csv": "\n".join(lines) + "\n"}


if __name__ == "__main__":
    for name, content in files().items():
        (FOLDER / name).write_text(content, encoding="utf-8", newline="\n")
