"""Learn relations from a table, and judge the table's rows by them."""

import numpy as np
import polars as pl

from kpca_apps.novelty.columns.plan import infer_plan
from kpca_apps.novelty.relations.conditional.levels import JudgedCells, LevelRelations
from kpca_apps.tables.frames import table_from_frame


def judged(frame: pl.DataFrame) -> tuple[LevelRelations, JudgedCells]:
    """Learn from all rows and judge each without itself."""
    table = table_from_frame(frame, "table")
    learned = LevelRelations.learn(table, infer_plan(table))
    return learned, learned.judge(table, own=np.ones(frame.height, dtype=bool))
