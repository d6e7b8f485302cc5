"""One reader for each job-log format, and which of them fits a file."""

from collections.abc import Iterator

from tasks.intake import readers
from tasks.intake.files import Chunk, read_head
from tasks.jobs.params import ReadParams
from tasks.jobs.readers import accounting, airflow, slurm, spark, swf, table
from tasks.jobs.readers.prefect_api import PrefectApiReader
from tasks.params import ReadLimits

Reader = readers.Reader[ReadParams, Iterator[Chunk]]  # chunks of at most about 100,000 rows
PREFECT = PrefectApiReader()
SWF = "Standard Workload Format (.swf, .swf.gz)"
SACCT = ("sacct", "sacct.gz", "sacct.log", "sacct.log.gz", "sacct.txt", "sacct.txt.gz")
PBS = "PBS and Torque: accounting logs (server_priv/accounting/YYYYMMDD)"
GRID_ENGINE = "Grid Engine: the file accounting, or qacct -j"
QACCT = ("/accounting", "/accounting.gz", "qacct.txt", "qacct.txt.gz")
SPARK = "Spark event logs, also rolled (eventlog_v2_…) and packed"
EVENT_LOGS = ("eventlog", "eventlog.gz", "eventlog.zstd", "eventlog.lz4", "eventlog.snappy")
AIRFLOW = "Airflow: task instances (JSON of the REST API, CSV of the table)"
INSTANCES = ("task_instances.json", "task_instances.json.gz", "task_instance.csv", "task_instance.csv.gz")
PREFECT_RUNS = "Prefect: flow runs over the HTTP API"
TABLE = (
    "tables, a row a run (.parquet, .csv, .json), also exports of GitLab, GitHub, Jenkins, …; "
    "any other log as such a table: name, start, and runtime or end, named by --map"
)
TABLES = (".parquet", ".csv", ".csv.gz", ".tsv", ".tsv.gz")
_ALL: tuple[Reader, ...] = (
    # 2: groups and partitions; 3: statuses as the user maps them; 4: all of them
    Reader("swf", 4, SWF, (".swf", ".swf.gz"), swf.sniff, swf.read),
    Reader("slurm", 2, "Slurm: sacct --parsable2", SACCT, slurm.sniff, slurm.read),  # 2: accounts, qualities of service
    Reader("pbs", 2, PBS, (".pbs", ".pbs.gz"), accounting.pbs_sniff, accounting.pbs_read),
    Reader("grid-engine", 2, GRID_ENGINE, QACCT, accounting.grid_engine_sniff, accounting.grid_engine_read),
    Reader("spark", 2, SPARK, EVENT_LOGS, spark.sniff, spark.read),
    # 2: pseudonymised ids; words for missing values in CSV
    Reader("airflow", 2, AIRFLOW, INSTANCES, airflow.sniff, airflow.read),
    Reader("prefect-api", 1, PREFECT_RUNS, (), PREFECT.sniff, PREFECT.read),
    # 5: names by alias; 6, 7, 10, 11: more systems; 7: names of months; 8: begin_ms; 9: HTCondor; 11: names by words
    Reader("table", 11, TABLE, TABLES, table.sniff, table.read),
)
READERS: dict[str, Reader] = {reader.name: reader for reader in _ALL}


def detect(path: str, limits: ReadLimits) -> Reader:
    """The reader that a file is for. Raises BadInput if none fits, or if the file cannot be opened."""
    return readers.reader_for(
        path, _ALL, lambda: spark.unpacked_head(path, limits) or read_head(path, limits), "job log"
    )
