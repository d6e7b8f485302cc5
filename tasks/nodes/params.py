"""The parameters of the word `nodes`, as conf/nodes.yaml, flow forms and flags show them; nothing heavy is imported."""

from typing import Annotated, Literal, get_args

from pydantic import Field, model_validator

from tasks.choices import DEFAULT_SOURCE
from tasks.nodes.record.params import RecordParams
from tasks.params import Params, ReadLimits
from tasks.ray_address import LOCAL

Rules = Literal["robust", "paper"]
CONFIDENCE = 0.95  # of intervals, and of ties
MIN_EXECUTIONS = 5  # of a node and type: fewer take their spread from the other nodes'
SEED = 0  # of resamples and of the detector's trees


class PreprocessParams(Params):
    """How metrics are selected, oriented, imputed and scaled."""

    variant: Rules = Field(
        "robust",
        description="Whose rules hold: ours (robust), or those of the paper's authors, for who compares with its "
        "figures",
    )

    @property
    def is_paper(self) -> bool:
        """Whether the rules of the paper's authors hold."""
        return self.variant == "paper"


class ScoreParams(Params):
    """How nodes are scored and ranked."""

    basis: Literal["throughput", "all"] = Field(
        "throughput",
        description="Metrics that count: rates alone where a benchmark has any, else times; all: for who serves "
        "requests and cares for latencies as much as for rates",
    )
    left_out_aspects: list[str] = Field(
        ["application"],
        max_length=100,
        description="Aspects that do not count, such as network where jobs run on one node; applications are what "
        "scores are for",
    )
    aspect_weights: dict[str, Annotated[float, Field(ge=0, le=1e6)]] = Field(
        {},
        description="Weight of each aspect in the one number of a node, 1 where nothing is said: more for what the "
        "jobs of this fleet wait for",
    )
    resamples: int = Field(
        1000,
        ge=100,
        le=100_000,
        description="Resamples behind an interval: fewer where a fleet of thousands takes long",
    )


class DetectorParams(Params):
    """What is known beforehand of benchmarks that no tool here describes."""

    headlines: dict[str, tuple[str, ...]] = Field(
        {},
        description="Metrics that a benchmark exists to report, by benchmark: for who brings results of tools of their"
        " own; of the tools known here theirs count",
    )


class BudgetParams(Params):
    """How many false alarms may be raised; the threshold of verdicts follows from it."""

    by: Literal["alarms", "precision", "recall"] = Field(
        "alarms",
        description="alarms: false ones a day over the fleet, for who watches; precision, recall: of flagged "
        "executions, for who looks at single ones and has recorded stress",
    )
    alarms_per_day: float = Field(
        1.0,
        gt=0,
        le=10_000,
        description="False alarms a day over the whole fleet that whoever is on call will look at; less finds less",
    )
    share: float = Field(
        0.9, gt=0, lt=1, description="The precision, or the recall, that is wanted, where one of them chooses"
    )


class AlarmParams(Params):
    """When executions that are flagged become an alarm, what confirms it and what clears it."""

    flagged: int = Field(
        3,
        ge=2,
        le=1000,
        description="So many of the last executions of a node and aspect must be flagged, one is none: fewer for an "
        "earlier alarm at a higher threshold",
    )
    last: int = Field(
        5, ge=2, le=1000, description="How many of the last executions are looked at: more for faults that come and go"
    )
    min_executions: int = Field(
        5,
        ge=2,
        le=100_000,
        description="Executions of a node and aspect before there can be an alarm: more where new nodes take long to "
        "settle",
    )
    confirm: int = Field(
        2,
        ge=1,
        le=1000,
        description="Executions flagged after the alarm was raised that confirm it: more where leaving a node out is "
        "dear",
    )
    clear: int = Field(
        3,
        ge=1,
        le=1000,
        description="Executions in a row without a flag that clear an alarm: more where faults come back",
    )

    @model_validator(mode="after")
    def _can_be_raised(self) -> "AlarmParams":
        if self.flagged > self.last:
            raise ValueError(f"flagged ({self.flagged}) of the last ({self.last}) executions; expected flagged <= last")
        return self


Variant = Literal["ours", "paper"]
Term = Literal["reconstruction", "detection", "clustering", "classification", "ranking", "stressed_ranking"]
Ratio = Annotated[float, Field(ge=0, le=0.9)]
MINED = 16  # vectors of each type that ours mines triplets from
ALL = 1_000_000  # of them: no batch has more
SMALL_BATCH, LARGE_BATCH = 16, 128  # Table II's, and the most of ours
STEPS = 8  # that ours takes in a pass, as far as batches of 16 to 128 allow: few executions are not learned in one step
SMALL_BATCH_RATE = 0.01  # the middle of Table II's
PAPER_RATE, PAPER_EPOCHS = 0.001, 64  # as searched; the authors pass 100 times
EPOCHS = 48  # as the rate falls over them, ours gains little by more
RAY_SETTING, WITHOUT_RAY = "search.ray_address", "set search.runner to `here`"  # in lines about a Ray that is not there


class GraphParams(Params):
    """Which earlier executions an execution is seen beside in the paper's variant, and what edges tell."""

    predecessors: int = Field(3, ge=1, le=50, description="Earlier executions of the same node and type (paper: 3)")
    node_metrics: bool = Field(
        True,
        description="Edges tell what the nodes' own metrics did before and during both, as in the paper; where stress "
        "was put on for the recording they show the stressor, and figures are too good",
    )
    interval_scales_s: tuple[Annotated[float, Field(gt=0, le=1e10)], ...] = Field(
        (60.0, 3600.0, 86_400.0, 604_800.0), max_length=20, description="Time constants of the encodings of intervals"
    )


class NetworkParams(Params):
    """The shape of the network; heads, gate, root weight and edges are of the paper's variant alone."""

    hidden: int = Field(32, ge=4, le=512, description="Length of a fingerprint (paper: 32)")
    intermediate: int = Field(64, ge=4, le=1024, description="Length between input and fingerprint (paper: 64)")
    heads: int = Field(5, ge=1, le=16, description="Attention heads (searched: 1, 3, 5)")
    beta: bool = Field(False, description="Gate between a vertex and its neighbours (searched)")
    root_weight: bool = Field(False, description="Attention adds a vertex itself (searched)")
    dropout: Ratio = Field(0.0, description="Alpha dropout of features and attention (searched: 0, 0.1, 0.2)")
    edge_dropout: Ratio = Field(0.0, description="Edges that a training step leaves out (searched: 0, 0.1, 0.2)")


class LossParams(Params):
    """The terms of the loss, each with weight 1 as in the paper."""

    terms: tuple[Term, ...] = Field(
        get_args(Term), description="Terms that count; detection and stressed ranking are of the paper's variant alone"
    )
    focal_gamma: float = Field(0.5, ge=0, le=10, description="Focusing exponent (searched: 0.5, 1, 2, 5)")
    class_balance: float = Field(
        0.999, ge=0, lt=1, description="Beta of the effective number of samples (searched: 0.9 to 0.9999)"
    )
    triplet_margin: float = Field(0.05, ge=0, le=2, description="Margin of the triplet loss (paper's code: 0.05)")
    mining_margin: float = Field(0.2, ge=0, le=2, description="Triplets this hard are mined (paper's code: 0.2)")
    mined_per_type: int = Field(
        0,
        ge=0,
        le=ALL,
        description="Vectors of each type that triplets are mined from; 0: 16 in ours, all in the paper's",
    )
    norm_power: float = Field(10.0, ge=1, le=100, description="Power of all norms (paper: 10)")


class FitParams(Params):
    """How the network is fitted."""

    epochs: int = Field(
        0,
        ge=0,
        le=10_000,
        description="Passes over the training executions (paper: 100); 0: 48 in ours, and 64 in the paper's",
    )
    batch_size: int = Field(
        0,
        ge=0,
        le=4096,
        description="Executions of a step (paper: 16); 0: an eighth of all, 16 to 128, in ours, and 16 in the paper's",
    )
    learning_rate: float = Field(
        0.0,
        ge=0,
        le=1,
        description="Of Adam (searched: 0.1, 0.01, 0.001); 0: in ours 0.01 for batches of 16, 0.02 for 128, falling to"
        " 0 over all passes; 0.001 in the paper's",
    )
    weight_decay: float = Field(0.001, ge=0, le=1, description="Of weights, not of biases (searched: 0.01 to 0.0001)")
    clip_norm: float = Field(1.0, gt=0, le=1000, description="Gradients are cut to this norm")
    noise: float = Field(0.01, ge=0, le=1, description="Deviation of the noise added to inputs in training")
    seed: int = Field(0, ge=0, le=2**31 - 1, description="Seed of weights, batches, dropout and noise")


class ModelParams(Params):
    """Perona's model. variant: `ours`, which makes fingerprints, or `paper`, as its authors have it."""

    variant: Variant = Field("ours", description="ours: what fingerprints are made of; paper: the authors' network")
    graph: GraphParams = GraphParams()
    network: NetworkParams = NetworkParams()
    loss: LossParams = LossParams()
    fit: FitParams = FitParams()

    @property
    def is_paper(self) -> bool:
        """Whether this is the authors' network."""
        return self.variant == "paper"

    @property
    def n_predecessors(self) -> int:
        """Earlier executions beside which one is seen: none in ours."""
        return self.graph.predecessors if self.is_paper else 0

    @property
    def epochs(self) -> int:
        """Passes over the training executions."""
        return self.fit.epochs or (PAPER_EPOCHS if self.is_paper else EPOCHS)

    def preprocess(self, given: PreprocessParams) -> PreprocessParams:
        """The preprocessing of this variant: the paper's takes the paper's."""
        return given.model_copy(update={"variant": "paper"}) if self.is_paper else given

    def settled(self, n_graphs: int) -> "ModelParams":
        """With numbers for all that is left to the variant; settled twice is settled once. n_graphs: to learn from.

        The rate of ours grows with the cube root of the batch: 0.01 for 16 executions, 0.02 for 128."""
        left = SMALL_BATCH if self.is_paper else min(max(n_graphs // STEPS, SMALL_BATCH), LARGE_BATCH)
        batch_size = self.fit.batch_size or left
        least = PAPER_RATE if self.is_paper else SMALL_BATCH_RATE * (batch_size / SMALL_BATCH) ** (1 / 3)
        fit = {"batch_size": batch_size, "learning_rate": self.fit.learning_rate or min(least, 1.0)}
        mined = self.loss.mined_per_type or (ALL if self.is_paper else MINED)
        return self.model_copy(
            update={
                "loss": self.loss.model_copy(update={"mined_per_type": mined}),
                "fit": self.fit.model_copy(update=fit | {"epochs": self.epochs}),
            }
        )


class NetworkSearchParams(Params):
    """Trials of Table II's values and, in ours, of more batches and rates: Optuna proposes, ASHA gives up the worse."""

    n_trials: int = Field(
        100,
        ge=1,
        le=100_000,
        description="Configurations tried, given up or not: as many as there is time for (paper: 100)",
    )
    runner: Literal["ray", "here"] = Field(
        "ray",
        description="ray: side by side through Ray Tune, where they end in another order each time; here: one after "
        "the other, the same every time, for who has no Ray or wants a search again",
    )
    ray_address: str = Field(
        LOCAL,
        min_length=1,
        max_length=500,
        description="Ray that runs the trials, such as ray://head:10001; local: one on this machine, while it lasts",
    )
    concurrency: int = Field(
        4,
        ge=1,
        le=1000,
        description="Trials at a time on Ray (paper: 4), on this machine at most one a core: as many cores as may be "
        "taken",
    )


LearnedProtocol = Literal["chronological", "paper"]
Kind = Literal["replaced", "shifted"]
PerDay = Annotated[float, Field(gt=0, le=1_000_000)]
NAMES: dict[Variant, str] = {"ours": "model", "paper": "paper"}  # of the detectors, in the keys of figures


class InjectionParams(Params):
    """How results are spoiled where nobody knows which executions were degraded."""

    repeats: int = Field(3, ge=0, le=1000, description="Times that nodes and beginnings are drawn; 0: not measured")
    kinds: tuple[Kind, ...] = Field(
        ("replaced", "shifted"), description="Results of another machine type instead, or worse by a drawn factor"
    )
    least_runs: int = Field(
        20, ge=5, le=1_000_000, description="Executions of one benchmark from which a node counts as long-lived"
    )
    max_nodes: int = Field(30, ge=2, le=100_000, description="Long-lived nodes; of more, those with most executions")
    least_factor: float = Field(1.05, gt=1, le=1000, description="Shifted: worse by at least this factor")
    largest_factor: float = Field(1.5, gt=1, le=1000, description="Shifted: worse by at most this factor")
    alarm: AlarmParams = AlarmParams()

    @model_validator(mode="after")
    def _in_order(self) -> "InjectionParams":
        if self.least_factor > self.largest_factor:
            raise ValueError(
                f"least_factor ({self.least_factor:g}) must not be more than largest_factor ({self.largest_factor:g})"
            )
        return self


class LearnedParams(Params):
    """What is measured of Perona's network; nothing unless variants are named."""

    variants: tuple[Variant, ...] = Field((), description="ours, paper: each is fitted and measured; none: neither")
    protocols: tuple[LearnedProtocol, ...] = Field(
        ("chronological", "paper"),
        description="Ways of splitting; paper: graphs within each part of a random split, by labels, as its authors do",
    )
    seeds: int = Field(5, ge=1, le=1000, description="Fits of each split by time, and random splits, each with a seed")
    model: ModelParams = ModelParams()

    def fit_params(self, variant: Variant, seed: int) -> ModelParams:
        """The parameters of one fit."""
        fit = self.model.fit.model_copy(update={"seed": seed})
        return self.model.model_copy(update={"variant": variant, "fit": fit})


class EvaluateParams(Params):
    """The protocol of an evaluation: what is learned from, what is tested, how it is measured."""

    preprocess: PreprocessParams = PreprocessParams()
    score: ScoreParams = ScoreParams()
    learned: LearnedParams = LearnedParams()
    injection: InjectionParams = InjectionParams()
    repeats: int = Field(5, ge=1, le=1000, description="Random splits")
    max_left_nodes: int = Field(10, ge=1, le=10_000, description="Nodes that are left out in turn; of more, the first")
    max_ranked: int = Field(
        200, ge=1, le=1_000_000, description="Nodes up to which the ranking is given intervals and ties"
    )
    resamples: int = Field(1000, ge=100, le=100_000, description="Resamples of tested executions behind an interval")
    budgets: tuple[PerDay, ...] = Field(
        (0.1, 1.0, 10.0, 100.0, 1000.0),
        description="False alarms a day over all nodes that thresholds are set for, to see whether as many are raised",
    )
    curve: bool = Field(
        False, description="Measure as well what few known stressed executions of each benchmark teach, down to none"
    )
    without_labels: bool = Field(
        False, description="Labels of stress are hidden from all that learns or chooses a threshold: they only measure"
    )
    seed: int = Field(0, ge=0, le=2**31 - 1, description="Seed of splits and resamples")


RESULT_BYTES = 8 * 2**30
FUTURE_SLACK_S = 86_400.0  # executions that begin later than this after now are refused


class ReadParams(Params):
    """How results of benchmarks are read, and who says on which node they were measured."""

    label_from: str = Field(
        "",
        max_length=200,
        description="Node of a file's executions, where an inbox gets files that do not say it: stem (their name), "
        "parent (their folder), column:NAME; empty: their columns",
    )
    manifest: str = Field(
        "",
        max_length=4096,
        description="CSV or JSONL with path, benchmark, node, machine_type, started_at, is_stressed, dose of each "
        "file: for who knows of logs what they do not say",
    )
    columns: dict[str, str] = Field(
        {}, description="Other names of columns, where tables come from another tool: our name to theirs (ours: theirs)"
    )
    time_zone: str = Field(
        "UTC",
        min_length=1,
        max_length=100,
        description="Time zone of times that name none: that of the machines that wrote the files",
    )
    pseudonymise: bool = Field(
        False,
        description="Replace nodes and ids by keyed hashes and drop logs and command lines before anything is kept: "
        "where results leave the house that measured them",
    )
    limits: ReadLimits = ReadLimits(max_bytes=RESULT_BYTES)


NODE = r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$"
NodeName = Annotated[str, Field(min_length=1, max_length=60, pattern=NODE)]


class FleetParams(Params):
    """Remote nodes: each has a Prefect worker of its own, which records there what 'whorl deploy' has registered."""

    nodes: tuple[NodeName, ...] = Field(
        (),
        max_length=1000,
        description="Names of the remote nodes that are to record; each gets a work queue and a deployment of its name",
    )
    folder: str = Field(
        "{home}/recordings/nodes",
        min_length=1,
        description="Folder on each of them for its recording, on a disk that survives a restart; {home} stands for "
        "the home folder of its worker",
    )
    landing: str = Field(
        "",
        description="Landing folder that all nodes reach, an fsspec address, where they share no disk; empty: the one "
        "of whorl.landing",
    )
    source: str = Field(
        DEFAULT_SOURCE, min_length=1, max_length=100, description="Source that their executions go to: one a fleet"
    )


class NodesParams(Params):
    """Everything of the word `nodes` that can be set in conf/nodes.yaml."""

    record: RecordParams = RecordParams()
    read: ReadParams = ReadParams()
    preprocess: PreprocessParams = PreprocessParams()
    score: ScoreParams = ScoreParams()
    detect: DetectorParams = DetectorParams()
    budget: BudgetParams = BudgetParams()
    search: NetworkSearchParams = NetworkSearchParams()
    alarm: AlarmParams = AlarmParams()
    fleet: FleetParams = FleetParams()
