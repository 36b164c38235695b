"""The errors that users see, and the exit code of each.

::

    KpcaError                 1   something went wrong inside the toolkit
     +- ConfigError           2   options that contradict each other or name what is not there
     |   +- OptionError       2   an option of a command; `field` is its name in Python
     |       +- ParameterError 2  a parameter of a Python function
     +- InputError            3   a file, table or value that cannot be used
     |   +- ModelFileError    3   a model file that is damaged, foreign or does not fit the table
     |   +- UnlikeFilesError  3   a file that cannot be joined with others to one table
     |   +- UnreachableError  3   a file that a worker cannot read, or that differs there
     +- RefusedError          4   work refused before it started, so that nothing is lost
     |   +- MemoryLimitError  4   the estimated memory exceeds the budget
     +- StoppedError        130   interrupted work that the same call resumes

A message is one line: what is wrong and where (file, row, column), then what to do. Readers
describe the fault, and `about` adds the file's name. System errors get the same form.
"""

from __future__ import annotations

import errno
import importlib.util
import os
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import Any

from kpca_apps.names import one_line, reason_of, suggest, without_passwords

_MAX_PLACE = 300  # maximum number of characters of a path, and of a name in an archive
# Errors of polars contain the system's error number only as text.
_RUST_NUMBER = re.compile(r"\(os error ([0-9]{1,5})\)")
_FULL = (errno.ENOSPC, errno.EDQUOT)
_FAILING = (errno.EFBIG, errno.EIO, errno.EROFS, errno.ESTALE)
_PACKAGE = str(Path(__file__).parent) + os.sep


class KpcaError(Exception):
    """Base class of the toolkit's errors; `args` are the message and its place, such as a file."""

    exit_code = 1

    def __str__(self) -> str:
        sentence, place = (without_passwords(str(part)) for part in (*self.args, "", "")[:2])
        return f"{one_line(place, _MAX_PLACE)}: {sentence}" if place else sentence

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle an error by its arguments, as Dask's own way fails for memory errors."""
        return type(self), self.args, self.__dict__ or None


class KpcaWarning(UserWarning):
    """A result is incomplete; the message says why and what to do."""


class ConfigError(KpcaError, ValueError):
    """Options contradict each other, or one names something that does not exist."""

    exit_code = 2


class OptionError(ConfigError):
    """An option is invalid, alone or together with others.

    Parameters
    ----------
    field : str
        Name of the option in Python.
    sentence : str
        What is wrong. The message begins with the option's flag, such as ``--landmarks``.
    place : str or Path
        Place to which the message applies, such as a file.

    Examples
    --------
    >>> str(OptionError("n_landmarks", "must be at least 2, got 1"))
    '--landmarks must be at least 2, got 1'
    """

    def __init__(self, field: str, sentence: str, place: str | Path = "") -> None:
        super().__init__(f"{flag_of(field)} {sentence}", place)
        self.field, self.sentence = field, sentence

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.field, self.sentence), {"args": self.args}


class ParameterError(OptionError):
    """A Python parameter is invalid; commands raise a plain `OptionError` with the flag instead.

    >>> str(ParameterError("n_components", "is 0; give a whole number >= 1"))
    'n_components is 0; give a whole number >= 1'
    """

    def __init__(self, field: str, sentence: str) -> None:
        super().__init__(field, sentence)
        self.args = (f"{field} {sentence}", "")


def flag_of(field: str) -> str:
    """Return the flag of an option: ``n_landmarks`` is ``--landmarks``.

    >>> flag_of("table_name")
    '--table'
    """
    return f"--{field.removeprefix('n_').removesuffix('_name').replace('_', '-')}"


def install_extra(name: str) -> str:
    """Return the command that installs an extra from a checkout of the repository.

    >>> install_extra("lake")
    'pip install ".[lake]" in the checkout'
    """
    return f'pip install ".[{name}]" in the checkout'


def require_library(module: str, extra: str, what: str) -> None:
    """Raise ConfigError if the library of an extra is not installed."""
    if importlib.util.find_spec(module) is None:
        raise ConfigError(f"reading {what} needs an extra; install it with: {install_extra(extra)}")


class InputError(KpcaError, ValueError):
    """A file, table or value cannot be used as it is."""

    exit_code = 3


class ModelFileError(InputError):
    """A model file is damaged, foreign, or does not fit the table it is used on."""


class UnlikeFilesError(InputError):
    """A file cannot be joined with others to one table, as its columns or its kind differ."""


class UnreachableError(InputError):
    """A worker cannot read a file, or reads different bytes."""


class RefusedError(KpcaError):
    """The work was refused before it started; nothing was written or changed."""

    exit_code = 4


class MemoryLimitError(RefusedError, MemoryError):
    """The work needs more memory than the budget."""


class StoppedError(KpcaError):
    """The work was interrupted; the same call resumes it."""

    exit_code = 130


@contextmanager
def about(place: str | PurePath) -> Iterator[None]:
    """Add a place, such as a file, to an error that has none; messages begin with the place."""
    try:
        yield
    except KpcaError as error:
        if not any(error.args[1:]):
            error.args = (error.args[0], place)
        raise


@contextmanager
def opening(place: str | PurePath, path: Path | None = None) -> Iterator[None]:
    """Convert errors in opening a file to InputError; `path` serves to suggest similar names."""
    try:
        yield
    except FileNotFoundError:
        raise InputError(f"no such file.{_near(path) if path else ''}", place) from None
    except IsADirectoryError:
        raise InputError("this is a folder; name a file in it.", place) from None
    except PermissionError:
        raise InputError("no permission to read it; change its mode.", place) from None
    except KpcaError:
        raise
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be read ({reason_of(error)}).", place) from None


@contextmanager
def storage_named(place: str | Path) -> Iterator[None]:
    """Convert errors of a full or failing disk to an InputError with the place."""
    try:
        yield
    except Exception as error:
        if (failure := storage_error(error, place)) is not None:
            raise failure from error
        raise


def storage_error(error: BaseException | None, place: str | Path) -> InputError | None:
    """Return the InputError for an error of a full or failing disk; ``None`` for other errors."""
    while isinstance(error, InputError):
        error = error.__cause__
    number = error.errno if isinstance(error, OSError) else None
    if number is None and (found := _RUST_NUMBER.search(str(error))):
        number = int(found[1])
    if number in _FULL:
        return InputError("no space left on its disk; free some, or write to another place.", place)
    if number in _FAILING:
        why = os.strerror(number)
        return InputError(f"cannot be written ({why}); write to another place.", place)
    return None


def _near(path: Path) -> str:
    try:
        if not path.parent.is_dir():
            return f' The folder "{one_line(str(path.parent))}" does not exist.'
        # Suggest files of the same ending, or of the same name with another ending.
        alike = re.compile(rf"{re.escape(path.stem)}\..*|.*{re.escape(path.suffix)}", re.IGNORECASE)
        names = (item.name for item in path.parent.iterdir())
        return suggest(path.name, sorted(filter(alike.fullmatch, names)))
    except OSError:
        return ""


def warn_caller(sentence: str) -> None:
    """Warn; the warning's source is the line outside this package that led here."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(sentence, KpcaWarning, stacklevel=level)
