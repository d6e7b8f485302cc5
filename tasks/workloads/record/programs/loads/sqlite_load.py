"""The workload `sqlite`: an embedded database that is written to or asked until killed."""

import json
import random
import sqlite3
import sys
from typing import Any

CHUNK = 20_000
CUSTOMERS = 2_000
REPORTS = (
    "SELECT customer, count(*), sum(amount), avg(amount) FROM orders GROUP BY customer ORDER BY 3 DESC LIMIT 20",
    "SELECT a.customer, max(a.amount - b.amount) FROM orders a JOIN orders b ON b.id = a.id + 7 GROUP BY a.customer",
    "SELECT amount / 100, count(DISTINCT customer) FROM orders WHERE text LIKE '%7%' GROUP BY 1",
)


def main(options: dict[str, Any]) -> None:
    """Fill the table, then write or ask for ever."""
    dice = random.Random(options["seed"])
    database = sqlite3.connect("orders.sqlite", isolation_level=None)
    database.execute("DROP TABLE IF EXISTS orders")
    database.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, customer INTEGER, amount INTEGER, text TEXT)")
    for _ in range(0, int(options["rows"]), CHUNK):
        database.execute("BEGIN")
        database.executemany("INSERT INTO orders (customer, amount, text) VALUES (?, ?, ?)", rows(dice, CHUNK))
        database.execute("COMMIT")
    while True:
        if options["mode"] == "reports":
            database.execute(dice.choice(REPORTS)).fetchall()
            continue
        database.execute("BEGIN IMMEDIATE")
        database.executemany("INSERT INTO orders (customer, amount, text) VALUES (?, ?, ?)", rows(dice, 3))
        database.execute("UPDATE orders SET amount = amount + 1 WHERE id = ?", (dice.randrange(int(options["rows"])),))
        database.execute("COMMIT")


def rows(dice: random.Random, n_rows: int) -> list[tuple[int, int, str]]:
    """Orders of random customers."""
    return [(dice.randrange(CUSTOMERS), dice.randrange(10_000), f"{dice.random():.9f}" * 4) for _ in range(n_rows)]


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
