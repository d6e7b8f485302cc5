"""Templates over orders and line items: what a shop's reports, exports and loads look like."""

from tasks.jobs.record.template import Choice, Span, Template

REGION = Choice(("emea", "apac", "amer", "latam", "nordics"))
DAY = Span(20, 600)

SALES = (
    Template(
        "revenue_by_segment",
        "orders",
        6,
        """SELECT c.segment, c.country, count(*) AS n, sum(o.total) AS revenue FROM {input} AS o
        JOIN dims.customers AS c USING (customer_id)
        WHERE o.order_date >= DATE '2024-01-01' + {day} GROUP BY ALL ORDER BY revenue DESC""",
        {"day": Span(0, 400)},
        databases=("dims",),
    ),
    Template(
        "pricing_summary",
        "lineitems",
        6,
        """SELECT return_flag, line_status, sum(quantity) AS quantity, sum(price * (1 - discount)) AS net,
        avg(price) AS avg_price, avg(discount) AS avg_discount, count(*) AS n FROM {input}
        WHERE ship_date <= DATE '2024-01-01' + {day} GROUP BY ALL ORDER BY ALL""",
        {"day": Span(300, 700)},
    ),
    Template(
        "top_products",
        "lineitems",
        5,
        """SELECT p.category, p.name, sum(l.quantity * l.price) AS revenue FROM {input} AS l
        JOIN dims.products AS p USING (product_id) WHERE l.discount < {cents} / 100.0
        GROUP BY ALL ORDER BY revenue DESC LIMIT {k}""",
        {"cents": Span(4, 11), "k": Span(5, 50)},
        databases=("dims",),
    ),
    Template(
        "big_orders",
        "lineitems",
        4,
        """SELECT order_id, sum(quantity) AS items, sum(price) AS total, list(product_id) AS products
        FROM {input} GROUP BY order_id HAVING sum(quantity) > {items} ORDER BY total DESC LIMIT 100""",
        {"items": Span(120, 170)},
        memory_mb=(512, 160),
    ),
    Template(
        "basket_pairs",
        "lineitems",
        2,
        """SELECT a.product_id AS one, b.product_id AS other, count(*) AS n FROM {input} AS a
        JOIN {input} AS b ON a.order_id = b.order_id AND a.line_no < b.line_no
        WHERE a.price > {price} GROUP BY ALL ORDER BY n DESC, one, other LIMIT 50""",
        {"price": Span(5, 300)},
        memory_mb=(512, 160),
    ),
    Template(
        "late_returns",
        "orders",
        5,
        """SELECT o.region, date_trunc('month', o.order_date) AS month, count(*) AS n FROM {input} AS o
        WHERE o.status = 'returned' AND NOT EXISTS (
            SELECT 1 FROM sales.orders AS s
            WHERE s.customer_id = o.customer_id AND s.part < {recent} AND s.total > 1900)
        GROUP BY ALL ORDER BY n DESC""",
        {"recent": Span(4, 10)},
        databases=("sales",),
    ),
    Template(
        "running_totals",
        "orders",
        3,
        """SELECT region, max(so_far) AS largest, avg(so_far) AS mean FROM (
            SELECT region, sum(total) OVER (PARTITION BY customer_id ORDER BY order_date, order_id) AS so_far
            FROM {input} WHERE total > {low}) GROUP BY region ORDER BY region""",
        {"low": Span(10, 100)},
        memory_mb=(512, 160),
    ),
    Template(
        "customer_deciles",
        "orders",
        4,
        """SELECT decile, min(spent) AS low, max(spent) AS high, count(*) AS n FROM (
            SELECT customer_id, spent, ntile(10) OVER (ORDER BY spent) AS decile FROM (
                SELECT customer_id, sum(total) AS spent FROM {input} WHERE region <> '{region}' GROUP BY customer_id))
        GROUP BY decile ORDER BY decile""",
        {"region": REGION},
    ),
    Template(
        "sorted_export",
        "lineitems",
        3,
        """COPY (SELECT * FROM {input} WHERE ship_date >= DATE '2024-01-01' + {day}
        ORDER BY ship_mode, price DESC, order_id) TO '{out}' (FORMAT parquet)""",
        {"day": Span(0, 200)},
        memory_mb=(512, 160),
    ),
    Template(
        "comment_search",
        "orders",
        5,
        """SELECT region, status, count(*) AS n, avg(total) AS mean FROM {input}
        WHERE regexp_matches(comment, '(leave|ring).*{word}.*{digit}$') GROUP BY ALL ORDER BY n DESC""",
        {"word": Choice(("door", "bell", "dog")), "digit": Span(0, 9)},
    ),
    Template(
        "segment_orders",
        "orders",
        6,
        """SELECT c.segment, o.status, count(*) AS n, sum(o.total) AS total, count(DISTINCT o.customer_id) AS buyers
        FROM {input} AS o JOIN dims.customers AS c USING (customer_id)
        WHERE o.region = '{region}' OR o.total > 500 GROUP BY ALL ORDER BY ALL""",
        {"region": REGION},
        source="table",
        databases=("sales", "dims"),
    ),
    Template(
        "load_orders",
        "orders",
        16,
        """CREATE OR REPLACE TABLE sales.orders_today AS SELECT *, upper(region) AS region_code FROM {input}
        WHERE order_date >= DATE '2024-01-01' + {day} ORDER BY customer_id, order_date""",
        {"day": Span(0, 60)},
        writes="sales",
    ),
)
