"""Templates over orders: what accounting and planning ask."""

from tasks.jobs.record.templates import (
    Choice,
    Span,
    Template,
)

REGION = Choice(("emea", "apac", "amer", "latam", "nordics"))

FINANCE = (
    Template(
        "monthly_rollup",
        "orders",
        5,
        """SELECT region, date_trunc('month', order_date) AS month, status, sum(total) AS total, count(*) AS n
        FROM {input} WHERE total > {low} GROUP BY ALL""",
        {"low": Span(10, 100)},
        merge="""SELECT region, month, status, sum(total) AS total, sum(n) AS n, grouping(status) AS level
        FROM {partials} GROUP BY ROLLUP (region, month, status) ORDER BY ALL""",
    ),
    Template(
        "month_on_month",
        "orders",
        5,
        """SELECT region, date_trunc('month', order_date) AS month, sum(total) AS total FROM {input}
        WHERE status <> '{status}' GROUP BY ALL""",
        {"status": Choice(("open", "paid", "returned"))},
        merge="""SELECT region, month, total, total / lag(total) OVER by_month AS growth,
        avg(total) OVER (by_month ROWS 2 PRECEDING) AS smooth FROM (
            SELECT region, month, sum(total) AS total FROM {partials} GROUP BY ALL)
        WINDOW by_month AS (PARTITION BY region ORDER BY month) ORDER BY region, month""",
    ),
    Template(
        "status_matrix",
        "orders",
        6,
        """SELECT quarter(order_date) AS quarter, region, status, sum(total) AS total FROM {input}
        WHERE order_date >= DATE '2024-01-01' + {day} GROUP BY ALL""",
        {"day": Span(0, 300)},
        merge="""PIVOT {partials} ON status IN ('open', 'paid', 'shipped', 'returned') USING sum(total)
        GROUP BY region, quarter ORDER BY region, quarter""",
    ),
    Template(
        "big_spenders",
        "orders",
        4,
        "SELECT customer_id, sum(total) AS spent, count(*) AS n FROM {input} GROUP BY customer_id",
        {"n": Span(1, 3), "k": Span(20, 200)},
        databases=("dims",),
        merge="""SELECT c.name, c.country, s.spent FROM (
            SELECT customer_id, round(sum(spent), 2) AS spent FROM {partials} GROUP BY customer_id
            HAVING sum(n) > {n}) AS s JOIN dims.customers AS c USING (customer_id)
        ORDER BY s.spent DESC, c.name LIMIT {k}""",
    ),
    Template(
        "buyers_lost",
        "orders",
        4,
        """SELECT DISTINCT customer_id, order_date >= DATE '2024-01-01' + {day} AS is_late FROM {input}""",
        {"day": Span(200, 500)},
        databases=("dims",),
        merge="""WITH seen AS (FROM {partials})
        SELECT c.country, count(*) AS lost FROM (
            SELECT customer_id FROM seen WHERE NOT is_late EXCEPT SELECT customer_id FROM seen WHERE is_late) AS l
        JOIN dims.customers AS c USING (customer_id) GROUP BY c.country ORDER BY lost DESC, c.country""",
    ),
    Template(
        "median_order",
        "orders",
        3,
        "SELECT region, status, list(total) AS totals FROM {input} WHERE region <> '{region}' GROUP BY ALL",
        {"region": REGION},
        merge="""SELECT region, status, median(total) AS middle, mad(total) AS spread FROM (
            SELECT region, status, unnest(totals) AS total FROM {partials}) GROUP BY ALL ORDER BY ALL""",
    ),
    Template(
        "weekday_profile",
        "orders",
        6,
        """SELECT dayofweek(order_date) AS day, status, sum(total) AS total, sum(total * total) AS squares,
        count(*) AS n FROM {input} WHERE region = '{region}' GROUP BY ALL""",
        {"region": REGION},
        source="table",
        databases=("sales",),
        merge="""SELECT day, status, sum(total) / sum(n) AS mean,
        sqrt(sum(squares) / sum(n) - (sum(total) / sum(n)) ** 2) AS deviation FROM {partials}
        GROUP BY ALL ORDER BY day, status""",
    ),
    Template(
        "price_bands",
        "orders",
        6,
        """SELECT CASE WHEN total < {low} THEN 'small' WHEN total < 1000 THEN 'middle' ELSE 'large' END AS band,
        region, count(*) AS n, sum(total) AS total FROM {input} GROUP BY ALL""",
        {"low": Span(30, 200)},
        merge="""WITH bands AS MATERIALIZED (SELECT band, region, sum(n) AS n, sum(total) AS total FROM {partials}
        GROUP BY ALL)
        SELECT band, region, n, total FROM bands UNION ALL
        SELECT band, 'all', sum(n), sum(total) FROM bands GROUP BY band ORDER BY band, region""",
    ),
    Template(
        "open_orders_export",
        "orders",
        3,
        """COPY (SELECT o.order_id, c.name, o.total, o.comment FROM {input} AS o
        SEMI JOIN (SELECT customer_id FROM dims.customers WHERE segment = '{segment}') AS s USING (customer_id)
        JOIN dims.customers AS c USING (customer_id) WHERE o.status = 'open') TO '{out}' (FORMAT csv, HEADER)""",
        {"segment": Choice(("home", "office", "school", "public"))},
        databases=("dims",),
    ),
    Template(
        "spending_growth",
        "orders",
        3,
        """SELECT customer_id, year(order_date) AS year, sum(total) AS spent FROM {input}
        WHERE total < {high} GROUP BY ALL""",
        {"high": Span(800, 2000)},
        source="table",
        databases=("sales",),
        merge="""WITH years AS MATERIALIZED (SELECT customer_id, year, sum(spent) AS spent FROM {partials} GROUP BY ALL)
        SELECT count(*) AS customers, count(b.year) AS stayed, sum(b.spent) / sum(a.spent) AS ratio FROM years AS a
        LEFT JOIN years AS b ON a.customer_id = b.customer_id AND b.year = a.year + 1 WHERE a.year = 2024""",
    ),
)
