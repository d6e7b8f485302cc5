"""How the tools spell the units of each canonical unit. Spelling is kept, except where two tools mean different things.

What is changed, always together with a note here:
- sysbench before 1.0, fio before 3, ioping before 0.9 and iperf3 write KB, MB, mb, KBytes, GBytes and mean powers
  of 1,024: they become KiB, MiB, GiB. qperf's KB, MB and GB are powers of 1,000 and stay.
- qperf's Kb/sec, Mb/sec, Gb/sec (with --use_bits_per_sec) become Kbits/sec and so on, as iperf3 writes them.
- a prefix of a plain count is multiplied into the value: "5.34 k iops" is 5,340 iops, "34.3 K/sec" 34,300 /sec,
  "1.2 million" 1,200,000, fio's "IOPS=10.1k" 10,100 iops.
- qperf's "% cpus" is % (of one processor); sysbench's "per second" and "ops/sec" are /sec."""

TIMES_S = {
    "ns": 1e-9, "nsec": 1e-9, "us": 1e-6, "usec": 1e-6, "ms": 1e-3, "msec": 1e-3, "s": 1.0, "sec": 1.0,
    "min": 60.0, "hour": 3600.0, "day": 86_400.0,
}  # fmt: skip
SIZES = ("B", "kB", "KB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB", "bytes")
SPEEDS = (
    "bits/sec", "Kbits/sec", "Mbits/sec", "Gbits/sec", "Tbits/sec", "bytes/sec", "KB/sec", "MB/sec", "GB/sec",
    "TB/sec", "B/s", "kB/s", "MB/s", "GB/s", "KiB/s", "MiB/s", "GiB/s", "TiB/s", "MiB/sec",
)  # fmt: skip
SPELLED: dict[str, frozenset[str]] = {
    "s": frozenset(TIMES_S),
    "B": frozenset(SIZES),
    "B/s": frozenset(SPEEDS),
    "1/s": frozenset({"/sec", "iops"}),
    "%": frozenset({"%"}),
    "s/GB": frozenset({"ns/GB", "us/GB", "ms/GB", "sec/GB"}),
    "": frozenset({""}),
}
COUNT_PREFIXES = {
    "": 1, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15,
    "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12,
}  # fmt: skip
