"""`whorl demo`: the whole story on recorded data, as five short answers."""

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from flows.cli.invocation import Invocation, Output, run_flow
from flows.cli.output import as_command, clean, show_facts
from tasks.quantities import counted, duration, ratio, share

if TYPE_CHECKING:
    from tasks.settings import Settings

KEPT = "demo.json"
NO_RISK = "none: no job has enough runs for a prediction"
UNKNOWN = "an unknown workload"
ADVISED = {"answer": "answer", "how sure": "sureness", "because": "reason", "profile next": "next_run"}
ALARMS = "SELECT word, raised_at, message FROM ops.alarms"


def demo(call: Invocation) -> Output:
    """Tell the whole story on recorded jobs, workloads, nodes and machine types.

    The log that whorl ships is read, summarised, watched and predicted, a recorded run of a workload that was held out
    is named, recorded nodes are ranked, and a job gets a machine type, in a home of its own: --home, or demo/ in the
    home folder. The same demo again adds nothing, and answers at once while recordings, settings, code and that home
    are as they were."""
    if call.home is None:
        call = replace(call, home=call.warehouse.home / "demo")
    story = _kept(call.settings)
    if story is None:
        story = run_flow(call, "whorl-demo")
        _keep(call.settings, story)
    yield story
    show_story(story, call.warehouse.home)


def _kept(settings: "Settings") -> dict[str, Any] | None:
    """What the last demo told, if all that it rests on is as it was. An ending that nobody can read is none."""
    try:
        kept = json.loads((settings.warehouse.home / KEPT).read_text(encoding="utf-8"))
        return cast(dict[str, Any], kept["told"]) if kept["state"] == _state(settings) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _keep(settings: "Settings", story: dict[str, Any]) -> None:
    """Write down what was told, without alarms: told again, none of them is new."""
    from tasks.storage import whole

    file = settings.warehouse.home / KEPT
    with whole(file) as draft:
        draft.write_text(json.dumps({"state": _state(settings), "told": {**story, "alarms": []}}), encoding="utf-8")


def _state(settings: "Settings") -> str:
    """Hash of all that the answers rest on: settings, code, recordings, and what the demo has made of them."""
    from tasks import datasets
    from tasks.warehouse.sources import CODE_SUFFIXES, ROOT, contents_hash

    warehouse = settings.warehouse
    log = warehouse.file.with_name(f"{warehouse.file.name}.wal")
    made = (warehouse.file, log, warehouse.models, Path(warehouse.landing_folder), warehouse.home / "reports")
    parts = (
        settings.model_dump_json(),
        contents_hash(ROOT / "flows", ROOT / "tasks", suffixes=CODE_SUFFIXES),
        contents_hash(*(datasets.RECORDED / word for word in ("jobs", "workloads", "nodes", "advice"))),
        contents_hash(*made),
    )
    return " ".join(parts)


def show_story(story: dict[str, Any], home: Path) -> None:
    """Print five answers, each with how sure it is and why; then where to look, and what was read."""
    workload, nodes, advice = story["workload"], story["nodes"], story["advice"]
    advised = {name: advice[key] for name, key in ADVISED.items()} | {"held back": " ".join(advice["checks"][:2])}
    answers = {
        "Which job's next run is most at risk?": _risk(story["riskiest"]),
        "What ran here?": _named(workload),
        "Which node is best?": _best(nodes),
        "Is a node degrading?": _health(nodes["verdicts"]),
        "Which machine type should a job run on?": advised,
    }
    for question, facts in answers.items():
        print(question)
        show_facts({f"  {name}": value for name, value in facts.items()})
        print()
    index = str(Path(story["report"]).with_name("index.html"))
    pages = {"jobs": story["report"], "workloads": workload["report"], "nodes": nodes["report"]}
    show_facts({"all on one page": index, **pages})
    print()
    show_facts(_read(story))
    print()
    ask, alarms = as_command("--home", home), as_command("whorl", "query", ALARMS)
    show_facts({"look further": f"whorl jobs summary {ask}", "all alarms": f"{alarms} {ask}"})


def _read(story: dict[str, Any]) -> dict[str, str]:
    """What was read, a line a word."""
    n_files, workload, nodes = story["n_files"], story["workload"], story["nodes"]
    refused = f", {counted(story['n_quarantined'], 'row')} refused" if story["n_quarantined"] else ""
    emulated = f", {nodes['n_emulated']:,} of them emulated" if nodes["n_emulated"] else ""
    lines = {
        "jobs": f"{counted(story['n_runs'], 'run')} of {counted(story['n_jobs'], 'job')}{refused}",
        "workloads": f"{counted(workload['n_runs'] + workload['n_held_out'] + 1, 'run')} of "
        f"{counted(workload['n_workloads'], 'workload')}",
        "nodes": f"{counted(nodes['n_executions'], 'execution')} of benchmarks on "
        f"{counted(nodes['n_nodes'], 'node')}{emulated}",
    }
    return {f"read {word}": f"{line}, from {counted(n_files.get(word, 0), 'file')}" for word, line in lines.items()}


def _risk(prediction: dict[str, Any] | None) -> dict[str, str]:
    if prediction is None:
        return {"answer": NO_RISK}
    chance, usual = share(prediction["exceeds_2x_share"]), duration(prediction["usual_s"])
    bound = duration(prediction["p95_s"])
    return {
        "answer": prediction["group_key"],
        "how sure": f"over twice its usual {usual} with probability {chance}; 95 % under {bound}",
        "because": prediction["because"],
        "would help": prediction["would_help"],
    }


def _named(identified: dict[str, Any]) -> dict[str, str]:
    """What the model made of the run that it has never seen, and the counters and phases that say so."""
    named = f"{identified['workload']}, a known workload" if identified["workload"] else UNKNOWN
    is_right = identified["workload"] == identified["label"]
    label = "so it is labelled" if is_right else f"labelled {identified['label']}, so that is wrong"
    others = f"{share(identified['accuracy'])} of {counted(identified['n_held_out'], 'other run')} that were held out"
    return {
        "answer": f"{named} ({label}): {identified['run_id']}, which was held out",
        "how sure": f"{share(identified['confidence'])}; the model is right for {others}",
        "because": clean(next(iter(identified["reasons"]), "no counter or phase stands out")),
    }


def _best(nodes: dict[str, Any]) -> dict[str, str]:
    overall, *aspects = nodes["best"]
    same = [row["aspect"] for row in aspects if row["nodes"] == overall["nodes"]]
    others = [f"{_nodes(row)} in {row['aspect']}" for row in aspects if row["nodes"] != overall["nodes"]]
    first = [f"it is best in {', '.join(same)}"] if same else []
    return {
        "answer": f"{_nodes(overall)}, {ratio(overall['score'])} times the reference fleet",
        "because": "; ".join(first + others),
    }


def _nodes(best: dict[str, Any]) -> str:
    return " and ".join(best["nodes"]) + (" (tied)" if len(best["nodes"]) > 1 else "")


def _health(verdicts: dict[str, Any]) -> dict[str, str]:
    """Which node is degrading, how far verdicts can be trusted, and what watching costs."""
    sure = f"{verdicts['n_flagged']:,} of {counted(verdicts['n_judged'], 'execution')} are flagged"
    figures, cost = verdicts["figures"], verdicts["cost_share"]
    if "recall" in figures and "false_alarms_per_1000" in figures:
        sure += (
            f"; of those that it has not seen the detector finds {share(figures['recall'])} under recorded stress, "
            f"and flags {figures['false_alarms_per_1000']:,.0f} of 1,000 others"
        )
    costs = "not known" if cost is None else f"{share(cost)} of a node's time at most, at the pace of the recording"
    because = {"because": clean(verdicts["alarms"][0])} if verdicts["alarms"] else {}
    return {"answer": verdicts["degrading"], **because, "how sure": sure, "costs": costs}
