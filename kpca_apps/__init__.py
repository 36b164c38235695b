"""Kernel PCA at work: novelty detection in tables and denoising of images, on one engine.

The public names are loaded when first used, so that ``import kpca_apps`` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kpca_apps.api import (
        RuleCheck,
        Rules,
        Screening,
        check_rules,
        find_rules,
        fit_model,
        score_table,
        screen_table,
    )
    from kpca_apps.denoise.batch.run import run_batch
    from kpca_apps.denoise.denoiser import (
        DenoiseInfo,
        denoise_kpca,
        denoise_with_info,
        measure_noise,
    )
    from kpca_apps.denoise.dictionary import DictionaryDenoiser
    from kpca_apps.denoise.mosaic import denoise_mosaic
    from kpca_apps.engine.kernel_pca import KernelPCA
    from kpca_apps.errors import (
        ConfigError,
        InputError,
        KpcaError,
        KpcaWarning,
        MemoryLimitError,
        ModelFileError,
        OptionError,
        RefusedError,
        StoppedError,
    )
    from kpca_apps.novelty.columns.encoded import Execution
    from kpca_apps.novelty.detector.estimator import KernelPCANovelty
    from kpca_apps.novelty.detector.pyod import PyodNovelty
    from kpca_apps.novelty.screening.model import load_model, save_model
    from kpca_apps.system.workers import Workers
    from kpca_apps.tables.opening import open_table, read_table

__version__ = "0.1.0"

__all__ = [
    "ConfigError",
    "DenoiseInfo",
    "DictionaryDenoiser",
    "Execution",
    "InputError",
    "KernelPCA",
    "KernelPCANovelty",
    "KpcaError",
    "KpcaWarning",
    "MemoryLimitError",
    "ModelFileError",
    "OptionError",
    "PyodNovelty",
    "RefusedError",
    "RuleCheck",
    "Rules",
    "Screening",
    "StoppedError",
    "Workers",
    "__version__",
    "check_rules",
    "denoise_kpca",
    "denoise_mosaic",
    "denoise_with_info",
    "find_rules",
    "fit_model",
    "load_model",
    "measure_noise",
    "open_table",
    "read_table",
    "run_batch",
    "save_model",
    "score_table",
    "screen_table",
]

_HOMES = {
    "ConfigError": "errors",
    "DenoiseInfo": "denoise.denoiser",
    "DictionaryDenoiser": "denoise.dictionary",
    "Execution": "novelty.columns.encoded",
    "InputError": "errors",
    "KernelPCA": "engine.kernel_pca",
    "KernelPCANovelty": "novelty.detector.estimator",
    "KpcaError": "errors",
    "KpcaWarning": "errors",
    "MemoryLimitError": "errors",
    "ModelFileError": "errors",
    "OptionError": "errors",
    "PyodNovelty": "novelty.detector.pyod",
    "RefusedError": "errors",
    "RuleCheck": "api",
    "Rules": "api",
    "Screening": "api",
    "StoppedError": "errors",
    "Workers": "system.workers",
    "check_rules": "api",
    "denoise_kpca": "denoise.denoiser",
    "denoise_mosaic": "denoise.mosaic",
    "denoise_with_info": "denoise.denoiser",
    "find_rules": "api",
    "fit_model": "api",
    "load_model": "novelty.screening.model",
    "measure_noise": "denoise.denoiser",
    "open_table": "tables.opening",
    "read_table": "tables.opening",
    "run_batch": "denoise.batch.run",
    "save_model": "novelty.screening.model",
    "score_table": "api",
    "screen_table": "api",
}


# A type checker, for which every name would be there, has the imports above.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
