"""Kernel PCA at work: novelty detection in tables and denoising of images, on one engine.

The public names are loaded when they are first used, so that ``import kpca_apps`` is fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kpca_apps.api import Screening as Screening
    from kpca_apps.api import check_rules as check_rules
    from kpca_apps.api import find_rules as find_rules
    from kpca_apps.api import fit_model as fit_model
    from kpca_apps.api import score_table as score_table
    from kpca_apps.api import screen_table as screen_table
    from kpca_apps.denoise.batch.run import run_batch as run_batch
    from kpca_apps.denoise.denoiser import DenoiseInfo as DenoiseInfo
    from kpca_apps.denoise.denoiser import denoise_kpca as denoise_kpca
    from kpca_apps.denoise.denoiser import denoise_with_info as denoise_with_info
    from kpca_apps.denoise.denoiser import measure_noise as measure_noise
    from kpca_apps.denoise.dictionary import DictionaryDenoiser as DictionaryDenoiser
    from kpca_apps.denoise.mosaic import denoise_mosaic as denoise_mosaic
    from kpca_apps.engine.kernel_pca import KernelPCA as KernelPCA
    from kpca_apps.errors import ConfigError as ConfigError
    from kpca_apps.errors import InputError as InputError
    from kpca_apps.errors import KpcaError as KpcaError
    from kpca_apps.errors import KpcaWarning as KpcaWarning
    from kpca_apps.errors import MemoryLimitError as MemoryLimitError
    from kpca_apps.errors import ModelFileError as ModelFileError
    from kpca_apps.errors import OptionError as OptionError
    from kpca_apps.errors import RefusedError as RefusedError
    from kpca_apps.errors import StoppedError as StoppedError
    from kpca_apps.novelty.columns.parts import Execution as Execution
    from kpca_apps.novelty.detector.estimator import KernelPCANovelty as KernelPCANovelty
    from kpca_apps.novelty.relations.results import RuleCheck as RuleCheck
    from kpca_apps.novelty.relations.results import Rules as Rules
    from kpca_apps.novelty.screening.model import load_model as load_model
    from kpca_apps.novelty.screening.model import save_model as save_model
    from kpca_apps.system.workers import Workers as Workers
    from kpca_apps.tables.opening import open_table as open_table
    from kpca_apps.tables.opening import read_table as read_table

__version__ = "0.1.0"


_NAMES = {  # module -> its public names
    "api": "Screening check_rules find_rules fit_model score_table screen_table",
    "denoise.batch.run": "run_batch",
    "denoise.denoiser": "DenoiseInfo denoise_kpca denoise_with_info measure_noise",
    "denoise.dictionary": "DictionaryDenoiser",
    "denoise.mosaic": "denoise_mosaic",
    "engine.kernel_pca": "KernelPCA",
    "errors": "ConfigError InputError KpcaError KpcaWarning MemoryLimitError ModelFileError "
    "OptionError RefusedError StoppedError",
    "novelty.columns.parts": "Execution",
    "novelty.detector.estimator": "KernelPCANovelty",
    "novelty.relations.results": "RuleCheck Rules",
    "novelty.screening.model": "load_model save_model",
    "system.workers": "Workers",
    "tables.opening": "open_table read_table",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}
__all__ = sorted(["__version__", *_HOMES])


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
