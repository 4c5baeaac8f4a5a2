"""What the store's atomic steps mean, as pure functions: (entry, request, now) → the entry after it.

This is the reference: stores that compare and swap run these functions, the Lua scripts of the Redis
store say the same in Lua, and the contract suite holds all of them to it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from .model import (
    TOMBSTONE_LIFE,
    TOMBSTONES_KEPT,
    UNSCHEDULED_LIFE,
    Bid,
    Ending,
    Entry,
    Hold,
    Known,
    Outcome,
    Run,
    Why,
    held,
)


@dataclass(frozen=True, slots=True)
class Step:
    """The result of one step: the entry after it, whether the request was granted, lines for the history."""

    entry: Entry
    ok: bool
    why: Why | None = None
    runs: tuple[Run, ...] = ()


def race(entry: Entry, bid: Bid, now: int) -> Step:
    """Grant the name to the bid, or say why not; racing again with the same token finds one's own win."""
    entry = _recall(entry, bid.known, now, wait=max(bid.known.ttl, bid.ttl))
    why = _refusal(entry, bid, now)
    if why is not None:
        return _skip(entry, bid, now, why)
    if entry.live(now):
        return Step(entry, ok=True)
    return Step(_grant(entry, bid, now), ok=True, runs=_crash(entry, now))


def renew(entry: Entry, hold: Hold, now: int) -> Step:
    """Prolong a lease that is still ours, or assert it anew where the store forgot it."""
    entry = _asserted(entry, hold, now)
    if not _ours(entry, hold.token, now):
        return Step(entry, ok=False)
    return Step(replace(entry, until=now + hold.ttl, ttl=hold.ttl, used=now), ok=True)


def settle(entry: Entry, ending: Ending, now: int) -> Step:
    """Finish a tick with its outcome and let go, in one step."""
    hold = ending.hold
    if entry.let_go == hold.token:
        return Step(entry, ok=True)
    entry = _asserted(entry, hold, now)
    if not _ours(entry, hold.token, now):
        return Step(entry, ok=False, runs=_lost(hold, ending, now))
    run = _run(hold, now, ending.outcome, ending.error)
    return Step(_close(_let_go(entry, now), ending, now), ok=True, runs=(run,))


def release(entry: Entry, token: str, now: int) -> Step:
    """Let go of a lease that is still ours; a tick given back unstarted may be started by anybody."""
    if entry.let_go == token:
        return Step(entry, ok=True)
    if not _ours(entry, token, now):
        return Step(entry, ok=False)
    reopened = _decided_one(entry) and entry.finished < entry.tick
    if reopened:
        entry = replace(entry, open=True, attempt=entry.attempt - 1)
    return Step(_let_go(entry, now), ok=True)


def withdraw(entry: Entry, token: str, now: int) -> Step:
    """Let go, and leave a tombstone so that the race's request wins nothing should it still arrive."""
    step = release(entry, token, now)
    others = [tombstone for tombstone in _tombstones(step.entry, now) if tombstone[0] != token]
    tombstones = (*others[1 - TOMBSTONES_KEPT :], (token, now + TOMBSTONE_LIFE))
    return replace(step, entry=replace(step.entry, withdrawn=tombstones, used=now))


def evict(entry: Entry, by: str, why: str, now: int) -> Step:
    """Take the name away from whoever holds it and raise the fence, so that the old holder stays out."""
    live = entry.live(now)
    runs = _crash(entry, now)
    if live and entry.tick:
        runs = (_run(held(entry), now, Outcome.LOST, f"released by {by}: {why}"),)
    if runs and _decided_one(entry):
        entry = replace(entry, outcome=runs[0].outcome, outcome_by=entry.owner, outcome_at=runs[0].ended)
    fence = max(entry.fence + 1, now)
    return Step(replace(_freed(entry, now), fence=fence, barrier=0), ok=live, runs=runs)


def steer(entry: Entry, by: str, why: str | None, now: int) -> Step:
    """Pause (with a reason) or resume (None); the later word counts, whoever remembers the former."""
    paused = why is not None
    return Step(
        replace(
            entry,
            steered=max(entry.steered + 1, now),
            paused=paused,
            paused_by=by if paused else "",
            paused_why=why or "",
            used=now,
        ),
        ok=True,
    )


def expired(entry: Entry, now: int) -> bool:
    """Whether a name without a schedule has been unused for so long that its data may go."""
    idle = entry.used + UNSCHEDULED_LIFE <= now and not entry.live(now)
    return idle and not entry.scheduled and not entry.paused


def _refusal(entry: Entry, bid: Bid, now: int) -> Why | None:
    if any(token == bid.token for token, _ in _tombstones(entry, now)):
        return Why.HELD
    if _ours(entry, bid.token, now):
        return None
    if bid.tick > now:
        return Why.TOO_EARLY
    tick = 0 if bid.manual else bid.tick
    if tick and (tick < entry.decided or tick <= entry.finished):
        return Why.DONE
    if entry.live(now):
        return Why.HELD
    if entry.paused:
        return Why.PAUSED
    if entry.barrier > now:
        return Why.HELD
    return Why.DONE if tick == entry.decided and tick and not _again(entry, bid) else None


def _again(entry: Entry, bid: Bid) -> bool:
    """Whether the decided tick may be started once more: given back, failed, or crashed with takeover."""
    return (entry.open or bid.takeover) and entry.attempt < bid.attempts


def _skip(entry: Entry, bid: Bid, now: int, why: Why) -> Step:
    """A lost race; a tick that fell on a running one or into a pause is decided, and recorded, as skipped."""
    overlap = why is Why.HELD and entry.live(now) and 0 < entry.tick < bid.tick and not entry.manual
    if bid.manual or bid.tick <= entry.decided or not (overlap or why is Why.PAUSED):
        return Step(entry, ok=False, why=why)
    note = (
        f"paused by {entry.paused_by}: {entry.paused_why}"
        if why is Why.PAUSED
        else f"overlap: {entry.owner} is still at work"
    )
    run = Run(
        name=entry.name,
        tick=bid.tick,
        fence=0,
        owner=bid.owner,
        started=now,
        ended=now,
        outcome=Outcome.SKIPPED,
        error=note,
    )
    marked = replace(
        entry, decided=bid.tick, attempt=0, open=False, scheduled=entry.scheduled or bid.scheduled, used=now
    )
    return Step(_finish(marked, run), ok=False, why=why, runs=(run,))


def _grant(entry: Entry, bid: Bid, now: int) -> Entry:
    crashed = _crash(entry, now)
    if crashed and _decided_one(entry):
        entry = replace(entry, outcome=Outcome.CRASHED, outcome_by=entry.owner, outcome_at=entry.until)
    if not bid.manual:
        entry = _decide(entry, bid.tick)
    return replace(
        entry,
        token=bid.token,
        owner=bid.owner,
        tick=bid.tick,
        manual=bid.manual,
        taken=now,
        until=now + bid.ttl,
        ttl=bid.ttl,
        fence=max(entry.fence + 1, now),
        barrier=0,
        scheduled=entry.scheduled or bid.scheduled,
        used=now,
        withdrawn=_tombstones(entry, now),
    )


def _tombstones(entry: Entry, now: int) -> tuple[tuple[str, int], ...]:
    """The withdrawn races that may still arrive, the latest last."""
    return tuple(tombstone for tombstone in entry.withdrawn if tombstone[1] > now)


def _decide(entry: Entry, tick: int) -> Entry:
    """Start a tick, afresh or once more."""
    if tick > entry.decided:
        entry = replace(entry, decided=tick, attempt=0, outcome="", outcome_by="", outcome_at=0)
    return replace(entry, attempt=entry.attempt + 1, open=False) if tick else entry


def _decided_one(entry: Entry) -> bool:
    """Whether the lease is, or was, for the tick decided last: not a plain lock, a manual or an older run."""
    return entry.tick != 0 and entry.tick == entry.decided and not entry.manual


def _recall(entry: Entry, known: Known, now: int, wait: int) -> Entry:
    """Take the maximum of what is stored and what a server remembers; a store that forgot waits a while.

    The wait gives a former holder the time to assert its lease at its next renewal (every third of the
    TTL): a little over a third, so that the renewal's own trip still fits.
    """
    if known.fence > entry.fence:
        until = max(entry.barrier, now + wait * 2 // 5)
        entry = replace(entry, fence=known.fence, barrier=until, used=now)
    if known.decided > entry.decided:
        entry = replace(entry, decided=known.decided, attempt=0, open=False, outcome="", used=now)
    if known.steered > entry.steered:
        entry = replace(
            entry,
            steered=known.steered,
            paused=known.paused,
            paused_by=known.paused_by,
            paused_why=known.paused_why,
            used=now,
        )
    return replace(entry, finished=max(entry.finished, known.finished), since=max(entry.since, known.since))


def _asserted(entry: Entry, hold: Hold, now: int) -> Entry:
    """The entry with a forgotten lease put back; one released on purpose (equal fence) stays released."""
    waiting = entry.barrier > now and entry.fence == hold.fence
    forgotten = not entry.live(now) and (entry.fence < hold.fence or waiting)
    if not forgotten or hold.until <= now:
        return entry
    if hold.tick > entry.decided and not hold.manual:
        entry = replace(entry, decided=hold.tick, attempt=hold.attempt)
    return replace(
        _recall(entry, replace(hold.known, fence=0), now, wait=0),
        token=hold.token,
        owner=hold.owner,
        tick=hold.tick,
        manual=hold.manual,
        taken=hold.taken,
        until=hold.until,
        ttl=hold.ttl,
        fence=hold.fence,
        barrier=0,
        scheduled=entry.scheduled or hold.scheduled,
        used=now,
    )


def _ours(entry: Entry, token: str, now: int) -> bool:
    return entry.live(now) and entry.token == token


def _let_go(entry: Entry, now: int) -> Entry:
    return replace(_freed(entry, now), let_go=entry.token)


def _freed(entry: Entry, now: int) -> Entry:
    return replace(entry, token="", owner="", tick=0, manual=False, until=0, used=now)


def _close(entry: Entry, ending: Ending, now: int) -> Entry:
    """Move the marks: final outcomes finish the tick, a failure with attempts left opens it again."""
    hold = ending.hold
    if hold.manual:
        return entry
    if ending.outcome is Outcome.OK:
        entry = replace(entry, since=max(entry.since, hold.tick))
    if hold.tick != entry.decided:
        return entry
    final = ending.outcome is Outcome.OK or hold.attempt >= ending.attempts
    if not final:
        return replace(entry, open=True)
    return _finish(entry, _run(hold, now, ending.outcome, ending.error))


def _finish(entry: Entry, run: Run) -> Entry:
    return replace(
        entry,
        finished=max(entry.finished, run.tick),
        outcome=run.outcome,
        outcome_by=run.owner,
        outcome_at=run.ended,
    )


def crash_of(entry: Entry, now: int) -> Run | None:
    """The run whose server died under it, as long as nobody came after it to write that down."""
    return _run(held(entry), entry.until, Outcome.CRASHED, "") if entry.crashed(now) else None


def _crash(entry: Entry, now: int) -> tuple[Run, ...]:
    """The line a crashed run leaves in the history, written by whoever comes next."""
    run = crash_of(entry, now)
    return (run,) if run else ()


def _lost(hold: Hold, ending: Ending, now: int) -> tuple[Run, ...]:
    """What a holder that lost its lease tells the history when it comes back."""
    note = f"lost the lease; the work itself ended {ending.outcome}"
    return (_run(hold, now, Outcome.LOST, ending.error or note),) if hold.tick else ()


def _run(hold: Hold, ended: int, outcome: Outcome, error: str) -> Run:
    return Run(
        name=hold.name,
        tick=hold.tick,
        fence=hold.fence,
        owner=hold.owner,
        started=hold.taken,
        ended=ended,
        outcome=outcome,
        error=error,
        attempt=1 if hold.manual else hold.attempt,
        manual=hold.manual,
    )
