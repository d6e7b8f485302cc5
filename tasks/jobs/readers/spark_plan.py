"""What is known of a Spark SQL plan: its operators by name, and a signature without literals, tables or paths.

The plan is the one that Spark starts with: what adaptive execution makes of it depends on the data of the run."""

import hashlib
import re
from collections import Counter
from typing import Any

NO_OPERATORS = ("WholeStageCodegen", "InputAdapter", "AdaptiveSparkPlan", "ResultQueryStage", "ShuffleQueryStage")
WITH_A_KIND = ("Scan", "Execute")  # Scan parquet, Execute InsertIntoHadoopFsRelationCommand
WORD = re.compile(r"[A-Za-z][\w.-]*")
MAX_DEPTH = 500  # a plan that is nested more deeply is refused


def operator_tree(plan: Any, depth: int = 0) -> str:
    """A plan as text, `Sort(Exchange(Scan parquet()))`; wrappers of code generation are left out.

    plan: sparkPlanInfo of a log. Raises ValueError if it is no plan."""
    if not isinstance(plan, dict) or not isinstance(plan.get("nodeName"), str) or depth > MAX_DEPTH:
        raise ValueError("sparkPlanInfo is not a plan of nodes with names")
    children = plan.get("children") or []
    if not isinstance(children, list):
        raise ValueError("sparkPlanInfo is not a plan of nodes with names")
    inner = ", ".join(operator_tree(child, depth + 1) for child in children)
    name = _operator(plan["nodeName"])
    return inner if name in NO_OPERATORS else f"{name}({inner})"


def count_operators(tree: str) -> Counter[str]:
    """How often each operator stands in a tree."""
    return Counter(re.findall(r"([^(),]+?)\(", tree.replace(", ", ",")))


def signature(trees: set[str]) -> str | None:
    """A hash over the distinct plans of an application, in any order; None without a plan.

    A plan that is run once or ten times counts once: how often a loop turns is not which job it is."""
    if not trees:
        return None
    return hashlib.sha256("\n".join(sorted(trees)).encode()).hexdigest()[:16]


def _operator(node_name: str) -> str:
    words = WORD.findall(node_name)
    if not words:
        return "unnamed"
    return " ".join(words[:2]) if words[0] in WITH_A_KIND else str(words[0])
