"""Runs asked for by hand, in virtual time: one server takes each, and nothing of the schedule moves."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tickoff import StoreUnreachable
from tickoff.ground.world import entered
from tickoff.leases.referee import Referee
from tickoff.ticks import requests
from tickoff.ticks.requests import ask, pending

from ..virtual import NOON, World, job


@pytest.fixture
def world() -> Iterator[World]:
    """A world in which nothing happened yet."""
    made = World()
    with entered(made):
        yield made


@pytest.fixture
def operator(world: World) -> Referee:
    """Somebody without the job's code."""
    return Referee(world.store)


def test_one_server_takes_a_request_within_seconds(world: World, operator: Referee) -> None:
    """Its run is manual, takes the request's instant, and moves neither the marks nor `since`."""
    fleet = [world.server(job()) for _ in range(5)]
    world.run(65)
    before = world.store.read(["job"])[0].entry
    asked = ask(operator, "", "job", "ann")
    assert (asked.by, asked.at) == ("ann", world.wall())
    assert pending(operator, "") == [asked]
    world.run(3)
    assert pending(operator, "") == []
    run = world.store.history("job")[0]
    assert (run.manual, run.tick, run.outcome.value) == (True, asked.at, "ok")
    after = world.store.read(["job"])[0].entry
    assert (after.decided, after.since) == (before.decided, before.since) == (NOON + 60_000,) * 2
    assert sum(event.manual and event.outcome is not None for s in fleet for event in s.events) == 1
    world.run(60)
    assert [outcome for _, outcome in world.outcomes()] == ["ok"] * 3


def test_a_request_waits_while_the_job_runs(world: World, operator: Referee) -> None:
    """It is neither lost nor run beside the tick."""
    world.server(job(schedule=job().schedule))
    world.lasts["job"] = 20
    world.run(61)
    ask(operator, "", "job", "ann")
    world.run(15)
    assert len(pending(operator, "")) == 1
    world.lasts["job"] = 0
    world.run(10)
    assert pending(operator, "") == []
    assert [run.manual for run in world.history()] == [False, True]


def test_a_request_waits_for_a_free_slot(world: World, operator: Referee) -> None:
    """Of any server that has the job."""
    world.server(job("long"), job("job"), slots=1)
    world.lasts["long"] = world.lasts["job"] = 5
    world.run(61)
    ask(operator, "", "job", "ann")
    world.run(3)
    assert len(pending(operator, "")) == 1
    world.run(20)
    assert pending(operator, "") == []


def test_a_request_for_a_job_nobody_has_stays(world: World, operator: Referee) -> None:
    """Until a server comes that does, or its hour is over."""
    world.server(job())
    ask(operator, "", "unknown", "ann")
    world.run(3000)
    assert len(pending(operator, "")) == 1
    world.run(700)
    assert pending(operator, "") == []


def test_a_paused_job_is_not_run_by_hand(world: World, operator: Referee) -> None:
    """The request waits for the end of the pause."""
    world.server(job())
    world.store.steer("job", "bob", "migration")
    ask(operator, "", "job", "ann")
    world.run(10)
    assert len(pending(operator, "")) == 1
    world.store.steer("job", "bob", None)
    world.run(3)
    assert pending(operator, "") == []


def test_a_manual_run_that_fails_is_not_retried(world: World, operator: Referee) -> None:
    """Whoever asked may ask again; the next tick is not in its way."""

    def fail() -> None:
        raise ValueError("no luck")

    world.server(job(work=fail, attempts=5))
    ask(operator, "", "job", "ann")
    world.run(30)
    assert [(run.manual, run.outcome.value) for run in world.history()] == [(True, "failed")]


def deaf(world: World, trips: int) -> None:
    """The store takes requests down, but its answers are lost so many times."""
    strike, left = world.store.strike, [trips]

    def struck(board: str, key: str) -> bool:
        answer = strike(board, key)
        left[0] -= 1
        if left[0] >= 0:
            raise StoreUnreachable("the answer got lost")
        return answer

    world.store.strike = struck  # type: ignore[method-assign]


def test_a_request_whose_strike_lost_its_answer_is_run_all_the_same(world: World, operator: Referee) -> None:
    """Once: while its name is ours nobody else can take it, so it does not matter which strike it was."""
    fleet = [world.server(job()) for _ in range(3)]
    ask(operator, "", "job", "ann")
    deaf(world, 3)
    world.run(15)
    assert pending(operator, "") == []
    assert [(run.manual, run.outcome.value) for run in world.history()] == [(True, "ok")]
    assert sum(event.outcome is not None for one in fleet for event in one.events) == 1


def test_a_request_that_was_run_meanwhile_is_not_run_again(world: World, operator: Referee) -> None:
    """It was seen on the board, and taken by another before our race was won."""
    server = world.server(job())
    asked = ask(operator, "", "job", "ann")
    world.store.strike(board_of_requests(), "job")
    server.requests._take(job(), asked)
    world.run(1)
    assert server.events == []
    assert not world.store.read(["job"])[0].ok


def test_a_server_that_stops_before_the_answer_puts_the_request_up_again(
    world: World, operator: Referee
) -> None:
    """Another one takes it."""
    first = world.server(job())
    ask(operator, "", "job", "ann")
    deaf(world, 1)
    world.run(2)
    assert pending(operator, "") == []
    first.requests.stop()
    assert [request.by for request in pending(operator, "")] == ["ann"]
    world.server(job())
    world.run(5)
    assert [run.outcome.value for run in world.history() if run.manual] == ["ok"]


def test_a_name_that_is_lost_before_the_answer_is_told(
    world: World, operator: Referee, caplog: pytest.LogCaptureFixture
) -> None:
    """Another one may have taken it since: to run it here could be to run it twice."""
    server = world.server(job(ttl=1000))
    ask(operator, "", "job", "ann")
    deaf(world, 1)
    world.run(2)
    world.store.evict("job", "bob", "it hangs")
    server.requests._unsure[0].lease.lose("it was taken away")
    world.run(5)
    assert server.events == []
    assert "the run of job that ann asked for may be lost" in caplog.text


def board_of_requests() -> str:
    """Where requests are put up."""
    return requests._board("")


def test_a_server_that_stops_takes_no_more_requests(world: World, operator: Referee) -> None:
    """Not even one that it was about to take; and the name is free again."""
    server = world.server(job())
    ask(operator, "", "job", "ann")
    race = world.store.race
    world.store.race = lambda bids: (server.requests.quiet(), race(bids))[1]  # type: ignore[method-assign]
    world.run(3)
    assert server.events == []
    assert len(pending(operator, "")) == 1
    assert not world.store.read(["job"])[0].ok
