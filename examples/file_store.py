"""A store of one's own: leases in one JSON file, for the processes of one machine.

It shows how little a store needs: `load` and `swap`, a history, and the promise that a swap is atomic.
What races, renewals and releases mean is not repeated here: `CasStore` takes that from `tickoff.rules`.
`tests/test_docs.py` runs the public contract suite on it.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tickoff import StoreUnreachable, rules
from tickoff.model import RUNS_KEPT, Entry, Note, Outcome, Run
from tickoff.stores.cas import CasStore


class FileStore(CasStore):
    """Entries and runs in a JSON file, changed under a lock on a second file."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path).absolute()

    @property
    def address(self) -> str:
        """Where the store is."""
        return f"file://{self._path}"

    def load(self, names: Iterable[str]) -> tuple[int, Mapping[str, Entry]]:
        """The store's time, and the entries there are."""
        with self._book() as book:
            now = self.now()
            found = {name: _entry(book["entries"][name]) for name in names if name in book["entries"]}
        return now, {name: entry for name, entry in found.items() if not rules.expired(entry, now)}

    def swap(self, old: Entry, new: Entry, runs: Sequence[Run]) -> bool:
        """Put `new` in the place of `old` and the runs into the history, unless the entry has changed."""
        with self._book() as book:
            stored = book["entries"].get(old.name)
            fresh = stored is None or rules.expired(_entry(stored), self.now())
            if (0 if fresh else stored["version"]) != old.version:
                return False
            book["entries"][old.name] = asdict(new)
            for run in runs:
                _record(book["runs"].setdefault(run.name, []), run)
            self._write(book)
            return True

    def names(self, prefix: str = "") -> list[str]:
        """The names that begin with the prefix, sorted."""
        with self._book() as book:
            now = self.now()
            live = [
                name for name, stored in book["entries"].items() if not rules.expired(_entry(stored), now)
            ]
        return sorted(name for name in live if name.startswith(prefix))

    def history(self, name: str, limit: int = 100) -> list[Run]:
        """The latest runs of a name, newest first."""
        with self._book() as book:
            runs = [_run(stored) for stored in book["runs"].get(name, [])]
        return sorted(runs, key=lambda run: (run.tick, run.fence), reverse=True)[:limit]

    def runs(self, names: Sequence[str], since: int) -> list[Run]:
        """The runs of these names for ticks from an instant on."""
        with self._book() as book:
            runs = [_run(stored) for name in names for stored in book["runs"].get(name, [])]
        return [run for run in runs if run.tick >= since]

    def post(self, board: str, key: str, text: str, life: int) -> int:
        """Put a note on a board for `life` ms; says the time."""
        with self._book() as book:
            now = self.now()
            book["notes"].setdefault(board, {})[key] = [text, now + life]
            self._write(book)
        return now

    def notes(self, board: str) -> list[Note]:
        """The notes of a board that are still good, by key."""
        with self._book() as book:
            found = book["notes"].get(board, {})
        now = self.now()
        return [Note(key, *found[key]) for key in sorted(found) if found[key][1] > now]

    def strike(self, board: str, key: str) -> bool:
        """Take a note down; True for the one caller who did it."""
        with self._book() as book:
            found = book["notes"].get(board, {}).pop(key, None)
            self._write(book)
        return found is not None and found[1] > self.now()

    def now(self) -> int:
        """The store's clock: all processes of one machine agree on it."""
        return time.time_ns() // 1_000_000

    def within(self, limit: float) -> FileStore:  # noqa: ARG002 - a local file answers at once
        """Itself: there are no connections."""
        return self

    def migrate(self) -> str:
        """Nothing to do."""
        return f"{self.address} has no schema"

    def forget_connections(self) -> None:
        """Nothing is inherited: every step opens the file anew."""

    def close(self) -> None:
        """Nothing to close."""

    def forget(self, name: str) -> None:
        """Lose a name, as a store does that was restored from a backup; for tests."""
        with self._book() as book:
            book["entries"].pop(name, None)
            book["runs"].pop(name, None)
            self._write(book)

    def rewrite(self, name: str, change: Callable[[Entry], Entry]) -> None:
        """Change what is kept of a name, past all rules; for tests."""
        with self._book() as book:
            if name in book["entries"]:
                book["entries"][name] = asdict(change(_entry(book["entries"][name])))
                self._write(book)

    @contextmanager
    def _book(self) -> Iterator[dict[str, Any]]:
        """All that is kept, for one process at a time; whatever fails here is an outage, not a lost race."""
        try:
            with self._path.with_suffix(".lock").open("w") as guard:
                fcntl.flock(guard, fcntl.LOCK_EX)
                text = self._path.read_text("utf-8") if self._path.exists() else ""
                yield json.loads(text) if text else {"entries": {}, "runs": {}, "notes": {}}
        except OSError as error:
            raise StoreUnreachable(f"{self.address} cannot be used: {error.strerror}") from error

    def _write(self, book: dict[str, Any]) -> None:
        """Replace the file in one step: a process that dies half-way leaves the old one."""
        draft = self._path.with_suffix(".draft")
        draft.write_text(json.dumps(book), "utf-8")
        os.replace(draft, self._path)  # noqa: PTH105 - the atomic one by name


def _entry(stored: dict[str, Any]) -> Entry:
    return Entry(**{**stored, "withdrawn": tuple((token, until) for token, until in stored["withdrawn"])})


def _run(stored: dict[str, Any]) -> Run:
    return Run(**{**stored, "outcome": Outcome(stored["outcome"])})


def _record(runs: list[dict[str, Any]], run: Run) -> None:
    """Write a line once; only a `crashed`, which was a guess, gives way to `lost`."""
    for i, line in enumerate(runs):
        if (line["tick"], line["fence"]) == (run.tick, run.fence):
            if line["outcome"] == Outcome.CRASHED and run.outcome is Outcome.LOST:
                runs[i] = asdict(run)
            return
    runs.append(asdict(run))
    runs.sort(key=lambda line: (line["tick"], line["fence"]))
    del runs[:-RUNS_KEPT]
