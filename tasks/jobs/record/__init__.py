"""Records real recurring jobs on this machine: SQL on a miniature of a shared analytics cluster.

`campaign.record_jobs` makes a plan (`plan`, `templates`), writes data sets (`templates`), opens a cluster
(`cluster`) with a worker in every slot (`pool`, `engine`), and runs the plan on it (`scheduler`); `run_rows`
writes what was known before each run and what it took. Nothing sleeps and nothing loops for show:

    source of variation (Zhu et al. 2023, 3.2)   how it comes about here
    input size                                   1 to 64 parts of a data set, six kinds of change from run to run
    parameters                                   drawn for each run; literals of the SQL
    tokens                                       a tenth of a core each, by CPU quota; requests vary or are too high
    spare tokens                                 granted while the SKU has room, taken back when it has not
    SKUs                                         control groups with their own quota, speed, memory and disk rate
    load                                         other jobs, stress-ng in phases on each SKU, the rest of the machine
    locks                                        jobs that load tables hold their database alone (flock)
    cold input                                   pages dropped with posix_fadvise before some runs
    spilling                                     sorts and joins under a small memory limit

A run starts with its first vertex and ends with its last; before, it waits for its tokens. What fails is recorded: an
engine's error or a killed process is `failed`, a job past its time limit is killed and `timeout`. A campaign that
was interrupted goes on with the runs that no part file holds. Where control groups may not be made, tokens still decide
who runs when, threads stand in for their size, and every part file says so (`isolation`).
"""
