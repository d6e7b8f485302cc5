"""The parameters of the network's own verdicts; nothing heavy is imported here."""

from pydantic import Field

from tasks.params import Params


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
