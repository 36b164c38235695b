"""
A table larger than memory, and Dask
====================================

Above 100,000 rows a table is read in parts, as often as it takes. Nothing changes for you: the
commands and functions are the same.
"""

# sphinx_gallery_thumbnail_path = '../reports/engine_growth.png'
import subprocess
import sys
import tempfile
from pathlib import Path

import kpca_apps

folder = Path(tempfile.mkdtemp()) / "large"
script = "../../datasets/make_large_table.py"
subprocess.run([sys.executable, script, "120_000", folder], check=True)
print(sorted(path.name for path in folder.iterdir())[:3])

# %%
# Several files, or a folder of them, are one table. A model is learned from 100,000 rows drawn with
# the seed; all rows are scored.

result = kpca_apps.screen_table(folder, count=10, label="planted", explain=10)
print(result)

# %%
# With workers, and with Dask, from the command line:
#
# .. code-block:: sh
#
#     kpca novelty screen large --label planted --jobs 4
#     kpca novelty screen large --label planted --workers dask
#     kpca novelty screen large --label planted --scheduler tcp://10.0.0.1:8786
#
# The scores do not depend on the workers: to the bit for any number of threads, to 1e-10 on
# a cluster. If a worker is lost, its parts are done again. The workers of a cluster need no access
# to the files.
