"""Templates that check data: duplicates, outliers, references that point nowhere, samples and summaries."""

from tasks.jobs.record.templates import (
    Choice,
    Span,
    Template,
)

QUALITY = (
    Template(
        "orphan_orders",
        "orders",
        4,
        """SELECT o.region, count(*) AS n, min(o.order_id) AS example FROM {input} AS o
        ANTI JOIN (SELECT * FROM dims.customers WHERE segment <> '{segment}') AS c USING (customer_id)
        GROUP BY o.region""",
        {"segment": Choice(("home", "office", "school", "public"))},
        databases=("dims",),
        merge="SELECT region, sum(n) AS n, min(example) AS example FROM {partials} GROUP BY region ORDER BY region",
    ),
    Template(
        "column_profile",
        "orders",
        4,
        """SELECT count(*) AS n, count(comment) AS filled, min(length(comment)) AS shortest,
        max(length(comment)) AS longest, bit_xor(hash(order_id)) AS checksum, avg(total) AS mean FROM {input}
        WHERE status <> '{status}'""",
        {"status": Choice(("open", "paid", "shipped"))},
        merge="""SELECT sum(n) AS n, sum(filled) AS filled, min(shortest) AS shortest, max(longest) AS longest,
        bit_xor(checksum) AS checksum, sum(mean * n) / sum(n) AS mean FROM {partials}""",
    ),
    Template(
        "duplicate_comments",
        "orders",
        2,
        "SELECT md5(comment) AS digest, count(*) AS n FROM {input} WHERE total > {low} GROUP BY digest",
        {"low": Span(200, 900)},
        memory_mb=(512, 64),
        merge="""SELECT n, count(*) AS digests FROM (SELECT sum(n) AS n FROM {partials} GROUP BY digest)
        GROUP BY n ORDER BY n""",
    ),
    Template(
        "stale_statuses",
        "orders",
        3,
        """SELECT order_id, customer_id, total FROM {input} WHERE status = 'open'
        AND order_date < DATE '2024-01-01' + {day}
        QUALIFY row_number() OVER (PARTITION BY region ORDER BY total DESC, order_id) <= 50""",
        {"day": Span(30, 300)},
        source="table",
        databases=("sales",),
        merge="SELECT * FROM {partials} ORDER BY total DESC, order_id LIMIT 50",
    ),
    Template(
        "missing_parts",
        "lineitems",
        4,
        """SELECT order_id // 1000 AS block, count(*) AS n, count(DISTINCT line_no) AS numbers FROM {input}
        WHERE price > {price} GROUP BY block""",
        {"price": Span(1, 50)},
        merge="""SELECT r.block, coalesce(p.n, 0) AS n, p.numbers FROM (
            SELECT block, sum(n) AS n, max(numbers) AS numbers FROM {partials} GROUP BY block) AS p
        RIGHT JOIN range(2000) AS r(block) ON r.block = p.block ORDER BY r.block""",
    ),
    Template(
        "key_overlap",
        "events",
        8,
        "SELECT DISTINCT user_id FROM {input} WHERE kind = '{kind}'",
        {"kind": Choice(("click", "cart", "buy"))},
        databases=("dims",),
        merge="""SELECT count(*) FILTER (WHERE p.user_id IS NULL) AS only_known,
        count(*) FILTER (WHERE c.customer_id IS NULL) AS only_seen, count(*) AS n FROM dims.customers AS c
        FULL JOIN (SELECT DISTINCT user_id FROM {partials}) AS p ON p.user_id = c.customer_id""",
    ),
    Template(
        "outliers",
        "readings",
        6,
        """SELECT device_id, temperature, pressure FROM {input}
        WHERE temperature > (SELECT avg(temperature) + {tenths} / 10.0 * stddev_pop(temperature) FROM {input})""",
        {"tenths": Span(8, 15)},
        merge="""SELECT device_id, count(*) AS n, max(temperature) AS top FROM {partials}
        GROUP BY device_id ORDER BY n DESC, device_id""",
        is_exact=False,
    ),
    Template(
        "sample_export",
        "events",
        3,
        """COPY (SELECT * FROM {input} WHERE hash(user_id) % {every} = 0 ORDER BY ts LIMIT 20000)
        TO '{out}' (FORMAT parquet)""",
        {"every": Span(3, 30)},
        source="table",
        databases=("web",),
    ),
    Template(
        "repeated_lines",
        "weblog",
        3,
        """SELECT split_part(ip, '.', 2) AS site, path, min(ts) AS first, max(ts) AS latest, count(*) AS n FROM {input}
        WHERE method = '{method}' GROUP BY ALL""",
        {"method": Choice(("GET", "POST"))},
        source="csv",
        merge="""SELECT site, path, date_diff('second', min(first), max(latest)) AS apart_s, sum(n) AS n FROM {partials}
        GROUP BY site, path HAVING sum(n) > 1 ORDER BY apart_s, site, path LIMIT 200""",
    ),
    Template(
        "load_log_summary",
        "weblog",
        4,
        """CREATE OR REPLACE TABLE web.log_summary AS SELECT date_trunc('minute', ts) AS minute, status,
        quantile_cont(ms, 0.95) AS slow_ms, count(DISTINCT ip) AS clients FROM {input} WHERE bytes > {bytes}
        GROUP BY ALL ORDER BY ALL""",
        {"bytes": Span(200, 5000)},
        source="csv",
        writes="web",
    ),
)
