"""Fingerprints on Ray: the same phases, part by part, as without it."""

from pathlib import Path
from typing import Any

import pytest

from flows.engine.forms import call
from flows.workloads import FingerprintFlowParams, workloads_fingerprint
from tasks.warehouse.copies import hash_tables
from tasks.warehouse.place import Warehouse
from tasks.workloads.params import FanOutParams

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("prefect_server")]


def phases(warehouse: Warehouse) -> list[str]:
    """Hashes of the tables of phases."""
    return [one.hash for one in hash_tables(warehouse) if one.table in ("workloads.phases", "workloads.run_phases")]


def test_ray_makes_the_same_phases(workloads_log: Warehouse, warehouse_in: Any, tmp_path: Path) -> None:
    pytest.importorskip("prefect_ray")
    alone = warehouse_in(tmp_path / "alone", workloads_log.home)
    call(workloads_fingerprint, FingerprintFlowParams(source="log", warehouse=alone))
    fan_out = FanOutParams(ray_address="local", runs_per_part=12)
    found = call(workloads_fingerprint, FingerprintFlowParams(source="log", fan_out=fan_out, warehouse=workloads_log))
    assert (found["n_new"], found["n_parts"]) == (24, 2)
    assert phases(workloads_log) == phases(alone)
