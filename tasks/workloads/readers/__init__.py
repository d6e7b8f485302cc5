"""One reader for each format of telemetry, and which of them fits a file."""

from tasks.intake import readers
from tasks.intake.files import read_head
from tasks.params import ReadLimits
from tasks.workloads.params import ReadParams
from tasks.workloads.prepared import Reading
from tasks.workloads.readers import perf, sadf, vmstat, wide
from tasks.workloads.readers.prometheus import PrometheusReader

# A file is held in memory as a whole, up to read.limits.max_bytes: a run is one thing and is not cut
Reader = readers.Reader[ReadParams, Reading]
PROMETHEUS = PrometheusReader()
SERVER = "a Prometheus server (http://host:9090), or an answer of its query_range in a file"
PERF = (".perf", ".perf.csv", ".perf.json")
PERFSPECT = "PerfSpect's metrics (*_metrics.csv, metric_out.sys.csv)"
METRICS = ("_metrics.csv", "metric_out.sys.csv")
SADF = "sysstat's sadf -d, or what sar prints"
WIDE = "tables, a column or a row a counter (.parquet, .csv, .csv.gz, .json)"
TABLES = (".parquet", ".csv", ".csv.gz", ".tsv", ".tsv.gz")
_ALL: tuple[Reader, ...] = (
    Reader("prometheus", 1, SERVER, (), PROMETHEUS.sniff, PROMETHEUS.read),
    Reader("perf", 1, "perf stat -I 1000 -x, (or -j)", PERF, perf.stat_sniff, perf.stat_read),
    Reader("perfspect", 1, PERFSPECT, METRICS, perf.spect_sniff, perf.spect_read),
    Reader("sadf", 5, SADF, (".sadf", ".sadf.csv", ".sar"), sadf.sniff, sadf.read),
    Reader("vmstat", 1, "what vmstat -t 1 prints", (".vmstat",), vmstat.sniff, vmstat.read),
    # 2: long tables, other names; 3: programs; 4: JSON, units in cells; 5: conditions; 6: devices; 7: date and clock
    Reader("wide", 7, WIDE, TABLES, wide.sniff, wide.read),
)
READERS: dict[str, Reader] = {reader.name: reader for reader in _ALL}


def detect(path: str, limits: ReadLimits) -> Reader:
    """The reader that a file is for. Raises BadInput if none fits, or if the file cannot be opened."""
    return readers.reader_for(path, _ALL, lambda: read_head(path, limits), "telemetry")
