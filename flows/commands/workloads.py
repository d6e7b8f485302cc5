"""`whorl workloads`: what is running on this machine, known or unknown?"""

import typer

from flows.commands import workload_recording

app = typer.Typer(help="Workloads: what is running on this machine, known or unknown?", no_args_is_help=True)
app.callback()(lambda: None)  # a group, also while it has one verb
app.command()(workload_recording.record)
