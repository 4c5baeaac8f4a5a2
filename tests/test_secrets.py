"""A password in an URL is shown nowhere: not in logs, reprs, errors and their causes, nor on a terminal."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import redis as redis_py
import sqlalchemy as sa
from dev.servers import Server, free_port, redis_server

from tests.conftest import start
from tickoff import Tickoff, TickoffError

CANARY = "canary7b1f"
"""What must be seen nowhere; `%40` and `/` beside it shall not make it visible either."""

PASSWORDS = [CANARY, f"{CANARY}%40x", f"x%2F{CANARY}"]

FORMS = {
    "redis": "redis://user:{0}@127.0.0.1:{1}/0",
    "redis without user": "redis://:{0}@127.0.0.1:{1}/0",
    "redis option": "redis://127.0.0.1:{1}/0?username=user&password={0}",
    "rediss": "rediss://user:{0}@127.0.0.1:{1}/0",
    "sentinel": "redis+sentinel://user:{0}@127.0.0.1:{1}/shop?sentinel_username=s&sentinel_password={0}",
    "cluster": "redis+cluster://user:{0}@127.0.0.1:{1}",
    "postgres": "postgresql://user:{0}@127.0.0.1:{1}/shop",
    "postgres option": "postgresql://127.0.0.1:{1}/shop?user=user&password={0}",
    "postgres key": "postgresql://u@127.0.0.1:{1}/shop?sslpassword={0}",
    "mysql": "mysql://user:{0}@127.0.0.1:{1}/shop",
    "mysql option": "mysql://127.0.0.1:{1}/shop?user=user&password={0}",
    "mariadb": "mariadb://user:{0}@127.0.0.1:{1}/shop",
}
"""Every form that holds a password, and a port where nobody listens."""

BROKEN = {
    "no scheme": "user:{0}@127.0.0.1/shop",
    "unknown scheme": "oracle://user:{0}@127.0.0.1/shop",
    "slash": "redis://user:x/{0}@127.0.0.1/0",
    "at": "postgresql://user:x@{0}@127.0.0.1/shop",
    "port": "mysql://user:x@127.0.0.1:{0}/shop",
    "sentinel option": "redis+sentinel://h/shop?nonsense={0}",
    "postgres option": "postgresql://h/shop?nonsense={0}",
    "mysql option": "mysql://h/shop?nonsense={0}",
    "redis option": "redis://h/0?socket_timeout={0}",
    "mysql no database": "mysql://user:{0}@127.0.0.1",
    "sqlite host": "sqlite://user:{0}@h/x.db",
    "memory": "memory://user:{0}@h",
}
"""URLs that are refused."""


def everything(error: BaseException) -> str:
    """What a traceback shows, causes and contexts included, and what a log would."""
    return "".join(traceback.format_exception(error)) + repr(error)


def raised(call: Callable[[], object]) -> str:
    """What is shown of an error of ours; any other is a bug."""
    with pytest.raises(TickoffError) as caught:
        call()
    return everything(caught.value)


def uses(jobs: Tickoff) -> list[Callable[[], object]]:
    """What asks the store, or the database."""
    jobs.each("contacts", status="status", name="each")(len)
    jobs.every("1h", name="every")(print)
    return [
        lambda: jobs.race("name"),
        lambda: jobs.lock("name", wait="0s").__enter__(),
        lambda: jobs.store.history("name"),
        lambda: jobs.store.now(),
        lambda: jobs.records("each").table.counts(),
    ]


@pytest.mark.parametrize("form", FORMS)
def test_a_store_that_cannot_be_reached_is_told_of_without_its_password(
    form: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """As the store, and as the database; logs at DEBUG."""
    caplog.set_level(logging.DEBUG)
    shown = ""
    for password in PASSWORDS:
        url = FORMS[form].format(password, free_port())
        sql = "redis" not in url.partition(":")[0]
        made = [Tickoff(url), *([Tickoff("memory://", database=url)] if sql else [])]
        for jobs in made:
            shown += (
                repr(jobs) + repr(jobs.store) + jobs.store.address + repr(getattr(jobs.store, "_source", ""))
            )
            for use in uses(jobs)[:4] if jobs is made[0] else uses(jobs)[4:]:
                shown += raised(use)
            jobs.close()
    out, err = capfd.readouterr()
    assert "127.0.0.1" in shown
    assert CANARY not in shown + caplog.text + out + err


@pytest.mark.parametrize("form", BROKEN)
def test_an_url_that_is_refused_is_refused_without_its_password(form: str) -> None:
    """Also where the password is taken for something else."""
    for password in PASSWORDS:
        url = BROKEN[form].format(password)
        assert CANARY not in raised(lambda text=url: Tickoff(text).store.now())  # type: ignore[misc]

        def as_database(text: str = url) -> object:
            jobs = Tickoff("memory://", database=text)
            jobs.each("contacts", status="status", name="each")(len)
            return jobs.records("each").progress()

        assert CANARY not in raised(as_database)


def test_a_password_that_is_wrong_is_not_repeated(postgres: Server, mariadb: Server) -> None:
    """The server says no, and perhaps of whom; not of what."""
    urls = [mariadb.url.replace("root@", f"root:{CANARY}@")]
    for server in start(lambda: redis_server("--user", "u", "on", ">right", "~*", "+@all")):
        urls += [
            server.url.replace("redis://", f"redis://u2:{CANARY}@"),
            server.url.replace("redis://", f"redis://u:{CANARY}@"),
        ]
        for url in urls:
            jobs = Tickoff(url)
            shown = raised(lambda made=jobs: made.race("name"))  # type: ignore[misc]
            assert CANARY not in shown + repr(jobs)
            jobs.close()


def test_clients_and_engines_of_a_users_own_keep_their_secret() -> None:
    """What they are shown as comes from us."""
    port = free_port()
    client: Any = redis_py.Redis(port=port, password=CANARY, username="user")
    engine = sa.create_engine(f"postgresql+psycopg://user:{CANARY}@127.0.0.1:{port}/shop")
    for made in (Tickoff(client), Tickoff(engine), Tickoff("memory://", database=engine)):
        shown = repr(made) + repr(made.store) + made.store.address
        if "memory" not in made.store.address:
            shown += raised(lambda jobs=made: jobs.race("name"))  # type: ignore[misc]
        assert CANARY not in shown
        made.close()


APP = """
import os
from tickoff import Tickoff
jobs = Tickoff(os.environ["TICKOFF_URL"], database=os.environ["TICKOFF_DATABASE"])
@jobs.every("1h", name="every")
def work(): ...
@jobs.each("contacts", status="status", name="each")
def each(row): ...
"""

COMMANDS = [
    ["lock", "n", "--", "true"],
    ["once", "n", "--every", "1h", "--", "true"],
    ["ls"],
    ["history", "n"],
    ["explain", "n"],
    ["pause", "n"],
    ["doctor"],
    ["records", "ls"],
    ["records", "show", "each"],
]


@pytest.mark.parametrize("form", ["redis", "sentinel", "postgres"])
def test_the_command_line_shows_no_password(form: str, tmp_path: Path) -> None:
    """Whatever the command, with a store that cannot be reached; a line each, and a status."""
    (tmp_path / "secret_app.py").write_text(APP, "utf-8")
    url = FORMS[form].format(CANARY, free_port())
    database = FORMS["postgres"].format(CANARY, free_port())
    code = (
        "import sys, json, logging\n"
        "from tickoff import cli\n"
        "for arguments in json.loads(sys.stdin.read()):\n"
        "    sys.argv = ['tickoff', *arguments]\n"
        "    try: cli.main()\n"
        "    except SystemExit as left: print('status', *arguments[:2], left.code)\n"
    )
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("TICKOFF_")}
    named = {"TICKOFF_URL": url, "TICKOFF_DATABASE": database, "TICKOFF_APP": "secret_app"}
    ran = subprocess.run(
        [sys.executable, "-c", code],
        input=json.dumps(COMMANDS),
        cwd=tmp_path,
        env={**inherited, **named, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert ran.stdout.count("status") == len(COMMANDS), ran.stdout + ran.stderr
    assert ran.stderr.count("127.0.0.1") >= 6, ran.stderr
    assert CANARY not in ran.stdout + ran.stderr
    assert "Traceback" not in ran.stderr
