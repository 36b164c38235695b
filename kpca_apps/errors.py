"""The errors a user of the toolkit can meet, each with the exit code a script sees.

::

    KpcaError                 1   something went wrong inside the toolkit
     +- ConfigError           2   options that contradict each other or name what is not there
     |   +- OptionError       2   one that is known by its field, which each face spells its own way
     +- InputError            3   a file, table or value that cannot be used
     |   +- ModelFileError    3   a model file that is damaged, foreign or does not fit the table
     +- RefusedError          4   work refused before it started, so that nothing is lost
     |   +- MemoryLimitError  4   the estimate of the memory needed exceeds the budget
     +- StoppedError        130   work that was interrupted, and can be gone on with

Messages are one line: what is wrong and where (file, row, column), then what to do about it. Who
reads a file says what is wrong; its name is put in front where it is opened (`about`).
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kpca_apps.names import one_line

__all__ = [
    "ConfigError",
    "InputError",
    "KpcaError",
    "KpcaWarning",
    "MemoryLimitError",
    "ModelFileError",
    "OptionError",
    "RefusedError",
    "StoppedError",
    "about",
    "flag_of",
    "warn_caller",
]

_MAX_PLACE = 300  # characters: of a path, and a name in an archive
_PACKAGE = str(Path(__file__).parent) + os.sep


class KpcaError(Exception):
    """Base of every error the toolkit raises on purpose.

    Parameters
    ----------
    sentence : str
        What is wrong.
    place : str or Path
        What it is about, such as a file, before that; left open where `about` says it. What could
        not be seen of it is written out.
    """

    exit_code = 1

    def __init__(self, sentence: str, place: str | Path = "") -> None:
        super().__init__(sentence)
        self.place = place

    def __str__(self) -> str:
        sentence = str(self.args[0])
        return f"{one_line(str(self.place), _MAX_PLACE)}: {sentence}" if self.place else sentence


class KpcaWarning(UserWarning):
    """A result is not all that was asked for; the message says why, and what to do about it."""


class ConfigError(KpcaError, ValueError):
    """Options contradict each other, or one names something that does not exist."""

    exit_code = 2


class OptionError(ConfigError):
    """An option is refused, by itself or beside others; `field` names it.

    Parameters
    ----------
    field : str
        The option, by its name in Python.
    sentence : str
        What is wrong; the message begins with the option, as a command has it.
    place : str or Path
        What it is about, such as a file, before that.

    Examples
    --------
    >>> str(OptionError("n_landmarks", "must be at least 2, got 1"))
    '--landmarks must be at least 2, got 1'
    """

    def __init__(self, field: str, sentence: str, place: str | Path = "") -> None:
        super().__init__(f"{flag_of(field)} {sentence}", place)
        self.field, self._parts = field, (field, sentence)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._parts, {"args": self.args, "place": self.place}


def flag_of(field: str) -> str:
    """Return an option as a command has it: ``n_landmarks`` is ``--landmarks``."""
    return f"--{field.removeprefix('n_').replace('_', '-')}"


class InputError(KpcaError, ValueError):
    """A file, table or value cannot be used as it is."""

    exit_code = 3


class ModelFileError(InputError):
    """A model file is damaged, foreign, or does not fit the table it is used on."""


class RefusedError(KpcaError):
    """The work was refused before it started; nothing was written or changed."""

    exit_code = 4


class MemoryLimitError(RefusedError, MemoryError):
    """The memory the work would need exceeds the budget."""


class StoppedError(KpcaError):
    """The work was interrupted; what is done is kept, and the same call goes on from there."""

    exit_code = 130


@contextmanager
def about(place: str | Path) -> Iterator[None]:
    """Put what an error is about, such as a file, before its message, unless it says so itself."""
    try:
        yield
    except KpcaError as error:
        error.place = error.place or place
        raise


def warn_caller(sentence: str, kind: type[Warning] = UserWarning) -> None:
    """Warn, and blame the line outside this package that led here."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(sentence, kind, stacklevel=level)
