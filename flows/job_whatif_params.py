"""The parameters of the what-if flow. Nothing here imports prefect."""

from pydantic import Field

from flows.job_params import OF_SOURCE, WAREHOUSE, OfSource
from tasks.jobs.control.params import WhatIfParams
from tasks.jobs.offered_names import Named
from tasks.params import Params
from tasks.source_names import ONLY_SOURCE
from tasks.warehouse.place import Warehouse


class WhatIfFlowParams(Params):
    """Changes of the features of held-out runs, and what the model in use predicts to follow."""

    source: OfSource = Field(ONLY_SOURCE, description=OF_SOURCE)
    scenarios: list[Named] = Field(
        ["no_spare", "newest_sku", "steady_load"], description="Named changes, each by itself: those of the paper"
    )
    sets: list[str] = Field(
        [], description="Features that get a value, NAME=VALUE or NAME=xFACTOR, such as spare_multiplier=1"
    )
    shifts: list[str] = Field([], description="Kinds of machine (SKUs) whose vertices move, FROM:TO")
    stds: list[str] = Field([], description="Standard deviations that get a value, such as cpu_load=0")
    whatif: WhatIfParams = Field(WhatIfParams(), description="What a change is measured by, and when it counts")
    warehouse: Warehouse = Field(description=WAREHOUSE)
