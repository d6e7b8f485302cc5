"""What columns of job tables are called by whom: names that anybody may use, and the exports of systems that need more.

Data, not code: a new system is a row here. Aliases are in small letters without blanks, dashes and underscores, the
first that a table has counts. `a|b` is a, or b where a is empty; `a+b` joins two by a slash; ../a stands around the
list of a JSON document."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tasks.jobs.params import Status

BINARY = "binary"  # bytes, of which a KB has 1,024
HHMMSS = "hhmmss"  # 10203 is 01:02:03, behind a date or of a time span
ERROR = "error"  # not a column of ours: a row with one is failed, whatever its state says
ALIASES: dict[str, tuple[str, ...]] = {
    "run_id": (
        "runid", "jobrunid", "queryid", "executionid", "buildid", "pipelineid", "taskrunid", "attemptid", "jobid",
        "databaseid", "idbuild", "uuid", "uid", "id", "job.id", "buildnumber", "runnumber", "number", "laufnr", "hash",
    ),
    "plan_signature": (
        "queryparameterizedhash", "queryinfo.queryhashes.normalizedliterals", "queryhash", "planhash",
        "plansignature",
    ),
    "name": (
        "jobname", "job.name", "workflowname", "pipelinename", "pipeline.name", "definition.name", "runname",
        "taskname", "dagid", "buildtypeid", "substitutions.triggername", "buildtriggerid",
        "process", "flowname", "buildname", "job", "workflow", "pipeline", "task", "name",
        "application", "app", "appname", "script", "title", "auftrag", "toolname", "toolid", "tool",
    ),
    "submitted_at": (
        "submittedat", "submittime", "submitted", "submit", "queuedat", "queuedtime", "queued", "enqueuedat",
        "scheduledat", "requestedat", "createdat", "creationtime", "createtime", "created", "creationdate",
        "queuetime", "queueddate", "status.timeline.creationdatetime",
    ),
    "started_at": (
        "startedat", "startedon", "starttime", "startdate", "startts", "starttimestamp", "startdatetime", "started",
        "start", "runstartedat", "runstart", "status.timeline.startdatetime", "begintime", "beginat",
        "executionstart", "startzeit",
    ),
    "ended_at": (
        "endedat", "completedon", "endtime", "enddate", "endts", "endtimestamp", "enddatetime", "ended", "end",
        "finishedat", "finishtime", "finishdate", "finished", "runend", "completedat", "completiontime",
        "completetime", "stoppedat", "stoptime", "stopdate", "status.timeline.enddatetime", "endzeit",
    ),
    "wait_s": ("wait", "waittime", "queuedduration", "queueduration", "queuetime", "pendingtime", "delay"),
    "runtime_s": (
        "runtime", "runduration", "duration", "elapsed", "elapsedtime", "rundur", "dur", "durationin",
        "jobduration", "buildduration", "realtime", "executiontime", "totalelapsedtime", "walltime", "wallclock",
        "took", "timetaken", "totaltime", "jobruntime", "totalruntime", "dauer", "laufzeit", "seconds",
    ),
    "status": (
        "status.terminationdetails.code", "state.resultstate", "conclusion", "resultstate", "jobstatus",
        "jobrunstate", "runstatus", "statushumanized", "executionstatus", "finalstatus", "outcome", "result",
        "ergebnis", "status.state", "state.lifecyclestate", "lifecyclestate", "status", "state", "stat", "exitstatus",
        "exitcode", "exit", "returncode", "retcode", "rc", "success", "succeeded", "successful", "issuccess",
        "issuccessful", "isfailed", "hasfailed", "st",
    ),
    "user_name": ("user", "username", "useremail", "owner", "submitter", "submittedby", "benutzer", "bearbeiter"),
    "queue": ("queue", "queuename", "partition", "pool", "warehousename", "warteschlange"),
    "account": ("account",),
    "requested_cpus": ("requestedcpus", "reqcpus", "ncpus", "cpus", "cores", "ncores", "vcpus", "slots"),
    "cpu_s": ("cputime", "cpuseconds", "totalcpu"),
    "peak_memory_bytes": ("maxrss", "peakrss", "peakmemory", "maxmemory", "memorypeak"),
    "input_bytes": ("inputsize", "bytesscanned", "totalbytesprocessed", "datasize", "datenmenge"),
    ERROR: ("errorresult.reason", "errorreason", "errorresult"),
}  # fmt: skip
# Names that are put together of a word that says what stands in the column and of words that say nothing more, in seven
# languages and without accents: `Last start`, `TS_START_MS`, `Heure de début`. The first word counts.
NOUNS = (
    "job", "task", "workflow", "pipeline", "process", "batch", "script", "program", "name", "trabajo", "tarea",
    "proceso", "nombre", "tache", "travail", "traitement", "nom", "lavoro", "processo", "attivita", "nome", "trabalho",
    "tarefa", "auftrag", "aufgabe", "prozess", "vorgang", "taak", "proces", "naam",
)  # fmt: skip
NO_MORE = (
    "date", "time", "datetime", "timestamp", "ts", "dt", "at", "on", "in", "of", "the", "utc", "gmt", "epoch", "unix",
    "actual", "real", "last", "total", "run", "period", "internal", "fecha", "hora", "de", "del", "heure", "du", "le",
    "la", "data", "ora", "di", "do", "da", "zeit", "datum", "uhrzeit", "ns", "us", "ms", "s", "sec", "secs", "min",
    "mins", "seconds", "minutes", "hours", "milliseconds", *NOUNS,
)  # fmt: skip
WORDS: dict[str, tuple[str, ...]] = {
    "name": NOUNS,
    "submitted_at": ("submit", "submitted", "queued", "enqueued"),
    "started_at": (
        "start", "started", "begin", "began", "launched", "fired", "triggered", "inicio", "comienzo", "debut", "inizio",
        "avvio", "beginn", "date", "fecha", "datum",
    ),
    "ended_at": (
        "end", "ended", "finish", "finished", "stop", "stopped", "complete", "completed", "completion", "done", "fin",
        "finalizacion", "fine", "fim", "termino", "ende", "einde",
    ),
    "runtime_s": (
        "duration", "elapsed", "runtime", "duracion", "duree", "durata", "duracao", "dauer", "laufzeit", "duur",
        "minutes", "hours", "milliseconds",
    ),
    "status": (
        "status", "state", "result", "outcome", "estado", "resultado", "statut", "etat", "resultat", "stato", "esito",
        "risultato", "ergebnis", "zustand",
    ),
}  # fmt: skip
LAST = {"started_at": ("timestamp", "datetime", "date", "ts", "time")}  # where nothing else is called so
# What a run is called that has no name of its own: its kind where a plan tells jobs apart, else its text, its branch
KINDS = ("querytype", "statementtype", "jobtype")
TEXTS = ("querytext", "query", "command", "cmd", "ref", "branch")


@dataclass(frozen=True)
class System:
    """An export whose columns alone do not say all. has: columns that tell it (`a|b`: one of them is enough).

    columns: of ours. units: of numbers in other units. without: a pattern that is cut off names. words: patterns of
    what stands in its status, which mean that nowhere else. adds_tries: its runtime is that of all tries of a run, and
    the last one took no longer than from its start to its end."""

    title: str
    has: tuple[str, ...]
    columns: dict[str, str]
    units: Mapping[str, str] = field(default_factory=dict)
    without: str = ""
    words: Mapping[str, Status] = field(default_factory=dict)
    adds_tries: bool = False


HTCONDOR = System(
    "jobs of HTCondor",
    ("GlobalJobId", "JobStartDate", "JobStatus"),
    {
        "run_id": "GlobalJobId", "name": "JobBatchName|Cmd", "user_name": "Owner",
        "status": "JobStatus+ExitCode|ExitBySignal", "submitted_at": "QDate",
        "started_at": "JobCurrentStartDate|JobStartDate", "ended_at": "EnteredCurrentStatus|CompletionDate",
        "runtime_s": "RemoteWallClockTime",  # a job that was removed while it was held ended before
        "requested_cpus": "RequestCpus", "requested_memory_bytes": "RequestMemory",
        "peak_memory_bytes": "MemoryUsage",
    },
    {"requested_memory_bytes": "MiB", "peak_memory_bytes": "MiB", "runtime_s": "s"},
    words={
        "[15](/.*)?": "pending", "[267](/.*)?": "running", "3(/.*)?": "cancelled", "4(/(0|[Ff]alse))?": "completed",
        "4/.+": "failed",
    },
    adds_tries=True,
)  # fmt: skip
SQL_AGENT = System(
    "history of SQL Server Agent",
    ("run_status", "run_date", "run_time", "run_duration"),
    {
        "run_id": "instance_id", "name": "job_name|name|job_id", "status": "run_status",
        "started_at": "run_date+run_time", "runtime_s": "run_duration",
    },
    {"started_at": HHMMSS, "runtime_s": HHMMSS},
    words={"0": "failed", "1": "completed", "2": "failed", "3": "cancelled", "4": "running"},  # 2: is tried again
)  # fmt: skip
SYSTEMS = (
    replace(
        SQL_AGENT, has=(*SQL_AGENT.has, "step_name"),
        columns=SQL_AGENT.columns | {"name": "job_name|name|job_id+step_name"},
    ),
    SQL_AGENT,
    HTCONDOR,
    replace(
        HTCONDOR, has=("ClusterId", "ProcId", "JobStartDate", "JobStatus"),
        columns=HTCONDOR.columns | {"run_id": "ClusterId+ProcId"},  # condor_history -af, without its long names
    ),
    System(
        "runs of GitHub Actions",
        ("run_started_at", "conclusion", "updated_at"),
        {
            "run_id": "id", "name": "name|path", "status": "conclusion|status", "submitted_at": "created_at",
            "started_at": "run_started_at", "ended_at": "updated_at",
        },
    ),
    System(
        "gh run list",
        ("databaseId", "startedAt", "updatedAt"),
        {
            "run_id": "databaseId", "name": "workflowName|name", "status": "conclusion|status",
            "submitted_at": "createdAt", "started_at": "startedAt", "ended_at": "updatedAt",
        },
    ),
    System(
        "jobs of GitHub Actions",
        ("run_id", "id", "conclusion", "completed_at"),
        {
            "run_id": "id", "name": "workflow_name+name", "status": "conclusion|status", "submitted_at": "created_at",
            "started_at": "started_at", "ended_at": "completed_at",
        },
    ),
    System(
        "builds of Jenkins",
        ("number", "result", "timestamp", "duration"),
        {
            "run_id": "../fullName|../name|fullDisplayName|url+number",
            "name": "../fullName|../name|fullDisplayName|url", "status": "result", "started_at": "timestamp",
            "runtime_s": "duration",
        },
        {"runtime_s": "ms"},
    ),
    System(
        "DAG runs of Airflow",
        ("dag_id", "run_type", "start_date", "end_date", "state"),
        {
            "run_id": "dag_id+dag_run_id|run_id|logical_date|execution_date", "name": "dag_id", "status": "state",
            "submitted_at": "queued_at|queued_dttm", "started_at": "start_date", "ended_at": "end_date",
        },
    ),
    System(
        "trace of Nextflow",
        ("hash", "status", "realtime|duration", "name|process"),
        {
            "run_id": "hash", "name": "process|name", "status": "status", "submitted_at": "submit",
            "started_at": "start", "ended_at": "complete", "runtime_s": "realtime|duration",
            "requested_cpus": "cpus", "queue": "queue",
            "peak_memory_bytes": "peak_rss", "read_bytes": "rchar",
        },
        {"runtime_s": "ms", "peak_memory_bytes": BINARY, "read_bytes": BINARY},
        r"\s*\([^()]*\)\s*$",  # FASTQC (sample1): the tag in brackets is what the task worked on
    ),
    System(
        "activity runs of Azure Data Factory",
        ("activityRunId", "activityName", "activityRunStart"),
        {
            "run_id": "activityRunId", "name": "pipelineName+activityName", "status": "status",
            "started_at": "activityRunStart", "ended_at": "activityRunEnd", "runtime_s": "durationInMs",
        },
        {"runtime_s": "ms"},
    ),
    System(
        "clusters of EMR",  # one that was started for its steps ends with them
        ("Id", "Status.State", "Status.Timeline.ReadyDateTime"),
        {
            "run_id": "Id", "name": "Name", "status": "Status.State+Status.StateChangeReason.Code",
            "submitted_at": "Status.Timeline.CreationDateTime", "started_at": "Status.Timeline.ReadyDateTime",
            "ended_at": "Status.Timeline.EndDateTime",
        },
        words={
            "TERMINATED/ALL_STEPS_COMPLETED": "completed", "TERMINATED/.+": "cancelled",
            "TERMINATED_WITH_ERRORS/.+": "failed", "(STARTING|BOOTSTRAPPING)(/.*)?": "pending",
            "(RUNNING|WAITING|TERMINATING)(/.*)?": "running",
        },
    ),
    System(
        "run results of dbt",
        ("unique_id", "execution_time", "status"),
        {
            "run_id": "../metadata.invocation_id+unique_id", "name": "unique_id", "status": "status",
            "submitted_at": "timing.0.started_at|../metadata.generated_at", "started_at": "timing.0.started_at",
            "ended_at": "timing.-1.completed_at", "runtime_s": "execution_time",
        },
        {"runtime_s": "s"},
    ),
    System(
        "apps of YARN",
        ("finalStatus", "startedTime", "finishedTime"),
        {
            "run_id": "id", "name": "name", "user_name": "user", "queue": "queue", "status": "finalStatus|state",
            "submitted_at": "startedTime", "started_at": "launchTime|startedTime", "ended_at": "finishedTime",
        },
    ),
    System(
        "jobs of Slurm, by sacct --json",
        ("job_id", "time.submission", "time.elapsed", "state.current"),
        {
            "run_id": "job_id", "name": "name", "user_name": "user", "account": "account", "queue": "partition",
            "status": "state.current", "submitted_at": "time.submission", "started_at": "time.start",
            "ended_at": "time.end", "runtime_s": "time.elapsed", "requested_cpus": "required.CPUs",
            "requested_runtime_s": "time.limit.number|time.limit",
        },
        {"requested_runtime_s": "min"},
    ),
    System(
        "applications of a Spark history server",
        ("id", "attempts.0.startTimeEpoch", "attempts.0.completed"),
        {
            "run_id": "id", "name": "name", "user_name": "attempts.0.sparkUser", "status": "attempts.0.completed",
            "started_at": "attempts.0.startTimeEpoch", "ended_at": "attempts.0.endTimeEpoch",
        },
        words={"[Tt]rue": "completed", "[Ff]alse": "running"},
    ),
    System(
        "jobs of Ray",
        ("submission_id", "entrypoint", "start_time"),
        {
            "run_id": "submission_id|job_id", "name": "metadata.job_name|entrypoint", "status": "status",
            "started_at": "start_time", "ended_at": "end_time",
        },
        words={"STOPPED": "cancelled"},
    ),
    System(
        "workflows of Argo",
        ("metadata.uid", "status.phase", "status.startedAt"),
        {
            "run_id": "metadata.uid", "status": "status.phase",
            "name": "metadata.namespace+metadata.labels.workflows.argoproj.io/cron-workflow"
            "|spec.workflowTemplateRef.name|metadata.generateName|metadata.name",
            "submitted_at": "metadata.creationTimestamp", "started_at": "status.startedAt",
            "ended_at": "status.finishedAt",
        },
        without="-$",  # what it generates names of
    ),
    System(
        "runs of Tekton",
        ("metadata.uid", "status.startTime", "spec.pipelineRef.name|spec.taskRef.name"),
        {
            "run_id": "metadata.uid", "name": "metadata.namespace+spec.pipelineRef.name|spec.taskRef.name",
            "status": "status.conditions.0.reason", "submitted_at": "metadata.creationTimestamp",
            "started_at": "status.startTime", "ended_at": "status.completionTime",
        },
    ),
    System(
        "pods of Kubernetes",
        ("metadata.uid", "status.phase", "status.startTime"),
        {
            "run_id": "metadata.uid", "name": "metadata.namespace+metadata.ownerReferences.0.name|metadata.name",
            "status": "status.phase", "submitted_at": "metadata.creationTimestamp",
            "started_at": "status.startTime", "ended_at": "status.containerStatuses.-1.state.terminated.finishedAt"
            "|status.conditions.-1.lastTransitionTime",
        },
    ),
    System(
        "jobs of Dataproc",
        ("reference.jobId", "status.stateStartTime", "statusHistory.0.stateStartTime"),
        {
            "run_id": "reference.jobId", "status": "status.state",
            "name": "pysparkJob.mainPythonFileUri|sparkJob.mainClass|sparkJob.mainJarFileUri|hiveJob.queryFileUri"
            "|hadoopJob.mainClass|hadoopJob.mainJarFileUri|placement.clusterName",
            "submitted_at": "statusHistory.0.stateStartTime", "started_at": "statusHistory.-1.stateStartTime",
            "ended_at": "status.stateStartTime",
        },
    ),
    System(
        "jobs of Kubernetes",
        ("metadata.uid", "metadata.name", "status.startTime"),
        {
            "run_id": "metadata.uid", "name": "metadata.namespace+metadata.ownerReferences.0.name|metadata.name",
            "status": "status.conditions.type", "submitted_at": "metadata.creationTimestamp",
            "started_at": "status.startTime", "ended_at": "status.completionTime|status.conditions.at",
        },
    ),
)  # fmt: skip
