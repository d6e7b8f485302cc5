"""Templates over orders and line items: what a shop's reports, exports and loads look like."""

from tasks.jobs.record.templates import (
    Choice,
    Span,
    Template,
)

REGION = Choice(("emea", "apac", "amer", "latam", "nordics"))

SALES = (
    Template(
        "revenue_by_segment",
        "orders",
        6,
        """SELECT c.segment, c.country, count(*) AS n, sum(o.total) AS revenue FROM {input} AS o
        JOIN dims.customers AS c USING (customer_id)
        WHERE o.order_date >= DATE '2024-01-01' + {day} GROUP BY ALL""",
        {"day": Span(0, 400)},
        databases=("dims",),
        merge="""SELECT segment, country, sum(n) AS n, sum(revenue) AS revenue FROM {partials}
        GROUP BY ALL ORDER BY revenue DESC, segment, country""",
    ),
    Template(
        "pricing_summary",
        "lineitems",
        6,
        """SELECT return_flag, line_status, sum(quantity) AS quantity, sum(price * (1 - discount)) AS net,
        sum(price) AS price, sum(discount) AS discount, count(*) AS n FROM {input}
        WHERE ship_date <= DATE '2024-01-01' + {day} GROUP BY ALL""",
        {"day": Span(300, 700)},
        merge="""SELECT return_flag, line_status, sum(quantity) AS quantity, sum(net) AS net,
        sum(price) / sum(n) AS avg_price, sum(discount) / sum(n) AS avg_discount, sum(n) AS n
        FROM {partials} GROUP BY ALL ORDER BY ALL""",
    ),
    Template(
        "top_products",
        "lineitems",
        5,
        """SELECT product_id, sum(quantity * price) AS revenue FROM {input} WHERE discount < {cents} / 100.0
        GROUP BY product_id""",
        {"cents": Span(4, 11), "k": Span(5, 50)},
        databases=("dims",),
        merge="""SELECT p.category, p.name, sum(s.revenue) AS revenue FROM {partials} AS s
        JOIN dims.products AS p USING (product_id) GROUP BY ALL ORDER BY revenue DESC, p.name LIMIT {k}""",
    ),
    Template(  # an order's lines stand in one part, so that each vertex may cut its own list
        "big_orders",
        "lineitems",
        2,
        """SELECT order_id, sum(quantity) AS items, sum(price) AS total, list_sort(list(product_id)) AS products
        FROM {input} GROUP BY order_id HAVING sum(quantity) > {items} ORDER BY total DESC, order_id LIMIT 100""",
        {"items": Span(120, 170)},
        memory_mb=(512, 80),
        merge="SELECT * FROM {partials} ORDER BY total DESC, order_id LIMIT 100",
    ),
    Template(
        "basket_pairs",
        "lineitems",
        2,
        """SELECT a.product_id AS one, b.product_id AS other, count(*) AS n FROM {input} AS a
        JOIN {input} AS b ON a.order_id = b.order_id AND a.line_no < b.line_no
        WHERE a.price > {price} AND b.price > {price} GROUP BY ALL""",
        {"price": Span(150, 400)},
        memory_mb=(512, 64),
        merge="""SELECT one, other, sum(n) AS n FROM {partials} GROUP BY ALL ORDER BY n DESC, one, other LIMIT 50""",
    ),
    Template(
        "late_returns",
        "orders",
        5,
        """SELECT o.region, date_trunc('month', o.order_date) AS month, count(*) AS n FROM {input} AS o
        WHERE o.status = 'returned' AND NOT EXISTS (
            SELECT 1 FROM sales.orders AS s
            WHERE s.customer_id = o.customer_id AND s.part < {recent} AND s.total > 1900)
        GROUP BY ALL""",
        {"recent": Span(4, 10)},
        databases=("sales",),
        merge="SELECT region, month, sum(n) AS n FROM {partials} GROUP BY ALL ORDER BY n DESC, region, month",
    ),
    Template(
        "running_totals",
        "orders",
        2,
        """SELECT region, max(so_far) AS largest, sum(so_far) AS total, count(*) AS n FROM (
            SELECT region, sum(total) OVER (PARTITION BY customer_id ORDER BY order_date, order_id) AS so_far
            FROM {input} WHERE total > {low}) GROUP BY region""",
        {"low": Span(10, 100)},
        memory_mb=(512, 64),
        merge="""SELECT region, max(largest) AS largest, sum(total) / sum(n) AS mean FROM {partials}
        GROUP BY region ORDER BY region""",
        is_exact=False,
    ),
    Template(
        "customer_deciles",
        "orders",
        4,
        "SELECT customer_id, sum(total) AS spent FROM {input} WHERE region <> '{region}' GROUP BY customer_id",
        {"region": REGION},
        merge="""SELECT decile, min(spent) AS low, max(spent) AS high, count(*) AS n FROM (
            SELECT spent, ntile(10) OVER (ORDER BY spent, customer_id) AS decile FROM (
                SELECT customer_id, round(sum(spent), 2) AS spent FROM {partials} GROUP BY customer_id))
        GROUP BY decile ORDER BY decile""",
    ),
    Template(
        "sorted_export",
        "lineitems",
        3,
        """COPY (SELECT * FROM {input} WHERE ship_date >= DATE '2024-01-01' + {day}
        ORDER BY ship_mode, price DESC, order_id) TO '{out}' (FORMAT parquet)""",
        {"day": Span(300, 600)},
        memory_mb=(512, 80),
    ),
    Template(
        "comment_search",
        "orders",
        3,
        """SELECT region, status, count(*) AS n, sum(total) AS total FROM {input}
        WHERE regexp_matches(comment, '(leave|ring).*{word}.*{digit}$') GROUP BY ALL""",
        {"word": Choice(("door", "bell", "dog")), "digit": Span(0, 9)},
        merge="""SELECT region, status, sum(n) AS n, sum(total) / sum(n) AS mean FROM {partials}
        GROUP BY ALL ORDER BY n DESC, region, status""",
    ),
    Template(
        "segment_orders",
        "orders",
        4,
        """SELECT c.segment, o.status, o.customer_id, count(*) AS n, sum(o.total) AS total
        FROM {input} AS o JOIN dims.customers AS c USING (customer_id)
        WHERE o.region = '{region}' OR o.total > 500 GROUP BY ALL""",
        {"region": REGION},
        source="table",
        databases=("sales", "dims"),
        merge="""SELECT segment, status, sum(n) AS n, sum(total) AS total, count(DISTINCT customer_id) AS buyers
        FROM {partials} GROUP BY ALL ORDER BY ALL""",
    ),
    Template(
        "load_orders",
        "orders",
        5,
        """CREATE OR REPLACE TABLE sales.orders_today AS SELECT o.*, c.segment, upper(o.region) AS region_code
        FROM {input} AS o LEFT JOIN dims.customers AS c USING (customer_id)
        WHERE o.order_date >= DATE '2024-01-01' + {day} ORDER BY o.customer_id, o.order_date""",
        {"day": Span(300, 500)},
        databases=("dims",),
        writes="sales",
    ),
)
