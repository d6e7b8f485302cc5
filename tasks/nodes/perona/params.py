"""The parameters of Perona's network, its training and its search; nothing heavy is imported here. Source: IV-B and
Table II.

Four numbers of a fit may be left to the variant: the paper's are slow. With batches of 128 graphs, a learning rate that
falls from 0.02 to 0 in 24 epochs, and 16 vectors of each type to mine triplets from, ours comes to the same validation
loss in a fraction of the time (tests/benchmarks/test_nodes_training_speed.py)."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from tasks.nodes.preprocess.params import PreprocessParams
from tasks.params import Params
from tasks.ray_address import LOCAL

Variant = Literal["ours", "paper"]  # whose choices the network follows where the two differ
Ratio = Annotated[float, Field(ge=0, le=0.9)]
MINED = 16  # vectors of each type that ours mines triplets from
ALL = 1_000_000  # of them: no batch has more
SMALL_BATCH, LARGE_BATCH = 16, 128  # Table II's, and the most of ours
STEPS = 8  # that ours takes in a pass, as far as batches of 16 to 128 allow: few graphs are not learned in one step
SMALL_BATCH_RATE = 0.01  # the middle of Table II's
PAPER_RATE = 0.001  # of Table II; with 0.01 the paper's variant flags nothing on our recording
PAPER_EPOCHS, EPOCHS = 100, 24  # as the rate falls over them, ours gains nothing by more
RAY_SETTING, WITHOUT_RAY = "search.ray_address", "set search.runner to `here`"  # in lines about a Ray that is not there


class GraphParams(Params):
    """Which earlier executions an execution is seen beside, and what is told of the time between."""

    predecessors: int = Field(3, ge=1, le=50, description="Earlier executions of the same node and type (paper: 3)")
    node_metrics: bool = Field(
        False,
        description="Edges tell what the nodes' own metrics did before and during both; where stress was put on for "
        "the recording they show the stressor, and figures are too good",
    )
    interval_scales_s: tuple[Annotated[float, Field(gt=0, le=1e10)], ...] = Field(
        (60.0, 3600.0, 86_400.0, 604_800.0), max_length=20, description="Time constants of the encodings of intervals"
    )


class NetworkParams(Params):
    """The shape of the network; the defaults are fixed values of Table II, or out of its ranges."""

    hidden: int = Field(32, ge=4, le=512, description="Length of a fingerprint (paper: 32)")
    intermediate: int = Field(64, ge=4, le=1024, description="Length between input and fingerprint (paper: 64)")
    heads: int = Field(3, ge=1, le=16, description="Attention heads (searched: 1, 3, 5)")
    beta: bool = Field(False, description="Gate between a node and its neighbours; paper's variant alone (searched)")
    root_weight: bool = Field(False, description="A node also sees itself; paper's variant alone (searched)")
    dropout: Ratio = Field(0.0, description="Alpha dropout of features and attention (searched: 0, 0.1, 0.2)")
    edge_dropout: Ratio = Field(0.1, description="Edges that a training step leaves out (searched: 0, 0.1, 0.2)")
    type_in_input: bool = Field(
        True, description="The benchmark type is told to the encoder; the paper's variant always does"
    )


class LossParams(Params):
    """The terms of the loss, each with weight 1 as in the paper, or left out (for an ablation)."""

    reconstruction: bool = Field(True, description="Mean squared error of the decoded inputs")
    detection: bool = Field(True, description="Class-balanced focal loss of stressed executions")
    clustering: bool = Field(True, description="Triplet margin loss of types, cosine similarity")
    classification: bool = Field(True, description="Cross entropy of the benchmark type")
    ranking: bool = Field(True, description="Norms follow performance")
    stressed_ranking: bool = Field(True, description="Norms of stressed executions lie below those of normal ones")
    focal_gamma: float = Field(2.0, ge=0, le=10, description="Focusing exponent (searched: 0.5, 1, 2, 5)")
    class_balance: float = Field(
        0.99, ge=0, lt=1, description="Beta of the effective number of samples (searched: 0.9 to 0.9999)"
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

    def mined_in(self, variant: Variant) -> int:
        """Vectors of each type that triplets are mined from."""
        return self.mined_per_type or (ALL if variant == "paper" else MINED)


class FitParams(Params):
    """How the network is fitted."""

    epochs: int = Field(
        0,
        ge=0,
        le=10_000,
        description="Most passes over the training graphs (paper: 100); 0: 24 in ours, and 100 in the paper's",
    )
    batch_size: int = Field(
        0,
        ge=0,
        le=4096,
        description="Graphs of a step (paper: 16); 0: an eighth of all, from 16 to 128, in ours, and 16 in the paper's",
    )
    learning_rate: float = Field(
        0.0,
        ge=0,
        le=1,
        description="Of Adam (searched: 0.1, 0.01, 0.001); 0: 0.01 in batches of 16, 0.02 in 128; 0.001 in the paper's",
    )
    annealing: bool = Field(
        True, description="The rate falls to 0 over all epochs, along half a cosine; never in the paper's variant"
    )
    weight_decay: float = Field(0.001, ge=0, le=1, description="Of weights, not of biases (searched: 0.01 to 0.0001)")
    clip_norm: float = Field(1.0, gt=0, le=1000, description="Gradients are cut to this norm")
    noise: float = Field(0.01, ge=0, le=1, description="Deviation of the noise added to inputs in training")
    patience: int = Field(
        0, ge=0, le=10_000, description="Stop after so many epochs without a better validation; 0: never"
    )
    seed: int = Field(0, ge=0, le=2**31 - 1, description="Seed of weights, batches, dropout and noise")

    def settled(self, variant: Variant, n_graphs: int) -> "FitParams":
        """With a batch size, a learning rate and epochs, where they are 0. n_graphs: to learn from.

        The rate grows with the cube root of the batch: in ours 0.01 for 16 graphs, 0.02 for 128."""
        left = SMALL_BATCH if variant == "paper" else min(max(n_graphs // STEPS, SMALL_BATCH), LARGE_BATCH)
        batch_size = self.batch_size or left
        least = PAPER_RATE if variant == "paper" else SMALL_BATCH_RATE
        rate = self.learning_rate or least * (batch_size / SMALL_BATCH) ** (1 / 3)
        told = {"batch_size": batch_size, "learning_rate": min(rate, 1.0), "epochs": self.epochs_in(variant)}
        return self.model_copy(update=told)

    def epochs_in(self, variant: Variant) -> int:
        """Most passes over the training graphs."""
        return self.epochs or (PAPER_EPOCHS if variant == "paper" else EPOCHS)


class ModelParams(Params):
    """Perona's model. variant: `ours`, or `paper` with what its authors chose where the two differ."""

    variant: Variant = Field("ours", description="Ours, or the choices of the paper's authors, to measure both")
    graph: GraphParams = GraphParams()
    network: NetworkParams = NetworkParams()
    loss: LossParams = LossParams()
    fit: FitParams = FitParams()

    def preprocess(self, given: PreprocessParams) -> PreprocessParams:
        """The preprocessing of this variant: the paper's takes the paper's."""
        return given.model_copy(update={"variant": "paper"}) if self.variant == "paper" else given

    def settled(self, n_graphs: int) -> "ModelParams":
        """With numbers for all that is left to the variant; settled twice is settled once. n_graphs: to learn from."""
        loss = self.loss.model_copy(update={"mined_per_type": self.loss.mined_in(self.variant)})
        return self.model_copy(update={"loss": loss, "fit": self.fit.settled(self.variant, n_graphs)})


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


class FingerprintParams(Params):
    """How the network's own verdicts are made: they choose its epoch and part a better network from a worse one.

    threshold is no setting: each training chooses its own, as probabilities of two models are not on one scale."""

    threshold: float = Field(0.5, ge=0, le=1, description="Executions with a probability above this are flagged")

    rounds: int = Field(
        30, ge=0, le=10_000, description="Rounds of choosing predecessors anew before going through time instead"
    )
    new_level_after: int = Field(
        5,
        ge=0,
        le=10_000,
        description="Executions of a node and type, all flagged from the first on, after which the least suspicious of "
        "them stand beside later ones; 0: never",
    )
    graphs_at_once: int = Field(1024, ge=1, le=1_000_000, description="Executions that the network is given at once")


class TrainParams(Params):
    """What a model is fitted to, and what it is measured on before it is used."""

    train_share: float = Field(0.6, gt=0, lt=1, description="First share of each node's executions, to learn from")
    validation_share: float = Field(
        0.2,
        gt=0,
        lt=1,
        description="Share after it, to choose epoch and threshold on; the rest measures",
    )
    false_alarm_share: float = Field(
        0.01, gt=0, lt=1, description="Share that is flagged where validation has no execution known to be stressed"
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
