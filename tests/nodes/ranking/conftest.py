"""What tests of evaluations and rankings share."""

import pytest


@pytest.fixture(scope="package", autouse=True)
def few_trees():
    """Forests of ten trees: no claim here is about forests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tasks.nodes.detect.plain.TREES", 10)
        yield
