"""Available memory, cores and address space of this process."""

from __future__ import annotations

import math
import os
import re
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if sys.platform != "win32":
    import resource
if TYPE_CHECKING:
    from mmap import mmap

# Maximum number of rows held in memory; of a larger table, a sample is held.
ROWS_IN_MEMORY = 100_000

_MEMINFO = "/proc/meminfo"

# Control groups (version 2), and the file that names the group of this process.
_OWN_CGROUP = "/proc/self/cgroup"
_CGROUPS = "/sys/fs/cgroup"
_USED_ADDRESSES = "/proc/self/statm"

_SMALL_MACHINE = 4 << 30  # bytes assumed available if the system does not report its memory


def available_bytes() -> int:
    """Return the bytes this process may still allocate.

    The limit is set by the machine, a container, a batch system or ``ulimit -v``.
    """
    if match := re.search(r"^MemAvailable: *([0-9]+)", _text_of(_MEMINFO), re.MULTILINE):
        bounds = [int(match[1]) * 1024]
    else:
        try:
            # The system does not report free memory: assume half of the total.
            bounds = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2]
        except (AttributeError, ValueError, OSError):
            bounds = [_SMALL_MACHINE]
    match = re.search("^0::/(.*)", _text_of(_OWN_CGROUP), re.MULTILINE)
    own = Path(_CGROUPS, match[1] if match else "")
    # Limits of enclosing groups apply, too; a container may see files of the outermost group only.
    for folder in (folder for folder in (own, *own.parents) if folder.is_relative_to(_CGROUPS)):
        limit, usage = (_text_of(folder / f"memory.{name}").strip() for name in ("max", "current"))
        if limit.isdigit() and usage.isdigit():
            bounds.append(max(int(limit) - int(usage), 0))
    return int(min(*bounds, _left_of_addresses()))


def _left_of_addresses() -> float:
    if math.isinf(most := most_addresses()):
        return most
    n_pages = _text_of(_USED_ADDRESSES).partition(" ")[0]
    used = int(n_pages) * resource.getpagesize() if n_pages.isdigit() else 0
    return max(most - used, 0)


def most_addresses() -> float:
    """Return the bytes of address space that ``ulimit -v`` allows."""
    if sys.platform == "win32":
        return math.inf
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return math.inf if limit == resource.RLIM_INFINITY else limit


def claimed_addresses() -> int:
    """Return the bytes of address space that libraries reserve, most of it unused.

    Libraries reserve it for code, and for stacks and arenas of the threads that BLAS, numba, Arrow
    and polars start per core. Measured for a table of 160 rows: 2.96e9, 3.75e9, 4.54e9 and 6.11e9
    with 2, 8, 16 and 32 cores. A list of words needs .23e9 more.
    """
    return int(3.25e9 + 1e8 * n_cores())


def n_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def give_back() -> None:
    """Give unused memory of glibc and Arrow back to the system."""
    import ctypes  # imported here: the command's help must start quickly

    if (arrow := sys.modules.get("pyarrow")) is not None:
        arrow.default_memory_pool().release_unused()
    with suppress(AttributeError, OSError, TypeError):  # other C libraries lack this function
        ctypes.CDLL(None).malloc_trim(0)


def share_heap() -> None:
    """Let threads share the main heap: glibc keeps memory that is freed in a thread's own heap."""
    import ctypes

    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).mallopt(-8, 1)  # M_ARENA_MAX


def drop_pages(mapped: mmap | None) -> None:
    """Release the resident pages of a file mapping, if any; the next access reads them again."""
    # Locked pages cannot be released, and some systems cannot release any.
    with suppress(ImportError, AttributeError, OSError):
        from mmap import MADV_DONTNEED

        if mapped is not None:
            mapped.madvise(MADV_DONTNEED)


def _text_of(path: str | Path) -> str:
    try:
        return Path(path).read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        return ""
