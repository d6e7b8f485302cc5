"""`whorl nodes`: how good is this node in each resource aspect, and is it degrading?"""

import typer

from flows.commands import (
    nodes_evaluate,
    nodes_explain,
    nodes_fingerprint,
    nodes_ingest,
    nodes_metrics,
    nodes_preprocess,
    nodes_rank,
    nodes_recording,
    nodes_report,
    nodes_summary,
    nodes_train,
    nodes_tune,
    nodes_watch,
)

app = typer.Typer(help="Nodes: how good is each in each resource, and is it degrading?", no_args_is_help=True)
app.command()(nodes_recording.record)
app.command()(nodes_ingest.ingest)
app.command()(nodes_summary.summary)
app.command()(nodes_preprocess.preprocess)
app.command()(nodes_metrics.metrics)
app.command()(nodes_rank.rank)
app.command()(nodes_train.train)
app.command()(nodes_tune.tune)
app.command()(nodes_fingerprint.fingerprint)
app.command()(nodes_watch.watch)
app.command()(nodes_explain.explain)
app.command()(nodes_evaluate.evaluate)
app.command()(nodes_report.report)
