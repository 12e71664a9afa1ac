"""What only a store on PostgreSQL has: row-level security, parts by time, locks by project, lost connections."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest
from postgresql import project_held
from sqlalchemy import insert
from things import things

import heedful
from heedful import Conflict, Heedful, Invalid, Unavailable
from heedful.clock import to_stored
from heedful.jobs.retention import maintain
from heedful.settings import Retention
from heedful.storage.postgresql import tables
from heedful.storage.postgresql.tables import UNSECURED_TABLES
from heedful.storage.schema import events, metadata
from heedful.testing import ManualClock, ScriptedModel, WordEmbedder

SPEAKER = ScriptedModel(lambda messages: "SELECT a FROM t")


@pytest.fixture
def opening(empty_database: str, clock: ManualClock) -> Iterator[Callable[..., Heedful]]:
    opened: list[Heedful] = []

    def open_one(project: str = "default") -> Heedful:
        opened.append(
            heedful.open(empty_database, project=project, clock=clock, embedding=WordEmbedder(), language_model=SPEAKER)
        )
        return opened[-1]

    yield open_one
    for store in opened:
        store.close()


@contextmanager
def asking(url: str, **settings: str) -> Iterator[psycopg.Connection]:
    """A connection to the database of a store, past Heedful."""
    with psycopg.connect(url, options="-c search_path=heedful,public") as connection:
        if "project" in settings:
            # No number is that of a project that is not there.
            numbers = "SELECT id FROM projects WHERE name = %s"
            connection.execute("SELECT set_config('heedful.everything', 'on', false)")
            found = connection.execute(numbers, (settings.pop("project"),)).fetchone()
            settings |= {"project_id": str(found[0] if found else 0), "everything": "off"}
        for name, value in settings.items():
            connection.execute("SELECT set_config(%s, %s, false)", (f"heedful.{name}", value))
        yield connection


def counts(url: str, **settings: str) -> dict[str, int]:
    with asking(url, **settings) as connection:
        return {
            table: connection.execute(f"SELECT count(*) FROM {table}".encode()).fetchall()[0][0]
            for table in metadata.tables
        }


class TestRowLevelSecurity:
    @pytest.mark.slow
    def test_a_query_that_forgets_its_project_sees_nothing(
        self, opening: Callable[..., Heedful], empty_database: str, tmp_path: Path
    ) -> None:
        things(opening("theirs"), tmp_path)  # type: ignore[arg-type]
        opening("ours").remember("of our own")
        everything = counts(empty_database, everything="on")
        theirs = counts(empty_database, project="theirs")
        assert theirs == everything | {
            table: theirs[table]
            for table in ("projects", "datasets", "facts", "vectors", "changes", "entities", "links")
        }
        assert theirs["facts"] == everything["facts"] - 1
        for settings in ({}, {"project": "nobody"}, {"project": ""}, {"everything": "off"}):
            seen = counts(empty_database, **settings)
            assert {table for table, rows in seen.items() if rows} <= UNSECURED_TABLES
        assert counts(empty_database, project="ours")["facts"] == 1
        assert counts(empty_database, project="ours")["events"] == 0

    def test_nothing_can_be_written_for_another_project(
        self, opening: Callable[..., Heedful], empty_database: str
    ) -> None:
        fact = opening("theirs").remember("of theirs").fact_ids[0]
        opening("ours").remember("of ours")
        with asking(empty_database, project="ours") as connection:
            assert connection.execute("UPDATE facts SET text = 'gone' WHERE id = %s", (fact,)).rowcount == 0
            assert connection.execute("DELETE FROM facts WHERE id = %s", (fact,)).rowcount == 0
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute("INSERT INTO projects (name, created_at) VALUES ('mine', 0)")

    def test_every_table_has_one(self, empty_database: str) -> None:
        with asking(empty_database) as connection:
            rows = connection.execute(
                "SELECT relname, relrowsecurity AND relforcerowsecurity FROM pg_class "
                "WHERE relnamespace = 'heedful'::regnamespace AND relname = ANY(%s)",
                (list(metadata.tables),),
            ).fetchall()
        secured = dict(rows)
        assert secured.keys() == metadata.tables.keys()
        assert {table for table, has in secured.items() if not has} == UNSECURED_TABLES & metadata.tables.keys()


class TestTables:
    def test_they_have_the_columns_of_the_schema(self, empty_database: str) -> None:
        with asking(empty_database) as connection:
            rows = connection.execute(
                "SELECT table_name, column_name, is_nullable = 'YES' FROM information_schema.columns "
                "WHERE table_schema = 'heedful'"
            ).fetchall()
        for table in metadata.sorted_tables:
            existing = {column: nullable for name, column, nullable in rows if name == table.name}
            assert existing == {column.name: column.nullable for column in table.columns}, table.name

    def test_texts_are_in_the_order_of_their_bytes(self, empty_database: str) -> None:
        with asking(empty_database) as connection:
            rows = connection.execute(
                "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'heedful' "
                "AND data_type IN ('text', 'character varying') AND collation_name IS DISTINCT FROM 'C'"
            ).fetchall()
        assert {table for table, _ in rows} & metadata.tables.keys() == set()

    @pytest.mark.slow
    def test_a_database_that_others_use_is_not_touched_beyond_its_schema(self, postgresql_url: str) -> None:
        with psycopg.connect(postgresql_url) as connection:
            connection.execute("CREATE TABLE facts (id int)")
        with heedful.open(postgresql_url, embedding=WordEmbedder()) as store:
            store.remember("x")
            assert len(store.recall("x")) == 1
        with psycopg.connect(postgresql_url) as connection:
            assert connection.execute("SELECT count(*) FROM public.facts").fetchall() == [(0,)]

    def test_a_schema_of_another_program_is_refused(self, postgresql_url: str) -> None:
        with psycopg.connect(postgresql_url) as connection:
            connection.execute("CREATE SCHEMA heedful")
            connection.execute("CREATE TABLE heedful.customers (id int)")
        with pytest.raises(Conflict) as caught:
            heedful.open(postgresql_url, embedding=WordEmbedder())
        assert caught.value.code == "store_foreign"

    @pytest.mark.slow
    def test_threads_may_open_a_new_store_at_once(self, postgresql_url: str) -> None:
        faults: list[BaseException] = []

        def work(name: int) -> None:
            try:
                with heedful.open(postgresql_url, project=f"p{name}", embedding=WordEmbedder()) as store:
                    store.remember(f"by {name}")
            except BaseException as error:
                faults.append(error)

        threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert faults == []
        assert len(counts(postgresql_url)) == len(metadata.tables)

    @pytest.mark.slow
    def test_a_partition_that_is_read_by_its_name_shows_nothing(
        self, opening: Callable[..., Heedful], empty_database: str, tmp_path: Path
    ) -> None:
        things(opening(), tmp_path)  # type: ignore[arg-type]
        for table in ("events", "receipts"):
            assert any(TestParts().parts(empty_database, table).values())
            assert not any(TestParts().parts(empty_database, table, everything="off").values())

    def test_a_number_that_a_process_remembers_is_compared_with_the_name(
        self, opening: Callable[..., Heedful], empty_database: str
    ) -> None:
        stores = {name: opening(name) for name in ("red", "blue")}
        for name, store in stores.items():
            store.remember(f"a fact of {name}")
        with asking(empty_database, everything="on") as connection:
            # As after a restore from a backup in which projects were made in another order.
            connection.execute("UPDATE projects SET name = CASE name WHEN 'red' THEN 'b' ELSE 'r' END")
            connection.execute("UPDATE projects SET name = CASE name WHEN 'r' THEN 'red' ELSE 'blue' END")
        assert {name: [fact.text for fact in store.facts().items] for name, store in stores.items()} == {
            "red": ["a fact of blue"],
            "blue": ["a fact of red"],
        }


class TestParts:
    def parts(self, url: str, table: str, everything: str = "on") -> dict[str, int]:
        with asking(url, everything=everything) as connection:
            names = connection.execute(
                "SELECT c.relname FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid WHERE inhparent = %s::regclass",
                (table,),
            ).fetchall()
            return {
                name: connection.execute(f"SELECT count(*) FROM {name}".encode()).fetchall()[0][0]
                for (name,) in sorted(names)
            }

    def test_there_are_some_for_the_time_to_come(self, empty_database: str) -> None:
        assert len(self.parts(empty_database, "events")) == 1 + 1 + tables.AHEAD
        assert len(self.parts(empty_database, "receipts")) == 1 + 1 + tables.AHEAD

    @pytest.mark.slow
    def test_what_has_no_part_is_kept_and_moves_when_it_gets_one(
        self, opening: Callable[..., Heedful], empty_database: str, clock: ManualClock
    ) -> None:
        clock.now = datetime(2031, 5, 17, tzinfo=UTC)
        store = opening()
        fact = store.remember("x").fact_ids[0]
        shown = store.recall("x")
        event = store.signal([{"fact_id": fact, "signal_type": "used", "query": "x", "idempotency_key": "k"}])
        assert self.parts(empty_database, "events")["events_rest"] == 1
        done = maintain(store._workspace.database, to_stored(clock()), Retention(receipt_days=0))
        assert [line for line in done if line.startswith("made events")] == [
            "made events_2031_04", "made events_2031_07", "made events_2031_10"
        ]  # fmt: skip
        assert maintain(store._workspace.database, to_stored(clock()), Retention(receipt_days=0)) == []
        assert self.parts(empty_database, "events")["events_2031_04"] == 1
        assert self.parts(empty_database, "receipts")["receipts_2031_05"] == 1
        assert (
            store.signal([{"fact_id": fact, "signal_type": "used", "query": "x", "idempotency_key": "k"}]).event_ids
            == event.event_ids
        )
        assert store.signal_recall(shown.recall_id, used=[fact]).processed == 1
        store.retract(event.event_ids[0])
        assert all(check.ok for check in store.doctor())

    def test_a_write_that_waits_while_its_part_is_made_goes_there(
        self, opening: Callable[..., Heedful], empty_database: str, clock: ManualClock
    ) -> None:
        clock.now = datetime(2031, 5, 17, tzinfo=UTC)
        store = opening()
        used = {"fact_id": store.remember("x").fact_ids[0], "signal_type": "used", "query": "x"}
        with ThreadPoolExecutor(1) as thread:
            with store._workspace.database.write() as connection:
                assert tables.ensure_next_partition(connection, to_stored(clock())) == "events_2031_04"
                writing = thread.submit(store.signal, [used])
                self.wait_for_a_lock(empty_database)
            assert writing.result().processed == 1
        assert self.parts(empty_database, "events")["events_2031_04"] == 1

    def test_what_moves_to_its_part_meanwhile_is_found(
        self, opening: Callable[..., Heedful], empty_database: str, clock: ManualClock
    ) -> None:
        clock.now = datetime(2031, 5, 17, tzinfo=UTC)
        store = opening()
        store.remember("x")
        shown = store.recall("x")
        with ThreadPoolExecutor(1) as thread:
            with store._workspace.database.write() as connection:
                assert "receipts_2031_05" in tables.ensure_partitions(connection, to_stored(clock()))
                rating = thread.submit(store.signal_recall, shown.recall_id, helpful=shown[0])
                self.wait_for_a_lock(empty_database)
            assert rating.result().processed == 1

    @pytest.mark.slow
    def test_what_is_being_written_while_its_part_is_made_moves_too(
        self, opening: Callable[..., Heedful], empty_database: str, clock: ManualClock
    ) -> None:
        clock.now = datetime(2031, 5, 17, tzinfo=UTC)
        store = opening()
        fact = store.remember("x").fact_ids[0]
        with ThreadPoolExecutor(1) as thread:
            with store._workspace.database.write("default") as connection:
                connection.exec_driver_sql("LOCK TABLE events IN ROW EXCLUSIVE MODE")
                making = thread.submit(maintain, store._workspace.database, to_stored(clock()), Retention())
                self.wait_for_a_lock(empty_database)
                connection.execute(
                    insert(events).values(
                        id="e", project_id=1, dataset_id=1, kind="signal", target_type="fact", target_id=fact,
                        source="signal", value="used", confidence=1.0, idempotency_key="e",
                        at=to_stored(clock()), recorded_at=to_stored(clock()),
                    )
                )  # fmt: skip
            assert "made events_2031_04" in making.result(timeout=60)
        assert self.parts(empty_database, "events")["events_2031_04"] == 1

    def wait_for_a_lock(self, url: str) -> None:
        with asking(url) as connection:
            while not connection.execute("SELECT 1 FROM pg_locks WHERE NOT granted").fetchall():
                connection.rollback()

    @pytest.mark.slow
    def test_old_receipts_go_part_by_part(
        self, opening: Callable[..., Heedful], empty_database: str, clock: ManualClock
    ) -> None:
        store = opening()
        database = store._workspace.database
        store.remember("x")
        for month in (1, 2, 3):
            clock.now = datetime(2031, month, 20, tzinfo=UTC)
            maintain(database, to_stored(clock()), Retention(receipt_days=0))
            store.recall("x")
        clock.now = datetime(2031, 4, 1, tzinfo=UTC)
        done = maintain(database, to_stored(clock()), Retention(receipt_days=45))
        assert "dropped receipts_2031_01" in done
        remaining = self.parts(empty_database, "receipts")
        assert "receipts_2031_01" not in remaining
        assert (remaining["receipts_2031_02"], remaining["receipts_2031_03"]) == (1, 1)


class TestLocks:
    def test_projects_do_not_wait_for_each_other(self, opening: Callable[..., Heedful], empty_database: str) -> None:
        ours = opening("ours")
        opening("theirs").remember("x")
        with project_held(empty_database, "theirs"):
            fact = ours.remember("x").fact_ids[0]
            ours.signal([{"fact_id": fact, "signal_type": "used", "query": "x"}])

    def test_a_recall_does_not_wait_for_those_who_write(
        self, opening: Callable[..., Heedful], empty_database: str
    ) -> None:
        store = opening("ours")
        store.remember("x")
        with project_held(empty_database, "ours"):
            shown = store.recall("x")
        assert store.signal_recall(shown.recall_id, used=[shown[0].fact_id]).processed == 1


class TestReaching:
    def test_connections_that_were_lost_are_replaced(
        self, opening: Callable[..., Heedful], empty_database: str, postgresql_server: str
    ) -> None:
        store = opening()
        store.remember("x")
        cut(postgresql_server, empty_database)
        assert len(store.recall("x")) == 1
        cut(postgresql_server, empty_database)
        store.remember("y")
        assert store.usefulness_stats().total_facts == 2

    def test_a_server_that_is_not_there_is_named_without_its_password(self) -> None:
        with pytest.raises(Unavailable) as caught:
            heedful.open("postgresql://me:secret@127.0.0.1:1/db", embedding=WordEmbedder())
        assert caught.value.code == "store_unreachable"
        assert "postgresql://me:***@127.0.0.1:1/db" in str(caught.value)
        assert "secret" not in str(caught.value)

    def test_a_database_that_is_not_there_is_named(self, postgresql_server: str) -> None:
        with pytest.raises(Unavailable, match="nowhere") as caught:
            heedful.open(postgresql_server.replace("DATABASE", "nowhere"), embedding=WordEmbedder())
        assert caught.value.code == "store_refused"
        assert "CREATE DATABASE" in str(caught.value)

    @pytest.mark.parametrize("secret", ["locked:wrong-word@", "locked@"])
    def test_a_wrong_password_is_told_without_it(self, postgresql_server: str, secret: str) -> None:
        url = postgresql_server.replace("postgres@", secret).replace("DATABASE", "postgres")
        with pytest.raises(Unavailable) as caught:
            heedful.open(f"{url}?password=another-word" if ":" not in secret else url, embedding=WordEmbedder())
        assert caught.value.code == "store_refused"
        assert "PGPASSWORD" in str(caught.value)
        assert "-word" not in str(caught.value)

    def test_an_option_that_is_none_is_told(self, empty_database: str) -> None:
        with pytest.raises(Unavailable, match="options after the \\?") as caught:
            heedful.open(f"{empty_database}?colour=blue", embedding=WordEmbedder())
        assert caught.value.code == "store_refused"

    @pytest.mark.slow
    def test_the_tables_of_another_user_are_told_of(self, postgresql_url: str) -> None:
        heedful.open(postgresql_url, embedding=WordEmbedder()).close()
        with pytest.raises(Unavailable, match="REASSIGN OWNED") as caught:
            heedful.open(postgresql_url.replace("postgres@", "keeper@"), embedding=WordEmbedder())
        assert caught.value.code == "store_read_only"

    def test_another_name_of_the_scheme_will_do(self, empty_database: str) -> None:
        with heedful.open(empty_database.replace("postgresql:", "postgres:"), embedding=WordEmbedder()) as store:
            store.remember("x")

    @pytest.mark.parametrize("url", ["postgresql//me:secret@host/db", "postgresql://me:secret@host:abc/db"])
    def test_a_slip_in_the_url_is_told_without_its_password(self, url: str) -> None:
        with pytest.raises(Invalid) as caught:
            heedful.open(url, embedding=WordEmbedder())
        assert caught.value.field == "url_or_path"
        assert "secret" not in str(caught.value)

    def test_a_user_without_the_right_to_make_tables_is_told(self, postgresql_url: str) -> None:
        with psycopg.connect(postgresql_url) as connection:
            connection.execute("REVOKE CREATE ON DATABASE " + connection.info.dbname + " FROM PUBLIC")
            connection.execute("ALTER DATABASE " + connection.info.dbname + " OWNER TO postgres")
        with pytest.raises(Unavailable) as caught:
            heedful.open(postgresql_url.replace("postgres@", "keeper@"), embedding=WordEmbedder())
        assert caught.value.code == "store_read_only"
        assert "schema heedful" in str(caught.value)

    @pytest.mark.parametrize("url", ["postgresql+asyncpg://host/db", "postgresql+nonsense://host/db"])
    def test_another_driver_is_refused(self, url: str) -> None:
        with pytest.raises(Invalid) as caught:
            heedful.open(url, embedding=WordEmbedder())
        assert caught.value.field == "url_or_path"


def cut(server: str, url: str) -> None:
    """Ends all connections to a database."""
    with psycopg.connect(server.replace("DATABASE", "postgres"), autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (url.rpartition("/")[2],)
        )


def test_the_parts_of_a_year_follow_each_other_without_a_gap() -> None:
    moment = datetime(2027, 11, 30, tzinfo=UTC)
    for divided in tables._TABLES:
        for days in range(0, 800, 13):
            parts = tables._upcoming(divided, to_stored(moment + timedelta(days=days)))
            assert parts[0].start <= to_stored(moment + timedelta(days=days)) < parts[0].stop
            assert [one.stop for one in parts[:-1]] == [other.start for other in parts[1:]]


@pytest.mark.slow
def test_a_user_who_bypasses_row_level_security_is_warned(
    postgresql_url: str, empty_database: str, caplog: pytest.LogCaptureFixture
) -> None:
    heedful.open(empty_database, embedding=WordEmbedder()).close()
    assert caplog.text == ""
    heedful.open(postgresql_url, embedding=WordEmbedder()).close()
    assert "use a role that is not a superuser" in caplog.text
