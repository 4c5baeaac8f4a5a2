"""The checker says no to each kind of wrong history, and yes to right ones; histories outlive a kill."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tickoff.testing import checker
from tickoff.testing.history import History, Line, Said, lines_of, ops_of


def grant(begun: float, ended: float | None, fence: int, token: str, process: str = "a") -> list[Line]:
    """A race from its begin to its answer, None: none came."""
    about = {"process": process, "call": fence * 100 + hash(token) % 100, "verb": "race", "name": "n"}
    lines = [Line(at=begun, said=Said.INVOKE, **about)]
    if ended is not None:
        lines.append(Line(at=ended, said=Said.OK, fence=fence, token=token, **about))
    return lines


def test_fences_that_grow_are_right_also_when_races_overlap() -> None:
    """Races under way at the same time may end in any order."""
    lines = [*grant(1, 9, 5, "t"), *grant(2, 3, 4, "u"), *grant(10, 11, 6, "v"), *grant(12, None, 0, "w")]
    assert checker.fences_grow_as_seen(ops_of(sorted(lines, key=lambda line: line.at))) == []
    assert checker.fences_grow([("n", 1), ("m", 1), ("n", 2)]) == []


def test_a_fence_that_goes_back_or_comes_twice_is_found() -> None:
    """Whether it is later and lower, or the same for two."""
    back = ops_of([*grant(1, 2, 5, "t"), *grant(3, 4, 4, "u")])
    assert checker.fences_grow_as_seen(back) == ["n was granted with fence 4 to a after 5"]
    twice = ops_of([*grant(1, 5, 5, "t"), *grant(2, 4, 5, "u")])
    assert checker.fences_grow_as_seen(twice) == ["n: fence 5 was granted 2 times"]
    assert len(checker.fences_grow([("n", 2), ("n", 2)])) == 1


def test_an_accepted_write_that_goes_back_is_found() -> None:
    """Per name; the same fence may write often."""
    assert checker.writes_go_on([("n", 1), ("n", 1), ("m", 9), ("n", 2)]) == []
    assert checker.writes_go_on([("n", 2), ("n", 1)]) == [
        "a write of n with fence 1 was accepted after one with 2"
    ]


def test_a_tick_started_too_often_or_never_run_is_found() -> None:
    """At most as often as its attempts allow, and at least once where it was due."""
    starts = [("once", 10), ("thrice", 10), ("thrice", 10), ("thrice", 10), ("free", 1), ("free", 1)]
    allowed = {"once": 1, "thrice": 3}
    assert checker.started_at_most(starts, allowed) == []
    assert len(checker.started_at_most([*starts, ("once", 10), ("thrice", 10)], allowed)) == 2
    assert checker.ended_by_now("once", [10], {10}) == []
    assert checker.ended_by_now("once", [10, 20], {10}) == ["once was not run for the tick 20"]


@pytest.mark.parametrize(
    "found",
    [
        {"1": ("DONE", "a1")},
        {"1": ("DONE", "a1"), "2": ("DONE", "a2"), "3": ("DONE", "a3")},
        {"1": ("DONE", "a1"), "2": ("IN_FLIGHT", None)},
        {"1": ("DONE", "a1"), "2": ("DONE", "another")},
        {"1": ("DONE", "a1"), "2": ("FAILED", None)},
    ],
)
def test_records_lost_added_stuck_or_changed_are_found(found: dict[str, tuple[str, str | None]]) -> None:
    """Records in are records out, each with its answer."""
    expected = {"1": "a1", "2": "a2"}
    assert checker.records_whole(expected, {"1": ("DONE", "a1"), "2": ("DONE", "a2")}) == []
    assert len(checker.records_whole(expected, found)) == 1


@pytest.mark.parametrize(
    "change",
    [("DONE", "PENDING"), ("DONE", "DONE"), ("PENDING", "DONE"), ("PENDING", "FAILED"), ("FAILED", "DONE")],
)
def test_a_way_that_records_do_not_go_is_found(change: tuple[str, str]) -> None:
    """DONE leads nowhere, and nothing is DONE that was not claimed."""
    right = [("1", "PENDING", "IN_FLIGHT"), ("1", "IN_FLIGHT", "PENDING"), ("1", "PENDING", "IN_FLIGHT")]
    assert checker.records_went([*right, ("1", "IN_FLIGHT", "DONE")]) == []
    assert checker.records_went([("2", *change)])


def test_a_change_that_nobody_saw_is_found() -> None:
    """Somebody wrote past the log."""
    jumped = [("1", "PENDING", "IN_FLIGHT"), ("1", "PENDING", "IN_FLIGHT")]
    assert checker.records_went(jumped) == ["record 1 was IN_FLIGHT and then went from PENDING"]


def test_an_acknowledged_answer_that_is_gone_is_found() -> None:
    """What was DONE stays DONE."""
    assert checker.answers_kept(["1"], {"1": ("DONE", "x")}) == []
    assert len(checker.answers_kept(["1", "2"], {"1": ("PENDING", None)})) == 2


def test_a_killed_clients_call_stays_unknown_and_its_torn_line_is_passed_over(tmp_path: Path) -> None:
    """Unknown may have been applied: it neither proves nor breaks anything."""
    pid = os.fork()
    if pid == 0:
        with History(tmp_path, "victim").asking("race", "n"):
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(pid, 0)
    with (tmp_path / "victim.jsonl").open("a") as file:
        file.write('{"at": 1, "process": "vic')
    with History(tmp_path, "other") as history, history.asking("race", "n", token="t") as call:
        call.said(Said.OK, fence=7)
        call.said(Said.FAIL)
    victim, other = ops_of(lines_of(tmp_path))
    assert (victim.ok, victim.ended) == (False, float("inf"))
    assert (other.ok, other.line.fence, other.line.token) == (True, 7, "t")


def test_a_call_that_raises_is_unknown(tmp_path: Path) -> None:
    """Its answer was lost."""
    history = History(tmp_path, "one")
    with pytest.raises(ConnectionError), history.asking("write", "n"):
        raise ConnectionError
    assert [line.said for line in lines_of(tmp_path)] == [Said.INVOKE, Said.UNKNOWN]
    assert ops_of(lines_of(tmp_path))[0].ended == float("inf")
    history.close()


def test_a_charge_without_a_failure_is_found() -> None:
    """A failed call may go uncharged, when its answer was refused; a charge without one is wrong."""
    assert checker.charged_for_failures({"1": 1, "2": 2}, {"1": 2, "2": 2}) == []
    assert checker.charged_for_failures({"1": 1, "2": 2}, {"2": 1}) == [
        "record 1 was charged 1 times for 0 failures",
        "record 2 was charged 2 times for 1 failures",
    ]
