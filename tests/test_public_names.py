import subprocess
import sys

import pytest

import kpca_apps


def test_every_public_name_exists_and_has_a_docstring() -> None:
    for name in kpca_apps.__all__:
        assert getattr(kpca_apps, name).__doc__, name
    assert set(kpca_apps.__all__) <= set(dir(kpca_apps))
    with pytest.raises(AttributeError, match="no attribute 'screen_tabel'"):
        _ = kpca_apps.screen_tabel


def test_importing_the_package_loads_no_library() -> None:
    code = (
        "import sys, kpca_apps\n"
        "assert not {'numpy', 'sklearn', 'polars'} & set(sys.modules)\n"
        "kpca_apps.ConfigError\n"
        "assert 'numpy' not in sys.modules\n"
        "from kpca_apps import read_table\n"
        "assert 'numba' not in sys.modules\n"
        "from kpca_apps import denoise_kpca, run_batch\n"
        "assert not {'sklearn', 'matplotlib', 'skimage.restoration'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
