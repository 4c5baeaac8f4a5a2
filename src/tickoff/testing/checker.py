"""What must not be, found in what was written down: by a simulation, by chaos, or by a test of your own.

Each check takes plain facts and gives back a line for everything that is wrong; no line, no violation.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from .history import Op

Place = tuple[str, int]
"""A tick: the job's name, the instant."""

ALLOWED = {
    ("PENDING", "IN_FLIGHT"),
    ("IN_FLIGHT", "PENDING"),
    ("IN_FLIGHT", "DONE"),
    ("IN_FLIGHT", "FAILED"),
    ("IN_FLIGHT", "IN_FLIGHT"),
    ("PENDING", "PENDING"),
    ("FAILED", "FAILED"),
}
"""The ways of a record, unless a user reopens or retries it; DONE leads nowhere."""


def fences_grow(grants: Iterable[tuple[str, int]]) -> list[str]:
    """Fences grow with every grant of a name; the grants are in the order in which they were given."""
    highest: dict[str, int] = defaultdict(int)
    wrong = []
    for name, fence in grants:
        if fence <= highest[name]:
            wrong.append(f"{name} was granted with fence {fence} after {highest[name]}")
        highest[name] = max(highest[name], fence)
    return wrong


def fences_grow_as_seen(ops: Sequence[Op]) -> list[str]:
    """The same as clients saw it: a grant that began after another one was answered has the higher fence."""
    wrong = []
    by_name: dict[str, list[Op]] = defaultdict(list)
    for op in ops:
        if op.ok and op.line.fence:
            by_name[op.line.name].append(op)
    for name, granted in by_name.items():
        tokens: dict[int, set[str]] = defaultdict(set)
        for op in granted:
            tokens[op.line.fence].add(op.line.token)
        wrong += [
            f"{name}: fence {fence} was granted {len(of)} times"
            for fence, of in tokens.items()
            if len(of) > 1
        ]
        wrong += _fences_in_time(name, granted)
    return wrong


def _fences_in_time(name: str, granted: Sequence[Op]) -> list[str]:
    answered = sorted(granted, key=lambda op: op.ended)
    wrong, highest, i = [], 0, 0
    for op in sorted(granted, key=lambda op: op.begun):
        while i < len(answered) and answered[i].ended < op.begun:
            highest, i = max(highest, answered[i].line.fence), i + 1
        if op.line.fence < highest:
            wrong.append(
                f"{name} was granted with fence {op.line.fence} to {op.line.process} after {highest}"
            )
    return wrong


def writes_go_on(writes: Iterable[tuple[str, int]]) -> list[str]:
    """What the protected resource accepted never goes back; the writes are in the resource's own order."""
    highest: dict[str, int] = defaultdict(int)
    wrong = []
    for name, fence in writes:
        if fence < highest[name]:
            wrong.append(f"a write of {name} with fence {fence} was accepted after one with {highest[name]}")
        highest[name] = max(highest[name], fence)
    return wrong


def started_at_most(starts: Iterable[Place], allowed: Mapping[str, int]) -> list[str]:
    """No tick is started more often than its job's attempts allow."""
    return [
        f"{job} was started {times} times for the tick {tick}, allowed: {allowed[job]}"
        for (job, tick), times in sorted(Counter(starts).items())
        if job in allowed and times > allowed[job]
    ]


def ended_by_now(job: str, due: Iterable[int], ended: Collection[int]) -> list[str]:
    """What was due is done."""
    return [f"{job} was not run for the tick {tick}" for tick in due if tick not in ended]


def records_whole(expected: Mapping[str, str], found: Mapping[str, tuple[str, str | None]]) -> list[str]:
    """Records in are records out: each is DONE with its answer, none is lost, added, or stuck."""
    wrong = [f"record {key} is lost" for key in expected.keys() - found.keys()]
    wrong += [f"record {key} came out of nowhere" for key in found.keys() - expected.keys()]
    for key in sorted(expected.keys() & found.keys()):
        state, answer = found[key]
        if (state, answer) != ("DONE", expected[key]):
            wrong.append(f"record {key} is {state} with {answer!r} instead of DONE with {expected[key]!r}")
    return wrong


def records_went(changes: Iterable[tuple[str, str, str]]) -> list[str]:
    """Records went along allowed ways only, and DONE once; (key, from, to) in the database's own order."""
    wrong, states = [], dict[str, str]()
    for key, old, new in changes:
        if (old, new) not in ALLOWED:
            wrong.append(f"record {key} went from {old} to {new}")
        if states.get(key, old) != old:
            wrong.append(f"record {key} was {states[key]} and then went from {old}")
        states[key] = new
    return wrong


def charged_for_failures(charged: Mapping[str, int], raised: Mapping[str, int]) -> list[str]:
    """No record is charged more often than its calls failed, by the errors that they raised."""
    return [
        f"record {key} was charged {times} times for {raised.get(key, 0)} failures"
        for key, times in charged.items()
        if times > raised.get(key, 0)
    ]


def answers_kept(acknowledged: Iterable[str], found: Mapping[str, tuple[str, str | None]]) -> list[str]:
    """What a server was told to be DONE is DONE."""
    return [
        f"record {key} was acknowledged as DONE, and is {found[key][0] if key in found else 'lost'}"
        for key in acknowledged
        if key not in found or found[key][0] != "DONE"
    ]
