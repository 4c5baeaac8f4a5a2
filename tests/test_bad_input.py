"""Whatever is passed where: it works, or it is refused with ConfigError in one line."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.databases import DATABASES, database
from tickoff import Lease, Tickoff, upsert
from tickoff.errors import ConfigError


class Odd:
    """Neither hashable nor anything that is asked for."""

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return "odd\n" * 500


def work(tick: object = None) -> None:
    """What is decorated."""


NAMES = [
    "%",
    "%s",
    "\\",
    "-x",
    "--help",
    "'; drop table t; --",
    '"x"',
    "`x`",
    "a b",
    "é",
    "e\u0301",
    "שלום",
    "😀",
]
"""Strange, and yet names like others."""

DURATIONS: list[Any] = [1.5, "1.5", "90s", timedelta(seconds=3)]

CORPUS: list[Any] = [
    *NAMES,
    *DURATIONS,
    *[0, -1, float("nan"), float("inf"), float("-inf"), 10**400, -(10**400), 10**20, 1e308, 1j, True, False],
    *[
        "",
        "  ",
        "a ",
        "\0",
        "x\0y",
        "x" * 10_000,
        "9" * 5000,
        "9" * 5000 + "s",
        "\ud800",
        "\u202eabc",
        "\xa0",
    ],
    *[
        "{x}",
        "{}",
        "a\nb",
        "٣s",
        "-5s",
        "5 m",
        b"x",
        [],
        (),
        {},
        set(),
        ["a", 1],
        ("a", "a"),
        object(),
        Odd(),
    ],
    *[timedelta(-1), timedelta.max, datetime(2026, 1, 1), len, Odd, functools.partial],  # noqa: DTZ001
]


def is_name(value: Any) -> bool:
    """Whether a job may be called so."""
    return value in [*NAMES, "1.5", "90s", "٣s", "-5s", "5 m"]


def is_duration(value: Any) -> bool:
    """Whether it is a length of time that a lease, a period or a time-out may have."""
    return any(value is one for one in DURATIONS)


def is_work(value: Any) -> bool:
    """Whether it can be called."""
    return callable(value)


def nothing(_value: Any) -> bool:
    """No value of the corpus is right."""
    return False


def _decorated(method: str, *args: Any, **named: Any) -> None:
    getattr(Tickoff("memory://"), method)(*args, **named)(work)


def _names(value: Any) -> bool:
    return is_name(value) or value in ["{x}", "{}", "a ", "\xa0", "\u00a0"]


def _ways() -> Iterator[tuple[str, Callable[[Any], object], Callable[[Any], bool]]]:
    """Every argument: how to pass it, and which values of the corpus are right."""
    jobs = Tickoff("memory://")
    yield "Tickoff(url)", Tickoff, nothing
    yield "Tickoff(database)", lambda v: Tickoff("memory://", database=v), nothing
    yield "Tickoff(namespace)", lambda v: Tickoff("memory://", namespace=v), lambda v: is_name(v) or v == ""
    yield "Tickoff(slots)", lambda v: Tickoff("memory://", slots=v), nothing
    yield "Tickoff(grace)", lambda v: Tickoff("memory://", grace=v), lambda v: is_duration(v) or v == 0
    yield "lock(name)", jobs.lock, is_name
    yield "lock(ttl)", lambda v: jobs.lock("n", ttl=v), is_duration
    yield "lock(wait)", lambda v: jobs.lock("n", wait=v), lambda v: is_duration(v) or v == 0
    yield "race(name)", jobs.race, is_name
    yield "race(ttl)", lambda v: Tickoff("memory://").race("n", ttl=v), is_duration
    yield "run_with_lock(name)", lambda v: jobs.run_with_lock(v, lambda: 1), is_name
    yield "run_with_lock(job)", lambda v: callable(v) or jobs.run_with_lock("n", v), is_work
    yield "records(name)", jobs.records, nothing
    yield "serve(only)", lambda v: jobs.serve(only=v), nothing
    shared = {
        "ttl": is_duration,
        "timeout": is_duration,
        "attempts": nothing,
        "recover": nothing,
    }
    more = {"catch_up": nothing, "on_outage": nothing, "jitter": is_duration, "name": is_name}
    for field, right in {**shared, **more}.items():
        yield f"every({field})", lambda v, f=field: _decorated("every", "5s", **{f: v}), right
        yield f"cron({field})", lambda v, f=field: _decorated("cron", "* * * * *", **{f: v}), right
    for field, right in shared.items():
        yield f"once({field})", lambda v, f=field: _decorated("once", "n", every="5s", **{f: v}), right
    yield "every(period)", lambda v: _decorated("every", v), is_duration
    yield "cron(expression)", lambda v: _decorated("cron", v), nothing
    yield "cron(tz)", lambda v: _decorated("cron", "* * * * *", tz=v), nothing
    yield "once(name)", lambda v: _decorated("once", v, every="5s"), is_name
    yield "once(cron)", lambda v: _decorated("once", "n", cron=v), nothing
    yield "once(every)", lambda v: _decorated("once", "n", every=v), is_duration
    yield "once(tz)", lambda v: _decorated("once", "n", cron="* * * * *", tz=v), nothing
    yield "leader(name)", lambda v: _decorated("leader", v), is_name
    yield "leader(ttl)", lambda v: _decorated("leader", "n", ttl=v), is_duration
    for method, args in {"every": ["5s"], "cron": ["* * * * *"], "leader": []}.items():
        named = {} if method == "leader" else {"name": "n"}
        given_ = ["n"] if method == "leader" else args
        yield (
            f"{method}(function)",
            lambda v, m=method, a=given_, n=named: getattr(Tickoff("memory://"), m)(*a, **n)(v),
            is_work,
        )
    yield "once(function)", lambda v: Tickoff("memory://").once("n", every="5s")(v), is_work
    yield "each(function)", lambda v: Tickoff("memory://").each("t", status="s", name="n")(v), is_work
    columns: Callable[[Any], bool] = lambda v: _names(v) or v in [[], ()]  # noqa: E731
    each: dict[str, Callable[[Any], bool]] = {
        "table": _names,
        "status": _names,
        "key": columns,
        "result": columns,
        "columns": columns,
        "where": lambda v: _names(v) or isinstance(v, str),
        "per_call": nothing,
        "concurrency": nothing,
        "ttl": is_duration,
        "timeout": is_duration,
        "attempts": nothing,
        "name": is_name,
        "backoff": lambda v: is_duration(v) or v == 0,
    }
    for field, right in each.items():
        yield (
            f"each({field})",
            lambda v, f=field: _decorated("each", **{"table": "t", "status": "s", f: v}),
            right,
        )


WAYS = {way: (call, right) for way, call, right in _ways()}


def refused(call: Callable[[Any], object], value: Any) -> bool:
    """Whether it is refused; in one line of bearable length, which can be printed."""
    try:
        call(value)
    except ConfigError as error:
        return _bearable(str(error))
    return False


def _bearable(said: str) -> bool:
    assert 10 < len(said) <= 600
    assert said.isprintable()
    return bool(said.encode())


@pytest.mark.parametrize("way", WAYS)
def test_what_is_wrong_is_refused_and_nothing_else_comes_out(way: str) -> None:
    """No other error than ConfigError, and nothing is accepted that cannot be meant."""
    call, right = WAYS[way]
    accepted = [value for value in CORPUS if not refused(call, value)]
    wrong = [value for value in accepted if not right(value)]
    assert wrong == []


def needs_two(_row: object, other: object) -> None:
    """Nobody gives it the other one."""


def takes_none() -> None:
    """Not even the row."""


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (needs_two, "cannot be called with a row: missing a required argument: 'other'"),
        (takes_none, "cannot be called with a row: too many positional arguments"),
    ],
)
def test_a_function_that_cannot_be_called_with_a_row_is_refused_when_decorated(
    function: Callable[..., None], words: str
) -> None:
    """Else each row is charged for a parameter that was mistyped, or forgotten."""
    with pytest.raises(ConfigError, match=words):
        Tickoff("memory://").each("contacts", status="status")(function)


def test_a_function_that_takes_a_row_and_brings_along_the_rest_is_not_refused() -> None:
    """Also one that takes whatever comes, and a builtin that does not say what it takes."""
    jobs = Tickoff("memory://", database="sqlite:///shop.db")
    jobs.each("contacts", status="a", name="a")(lambda *_all, **_named: None)
    jobs.each("contacts", status="b", name="b")(functools.partial(needs_two, other=1))
    jobs.each("contacts", status="c", name="c")(str)
    jobs.each("contacts", status="d", name="d")(lambda row, record_key: (row, record_key))
    assert jobs.record_names() == ["a", "b", "c", "d"]


@pytest.mark.parametrize("way", [way for way in WAYS if "(name)" in way and "r" in way])
def test_ordinary_names_are_not_refused(way: str) -> None:
    """Else the test above could not fail."""
    call, right = WAYS[way]
    if right is not nothing:
        assert not refused(call, "import-products")


@given(st.text(max_size=80))
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_any_text_is_an_url_a_line_of_cron_and_a_zone_or_refused(text: str) -> None:
    """Whatever people paste."""
    for prefix in (
        "",
        "redis://",
        "redis+sentinel://",
        "redis+cluster://",
        "postgresql://",
        "mysql://",
        "sqlite://",
    ):
        refused(Tickoff, prefix + text)
        refused(lambda url: Tickoff("memory://", database=url), prefix + text)
    refused(lambda line: _decorated("cron", line), text)
    refused(lambda zone: _decorated("cron", "* * * * *", tz=zone), text)


CRON = st.lists(
    st.one_of(
        st.sampled_from(
            ["*", "0", "59", "*/5", "1-5", "L", "LW", "MON#2", "FRI", "1,2", "60", "?", "#", "5L", "@daily"]
        ),
        st.text("0123456789*/-,L#W?@%", max_size=6),
    ),
    min_size=1,
    max_size=7,
).map(" ".join)


@given(CRON)
@settings(deadline=None)
def test_any_line_of_cron_is_a_schedule_or_refused(line: str) -> None:
    """A line that was accepted has a tick to come."""
    jobs = Tickoff("memory://")
    if not refused(lambda text: jobs.cron(text)(work), line):
        assert jobs._full_jobs()[0].schedule.after(0)


HOSTILE = [
    *NAMES,
    *[
        "quo'te",
        "back\\slash\\",
        ":name",
        "%(x)s",
        "%%",
        "a_b",
        "aXb",
        "A",
        "a",
        "ß",
        "ss",
        "?",
        "$1",
        "*",
        "[x]",
    ],
    *[
        "x" * 200,
        "😀" * 200,
        "a\u200bb",
        "ab",
        "tickoff",
        "lock",
        "a::b",
        "select",
        "null",
        "\uffff",
        "E\u0301",
        "É",
    ],
]


def test_no_two_names_share_a_key_on_any_store(jobs: Tickoff) -> None:
    """All can be held at the same time; each is listed, found by its beginning, and let go by itself."""
    held = {name: jobs.race(name, ttl="5m") for name in HOSTILE}
    assert [name for name, lease in held.items() if not isinstance(lease, Lease)] == []
    assert set(HOSTILE) <= set(jobs.store.names())  # others may have left theirs
    for name, lease in held.items():
        begun = name[: (len(name) + 1) // 2]
        assert name in jobs.store.names(begun)
        assert all(found.startswith(begun) for found in jobs.store.names(begun))
        assert jobs.store.history(name) == []
        assert isinstance(lease, Lease)
        assert lease.release()
        assert not jobs.store.read([name])[0].ok


CANNOT_BE_MADE = {
    "sqlite": set[str](),
    "postgres": set[str](),
    "mariadb": {"😀"},
}
"""Names that the database itself refuses."""

HARD_TO_REFLECT = {"`x`"}
"""SQLAlchemy finds such a column by another name on MariaDB: it is refused as one that is not there."""

TABLES = ["%s", "\\", "-x", "'; drop table t; --", '"x"', "`x`", "שלום", ":name", "a.b", "😀", "select"]


@pytest.mark.parametrize("kind", DATABASES)
def test_tables_and_columns_of_any_name_are_worked(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Installed, run, reopened, written to and uninstalled; nothing but the table is touched."""
    with database(kind, request, tmp_path) as engine:
        bystander = _table(engine, "t", "id", "answer")
        for name in TABLES:
            if name in CANNOT_BE_MADE[kind]:
                continue
            columns = [f"{name}{end}" for end in ("k", "r", "s")]
            key, answer, status = ["id", "answer", "state"] if name in HARD_TO_REFLECT else columns
            _worked(engine, _table(engine, name, key, answer), status)
        with engine.connect() as connection:
            assert connection.execute(sa.select(sa.func.count()).select_from(bystander)).scalar() == 5


def _table(engine: sa.Engine, name: str, key: str, result: str) -> sa.Table:
    columns = (
        sa.Column(key, sa.Integer, primary_key=True, autoincrement=False),
        sa.Column(result, sa.String(30)),
    )
    table = sa.Table(name, sa.MetaData(), *columns)
    with engine.begin() as connection:
        table.create(connection)
        connection.execute(table.insert(), [{key: number} for number in range(5)])
    return table


def _worked(engine: sa.Engine, table: sa.Table, status: str) -> None:
    key, result = table.columns.keys()
    jobs = Tickoff("memory://", database=engine)
    jobs.each(table.name, key=key, status=status, result=result, columns=(result,), name="job")(
        lambda row: f"a{row[0]}"
    )
    with jobs.records("job") as records:
        records.table.install()
        assert records.run().counts.done == 5
        assert records.reopen() == 5
        assert records.run().counts.done == 5
        records.table.uninstall(states=True)
    jobs.close()
    with engine.begin() as connection:
        upsert(connection, table, [{key: 1, result: "u"}, {key: 9, result: "new"}], key=key)
        answers = connection.execute(sa.select(table.c[result]).order_by(table.c[key])).scalars().all()
        assert answers == ["a0", "u", "a2", "a3", "a4", "new"]
        table.drop(connection)


@pytest.mark.parametrize("kind", ["postgres", "mariadb"])
def test_a_status_whose_companions_do_not_fit_is_refused(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """PostgreSQL would cut the names of the columns beside it, MariaDB fail halfway."""
    with database(kind, request, tmp_path) as engine:
        _table(engine, "t", "id", "answer")
        jobs = Tickoff("memory://", database=engine)
        jobs.each("t", status="s" * 56, result="answer", name="job")(work)
        with jobs.records("job") as records, pytest.raises(ConfigError, match="too long"):
            records.table.install()
        assert [column["name"] for column in sa.inspect(engine).get_columns("t")] == ["id", "answer"]
        jobs.close()


@pytest.mark.parametrize(
    "value", [value for value in CORPUS if value not in ([], ())], ids=lambda v: f"{v!r:.12}"
)
def test_upsert_and_guard_refuse_what_they_cannot_use(value: Any, tmp_path: Path) -> None:
    """A connection, a table, a key, rows: each refused by its name."""
    engine = sa.create_engine(f"sqlite:///{tmp_path}/shop.db")
    _table(engine, "t", "id", "answer")
    lease = Tickoff("memory://").race("n")
    assert isinstance(lease, Lease)
    with engine.connect() as connection, connection.begin():
        assert refused(lambda v: upsert(v, "t", [{"id": 1}], key="id"), value)
        assert refused(lambda v: upsert(connection, v, [{"id": 1}], key="id"), value)
        assert refused(lambda v: upsert(connection, "t", [{"id": 1}], key=v), value)
        assert refused(lambda v: upsert(connection, "t", [v], key="id"), value)
        assert refused(lease.guard, value)
    engine.dispose()
