"""The parameters of remote nodes; nothing heavy is imported here."""

from typing import Annotated

from pydantic import Field

from tasks.params import Params
from tasks.source_names import DEFAULT_SOURCE

NODE = r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$"
NodeName = Annotated[str, Field(min_length=1, max_length=60, pattern=NODE)]


class FleetParams(Params):
    """Remote nodes: each has a Prefect worker of its own, which records there what 'whorl deploy' has registered."""

    nodes: tuple[NodeName, ...] = Field(
        (), max_length=1000, description="Names of remote nodes; each gets a work queue and a deployment of its name"
    )
    folder: str = Field(
        "{home}/recordings/nodes",
        min_length=1,
        description="Folder on each of them for its recording; {home} stands for the home folder of its worker",
    )
    landing: str = Field(
        "", description="Landing folder that all nodes reach, an fsspec address; empty: the one of whorl.landing"
    )
    source: str = Field(DEFAULT_SOURCE, min_length=1, max_length=100, description="Source that their executions go to")
