"""Options of a screening, and their defaults."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any

from kpca_apps.engine.subspace import RIDGES
from kpca_apps.errors import ConfigError
from kpca_apps.names import one_line, suggest
from kpca_apps.novelty.columns.plan import ColumnOptions
from kpca_apps.novelty.detector.threshold import CalibrationName, Rule

DEFAULT_SHARE = 0.01
DEFAULT_ALPHA = 0.05
RULES = ("share", "count", "alpha", "fdr")
KERNELS = ("rbf", "laplacian", "linear", "poly", "cosine")
CALIBRATIONS = ("auto", "leave-one-out", "split")

# Flag: field, whole number or not, smallest and largest value. Beyond them squares leave the range
# of floats, a ridge is lost in rounding or drowns the variance, a seed does not fit numpy's
# generators, a number of threads is a typing error.
LIMITS: dict[str, tuple[str, type, float, float]] = {
    "explain": ("explain", Integral, 0, 2**53),
    "components": ("n_components", Integral, 0, 2**53),
    "landmarks": ("n_landmarks", Integral, 2, 2**53),
    "seed": ("seed", Integral, 0, 2**32 - 1),
    "jobs": ("jobs", Integral, 1, 1024),
    "gamma": ("gamma", Real, 1e-200, 1e200),
    "sigma": ("sigma", Real, 1e-100, 1e100),
    "ridge": ("ridge", Real, *RIDGES),
}


@dataclass(frozen=True)
class ScreeningOptions:
    """All options of a screening; ``None`` is decided from the table.

    Attributes
    ----------
    share : float, optional
        Share of the table to flag, in (0, 1). At most one of the first four may be given.
    count : int, optional
        Number of rows to flag, at least 1.
    alpha : float, optional
        False-alarm rate on rows like the reference, in (0, 1); needs a clean reference.
    fdr : float, optional
        Expected share of false discoveries on the list, in (0, 1); needs a clean reference.
    columns : ColumnOptions
        Roles of the columns.
    positive : str, optional
        Value of the label column that means outlier.
    explain : int
        Oddest rows that get all their reasons; flagged ones do up to 500, and their first reason
        beyond. 0 for none at all.
    n_components : int, optional
        Hard number of kernel components (Hoffmann's classic) instead of the Tikhonov filter.
    kernel : str, optional
        One kernel on the columns as they come, instead of the mean over four views.
    gamma, sigma : float, optional
        Width of that kernel: exp(-gamma r^2), or exp(-r^2 / (2 sigma^2)).
    ridge : float, optional
        Ridge of the Tikhonov filter, in units of the total variance.
    n_landmarks : int, optional
        Landmarks of the Nystrom approximation.
    calibration : str
        ``auto``, ``leave-one-out`` or ``split``.
    seed : int
        Of every random draw.
    jobs : int, optional
        Threads that score rows; changes no number.
    """

    share: float | None = None
    count: int | None = None
    alpha: float | None = None
    fdr: float | None = None
    columns: ColumnOptions = field(default_factory=ColumnOptions)
    positive: str | None = None
    explain: int = 100
    n_components: int | None = None
    kernel: str | None = None
    gamma: float | None = None
    sigma: float | None = None
    ridge: float | None = None
    n_landmarks: int | None = None
    calibration: CalibrationName = "auto"
    seed: int = 0
    jobs: int | None = None

    def __post_init__(self) -> None:
        for flag, (name, kind, low, high) in LIMITS.items():
            _require_within(flag, getattr(self, name), kind, low, high)
        for flag, value, choices in (
            ("kernel", self.kernel, KERNELS),
            ("calibration", self.calibration, CALIBRATIONS),
        ):
            if value is not None and value not in choices:
                text, meant = one_line(str(value)), suggest(one_line(str(value)), choices)
                raise ConfigError(f"--{flag} must be {', '.join(choices)}, got {text!r}.{meant}")
        if self.positive is not None and self.columns.label is None:
            raise ConfigError("--positive names a value of the label column: give the --label too")
        # Two widths, a width of no kernel, a kernel without the width it needs.
        has_width = self.gamma is not None or self.sigma is not None
        if self.gamma is not None and self.sigma is not None:
            raise ConfigError(
                "--gamma and --sigma both set the width of the kernel: give one "
                "(gamma = 1/(2 sigma^2))"
            )
        if self.kernel is None and has_width:
            raise ConfigError(
                "--gamma and --sigma set the width of a single kernel: name it too (--kernel rbf)"
            )
        if self.kernel == "laplacian" and not has_width:
            raise ConfigError("--kernel laplacian needs a width: give --gamma")
        if self.kernel in ("linear", "cosine") and has_width:
            raise ConfigError(f"--kernel {self.kernel} has no width: leave --gamma and --sigma out")
        # What belongs to the Tikhonov filter only.
        if self.n_components is not None and self.ridge is not None:
            raise ConfigError(
                "--ridge belongs to the Tikhonov filter, --components to truncation: leave one out"
            )
        if self.n_components is not None and self.calibration == "leave-one-out":
            raise ConfigError(
                "--calibration leave-one-out has a closed form for the Tikhonov filter only: use "
                "split "
                "with --components, or leave --components out"
            )


def resolve_rule(options: ScreeningOptions, *, clean: bool, default: Rule | None = None) -> Rule:
    """Rule that flags rows: of share, count, alpha and fdr the one that is given.

    Where none is, it is `default`, or else share 0.01, or alpha 0.05 with a `clean` reference.
    """
    given = [Rule(name, value) for name in RULES if (value := getattr(options, name)) is not None]
    if len(given) > 1:
        names = " and ".join(f"--{rule.name}" for rule in given)
        raise ConfigError(f"{names} exclude each other: each says which rows are flagged; give one")
    if not given:
        choice = Rule("alpha", DEFAULT_ALPHA) if clean else Rule("share", DEFAULT_SHARE)
        return default or choice
    rule = given[0]
    if rule.name == "count":
        _require_within("count", rule.setting, Integral, 1, 2**53)
    else:
        _require_within(rule.name, rule.setting, Real, -math.inf, math.inf)
        if not 0 < rule.setting < 1:
            raise ConfigError(f"--{rule.name} must be between 0 and 1, got {rule.setting:g}")
    if rule.calibrated and not clean:
        raise ConfigError(
            f"--{rule.name} needs a clean reference: no calibrated rate exists without clean rows; "
            "give one with --reference, or choose with --share or --count"
        )
    return rule


def _require_within(flag: str, value: Any, kind: type, low: float, high: float) -> None:
    """Refuse a number outside its range; NaN is outside every range."""
    number: Any = value if isinstance(value, kind) and not isinstance(value, bool) else math.nan
    if value is None or low <= number <= high:
        return
    what = "a whole number" if kind is Integral else "a number"
    if number < low:
        what = f"at least {low:g}"
    elif number > high:
        what = f"at most {high:,}" if kind is Integral else f"at most {high:g}"
    try:
        text = f"{value:g}" if isinstance(value, float) else one_line(str(value), 30)
    except ValueError:  # more digits than Python turns into text
        text = "a number of thousands of digits"
    raise ConfigError(f"--{flag} must be {what}, got {text}")
