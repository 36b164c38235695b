"""The ``kpca`` command and its exit codes.

0 done, 1 a bug, 2 usage, 3 bad input, 4 refused, 5 finished but some items failed, 130 interrupted;
for other signals, 128 plus the signal's number. If the reader of the output closes the pipe, as
`head` does, further output is dropped and the code is 0.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Annotated, Any

import typer

from kpca_apps import __version__
from kpca_apps.cli.console import say_error
from kpca_apps.cli.denoise import commands as denoise
from kpca_apps.cli.novelty import commands as novelty
from kpca_apps.cli.options import (
    CarefulCommand,
    CommandGroup,
    UsageError,
    config_at_fault,
    paragraphs,
)
from kpca_apps.cli.papers import commands as papers
from kpca_apps.cli.schema import schema
from kpca_apps.cli.server.command import mcp
from kpca_apps.errors import ConfigError, KpcaError
from kpca_apps.names import one_line
from kpca_apps.system.interrupts import ENDING
from kpca_apps.tables.read.uri import refuse_password

BUG, USAGE, UNWRITABLE, REFUSED, INTERRUPTED = 1, 2, 3, 4, 130


class _Commands(CommandGroup):
    """Groups of commands in the order of their declaration, then `schema` and `mcp`."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands, with `schema` and `mcp` moved to the end."""
        return sorted(super().list_commands(ctx), key=("schema", "mcp").__contains__)


app = typer.Typer(
    name="kpca",
    cls=_Commands,
    help="Kernel PCA: find outliers in tables, denoise images, reproduce the papers.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(novelty.app, name="novelty")
app.add_typer(denoise.app, name="denoise")
app.add_typer(papers.app, name="papers")
for function in (schema, mcp):
    app.command(function.__name__, help=paragraphs(function), cls=CarefulCommand)(function)


def _show_version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"kpca {__version__}\n")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    """Kernel PCA: find outliers in tables, denoise images, reproduce the papers."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command, by default with the arguments of the process, and return its exit code.

    An error is printed as one line on stderr; with ``KPCA_DEBUG=1``, with its traceback.
    """
    signals = list[int]()
    code = _run(arguments, signals)
    return 128 + signals[0] if signals and code == INTERRUPTED else code


def _run(arguments: Sequence[str] | None, signals: list[int]) -> int:
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # the parent process closed this stream
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123
    os.environ["MPLBACKEND"] = "agg"  # figures are files, so ignore the backend
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        words = None if arguments is None else [_require_encodable(word) for word in arguments]
        for word in sys.argv[1:] if words is None else words:
            refuse_password(word)  # before an error message quotes the password
        with _first_signal_interrupts(signals):
            code = int(app(args=words, prog_name="kpca", standalone_mode=False) or 0)
        sys.stdout.flush()
        # After an interrupt, some versions of typer return this code, other versions raise Abort.
        return _end(KeyboardInterrupt()) if code == INTERRUPTED else code
    except (BrokenPipeError, SystemExit) as error:
        # Typer and rich convert the error of a closed pipe to SystemExit.
        if not any(isinstance(e, BrokenPipeError) for e in (error, error.__context__)):
            raise
        _drop_output()
        return 0
    except (Exception, KeyboardInterrupt) as error:
        if os.environ.get("KPCA_DEBUG") == "1":
            raise
        return _end(error)


def _require_encodable(word: str) -> str:
    with suppress(UnicodeEncodeError):
        if b"\0" not in os.fsencode(word):
            return word
    raise ConfigError(f'"{one_line(word)}" holds a byte that is not a character; remove it.')


class _InterruptError(KeyboardInterrupt):
    """Raised at a signal. After a plain KeyboardInterrupt, Python may ignore the exit code."""


@contextmanager
def _first_signal_interrupts(signals: list[int]) -> Iterator[None]:
    """Record signals; raise an interrupt at the first, and ignore later ones."""

    def handle(number: int, _: object) -> None:
        signals.append(number)
        if len(signals) == 1:
            raise _InterruptError

    is_main = threading.current_thread() is threading.main_thread()
    handlers = {number: signal.getsignal(number) for number in ENDING if is_main}
    previous = {n: one for n, one in handlers.items() if one not in (None, signal.SIG_IGN)}
    for number in previous:
        signal.signal(number, handle)
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _drop_output() -> None:
    """Redirect pending output to the null device, as Python flushes the streams again at exit."""
    with open(os.devnull, "w", encoding="utf-8") as nowhere:  # noqa: PTH123
        for stream in (sys.__stdout__, sys.__stderr__):
            if stream is None:
                continue
            try:
                stream.flush()
            except OSError:
                os.dup2(nowhere.fileno(), stream.fileno())


def _end(error: BaseException) -> int:
    if isinstance(error, typer.Abort | KeyboardInterrupt):
        say_error("interrupted; nothing was written")
        return INTERRUPTED
    if isinstance(error, KpcaError):
        say_error(str(error))
        return error.exit_code
    if isinstance(error, UsageError):
        # If the command is missing, some versions of click raise an error that contains the help.
        if type(error).__name__ == "NoArgsIsHelpError":
            error.show()  # type: ignore[attr-defined]
            return USAGE
        if message := error.format_message():  # type: ignore[attr-defined]
            context = getattr(error, "ctx", None)
            command = "kpca" if context is None else context.command_path
            # Some versions of typer add this prefix.
            message = message.replace("Value error, ", "", 1)
            place = f"{name}: " if (name := config_at_fault(context, message)) else ""
            say_error(f"{place}{message} ({command} --help)")
        return USAGE
    if isinstance(error, OSError):
        # Errors of files are InputErrors, so this is an error of stdout or stderr.
        say_error(f"output cannot be written: {error.strerror or error}")
        _drop_output()
        return UNWRITABLE
    # Python raises RuntimeError if it cannot allocate the stack of a thread.
    if isinstance(error, MemoryError) or str(error) == "can't start new thread":
        say_error("not enough memory on this machine: use fewer rows, examples or --landmarks")
        return REFUSED
    what = f"{type(error).__name__}: {error}"
    say_error(f"a bug in kpca, {what} (please report it; KPCA_DEBUG=1 shows where)")
    return BUG
