"""What verbs that read files print."""

from typing import Any

import pytest

from flows.cli.reading import show_read


def files(reader: str, n: int) -> list[dict[str, Any]]:
    return [
        {"path": f"{reader}-{at}", "reader": reader, "n_read": 3, "n_kept": 2, "n_quarantined": 1} for at in range(n)
    ]


def test_few_files_have_a_row_each_and_many_a_row_a_format(capsys: pytest.CaptureFixture[str]) -> None:
    show_read({"files": files("swf", 20), "refused": []})
    assert len(capsys.readouterr().out.splitlines()) == 1 + 20
    show_read({"files": files("pbs", 365) + files("swf", 1), "refused": []})
    _, many, one = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert many == ["365", "files", "pbs", "1,095", "730", "365"]
    assert one == ["1", "file", "swf", "3", "2", "1"]
