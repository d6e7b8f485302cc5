"""The benchmarks that are recorded: commands, what they need beside them, and a hash that tells them apart."""

import hashlib
import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from string import Formatter
from typing import Literal

from pydantic import Field, field_validator

from tasks.params import Params

PLACEHOLDERS = ("folder", "laid", "server", "port", "stress_port", "rate_mbit", "disk_bytes", "limit_s")
SLUG = r"^[a-z0-9]+(-[a-z0-9]+)*$"
NAMES = "folder: of the node on its disk; server, port: of its peer"


def checked_command(text: str) -> str:
    """A command line whose words in braces are ones that the recorder fills in. Raises ValueError."""
    shlex.split(text)
    unknown = [name for _, name, _, _ in Formatter().parse(text) if name is not None and name not in PLACEHOLDERS]
    if unknown:
        raise ValueError(f"no {{{unknown[0]}}} to fill in; expected some of {', '.join(PLACEHOLDERS)}")
    return text


def words_of(command: str, values: Mapping[str, str]) -> list[str]:
    """The words of a command, filled in."""
    return [word.format_map(values) for word in shlex.split(command)]


class BenchmarkTemplate(Params):
    """One benchmark as it is run, the same on every node."""

    benchmark: str = Field(pattern=SLUG, max_length=100, description="Name")
    aspect: Literal["cpu", "memory", "disk", "network"] = Field(description="Resource that it measures")
    command: str = Field(min_length=1, max_length=1000, description=f"Command; filled in are {NAMES}")
    prepare: str = Field("", max_length=1000, description="Runs once on each node, beforehand and without its limits")
    server: str = Field("", max_length=1000, description="Runs beside it at its peer, for network benchmarks")
    limit_s: float = Field(20, gt=0, le=86_400, description="Longest time that it may take, in seconds")

    _commands = field_validator("command", "prepare", "server")(checked_command)

    @property
    def tool(self) -> str:
        """The name of its program."""
        return Path(shlex.split(self.command)[0]).name

    @property
    def is_network(self) -> bool:
        """Whether it needs a server: one at a time over all nodes."""
        return bool(self.server)

    @property
    def template_hash(self) -> str:
        """SHA-256 of what is run: with the benchmark's name, this is its type."""
        content = {key: getattr(self, key) for key in ("benchmark", "command", "prepare", "server")}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


FIO = "fio --name=randwrite --iodepth=1 --readwrite=randrw --blocksize=4m --size={size} --directory={{folder}}"
QPERF = "qperf {{server}} --listen_port {{port}} --verbose_more --time {seconds} --access_recv 1 tcp_bw tcp_lat"
QPERF_SERVER = "qperf --listen_port {port}"
IPERF_SERVER = "iperf3 -s -B {server} -p {port}"


def _templates(seconds: int, fio_size: str, ioping: str, limit_s: float) -> tuple[BenchmarkTemplate, ...]:
    fio = FIO.format(size=fio_size)
    return (
        BenchmarkTemplate(
            benchmark="cpu-sysbench",
            aspect="cpu",
            command=f"sysbench cpu --threads=16 --time={seconds} run",
            limit_s=limit_s,
        ),
        BenchmarkTemplate(
            benchmark="memory-sysbench",
            aspect="memory",
            command=f"sysbench memory --threads=16 --time={seconds} --memory-total-size=1000G run",
            limit_s=limit_s,
        ),
        BenchmarkTemplate(
            benchmark="disk-fio",
            aspect="disk",
            command=f"{fio} --runtime={seconds} --time_based=1 --output-format=json",
            prepare=f"{fio} --create_only=1",
            limit_s=limit_s,
        ),
        BenchmarkTemplate(benchmark="disk-ioping", aspect="disk", command=ioping, limit_s=limit_s),
        BenchmarkTemplate(
            benchmark="network-qperf",
            aspect="network",
            command=QPERF.format(seconds=seconds),
            server=QPERF_SERVER,
            limit_s=limit_s + seconds,
        ),
        BenchmarkTemplate(
            benchmark="network-iperf3",
            aspect="network",
            command=f"iperf3 -c {{server}} -p {{port}} -t {seconds} --bidir -J",
            server=IPERF_SERVER,
            limit_s=limit_s,
        ),
    )


# ioping without pauses: with them a short run asks for less than the disk gives, and tells nothing of its rate
SHORT = _templates(2, "512M", "ioping -w 2 -G -L -i 0 -q -J {folder}", 20)
PAPER = _templates(30, "4096M", "ioping -w 30 -G -L -J {folder}", 90)  # Perona, III-A, and its published options
