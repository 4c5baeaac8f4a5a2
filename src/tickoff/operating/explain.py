"""Why a tick ran, or did not, in a sentence: what it became, told with who, when, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from ..model import RUNS_KEPT, Entry, Outcome, Run, moment
from ..ticks.presence import Server
from .fate import Fate, Kind, fate_of
from .past import PastRun, past
from .roster import Listed
from .words import clock, counted, here, length, server, time_of_day

_SETTLING = 2000
"""So long (ms) after a tick nobody asks why it did not start yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What became of a tick: in one word, in a sentence or two, and the runs there were.

    Of a leader, which has no ticks, it tells who leads, or why nobody does.
    """

    job: str
    tick: datetime | None
    fate: str
    text: str
    runs: tuple[PastRun, ...]

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Case:
    """All that is known of a job when one of its ticks is asked about, by the store's time."""

    name: str
    listed: Listed | None
    entry: Entry
    runs: Sequence[Run]
    now: int

    def explain(self, tick: int) -> Explanation:
        """Tell of one tick."""
        schedule = self.listed.schedule if self.listed else None
        fate = fate_of(tick, schedule, self.entry, self.runs, self.now)
        return Explanation(
            job=self.name,
            tick=moment(tick),
            fate=fate.kind,
            text=" ".join(f"{self._opening(tick)} {self._rest(tick, fate)}".split()),
            runs=tuple(past(run) for run in fate.runs),
        )

    def lead(self) -> Explanation:
        """Tell of the lead, where the name is that of a post."""
        led = self.entry.live(self.now)
        fate = "led" if led else "paused" if self.entry.paused else "vacant"
        text = f"{self.name}: {self._led() if led else self._vacant()}"
        return Explanation(job=self.name, tick=None, fate=fate, text=text, runs=())

    def _led(self) -> str:
        entry = self.entry
        return (
            f"{server(entry.owner)} leads since {time_of_day(here(entry.taken))}, for "
            f"{length(self.now - entry.taken)}; its lease ends in {self._left()} unless renewed. "
            f"{self._presence()}"
        )

    def _vacant(self) -> str:
        if self.entry.paused:
            return f"nobody leads. It is {self._pause()}."
        return f"nobody leads. {self._presence()}"

    def latest(self) -> int:
        """The tick that is meant when none is named: the last one that was due, or decided."""
        due = self.listed.schedule.upto(self.now) if self.listed else None
        return due or self.entry.decided or self.now

    def _opening(self, tick: int) -> str:
        return f"{self.name}, tick of {clock(here(tick))}:"

    def _rest(self, tick: int, fate: Fate) -> str:
        match fate.kind:
            case Kind.RUNNING:
                return self._running(fate.runs)
            case Kind.RAN:
                return told(fate.runs, tick)
            case Kind.RETRYING:
                return f"{told(fate.runs, tick)} Any server may start it again until the next tick is due."
            case Kind.SKIPPED:
                return self._skipped(fate.runs[-1])
            case Kind.CRASHED:
                return self._crashed(tick, fate.runs)
            case _:
                return self._nothing(tick, fate.kind)

    def _nothing(self, tick: int, kind: Kind) -> str:
        """Nobody started it."""
        match kind:
            case Kind.FUTURE:
                return f"it lies in the future, in {length(tick - self.now)}. {self._hindrance()}"
            case Kind.NO_TICK:
                return self._no_tick(tick)
            case Kind.UNSEEN:
                return f"nothing is known from before it: {self._first_seen()}."
            case Kind.FORGOTTEN:
                return f"it is older than the history, which keeps {RUNS_KEPT:,} runs."
            case Kind.PAUSED:
                return f"nobody started it: the job is {self._pause()}."
            case Kind.DUE:
                return self._due(tick)
            case _:
                return f"nobody started it. {self._absence(tick)}"

    def _running(self, runs: Sequence[Run]) -> str:
        entry = self.entry
        again = f" It is attempt {entry.attempt}: {told(runs, entry.tick)}" if runs else ""
        return (
            f"{server(entry.owner)} is running it since {time_of_day(here(entry.taken))}, for "
            f"{length(self.now - entry.taken)}; its lease ends in {length(entry.until - self.now)} unless "
            f"renewed.{again}"
        )

    def _skipped(self, run: Run) -> str:
        return f"it was skipped by {server(run.owner)} at {time_of_day(here(run.started))}: {run.error}."

    def _crashed(self, tick: int, runs: Sequence[Run]) -> str:
        recover = self.listed.carried.recover if self.listed else "next"
        why = 'with recover="next" a crashed tick is left alone, and the next one starts clean'
        if recover == "now":
            attempts = self.listed.carried.attempts if self.listed else 1
            used = runs[-1].attempt >= attempts
            why = (
                f"its {'only attempt is' if attempts == 1 else f'{attempts} attempts are'} used up"
                if used
                else f"no server was there to take it over. {self._presence()}"
            )
        return f"{told(runs, tick)} Nobody took it over: {why}."

    def _no_tick(self, tick: int) -> str:
        if self.listed is None:
            return "nobody told when this job is due."
        schedule = self.listed.schedule
        former, later = schedule.upto(tick), schedule.after(tick)
        near = " and ".join(clock(here(t)) for t in (former, later) if t is not None)
        return f"this is no tick of {schedule.text!r}; the nearest are {near}."

    def _due(self, tick: int) -> str:
        if self.now - tick < _SETTLING:
            return "it has come just now, and nobody has started it yet."
        return (
            f"it was due {length(self.now - tick)} ago, and nobody has started it yet. "
            f"{self._hindrance() or self._presence()}"
        )

    def _hindrance(self) -> str:
        """What would keep the next tick from being started, as things stand."""
        entry = self.entry
        if entry.paused:
            return f"The job is {self._pause()}."
        if entry.live(self.now) and not entry.owner:
            return f"A program other than Tickoff holds its name for another {self._left()}."
        if entry.live(self.now) and not entry.tick:
            return f"{server(entry.owner)} holds its name as a plain lock for another {self._left()}."
        if entry.live(self.now):
            what = "a run asked for by hand" if entry.manual else f"the tick of {clock(here(entry.tick))}"
            return f"{server(entry.owner)} is at work on {what}, with a lease for another {self._left()}."
        if entry.barrier > self.now:
            return f"The store lost its data and waits another {length(entry.barrier - self.now)}."
        return ""

    def _absence(self, tick: int) -> str:
        """Why nobody started a tick that is over, as far as can be told afterwards."""
        steered = self.entry.steered
        if steered >= tick and not self.entry.paused:
            return f"The job was resumed at {clock(here(steered))}, after it: it fell into a pause."
        there = [s for s in self._servers() if s.started <= tick]
        if not there:
            return self._presence(tick)
        names = ", ".join(server(s.owner) for s in there[:3])
        was = "was" if len(there) == 1 else "were"
        return f"{names} {was} there, but had no slot free or could not reach the store. {self._hindrance()}"

    def _presence(self, tick: int | None = None) -> str:
        present = self._servers()
        if not present:
            return "There is no server to run it now."
        if tick is None:
            are = "is" if len(present) == 1 else "are"
            return f"Now there {are} {counted(len(present), 'server')} to run it."
        first = min(s.started for s in present)
        return (
            "No server was there then, as far as can be told: of those that carry the job now, the first "
            f"started at {clock(here(first))}."
        )

    def _servers(self) -> Sequence[Server]:
        return () if self.listed is None else self.listed.servers

    def _first_seen(self) -> str:
        ticks = [run.tick for run in self.runs if not run.manual] + [self.entry.decided]
        first = min((tick for tick in ticks if tick), default=0)
        if first:
            return f"the first tick of this job was that of {clock(here(first))}"
        return "it was run by hand only" if self.runs else "it never ran"

    def _pause(self) -> str:
        entry = self.entry
        return f"paused since {clock(here(entry.steered))} by {entry.paused_by}: {entry.paused_why}"

    def _left(self) -> str:
        return length(self.entry.until - self.now)


def told(runs: Sequence[Run], tick: int) -> str:
    """Each run of a tick in a sentence."""
    return " ".join(_told(run, tick) for run in runs)


def _told(run: Run, tick: int) -> str:
    if not run.started:
        return f"{server(run.owner)} ended it {run.outcome} at {time_of_day(here(run.ended))}."
    late = run.started - tick
    after = f", {length(late)} after it was due," if late >= 1000 and not run.manual else ""
    began = f"{server(run.owner)} started it at {time_of_day(here(run.started))}{after}"
    if run.outcome is Outcome.CRASHED:
        return f"{began} and crashed: its lease ran out at {time_of_day(here(run.ended))}."
    lasted = length(max(0, run.ended - run.started))
    why = f": {run.error}" if run.error else ""
    return f"{began} and it {_ENDS[run.outcome]} after {lasted}{why}."


_ENDS = {
    Outcome.OK: "ended ok",
    Outcome.FAILED: "failed",
    Outcome.TIMED_OUT: "timed out",
    Outcome.LOST: "lost its lease",
    Outcome.SKIPPED: "was skipped",
    Outcome.CRASHED: "crashed",
}
