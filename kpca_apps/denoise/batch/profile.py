"""Noise profiles: the noise of a camera or microscope, measured once and reused."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from kpca_apps.denoise.options import LARGEST_RANGE
from kpca_apps.denoise.result import NoiseLaw
from kpca_apps.errors import InputError, about, opening
from kpca_apps.names import one_line, reason_of
from kpca_apps.options import is_number
from kpca_apps.system.files.output import require_replaceable
from kpca_apps.system.files.texts import read_text
from kpca_apps.system.stores.addresses import located
from kpca_apps.system.stores.buckets import here

WHITE = 65535.0  # value of saturated pixels in raw files
KIND, VERSION = "noise profile", 1  # header of the profile file
MOST_BYTES = 10_000_000


@dataclass(frozen=True)
class KindNoise:
    """Noise of all images of a kind: laws, levels of white noise, or curves of raw files."""

    images: str  # camera and ISO (or the size), number of channels, and dtype of the images
    n_images: int  # number of images in which the noise was established
    sigma: tuple[float, ...] = ()  # white noise: level of each channel, in the units of the images
    laws: tuple[NoiseLaw, ...] = ()  # noise that grows with brightness: law of each channel
    # Raw files: a and b of the variance a x + b in red, green and blue; x is 65535 at white.
    curves: tuple[tuple[float, float], ...] = ()

    def __str__(self) -> str:
        """Return the kind of images and the noise as text, with all digits of the numbers."""
        laws = [f"{law.gain!r} x + {law.constant!r}, blur {law.blur!r}" for law in self.laws]
        return f"{self.images}: {' and '.join(laws) or self.sigma or self.curves}"


def read_profile(path: str | Path) -> tuple[KindNoise, ...]:
    """Read a profile that ``kpca denoise noise --save`` wrote."""
    place = located(path)
    again = "make one with kpca denoise noise --save"
    with about(str(place)):
        with here(place) as file, opening(str(place)):
            content = read_text(file, "a noise profile", MOST_BYTES)
        if not content.lstrip().startswith("{"):
            raise InputError(f"is not a noise profile; {again}.")
        try:
            document: Any = msgspec.json.decode(content)
            if not isinstance(document, Mapping) or document.get("kind") != KIND:
                raise InputError(f"is not a noise profile; {again}.")
            if document.get("schema_version") != VERSION:
                version = one_line(str(document.get("schema_version")), 20)
                raise InputError(f"is of version {version}, and {VERSION} is read; {again}.")
            found = msgspec.convert(document.get("kinds"), tuple[KindNoise, ...])
        except InputError:
            raise
        except (ValueError, RecursionError) as error:
            raise InputError(f"is damaged ({reason_of(error)}); {again}.") from None
        if not found:
            raise InputError(f"holds no noise; {again}.")
        names = [one.images for one in found]
        if len(set(names)) < len(names) or not all(map(_is_sound, found)):
            raise InputError(f"is damaged (impossible noise); {again}.")
    return found


def check_target(path: str | Path, *, force: bool = False) -> None:
    """Refuse a path unless it is free or, with `force`, holds another profile."""

    def is_profile(path: Path) -> bool:
        with suppress(InputError):
            return bool(read_profile(path))
        return False

    require_replaceable(path, "a noise profile", is_profile, force=force, option="--save")


def _is_sound(one: KindNoise) -> bool:
    """Return whether exactly one of levels, laws, curves is given, with plausible values."""
    sorts = [bool(one.sigma), bool(one.laws), bool(one.curves)]
    terms = [value for law in one.laws for value in (law.constant, *law.interval)]
    terms += [value for law in one.laws for value in (*law.brightness, *law.variances)]
    not_negative = [value for law in one.laws for value in (law.gain, law.blur)]
    return (
        sum(sorts) == 1
        and all(is_number(value, 0, LARGEST_RANGE) for value in one.sigma)
        and all(min(a, b) >= 0 and a * WHITE + b <= WHITE**2 for a, b in one.curves)
        and all(is_number(value, 0, LARGEST_RANGE**2) for value in not_negative)
        and all(is_number(value, -(LARGEST_RANGE**2), LARGEST_RANGE**2) for value in terms)
        and len(one.curves) in (0, 3)
        and all(len(law.brightness) == len(law.variances) > 0 for law in one.laws)
    )
