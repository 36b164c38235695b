"""What a column of a table becomes, as plain data: options, specs and plans."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from types import NoneType
from typing import Annotated, Any

from msgspec import Meta

from kpca_apps.files.names import one_line
from kpca_apps.files.tables.dates import DateFormat
from kpca_apps.files.tables.numbers import DECIMAL_MARKS, THOUSANDS_MARKS, NumberFormat
from kpca_apps.files.tables.values import ValueFormat

__all__ = ["LEVEL_ROLES", "ColumnOptions", "ColumnPlan", "ColumnSpec", "quoted"]

USED_ROLES = ("numeric", "boolean", "categorical", "datetime", "text")
UNUSED_ROLES = ("identifier", "constant", "duplicate", "empty", "excluded", "label", "id")
LEVEL_ROLES = ("boolean", "categorical")
FORMATS = {"numeric": NumberFormat, "datetime": DateFormat}


@dataclass(frozen=True)
class ColumnOptions:
    """What a user declares about columns, by name.

    Attributes
    ----------
    label : str or None
        Known labels: kept out of the model, used to evaluate it.
    id : str or None
        Names the rows in the report; kept out of the model. By default an identifier that differs
        in every row names them.
    exclude : tuple of str
        Kept out of the model.
    categorical, numeric : tuple of str
        Used as categories, or as numbers, whatever the rules would say.
    hide : tuple of str
        Used, but their values stay out of the report.
    dayfirst : bool or None
        Order of day and month where the cells of a column leave it open.
    """

    label: str | None = None
    id: str | None = None
    exclude: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    numeric: tuple[str, ...] = ()
    hide: tuple[str, ...] = ()
    dayfirst: bool | None = None


@dataclass(frozen=True)
class ColumnSpec:
    """What one column becomes.

    Attributes
    ----------
    name, role, why : str
        The column, its role (see `ColumnProfile`), and the rule that decided, as a clause.
    n_missing, n_distinct : int
        Cells without a readable value; distinct values among the rest.
    hidden : bool
        Whether its values stay out of the report.
    format : NumberFormat, DateFormat or None
        How its cells are written; ``None`` for text.
    notes : tuple of str
        Whole sentences on choices a reader may want to make otherwise.
    """

    name: str
    role: str
    why: str
    n_missing: Annotated[int, Meta(ge=0)] = 0
    n_distinct: Annotated[int, Meta(ge=0)] = 0
    hidden: bool = False
    format: ValueFormat | None = None
    notes: tuple[str, ...] = ()

    def validate(self) -> None:
        """Refuse what no table leads to."""
        if self.role not in USED_ROLES + UNUSED_ROLES:
            raise ValueError(f"no column is {self.role!r:.40}")
        if not isinstance(self.format, FORMATS.get(self.role, NoneType)):
            raise ValueError(f"a {self.role} column of another format")
        if isinstance(self.format, NumberFormat):
            marks = self.format.decimal, self.format.thousands
            if marks[0] not in DECIMAL_MARKS or marks[1] not in ("", *THOUSANDS_MARKS):
                raise ValueError(f"no numbers are written with {marks!r:.40}")

    @property
    def used(self) -> bool:
        """Whether the model sees the column."""
        return self.role in USED_ROLES


@dataclass(frozen=True)
class ColumnPlan:
    """What every column becomes, in the order of the table."""

    specs: tuple[ColumnSpec, ...]

    def validate(self) -> None:
        """Refuse two columns of one name."""
        if len({spec.name for spec in self.specs}) != len(self.specs):
            raise ValueError("two columns of one name")

    @property
    def used(self) -> tuple[ColumnSpec, ...]:
        """Columns the model sees."""
        return tuple(spec for spec in self.specs if spec.used)

    def to_dict(self) -> dict[str, Any]:
        """Return what a command prints of the plan as JSON."""
        columns = [asdict(spec) for spec in self.specs]
        for spec, told in zip(self.specs, columns, strict=True):
            if spec.format is not None:
                kind = "date" if isinstance(spec.format, DateFormat) else "number"
                told["format"] = {"kind": kind, **told["format"]}
        return {"columns": columns}

    @property
    def warnings(self) -> tuple[str, ...]:
        """Choices made about columns that a reader should know."""
        return tuple(note for spec in self.specs for note in spec.notes)


def quoted(name: str) -> str:
    """Put a column's name, which may be any text, into one line of a message.

    Examples
    --------
    >>> quoted("body mass")
    '"body mass"'
    """
    return f'"{one_line(name, 60)}"'
