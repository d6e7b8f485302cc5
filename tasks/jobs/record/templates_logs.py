"""Templates over a web server's logs in CSV: traffic, errors, clients."""

from tasks.jobs.record.templates import (
    Choice,
    Span,
    Template,
)

LOGS = (
    Template(
        "status_counts",
        "weblog",
        3,
        """SELECT status, method, count(*) AS n, sum(bytes) AS bytes FROM {input} WHERE ms > {ms} GROUP BY ALL""",
        {"ms": Span(3, 200)},
        source="csv",
        merge="""SELECT status, method, sum(n) AS n, sum(bytes) AS bytes FROM {partials}
        GROUP BY ALL ORDER BY n DESC, status, method""",
    ),
    Template(
        "log_to_parquet",
        "weblog",
        2,
        """COPY (SELECT *, split_part(path, '/', 2) AS area FROM {input} WHERE status < {status}
        ORDER BY ip, ts) TO '{out}' (FORMAT parquet, COMPRESSION zstd)""",
        {"status": Span(400, 600)},
        source="csv",
        memory_mb=(512, 80),
    ),
    Template(
        "slow_pages",
        "weblog",
        3,
        "SELECT path, list(ms) AS times FROM {input} WHERE status = 200 GROUP BY path",
        {"percent": Span(80, 99)},
        source="csv",
        merge="""SELECT path, quantile_cont(ms, {percent} / 100.0) AS slow, count(*) AS n FROM (
            SELECT path, unnest(times) AS ms FROM {partials})
        GROUP BY path HAVING count(*) > 3 ORDER BY slow DESC, path LIMIT 40""",
    ),
    Template(
        "browsers",
        "weblog",
        2,
        """SELECT DISTINCT regexp_extract(agent, '\\(([^;)]+)', 1) AS os,
        regexp_replace(agent, '.*\\) ([A-Za-z]+)/.*', '\\1') AS browser, ip FROM {input}
        WHERE agent NOT LIKE '%{bot}%'""",
        {"bot": Choice(("bot", "Safari"))},
        source="csv",
        merge="""SELECT os, browser, count(DISTINCT ip) AS clients FROM {partials}
        GROUP BY ALL ORDER BY clients DESC, os, browser""",
    ),
    Template(
        "traffic_cube",
        "weblog",
        3,
        """SELECT method, status, split_part(path, '/', 2) AS area, count(*) AS n, sum(bytes) AS bytes FROM {input}
        WHERE bytes > {bytes} GROUP BY ALL""",
        {"bytes": Span(200, 3000)},
        source="csv",
        merge="""SELECT method, status, area, sum(n) AS n, sum(bytes) AS bytes FROM {partials}
        GROUP BY CUBE (method, status, area) ORDER BY ALL""",
    ),
    Template(
        "busiest_minutes",
        "weblog",
        3,
        "SELECT date_trunc('minute', ts) AS minute, count(*) AS n, sum(ms) AS ms FROM {input} GROUP BY ALL",
        {"width": Span(3, 15)},
        source="csv",
        merge="""SELECT minute, n, ms / n AS mean_ms, avg(n) OVER (ORDER BY minute ROWS {width} PRECEDING) AS smooth
        FROM (
            SELECT minute, sum(n) AS n, sum(ms) AS ms FROM {partials} GROUP BY minute) ORDER BY minute""",
    ),
    Template(
        "top_paths_by_area",
        "weblog",
        3,
        """SELECT split_part(path, '/', 2) AS area, path, sum(bytes) AS bytes FROM {input} WHERE status <> {status}
        GROUP BY ALL""",
        {"status": Span(500, 503), "k": Span(3, 20)},
        source="csv",
        merge="""SELECT * FROM (SELECT area, path, sum(bytes) AS bytes FROM {partials} GROUP BY ALL)
        QUALIFY row_number() OVER (PARTITION BY area ORDER BY bytes DESC, path) <= {k} ORDER BY ALL""",
    ),
    Template(
        "slow_requests_csv",
        "weblog",
        4,
        """COPY (SELECT ts, ip, path, ms FROM {input} WHERE ms > {ms} ORDER BY ms DESC LIMIT 5000)
        TO '{out}' (FORMAT csv, HEADER)""",
        {"ms": Span(20, 400)},
        source="csv",
    ),
    Template(
        "response_histogram",
        "weblog",
        4,
        """SELECT method, histogram(CAST(floor(log2(ms)) AS INTEGER)) AS times FROM {input} WHERE status < {status}
        GROUP BY method""",
        {"status": Span(400, 600)},
        source="csv",
        merge="""SELECT method, e.key AS power, sum(e.value) AS n FROM (
            SELECT method, unnest(map_entries(times)) AS e FROM {partials}) GROUP BY ALL ORDER BY ALL""",
    ),
)
