"""The reference store: a dict, for tests and simulations of one process. Nothing outlives the process."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from .. import rules
from ..model import RUNS_KEPT, Entry, Note, Outcome, Run
from .cas import CasStore


def _wall_clock() -> int:
    return time.time_ns() // 1_000_000


class MemoryStore(CasStore):
    """Entries in a dict under one lock; the clock may be given, so that time can be virtual."""

    def __init__(self, clock: Callable[[], int] = _wall_clock) -> None:
        self._clock = clock
        self._guard = threading.Lock()
        self._entries: dict[str, Entry] = {}
        self._runs: dict[str, dict[tuple[int, int], Run]] = {}
        self._notes: dict[tuple[str, str], Note] = {}

    @property
    def address(self) -> str:
        """Where the store is."""
        return "memory://"

    def load(self, names: Iterable[str]) -> tuple[int, Mapping[str, Entry]]:
        """The time, and the entries there are."""
        with self._guard:
            now = self._clock()
            found = {name: self._entries[name] for name in names if name in self._entries}
            return now, {name: entry for name, entry in found.items() if not rules.expired(entry, now)}

    def swap(self, old: Entry, new: Entry, runs: Sequence[Run]) -> bool:
        """Put `new` in the place of `old`, unless it has changed."""
        with self._guard:
            stored = self._entries.get(old.name)
            fresh = stored is None or rules.expired(stored, self._clock())
            if (0 if fresh or stored is None else stored.version) != old.version:
                return False
            self._entries[old.name] = new
            for run in runs:
                self._record(run)
            return True

    def names(self, prefix: str = "") -> list[str]:
        """The names that begin with the prefix, sorted."""
        with self._guard:
            now = self._clock()
            live = [name for name, entry in self._entries.items() if not rules.expired(entry, now)]
            return sorted(name for name in live if name.startswith(prefix))

    def history(self, name: str, limit: int = 100) -> list[Run]:
        """The latest runs of a name, newest first."""
        with self._guard:
            runs = self._runs.get(name, {})
            return [runs[key] for key in sorted(runs, reverse=True)[:limit]]

    def runs(self, names: Sequence[str], since: int) -> list[Run]:
        """The runs of these names for ticks from an instant on."""
        with self._guard:
            return [run for name in names for run in self._runs.get(name, {}).values() if run.tick >= since]

    def post(self, board: str, key: str, text: str, life: int) -> int:
        """Put a note on a board for `life` ms; says the time."""
        with self._guard:
            now = self._clock()
            self._notes[board, key] = Note(key, text, now + life)
            return now

    def notes(self, board: str) -> list[Note]:
        """The notes of a board that are still good, by key."""
        with self._guard:
            now = self._clock()
            self._notes = {place: note for place, note in self._notes.items() if note.until > now}
            return [self._notes[place] for place in sorted(self._notes) if place[0] == board]

    def strike(self, board: str, key: str) -> bool:
        """Take a note down; True for the one caller who did it."""
        with self._guard:
            note = self._notes.pop((board, key), None)
            return note is not None and note.until > self._clock()

    def now(self) -> int:
        """The store's clock."""
        return self._clock()

    def within(self, limit: float) -> MemoryStore:  # noqa: ARG002 - there is no I/O to limit
        """Itself: there are no connections."""
        return self

    def migrate(self) -> str:
        """Nothing to do."""
        return "memory:// has no schema"

    def forget_connections(self) -> None:
        """A forked child has a copy of its own, which coordinates nothing: start it empty."""
        self._guard = threading.Lock()
        self._entries, self._runs, self._notes = {}, {}, {}

    def close(self) -> None:
        """Nothing to close."""

    def lose(self, name: str) -> None:
        """Forget a name, as a store does that loses its data; for tests."""
        with self._guard:
            self._entries.pop(name, None)
            self._runs.pop(name, None)

    def rewrite(self, name: str, change: Callable[[Entry], Entry]) -> None:
        """Change what is kept of a name, past all rules; for tests."""
        with self._guard:
            if name in self._entries:
                self._entries[name] = change(self._entries[name])

    def _record(self, run: Run) -> None:
        runs = self._runs.setdefault(run.name, {})
        key = (run.tick, run.fence)
        guess = key in runs and runs[key].outcome is Outcome.CRASHED
        if key not in runs or (guess and run.outcome is Outcome.LOST):
            runs[key] = run
        for old in sorted(runs)[:-RUNS_KEPT]:
            del runs[old]
