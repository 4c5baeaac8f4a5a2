"""Every fate of a tick has its sentence, on the reference store and by the rules."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tickoff import rules
from tickoff.model import RUNS_KEPT, Bid, Ending, Entry, Outcome, Run, held
from tickoff.operating.explain import Case, Explanation
from tickoff.operating.roster import Listed
from tickoff.ticks.presence import Carried, Server

MINUTE = 60_000
TICK = 60 * 20_000 * MINUTE
OWNER = "web-3:211:0badcafe"


def listed(*servers: Server, recover: str = "next", attempts: int = 1) -> Listed:
    carried = Carried(
        name="report",
        schedule="every 10m",
        digest="",
        function="shop:report",
        ttl=MINUTE,
        timeout=None,
        attempts=attempts,
        recover=recover,
        made=0,
    )
    return Listed(carried, servers)


def a_server(started: int = 0) -> Server:
    return Server(owner=OWNER, version="1", started=started, skew=0.0, catalog="c")


def won(entry: Entry, tick: int, now: int, **more: object) -> Entry:
    bid = Bid(name="report", token=f"t{now}", owner=OWNER, ttl=MINUTE, tick=tick, scheduled=True)
    return rules.race(entry, replace(bid, **more), now).entry  # type: ignore[arg-type]


def ended(entry: Entry, outcome: Outcome, now: int, error: str = "") -> tuple[Entry, list[Run]]:
    step = rules.settle(entry, Ending(hold=held(entry), outcome=outcome, error=error), now)
    return step.entry, list(step.runs)


def explained(
    entry: Entry, now: int, runs: list[Run] | None = None, tick: int = TICK, job: Listed | None = None
) -> Explanation:
    return Case("report", job or listed(a_server()), entry, runs or [], now).explain(tick)


FRESH = Entry(name="report")
SEEN = won(FRESH, TICK - 10 * MINUTE, TICK - 10 * MINUTE)
DONE, BEFORE = ended(SEEN, Outcome.OK, TICK - 9 * MINUTE - 30_000)


def test_a_run_is_told_with_who_when_how_long_and_how_it_ended() -> None:
    entry, runs = ended(won(DONE, TICK, TICK + 1500), Outcome.OK, TICK + 13_500)
    told = explained(entry, TICK + MINUTE, runs)
    assert told.fate == "ran"
    assert "web-3 (pid 211) started it at" in told.text
    assert "1 second after it was due" in told.text
    assert told.text.endswith("ended ok after 12 seconds.")
    assert told.runs[0].seconds == 12.0


def test_a_failure_is_told_with_its_error() -> None:
    entry, runs = ended(won(DONE, TICK, TICK), Outcome.FAILED, TICK + 100, "ValueError: no")
    assert "failed after 100 ms: ValueError: no." in explained(entry, TICK + MINUTE, runs).text


def test_a_run_under_way_is_told_with_its_lease() -> None:
    told = explained(won(DONE, TICK, TICK), TICK + 20_000)
    assert told.fate == "running"
    assert "for 20 seconds; its lease ends in 40 seconds unless renewed" in told.text


def test_a_crash_nobody_wrote_down_is_derived_and_told_with_why_nobody_came() -> None:
    crashed = won(DONE, TICK, TICK)
    told = explained(crashed, TICK + 5 * MINUTE)
    assert told.fate == "crashed"
    assert "crashed: its lease ran out" in told.text
    assert 'Nobody took it over: with recover="next" a crashed tick is left alone' in told.text
    alone = explained(crashed, TICK + 5 * MINUTE, job=listed(recover="now", attempts=3))
    assert "no server was there to take it over. There is no server to run it now." in alone.text
    used_up = explained(crashed, TICK + 5 * MINUTE, job=listed(a_server(), recover="now", attempts=1))
    assert "its 1 attempt are used up" not in used_up.text
    assert "its only attempt is used up" in used_up.text


def test_a_tick_taken_over_is_told_run_by_run() -> None:
    entry = won(DONE, TICK, TICK)
    step = rules.race(
        entry,
        Bid(
            name="report",
            token="b",
            owner="web-4:1:x",
            ttl=MINUTE,
            tick=TICK,
            attempts=3,
            takeover=True,
            scheduled=True,
        ),
        TICK + 61_000,
    )
    entry, runs = ended(step.entry, Outcome.OK, TICK + 62_000)
    text = explained(entry, TICK + 5 * MINUTE, [*step.runs, *runs]).text
    assert text.index("web-3 (pid 211) started it") < text.index("crashed") < text.index("web-4 (pid 1)")
    assert text.endswith("ended ok after 1 second.")


def test_a_failed_tick_that_may_be_started_again_says_so() -> None:
    entry = won(DONE, TICK, TICK)
    step = rules.settle(entry, Ending(hold=held(entry), outcome=Outcome.FAILED, attempts=3), TICK + 100)
    told = explained(step.entry, TICK + 1000, list(step.runs))
    assert told.fate == "retrying"
    assert "may start it again until the next tick is due" in told.text


def test_a_pause_is_told_with_who_and_why() -> None:
    paused = rules.steer(DONE, "ann", "stock-taking", TICK - MINUTE).entry
    nobody = explained(paused, TICK + MINUTE)
    assert nobody.fate == "paused"
    assert "by ann: stock-taking" in nobody.text
    step = rules.race(
        paused,
        Bid(name="report", token="t", owner=OWNER, ttl=MINUTE, tick=TICK, scheduled=True),
        TICK,
    )
    skipped = explained(step.entry, TICK + MINUTE, list(step.runs))
    assert skipped.fate == "skipped"
    assert "paused by ann: stock-taking" in skipped.text
    resumed = rules.steer(paused, "ann", None, TICK + 15 * MINUTE).entry
    assert "it fell into a pause" in explained(resumed, TICK + 20 * MINUTE).text


def test_an_overlap_is_told_with_who_was_at_work() -> None:
    running = replace(won(DONE, TICK - 10 * MINUTE, TICK - 10 * MINUTE), until=TICK + MINUTE)
    running = won(FRESH, TICK - 10 * MINUTE, TICK - 10 * MINUTE)
    running = replace(running, until=TICK + MINUTE)
    bid = Bid(name="report", token="t", owner="b:1:x", ttl=MINUTE, tick=TICK, scheduled=True)
    step = rules.race(running, bid, TICK)
    told = explained(step.entry, TICK + 1000, list(step.runs))
    assert told.fate == "skipped"
    assert f"overlap: {OWNER} is still at work" in told.text


@pytest.mark.parametrize(
    ("tick", "fate", "words"),
    [
        (TICK + 10 * MINUTE, "future", "it lies in the future, in 5 minutes"),
        (TICK + MINUTE, "no tick", "this is no tick of 'every 10m'; the nearest are"),
        (TICK - 30 * MINUTE, "unseen", "nothing is known from before it: the first tick of this job was"),
    ],
)
def test_what_is_not_to_be_run_says_why(tick: int, fate: str, words: str) -> None:
    told = explained(DONE, TICK + 5 * MINUTE, BEFORE, tick)
    assert (told.fate, words in told.text) == (fate, True), told.text


def test_a_run_by_hand_is_not_taken_for_the_first_tick() -> None:
    """The reader would look for a tick at that instant, and there is none."""
    by_hand = [replace(BEFORE[0], tick=TICK + 1234, manual=True)]
    told = explained(replace(FRESH, scheduled=True), TICK + MINUTE, by_hand, TICK)
    assert told.text.endswith("nothing is known from before it: it was run by hand only.")


def test_what_the_history_has_forgotten_says_so() -> None:
    runs = [replace(BEFORE[0], tick=TICK - i * 10 * MINUTE) for i in range(RUNS_KEPT)]
    told = explained(DONE, TICK, runs, TICK - (RUNS_KEPT + 5) * 10 * MINUTE)
    assert told.fate == "forgotten"


def test_a_tick_that_is_due_says_what_keeps_it() -> None:
    now = TICK + 30_000
    assert "has come just now" in explained(DONE, TICK + 500, BEFORE).text
    assert "was due 30 seconds ago" in explained(DONE, now, BEFORE).text
    foreign = replace(DONE, token="x", until=now + 9000)
    assert "A program other than Tickoff holds its name" in explained(foreign, now, BEFORE).text
    locked = replace(foreign, owner="b:7:x")
    assert (
        "b (pid 7) holds its name as a plain lock for another 9 seconds"
        in explained(locked, now, BEFORE).text
    )
    manual = replace(locked, tick=TICK + 5, manual=True)
    assert "at work on a run asked for by hand" in explained(manual, now, BEFORE).text


def test_a_missed_tick_says_who_was_there_as_far_as_can_be_told() -> None:
    now = TICK + 15 * MINUTE
    nobody = explained(DONE, now, BEFORE, job=listed())
    assert nobody.fate == "missed"
    assert nobody.text.endswith("nobody started it. There is no server to run it now.")
    later = explained(DONE, now, BEFORE, job=listed(a_server(TICK + 12 * MINUTE)))
    assert "No server was there then, as far as can be told" in later.text
    there = explained(DONE, now, BEFORE, job=listed(a_server(TICK - MINUTE)))
    assert "web-3 (pid 211) was there, but had no slot free or could not reach the store" in there.text


def test_marks_alone_tell_the_outcome_when_the_history_is_lost() -> None:
    entry, _ = ended(won(DONE, TICK, TICK), Outcome.OK, TICK + 1000)
    assert "web-3 (pid 211) ended it ok at" in explained(entry, TICK + MINUTE).text
