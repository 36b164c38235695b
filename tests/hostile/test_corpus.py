"""Files in ``corpus/TARGET``, named after faults that the fuzzer found, are read or refused."""

import resource
import time
from pathlib import Path

import pytest

from tests.benchmarks.fuzz_inputs import seeds
from tests.hostile.doors import DOORS, enter

CORPUS = Path(__file__).parent / "corpus"
CASES = sorted(path.relative_to(CORPUS) for path in CORPUS.glob("*/*"))
SECONDS, MOST_MEMORY = 10.0, 1 << 30


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.as_posix())
def test_a_corpus_file_is_read_or_refused_in_one_line(case: Path, tmp_path: Path) -> None:
    assert case.parts[0] in DOORS
    began, largest = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    enter(case.parts[0], (CORPUS / case).read_bytes(), tmp_path)
    assert time.process_time() - began < SECONDS
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - largest) << 10 < MOST_MEMORY


@pytest.mark.release
@pytest.mark.parametrize("target", DOORS)
def test_the_seeds_of_the_fuzzer_are_read(target: str, tmp_path: Path) -> None:
    assert "read" in [enter(target, data, tmp_path) for data in seeds(target)]
