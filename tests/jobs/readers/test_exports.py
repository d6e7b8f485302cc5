# ruff: noqa: E501 (a row of a table stands in a line)
"""Tables as people have them: exports of twelve systems in two variants each and of seventeen in one, and tables in
words of seven languages, read in one call without an option.

Each was written from the system's published schema (named at its table), before the reader was. Rows by status, jobs and
the median runtime of the completed runs are worked out by hand."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pytest

from tasks.errors import BadInput
from tasks.jobs.grouping import group_keys
from tasks.jobs.intake import Intake, land_log, preview_log
from tasks.jobs.params import GroupParams, ReadParams
from tasks.jobs.readers import READERS, detect
from tasks.warehouse.landing import Batch
from tasks.warehouse.place import Warehouse


class Export(NamedTuple):
    """A file, and what is in it: statuses with their number of rows, recurring jobs, median runtime (s) of completed."""

    file: str
    text: str
    statuses: dict[str, int]
    n_jobs: int
    median_s: float
    understood: str  # a part of what is said first


def lines(text: str) -> str:
    return "\n".join(line.strip() for line in text.strip().splitlines()) + "\n"


def records(names: str, *rows: tuple[Any, ...]) -> list[dict[str, Any]]:
    return [dict(zip(names.split(), row, strict=True)) for row in rows]


# docs.gitlab.com/api/jobs: list project jobs
GITLAB_JOBS = records(
    "id name stage ref status created_at started_at finished_at erased_at duration queued_duration user pipeline",
    (8101, "load", "run", "main", "success", "2024-03-01T02:00:00.000Z", "2024-03-01T02:00:05.500Z",
     "2024-03-01T02:10:05.500Z", None, 600.0, 5.5, {"id": 1, "username": "ada"}, {"id": 501, "status": "success"}),
    (8102, "load", "run", "main", "success", "2024-03-02T02:00:00.000Z", "2024-03-02T02:00:05.000Z",
     "2024-03-02T02:11:05.000Z", None, 660.0, 5.0, {"id": 2, "username": "bob"}, {"id": 502, "status": "success"}),
    (8103, "test", "test", "main", "failed", "2024-03-02T02:11:05.000Z", "2024-03-02T02:11:06.000Z",
     "2024-03-02T02:13:06.000Z", None, 120.0, 1.0, {"id": 2, "username": "bob"}, {"id": 502, "status": "failed"}),
    (8104, "test", "test", "main", "canceled", "2024-03-03T02:11:05.000Z", None,
     "2024-03-03T02:13:06.000Z", None, None, 1.0, {"id": 2, "username": "bob"}, {"id": 503, "status": "canceled"}),
    (8105, "test", "test", "main", "manual", "2024-03-04T02:11:05.000Z", None, None, None, None, None,
     {"id": 2, "username": "bob"}, {"id": 504, "status": "manual"}),
)  # fmt: skip
# docs.gitlab.com/api/pipelines, as a script writes it down
GITLAB_PIPELINES = lines("""
    id,iid,project_id,status,source,ref,sha,created_at,started_at,finished_at,duration,queued_duration,coverage
    501,1,7,success,schedule,main,a1b2c3,2024-03-01 02:00:00 UTC,2024-03-01 02:00:01 UTC,2024-03-01 02:05:01 UTC,300,1,
    502,2,7,failed,push,main,a1b2c4,2024-03-02 02:00:00 UTC,2024-03-02 02:00:01 UTC,2024-03-02 02:00:46 UTC,45,1,98.5
    503,3,7,success,push,release,a1b2c4,2024-03-02 03:00:00 UTC,2024-03-02 03:00:02 UTC,2024-03-02 03:06:42 UTC,400,2,
    504,4,7,running,push,main,a1b2c5,2024-03-02 04:00:00 UTC,2024-03-02 04:00:02 UTC,,,2,
""")
# docs.github.com/rest/actions/workflow-runs: list workflow runs for a repository
GITHUB_RUNS = records(
    "id name head_branch run_number event status conclusion workflow_id created_at updated_at run_attempt "
    "run_started_at actor",
    (11, "ETL", "main", 1, "schedule", "completed", "success", 5, "2024-03-01T02:00:00Z", "2024-03-01T02:05:00Z", 1,
     "2024-03-01T02:00:00Z", {"login": "ada"}),
    (12, "ETL", "main", 2, "push", "completed", "failure", 5, "2024-03-02T02:00:00Z", "2024-03-02T02:01:10Z", 1,
     "2024-03-02T02:00:10Z", {"login": "bob"}),
    (13, "Docs", "main", 3, "push", "completed", "success", 6, "2024-03-02T02:00:00Z", "2024-03-02T02:02:00Z", 1,
     "2024-03-02T02:00:00Z", {"login": "bob"}),
    (14, "ETL", "main", 4, "push", "in_progress", None, 5, "2024-03-03T02:00:00Z", "2024-03-03T02:00:30Z", 1,
     "2024-03-03T02:00:00Z", {"login": "ada"}),
)  # fmt: skip
# docs.github.com/rest/actions/workflow-jobs: `run_id` is that of the workflow run, three jobs have it
GITHUB_JOBS = records(
    "id run_id workflow_name head_branch status conclusion created_at started_at completed_at name labels runner_id",
    (901, 77, "CI", "main", "completed", "success", "2024-03-01T02:00:00Z", "2024-03-01T02:00:10Z",
     "2024-03-01T02:01:50Z", "build", ["ubuntu-latest"], 1),
    (902, 77, "CI", "main", "completed", "timed_out", "2024-03-01T02:00:00Z", "2024-03-01T02:00:10Z",
     "2024-03-01T08:00:10Z", "test", ["ubuntu-latest"], 2),
    (903, 77, "CI", "main", "completed", "skipped", "2024-03-01T02:00:00Z", "2024-03-01T02:01:50Z",
     "2024-03-01T02:01:50Z", "deploy", ["ubuntu-latest"], None),
)  # fmt: skip
# Jenkins remote access API: JOB/api/json?tree=fullName,builds[number,result,building,timestamp,duration]
MARCH_MS = 1709258400000  # 2024-03-01T02:00:00Z
JENKINS = {
    "_class": "org.jenkinsci.plugins.workflow.job.WorkflowJob", "fullName": "data/etl-nightly",
    "builds": records(
        "_class number id result building timestamp duration estimatedDuration url",
        ("WorkflowRun", 45, "45", None, True, MARCH_MS + 400_000_000, 0, 60000, "http://j/45/"),
        ("WorkflowRun", 44, "44", "ABORTED", False, MARCH_MS + 300_000_000, 1000, 60000, "http://j/44/"),
        ("WorkflowRun", 43, "43", "SUCCESS", False, MARCH_MS + 200_000_000, 58766, 60000, "http://j/43/"),
        ("WorkflowRun", 42, "42", "FAILURE", False, MARCH_MS + 100_000_000, 5000, 60000, "http://j/42/"),
        ("WorkflowRun", 41, "41", "SUCCESS", False, MARCH_MS, 61234, 60000, "http://j/41/"),
    ),
}  # fmt: skip
JENKINS_JOBS = {
    "_class": "hudson.model.Hudson",
    "jobs": [
        {"name": "etl", "builds": records(
            "number result timestamp duration", (1, "SUCCESS", MARCH_MS, 10_000))},
        {"name": "report", "builds": records(
            "number result timestamp duration",
            (2, "NOT_BUILT", MARCH_MS + 60_000, 0), (1, "UNSTABLE", MARCH_MS, 20_000))},
        {"name": "new", "builds": []},
    ],
}  # fmt: skip
# airflow.models.dagrun.DagRun: the table dag_run; run_id is the same for every DAG of a schedule
DAG_RUNS = lines("""
    id,dag_id,queued_at,execution_date,start_date,end_date,state,run_id,creating_job_id,external_trigger,run_type,conf
    1,sales,2024-03-01 02:00:00+00,2024-02-29 02:00:00+00,2024-03-01 02:00:01+00,2024-03-01 02:02:01+00,success,scheduled__2024-02-29T02:00:00+00:00,3,f,scheduled,\\N
    2,hr,2024-03-01 02:00:00+00,2024-02-29 02:00:00+00,2024-03-01 02:00:01+00,2024-03-01 02:01:01+00,success,scheduled__2024-02-29T02:00:00+00:00,3,f,scheduled,\\N
    3,sales,2024-03-02 02:00:00+00,2024-03-01 02:00:00+00,2024-03-02 02:00:01+00,2024-03-02 02:00:31+00,failed,scheduled__2024-03-01T02:00:00+00:00,3,f,scheduled,\\N
    4,hr,2024-03-02 02:00:00+00,2024-03-01 02:00:00+00,2024-03-02 02:00:01+00,,running,scheduled__2024-03-01T02:00:00+00:00,3,f,scheduled,\\N
""")
# airflow.models.taskinstance.TaskInstance: the table task_instance, as a German spreadsheet saves it
TASK_INSTANCES = lines("""
    task_id;dag_id;run_id;map_index;start_date;end_date;duration;state;try_number;unixname;pool;queue;queued_dttm
    extract;sales;r1;-1;2024-03-01 02:00:01+00;2024-03-01 02:00:11+00;10.0;success;1;airflow;default_pool;default;2024-03-01 02:00:00+00
    extract;sales;r2;-1;2024-03-02 02:00:01+00;2024-03-02 02:00:21+00;20.0;success;1;airflow;default_pool;default;2024-03-02 02:00:00+00
    load;sales;r1;-1;2024-03-01 02:00:12+00;2024-03-01 02:00:32+00;20.0;failed;1;airflow;default_pool;default;2024-03-01 02:00:11+00
    load;sales;r2;-1;;2024-03-02 02:00:21+00;;upstream_failed;0;airflow;default_pool;default;
""")
# docs.seqera.io/nextflow/reports: the trace file with its default fields; a failed task without a realtime, one cached
NEXTFLOW = lines("""
    task_id\thash\tnative_id\tname\tstatus\texit\tsubmit\tduration\trealtime\t%cpu\tpeak_rss\tpeak_vmem\trchar\twchar
    1\tab/000001\t101\tQC:FASTQC (s1)\tCOMPLETED\t0\t2024-03-01 02:00:00.123\t1m 10s\t1m 2s\t98.2%\t1.5 GB\t3 GB\t20.5 MB\t1 KB
    2\tab/000002\t102\tQC:FASTQC (s2)\tCOMPLETED\t0\t2024-03-01 02:00:00.223\t1s\t250ms\t10.0%\t12.5 MB\t30 MB\t2 MB\t1 KB
    3\tab/000003\t103\tSTAR (s1)\tCOMPLETED\t0\t2024-03-01 02:02:00.123\t1h 2m 10s\t1h 2m 3s\t780.1%\t32 GB\t33 GB\t2 GB\t1 GB
    4\tab/000004\t104\tSTAR (s2)\tFAILED\t1\t2024-03-01 02:02:00.123\t5.5s\t-\t-\t-\t-\t-\t-
    5\tab/000005\t105\tSTAR (s3)\tABORTED\t-\t2024-03-01 02:02:00.123\t-\t-\t-\t-\t-\t-\t-
    6\tab/000006\t90\tQC:FASTQC (s3)\tCACHED\t0\t2024-02-29 02:00:00.123\t1m\t58s\t98.2%\t1.5 GB\t3 GB\t20.5 MB\t1 KB
""")
NEXTFLOW_RAW = lines(f"""
    task_id\thash\tprocess\ttag\tname\tstatus\texit\tsubmit\tstart\tcomplete\tduration\trealtime\tcpus\tpeak_rss
    1\tcd/000001\tFASTQC\ts1\tFASTQC (s1)\tCOMPLETED\t0\t{MARCH_MS}\t{MARCH_MS + 4000}\t{MARCH_MS + 66000}\t66000\t61000\t2\t1073741824
    2\tcd/000002\tFASTQC\ts2\tFASTQC (s2)\tCOMPLETED\t0\t{MARCH_MS}\t{MARCH_MS + 4000}\t{MARCH_MS + 64000}\t64000\t59000\t2\t1073741824
    3\tcd/000003\tSTAR\ts1\tSTAR (s1)\tFAILED\t137\t{MARCH_MS}\t{MARCH_MS + 1000}\t{MARCH_MS + 6000}\t6000\t5000\t8\t-
""")


def dbt(*results: tuple[str, str, float, str | None]) -> str:
    """schemas.getdbt.com/dbt/run-results/v6.json. results: status, unique id, execution time, start of the minute."""

    def timing(start: str | None, took_s: float) -> list[dict[str, str]]:
        if start is None:
            return []
        ended = pd.Timestamp(start) + pd.Timedelta(seconds=took_s)
        return [{"name": "compile", "started_at": start, "completed_at": start},
                {"name": "execute", "started_at": start, "completed_at": ended.isoformat()}]  # fmt: skip

    found = [
        {"status": status, "timing": timing(start, took_s), "thread_id": "Thread-1", "execution_time": took_s,
         "adapter_response": {"_message": "OK", "rows_affected": 7}, "message": None, "failures": None,
         "unique_id": unique_id, "compiled": True}
        for status, unique_id, took_s, start in results
    ]  # fmt: skip
    metadata = {"dbt_schema_version": "https://schemas.getdbt.com/dbt/run-results/v6.json", "dbt_version": "1.8.0",
                "generated_at": "2024-03-01T02:01:00.000000Z", "invocation_id": "0f-1", "env": {}}  # fmt: skip
    return json.dumps({"metadata": metadata, "results": found, "elapsed_time": 9.5, "args": {"which": "build"}})


# docs.snowflake.com/sql-reference/account-usage/query_history; times in ms, a text over two lines
SNOWFLAKE = """QUERY_ID,QUERY_TEXT,DATABASE_NAME,QUERY_TYPE,USER_NAME,WAREHOUSE_NAME,WAREHOUSE_SIZE,EXECUTION_STATUS,ERROR_CODE,ERROR_MESSAGE,START_TIME,END_TIME,TOTAL_ELAPSED_TIME,BYTES_SCANNED,QUERY_PARAMETERIZED_HASH
q1,"select a,
 b from t where d = '2024-02-29'",SALES,SELECT,ETL,WH,X-Small,SUCCESS,,,2024-03-01 02:00:00.000 -0800,2024-03-01 02:00:12.000 -0800,12000,1048576,aaaaaaaa1111
q2,"select a, b from t where d = '2024-03-01'",SALES,SELECT,ETL,WH,X-Small,SUCCESS,,,2024-03-02 02:00:00.000 -0800,2024-03-02 02:00:08.000 -0800,8000,1048576,aaaaaaaa1111
q3,"insert into u select 1",SALES,INSERT,ETL,WH,X-Small,FAIL,2003,"SQL compilation error: ""u"" is no table",2024-03-02 02:00:00.000 -0800,2024-03-02 02:00:00.500 -0800,500,0,bbbbbbbb2222
q4,"insert into u select 2",SALES,INSERT,ETL,WH,X-Small,SUCCESS,,,2024-03-02 03:00:00.000 -0800,2024-03-02 03:00:04.000 -0800,4000,0,bbbbbbbb2222
"""
SNOWFLAKE_JSON = records(  # the table function, as `snow sql --format json` prints it: a query that runs ends in 1969
    "QUERY_ID QUERY_TEXT WAREHOUSE_NAME EXECUTION_STATUS START_TIME END_TIME TOTAL_ELAPSED_TIME",
    ("q7", "CALL load_sales()", "WH", "SUCCESS", "2024-03-01T02:00:00-08:00", "2024-03-01T02:00:03-08:00", 3000),
    ("q8", "CALL load_sales()", "WH", "SUCCESS", "2024-03-02T02:00:00-08:00", "2024-03-02T02:00:05-08:00", 5000),
    ("q9", "CALL load_sales()", "WH", "RUNNING", "2024-03-03T02:00:00-08:00", "1969-12-31T16:00:00-08:00", 900),
)
# cloud.google.com/bigquery/docs/information-schema-jobs, as `bq query --format=json` prints it: all values are text
BIGQUERY = records(
    "creation_time user_email job_id job_type statement_type start_time end_time state error_result "
    "total_bytes_processed total_slot_ms query query_info",
    ("2024-03-01 02:00:00", "etl@x.org", "bq_1", "QUERY", "SELECT", "2024-03-01 02:00:01", "2024-03-01 02:00:11", "DONE",
     None, "1048576", "20000", "SELECT 1", {"query_hashes": {"normalized_literals": "aaaaaaaa1111"}}),
    ("2024-03-02 02:00:00", "etl@x.org", "bq_2", "QUERY", "SELECT", "2024-03-02 02:00:01", "2024-03-02 02:00:21", "DONE",
     None, "1048576", "30000", "SELECT 2", {"query_hashes": {"normalized_literals": "aaaaaaaa1111"}}),
    ("2024-03-02 03:00:00", "etl@x.org", "bq_3", "QUERY", "INSERT", "2024-03-02 03:00:01", "2024-03-02 03:00:02", "DONE",
     {"reason": "invalidQuery", "message": "Syntax error"}, "0", None, "INSERT", {"query_hashes": {"normalized_literals": "bbbbbbbb2222"}}),
    ("2024-03-02 04:00:00", "etl@x.org", "bq_4", "QUERY", "INSERT", "2024-03-02 04:00:01", None, "RUNNING",
     None, None, None, "INSERT", {"query_hashes": {"normalized_literals": "bbbbbbbb2222"}}),
)  # fmt: skip
BIGQUERY_CSV = lines("""
    creation_time,user_email,job_id,state,error_reason,start_time,end_time,total_slot_ms,query
    2024-03-01 02:00:00.123456 UTC,etl@x.org,bq_5,DONE,,2024-03-01 02:00:01.5 UTC,2024-03-01 02:00:31.5 UTC,100,CALL load()
    2024-03-02 02:00:00.123456 UTC,etl@x.org,bq_6,DONE,,2024-03-02 02:00:01.5 UTC,2024-03-02 02:00:51.5 UTC,100,CALL load()
    2024-03-03 02:00:00.123456 UTC,etl@x.org,bq_7,DONE,rateLimitExceeded,2024-03-03 02:00:01 UTC,2024-03-03 02:00:02 UTC,,CALL load()
    2024-03-04 02:00:00.123456 UTC,etl@x.org,bq_8,PENDING,,,,,CALL report()
""")
# docs.databricks.com/api/workspace/jobs/listruns 2.1: times in ms, 0 for an end that is not yet
DATABRICKS = {"runs": records(
    "job_id run_id number_in_job run_name creator_user_name state start_time setup_duration execution_duration "
    "cleanup_duration end_time trigger",
    (11, 1001, 1001, "nightly-etl", "ada@x.org", {"life_cycle_state": "TERMINATED", "result_state": "SUCCESS", "state_message": ""},
     MARCH_MS, 60000, 540000, 0, MARCH_MS + 600000, "PERIODIC"),
    (11, 1002, 1002, "nightly-etl", "bob@x.org", {"life_cycle_state": "TERMINATED", "result_state": "SUCCESS", "state_message": ""},
     MARCH_MS + 86400000, 60000, 600000, 0, MARCH_MS + 86400000 + 660000, "PERIODIC"),
    (11, 1003, 1003, "nightly-etl", "bob@x.org", {"life_cycle_state": "INTERNAL_ERROR", "result_state": "FAILED", "state_message": "x"},
     MARCH_MS + 172800000, 60000, 0, 0, MARCH_MS + 172800000 + 60000, "PERIODIC"),
    (12, 1004, 1004, "adhoc", "bob@x.org", {"life_cycle_state": "TERMINATED", "result_state": "TIMEDOUT", "state_message": ""},
     MARCH_MS, 60000, 3540000, 0, MARCH_MS + 3600000, "ONE_TIME"),
    (12, 1005, 1005, "adhoc", "bob@x.org", {"life_cycle_state": "RUNNING", "state_message": ""},
     MARCH_MS + 7200000, 60000, 0, 0, 0, "ONE_TIME"),
), "has_more": False}  # fmt: skip
DATABRICKS_STATUS = records(  # 2.2, as the CLI prints it: `status` in place of `state`, tasks have no duration of their own
    "job_id run_id run_name status start_time end_time run_duration",
    (11, 2001, "nightly-etl", {"state": "TERMINATED", "termination_details": {"code": "SUCCESS", "type": "SUCCESS", "message": ""}},
     MARCH_MS, MARCH_MS + 61000, 61000),
    (11, 2002, "nightly-etl", {"state": "TERMINATED", "termination_details": {"code": "RUN_EXECUTION_ERROR", "type": "CLIENT_ERROR", "message": ""}},
     MARCH_MS + 86400000, MARCH_MS + 86400000 + 5000, 5000),
    (11, 2003, "nightly-etl", {"state": "TERMINATED", "termination_details": {"code": "USER_CANCELED", "type": "SUCCESS", "message": ""}},
     MARCH_MS + 172800000, MARCH_MS + 172800000 + 7000, 7000),
)  # fmt: skip


def kubernetes(*jobs: tuple[str, str, str | None, str, str | None, list[tuple[str, str]]]) -> str:
    """kubernetes.io/docs/reference/kubernetes-api/workload-resources/job-v1: kubectl get jobs -o json.

    jobs: namespace, name, owner, start, completion, and conditions (type, time) that are true."""
    items = []
    for space, name, owner, start, end, conditions in jobs:
        metadata: dict[str, Any] = {"name": name, "namespace": space, "uid": f"u-{space}-{name}", "creationTimestamp": start,
                                    "labels": {"team": "data"}}  # fmt: skip
        metadata |= {"ownerReferences": [{"kind": "CronJob", "name": owner, "controller": True}]} if owner else {}
        status: dict[str, Any] = {"startTime": start, "ready": 0}
        status |= {"completionTime": end} if end else {}
        told = [{"type": kind, "status": "True", "lastTransitionTime": at, "reason": "r"} for kind, at in conditions]
        status |= {"conditions": told} if told else {"active": 1}
        spec = {
            "completions": 1,
            "parallelism": 1,
            "template": {"spec": {"containers": [{"name": "main", "image": "x"}]}},
        }
        items.append({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec, "status": status})
    return json.dumps(
        {"apiVersion": "v1", "items": items, "kind": "List", "metadata": {"resourceVersion": ""}}, indent=4
    )


K8S = kubernetes(
    ("data", "etl-28486200", "etl", "2024-03-01T02:00:00Z", "2024-03-01T02:02:00Z", [("Complete", "2024-03-01T02:02:00Z")]),
    ("data", "etl-28487640", "etl", "2024-03-02T02:00:00Z", "2024-03-02T02:01:40Z",
     [("SuccessCriteriaMet", "2024-03-02T02:01:40Z"), ("Complete", "2024-03-02T02:01:40Z")]),
    ("data", "etl-28489080", "etl", "2024-03-03T02:00:00Z", None, [("Failed", "2024-03-03T02:00:30Z")]),
    ("data", "report", None, "2024-03-03T02:00:00Z", None, []),
)  # fmt: skip
K8S_SPACES = kubernetes(
    ("a", "load-28486200", None, "2024-03-01T02:00:00Z", "2024-03-01T02:00:50Z", [("Complete", "2024-03-01T02:00:50Z")]),
    ("b", "load-28486200", None, "2024-03-01T02:00:00Z", "2024-03-01T02:01:10Z", [("Complete", "2024-03-01T02:01:10Z")]),
    ("b", "load-28487640", None, "2024-03-02T02:00:00Z", None,
     [("FailureTarget", "2024-03-02T02:09:00Z"), ("Failed", "2024-03-02T02:10:00Z")]),
)  # fmt: skip
# a German spreadsheet saved as CSV: semicolons, decimal commas, days before months
GERMAN = lines("""
    Job;Start;Dauer (min);Status;Bemerkung
    Umsatz;01.03.2024 02:00;12,5;OK;
    Umsatz;02.03.2024 02:00;10,5;OK;lief von selbst
    Umsatz;03.03.2024 02:00;1,0;Fehler;Platte voll
    Personal;01.03.2024 03:00;1.020,0;abgebrochen;
""")
# an American one: quotes, months before days, empty rows at the end
AMERICAN = lines("""
    Job Name,Start Time,End Time,Result,Notes
    "Load, nightly",3/13/2024 2:05 PM,3/13/2024 2:15 PM,Succeeded,
    "Load, nightly",3/14/2024 2:05 PM,3/14/2024 2:17 PM,Succeeded,late
    Report,3/1/2024 11:59 AM,3/1/2024 12:09 PM,Failed,"disk full, again"
    ,,,,
    ,,,,
""")
# hadoop.apache.org, ResourceManager REST APIs: /ws/v1/cluster/apps; one that runs has 0 for its end, and no final status
YARN = {"apps": {"app": records(
    "id user name queue state finalStatus startedTime launchTime finishedTime elapsedTime",
    ("application_1_0001", "etl", "load", "root.prod", "FINISHED", "SUCCEEDED", MARCH_MS, MARCH_MS + 5000, MARCH_MS + 65000, 65000),
    ("application_1_0002", "etl", "load", "root.prod", "FINISHED", "FAILED", MARCH_MS + 90000, MARCH_MS + 95000, MARCH_MS + 99000, 9000),
    ("application_1_0003", "etl", "load", "root.prod", "RUNNING", "UNDEFINED", MARCH_MS + 100000, MARCH_MS + 105000, 0, 90000),
    ("application_1_0004", "ml", "fit", "root.adhoc", "KILLED", "KILLED", MARCH_MS + 100000, MARCH_MS + 105000, MARCH_MS + 125000, 25000),
)}}  # fmt: skip
# htcondor.readthedocs.io, job ClassAd attributes: condor_history -json; one that was removed has 0 for its completion
MARCH_S = MARCH_MS // 1000
CONDOR = [
    {"ClusterId": 1, "ProcId": 0, "GlobalJobId": f"sched#{number}.0#1", "Owner": "bob", "Cmd": command, "QDate": MARCH_S,
     "JobStartDate": MARCH_S + 10, "JobCurrentStartDate": MARCH_S + 10, "EnteredCurrentStatus": MARCH_S + end,
     "CompletionDate": MARCH_S + end if status == 4 else 0, "RequestCpus": 1, "RequestMemory": 2048, "JobStatus": status} | more
    for number, (command, end, status, more) in enumerate([
        ("/home/bob/reco", 110, 4, {"ExitCode": 0, "ExitBySignal": False}),
        ("/home/bob/plots", 30, 4, {"ExitBySignal": False}),
        ("/home/bob/plots", 20, 4, {"ExitCode": 1, "ExitBySignal": False}),
        ("/home/bob/plots", 20, 4, {"ExitBySignal": True, "ExitSignal": 11}),
        ("/home/bob/reco", 60, 3, {}),
    ])
]  # fmt: skip
# argo-workflows.readthedocs.io, REST API: a list of workflows; names end in what was drawn
ARGO = {"metadata": {"resourceVersion": "1"}, "items": [
    {"metadata": {"name": f"{made_of}x7k{number}q", "generateName": made_of, "namespace": "data", "uid": f"u{number}",
                  "creationTimestamp": "2024-03-01T02:00:00Z", "labels": {"workflows.argoproj.io/phase": phase}},
     "spec": {"arguments": {"parameters": [{"name": "date", "value": "x"}]}},
     "status": {"phase": phase, "startedAt": "2024-03-01T02:00:02Z", "finishedAt": end}}
    for number, (made_of, phase, end) in enumerate([
        ("nightly-", "Succeeded", "2024-03-01T02:01:02Z"), ("nightly-", "Succeeded", "2024-03-01T02:02:02Z"),
        ("hourly-", "Error", "2024-03-01T02:00:09Z"), ("hourly-", "Running", None),
    ])
]}  # fmt: skip
# tekton.dev/docs/pipelines/pipelineruns: kubectl get pipelineruns -o json
TEKTON = {"apiVersion": "v1", "kind": "List", "items": [
    {"metadata": {"name": f"build-r-{number}", "namespace": "ci", "uid": f"u{number}", "creationTimestamp": "2024-03-01T02:00:00Z"},
     "spec": {"pipelineRef": {"name": "build"}},
     "status": {"startTime": "2024-03-01T02:00:00Z", "completionTime": "2024-03-01T02:03:00Z",
                "conditions": [{"type": "Succeeded", "status": "False" if "T" in reason else "True", "reason": reason}]}}
    for number, reason in enumerate(["Succeeded", "Completed", "PipelineRunTimeout"])
]}  # fmt: skip
# learn.microsoft.com/rest/api/datafactory/pipeline-runs/query-by-factory
ADF = {"value": records(
    "id runId pipelineName runStart runEnd durationInMs status invokedBy lastUpdated",
    ("/SUB/1", "r1", "Copy", "2024-03-01T02:00:00.1234567Z", "2024-03-01T02:01:00.1234567Z", 60000, "Succeeded", {"name": "Daily"}, "2024-03-01T02:01:00Z"),
    ("/SUB/2", "r2", "Load", "2024-03-01T02:00:00.1234567Z", "2024-03-01T02:00:20.1234567Z", 20000, "Cancelled", {"name": "Daily"}, "2024-03-01T02:01:00Z"),
)}  # fmt: skip
# the same API: activity runs of a pipeline run; two pipelines may call an activity the same
ADF_ACTIVITIES = {"value": records(
    "activityRunId activityName activityType pipelineName pipelineRunId activityRunStart activityRunEnd durationInMs status",
    ("a1", "Copy", "Copy", "Sales", "r1", "2024-03-01T02:00:00.1234567Z", "2024-03-01T02:01:00.1234567Z", 60000, "Succeeded"),
    ("a2", "Copy", "Copy", "Staff", "r2", "2024-03-01T02:00:00.1234567Z", "2024-03-01T02:00:20.1234567Z", 20000, "Cancelled"),
    ("a3", "Clean", "Delete", "Sales", "r1", "2024-03-01T02:01:00.1234567Z", "2024-03-01T02:03:00.1234567Z", 120000, "Succeeded"),
)}  # fmt: skip
# ibm.com/docs/spectrum-lsf, bjobs -o … -json: L and E behind a time: at the limit, estimated
LSF = {"COMMAND": "bjobs", "JOBS": 2, "RECORDS": records(
    "JOBID JOB_NAME USER STAT QUEUE SUBMIT_TIME START_TIME FINISH_TIME RUN_TIME SLOTS",
    ("101", "etl", "ada", "DONE", "normal", "Mar  1 02:00:00 2024", "Mar  1 02:00:30 2024", "Mar  1 02:02:00 2024 L", "90 second(s)", "4"),
    ("102", "etl", "ada", "EXIT", "normal", "Mar 13 02:00:00 2024", "Mar 13 02:00:30 2024", "Mar 13 02:00:40 2024", "10 second(s)", "4"),
)}  # fmt: skip
# docs.getdbt.com/dbt-cloud/api-v2: list runs; `duration` holds the wait, too, `status` is a code
DBT_CLOUD = {"status": {"code": 200, "is_success": True}, "data": records(
    "id status created_at started_at finished_at job duration queued_duration run_duration status_humanized",
    (9, 10, "2024-03-01 02:00:00.000000+00:00", "2024-03-01 02:00:10.000000+00:00", "2024-03-01 02:07:10.000000+00:00",
     {"id": 5, "name": "Marts"}, "00:07:10", "00:00:10", "00:07:00", "Success"),
    (8, 20, "2024-03-01 02:00:00.000000+00:00", "2024-03-01 02:00:10.000000+00:00", "2024-03-01 02:01:10.000000+00:00",
     {"id": 6, "name": "CI"}, "00:01:10", "00:00:10", "00:01:00", "Error"),
), "extra": {"pagination": {"count": 2}}}  # fmt: skip
# buildkite.com/docs/apis/rest-api/builds: list all builds; jobs of a build have times of their own
BUILDKITE = [
    {"id": f"b{number}", "number": number, "state": state, "branch": f"feature-{number}", "creator": {"name": "Ann"},
     "created_at": "2024-03-01T02:00:00.000Z", "scheduled_at": "2024-03-01T02:00:00.000Z",
     "started_at": "2024-03-01T02:00:05.000Z", "finished_at": "2024-03-01T02:00:35.000Z",
     "pipeline": {"id": "p", "name": "API", "slug": "api"},
     "jobs": [{"id": f"j{number}", "name": "test", "state": state, "started_at": "2024-03-01T02:00:05.000Z"}]}
    for number, state in enumerate(["passed", "failed", "canceled"])
]  # fmt: skip
# docs.aws.amazon.com/glue: get-job-runs; /emr: list-steps
GLUE = {"JobRuns": records(
    "Id JobName StartedOn LastModifiedOn CompletedOn JobRunState ExecutionTime",
    ("jr_1", "load", "2024-03-01T03:00:00+01:00", "2024-03-01T03:05:00+01:00", "2024-03-01T03:05:00+01:00", "SUCCEEDED", 290),
    ("jr_2", "load", "2024-03-02T03:00:00+01:00", "2024-03-02T03:05:00+01:00", "2024-03-02T03:05:00+01:00", "TIMEOUT", 290),
)}  # fmt: skip
EMR = {"Steps": [
    {"Id": f"s-{number}", "Name": "spark-submit load", "ActionOnFailure": "CONTINUE", "Status": {"State": state, "Timeline": {
        "CreationDateTime": "2024-03-01T02:00:00Z", "StartDateTime": "2024-03-01T02:00:30Z", "EndDateTime": "2024-03-01T02:02:00Z"}}}
    for number, state in enumerate(["COMPLETED", "FAILED"])
]}  # fmt: skip
# aws emr list-clusters: a cluster is ready where a step has a start
EMR_CLUSTERS = {"Clusters": [
    {"Id": f"j-{number}", "Name": "load", "Status": {"State": state, "StateChangeReason": {"Code": code}, "Timeline": {
        "CreationDateTime": "2024-03-01T02:00:00Z", "ReadyDateTime": "2024-03-01T02:05:00Z", "EndDateTime": "2024-03-01T02:20:00Z"}}}
    for number, (state, code) in enumerate([("TERMINATED", "ALL_STEPS_COMPLETED"), ("TERMINATED_WITH_ERRORS", "STEP_FAILURE"), ("TERMINATED", "USER_REQUEST")])
]}  # fmt: skip
# slurm.schedmd.com/sacct.html, --json: openapi's dbv0.0.40 (limits in minutes, a list of states, 0 for no time) and dbv0.0.37
SACCT = {"meta": {"slurm": {"version": {"major": "23"}}}, "errors": [], "jobs": [
    {"account": "lab", "job_id": number, "name": "mc", "user": "ada", "partition": "cpu", "flags": ["CLEAR_SCHEDULING"],
     "required": {"CPUs": 4}, "state": {"current": [state], "reason": "None"}, "array": {"job_id": 0, "task": ""},
     "exit_code": {"status": ["SUCCESS"], "return_code": {"set": True, "number": 0}},
     "tres": {"allocated": [{"type": "cpu", "count": 4}]}, "steps": [],
     "time": {"submission": MARCH_S, "eligible": MARCH_S, "start": start, "end": end, "elapsed": max(0, end - start) if start else 0,
              "limit": {"set": bool(limit), "infinite": not limit, "number": limit}}}
    for number, (state, start, end, limit) in enumerate([
        ("COMPLETED", MARCH_S + 5, MARCH_S + 95, 60), ("COMPLETED", MARCH_S + 5, MARCH_S + 115, 0),
        ("TIMEOUT", MARCH_S, MARCH_S + 60, 1), ("OUT_OF_MEMORY", MARCH_S, MARCH_S + 30, 60),
        ("CANCELLED", 0, MARCH_S + 30, 60), ("RUNNING", MARCH_S + 5, 0, 60), ("PENDING", 0, 0, 60),
    ])
]}  # fmt: skip
SACCT_37 = {"meta": {"Slurm": {"release": "21.08.8-2"}}, "errors": [], "jobs": [
    {"account": "lab", "job_id": number, "name": "mc", "user": "ada", "partition": "cpu", "required": {"CPUs": 4},
     "state": {"current": state, "reason": "None"}, "steps": [{"step": {"name": "batch"}}],
     "time": {"submission": MARCH_S, "start": MARCH_S, "end": MARCH_S + 20, "elapsed": 20, "limit": 30}}
    for number, state in enumerate(["COMPLETED", "FAILED"])
]}  # fmt: skip
# spark.apache.org/docs/latest/monitoring.html: /api/v1/applications, the newest attempt first
SPARK_APPLICATIONS = [
    {"id": f"application_{number}", "name": "etl", "attempts": [
        {"startTime": "2024-03-01T02:00:00.000GMT", "endTime": "x", "lastUpdated": "x", "duration": 1000 * seconds,
         "sparkUser": "ada", "completed": bool(seconds), "appSparkVersion": "3.5.1", "startTimeEpoch": 1000 * MARCH_S,
         "endTimeEpoch": 1000 * (MARCH_S + seconds) if seconds else -1, "lastUpdatedEpoch": 1000 * MARCH_S},
        {"sparkUser": "ada", "completed": True, "startTimeEpoch": 1000 * MARCH_S - 9000, "endTimeEpoch": 1000 * MARCH_S}]}
    for number, seconds in enumerate([40, 60, 0])
]  # fmt: skip
# docs.ray.io, jobs REST API: GET /api/jobs/
RAY_JOBS = [
    {"type": "SUBMISSION", "job_id": None, "submission_id": f"raysubmit_{number}", "status": status, "message": "",
     "entrypoint": "python train.py", "metadata": {}, "start_time": 1000 * MARCH_S, "end_time": end, "error_type": None}
    for number, (status, end) in enumerate([
        ("SUCCEEDED", 1000 * MARCH_S + 12_500), ("FAILED", 1000 * MARCH_S + 3_000), ("STOPPED", 1000 * MARCH_S + 1_000),
        ("RUNNING", None),
    ])
]  # fmt: skip
# kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1: kubectl get pods -o json; an evicted one has no container
PODS = {"apiVersion": "v1", "kind": "List", "items": [
    {"kind": "Pod", "metadata": {"name": f"etl-2848620{number}-x7k2q", "namespace": "data", "uid": f"u{number}",
                                 "creationTimestamp": "2024-03-01T02:00:00Z",
                                 "ownerReferences": [{"kind": "Job", "name": f"etl-2848620{number}"}]},
     "spec": {"containers": [{"name": "main"}]},
     "status": {"phase": phase, "startTime": "2024-03-01T02:00:01Z",
                "conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": "2024-03-01T02:00:01Z"},
                               {"type": "Ready", "status": "False", "lastTransitionTime": "2024-03-01T02:00:40Z"}],
                "containerStatuses": [{"state": {"terminated": {"finishedAt": end, "exitCode": 0}}}] if end else []}}
    for number, (phase, end) in enumerate([
        ("Succeeded", "2024-03-01T02:01:01Z"), ("Succeeded", "2024-03-01T02:01:41Z"), ("Failed", None), ("Running", None),
    ])
]}  # fmt: skip
# cloud.google.com/dataproc/docs/reference/rest: jobs.list
DATAPROC = [
    {"reference": {"projectId": "p", "jobId": f"j{number}"}, "placement": {"clusterName": "c"},
     "pysparkJob": {"mainPythonFileUri": "gs://jobs/etl.py"},
     "status": {"state": state, "stateStartTime": "2024-03-01T02:01:10.500Z"},
     "statusHistory": [{"state": "PENDING", "stateStartTime": "2024-03-01T02:00:00.5Z"},
                       {"state": "SETUP_DONE", "stateStartTime": "2024-03-01T02:00:00.7Z"},
                       {"state": "RUNNING", "stateStartTime": "2024-03-01T02:00:10.5Z"}]}
    for number, state in enumerate(["DONE", "ERROR"])
]  # fmt: skip
# cloud.google.com/build/docs/api/reference/rest: gcloud builds list --format=json
CLOUD_BUILD = [
    {"id": f"b{number}", "status": status, "createTime": "2024-03-01T02:00:00.123456Z", "buildTriggerId": "t",
     "startTime": "2024-03-01T02:00:01.1Z", "finishTime": "2024-03-01T02:02:01.1Z", "substitutions": {"TRIGGER_NAME": "api"}}
    for number, status in enumerate(["SUCCESS", "FAILURE", "TIMEOUT", "CANCELLED"])
]  # fmt: skip
# circleci.com/docs/api/v2, insights: runs of a workflow; whole seconds, which may reach back before it was created
CIRCLE = {"next_page_token": None, "items": [
    {"id": f"c{number}", "branch": "main", "duration": 100, "created_at": "2024-03-01T02:00:00.400Z",
     "stopped_at": f"2024-03-01T02:01:4{number}.300Z", "credits_used": 3, "status": status, "is_approval": False}
    for number, status in enumerate(["success", "failed"])
]}  # fmt: skip
# jetbrains.com/help/teamcity/rest: /app/rest/builds
TEAMCITY = {"count": 2, "href": "/app/rest/builds", "build": [
    {"id": number, "buildTypeId": "App_Build", "number": str(number), "status": status, "state": "finished", "branchName": "main",
     "queuedDate": "20240301T020000+0000", "startDate": "20240301T020010+0000", "finishDate": "20240301T020110+0000"}
    for number, status in enumerate(["SUCCESS", "FAILURE"])
]}  # fmt: skip
# oozie.apache.org/docs: /oozie/v2/jobs; times as HTTP writes them
OOZIE = {"total": 2, "len": 50, "workflows": [
    {"appName": "etl", "id": f"000000{number}-oozie-W", "status": status, "user": "ada", "createdTime": "Fri, 01 Mar 2024 02:00:00 GMT",
     "startTime": "Fri, 01 Mar 2024 02:00:00 GMT", "endTime": "Fri, 01 Mar 2024 02:03:00 GMT"}
    for number, status in enumerate(["SUCCEEDED", "KILLED"])
]}  # fmt: skip
EXPORTS = {
    "Kubernetes, pods": Export("pods.json", json.dumps(PODS), {"completed": 2, "failed": 1, "running": 1}, 1, 80, "`status.phase` as status"),
    "Dataproc": Export("dataproc.json", json.dumps(DATAPROC), {"completed": 1, "failed": 1}, 1, 60, "`status.state` as status"),
    "Cloud Build": Export("builds.json", json.dumps(CLOUD_BUILD), {"completed": 1, "failed": 1, "timeout": 1, "cancelled": 1}, 1, 120, "`substitutions.TRIGGER_NAME` as name"),
    "CircleCI": Export("items.json", json.dumps(CIRCLE), {"completed": 1, "failed": 1}, 1, 100, "`duration` as runtime_s in seconds"),
    "TeamCity": Export("teamcity.json", json.dumps(TEAMCITY), {"completed": 1, "failed": 1}, 1, 60, "`buildTypeId` as name"),
    "Oozie": Export("oozie.json", json.dumps(OOZIE), {"completed": 1, "cancelled": 1}, 1, 180, "`startTime` as started_at"),
    "Slurm's sacct --json": Export("sacct.json", json.dumps(SACCT), {"completed": 2, "timeout": 1, "failed": 1, "cancelled": 1, "running": 1, "pending": 1}, 1, 100, "`time.limit.number` as requested_runtime_s in min"),
    "Slurm's sacct --json of 2021": Export("sacct.json", json.dumps(SACCT_37), {"completed": 1, "failed": 1}, 1, 20, "`time.limit` as requested_runtime_s in min"),
    "Spark history server": Export("applications.json", json.dumps(SPARK_APPLICATIONS), {"completed": 2, "running": 1}, 1, 50, "`attempts.0.startTimeEpoch` as started_at"),
    "Ray": Export("ray.json", json.dumps(RAY_JOBS), {"completed": 1, "failed": 1, "cancelled": 1, "running": 1}, 1, 12.5, "`entrypoint` as name"),
    "YARN": Export("apps.json", json.dumps(YARN), {"completed": 1, "failed": 1, "running": 1, "cancelled": 1}, 2, 60, "`finalStatus`, else `state` as status"),
    "HTCondor": Export("history.json", json.dumps(CONDOR, indent=1), {"completed": 2, "failed": 2, "cancelled": 1}, 2, 60, "4/true as failed"),
    "Argo": Export("argo.json", json.dumps(ARGO), {"completed": 2, "failed": 1, "running": 1}, 2, 90, "`status.startedAt` as started_at"),
    "Tekton": Export("tekton.json", json.dumps(TEKTON), {"completed": 2, "timeout": 1}, 1, 180, "`status.conditions.0.reason` as status"),
    "Azure Data Factory": Export("adf.json", json.dumps(ADF), {"completed": 1, "cancelled": 1}, 2, 60, "`durationInMs` as runtime_s in ms"),
    "Azure Data Factory, activities": Export("activities.json", json.dumps(ADF_ACTIVITIES), {"completed": 2, "cancelled": 1}, 3, 90, "these are activity runs of Azure Data Factory"),
    "LSF": Export("bjobs.json", json.dumps(LSF), {"completed": 1, "failed": 1}, 1, 90, "`FINISH_TIME` as ended_at"),
    "dbt Cloud": Export("cloud.json", json.dumps(DBT_CLOUD), {"completed": 1, "failed": 1}, 2, 420, "`run_duration` as runtime_s"),
    "Buildkite": Export("kite.json", json.dumps(BUILDKITE), {"completed": 1, "failed": 1, "cancelled": 1}, 1, 30, "`pipeline.name` as name"),
    "AWS Glue": Export("glue.json", json.dumps(GLUE), {"completed": 1, "timeout": 1}, 1, 290, "`ExecutionTime` as runtime_s"),
    "AWS EMR": Export("emr.json", json.dumps(EMR), {"completed": 1, "failed": 1}, 1, 90, "`Status.Timeline.StartDateTime` as started_at"),
    "AWS EMR, clusters": Export("clusters.json", json.dumps(EMR_CLUSTERS), {"completed": 1, "failed": 1, "cancelled": 1}, 1, 900, "`Status.Timeline.ReadyDateTime` as started_at"),
    "GitLab jobs": Export("jobs.json", json.dumps(GITLAB_JOBS), {"completed": 2, "failed": 1, "cancelled": 1, "pending": 1}, 2, 630, "`duration` as runtime_s in seconds"),
    "GitLab pipelines": Export("pipelines.csv", GITLAB_PIPELINES, {"completed": 2, "failed": 1, "running": 1}, 2, 350, "`ref` as name"),
    "GitHub runs without ids of workflows": Export("runs.json", json.dumps([{name: run[name] for name in run if name != "workflow_id"} for run in GITHUB_RUNS]), {"completed": 2, "failed": 1, "running": 1}, 2, 210, "these are runs of GitHub Actions"),
    "GitHub runs": Export("runs.json", json.dumps({"total_count": 4, "workflow_runs": GITHUB_RUNS}), {"completed": 2, "failed": 1, "running": 1}, 2, 210, "`updated_at` as ended_at"),
    "GitHub jobs": Export("gh.json", json.dumps({"total_count": 3, "jobs": GITHUB_JOBS}, indent=2), {"completed": 1, "timeout": 1, "cancelled": 1}, 3, 100, "`id` as run_id"),
    "Jenkins": Export("builds.json", json.dumps(JENKINS), {"completed": 2, "failed": 1, "cancelled": 1, "running": 1}, 1, 60.0, "`duration` as runtime_s in ms"),
    "Jenkins, several jobs": Export("all.json", json.dumps(JENKINS_JOBS), {"completed": 2, "cancelled": 1}, 2, 15.0, "`result` as status"),
    "Airflow DAG runs": Export("dag_run.csv", DAG_RUNS, {"completed": 2, "failed": 1, "running": 1}, 2, 90, "`dag_id` as name"),
    "Airflow task instances": Export("task_instance.csv", TASK_INSTANCES, {"completed": 2, "failed": 1, "cancelled": 1}, 2, 15, ""),
    "Nextflow": Export("trace.txt", NEXTFLOW, {"completed": 4, "failed": 1, "cancelled": 1}, 2, 60, "`realtime`, else `duration` as runtime_s"),
    "Nextflow, raw": Export("trace-raw.tsv", NEXTFLOW_RAW, {"completed": 2, "failed": 1}, 2, 60, "in ms"),
    "dbt": Export("run_results.json", dbt(("success", "model.shop.orders", 2.5, "2024-03-01T02:00:00Z"), ("success", "model.shop.customers", 3.5, "2024-03-01T02:00:03Z"), ("error", "model.shop.items", 1.0, "2024-03-01T02:00:07Z"), ("skipped", "model.shop.report", 0.0, None)), {"completed": 2, "failed": 1, "cancelled": 1}, 4, 3.0, "`unique_id` as name"),
    "dbt tests": Export("target.json", dbt(("pass", "test.shop.unique_id", 0.5, "2024-03-01T02:00:00Z"), ("warn", "test.shop.not_null", 1.5, "2024-03-01T02:00:01Z"), ("fail", "test.shop.accepted", 0.25, "2024-03-01T02:00:03Z")), {"completed": 2, "failed": 1}, 3, 1.0, "`execution_time` as runtime_s in seconds"),
    "Snowflake": Export("history.csv", SNOWFLAKE, {"completed": 3, "failed": 1}, 2, 8.0, "`TOTAL_ELAPSED_TIME` as runtime_s in ms"),
    "Snowflake, JSON": Export("history.json", json.dumps(SNOWFLAKE_JSON), {"completed": 2, "running": 1}, 1, 4.0, "`QUERY_TEXT` as name"),
    "BigQuery": Export("bq.json", json.dumps(BIGQUERY), {"completed": 2, "failed": 1, "running": 1}, 2, 15, "`start_time` as started_at"),
    "BigQuery, CSV": Export("bq.csv", BIGQUERY_CSV, {"completed": 2, "failed": 1, "pending": 1}, 2, 40, "`query` as name"),
    "Databricks": Export("runs-list.json", json.dumps(DATABRICKS), {"completed": 2, "failed": 1, "timeout": 1, "running": 1}, 2, 630, "`run_name` as name"),
    "Databricks, CLI": Export("cli.json", json.dumps(DATABRICKS_STATUS), {"completed": 1, "failed": 1, "cancelled": 1}, 1, 61, "`run_duration` as runtime_s in ms"),
    "Kubernetes": Export("k8s.json", K8S, {"completed": 2, "failed": 1, "running": 1}, 2, 110, "`status.startTime` as started_at"),
    "Kubernetes, no owners": Export("k8s-all.json", K8S_SPACES, {"completed": 2, "failed": 1}, 2, 60, "`metadata.uid` as run_id"),
    "a German spreadsheet": Export("läufe.csv", GERMAN, {"completed": 2, "failed": 1, "cancelled": 1}, 2, 690, "`Dauer (min)` as runtime_s in min"),
    "an American spreadsheet": Export("Book1.csv", AMERICAN, {"completed": 2, "failed": 1}, 2, 660, "the month first"),
}  # fmt: skip

# Tables of people who name columns in words of their own: in each one job, completed after 600 and 660 s, then failed
WORDED = {
    "French": "Tâche;Début;Fin;Durée (s);Statut\nchargement;13/03/2024 02:00:00;13/03/2024 02:10:00;600,0;Réussi\n"
    "chargement;14/03/2024 02:00:00;14/03/2024 02:11:00;660,0;Réussi\nchargement;15/03/2024 02:00:00;15/03/2024 02:01:00;60,0;Échec\n",
    "Spanish": "Trabajo;Inicio;Duración;Estado\ncarga;13/03/2024 02:00;600;Completado\ncarga;14/03/2024 02:00;660;Completado\n"
    "carga;15/03/2024 02:00;60;Fallido\n",
    "Portuguese": "Tarefa;Início;Término;Resultado\ncarga;13/03/2024 02:00:00;13/03/2024 02:10:00;Concluído\n"
    "carga;14/03/2024 02:00:00;14/03/2024 02:11:00;Concluído\ncarga;15/03/2024 02:00:00;15/03/2024 02:01:00;Falhou\n",
    "Dutch": "Taak;Begin;Einde;Duur (s);Status\nlaad;13-03-2024 02:00:00;13-03-2024 02:10:00;600;Geslaagd\n"
    "laad;14-03-2024 02:00:00;14-03-2024 02:11:00;660;Geslaagd\nlaad;15-03-2024 02:00:00;15-03-2024 02:01:00;60;Mislukt\n",
    "date and clocks, past midnight": "Job,Date,Start time,End time,Status\netl,2024-03-13,23:55:00,00:05:00,Success\n"
    "etl,2024-03-14,02:00:00,02:11:00,Success\netl,2024-03-15,02:00:00,02:01:00,Failure\n",
    "two dates and clocks": "Nom du traitement;Date de début;Heure de début;Date de fin;Heure de fin;État\n"
    "etl;13/03/2024;23:55:00;14/03/2024;00:05:00;Terminé\netl;14/03/2024;02:00:00;14/03/2024;02:11:00;Terminé\n"
    "etl;15/03/2024;02:00:00;15/03/2024;02:01:00;Erreur\n",
    "clocks of half days": "Task,Day,Begin,End,Status\netl,2024-03-13,11:55:00 PM,12:05:00 AM,Complete\n"
    "etl,2024-03-14,02:00:00 PM,02:11:00 PM,Complete\netl,2024-03-15,02:00:00 AM,02:01:00 AM,Failed\n",
    "flags": "pipeline,started_at,duration_ms,is_failed\netl,2024-03-13 02:00:00,600000,False\n"
    "etl,2024-03-14 02:00:00,660000,False\netl,2024-03-15 02:00:00,60000,True\n",
    "Python's logging": 'task,begin,finish,succeeded\netl,"2024-03-13 02:00:00,250","2024-03-13 02:10:00,250",yes\n'
    'etl,"2024-03-14 02:00:00,000","2024-03-14 02:11:00,000",yes\netl,"2024-03-15 02:00:00,000","2024-03-15 02:01:00,000",no\n',
    "milliseconds in capitals": "JOB|TS_START_MS|TS_END_MS|RC\netl|1710295200000|1710295800000|0\n"
    "etl|1710381600000|1710382260000|0\netl|1710468000000|1710468060000|12\n",
    ".NET": "name,startTime,endTime,exitCode\netl,/Date(1710295200000)/,/Date(1710295800000)/,0\n"
    "etl,/Date(1710381600000+0100)/,/Date(1710382260000+0100)/,0\netl,/Date(1710468000000)/,/Date(1710468060000)/,137\n",
    "minutes": "Batch Job,Run Date,Minutes,Outcome\netl,3/13/2024 2:00 AM,10,✔\netl,3/14/2024 2:00 AM,11,✔\netl,3/15/2024 2:00 AM,1,✘\n",
    "AutoSys": "Job Name,Last Start,Last End,ST,Run/Ntry,Pri/Xit\netl,03/13/2024 02:00:00,03/13/2024 02:10:00,SU,1/1,0\n"
    "etl,03/14/2024 02:00:00,03/14/2024 02:11:00,SU,2/1,0\netl,03/15/2024 02:00:00,03/15/2024 02:01:00,FA,3/1,1\n",
    "Control-M": "JOBNAME,ORDERID,STARTTIME,ENDTIME,ELAPTIME,STATUS\netl,00a1,20240313020000,20240313021000,60000,Ended OK\n"
    "etl,00a2,20240314020000,20240314021100,66000,Ended OK\netl,00a3,20240315020000,20240315020100,6000,Ended Not OK\n",
    "Oracle's scheduler": "JOB_NAME,STATUS,ACTUAL_START_DATE,RUN_DURATION\n"
    "ETL,SUCCEEDED,13-MAR-24 02.00.00.000000 AM +00:00,+000 00:10:00.000000\n"
    "ETL,SUCCEEDED,14-MAR-24 02.00.00.000000 AM +00:00,+000 00:11:00.000000\n"
    "ETL,FAILED,15-MAR-24 02.00.00.000000 AM +00:00,+000 00:01:00.000000\n",
    # learn.microsoft.com/sql: dbo.sysjobhistory
    "SQL Server Agent": "name,run_status,run_date,run_time,run_duration\netl,1,20240313,500,1000\netl,1,20240314,20000,1100\n"
    "etl,0,20240315,20000,100\n",
    # htcondor.readthedocs.io: condor_history -af:h
    "HTCondor by cluster": "ClusterId,ProcId,Owner,Cmd,QDate,JobStartDate,CompletionDate,JobStatus,ExitCode\n"
    "7,0,ada,etl,1710295100,1710295200,1710295800,4,0\n7,1,ada,etl,1710381500,1710381600,1710382260,4,0\n"
    "8,0,ada,etl,1710467900,1710468000,1710468060,4,1\n",
}  # fmt: skip
EXPORTS |= {name: Export("runs.csv", text, {"completed": 2, "failed": 1}, 1, 630, "") for name, text in WORDED.items()}


@pytest.fixture(params=EXPORTS.values(), ids=EXPORTS)
def export(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, Export]]:
    (tmp_path / request.param.file).write_text(request.param.text)
    yield str(tmp_path / request.param.file), request.param


def test_an_export_is_read_in_one_call_as_it_was_worked_out_by_hand(export: tuple[str, Export]) -> None:
    path, expected = export
    chunks = list(detect(path, ReadParams().limits).read(path, ReadParams()))
    rows, refused = (pd.concat([getattr(chunk, part) for chunk in chunks]) for part in ("rows", "refused"))
    assert refused["reason"].to_list() == []
    assert expected.understood in "\n".join(line for chunk in chunks for line in chunk.understood)
    assert rows["status"].value_counts().to_dict() == expected.statuses
    assert rows["run_id"].is_unique
    assert group_keys(rows).nunique() == expected.n_jobs
    assert rows.loc[rows["status"] == "completed", "runtime_s"].median() == pytest.approx(expected.median_s, abs=1e-6)
    assert rows["submitted_at"].fillna(rows["started_at"]).dt.year.eq(2024).all()


def test_runs_of_science_tools_are_jobs_by_their_tool(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text("tool,start,seconds\nblast,2026-01-01T00:00:00Z,5\nbwa,2026-01-01T01:00:00Z,6\n")
    rows = pd.concat(chunk.rows for chunk in READERS["table"].read(str(path), ReadParams()))
    assert rows["name"].to_list() == ["blast", "bwa"]


def test_sizes_of_nextflow_count_1024_bytes_to_a_kilobyte(tmp_path: Path) -> None:
    (tmp_path / "trace.txt").write_text(NEXTFLOW)
    rows = pd.concat(chunk.rows for chunk in READERS["table"].read(str(tmp_path / "trace.txt"), ReadParams()))
    assert rows["peak_memory_bytes"].to_list()[:3] == [1.5 * 2**30, 12.5 * 2**20, 32 * 2**30]


def test_a_spreadsheet_that_excel_saved_on_a_german_machine_is_read_with_its_umlauts(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "laufzeiten.csv"
    rows = "Lauf-Nr;Startzeit;Endzeit;Auftrag;Bearbeiter;Dauer (min);Datenmenge (MB)\n" + "".join(
        f"{day};{day}.03.2024 02:00;{day}.03.2024 02:13;Monatsabschluß;Müller;12,5;1.234,5\n" for day in (13, 14)
    )
    path.write_bytes(rows.encode("cp1252"))
    read = pd.concat(chunk.rows for chunk in READERS["table"].read(str(path), ReadParams()))
    assert read[["name", "user_name"]].to_numpy().tolist() == [["Monatsabschluß", "Müller"]] * 2
    assert read["run_id"].to_list() == ["13", "14"] and (read["ended_at"].dt.minute == 13).all()
    assert read[["runtime_s", "input_bytes"]].to_numpy().tolist() == [[750.0, 1_234_500_000.0]] * 2
    assert "not UTF-8, read as Windows-1252" in caplog.text


def test_dates_that_may_be_day_or_month_first_are_refused(tmp_path: Path) -> None:
    (tmp_path / "runs.csv").write_text("job,start,duration\na,1/2/2024 10:00,5\n")
    with pytest.raises(BadInput, match=r"'1/2/2024 10:00' in column 'start' may be day or month first; .*2024-12-31"):
        list(READERS["table"].read(str(tmp_path / "runs.csv"), ReadParams()))


@pytest.mark.parametrize(
    ("name", "start"),
    [("date and clocks, past midnight", "2024-03-13T23:55:00"), ("clocks of half days", "2024-03-13T23:55:00"),
     ("two dates and clocks", "2024-03-13T23:55:00"), ("SQL Server Agent", "2024-03-13T00:05:00"),
     ("Oracle's scheduler", "2024-03-13T02:00:00"), ("Python's logging", "2024-03-13T02:00:00.250")],
)  # fmt: skip
def test_a_start_is_read_to_its_second(tmp_path: Path, name: str, start: str) -> None:
    (tmp_path / "runs.csv").write_text(WORDED[name])
    (chunk,) = READERS["table"].read(str(tmp_path / "runs.csv"), ReadParams())
    assert chunk.rows["started_at"][0] == pd.Timestamp(start)


def test_a_time_that_has_its_date_is_not_put_together_of_others(tmp_path: Path) -> None:
    (tmp_path / "runs.csv").write_text("job,start,took,date,time\na,2024-01-01T01:00:00Z,5,2024-01-02,07:00:00\n")
    (chunk,) = READERS["table"].read(str(tmp_path / "runs.csv"), ReadParams())
    assert chunk.rows["started_at"][0] == pd.Timestamp("2024-01-01T01:00:00")


def test_names_that_say_more_are_not_taken_for_times_of_the_run(tmp_path: Path) -> None:
    names = "job,planned start,start node,queue duration,started,took,run\n"
    (tmp_path / "runs.csv").write_text(f"{names}a,2024-01-01T00:00:00Z,n1,7,2024-01-01T01:00:00Z,5,1\n")
    (chunk,) = READERS["table"].read(str(tmp_path / "runs.csv"), ReadParams())
    assert chunk.rows["started_at"][0] == pd.Timestamp("2024-01-01T01:00:00")
    assert chunk.rows["runtime_s"].to_list() == [5.0]
    assert "'planned start', 'start node', " in " ".join(chunk.understood)


def test_flags_of_any_type_say_how_a_run_ended_and_numbers_of_tasks_do_not(tmp_path: Path) -> None:
    runs = {"job": ["a", "a"], "start": ["2024-01-01T01:00:00Z", "2024-01-02T01:00:00Z"], "took": [5.0, 6.0]}
    pd.DataFrame(runs | {"succeeded": [True, False], "done": [True, True]}).to_parquet(tmp_path / "flags.parquet")
    (chunk,) = READERS["table"].read(str(tmp_path / "flags.parquet"), ReadParams())
    assert chunk.rows["status"].to_list() == ["completed", "failed"]
    words = pd.Series(["ok", "error"], dtype="category")
    pd.DataFrame(runs | {"status": words}).to_parquet(tmp_path / "categories.parquet")
    (chunk,) = READERS["table"].read(str(tmp_path / "categories.parquet"), ReadParams())
    assert chunk.rows["status"].to_list() == ["completed", "failed"]
    pd.DataFrame(runs | {"success": [0, 12]}).to_csv(tmp_path / "counts.csv", index=False)
    (chunk,) = READERS["table"].read(str(tmp_path / "counts.csv"), ReadParams())
    assert chunk.refused.empty and "not read: 'success'" in " ".join(chunk.understood)


def test_neither_time_on_hold_nor_in_the_queue_is_runtime_of_a_job_that_was_removed_from_it(tmp_path: Path) -> None:
    held, tried_twice = ({"RemoteWallClockTime": wall_s} for wall_s in (40.0, 500.0))
    path = tmp_path / "history.json"
    path.write_text(json.dumps([CONDOR[0] | tried_twice, CONDOR[4] | {"EnteredCurrentStatus": MARCH_S + 9000} | held]))
    (chunk,) = READERS["table"].read(str(path), ReadParams())
    assert chunk.rows["runtime_s"].to_list() == [100.0, 40.0]  # of the first, what its last try took
    never_began = {"JobStartDate": None, "JobCurrentStartDate": None, "RemoteWallClockTime": 0.0}
    path.write_text(json.dumps([CONDOR[0] | tried_twice, CONDOR[4] | never_began]))
    (chunk,) = READERS["table"].read(str(path), ReadParams())
    assert chunk.rows["started_at"].isna().to_list() == [False, True]


def test_what_condor_would_work_out_when_asked_is_missing_and_refuses_no_run(tmp_path: Path) -> None:
    by_default = "/Expr(ifthenelse(MemoryUsage isnt undefined,MemoryUsage,(ImageSize + 1023) / 1024))/"
    used = {"MemoryUsage": "/Expr(((ResidentSetSize + 1023) / 1024))/", "RequestDisk": "/Expr(DiskUsage)/"}
    (tmp_path / "history.json").write_text(
        json.dumps([CONDOR[0] | used, CONDOR[1] | used | {"RequestMemory": by_default}])
    )
    params = ReadParams(features=["RequestDisk"])
    (chunk,) = READERS["table"].read(str(tmp_path / "history.json"), params)
    assert chunk.refused.empty
    assert chunk.rows["requested_memory_bytes"].fillna(0).tolist() == [2048 * 2**20, 0]
    assert chunk.rows[["peak_memory_bytes", "features"]].isna().all(axis=None)


def test_what_was_understood_is_said_in_a_dry_run_and_kept_with_the_file(tmp_path: Path) -> None:
    expected = EXPORTS["a German spreadsheet"]
    (tmp_path / expected.file).write_text(expected.text)
    path, home = str(tmp_path / expected.file), Warehouse(home=tmp_path / "home")
    intake = Intake("s", "", ReadParams(), GroupParams())
    seen, batch = preview_log(home.home, path, intake), land_log(home, path, intake)
    assert expected.understood in "\n".join(seen.understood)
    assert Batch.model_validate_json(batch.model_dump_json()).understood == list(seen.understood)
