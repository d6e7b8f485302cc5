"""Templates over click events: sessions, funnels, tags and visitors."""

from tasks.jobs.record.templates import (
    Choice,
    Span,
    Template,
)

COUNTRY = Choice(("de", "fr", "us", "in", "jp", "br"))

WEB = (
    Template(
        "sessions",
        "events",
        2,
        """SELECT country, count(*) AS sessions FROM (
            SELECT country, ts, lag(ts) OVER (PARTITION BY user_id ORDER BY ts) AS before FROM {input})
        WHERE before IS NULL OR ts - before > INTERVAL {gap} MINUTE GROUP BY country""",
        {"gap": Span(10, 60)},
        memory_mb=(512, 64),
        merge="""SELECT country, sum(sessions) AS sessions FROM {partials} GROUP BY country
        ORDER BY sessions DESC, country""",
        is_exact=False,
    ),
    Template(
        "funnel",
        "events",
        4,
        """SELECT user_id, country, bool_or(kind = 'view') AS seen, bool_or(kind = 'cart') AS carted,
        bool_or(kind = 'buy') AS bought FROM {input} WHERE country <> '{country}' GROUP BY user_id, country""",
        {"country": COUNTRY},
        merge="""SELECT country, count(*) FILTER (WHERE seen) AS seen,
        count(*) FILTER (WHERE seen AND carted) AS carted,
        count(*) FILTER (WHERE seen AND carted AND bought) AS bought FROM (
            SELECT user_id, country, bool_or(seen) AS seen, bool_or(carted) AS carted, bool_or(bought) AS bought
            FROM {partials} GROUP BY user_id, country) GROUP BY country ORDER BY country""",
    ),
    Template(
        "unique_users",
        "events",
        4,
        """SELECT DISTINCT date_trunc('hour', ts) AS hour, country, user_id FROM {input} WHERE kind <> '{kind}'""",
        {"kind": Choice(("error", "buy", "cart"))},
        merge="SELECT hour, country, count(DISTINCT user_id) AS users FROM {partials} GROUP BY ALL ORDER BY ALL",
    ),
    Template(
        "referrers",
        "events",
        2,
        """SELECT regexp_extract(url, 'ref=([a-z]+)', 1) AS ref, regexp_extract(url, 'example/([a-z]+)/', 1) AS page,
        count(*) AS n FROM {input} WHERE country = '{country}' OR kind = 'view' GROUP BY ALL""",
        {"country": COUNTRY},
        merge="SELECT page, ref, sum(n) AS n FROM {partials} GROUP BY ROLLUP (page, ref) ORDER BY n DESC, page, ref",
    ),
    Template(
        "tag_counts",
        "events",
        1,
        """SELECT unnest(string_split(split_part(payload, 'tags=', 2), ',')) AS tag, user_id FROM {input}
        WHERE country <> '{country}'""",
        {"country": COUNTRY, "k": Span(5, 30)},
        merge="""SELECT tag, count(*) AS n, count(DISTINCT user_id) AS users FROM {partials}
        GROUP BY tag ORDER BY n DESC, tag LIMIT {k}""",
    ),
    Template(
        "deduplicate",
        "events",
        1,
        """COPY (SELECT DISTINCT user_id, kind, country, url FROM {input} WHERE country <> '{country}')
        TO '{out}' (FORMAT parquet)""",
        {"country": COUNTRY},
        memory_mb=(512, 80),
    ),
    Template(
        "retention",
        "events",
        3,
        "SELECT user_id, min(ts) AS first, max(ts) AS latest FROM {input} WHERE kind <> '{kind}' GROUP BY user_id",
        {"kind": Choice(("error", "search")), "wait": Span(5, 90)},
        merge="""SELECT date_trunc('hour', first) AS cohort, count(*) AS users,
        count(*) FILTER (WHERE latest > first + INTERVAL {wait} MINUTE) AS back FROM (
            SELECT user_id, min(first) AS first, max(latest) AS latest FROM {partials} GROUP BY user_id)
        GROUP BY cohort ORDER BY cohort""",
    ),
    Template(
        "latency_by_system",
        "events",
        2,
        """SELECT regexp_extract(payload, 'os=([a-z]+)', 1) AS os,
        CAST(regexp_extract(payload, 'ms=([0-9]+)', 1) AS INTEGER) AS ms, count(*) AS n FROM {input} GROUP BY ALL""",
        {"percent": Span(50, 99)},
        merge="""SELECT os, min(ms) AS ms FROM (
            SELECT os, ms, sum(n) OVER (PARTITION BY os ORDER BY ms) AS so_far, sum(n) OVER (PARTITION BY os) AS n
            FROM {partials})
        WHERE so_far >= n * {percent} / 100.0 GROUP BY os ORDER BY ms DESC, os""",
    ),
    Template(
        "country_views",
        "events",
        4,
        "SELECT DISTINCT country, kind, url FROM {input} WHERE user_id > {user}",
        {"user": Span(4000, 20_000)},
        source="table",
        databases=("web",),
        merge="SELECT country, kind, approx_count_distinct(url) AS urls FROM {partials} GROUP BY ALL ORDER BY ALL",
    ),
    Template(
        "load_views",
        "events",
        4,
        """CREATE OR REPLACE TABLE web.views_today AS SELECT *, split_part(url, '?', 1) AS page FROM {input}
        WHERE kind NOT IN ('view', '{kind}') ORDER BY user_id, ts""",
        {"kind": Choice(("error", "search"))},
        writes="web",
    ),
    Template(
        "pages_by_country",
        "events",
        2,
        """SELECT country, regexp_extract(url, 'example/([a-z]+)/', 1) AS page, count(*) AS n FROM {input}
        WHERE kind = 'view' GROUP BY ALL""",
        merge="""PIVOT {partials} ON page IN ('p', 'c', 'search', 'cart', 'help') USING sum(n)
        GROUP BY country ORDER BY country""",
    ),
    Template(
        "latest_by_user",
        "events",
        3,
        """SELECT user_id, arg_max(kind, struct_pack(ts := ts, kind := kind)) AS kind, max(ts) AS ts FROM {input}
        WHERE user_id >= {user} GROUP BY user_id""",
        {"user": Span(1000, 9000)},
        merge="""SELECT kind, count(*) AS users, max(ts) AS latest FROM (
            SELECT user_id, arg_max(kind, struct_pack(ts := ts, kind := kind)) AS kind, max(ts) AS ts FROM {partials}
            GROUP BY user_id)
        GROUP BY kind ORDER BY users DESC, kind""",
    ),
)
