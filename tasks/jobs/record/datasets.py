"""The data sets that jobs work on: tables in Parquet and CSV parts, and databases, with skewed keys and text.

Every value is a hash of its row number, so the same seed and scale give the same data on any number of threads.
"""

from dataclasses import dataclass

PARTS = 64  # a run reads 1 to 64 parts: input sizes inside one job can differ by more than a factor of 50


@dataclass(frozen=True)
class DataSet:
    """Rows of one kind, in PARTS files of `rows_per_part` rows; `select` makes the rows lo <= i < hi."""

    name: str
    suffix: str
    rows_per_part: int
    select: str

    def path(self, part: int) -> str:
        """Path of a part under the folder of the data sets."""
        return f"{self.name}/part-{part:04d}.{self.suffix}"


MACROS = """
CREATE OR REPLACE MACRO u(i, k) AS (hash(i * 1009 + k + {seed} * 7919) & 4503599627370495) / 4503599627370496.0;
CREATE OR REPLACE MACRO pick(i, k, n) AS CAST(floor(u(i, k) * n) AS INTEGER);
CREATE OR REPLACE MACRO skewed(i, k, n) AS CAST(floor(pow(u(i, k), 4) * n) AS INTEGER);
"""
ORDERS = """
SELECT {part} AS part, i AS order_id, skewed(i, 1, 60000) AS customer_id,
    DATE '2024-01-01' + pick(i, 2, 700) AS order_date,
    ['open', 'paid', 'shipped', 'returned'][1 + skewed(i, 3, 4)] AS status,
    round(10 + 2000 * pow(u(i, 4), 3), 2) AS total,
    ['emea', 'apac', 'amer', 'latam', 'nordics'][1 + skewed(i, 5, 5)] AS region,
    'please ' || ['leave at', 'ring the', 'call before', 'ignore the', 'hand to'][1 + pick(i, 6, 5)] || ' '
        || ['door', 'bell', 'delivery', 'dog', 'neighbour'][1 + pick(i, 7, 5)] || ' no ' || pick(i, 8, 90000) AS comment
FROM range({lo}, {hi}) AS t(i)
"""
LINEITEMS = """
SELECT {part} AS part, i // 4 AS order_id, CAST(i % 4 AS INTEGER) AS line_no, skewed(i, 11, 20000) AS product_id,
    1 + pick(i, 12, 50) AS quantity, round(1 + 900 * pow(u(i, 13), 2), 2) AS price,
    pick(i, 14, 11) / 100.0 AS discount, DATE '2024-01-01' + pick(i, 15, 760) AS ship_date,
    ['N', 'R', 'A'][1 + skewed(i, 16, 3)] AS return_flag, ['O', 'F'][1 + pick(i, 17, 2)] AS line_status,
    ['truck', 'mail', 'rail', 'air', 'ship'][1 + pick(i, 18, 5)] AS ship_mode
FROM range({lo}, {hi}) AS t(i)
"""
EVENTS = """
SELECT {part} AS part, skewed(i, 21, 50000) AS user_id,
    TIMESTAMP '2026-01-01' + to_seconds(CAST(i // 4 + pick(i, 22, 5000) AS BIGINT)) AS ts,
    ['view', 'click', 'search', 'cart', 'buy', 'error'][1 + skewed(i, 23, 6)] AS kind,
    ['de', 'fr', 'us', 'in', 'jp', 'br', 'se', 'ke'][1 + skewed(i, 24, 8)] AS country,
    'https://shop.example/' || ['p', 'c', 'search', 'cart', 'help'][1 + pick(i, 25, 5)] || '/' || skewed(i, 26, 9000)
        || '?ref=' || ['mail', 'ads', 'feed', 'partner'][1 + pick(i, 27, 4)] || '&q=' || pick(i, 28, 800) AS url,
    'ms=' || pick(i, 29, 4000) || ';os=' || ['linux', 'mac', 'win', 'android', 'ios'][1 + pick(i, 30, 5)]
        || ';tags=' || pick(i, 31, 40) || ',' || pick(i, 32, 40) || ',' || pick(i, 33, 40) AS payload
FROM range({lo}, {hi}) AS t(i)
"""
WEBLOG = """
SELECT TIMESTAMP '2026-01-01' + to_seconds(CAST(i // 3 AS BIGINT)) AS ts,
    '10.' || pick(i, 41, 64) || '.' || pick(i, 42, 255) || '.' || skewed(i, 43, 255) AS ip,
    ['GET', 'POST', 'PUT', 'DELETE'][1 + skewed(i, 44, 4)] AS method,
    '/' || ['api', 'static', 'img', 'login', 'admin'][1 + skewed(i, 45, 5)] || '/' || skewed(i, 46, 3000) AS path,
    [200, 304, 404, 500, 503][1 + skewed(i, 47, 5)] AS status, CAST(200 + 90000 * pow(u(i, 48), 4) AS BIGINT) AS bytes,
    'Mozilla/' || (4 + pick(i, 49, 2)) || '.0 (' || ['X11; Linux', 'Macintosh', 'Windows NT'][1 + pick(i, 50, 3)]
        || ') ' || ['Firefox', 'Chrome', 'Safari', 'bot'][1 + pick(i, 51, 4)] || '/' || (80 + pick(i, 52, 60)) AS agent,
    CAST(3 + 4000 * pow(u(i, 53), 6) AS INTEGER) AS ms
FROM range({lo}, {hi}) AS t(i)
"""
READINGS = """
SELECT {part} AS part, skewed(i, 61, 4000) AS device_id,
    TIMESTAMP '2026-02-01' + to_seconds(CAST(i // 8 + pick(i, 62, 30) AS BIGINT)) AS ts,
    round(18 + 9 * sin(i / 50000.0) + 4 * u(i, 63), 3) AS temperature, round(980 + 50 * u(i, 64), 2) AS pressure,
    round(3.3 + u(i, 65), 3) AS battery_v, ['ok', 'warn', 'bad'][1 + skewed(i, 66, 3)] AS quality
FROM range({lo}, {hi}) AS t(i)
"""
DATA_SETS = {
    data_set.name: data_set
    for data_set in (
        DataSet("orders", "parquet", 50_000, ORDERS),
        DataSet("lineitems", "parquet", 80_000, LINEITEMS),
        DataSet("events", "parquet", 60_000, EVENTS),
        DataSet("weblog", "csv", 15_000, WEBLOG),
        DataSet("readings", "parquet", 100_000, READINGS),
    )
}
WEBLOG_COLUMNS = (
    "columns = {'ts': 'TIMESTAMP', 'ip': 'VARCHAR', 'method': 'VARCHAR', 'path': 'VARCHAR', "
    "'status': 'INTEGER', 'bytes': 'BIGINT', 'agent': 'VARCHAR', 'ms': 'INTEGER'}, header = true, auto_detect = false"
)
# dims is never written during a campaign; writer jobs replace a table of each of the others
DATABASES = {
    "dims": """
CREATE TABLE dims.customers AS SELECT i AS customer_id, 'customer ' || i AS name,
    ['home', 'office', 'school', 'public'][1 + pick(i, 71, 4)] AS segment,
    ['de', 'fr', 'us', 'in', 'jp', 'br', 'se', 'ke'][1 + skewed(i, 72, 8)] AS country FROM range(60000) AS t(i);
CREATE TABLE dims.products AS SELECT i AS product_id, 'item ' || i AS name,
    ['toys', 'books', 'tools', 'food', 'garden', 'music'][1 + pick(i, 73, 6)] AS category FROM range(20000) AS t(i);
CREATE TABLE dims.devices AS SELECT i AS device_id, 'site ' || pick(i, 74, 60) AS site,
    TIMESTAMP '2026-02-01' + to_hours(pick(i, 75, 24)) AS calibrated_at, 0.5 - u(i, 76) AS offset_c
    FROM range(4000) AS t(i);
""",
    "sales": "CREATE TABLE sales.orders AS FROM read_parquet('{root}/orders/*.parquet') ORDER BY part;",
    "web": "CREATE TABLE web.views AS FROM read_parquet('{root}/events/*.parquet') ORDER BY part;",
    "plant": "CREATE TABLE plant.readings AS FROM read_parquet('{root}/readings/*.parquet') ORDER BY part;",
}
