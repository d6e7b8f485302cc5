"""The recorder: a real miniature of a shared analytics cluster, so that jobs are measured and not drawn.

    params.py     what a person may choose
    catalogue.py  recurring jobs made of templates (template.py, templates_*.py) over data sets (datasets.py)
    plan.py       every run with submit time, size (sizing.py), name (names.py) and parameters, by seed alone
    campaign.py   `record_jobs`: the way in
    session.py    the campaign's clock; pool.py and worker.py run jobs, engine.py is DuckDB on files of its own
    load.py       stress-ng in phases; monitor.py: the machine before each run; cause.py: why a run was long
    rows.py       one row of the record; parts.py: part files in whorl's own format

A run is one process: the worker forks it, it starts an engine with its threads and its memory, takes the locks
of its databases, plans, runs, and ends. Its runtime begins when the engine has started, and holds the wait for
locks; waiting for a free worker and starting the engine are its wait. Nothing sleeps and nothing loops for show:

    source of variation (Zhu et al. 2023, 3.2)   how it comes about here
    input size                                   1 to 64 parts of a data set, six kinds of change from run to run
    parameters                                   drawn for each run; literals of the SQL
    allocation                                   1, 2 or 4 threads, in some jobs another number each run
    load                                         other jobs, stress-ng in phases, and whatever else the machine does
    locks                                        jobs that load tables hold their database alone (flock)
    cold input                                   pages dropped with posix_fadvise before some runs
    spilling                                     sorts and joins under a small memory limit

What fails is recorded: an engine's error or a killed process is `failed`, a job past its time limit is killed and
`timeout`. A campaign that was interrupted goes on with the runs that no part file holds.
"""
