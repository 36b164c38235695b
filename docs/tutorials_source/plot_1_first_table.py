"""
Screen your first table
=======================

A field table of 344 penguins, in which thirteen faults were planted: units mixed up, digits typed
twice, signs lost. We look for the rows that do not belong.
"""

# sphinx_gallery_thumbnail_path = '../reports/penguins_faults.png'
import kpca_apps

table = "../../datasets/penguins_faults.csv"
result = kpca_apps.screen_table(table, share=0.05, id="Individual ID")
result

# %%
# That is the first screen of the report. ``share=0.05`` flags five rows in a hundred. A
# false-alarm rate needs rows that are known to be normal; without them you choose how many to
# flag. The flagged rows, oddest first:

result.flagged()[["rank", "reason_column", "seen", "expected"]]

# %%
# Each row has reasons: columns whose value is not what the rest of the row suggests.

for row in result.ranked[:3]:
    reason = row.reasons[0]
    print(f"{row.id}: {reason.column} reads {reason.seen}, expected {reason.expected}")

# %%
# How each column was used, and why, is part of the result. Change it with ``numeric=``,
# ``categorical=`` and ``exclude=``.

for column in result.columns[:6]:
    print(f"{column.name}: {column.role} ({column.why})")

# %%
# The same from the command line, with the whole report as one file to send on:
#
# .. code-block:: sh
#
#     kpca novelty screen datasets/penguins_faults.csv --share 0.05 --id "Individual ID"
