"""All that is measured of the learned model beside what it detects: imported only where a variant is asked for."""

from collections.abc import Mapping

import pandas as pd

from tasks.nodes.detect.contenders import Detector
from tasks.nodes.evaluate.applications import node_matrix
from tasks.nodes.evaluate.detection import Prepare
from tasks.nodes.evaluate.injection import inject, injected_figures
from tasks.nodes.evaluate.measures import Figures
from tasks.nodes.evaluate.network_detection import ablate, ablation_figures
from tasks.nodes.evaluate.network_ranking import rank_learned, rank_learned_figures
from tasks.nodes.evaluate.params import EvaluateParams
from tasks.nodes.history import History
from tasks.nodes.type_tables import Bools, NodeTables


def learned_parts(
    history: History,
    tables: NodeTables,
    is_calm: Bools,
    prepare: Prepare,
    detectors: Mapping[str, Detector],
    params: EvaluateParams,
) -> tuple[Figures, dict[str, pd.DataFrame]]:
    """Figures and tables of the ablation, of injected degradation, and of ranking against applications.

    tables: of the history. is_calm: (n_executions,) executions that nodes are ranked by."""
    figures: Figures = {}
    found: dict[str, pd.DataFrame] = {}
    if params.learned.ablation:
        ablation = ablate(history, prepare, params)
        figures |= ablation_figures(ablation)
        found["ablation"] = ablation.rows
    if params.learned.injection.repeats:
        injected = inject(history, prepare, detectors, params)
        figures |= injected_figures(injected, params)
        found["injected"] = injected.rows
    ranks = rank_learned(history, is_calm, node_matrix(tables, is_calm, params.score), params)
    found["learned_correlations"] = ranks.correlations
    return figures | rank_learned_figures(ranks), found
