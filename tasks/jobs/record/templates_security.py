"""Templates over a web server's logs in CSV: what someone who looks for attacks asks."""

from tasks.jobs.record.templates import (
    Choice,
    Span,
    Template,
)

AREA = Choice(("login", "admin", "api"))

SECURITY = (
    Template(
        "suspicious_clients",
        "weblog",
        3,
        """SELECT regexp_replace(ip, '[.][0-9]+[.]', '.*.') AS client, count(*) AS n,
        count(*) FILTER (WHERE status >= 400) AS failed FROM {input} WHERE path LIKE '/{area}/%' GROUP BY client""",
        {"area": AREA, "few": Span(1, 3)},
        source="csv",
        merge="""SELECT client, sum(failed) AS failed, sum(n) AS n FROM {partials} GROUP BY client
        HAVING sum(failed) >= {few} ORDER BY failed DESC, n DESC, client LIMIT 100""",
    ),
    Template(
        "networks_in_both",
        "weblog",
        3,
        """SELECT DISTINCT regexp_extract(ip, '^10[.][0-9]+[.][0-9]+') AS network, split_part(path, '/', 2) AS area
        FROM {input} WHERE path LIKE '/login/%' OR path LIKE '/{area}/%'""",
        {"area": Choice(("admin", "api"))},
        source="csv",
        merge="""WITH seen AS (FROM {partials})
        (SELECT network FROM seen WHERE area = 'login' INTERSECT SELECT network FROM seen WHERE area = '{area}')
        ORDER BY network""",
    ),
    Template(
        "robots_only",
        "weblog",
        2,
        """SELECT DISTINCT ip, agent LIKE '% {bot}/%' AS is_bot FROM {input}""",
        {"bot": Choice(("bot", "Chrome"))},
        source="csv",
        merge="""WITH seen AS (FROM {partials}), bots AS (
            SELECT ip FROM seen WHERE is_bot EXCEPT SELECT ip FROM seen WHERE NOT is_bot)
        SELECT split_part(ip, '.', 2) AS site, count(*) AS clients FROM bots GROUP BY site
        ORDER BY clients DESC, site""",
    ),
    Template(
        "rare_agents",
        "weblog",
        3,
        "SELECT agent, count(*) AS n, min(ts) AS first FROM {input} GROUP BY agent",
        {"k": Span(10, 60)},
        source="csv",
        merge="""SELECT agent, n, first, percent_rank() OVER (ORDER BY n) AS rank FROM (
            SELECT agent, sum(n) AS n, min(first) AS first FROM {partials} GROUP BY agent)
        ORDER BY n, agent LIMIT {k}""",
    ),
    Template(
        "bursts",
        "weblog",
        3,
        """SELECT split_part(ip, '.', 2) AS site, date_trunc('minute', ts) AS minute, count(*) AS n FROM {input}
        WHERE method <> '{method}' GROUP BY ALL""",
        {"method": Choice(("GET", "POST", "PUT"))},
        source="csv",
        merge="""WITH counts AS MATERIALIZED (SELECT site, minute, sum(n) AS n FROM {partials} GROUP BY ALL),
        usual AS (SELECT site, avg(n) AS mean FROM counts GROUP BY site)
        SELECT c.site, c.minute, c.n, u.mean FROM counts AS c JOIN usual AS u ON c.site = u.site AND c.n > 2 * u.mean
        ORDER BY c.n DESC, c.site, c.minute LIMIT 100""",
    ),
    Template(
        "errors_after_login",
        "weblog",
        3,
        """SELECT split_part(ip, '.', 2) AS site, ts, status, path LIKE '/login/%' AS is_login FROM {input}
        WHERE path LIKE '/login/%' OR status = {status}""",
        {"status": Choice(("404", "500", "503"))},
        source="csv",
        merge="""WITH hits AS MATERIALIZED (FROM {partials})
        SELECT e.site, count(*) AS errors, count(DISTINCT l.ts) AS logins FROM (
            FROM hits WHERE NOT is_login) AS e
        ASOF LEFT JOIN (SELECT site, ts FROM hits WHERE is_login) AS l ON e.site = l.site AND e.ts >= l.ts
        GROUP BY e.site ORDER BY errors DESC, e.site""",
    ),
    Template(
        "methods_by_client",
        "weblog",
        2,
        "SELECT ip, list_sort(list(DISTINCT method)) AS methods, sum(bytes) AS bytes FROM {input} GROUP BY ip",
        {"k": Span(5, 15)},
        source="csv",
        merge="""SELECT methods, count(*) AS clients, sum(bytes) AS bytes FROM (
            SELECT ip, list_sort(list_distinct(flatten(list(methods)))) AS methods, sum(bytes) AS bytes
            FROM {partials} GROUP BY ip) GROUP BY methods ORDER BY clients DESC, methods LIMIT {k}""",
    ),
    Template(
        "signed_log",
        "weblog",
        3,
        """COPY (SELECT md5(concat_ws('|', ts, ip, method, path, status)) AS signature, * FROM {input}
        WHERE path LIKE '/{area}/%') TO '{out}' (FORMAT csv, HEADER, COMPRESSION gzip)""",
        {"area": Choice(("login", "admin", "static"))},
        source="csv",
    ),
)
