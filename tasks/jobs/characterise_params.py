"""How the distributions of a log are characterised; nothing heavy is imported here."""

from pydantic import Field

from tasks.jobs.predict.split_params import SplitParams
from tasks.jobs.shape_params import BinParams, NormalisationParams, PosteriorParams, ShapeParams
from tasks.params import Params


class CharacteriseParams(Params):
    """Periods, medians, bins, shapes and posterior of one characterisation."""

    split: SplitParams = SplitParams()
    normalisation: NormalisationParams = NormalisationParams()
    bins: BinParams = BinParams()
    shapes: ShapeParams = ShapeParams()
    posterior: PosteriorParams = PosteriorParams()
    label_support: int = Field(
        3, ge=1, le=1_000_000, description="Runs that a job needs in a period to be labelled with a shape there"
    )
    batch_runs: int = Field(
        40_000_000,
        ge=1,
        le=10**12,
        description="Runs whose runtimes are held at a time for exact medians: about 10 bytes of memory each",
    )
