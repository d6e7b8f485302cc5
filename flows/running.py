"""A flow run from the command line: progress on stderr, and stdout kept for its result."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout

from flows.invocation import Invocation
from flows.progress_bar import progress_bar


@contextmanager
def flow_running(invocation: Invocation) -> Iterator[None]:
    """A block that may import and run flows of this home; what it prints goes to stderr."""
    with progress_bar(invocation, first="starting Prefect"), redirect_stdout(sys.stderr):
        invocation.prepare_flows()
        yield
