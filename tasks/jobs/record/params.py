"""The parameters of a recording campaign, as a flow form and conf/jobs.yaml show them."""

from typing import Literal

from pydantic import Field

from tasks.params import Params

LoadLevel = Literal["none", "cpu-1", "cpu-2", "cpu-4", "cpu-8", "memory-1", "memory-2", "disk-1", "disk-2"]


class RecordParams(Params):
    """How long, how many jobs, on how much data and under which load real recurring jobs are recorded."""

    minutes: float = Field(
        5, gt=0, le=1440, description="How long jobs are submitted, in minutes; the queue is then worked off"
    )
    seed: int = Field(7, ge=0, le=2**31, description="Decides data, jobs, sizes, parameters and submit times")
    jobs: int = Field(72, ge=1, le=99, description="Number of recurring jobs; the templates take turns")
    workers: int = Field(3, ge=1, le=64, description="Worker processes: jobs that can run at the same time")
    data_scale: float = Field(
        1, gt=0, le=100, description="Size of the data sets; 1 is about 300 MB on disk, ratio to that"
    )
    day_s: float = Field(
        75, gt=0, le=86_400, description="Seconds of the campaign that stand for one day of the jobs' schedules"
    )
    part_minutes: float = Field(
        3, gt=0, le=120, description="Minutes between part files; a kill loses at most the last ones"
    )
    time_limit_s: float = Field(
        60, gt=0, le=86_400, description="A job that runs longer is killed and recorded as timeout, in seconds"
    )
    load: Literal["auto", "stress-ng", "jobs"] = Field(
        "auto",
        description="Where load comes from: stress-ng, concurrent jobs only, or stress-ng where it is installed",
    )
    load_ladder: tuple[LoadLevel, ...] = Field(
        ("none", "none", "none", "none", "none", "cpu-1", "cpu-4", "memory-1", "disk-1"),
        min_length=1,
        description="Levels that background load is drawn from, kind and number of stressors; repeat for weight",
    )
    load_phase_s: float = Field(40, gt=0, le=86_400, description="Mean length of a phase of one load level, in seconds")
    scratch: str = Field("", description="Folder for the jobs' data sets; empty: one in the system's temporary folder")
