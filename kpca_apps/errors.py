"""The errors a user of the toolkit can meet, each with the exit code a script sees.

::

    KpcaError                 1   something went wrong inside the toolkit
     +- ConfigError           2   options that contradict each other or name what is not there
     |   +- OptionError       2   one that is known by its field, which each face spells its own way
     |       +- ParameterError 2  one of a method, which Python calls by that field
     +- InputError            3   a file, table or value that cannot be used
     |   +- ModelFileError    3   a model file that is damaged, foreign or does not fit the table
     |   +- UnlikeFilesError  3   a file that cannot be one table with others
     |   +- UnreachableError  3   a file that cannot be read where the work is done, or is another
     +- RefusedError          4   work refused before it started, so that nothing is lost
     |   +- MemoryLimitError  4   the estimate of the memory needed exceeds the budget
     +- StoppedError        130   work that was interrupted, and can be gone on with

Messages are one line: what is wrong and where (file, row, column), then what to do about it. Who
reads a file says what is wrong; its name is put in front where it is opened (`about`). What the
system says against a file or a disk becomes such a line as well.
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

_MAX_PLACE = 300  # characters: of a path, and a name in an archive
# Errors of polars have the system's number in their text, the way Rust writes it.
_RUST_NUMBER = re.compile(r"\(os error ([0-9]{1,5})\)")
_FULL = (errno.ENOSPC, errno.EDQUOT)
_FAILING = (errno.EFBIG, errno.EIO, errno.EROFS, errno.ESTALE)
_PACKAGE = str(Path(__file__).parent) + os.sep


class KpcaError(Exception):
    """Base of every error the toolkit raises on purpose.

    Its `args` are what is wrong, and what that is about, such as a file, which `about` may add.
    """

    exit_code = 1

    def __str__(self) -> str:
        sentence, place = (without_passwords(str(one)) for one in (*self.args, "", "")[:2])
        # It may be any path: what could not be seen of it is written out.
        return f"{one_line(place, _MAX_PLACE)}: {sentence}" if place else sentence

    def __reduce__(self) -> tuple[Any, ...]:
        """Be made again from its arguments: what Dask makes of others fails for memory errors."""
        return type(self), self.args, self.__dict__ or None


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
        self.field, self.sentence = field, sentence

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.field, self.sentence), {"args": self.args}


class ParameterError(OptionError):
    """A parameter of a method is refused; commands raise it anew, as an `OptionError`.

    >>> str(ParameterError("n_components", "is 0; give a whole number >= 1"))
    'n_components is 0; give a whole number >= 1'
    """

    def __init__(self, field: str, sentence: str) -> None:
        super().__init__(field, sentence)
        self.args = (f"{field} {sentence}", "")


def flag_of(field: str) -> str:
    """Return an option as a command has it: ``n_landmarks`` is ``--landmarks``.

    >>> flag_of("table_name")  # beside the table itself, which is no option
    '--table'
    """
    return f"--{field.removeprefix('n_').removesuffix('_name').replace('_', '-')}"


def install_extra(name: str) -> str:
    """Say how to install an extra: from the checkout, as long as no registry has the package.

    >>> install_extra("lake")
    'pip install ".[lake]" in the checkout'
    """
    return f'pip install ".[{name}]" in the checkout'


def require_library(module: str, extra: str, what: str, label: str = "") -> None:
    """Refuse to read a kind of thing whose library, of an extra, is not installed."""
    if importlib.util.find_spec(module) is None:
        where = f"{label}: " if label else ""
        raise ConfigError(
            f"{where}reading {what} needs an extra; install it with: {install_extra(extra)}"
        )


class InputError(KpcaError, ValueError):
    """A file, table or value cannot be used as it is."""

    exit_code = 3


class ModelFileError(InputError):
    """A model file is damaged, foreign, or does not fit the table it is used on."""


class UnlikeFilesError(InputError):
    """A file cannot be one table with others: its columns or its kind are not theirs."""


class UnreachableError(InputError):
    """A file cannot be read where the work is done, such as on another machine, or is another."""


class RefusedError(KpcaError):
    """The work was refused before it started; nothing was written or changed."""

    exit_code = 4


class MemoryLimitError(RefusedError, MemoryError):
    """The memory the work would need exceeds the budget."""


class StoppedError(KpcaError):
    """The work was interrupted; what is done is kept, and the same call goes on from there."""

    exit_code = 130


@contextmanager
def about(place: str | PurePath) -> Iterator[None]:
    """Put what an error is about, such as a file, before its message, unless it says so itself."""
    try:
        yield
    except KpcaError as error:
        if not any(error.args[1:]):
            error.args = (error.args[0], place)
        raise


@contextmanager
def opening(place: str | PurePath, path: Path | None = None) -> Iterator[None]:
    """Turn what the system says against opening a file into one line.

    With its path, the folder or a name that is nearly that of a missing file is named as well.
    """
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
    """Say of a place that its disk is full or failing, where that caused an error."""
    try:
        yield
    except Exception as error:
        if (failure := storage_error(error, place)) is not None:
            raise failure from error
        raise


def storage_error(error: BaseException | None, place: str | Path) -> InputError | None:
    """Return what to raise where a disk that is full or failing caused an error, else ``None``."""
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
        return suggest(path.name, sorted(item.name for item in path.parent.iterdir()))
    except OSError:
        return ""


def warn_caller(sentence: str) -> None:
    """Warn, and blame the line outside this package that led here."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(sentence, stacklevel=level)
