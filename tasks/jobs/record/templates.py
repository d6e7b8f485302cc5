"""The recurring jobs that are recorded, and the data sets that they read."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np

PARTS = 64  # a run reads 1 to 64 parts: input sizes inside one job can differ by more than a factor of 50


@dataclass(frozen=True)
class InputTable:
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
        InputTable("orders", "parquet", 50_000, ORDERS),
        InputTable("lineitems", "parquet", 80_000, LINEITEMS),
        InputTable("events", "parquet", 60_000, EVENTS),
        InputTable("weblog", "csv", 15_000, WEBLOG),
        InputTable("readings", "parquet", 100_000, READINGS),
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


FILE = Path(__file__).with_suffix(".yaml")
LINE_START = "\n" + 8 * " "  # within a statement: recordings know their plan by a hash over the text of its statements

Source = Literal["parquet", "csv", "table"]
Options = tuple[int, int] | tuple[str, ...]  # ends of whole numbers, both included; or texts to choose from


@dataclass(frozen=True)
class Template:
    """A kind of job.

    sql: what one vertex does, with the fields {input} (a relation over the vertex's own parts), {out} (a file of
    its own) and the template's parameters. merge: what the last vertex does, over {partials} (a relation over the
    results of the others); none where each vertex writes its own {out}, or where one vertex changes a database.
    typical_parts: parts of `data_set` that an everyday run reads. databases: read and locked shared;
    writes: the database that is locked alone and changed. memory_mb: limits that jobs may have; small ones spill.
    """

    name: str
    data_set: str
    typical_parts: int
    sql: str
    parameters: Mapping[str, Options] = field(default_factory=dict)
    source: Source = "parquet"
    databases: tuple[str, ...] = ()
    writes: str | None = None
    memory_mb: tuple[int, ...] = (512,)
    merge: str = ""

    def order(self, vertex_id: str, sql: str, parts: tuple[int, int] | None, **more: Any) -> "Order":
        """An order to a worker over this template's data; more: what else an Order says."""
        return Order(vertex_id, sql, self.data_set, parts, self.source, self.databases, self.writes, **more)


@cache
def templates() -> tuple[Template, ...]:
    """The shipped templates in their order, with distinct names."""
    import yaml  # here, since workers need none

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return tuple(_template(fields) for fields in yaml.load(FILE.read_text(encoding="utf-8"), loader))


def _template(fields: dict[str, Any]) -> Template:
    parameters = {name: tuple(options) for name, options in fields.pop("parameters", {}).items()}
    texts = {key: fields.pop(key).replace("\n", LINE_START) for key in ("sql", "merge") if key in fields}
    lists = {key: tuple(fields.pop(key)) for key in ("databases", "memory_mb") if key in fields}
    return Template(**(fields | texts | lists | {"parameters": parameters}))


def draw(options: Options, rng: np.random.Generator) -> int | str:
    """One value of a parameter, each equally likely."""
    first, last = options[0], options[-1]
    if isinstance(first, int) and isinstance(last, int):
        return int(rng.integers(first, last + 1))
    return options[int(rng.integers(len(options)))]


def composite(sql: str, merge: str) -> str:
    """The merge over the vertices' query in place of {partials}; the query itself where nothing is merged.

    {input} and the parameters stay as they are, so that the caller puts in the whole input of the job.
    """
    return merge.replace("{partials}", f"({sql})") if merge else sql


@dataclass(frozen=True)
class Order:
    """One vertex to run, or one job to plan (`is_explain`).

    parts: first part of the data set and number of parts, wrapping around; none for a merge.
    partials: results of earlier vertices that it reads; result: the file that it writes, if any.
    """

    vertex_id: str
    sql: str
    data_set: str
    parts: tuple[int, int] | None
    source: Source
    databases: tuple[str, ...]
    writes: str | None = None
    partials: tuple[str, ...] = ()
    result: str | None = None
    threads: int = 1
    memory_mb: int = 256
    is_cold: bool = False
    is_explain: bool = False

    def part_numbers(self) -> list[int]:
        """The parts in reading order."""
        if self.parts is None:
            return []
        first, count = self.parts
        return [(first + step) % PARTS for step in range(count)]


@dataclass(frozen=True)
class MeasuredVertex:
    """What a vertex saw. Times in seconds; bytes as bytes. buffer_bytes: the most that the engine held in buffers."""

    runtime_s: float
    lock_wait_s: float = 0.0
    query_s: float = 0.0
    cpu_s: float = 0.0
    temp_bytes: int = 0
    input_rows: int = 0
    read_bytes: int = 0
    written_bytes: int = 0
    disk_read_bytes: int = 0
    peak_memory_bytes: int = 0
    buffer_bytes: int = 0
    error: str = ""


@dataclass(frozen=True)
class PlannerEstimate:
    """What the engine's planner says of a whole job before it runs."""

    signature: str | None = None
    operators: dict[str, int] = field(default_factory=dict)
    estimated_rows: float = 0.0
    estimated_cost: float = 0.0
    error: str = ""
