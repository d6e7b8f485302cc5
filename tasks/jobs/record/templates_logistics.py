"""Templates over line items: shipping, stock and prices."""

from tasks.jobs.record.templates import (
    Choice,
    Span,
    Template,
)

MODE = Choice(("truck", "mail", "rail", "air", "ship"))

LOGISTICS = (
    Template(
        "shipments_by_week",
        "lineitems",
        6,
        """SELECT ship_mode, date_trunc('week', ship_date) AS week, sum(quantity) AS quantity FROM {input}
        WHERE return_flag <> '{flag}' GROUP BY ALL""",
        {"flag": Choice(("R", "A"))},
        merge="""SELECT ship_mode, week, quantity, sum(quantity) OVER (PARTITION BY ship_mode ORDER BY week) AS so_far
        FROM (SELECT ship_mode, week, sum(quantity) AS quantity FROM {partials} GROUP BY ALL)
        QUALIFY quantity > 0.9 * avg(quantity) OVER (PARTITION BY ship_mode) ORDER BY ALL""",
    ),
    Template(
        "returned_products",
        "lineitems",
        3,
        """SELECT product_id, count(*) AS n, count(*) FILTER (WHERE return_flag = 'R') AS returned FROM {input}
        WHERE ship_mode <> '{mode}' GROUP BY product_id""",
        {"mode": MODE, "percent": Span(20, 40)},
        databases=("dims",),
        merge="""SELECT p.category, count(*) AS products, avg(s.returned / s.n) AS share FROM (
            SELECT product_id, sum(n) AS n, sum(returned) AS returned FROM {partials} GROUP BY product_id
            HAVING sum(returned) * 100 > sum(n) * {percent}) AS s
        JOIN dims.products AS p USING (product_id) GROUP BY p.category ORDER BY p.category""",
    ),
    Template(
        "unsold_products",
        "lineitems",
        6,
        "SELECT DISTINCT product_id FROM {input} WHERE quantity > {quantity}",
        {"quantity": Span(10, 45)},
        databases=("dims",),
        merge="""SELECT p.category, count(*) AS unsold, min(p.name) AS example FROM dims.products AS p
        WHERE p.product_id NOT IN (SELECT product_id FROM {partials}) GROUP BY p.category ORDER BY ALL""",
    ),
    Template(
        "price_extremes",
        "lineitems",
        4,
        """SELECT product_id, min(price) AS low, max(price) AS high FROM {input}
        WHERE ship_date >= DATE '2024-01-01' + {day} GROUP BY product_id""",
        {"day": Span(0, 500), "k": Span(20, 300)},
        merge="""SELECT product_id, max(high) - min(low) AS spread FROM {partials} GROUP BY product_id
        ORDER BY spread DESC, product_id LIMIT {k}""",
    ),
    Template(
        "mode_quartiles",
        "lineitems",
        4,
        """SELECT ship_mode, CAST(round(price) AS INTEGER) AS price, count(*) AS n FROM {input}
        WHERE discount > {cents} / 100.0 GROUP BY ALL""",
        {"cents": Span(0, 7)},
        merge="""SELECT ship_mode, quantile_disc(price, [0.25, 0.5, 0.75]) AS quartiles, count(*) AS n FROM (
            SELECT ship_mode, price, unnest(range(CAST(n AS BIGINT))) FROM {partials}) GROUP BY ALL ORDER BY ALL""",
    ),
    Template(
        "full_orders",
        "lineitems",
        2,
        """SELECT list_sort(list(DISTINCT ship_mode)) AS modes, order_id, sum(quantity) AS quantity FROM {input}
        WHERE price < {price} GROUP BY order_id""",
        {"price": Span(300, 900)},
        memory_mb=(512, 80),
        merge="""SELECT modes, count(*) AS orders, avg(quantity) AS quantity FROM {partials} GROUP BY modes
        ORDER BY orders DESC, modes""",
    ),
    Template(
        "first_lines",
        "lineitems",
        2,
        """SELECT category, count(*) AS n, sum(price) AS price FROM (
            SELECT p.category, l.price,
            row_number() OVER (PARTITION BY l.order_id ORDER BY l.price DESC, l.line_no) AS r
            FROM {input} AS l JOIN dims.products AS p USING (product_id) WHERE l.quantity > {quantity})
        WHERE r = 1 GROUP BY category""",
        {"quantity": Span(1, 30)},
        databases=("dims",),
        memory_mb=(512, 64),
        merge="""SELECT category, sum(n) AS n, sum(price) / sum(n) AS price FROM {partials}
        GROUP BY category ORDER BY n, category""",
    ),
    Template(
        "late_and_early",
        "lineitems",
        3,
        """SELECT 'early' AS half, ship_mode, sum(price) AS price FROM {input}
        WHERE ship_date < DATE '2024-01-01' + {day} GROUP BY ALL
        UNION ALL SELECT 'late', ship_mode, sum(price * (1 - discount)) FROM {input}
        WHERE ship_date >= DATE '2024-01-01' + {day} GROUP BY ALL""",
        {"day": Span(200, 500)},
        merge="""SELECT half, ship_mode, price, dense_rank() OVER (PARTITION BY half ORDER BY price) AS place FROM (
            SELECT half, ship_mode, round(sum(price), 2) AS price FROM {partials} GROUP BY ALL) ORDER BY ALL""",
    ),
    Template(
        "category_join",
        "lineitems",
        3,
        """SELECT p.category, l.ship_mode, l.return_flag, sum(l.quantity) AS quantity FROM {input} AS l
        JOIN dims.products AS p ON l.product_id = p.product_id AND p.name LIKE '%{digit}' GROUP BY ALL""",
        {"digit": Span(0, 9)},
        databases=("dims",),
        merge="""SELECT category, map_from_entries(list((ship_mode, quantity) ORDER BY ship_mode)) AS by_mode FROM (
            SELECT category, ship_mode, sum(quantity) AS quantity FROM {partials} GROUP BY ALL)
        GROUP BY category ORDER BY category""",
    ),
    Template(
        "compact_lines",
        "lineitems",
        3,
        """COPY (SELECT order_id, sum(price * quantity) AS total, count(*) AS lines, max(ship_date) AS shipped
        FROM {input} WHERE discount <= {cents} / 100.0 GROUP BY order_id) TO '{out}' (FORMAT parquet)""",
        {"cents": Span(2, 10)},
        memory_mb=(512, 64),
    ),
)
