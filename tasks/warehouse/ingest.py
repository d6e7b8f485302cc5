"""Landed batches into the warehouse: a file in whole or not at all, each row once, the best row of each key.

Parts of a row, such as the counters of a run, come and go with it; so do the machines that executions name."""

import json
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from tasks.intake.files import REFUSE_VALUES
from tasks.warehouse import landing
from tasks.warehouse.connection import Connection, count_of, transaction, writing
from tasks.warehouse.landing import Batch
from tasks.warehouse.place import Warehouse
from tasks.warehouse.sources import insert_row

READINGS = """
    SELECT batch_id, landed_at FROM ops.files WHERE word = ? AND source = ? AND reader = ? AND origin_sha256 = ?
"""
UNKNOWN = "unknown"  # the type of a machine of which nobody says it
# Which of two rows with one key counts: a final one, then that of the later file, then the later line.
BETTER = "{settled} DESC, ordered_at DESC, batch_id DESC, place DESC"


@dataclass(frozen=True)
class LandedTable:
    """A table whose rows come from landing files.

    key: columns that name a row within its source. settled: SQL that is true for a row that is final; a final row
    is never replaced by one that is not (a finished run by an older export of it). n_rows: SQL for the number of rows
    of the file that a row was made of. parts: further tables of the word whose rows belong to a row of this one (key
    and place are the same) and come and go with it. has_machines: its column `node` names machines, which ops.machines
    then lists."""

    word: str
    name: str
    key: str
    settled: str
    label: str
    n_rows: str = "1"
    parts: tuple[str, ...] = ()
    has_machines: bool = False

    @property
    def qualified(self) -> str:
        """Schema and name."""
        return f"{self.word}.{self.name}"

    @property
    def qualified_parts(self) -> tuple[str, ...]:
        """Schema and name of each of the parts."""
        return tuple(f"{self.word}.{part}" for part in self.parts)


RUNS = LandedTable("jobs", "runs", "run_id", "status NOT IN ('running', 'pending')", "run id")
TELEMETRY = LandedTable("workloads", "runs", "run_id", "true", "run id", n_rows="n_rows", parts=("counters",))
EXECUTIONS = LandedTable(
    "nodes",
    "executions",
    "execution_id",
    "true",
    "execution id",
    n_rows="n_rows",
    parts=("metrics", "telemetry", "logs"),
    has_machines=True,
)
MAIN_TABLES = {table.word: table for table in [RUNS, TELEMETRY, EXECUTIONS]}


def ingest(warehouse: Warehouse, word: str, batch_id: str) -> bool:
    """Load one landed batch; false if it is there already. The same batch twice changes nothing.

    Raises BadInput if its landing files are missing or changed, WarehouseBusy."""
    batch = landing.find_batch(warehouse.landing_folder, word, batch_id)
    with writing(warehouse) as connection:
        if _is_known(connection, batch):
            return False
        with transaction(connection):
            load(connection, warehouse.landing_folder, batch)
    return True


def _is_known(connection: Connection, batch: Batch) -> bool:
    """In the warehouse already, or replaced there by a later reading of the same file."""
    rows = connection.execute(READINGS, batch.origin.file_key).fetchall()
    return any(landed_at >= batch.landed_at for _, landed_at in rows)


def load(connection: Connection, folder: str, batch: Batch) -> None:
    """Put the rows of a batch in, and take those of an earlier reading of the same file out.

    The caller holds the transaction."""
    table = MAIN_TABLES[batch.origin.word]
    may_have_orphans = _forget_earlier_readings(connection, table, batch)
    with ExitStack() as stack:
        rows = stack.enter_context(landing.local_file(folder, batch, table.name))
        refused = stack.enter_context(landing.local_file(folder, batch, "quarantine"))
        _stage(connection, table, batch, [(batch, str(rows))])
        n_repeated = _quarantine(connection, table, batch, str(refused))
        n_refused = batch.n_quarantined
        if table.word in REFUSE_VALUES:  # values of landed rows, and further faults of a row, are no rows of the file
            places = f"SELECT count(DISTINCT place) FROM {parquet(str(refused))} ANTI JOIN incoming USING (place)"
            n_refused = count_of(connection, places)
        kept = f"SELECT coalesce(sum({table.n_rows}), 0) FROM incoming ANTI JOIN repeated USING (batch_id, place)"
        n_kept = count_of(connection, kept)
        _merge(connection, table, folder, batch)
    _register(connection, batch, n_kept, n_refused + n_repeated)
    if may_have_orphans:
        _reconcile(connection, folder, table, batch)
    if table.has_machines:
        register_machines(connection, table, batch.origin.source)
    connection.execute("DROP VIEW incoming; DROP TABLE repeated; DROP TABLE IF EXISTS orphans")


def _forget_earlier_readings(connection: Connection, table: LandedTable, batch: Batch) -> bool:
    """Remove what earlier readings of this file gave; the keys go to `orphans`.

    Returns whether another file may hold a row for one of them."""
    word, source = batch.origin.word, batch.origin.source
    old = connection.execute(READINGS, batch.origin.file_key).fetchall()
    if not old:
        return False
    # two files hold a row of the same key where files hold more rows than the table
    files_hold = "SELECT sum(n_kept) FROM ops.files WHERE word = $word AND source = $source"
    table_holds = f"SELECT coalesce(sum({table.n_rows}), 0) FROM {table.qualified} WHERE source = $source"
    overlap = count_of(connection, f"SELECT ({files_hold}) > ({table_holds})", {"word": word, "source": source})
    ids = [batch_id for batch_id, _ in old]
    connection.execute(
        f"CREATE TEMP TABLE orphans AS SELECT {table.key} FROM {table.qualified} "
        "WHERE source = $source AND batch_id IN (SELECT unnest($ids))",
        {"source": source, "ids": ids},
    )
    for name in (table.qualified, *table.qualified_parts, "ops.quarantine", "ops.files"):
        connection.execute(f"DELETE FROM {name} WHERE batch_id IN (SELECT unnest($ids))", {"ids": ids})
    return bool(overlap)


def _stage(
    connection: Connection, table: LandedTable, batch: Batch, files: Sequence[tuple[Batch, str]], only: str = ""
) -> None:
    """View `incoming`: the landed rows with source, batch and order; table `repeated`: ids that stand twice.

    only: a join that leaves the rows of interest. A column that a file lacks is missing in its rows."""
    parts = [
        f"SELECT *, {as_text(landed.batch_id)} AS batch_id, TIMESTAMP {as_text(landed.ordered_at.isoformat(sep=' '))} "
        f"AS ordered_at FROM {parquet(path)} {only}"
        for landed, path in files
    ]
    connection.execute(
        f"CREATE OR REPLACE TEMP VIEW incoming AS SELECT {as_text(batch.origin.source)} AS source, * "
        f"FROM ({' UNION ALL BY NAME '.join(parts)})"
    )
    connection.execute(
        f"""CREATE OR REPLACE TEMP TABLE repeated AS
        WITH ids AS (SELECT {table.key} FROM incoming GROUP BY {table.key} HAVING count(*) > 1),
        final AS (
            SELECT batch_id, place, {table.key},
                first_value(place) OVER best AS kept_place, row_number() OVER best AS position
            FROM incoming SEMI JOIN ids USING ({table.key})
            WINDOW best AS (PARTITION BY {table.key} ORDER BY {BETTER.format(settled=f"({table.settled})")})
        )
        SELECT * FROM final WHERE position > 1"""
    )


def _quarantine(connection: Connection, table: LandedTable, batch: Batch, refused: str) -> int:
    """The reader's refusals and the repeated ids; returns how many ids were repeated."""
    origin = batch.origin
    about = [batch.batch_id, origin.word, origin.source]
    connection.execute(
        f"INSERT INTO ops.quarantine SELECT ?, ?, ?, place, reason, raw FROM {parquet(refused)} ORDER BY place", about
    )
    connection.execute(
        f"INSERT INTO ops.quarantine SELECT ?, ?, ?, place, "
        f"'{table.label} ' || {table.key} || ' stands again in row ' || kept_place || ', which counts', '' "
        "FROM repeated ORDER BY place",
        about,
    )
    return count_of(connection, "SELECT count(*) FROM repeated")


def _merge(connection: Connection, table: LandedTable, folder: str, batch: Batch) -> None:
    """Insert what is new, and replace rows of other files where the incoming row is the better one."""
    source = batch.origin.source
    connection.execute(
        f"""CREATE OR REPLACE TEMP TABLE clashes AS
        SELECT new.{table.key},
            (new.settled, new.ordered_at, new.batch_id) > (old.settled, old.ordered_at, old.batch_id) AS is_better
        FROM (SELECT *, ({table.settled}) AS settled FROM incoming ANTI JOIN repeated USING (batch_id, place)) AS new
        JOIN (
            SELECT rows.{table.key}, ({table.settled}) AS settled, files.ordered_at, files.batch_id
            FROM {table.qualified} AS rows JOIN ops.files AS files USING (batch_id)
            WHERE rows.source = $source
        ) AS old USING ({table.key})""",
        {"source": source},
    )
    replaced = f"SELECT {table.key} FROM clashes WHERE is_better"
    connection.execute(f"DELETE FROM {table.qualified} WHERE source = ? AND {table.key} IN ({replaced})", [source])
    forget_parts(connection, table, replaced, source)
    kept = f"""FROM incoming ANTI JOIN repeated USING (batch_id, place)
        WHERE {table.key} NOT IN (SELECT {table.key} FROM clashes WHERE NOT is_better)"""
    connection.execute(f"INSERT INTO {table.qualified} BY NAME SELECT * EXCLUDE (place, ordered_at) {kept}")
    put_parts(connection, table, folder, source, [batch], f"SELECT batch_id, place {kept}")
    connection.execute("DROP TABLE clashes")


def _register(connection: Connection, batch: Batch, n_kept: int, n_quarantined: int) -> None:
    origin = batch.origin
    row = {name: getattr(origin, name) for name in ("word", "source", "reader", "reader_version")}
    row |= {name: getattr(batch, name) for name in ("batch_id", "ordered_at", "landed_at")}
    row |= {
        "options": json.dumps(origin.options, sort_keys=True),
        "origin": origin.path,
        "origin_sha256": origin.sha256,
    }
    row |= {"n_read": n_kept + n_quarantined, "n_kept": n_kept, "n_quarantined": n_quarantined}
    insert_row(connection, "ops.files", row)


def _reconcile(connection: Connection, folder: str, table: LandedTable, batch: Batch) -> None:
    """Choose again, among all files of the source, the row of each key that an earlier reading had given."""
    word, source = batch.origin.word, batch.origin.source
    held = connection.execute("SELECT batch_id FROM ops.files WHERE word = ? AND source = ?", [word, source])
    batches = [landing.find_batch(folder, word, batch_id) for (batch_id,) in held.fetchall()]
    with ExitStack() as stack:
        files = [
            (landed, str(stack.enter_context(landing.local_file(folder, landed, table.name)))) for landed in batches
        ]
        _stage(connection, table, batch, files, f"SEMI JOIN orphans USING ({table.key})")
        given = f"SELECT {table.key} FROM orphans"
        connection.execute(f"DELETE FROM {table.qualified} WHERE source = ? AND {table.key} IN ({given})", [source])
        forget_parts(connection, table, given, source)
        kept = "FROM incoming ANTI JOIN repeated USING (batch_id, place)"
        connection.execute(f"INSERT INTO {table.qualified} BY NAME SELECT * EXCLUDE (place, ordered_at) {kept}")
        put_parts(connection, table, folder, source, batches, f"SELECT batch_id, place {kept}")


def as_text(value: str) -> str:
    """A text as an SQL literal."""
    return "'" + value.replace("'", "''") + "'"


def parquet(path: str) -> str:
    """The rows of one landing file; a folder called `env=prod` above it is a name and no column."""
    return f"read_parquet({as_text(path)}, hive_partitioning = false)"


def forget_parts(connection: Connection, table: LandedTable, keys: str, source: str) -> None:
    """Remove the parts of rows of a source; keys: a query for the keys of these rows."""
    for part in table.qualified_parts:
        connection.execute(f"DELETE FROM {part} WHERE source = ? AND {table.key} IN ({keys})", [source])


def put_parts(
    connection: Connection, table: LandedTable, folder: str, source: str, batches: Sequence[Batch], kept: str
) -> None:
    """Insert the parts of rows that were put into the main table.

    kept: a query for batch_id and place of these rows; their parts stand in the landing files of the batches."""
    for part, target in zip(table.parts, table.qualified_parts, strict=True):
        for batch in batches:
            with landing.local_file(folder, batch, part) as path:
                connection.execute(
                    f"""INSERT INTO {target} BY NAME
                    SELECT * EXCLUDE (place), ? AS source, {as_text(batch.batch_id)} AS batch_id
                    FROM {parquet(str(path))} WHERE place IN (SELECT place FROM ({kept}) WHERE batch_id = ?)""",
                    [source, batch.batch_id],
                )


def register_machines(connection: Connection, table: LandedTable, source: str) -> None:
    """Bring ops.machines into line with the rows of a source: one row a node, with the type that it had last.

    table: where the column `node` stands. The caller holds the transaction."""
    connection.execute(
        f"DELETE FROM ops.machines WHERE source = $source "
        f"AND node NOT IN (SELECT node FROM {table.qualified} WHERE source = $source)",
        {"source": source},
    )
    connection.execute(
        f"""INSERT INTO ops.machines
        WITH told AS (
            SELECT node, coalesce(
                arg_max(machine_type, (started_at, execution_id)) FILTER (machine_type IS NOT NULL), $unknown
            ) AS machine_type
            FROM {table.qualified} WHERE source = $source GROUP BY node
        ),
        final AS (
            SELECT $source AS source, told.node, told.machine_type
            FROM told LEFT JOIN ops.machines AS known ON known.source = $source AND known.node = told.node
            WHERE known.machine_type IS DISTINCT FROM told.machine_type
        )
        SELECT * FROM final ORDER BY node
        ON CONFLICT (source, node) DO UPDATE SET machine_type = excluded.machine_type""",
        {"source": source, "unknown": UNKNOWN},
    )
