"""See, explain, steer: a fleet asked and steered by another program, which has none of its code."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest
import sqlalchemy as sa

from tickoff import Tickoff
from tickoff.errors import ConfigError, LeaseLost, TickoffError
from tickoff.leases.lease import Lease
from tickoff.model import Outcome
from tickoff.operating.status import JobStatus
from tickoff.ticks.events import Event


@pytest.fixture
def namespace() -> str:
    return f"n{uuid4().hex[:12]}"


@pytest.fixture
def server(shared_url: str, namespace: str) -> Iterator[Tickoff]:
    """Who carries jobs."""
    made = Tickoff(shared_url, namespace=namespace)
    yield made
    made.close()


@pytest.fixture
def person(shared_url: str, namespace: str) -> Iterator[Tickoff]:
    """Who asks; a program without jobs."""
    made = Tickoff(shared_url, namespace=namespace)
    yield made
    made.close()


def eventually(what: Callable[[], bool], limit: float = 30.0) -> None:
    """Wait until it is so."""
    deadline = time.monotonic() + limit
    while not what():
        assert time.monotonic() < deadline, "it did not come to be"
        time.sleep(0.05)


def test_a_store_that_nothing_uses_tells_of_nothing(person: Tickoff) -> None:
    """And a question about a job is answered by what is wrong with it."""
    status = person.status()
    assert (status.jobs, status.locks, status.servers) == ((), (), ())
    assert person.doctor().jobs == 0
    with pytest.raises(ConfigError, match="there is no job 'report'; this store has seen none yet"):
        person.history("report")


def test_jobs_locks_and_servers_are_seen_from_a_machine_without_the_code(
    server: Tickoff, person: Tickoff
) -> None:
    """Schedule, last run, next tick, who is at work; and of our own names nothing."""

    @server.every("1s", name="often")
    def often() -> None:
        pass

    @server.cron("0 3 * * *", name="nightly")
    def nightly() -> None:
        pass

    with server, person.lock("a-lock", ttl="60s") as lease:
        eventually(lambda: _job(person, "often").last is not None)
        status = person.status()
        often_, nightly_ = (_job(person, name) for name in ("often", "nightly"))
        assert [job.name for job in status.jobs] == ["nightly", "often"]
        assert (often_.schedule, nightly_.schedule) == ("every 1s", "0 3 * * * UTC")
        assert often_.last is not None
        assert often_.last.outcome is Outcome.OK
        assert (nightly_.last, nightly_.running, nightly_.servers) == (None, None, 1)
        assert nightly_.next is not None
        assert nightly_.next.hour == 3
        assert [(lock.name, lock.holder.owner) for lock in status.locks] == [("a-lock", lease.owner)]
        assert [one.jobs for one in status.servers] == [2]
        assert person.schedule("nightly").text == "0 3 * * * UTC"
        assert "ended ok" in person.explain("often", often_.last.tick).text
    gone = person.status()
    assert (len(gone.jobs), gone.servers, gone.locks) == (2, (), ())


def test_records_are_seen_with_who_works_them_and_how_fast(tmp_path: Path) -> None:
    """By their own name, not by that of their sweep; how much is left, only their table tells."""
    url, free = f"sqlite:///{tmp_path}/shop.db", threading.Event()
    server, person = Tickoff(url), Tickoff(url)
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE contacts (id integer PRIMARY KEY)")
        connection.exec_driver_sql("INSERT INTO contacts VALUES (1), (2), (3)")

    @server.each("contacts", status="status", concurrency=2)
    def enrich(contact: object) -> None:
        free.wait(30)

    server.records("enrich").table.install()
    with server:
        eventually(lambda: any(one.swept and one.in_flight == 3 for one in person.status().records))
        status = person.status()
        (seen,) = status.records
        assert (seen.name, seen.servers, seen.in_flight, seen.paused) == ("enrich", 1, 3, None)
        assert seen.swept is not None
        assert seen.swept.outcome is Outcome.OK
        assert (status.jobs, status.locks) == ((), ())
        server.records("enrich").pause("the provider is dear")
        (paused,) = person.status().records
        assert paused.paused is not None
        assert paused.paused.why == "the provider is dear"
        with pytest.raises(ConfigError, match="enrich is a job over records; its commands are those of"):
            person.pause("enrich", "a mistake")
        free.set()
    for jobs in (server, person):
        jobs.close()


def test_a_leader_is_seen_with_who_leads_and_who_could(server: Tickoff, person: Tickoff) -> None:
    """It is neither a job, which has ticks, nor a lock, whose holder is all there is to tell."""
    leads, stop = threading.Event(), threading.Event()

    @server.leader("watch")
    def watch(lease: Lease) -> None:
        leads.set()
        while not lease.lost:
            stop.wait(0.02)

    with server:
        assert leads.wait(20)
        status = person.status()
        (leader,) = status.leaders
        assert (leader.name, leader.servers, leader.paused) == ("watch", 1, None)
        assert leader.holder is not None
        assert leader.holder.owner == status.servers[0].owner
        assert (status.jobs, status.locks) == ((), ())
        told = person.explain("watch")
        assert (told.fate, told.tick) == ("led", None)
        assert "leads since" in told.text
        assert "Now there is 1 server to run it." in told.text
        for ask in (person.history, person.trigger, person.schedule):
            with pytest.raises(TickoffError, match="watch has no ticks: one server leads all the time"):
                ask("watch")
        assert not {"lease", "servers"} & {finding.check for finding in person.doctor().findings}
        person.pause("watch", "a new rack")
        assert person.status().leaders[0].paused is not None
    assert person.explain("watch").fate == "paused"
    person.resume("watch")
    (leader,) = person.status().leaders
    assert (leader.holder, leader.servers) == (None, 0)
    told = person.explain("watch")
    assert (told.fate, "nobody leads. There is no server to run it" in told.text) == ("vacant", True)
    assert "no server is there to run 1 job" in {finding.what for finding in person.doctor().findings}


def test_a_job_is_paused_resumed_and_triggered_from_afar(server: Tickoff, person: Tickoff) -> None:
    """A pause holds on every server; a triggered run is marked manual and moves no marks."""
    ran: list[bool] = []

    @server.cron("0 3 1 1 *", name="yearly")
    def yearly(tick: object) -> None:
        ran.append(tick.manual)  # type: ignore[attr-defined]

    with server:
        paused = person.pause("yearly", "stock-taking \0\udcff")
        assert paused.paused is not None
        assert paused.paused.why == r"stock-taking \x00\udcff"
        assert "@" in paused.paused.by
        with pytest.raises(
            TickoffError, match=r"is paused by .*: stock-taking .*; resume it first: tickoff resume"
        ):
            person.trigger("yearly")
        resumed = person.resume("yearly")
        assert resumed.paused is None
        assert person.trigger("yearly").servers == 1
        eventually(lambda: bool(person.history("yearly")))
    assert ran == [True]
    assert [(run.manual, run.outcome) for run in person.history("yearly")] == [(True, Outcome.OK)]
    assert _job(person, "yearly").success is None


def test_a_released_holder_stays_out(server: Tickoff, person: Tickoff) -> None:
    """The next one gets in at once, with a greater fence; the former one's renewal is refused."""
    lease = server.race("export", ttl="60s")
    assert isinstance(lease, Lease)
    with pytest.raises(ConfigError, match="why is empty"):
        person.release("export", "  ")
    assert person.release("export", "its machine is gone").running is not None
    after = person.race("export", ttl="60s")
    assert isinstance(after, Lease)
    assert after.fence > lease.fence
    with pytest.raises(LeaseLost):
        lease.extend()
    after.release()
    with pytest.raises(TickoffError, match="nobody holds export"):
        person.release("export", "once more")


def test_a_crash_is_in_the_history_before_anybody_wrote_it_down(server: Tickoff, person: Tickoff) -> None:
    """It is derived from a lease that ran out under a tick."""
    referee = server._ready()
    tick = referee.store.now() - 1000
    lease = referee.race(referee.tick_bid(server._full("report"), 1000, tick))
    assert isinstance(lease, Lease)
    referee.keeper.drop(lease)
    eventually(lambda: person.history("report") != ())
    (run,) = person.history("report")
    assert (run.outcome, run.owner, run.fence) == (Outcome.CRASHED, lease.owner, lease.fence)
    assert person.explain("report", run.tick).fate == "crashed"
    job = _job(person, "report")
    assert job.last is not None
    assert (job.schedule, job.last.outcome) == ("", Outcome.CRASHED)


def test_a_mistyped_name_is_refused_with_the_right_one(server: Tickoff, person: Tickoff) -> None:
    """Whatever is asked of it: else a pause would be one of nothing."""

    @server.cron("0 3 * * *", name="import-products")
    def work() -> None:
        pass

    with server:
        for ask in (person.history, person.explain, person.trigger, person.resume, person.schedule):
            with pytest.raises(ConfigError, match="'import-prodcts'; did you mean 'import-products'"):
                ask("import-prodcts")
        with pytest.raises(ConfigError, match="there is no job 'zebra'; see what there is with: tickoff ls"):
            person.pause("zebra", "so it does not run")


def test_events_are_told_to_who_listens(server: Tickoff) -> None:
    """Of all jobs, or of one; a listener may be a decorated function."""
    told: list[Event] = []
    ends: list[Event] = []

    @server.every("1s", name="good")
    def good() -> None:
        pass

    @server.every("1s", name="bad")
    def bad() -> None:
        raise ValueError("no")

    server.on("started", told.append)

    @server.on("ended", job="bad")
    def ended(event: Event) -> None:
        ends.append(event)

    with server:
        eventually(lambda: len(told) >= 2 and bool(ends))
    assert {event.job.partition(":")[2] for event in told} == {"good", "bad"}
    assert {(event.job.partition(":")[2], event.outcome, event.error) for event in ends} == {
        ("bad", Outcome.FAILED, "ValueError: no")
    }
    with pytest.raises(
        ConfigError, match="event='end' is unknown; use one of started, ended, skipped, missed"
    ):
        server.on("end", told.append)


def test_a_tick_that_nobody_runs_is_told_by_the_fleet(
    server: Tickoff, shared_url: str, namespace: str
) -> None:
    """All slots are busy: the servers that look on tell of it, once."""
    jobs = Tickoff(shared_url, namespace=namespace, slots=1, alarm="1s")
    missed: list[Event] = []
    jobs.on("missed", missed.append)
    server.on("missed", missed.append)
    ran: list[bool] = []
    stop: list[bool] = []

    @jobs.every("1s", name="starved")
    def starved() -> None:
        ran.append(True)

    @jobs.every("2s", name="greedy", ttl="2s")
    def greedy() -> None:
        while ran and not stop:
            time.sleep(0.05)

    with jobs:
        eventually(lambda: any("starved" in event.job for event in missed))
        stop.append(True)
    jobs.close()
    ticks = [event.tick for event in missed if "starved" in event.job]
    assert len(ticks) == len(set(ticks))


def _job(person: Tickoff, name: str) -> JobStatus:
    return next(job for job in person.status().jobs if job.name == name)
