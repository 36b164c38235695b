"""What a screening may be told, and what is decided where nothing was said."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from kpca_apps.errors import ConfigError
from kpca_apps.novelty.columns import ColumnOptions

__all__ = ["DEFAULT_ALPHA", "DEFAULT_SHARE", "RULES", "Rule", "ScreeningOptions", "resolve_rule"]

DEFAULT_SHARE = 0.01
DEFAULT_ALPHA = 0.05
RULES = ("share", "count", "alpha", "fdr")
CALIBRATIONS = ("auto", "leave-one-out", "split")


@dataclass(frozen=True)
class Rule:
    """What decides which rows are flagged.

    Attributes
    ----------
    name : str
        ``share``, ``count``, ``alpha`` or ``fdr``.
    setting : float
        Its number.
    """

    name: str
    setting: float

    @property
    def calibrated(self) -> bool:
        """Whether it is a rate that clean rows calibrate, not a choice."""
        return self.name in ("alpha", "fdr")


@dataclass(frozen=True)
class ScreeningOptions:
    """Everything a screening can be told; ``None`` is decided from the table.

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
        What the columns are to be taken as.
    positive : str, optional
        Value of the label column that means outlier.
    explain : int
        Oddest rows that get reasons.
    n_components : int, optional
        Hard number of kernel components (Hoffmann's classic) instead of the soft cut.
    kernel : str, optional
        One kernel on the columns as they come, instead of the mean over four views.
    gamma, sigma : float, optional
        Width of that kernel: exp(-gamma r^2), or exp(-r^2 / (2 sigma^2)).
    ridge : float, optional
        Ridge of the soft cut, in units of the total variance.
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
    calibration: str = "auto"
    seed: int = 0
    jobs: int | None = None

    def __post_init__(self) -> None:
        _within("explain", self.explain, low=0)
        _within("components", self.n_components, low=0)
        _within("landmarks", self.n_landmarks, low=2)
        _within("seed", self.seed, low=0)
        for name in ("gamma", "sigma", "ridge"):
            _within(name, getattr(self, name), above=0.0)
        if self.gamma is not None and self.sigma is not None:
            raise ConfigError(
                "gamma and sigma both set the width of the kernel: give one (gamma = 1/(2 sigma^2))"
            )
        if self.kernel is None and (self.gamma is not None or self.sigma is not None):
            raise ConfigError(
                "gamma and sigma set the width of a single kernel: name it too (kernel rbf)"
            )
        if self.calibration not in CALIBRATIONS:
            raise ConfigError(
                f"calibration must be {', '.join(CALIBRATIONS)}, got {self.calibration!r}"
            )
        if self.positive is not None and self.columns.label is None:
            raise ConfigError("positive names a value of the label column: give the label too")

    def to_dict(self) -> dict[str, Any]:
        """Turn the options into what JSON can hold; threads are left to the next machine."""
        return asdict(replace(self, jobs=None))

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> ScreeningOptions:
        """Rebuild from what `to_dict` gave, perhaps by way of JSON.

        Examples
        --------
        >>> options = ScreeningOptions(share=0.02, columns=ColumnOptions(exclude=("a",)))
        >>> ScreeningOptions.from_dict(options.to_dict()) == options
        True
        """
        values = {f.name: state[f.name] for f in fields(cls)}
        columns: dict[str, Any] = dict(values["columns"])
        for name, value in columns.items():
            columns[name] = tuple(value) if isinstance(value, list) else value
        return cls(**{**values, "columns": ColumnOptions(**columns)})


def resolve_rule(options: ScreeningOptions, *, clean: bool, default: Rule | None = None) -> Rule:
    """Decide which rule flags rows.

    Parameters
    ----------
    options : ScreeningOptions
        At most one of share, count, alpha and fdr may be set.
    clean : bool
        Whether the model was fitted on a clean reference.
    default : Rule, optional
        Where none is set; by itself share 0.01, or alpha 0.05 with a clean reference.

    Returns
    -------
    Rule

    Raises
    ------
    ConfigError
        If two are set, one is out of range, or a rate is asked for without clean rows.

    Examples
    --------
    >>> resolve_rule(ScreeningOptions(), clean=False)
    Rule(name='share', setting=0.01)
    >>> resolve_rule(ScreeningOptions(fdr=0.1), clean=True)
    Rule(name='fdr', setting=0.1)
    """
    given = [Rule(name, value) for name in RULES if (value := getattr(options, name)) is not None]
    if len(given) > 1:
        names = " and ".join(rule.name for rule in given)
        raise ConfigError(f"{names} exclude each other: each says which rows are flagged; give one")
    if not given:
        choice = Rule("alpha", DEFAULT_ALPHA) if clean else Rule("share", DEFAULT_SHARE)
        return default or choice
    rule = given[0]
    if rule.name == "count":
        _within("count", rule.setting, low=1)
    else:
        _within(rule.name, rule.setting, above=0.0, below=1.0)
    if rule.calibrated and not clean:
        raise ConfigError(
            f"{rule.name} needs a clean reference: no calibrated rate exists without clean rows; "
            "give one with --reference, or choose with --share or --count"
        )
    return rule


def _within(
    name: str,
    value: float | None,
    *,
    low: float | None = None,
    above: float | None = None,
    below: float | None = None,
) -> None:
    """Refuse a number outside its range; NaN is outside every range."""
    if value is None:
        return
    if low is not None and not value >= low:
        raise ConfigError(f"{name} must be at least {low:g}, got {value:g}")
    if not (above is None or value > above) or not (below is None or value < below):
        range_ = f"above {above:g}" if below is None else f"between {above:g} and {below:g}"
        raise ConfigError(f"{name} must be {range_}, got {value:g}")
