"""`whorl workloads`: what is running on this machine, known or unknown?"""

import typer

from flows.commands import (
    workload_recording,
    workloads_changepoints,
    workloads_evaluate,
    workloads_fingerprint,
    workloads_identify,
    workloads_ingest,
    workloads_train,
    workloads_watch,
)

app = typer.Typer(help="Workloads: what is running on this machine, known or unknown?", no_args_is_help=True)
app.command()(workloads_ingest.ingest)
app.command()(workloads_fingerprint.fingerprint)
app.command()(workloads_train.train)
app.command()(workloads_identify.identify)
app.command()(workloads_watch.watch)
app.command()(workloads_changepoints.changepoints)
app.command()(workloads_evaluate.evaluate)
app.command()(workload_recording.record)
