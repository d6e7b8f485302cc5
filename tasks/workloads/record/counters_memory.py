"""Counters of memory: faults, allocations, write-back, and what memory holds."""

from pathlib import Path

from tasks.workloads.record.measures import Source, gauge, rate

KIB = 1024
ZONES = ("dma", "dma32", "normal", "movable", "device")


def parse_fields(text: str) -> dict[str, float]:
    """Lines `name value`, as in /proc/vmstat, cpu.stat and memory.stat."""
    pairs = (line.split() for line in text.splitlines())
    return {fields[0]: float(fields[1]) for fields in pairs if len(fields) >= 2}


def parse_meminfo(text: str) -> dict[str, float]:
    """Lines `Name:  value kB`; in bytes."""
    pairs = (line.partition(":") for line in text.splitlines())
    return {name: float(rest.split()[0]) * (KIB if rest.endswith("kB") else 1) for name, _, rest in pairs if rest}


VMSTAT = (
    rate("vm.page_faults", "faults", "accesses to pages that were not mapped yet", "pgfault"),
    rate("vm.major_faults", "faults", "those that had to wait for a disk", "pgmajfault"),
    rate("vm.paged_in_bytes", "B", "read from disks into memory", "pgpgin", scale=KIB),
    rate("vm.paged_out_bytes", "B", "written from memory to disks", "pgpgout", scale=KIB),
    rate("vm.allocated_pages", "pages", "pages handed out", *(f"pgalloc_{zone}" for zone in ZONES)),
    rate("vm.freed_pages", "pages", "pages given back", "pgfree"),
    rate("vm.activated_pages", "pages", "pages found to be in use", "pgactivate"),
    rate("vm.reused_pages", "pages", "shared pages written to without a copy", "pgreuse"),
    rate("vm.lazily_freed_pages", "pages", "pages that a program gave up (MADV_FREE)", "pglazyfree"),
    rate("vm.dirtied_pages", "pages", "pages of files that were changed", "nr_dirtied"),
    rate("vm.written_pages", "pages", "changed pages written back", "nr_written"),
    rate("vm.rotated_pages", "pages", "pages moved to the end of their list after write-back", "pgrotated"),
    rate("vm.refaulted_pages", "pages", "pages of files read again soon after they were dropped",
         "workingset_refault_file"),
    rate("vm.huge_faults", "faults", "faults answered with a huge page", "thp_fault_alloc"),
    rate("vm.scanned_pages", "pages", "pages looked at for reclaim", "pgscan_kswapd", "pgscan_direct"),
    rate("vm.swapped_pages", "pages", "pages swapped in or out", "pswpin", "pswpout"),
)  # fmt: skip
MEMINFO = (
    gauge("memory.free_bytes", "B", "memory that holds nothing", "MemFree"),
    gauge("memory.available_bytes", "B", "memory that a new program could have", "MemAvailable"),
    gauge("memory.cached_bytes", "B", "pages of files", "Cached"),
    gauge("memory.buffer_bytes", "B", "blocks of disks", "Buffers"),
    gauge("memory.active_bytes", "B", "pages used lately", "Active"),
    gauge("memory.inactive_bytes", "B", "pages not used lately", "Inactive"),
    gauge("memory.anonymous_bytes", "B", "memory of programs that stands for no file", "AnonPages"),
    gauge("memory.mapped_bytes", "B", "pages of files that programs have mapped", "Mapped"),
    gauge("memory.shared_bytes", "B", "shared memory and tmpfs", "Shmem"),
    gauge("memory.dirty_bytes", "B", "changed and not yet written back", "Dirty"),
    gauge("memory.writeback_bytes", "B", "being written back", "Writeback"),
    gauge("memory.slab_bytes", "B", "objects of the kernel", "Slab"),
    gauge("memory.page_table_bytes", "B", "page tables", "PageTables"),
    gauge("memory.kernel_stack_bytes", "B", "stacks of threads in the kernel", "KernelStack"),
    gauge("memory.committed_bytes", "B", "memory promised to programs", "Committed_AS"),
)


def memory_sources(proc: Path) -> list[Source]:
    """What /proc says of memory."""
    return [Source(proc / "vmstat", parse_fields, VMSTAT), Source(proc / "meminfo", parse_meminfo, MEMINFO)]
