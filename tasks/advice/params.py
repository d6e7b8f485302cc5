"""The parameters of `advice`: what an operator changes stands in conf/advice.yaml. Nothing heavy is imported."""

from pydantic import Field

from tasks.params import Params

CPU_ONE_THREAD = "cpu_one_thread"  # an aspect of scores, as tasks/nodes names it


class ChoiceParams(Params):
    """What counts as rarely late, and how sure that has to be."""

    late_share: float = Field(
        0.05, gt=0, lt=1, description="Share of runs that may be late. Less for deadlines that bind"
    )
    level: float = Field(
        0.8,
        gt=0,
        lt=1,
        description="Level of the interval of the chance of being late. Higher where few runs should not decide",
    )


class EstimateParams(Params):
    """How runtimes of tasks and of recurring jobs on another machine are estimated."""

    confidence: float = Field(
        0.9, ge=0.5, le=0.99, description="Share of intervals that hold the runtime. Higher for who plans for the worst"
    )
    aspect: str = Field(
        CPU_ONE_THREAD,
        min_length=1,
        max_length=100,
        description="Score that tasks scale by; one thread, as most tasks. For tasks that use all cores: "
        "cpu_all_threads",
    )


class MachineGroupParams(Params):
    """How machines are put into groups of alike ones."""

    confidence: float = Field(
        0.99,
        ge=0.5,
        lt=1,
        description="How sure it must be that a group is more than noise before there is one more. Lower for "
        "finer groups",
    )
    spread_ratio: float = Field(
        0.02,
        ge=0,
        le=1,
        description="What machines of one type differ by themselves, as a ratio: no reason for a group. More for "
        "virtual machines on shared hosts",
    )
    seed: int = Field(
        0,
        ge=0,
        le=2**31 - 1,
        description="Seed of the scores drawn to see how much they vary. Another to see what chance does",
    )


class SearchParams(Params):
    """What is searched where a table of runs does not say it."""

    machines: str = Field(
        "conf/machines.csv",
        min_length=1,
        description="Machine types with vCPU, memory, price and its date; a path relative to the project's root. "
        "Yours, with what you pay",
    )
    nodes: tuple[int, ...] = Field(
        (4, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48),
        min_length=1,
        description="Numbers of nodes to consider of each machine type. Those that your provider or scheduler gives",
    )
    max_vcpu: int = Field(
        100, ge=1, le=1_000_000, description="Largest cluster to consider, in vCPU of all its nodes. Your quota"
    )
    seed: int = Field(
        0, ge=0, le=2**31, description="Seed of the first run, which is drawn. Another to see what chance does"
    )


class ReplayParams(Params):
    """How searches are replayed."""

    searches: int = Field(
        200,
        ge=1,
        le=100_000,
        description="Searches of each method for each job, from seeds of their own. Fewer for a first look",
    )
    runs: int = Field(12, ge=1, le=1_000, description="Runs of each search. As many as you would pay for")
    target_percentiles: tuple[float, ...] = Field(
        (10, 30, 50, 70, 90),
        description="Runtime targets, as percentiles of a job's completed runtimes; empty: none. For who has deadlines",
    )
    seed: int = Field(0, ge=0, le=2**31, description="Seed of all searches. Another to see what chance does")


class AdviceParams(Params):
    """Everything of the word `advice` that can be set."""

    search: SearchParams = SearchParams()
    evaluate: ReplayParams = ReplayParams()
    choose: ChoiceParams = ChoiceParams()
    groups: MachineGroupParams = MachineGroupParams()
    estimate: EstimateParams = EstimateParams()
