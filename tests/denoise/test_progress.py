"""The shared progress board that workers write to and the run reads."""

import threading
from pathlib import Path

import pytest

from kpca_apps.denoise.progress import watching, writing


def test_a_truncated_progress_board_still_reports_its_shares(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kpca_apps.denoise.progress._PAUSE", 0.001)
    failures: list[threading.ExceptHookArgs] = []
    monkeypatch.setattr(threading, "excepthook", failures.append)
    shares: dict[str, float] = {}
    heard = threading.Event()

    def within(name: str, share: float) -> None:
        shares[name] = share
        heard.set()

    board = tmp_path / "board"
    with watching(board, ["a.png", "b.png", "c.png"], within):
        writing(board, 1)(0.5)
        assert heard.wait(10)
        # The file now ends within the progress of b.png, which has bytes 8 to 15.
        board.write_bytes(board.read_bytes()[:13])
        heard.clear()
        writing(board, 1)(0.75)
        assert heard.wait(10)
    assert shares == {"a.png": 0.75}
    assert not failures
