"""What tests of flows read from Prefect."""

from typing import Any


def artifact(key: str) -> str:
    """The latest artifact under a key, as it reads: without the backslashes that keep names from being markup."""
    from prefect.artifacts import Artifact

    found: Any = Artifact.get(key)
    assert found is not None
    return str(found.data).replace("\\", "")
