"""The parameters of the flows that answer questions about nodes. Nothing here imports prefect."""

from pydantic import Field

from flows.job_params import OF_SOURCE, WAREHOUSE, OfSource
from tasks.nodes.evaluate.params import EvaluateParams
from tasks.nodes.params import ReadParams
from tasks.nodes.preprocess.params import PreprocessParams
from tasks.nodes.ranking.params import ScoreParams
from tasks.nodes.reader_names import AUTO, NodeReader
from tasks.params import Params
from tasks.source_names import ONLY_SOURCE
from tasks.warehouse.place import Warehouse

PREPROCESS = "How metrics are selected, oriented, imputed and scaled"
SCORE = "How nodes are scored and ranked"


class NodePreprocessParams(Params):
    """The preprocessing of the metrics of a source."""

    source: OfSource = Field(ONLY_SOURCE, description=OF_SOURCE)
    preprocess: PreprocessParams = Field(PreprocessParams(), description=PREPROCESS)
    score: ScoreParams = Field(ScoreParams(), description=f"{SCORE}; its basis says what the reference is made of")
    warehouse: Warehouse = Field(description=WAREHOUSE)


class NodeRankParams(Params):
    """The ranking of the nodes of a source, and which of them stand out."""

    source: OfSource = Field(ONLY_SOURCE, description=OF_SOURCE)
    preprocess: PreprocessParams = Field(
        PreprocessParams(), description=f"{PREPROCESS}, where the source was not preprocessed before"
    )
    score: ScoreParams = Field(ScoreParams(), description=SCORE)
    warehouse: Warehouse = Field(description=WAREHOUSE)


class NodeEvaluateParams(Params):
    """An experiment: how well plain answers find stressed executions and rank nodes, on a source or on files."""

    source: OfSource = Field(ONLY_SOURCE, description=f"{OF_SOURCE}; not looked at where results are named")
    results: list[str] = Field(
        [], description="Results to evaluate instead of the source: files or folders; they are not kept"
    )
    reader: NodeReader = Field(AUTO, description="Format of these files; auto looks into each")
    read: ReadParams = Field(ReadParams(), description="How these files are read, and who says on which node they ran")
    evaluate: EvaluateParams = Field(
        EvaluateParams(), description="What is learned from, what is tested, and how it is measured"
    )
    both_variants: bool = Field(
        False,
        description="Evaluate our preprocessing and the paper's on the same executions, whichever variant is chosen; "
        "figures of the paper's begin with paper_preprocessing",
    )
    warehouse: Warehouse = Field(description=WAREHOUSE)
