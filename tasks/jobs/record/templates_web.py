"""Templates over click events (Parquet) and server logs (CSV): sessions, funnels, text and regex work."""

from tasks.jobs.record.template import Choice, Span, Template

COUNTRY = Choice(("de", "fr", "us", "in", "jp", "br"))

WEB = (
    Template(
        "sessions",
        "events",
        2,
        """SELECT country, count(*) AS sessions FROM (
            SELECT country, ts, lag(ts) OVER (PARTITION BY user_id ORDER BY ts) AS before FROM {input})
        WHERE before IS NULL OR ts - before > INTERVAL {gap} MINUTE GROUP BY country ORDER BY sessions DESC""",
        {"gap": Span(10, 60)},
        memory_mb=(512, 160),
    ),
    Template(
        "funnel",
        "events",
        4,
        """SELECT country, count(*) FILTER (WHERE seen) AS seen, count(*) FILTER (WHERE seen AND carted) AS carted,
        count(*) FILTER (WHERE seen AND carted AND bought) AS bought FROM (
            SELECT user_id, country, bool_or(kind = 'view') AS seen, bool_or(kind = 'cart') AS carted,
            bool_or(kind = 'buy') AS bought FROM {input} WHERE ts >= TIMESTAMP '2026-01-01' + INTERVAL {hour} HOUR
            GROUP BY user_id, country) GROUP BY country ORDER BY country""",
        {"hour": Span(0, 3)},
    ),
    Template(
        "unique_users",
        "events",
        4,
        """SELECT date_trunc('hour', ts) AS hour, country, count(DISTINCT user_id) AS users FROM {input}
        WHERE kind <> '{kind}' GROUP BY ALL ORDER BY ALL""",
        {"kind": Choice(("error", "buy", "cart"))},
    ),
    Template(
        "referrers",
        "events",
        2,
        """SELECT regexp_extract(url, 'ref=([a-z]+)', 1) AS ref, regexp_extract(url, 'example/([a-z]+)/', 1) AS page,
        count(*) AS n FROM {input} WHERE country = '{country}' OR kind = 'view' GROUP BY ALL ORDER BY n DESC""",
        {"country": COUNTRY},
    ),
    Template(
        "tag_counts",
        "events",
        2,
        """SELECT tag, count(*) AS n, count(DISTINCT user_id) AS users FROM (
            SELECT user_id, unnest(string_split(split_part(payload, 'tags=', 2), ',')) AS tag FROM {input}
            WHERE country <> '{country}') GROUP BY tag ORDER BY n DESC LIMIT {k}""",
        {"country": COUNTRY, "k": Span(5, 30)},
    ),
    Template(
        "deduplicate",
        "events",
        2,
        """COPY (SELECT DISTINCT user_id, kind, country, url FROM {input} WHERE country <> '{country}')
        TO '{out}' (FORMAT parquet)""",
        {"country": COUNTRY},
        memory_mb=(512, 160),
    ),
    Template(
        "retention",
        "events",
        3,
        """WITH first AS (SELECT user_id, min(ts) AS ts FROM {input} GROUP BY user_id)
        SELECT date_trunc('hour', first.ts) AS cohort, count(DISTINCT e.user_id) AS back FROM {input} AS e
        JOIN first USING (user_id) WHERE e.ts > first.ts + INTERVAL {wait} MINUTE GROUP BY cohort ORDER BY cohort""",
        {"wait": Span(5, 90)},
    ),
    Template(
        "latency_by_system",
        "events",
        3,
        """SELECT regexp_extract(payload, 'os=([a-z]+)', 1) AS os, quantile_cont(
            CAST(regexp_extract(payload, 'ms=([0-9]+)', 1) AS INTEGER), {percent} / 100.0) AS ms
        FROM {input} GROUP BY os ORDER BY ms DESC""",
        {"percent": Span(50, 99)},
    ),
    Template(
        "country_views",
        "events",
        5,
        """SELECT country, kind, approx_count_distinct(url) AS urls, count(*) AS n FROM {input}
        WHERE user_id > {user} GROUP BY ALL ORDER BY ALL""",
        {"user": Span(0, 2000)},
        source="table",
        databases=("web",),
    ),
    Template(
        "load_views",
        "events",
        8,
        """CREATE OR REPLACE TABLE web.views_today AS SELECT *, split_part(url, '?', 1) AS page FROM {input}
        WHERE kind <> '{kind}' ORDER BY user_id, ts""",
        {"kind": Choice(("error", "search"))},
        writes="web",
    ),
    Template(
        "status_counts",
        "weblog",
        3,
        """SELECT status, method, count(*) AS n, sum(bytes) AS bytes FROM {input} WHERE ms > {ms}
        GROUP BY ALL ORDER BY n DESC""",
        {"ms": Span(3, 200)},
        source="csv",
    ),
    Template(
        "log_to_parquet",
        "weblog",
        2,
        """COPY (SELECT *, split_part(path, '/', 2) AS area FROM {input} WHERE status < {status}
        ORDER BY ip, ts) TO '{out}' (FORMAT parquet, COMPRESSION zstd)""",
        {"status": Span(400, 600)},
        source="csv",
        memory_mb=(512, 160),
    ),
    Template(
        "slow_pages",
        "weblog",
        3,
        """SELECT path, quantile_cont(ms, {percent} / 100.0) AS slow, count(*) AS n FROM {input}
        WHERE status = 200 GROUP BY path HAVING count(*) > 3 ORDER BY slow DESC LIMIT 40""",
        {"percent": Span(80, 99)},
        source="csv",
    ),
    Template(
        "browsers",
        "weblog",
        2,
        """SELECT regexp_extract(agent, '\\(([^;)]+)', 1) AS os,
        regexp_replace(agent, '.*\\) ([A-Za-z]+)/.*', '\\1') AS browser, count(DISTINCT ip) AS clients FROM {input}
        WHERE agent NOT LIKE '%{bot}%' GROUP BY ALL ORDER BY clients DESC""",
        {"bot": Choice(("bot", "Safari"))},
        source="csv",
    ),
)
