"""`whorl jobs`: how will the next run of this recurring job vary?"""

import typer

from flows.commands import evaluate, ingest, recording, summary, watch

app = typer.Typer(help="Recurring jobs: how will the next run vary?", no_args_is_help=True)
app.command()(ingest.ingest)
app.command()(summary.summary)
app.command()(watch.watch)
app.command()(recording.record)
app.command()(evaluate.evaluate)
