"""Options of a screening as a model keeps them, and the rule they come to."""

from __future__ import annotations

from dataclasses import dataclass, field

from kpca_apps.errors import OptionError, flag_of
from kpca_apps.novelty.columns.plan import ColumnOptions
from kpca_apps.novelty.detector.threshold import Rule
from kpca_apps.options import CalibrationName, NoveltyOptions, check_limits

DEFAULT_SHARE = 0.01
DEFAULT_ALPHA = 0.05
RULES = ("share", "count", "alpha", "fdr")


@dataclass(frozen=True)
class ScreeningOptions:
    """What `NoveltyOptions` declares of a screening; ``None`` is decided from the table."""

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
        given = [name for name in RULES if getattr(self, name) is not None]
        if len(given) > 1:
            others = " ".join(f"and {flag_of(name)}" for name in given[1:])
            raise OptionError(
                given[0],
                f"{others} exclude each other: each says which rows are flagged; give one",
            )
        check_limits(self)
        if self.positive is not None and self.columns.label is None:
            raise OptionError("positive", "names a value of the label column: give the --label too")
        # Two widths, a width of no kernel, a kernel without the width it needs.
        has_width = self.gamma is not None or self.sigma is not None
        if self.gamma is not None and self.sigma is not None:
            raise OptionError(
                "gamma",
                "and --sigma both set the width of the kernel: give one (gamma = 1/(2 sigma^2))",
            )
        if self.kernel is None and has_width:
            raise OptionError(
                "gamma",
                "and --sigma set the width of a single kernel: name it too (--kernel rbf)",
            )
        if self.kernel == "laplacian" and not has_width:
            raise OptionError("kernel", "laplacian needs a width: give --gamma")
        if self.kernel in ("linear", "cosine") and has_width:
            raise OptionError(
                "kernel", f"{self.kernel} has no width: leave --gamma and --sigma out"
            )
        # What belongs to the Tikhonov filter only.
        if self.n_components is not None and self.ridge is not None:
            raise OptionError(
                "ridge",
                "belongs to the Tikhonov filter, --components to truncation: leave one out",
            )
        if self.n_components is not None and self.calibration == "leave-one-out":
            raise OptionError(
                "calibration",
                "leave-one-out has a closed form for the Tikhonov filter only: use split with "
                "--components, or leave --components out",
            )

    @classmethod
    def of(cls, asked: NoveltyOptions) -> ScreeningOptions:
        """Return what a command or a call asks for; what is None keeps its default."""
        columns = ColumnOptions(**asked.given(ColumnOptions))
        return cls(**asked.given(cls), columns=columns)


def resolve_rule(options: ScreeningOptions, *, clean: bool, default: Rule | None = None) -> Rule:
    """Rule that flags rows: of share, count, alpha and fdr the one that is given.

    Where none is, it is `default`, or else share 0.01, or alpha 0.05 with a `clean` reference.
    """
    for name in RULES:
        if (setting := getattr(options, name)) is not None:
            rule = Rule(name, setting)
            if rule.calibrated and not clean:
                raise OptionError(
                    name,
                    "needs a clean reference: no calibrated rate exists without clean rows; give "
                    "one with --reference, or choose with --share or --count",
                )
            return rule
    return default or (Rule("alpha", DEFAULT_ALPHA) if clean else Rule("share", DEFAULT_SHARE))
