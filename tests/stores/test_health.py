"""What a store says of the engine it stands on: settings that lose leases, schemas that do not fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa
from dev.servers import Server, redis_server

from tickoff.stores import open_store
from tickoff.stores.base import Examined
from tickoff.stores.redis import health as redis_health
from tickoff.stores.sql import health, schema


def checks(url: str) -> set[str]:
    store: Any = open_store(url)
    assert isinstance(store, Examined)
    found = {finding.check for finding in store.examine()}
    store.close()
    return found


def migrated(url: str) -> Any:
    store: Any = open_store(url)
    store.migrate()
    return store


def test_a_redis_that_forgets_evicts_or_has_replicas_is_told_of() -> None:
    """Each until it is put right, as the remedy says."""
    from redis import Redis

    with (
        redis_server() as server,
        redis_server("--replicaof", "127.0.0.1", str(server.port)) as replica,
        Redis.from_url(server.url) as client,
        Redis.from_url(replica.url) as other,
    ):
        while other.info("replication")["master_link_status"] != "up":
            pass
        client.config_set("maxmemory", "100mb")
        client.config_set("maxmemory-policy", "allkeys-lru")
        assert checks(server.url) == {"redis-eviction", "redis-persistence", "redis-replicas"}
        assert "redis-role" in checks(replica.url)
        client.config_set("maxmemory-policy", "noeviction")
        client.config_set("appendonly", "yes")
        client.config_set("min-replicas-to-write", "1")
        while not client.info("replication").get("min_slaves_good_slaves"):
            pass
        assert checks(server.url) == set()


def test_a_redis_user_without_info_is_told_of(redis: Server, name: str) -> None:
    """What cannot be looked at is not well either."""
    from redis import Redis

    with Redis.from_url(redis.url) as client:
        client.acl_setuser(name, enabled=True, passwords=["+pw"], keys=["*"], commands=["+@all", "-info"])
        assert checks(redis.url.replace("redis://", f"redis://{name}:pw@")) == {"redis-blind"}
        client.acl_deluser(name)


def test_a_redis_too_old_for_the_scripts_is_told_of() -> None:
    """No such server is at hand: its words are."""
    (finding,) = redis_health._age("redis://old", {"redis_version": "4.0.14"})
    assert finding.check == "redis-version"
    assert list(redis_health._age("redis://new", {"redis_version": "5.0.0"})) == []
    assert list(redis_health._age("redis://new", {"redis_version": "10.1"})) == []


@pytest.mark.parametrize("kind", ["sqlite", "postgres", "mariadb"])
def test_a_schema_that_is_missing_old_or_too_new_is_told_of(kind: str, url_of: Callable[[str], str]) -> None:
    """And making it, as the remedy says, is enough."""
    store = migrated(url_of(kind))
    assert store.examine() == []
    for version, words in ((0, "version 0"), (schema.MIGRATIONS[-1].version + 1, "and this Tickoff knows")):
        with store.engine.begin() as connection:
            connection.execute(sa.update(schema.version).values(version=version))
        if version == 0:
            words = "none of Tickoff's tables"
        (finding,) = store.examine()
        assert (finding.check, words in finding.what) == ("schema", True)
    with store.engine.begin() as connection:
        connection.execute(sa.update(schema.version).values(version=schema.MIGRATIONS[-1].version))
    store.close()


def test_examining_an_empty_database_makes_nothing(tmp_path: Any) -> None:
    """The doctor looks, and leaves no trace."""
    url = f"sqlite:///{tmp_path}/tickoff.db"
    assert checks(url) == {"schema"}
    assert sa.inspect(sa.create_engine(url)).get_table_names() == []


def test_a_pool_that_changes_sessions_between_statements_is_told_of(
    postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PgBouncer in transaction mode gives our session to whoever asks next; one in session mode does not."""
    store = migrated(postgres.url)
    assert store.examine() == []
    asked: list[int] = []

    def pooled(run: object) -> int:
        asked.append(1)
        return 1 if len(asked) < 3 else 2  # ours, then the other client's, then ours once more

    monkeypatch.setattr(health, "_backend", pooled)
    assert [finding.check for finding in store.examine()] == ["postgres-pooler"]
    store.close()
