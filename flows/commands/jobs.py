"""`whorl jobs`: how will the next run of this recurring job vary, why, and what would reduce it?"""

import typer

from flows.commands import characterise, evaluate, explain, ingest, predict, recording, summary, train, watch, whatif

app = typer.Typer(
    help="Recurring jobs: how will the next run vary, why, and what would reduce it?", no_args_is_help=True
)
app.command()(ingest.ingest)
app.command()(summary.summary)
app.command()(watch.watch)
app.command()(characterise.characterise)
app.command()(train.train)
app.command()(predict.predict)
app.command()(explain.explain)
app.command()(whatif.whatif)
app.command()(evaluate.evaluate)
app.command()(recording.record)
