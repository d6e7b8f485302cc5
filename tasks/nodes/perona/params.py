"""The parameters of Perona's network, its training and its search; nothing heavy is imported here. Source: IV-B and
Table II.

Two variants share the encoder, and each takes its own numbers where nobody says others. `paper`: the whole network,
with what a search of Table II found on the training executions of data/recorded/nodes (22 trials of 64 passes). `ours`:
what fingerprints are made of, encoder, decoder, types and order, without labels and a graph of earlier executions."""

from typing import Annotated, Literal, get_args

from pydantic import Field, model_validator

from tasks.nodes.preprocess.params import PreprocessParams
from tasks.params import Params
from tasks.ray_address import LOCAL

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
        description="Of Adam (searched: 0.1, 0.01, 0.001); 0: in ours 0.01 for batches of 16, 0.02 for 128, falling to "
        "0 over all passes; 0.001 in the paper's",
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

    def with_terms(self, *terms: Term) -> "ModelParams":
        """The same with these terms of the loss alone, as far as they count already."""
        kept = tuple(one for one in self.loss.terms if one in terms)
        return self.model_copy(update={"loss": self.loss.model_copy(update={"terms": kept})})


class SearchParams(Params):
    """Trials of Table II's values and, in ours, of more batches and rates: Optuna proposes, ASHA gives up the worse."""

    n_trials: int = Field(100, ge=1, le=100_000, description="Configurations tried, given up or not (paper: 100)")
    runner: Literal["ray", "here"] = Field(
        "ray",
        description="ray: side by side through Ray Tune, where they end in another order each time; "
        "here: one after the other without Ray, the same every time",
    )
    ray_address: str = Field(
        LOCAL,
        min_length=1,
        max_length=500,
        description="Ray that runs the trials, such as ray://head:10001; local: one on this machine, while it lasts",
    )
    concurrency: int = Field(
        4, ge=1, le=1000, description="Trials at a time on Ray (paper: 4), and on this machine at most one a core"
    )
    warm_up_trials: int = Field(10, ge=0, le=10_000, description="Trials drawn at random before Optuna's TPE proposes")
    grace_epochs: int = Field(
        50, ge=1, le=10_000, description="Epochs that every trial is given, at most half of all (paper: 50)"
    )
    reduction: int = Field(4, ge=2, le=100, description="Of so many trials one goes on after the grace (paper: 4)")
    seed: int = Field(42, ge=0, le=2**31 - 1, description="Seed of what is proposed (paper: 42)")


class TrainParams(Params):
    """What a network is fitted to, and what it is measured on before it is used."""

    train_share: float = Field(0.6, gt=0, lt=1, description="First share of each node's executions, to learn from")
    validation_share: float = Field(
        0.2, gt=0, lt=1, description="Share after it, to choose the epoch on; the rest measures"
    )
    most_graphs: int = Field(
        5000, ge=10, le=100_000_000, description="Executions that a fit learns from; of more, so many are drawn"
    )

    @model_validator(mode="after")
    def _leaves_a_rest(self) -> "TrainParams":
        if self.train_share + self.validation_share >= 1:
            total = self.train_share + self.validation_share
            raise ValueError(f"train_share and validation_share make {total:g}; expected less than 1, the rest tests")
        return self
