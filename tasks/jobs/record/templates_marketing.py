"""Templates over click events: campaigns, audiences and cohorts."""

from tasks.jobs.record.templates import (
    Choice,
    Span,
    Template,
)

COUNTRY = Choice(("de", "fr", "us", "in", "jp", "br"))
REF = Choice(("mail", "ads", "feed", "partner"))

MARKETING = (
    Template(
        "campaign_buyers",
        "events",
        3,
        """SELECT user_id, bool_or(url LIKE '%ref={ref}&%') AS came, count(*) FILTER (WHERE kind = 'buy') AS bought
        FROM {input} GROUP BY user_id""",
        {"ref": REF},
        databases=("dims",),
        merge="""SELECT c.segment, came, count(*) AS users, sum(bought) AS bought FROM (
            SELECT user_id, bool_or(came) AS came, sum(bought) AS bought FROM {partials} GROUP BY user_id) AS u
        JOIN dims.customers AS c ON c.customer_id = u.user_id GROUP BY ALL ORDER BY ALL""",
    ),
    Template(
        "audience_overlap",
        "events",
        3,
        "SELECT DISTINCT user_id, kind FROM {input} WHERE country <> '{country}'",
        {"country": COUNTRY},
        merge="""WITH seen AS MATERIALIZED (SELECT DISTINCT user_id, kind FROM {partials})
        SELECT a.kind AS one, b.kind AS other, count(*) AS users FROM seen AS a
        JOIN seen AS b ON a.user_id = b.user_id AND a.kind < b.kind GROUP BY ALL ORDER BY ALL""",
    ),
    Template(
        "popular_items",
        "events",
        2,
        """SELECT country, CAST(split_part(split_part(url, '?', 1), '/', 5) AS INTEGER) AS item, count(*) AS n
        FROM {input} WHERE kind <> '{kind}' GROUP BY ALL""",
        {"kind": Choice(("view", "error", "search")), "k": Span(3, 12)},
        merge="""SELECT country, place, item, n FROM (
            SELECT country, item, n, row_number() OVER (PARTITION BY country ORDER BY n DESC, item) AS place FROM (
                SELECT country, item, sum(n) AS n FROM {partials} GROUP BY ALL))
        WHERE place <= {k} ORDER BY country, place""",
    ),
    Template(
        "searches",
        "events",
        2,
        """SELECT CAST(regexp_extract(url, 'q=([0-9]+)', 1) AS INTEGER) AS word, approx_top_k(country, 3) AS usual,
        count(*) AS n FROM {input} WHERE kind = 'search' GROUP BY word""",
        {"k": Span(10, 80)},
        merge="""SELECT word, sum(n) AS n, mode(usual[1]) AS country FROM {partials} GROUP BY word
        ORDER BY n DESC, word LIMIT {k}""",
        is_exact=False,
    ),
    Template(
        "activity_levels",
        "events",
        4,
        """SELECT user_id, count(*) AS n, count(DISTINCT kind) AS kinds FROM {input} WHERE user_id > {user}
        GROUP BY user_id""",
        {"user": Span(1000, 10_000)},
        merge="""SELECT CAST(floor(log2(n)) AS INTEGER) AS level, count(*) AS users, sum(n) AS events,
        max(kinds) AS kinds FROM (
            SELECT user_id, sum(n) AS n, max(kinds) AS kinds FROM {partials} GROUP BY user_id)
        GROUP BY level ORDER BY level""",
    ),
    Template(
        "country_users",
        "events",
        4,
        """SELECT e.country = c.country AS at_home, e.kind, count(*) AS n FROM {input} AS e
        JOIN dims.customers AS c ON e.user_id = c.customer_id AND c.segment <> '{segment}' GROUP BY ALL""",
        {"segment": Choice(("home", "office", "school", "public"))},
        source="table",
        databases=("web", "dims"),
        merge="""SELECT kind, sum(n) FILTER (WHERE at_home) / sum(n) AS share, sum(n) AS n FROM {partials}
        GROUP BY kind ORDER BY kind""",
    ),
    Template(
        "quarter_hours",
        "events",
        6,
        """SELECT time_bucket(INTERVAL {minutes} MINUTE, ts) AS slot, kind, count(*) AS n FROM {input} GROUP BY ALL""",
        {"minutes": Span(5, 30)},
        merge="""SELECT slot, kind, n, n / sum(n) OVER (PARTITION BY slot) AS share FROM (
            SELECT slot, kind, sum(n) AS n FROM {partials} GROUP BY ALL) ORDER BY slot, kind""",
    ),
    Template(
        "url_parts",
        "events",
        2,
        """COPY (SELECT user_id, ts, string_split(url, '/')[4] AS page, url_decode(split_part(url, '?', 2)) AS query,
        length(payload) AS size FROM {input} WHERE kind = '{kind}' ORDER BY ts, user_id
        LIMIT 5000) TO '{out}' (FORMAT json)""",
        {"kind": Choice(("click", "search"))},
    ),
    Template(
        "load_profiles",
        "events",
        3,
        """CREATE OR REPLACE TABLE web.profiles AS SELECT user_id, mode(country) AS country, histogram(kind) AS kinds,
        max(ts) AS seen FROM {input} WHERE user_id > {user} GROUP BY user_id""",
        {"user": Span(0, 5000)},
        writes="web",
    ),
    Template(
        "never_bought",
        "events",
        3,
        """SELECT DISTINCT e.user_id, e.country FROM {input} AS e
        WHERE e.kind = 'cart' AND e.user_id NOT IN (
            SELECT user_id FROM web.views WHERE kind = 'buy' AND part < {recent})""",
        {"recent": Span(2, 8)},
        source="parquet",
        databases=("web",),
        merge="""SELECT country, count(DISTINCT user_id) AS users, bit_xor(hash(user_id)) AS mark FROM (
            SELECT DISTINCT * FROM {partials}) GROUP BY country ORDER BY users DESC, country""",
    ),
)
