import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError

from tasks.nodes.params import InjectionParams

ROOT = Path(__file__).parents[3]


def test_factors_and_shares_that_cannot_be_are_told():
    with pytest.raises(ValidationError, match=r"least_factor \(2\) must not be more than largest_factor \(1.5\)"):
        InjectionParams(least_factor=2)
    with pytest.raises(ValidationError, match="expected less than 1, the rest tests"):
        InjectionParams(train_share=0.8, validation_share=0.2)


@pytest.mark.slow
def test_an_evaluation_that_asks_for_no_variant_needs_no_torch():
    code = (
        "import sys\n"
        "from tasks.nodes.params import EvaluateParams\n"
        "from tasks.nodes.evaluate.protocol import evaluate_history\n"
        "from tests.nodes.synthetic import synthetic_history\n"
        "evaluate_history(synthetic_history(nodes=2, runs=6, types=1), EvaluateParams(resamples=100))\n"
        "print(sorted(set(sys.modules) & {'torch', 'torch_geometric', 'pytorch_lightning'}))\n"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert found.stdout.strip() == "[]"
