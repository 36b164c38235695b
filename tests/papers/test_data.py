import gzip
import hashlib
import os

import numpy as np
import pytest

from kpca_apps.papers import data as module
from kpca_apps.papers.data import FILES, MissingDataError, PaperData, PaperFile


def folder_with(tmp_path, monkeypatch, name, contents):
    """Create a data folder with the given files and register their checksums."""
    files = []
    for path, content in contents.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_bytes(content)
        files.append(PaperFile(path, hashlib.sha256(content).hexdigest(), "an address"))
    monkeypatch.setitem(module.FILES, name, tuple(files))
    return PaperData(tmp_path)


def test_without_a_folder_it_says_what_to_get():
    with pytest.raises(MissingDataError, match=r"usps/zip.train.gz.*--data"):
        PaperData(None).require("usps")


def nothing(path):
    path.unlink(missing_ok=True)


def another_file(path):
    path.write_text("1,2\n")


def fifo(path):
    os.mkfifo(path)


def folder(path):
    path.mkdir()


def no_folder(path):
    path.parent.rmdir()
    path.parent.touch()


def device(path):
    path.symlink_to("/dev/zero")


def long_file(path):
    with path.open("wb") as stream:
        stream.truncate(3_000_000_000)


def loop(path):
    path.symlink_to(path.name)


def nowhere(path):
    path.symlink_to("nowhere")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (nothing, "not in the data folder; kpca papers fetch gets it"),
        (another_file, r"\(its SHA-256 differs\); remove it"),
        (no_folder, r"cannot be read \(Not a directory\)"),
        (fifo, r"\(it is no regular file\); remove it"),
        (folder, r"\(it is no regular file\); remove it"),
        (device, r"\(it is no regular file\); remove it"),
        (long_file, r"\(it is longer than 20 MB\); remove it"),
        (loop, r"cannot be read \(Too many levels of symbolic links\)"),
        (nowhere, r"\(it is a link that leads nowhere\); remove it"),
    ],
)
def test_unreadable_files_are_named_and_kept(tmp_path, make, message):
    (tmp_path / "hoffmann").mkdir()
    make(tmp_path / "hoffmann" / "cancer.csv")
    with pytest.raises(MissingDataError, match=rf"^hoffmann/cancer\.csv: .*{message}"):
        PaperData(tmp_path).require("cancer")


def test_digits_are_read_as_labels_and_pixels(tmp_path, monkeypatch):
    rows = [f"{label}.0 " + " ".join(["-1.0"] * 255 + ["0.5"]) for label in (3, 7)]
    content = gzip.compress("\n".join(rows).encode())
    data = folder_with(tmp_path, monkeypatch, "usps", {"usps/a.gz": content, "usps/b.gz": content})
    X, y, new, truth = data.usps()
    assert X.shape == new.shape == (2, 256)
    assert y.tolist() == truth.tolist() == [3, 7]
    assert X[0, -1] == 0.5


def test_segmentation_skips_its_head(tmp_path, monkeypatch):
    numbers = ",".join(str(i) for i in range(19))
    content = f";;; a comment\n\nA,B,C\n\nSKY,{numbers}\nPATH,{numbers}\n".encode()
    parts = {"segmentation/a": content, "segmentation/b": content}
    X, names, _, _ = folder_with(tmp_path, monkeypatch, "segmentation", parts).segmentation()
    assert names.tolist() == ["SKY", "PATH"]
    assert X.tolist() == [list(map(float, range(19)))] * 2


def test_the_cancer_table_ends_in_its_label(tmp_path, monkeypatch):
    content = b"5,1,1,1,2,1,3,1,1,0\n9,9,9,9,9,9,9,9,9,1\n"
    X, malignant = folder_with(tmp_path, monkeypatch, "cancer", {"hoffmann/c": content}).cancer()
    assert X.shape == (2, 9)
    assert malignant.tolist() == [False, True]


def test_every_file_has_a_checksum_and_an_address():
    files = [file for group in FILES.values() for file in group]
    assert len({file.path for file in files}) == len(files)
    for file in files:
        assert len(file.sha256) == 64 and int(file.sha256, 16)
        assert file.address.startswith("https://")


def test_the_sets_themselves(papers_folder):
    """The data have the counts stated in the papers and by their authors."""
    data = PaperData(papers_folder)
    X, y, new, _ = data.usps()
    assert (X.shape, new.shape) == ((7291, 256), (2007, 256))
    assert (X.min(), X.max(), np.unique(y).size) == (-1.0, 1.0, 10)
    small, _, large, names = data.segmentation()
    assert (small.shape, large.shape) == ((210, 19), (2100, 19))
    assert set(np.unique(names, return_counts=True)[1]) == {300}
    assert {row.tobytes() for row in small} <= {row.tobytes() for row in large}
    cancer, malignant = data.cancer()
    assert (len(cancer), int(malignant.sum())) == (683, 239)
    names = ("square", "square-noise", "ring-line-square", "spiral", "sine-noise")
    assert [len(data.hoffmann(name)) for name in names] == [400, 450, 850, 700, 700]
