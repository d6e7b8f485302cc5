"""A flow run from the command line: progress on stderr, and stdout kept for its result."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout

from flows.invocation import Invocation
from flows.progress_bar import progress_bar
from tasks.progress import report_progress


@contextmanager
def flow_running(invocation: Invocation) -> Iterator[None]:
    """A block that may import and run flows of this home; what it prints goes to stderr."""
    with progress_bar(invocation), redirect_stdout(sys.stderr):
        report_progress("starting Prefect", 0)
        invocation.prepare_flows()
        yield
