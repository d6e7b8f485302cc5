"""The flows of the word `workloads`."""

from pathlib import Path

import pytest

from flows.workload_params import WorkloadRecordParams
from flows.workloads import record_workloads

pytestmark = pytest.mark.usefixtures("prefect_server")
FIGURES = {"isolation": "cgroups", "n_planned": 2, "n_clean": 2, "n_new": 2, "n_failed": 0, "sampler_cores": 0.002}


def test_a_recording_gets_a_folder_of_its_own_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from flows import workloads

    monkeypatch.setattr(workloads, "record", lambda params, folder: {"folder": folder} | FIGURES)
    found = [record_workloads(WorkloadRecordParams(folder=f"{tmp_path}/workloads-{{run}}")) for _ in range(2)]
    folders = [one["folder"] for one in found]
    assert found[0] == {"folder": folders[0]} | FIGURES
    assert len(set(folders)) == 2
    assert all("{" not in folder for folder in folders)
