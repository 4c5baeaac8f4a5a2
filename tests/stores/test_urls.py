"""Every way to say where the store is, and what is said to those who say it wrongly."""

from __future__ import annotations

import logging
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis as redis_py
import sqlalchemy as sa
from dev.redis_groups import redis_cluster, sentinel_server
from dev.servers import Server, redis_server

from tests.conftest import start
from tickoff import StoreUnreachable, Tickoff
from tickoff.errors import ConfigError
from tickoff.stores.sql.options import connect_args


def works(jobs: Tickoff, name: str) -> bool:
    """Whether a lock excludes on this store."""
    with jobs.lock(name) as lease:
        held = not jobs.race(name)
        renewed = jobs.store.renew([lease.hold()])[0].ok
        several = [answer.ok for answer in jobs.store.read([name, f"{name}-other"])]
    jobs.close()
    return held and renewed and several == [True, False]


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+asyncpg", "postgresql+psycopg2"])
def test_any_postgresql_url_uses_psycopg(postgres: Server, name: str, scheme: str) -> None:
    """Whatever driver is written, we use ours."""
    assert works(Tickoff(postgres.url.replace("postgresql", scheme, 1)), name)


@pytest.mark.parametrize("scheme", ["mysql", "mariadb", "mysql+aiomysql", "mariadb+mysqldb"])
def test_any_mysql_url_uses_pymysql(mariadb: Server, name: str, scheme: str) -> None:
    """MySQL and MariaDB are one family."""
    assert works(Tickoff(mariadb.url.replace("mysql", scheme, 1)), name)


def test_sqlite_leases_live_in_a_file_of_their_own(tmp_path: Path, name: str) -> None:
    """A long transaction in the user's database does not block leases."""
    users = sa.create_engine(f"sqlite:///{tmp_path}/shop.db")
    with users.connect() as connection:
        connection.exec_driver_sql("CREATE TABLE orders (id INTEGER)")
        connection.exec_driver_sql("BEGIN EXCLUSIVE")
        assert works(Tickoff(f"sqlite:///{tmp_path}/shop.db"), name)
        assert works(Tickoff(users), name)
    assert (tmp_path / "shop.db-tickoff").exists()
    assert sa.inspect(users).get_table_names() == ["orders"]
    users.dispose()


def test_a_folder_of_sqlite_that_is_not_there_is_told(tmp_path: Path) -> None:
    """SQLite's own words say only that it cannot open the file."""
    with pytest.raises(StoreUnreachable, match="its folder has to be there, and writable"):
        Tickoff(f"sqlite:///{tmp_path}/no-such-folder/tickoff.db").race("name")


def test_a_users_engine_is_used_without_touching_its_pool(postgres: Server, name: str) -> None:
    """Leases do not queue behind the user's transactions: a full pool does not matter."""
    url = postgres.url.replace("postgresql:", "postgresql+psycopg:")
    users = sa.create_engine(url, pool_size=1, max_overflow=0)
    with users.begin() as connection:
        assert works(Tickoff(users), name)
        assert connection.exec_driver_sql("SELECT 1").scalar() == 1
        assert connection.get_isolation_level() == "READ COMMITTED"
    users.dispose()


def test_a_users_mysql_engine_is_used(mariadb: Server, name: str) -> None:
    """Whatever the engine's own isolation, ours is set for ours."""
    users = sa.create_engine(mariadb.url.replace("mysql:", "mysql+pymysql:"), isolation_level="SERIALIZABLE")
    assert works(Tickoff(users), name)
    with users.connect() as connection:
        assert connection.get_isolation_level() == "SERIALIZABLE"
    users.dispose()


@pytest.mark.parametrize("decode", [False, True])
@pytest.mark.parametrize("protocol", [2, 3])
def test_a_users_redis_client_is_used(redis: Server, name: str, decode: bool, protocol: int) -> None:
    """Whatever the client's own settings."""
    users = redis_py.Redis(port=redis.port, decode_responses=decode, protocol=protocol)
    assert works(Tickoff(users), name)
    assert users.ping()
    users.close()


def test_async_clients_are_refused_with_the_remedy() -> None:
    """They are told what to pass instead."""
    with pytest.raises(ConfigError, match="pass the URL"):
        Tickoff(redis_py.asyncio.Redis())  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def cluster() -> Iterator[list[Server]]:
    """Three nodes of a Redis Cluster."""
    yield from start(redis_cluster)


def test_a_redis_cluster_keeps_names_on_all_its_nodes(cluster: list[Server], name: str) -> None:
    """Many names in one call, spread over the nodes; each name's keys stay together."""
    hosts = ",".join(f"127.0.0.1:{node.port}" for node in cluster)
    jobs = Tickoff(f"redis+cluster://{hosts}")
    assert works(Tickoff(f"redis+cluster://{hosts}"), name)
    store = jobs.store
    leases = [jobs.race(f"{name}-{i}") for i in range(20)]
    assert all(leases)
    assert [answer.ok for answer in store.read([f"{name}-{i}" for i in range(20)])] == [True] * 20
    assert len(store.names(f"{name}-")) == 20
    assert abs(store.now() - time.time() * 1000) < 5000
    used = [redis_py.Redis(port=node.port).dbsize() for node in cluster]
    assert all(size > 0 for size in used)
    jobs.close()


def test_a_sentinel_names_the_primary(redis: Server, name: str) -> None:
    """The Sentinels are asked where the primary is; it does the rest."""
    with sentinel_server("shop", redis) as sentinel:
        jobs = Tickoff(sentinel.url)
        assert works(jobs, name)
        assert redis_py.Redis(port=redis.port).exists(f"tickoff:{{lock:{name}}}") == 1
        jobs.close()


def test_a_redis_that_evicts_is_warned_about(caplog: pytest.LogCaptureFixture, name: str) -> None:
    """Once per process, naming the policy and the remedy."""
    for server in start(lambda: redis_server("--maxmemory", "50mb", "--maxmemory-policy", "allkeys-lru")):
        with caplog.at_level(logging.WARNING, "tickoff"):
            assert works(Tickoff(server.url), name)
            assert works(Tickoff(server.url), name)
    warnings = [record.getMessage() for record in caplog.records if "evicts" in record.getMessage()]
    assert len(warnings) == 1
    assert "allkeys-lru" in warnings[0]
    assert "noeviction" in warnings[0]


def test_a_redis_user_without_permission_for_info_is_served(redis: Server, name: str) -> None:
    """Rights to the keys and to scripts suffice."""
    admin = redis_py.Redis(port=redis.port)
    admin.acl_setuser(
        "app",
        enabled=True,
        passwords=["+pw"],
        keys=["*"],
        categories=["+@all"],
        commands=["-info"],
        reset=True,
    )
    assert works(Tickoff(f"redis://app:pw@127.0.0.1:{redis.port}/0"), name)
    admin.acl_deluser("app")
    admin.close()


def test_without_a_url_a_file_in_the_working_folder_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    """It works on a laptop, and says what it cannot do."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TICKOFF_URL", raising=False)
    assert works(Tickoff(), name)
    assert (tmp_path / "tickoff.db").exists()
    assert "coordinates this machine only; set TICKOFF_URL" in caplog.text


def test_the_environment_names_store_and_namespace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """It is read at first use, not when the object is made."""
    jobs = Tickoff()
    monkeypatch.setenv("TICKOFF_URL", f"sqlite:///{tmp_path}/env.db")
    monkeypatch.setenv("TICKOFF_NAMESPACE", "shop")
    with jobs.lock(name) as lease:
        assert lease.name == f"shop:{name}"
    assert (tmp_path / "env.db-tickoff").exists()
    jobs.close()


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("foo://x", "unknown; use one of redis://"),
        ("redis+foo://x", "unknown; use one of redis://"),
        ("localhost:6379", "no scheme; use one of redis://"),
        ("", "no scheme; use one of redis://"),
        ("redis://localhost:abc", "cannot be read"),
        ("redis://localhost?nonsense=1", "unknown option"),
        ("redis://localhost/abc", "cannot be read"),
        ("redis://[::1/0", "cannot be read"),
        ("redis://localhost?db=abc", "cannot be read"),
        ("rediss://localhost?ssl_cert_reqs=nonsense", "a wrong one"),
        ("rediss+sentinel://localhost/shop", "unknown; use one of redis://"),
        ("redis+cluster://localhost?ssl=maybe", "neither true nor false"),
        ("redis+sentinel://localhost", "names no service"),
        ("redis+sentinel://localhost/shop?nonsense=1", "unknown options"),
        ("redis+sentinel:///shop", "names no host"),
        ("redis+cluster://localhost/1", "one database only"),
        ("redis+cluster://localhost:x", "not a number"),
        ("postgresql://u:p@h:port/db", "cannot be read"),
        ("postgresql://h/db?nonsense=1", "unknown option"),
        ("postgresql://h/db?connect_timeout=soon", "not a number"),
        ("mysql://h/db?nonsense=1", "unknown option"),
        ("mysql://h/db?charset=nonsense", "utf8mb4"),
        ("mysql://h/db?read_timeout=soon", "not a number"),
        ("mysql://h/db?client_flag=x", "wrong option"),
        ("sqlite:///shop.db?nonsense=1", "unknown option"),
        ("sqlite://host/shop.db", "names no host"),
        ("memory://host", "nothing else"),
        ("sqlite://", "in-memory"),
        ("sqlite:///:memory:", "in-memory"),
    ],
)
def test_a_bad_url_is_refused_with_the_remedy(url: str, words: str) -> None:
    """Early, by what is wrong and what to do."""
    with pytest.raises(ConfigError, match=words):
        Tickoff(url)


@pytest.mark.parametrize(
    "url",
    [
        "redis://user:hunter2/x@host:1/0",
        "redis://user:hunter2?x@host:1/0",
        "redis://user:hunter2#x@host:1/0",
        "redis://user:4711/hunter2@host:1/0",
        "redis://user:4711?hunter2@host:1/0",
        "redis://user:4711#hunter2@host:1/0",
        "redis+sentinel://user:hunter2/x@host/shop",
        "redis+sentinel://user:4711/hunter2@host/shop",
        "redis+cluster://user:hunter2/x@host",
        "redis+cluster://user:4711?hunter2@host",
        "postgresql://user:x@hunter2@host/db",
        "mysql://user:x@hunter2@host/db",
    ],
)
def test_a_password_that_breaks_the_url_is_not_shown(url: str) -> None:
    """A sign that ends the host makes a port, a path or an option of the rest: the whole URL is kept back."""
    with pytest.raises(ConfigError, match="%2F") as refused:
        Tickoff(url)
    shown = "".join(traceback.format_exception(refused.value)).replace(url, "")
    assert "hunter2" not in shown
    assert "4711" not in shown


@pytest.mark.parametrize("scheme", ["postgresql", "mysql"])
def test_an_url_may_shorten_the_time_outs(scheme: str) -> None:
    """What it says is not ignored; nor does it make anybody wait longer than our limit."""
    assert _time_out(f"{scheme}://h/db?connect_timeout=3") == 3
    assert _time_out(f"{scheme}://h/db?connect_timeout=60") == _time_out(f"{scheme}://h/db") == 5
    assert _time_out(f"{scheme}://h/db?connect_timeout=0") == 5


def _time_out(url: str) -> object:
    return connect_args(sa.make_url(url), 5.0)["connect_timeout"]


@pytest.mark.parametrize(
    ("package", "url", "extra"),
    [
        ("redis", "redis://localhost", "redis"),
        ("psycopg", "postgresql://localhost/x", "postgres"),
        ("pymysql", "mysql://localhost/x", "mysql"),
    ],
)
def test_a_missing_driver_is_named_with_the_pip_line(package: str, url: str, extra: str) -> None:
    """The extra to install is part of the message."""
    code = f"import sys; sys.modules[{package!r}] = None\nfrom tickoff import Tickoff; Tickoff({url!r})"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert f"pip install 'tickoff[{extra}]'" in ran.stderr.strip().splitlines()[-1]


@pytest.mark.parametrize(
    "url",
    [
        "redis://user:hunter2@127.0.0.1:1/0",
        "redis+sentinel://:hunter2@127.0.0.1:1/shop?sentinel_password=hunter2",
        "redis+cluster://:hunter2@127.0.0.1:1",
        "postgresql://user:hunter2@127.0.0.1:1/db?password=hunter2",
        "mysql://user:hunter2@127.0.0.1:1/db",
    ],
)
def test_an_unreachable_store_is_an_error_without_secrets(url: str, caplog: pytest.LogCaptureFixture) -> None:
    """It names the store, not the password; so do repr and log."""
    jobs = Tickoff(url)
    with pytest.raises(StoreUnreachable, match="did not answer") as error:
        jobs.race("name")
    chain, seen = error.value, ""
    while chain is not None:
        seen += str(chain)
        chain = chain.__cause__ or chain.__context__  # type: ignore[assignment]
    assert "127.0.0.1" in str(error.value)
    assert "hunter2" not in seen + repr(jobs) + repr(jobs.store) + caplog.text
    jobs.close()
