"""Who is there: notes that appear and go, and what a server that contradicts the others is told."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tickoff import StoreUnreachable, Tickoff
from tickoff.errors import ConfigError
from tickoff.ground.loops import Loop
from tickoff.leases.referee import Referee
from tickoff.schedules.schedule import cron, every
from tickoff.stores import open_store
from tickoff.stores.memory import MemoryStore
from tickoff.ticks import presence
from tickoff.ticks.job import Job, Post
from tickoff.ticks.presence import BEAT, Presence, board, fleet, servers

from ..virtual import job


@pytest.fixture(autouse=True)
def owner(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Says who we are; loops are stepped by the tests."""
    monkeypatch.setattr(Loop, "wake_by", lambda _loop, _due: None)
    names = ["first"]
    monkeypatch.setattr(presence, "owner", lambda: names[-1])
    return names.append


@pytest.fixture
def referee() -> Referee:
    """A look at a store of this process."""
    return Referee(MemoryStore())


def one() -> None:
    """Do one thing."""


def two() -> None:
    """Do another."""


def server(referee: Referee, *jobs: Job) -> Presence:
    """A server with these jobs."""
    return Presence(referee, "", "1.0", jobs)


def test_a_server_appears_and_goes(referee: Referee) -> None:
    """With its version, and the jobs it carries, as others see it."""
    made = server(referee, job(work=one, schedule=cron("0 * * * *"), takeover=True, attempts=3))
    made.start()
    (here,) = servers(referee, "")
    assert (here.owner, here.version) == ("first", "1.0")
    assert abs(here.started - referee.store.now()) < 5000
    assert abs(here.skew) < 1
    assert here.catalog
    made.stop()
    assert servers(referee, "") == []


def test_what_others_carry_is_known(referee: Referee, owner: Callable[[str], None]) -> None:
    """By name, schedule and function."""
    server(referee, job(work=one, schedule=cron("0 * * * *"))).start()
    owner("second")
    ((other, jobs),) = fleet(referee, "")
    assert other.owner == "first"
    assert [(j.name, j.schedule, j.recover) for j in jobs] == [("job", "0 * * * * UTC", "next")]
    assert jobs[0].function.endswith("test_presence:one")


def test_servers_that_agree_post_their_jobs_once(referee: Referee, owner: Callable[[str], None]) -> None:
    """However many they are."""
    for name in ("second", "third", "fourth"):
        owner(name)
        server(referee, job(work=one)).start()
    assert len(servers(referee, "")) == 3
    assert len(referee.store.notes(board("", "jobs"))) == 1


def test_another_function_by_the_same_name_is_refused(referee: Referee, owner: Callable[[str], None]) -> None:
    """The later server is told who contradicts it, and disappears; the earlier one may start again."""
    first = server(referee, job(work=one))
    first.start()
    owner("second")
    referee.store._clock = later(referee)  # type: ignore[attr-defined]
    with pytest.raises(ConfigError, match=r"name='job' means .*:two here, but .*:one on first"):
        server(referee, job(work=two)).start()
    assert [there.owner for there in servers(referee, "")] == ["first"]


def test_another_function_for_the_same_post_is_refused(
    referee: Referee, owner: Callable[[str], None]
) -> None:
    """Whichever leads, the other work would be left undone."""
    Presence(referee, "", "1.0", [], [post(one)]).start()
    owner("second")
    referee.store._clock = later(referee)  # type: ignore[attr-defined]
    Presence(referee, "", "1.0", [job(work=one)], [post(one)]).start()
    owner("third")
    with pytest.raises(ConfigError, match=r"name='watch' means .*:two here, but .*:one on first"):
        Presence(referee, "", "1.0", [], [post(two)]).start()


def test_a_hundred_servers_that_mean_the_same_are_one_warning(
    referee: Referee, owner: Callable[[str], None], caplog: pytest.LogCaptureFixture
) -> None:
    """Of whoever was there first."""
    for number in range(100):
        owner(f"server-{number}")
        server(referee, job(work=one, schedule=every("1m"))).start()
    owner("other")
    server(referee, job(work=one, schedule=every("2m"))).start()
    assert caplog.text.count("job is scheduled 'every 2m' here") == 1


def post(work: Callable[[], None]) -> Post:
    """A post of which nothing but the function matters."""
    return Post(name="watch", work=work, ttl=60_000, asynchronous=False, wants_lease=False)


def later(referee: Referee) -> Callable[[], int]:
    """The store's clock, a minute later; it is so for the server, too."""
    clock = referee.store._clock  # type: ignore[attr-defined]
    referee.time.learn(clock() + 10_000, 0.0, 0.0)
    return lambda: int(clock()) + 10_000


def test_of_two_that_start_at_once_the_later_one_sees_the_other(
    referee: Referee, owner: Callable[[str], None]
) -> None:
    """Both have posted their notes before either looks; the order of their start decides."""
    first, second = server(referee, job(work=one)), server(referee, job(work=two))
    first._post()
    owner("second")
    second._started = first._started + 1
    second._post()
    with pytest.raises(ConfigError):
        second._compare()
    owner("first")
    first._compare()


def test_another_schedule_is_warned_of(
    referee: Referee, owner: Callable[[str], None], caplog: pytest.LogCaptureFixture
) -> None:
    """By both their names; the server starts."""
    server(referee, job(work=one, schedule=every("1m"))).start()
    owner("second")
    server(referee, job(work=one, schedule=every("2m"))).start()
    assert "job is scheduled 'every 2m' here, but 'every 1m' on first" in caplog.text
    assert len(servers(referee, "")) == 2


def test_the_same_schedule_with_other_ticks_is_warned_of(
    referee: Referee, owner: Callable[[str], None], caplog: pytest.LogCaptureFixture
) -> None:
    """The zone data of the two servers differ."""
    server(referee, job(work=one)).start()
    (note,) = referee.store.notes(board("", "jobs"))
    told = json.loads(note.text)
    told[0]["digest"] = "other"
    referee.store.post(board("", "jobs"), "other", json.dumps(told), 60_000)
    (first,) = referee.store.notes(board("", "servers"))
    referee.store.post(board("", "servers"), "first", first.text.replace(note.key, "other"), 60_000)
    owner("second")
    server(referee, job(work=one)).start()
    assert "zone data differ" in caplog.text


def test_notes_of_a_newer_version_are_understood(referee: Referee, owner: Callable[[str], None]) -> None:
    """It may tell more than we know of: a rolling upgrade must not stop us."""
    server(referee, job(work=one)).start()
    for where in ("servers", "jobs"):
        (note,) = referee.store.notes(board("", where))
        told: Any = json.loads(note.text)
        (told[0] if where == "jobs" else told)["colour"] = "blue"
        referee.store.post(board("", where), note.key, json.dumps(told), 60_000)
    owner("second")
    assert [(there.owner, len(jobs)) for there, jobs in fleet(referee, "")] == [("first", 1)]


@pytest.mark.parametrize(("ahead", "words"), [(8000, "8.0 s behind"), (-8000, "8.0 s ahead of")])
def test_a_wrong_clock_is_warned_of_once(caplog: pytest.LogCaptureFixture, ahead: int, words: str) -> None:
    """Though ticks do not mind."""
    right = MemoryStore().now
    referee = Referee(MemoryStore(lambda: right() + ahead))
    made = server(referee, job(work=one))
    made.start()
    made.step(0.0)
    assert caplog.text.count(words) == 1


def test_a_right_clock_is_not(referee: Referee, caplog: pytest.LogCaptureFixture) -> None:
    """Nothing is said."""
    server(referee, job(work=one)).start()
    assert caplog.text == ""


def test_an_outage_is_told_once_and_its_end_too(
    referee: Referee, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server starts without the store, and appears when it answers."""
    caplog.set_level(logging.INFO, "tickoff")

    def down(*_: object) -> int:
        raise StoreUnreachable("down")

    made = server(referee, job(work=one))
    with monkeypatch.context() as outage:
        outage.setattr(referee.store, "now", down)
        outage.setattr(referee.store, "post", down)
        made.start()
        assert made.step(100.0) == 100.0 + BEAT
    made.step(200.0)
    assert caplog.text.count("cannot tell the other servers") == 1
    assert caplog.text.count("can tell the others again") == 1
    assert len(servers(referee, "")) == 1


@pytest.fixture
def real(url: str) -> Iterator[Referee]:
    """A referee on each store in turn."""
    made = Referee(open_store(url))
    yield made
    made.close()


def test_thousands_of_jobs_fit_into_a_catalog(real: Referee, name: str) -> None:
    """On every store: MySQL's TEXT would end at 64 KiB."""
    jobs = [job(f"job-{i}-{'x' * 100}", work=one) for i in range(2000)]
    Presence(real, name, "1.0", jobs).start()
    (told,) = presence.catalogs(real, name).values()
    assert len(told) == 2000


def test_a_tickoff_shows_itself_while_it_serves() -> None:
    """And not longer."""
    jobs = Tickoff("memory://", grace=0)
    jobs.every("1m")(one)
    with jobs:
        assert len(servers(jobs._ready(), "")) == 1
    assert servers(jobs._ready(), "") == []
    jobs.close()
