"""The verdict: what the log of the world outside and the database have, against what was promised."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .journal import Seen


@dataclass(frozen=True, slots=True)
class Import:
    """A line in the database: an import that was written."""

    job: str
    tick: int
    fence: int


@dataclass(frozen=True, slots=True)
class Contact:
    """A row in the database."""

    phone: str
    state: str
    number: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """All that was found. `missed` says what did not happen at all, if anything."""

    seen: Sequence[Seen]
    imports: Sequence[Import]
    contacts: Sequence[Contact] = ()
    rows: int
    period: int
    missed: str = ""

    @property
    def naive(self) -> int:
        """The most emails that went out in the time of one tick when nobody asked."""
        return max(Counter(seen.at // self.period for seen in self._of("naive")).values(), default=0)

    @property
    def ticks(self) -> int:
        """The ticks that were due: every one from the first newsletter to the last, and two imports."""
        sent = [seen.tick for seen in self._of("email")]
        newsletters = (max(sent) - min(sent)) // self.period + 1 if sent else 0
        return newsletters + len({(seen.job, seen.tick) for seen in self._of("begun")})

    @property
    def runs(self) -> int:
        """The runs that came to their end: emails sent, and imports written."""
        return len(self._of("email")) + len(self.imports)

    @property
    def duplicates(self) -> int:
        """Runs beyond the first of their tick."""
        done = Counter(("newsletter", seen.tick) for seen in self._of("email"))
        done.update((line.job, line.tick) for line in self.imports)
        return sum(count - 1 for count in done.values())

    @property
    def refused(self) -> int:
        """Late writes that were refused by the fence of somebody newer."""
        return len(self._of("refused"))

    @property
    def states(self) -> Mapping[str, int]:
        """The rows by their state."""
        return Counter(contact.state for contact in self.contacts)

    @property
    def wrong(self) -> int:
        """Rows that do not have what the API answered."""
        answers = {seen.phone: seen.number for seen in self._of("call") if seen.status == 200}
        return sum(not _right(contact, answers.get(contact.phone)) for contact in self.contacts)

    @property
    def calls(self) -> int:
        """Calls of the API, all of them."""
        return len(self._of("call"))

    @property
    def put_off(self) -> int:
        """Calls it did not want to answer yet."""
        return sum(seen.status == 503 for seen in self._of("call"))

    @property
    def repeated(self) -> int:
        """Answers that were asked for again, because whoever had them died before they were written."""
        answered = Counter(seen.phone for seen in self._of("call") if seen.status != 503)
        return sum(count - 1 for count in answered.values())

    @property
    def faults(self) -> list[str]:
        """What is wrong; nothing, if all held."""
        decided = self.states.get("DONE", 0) + self.states.get("FAILED", 0)
        found = {
            self.missed: bool(self.missed),
            f"{self.duplicates} runs too many": self.duplicates > 0,
            f"{self.runs} runs for {self.ticks} ticks": self.runs != self.ticks,
            "no late write was refused": not self.missed and self.refused == 0,
            f"{decided} of {self.rows} rows decided": not self.missed and decided != self.rows,
            f"{self.wrong} rows with a wrong answer": self.wrong > 0,
        }
        return [fault for fault, there in found.items() if there]

    @property
    def held(self) -> bool:
        """Whether every promise was kept."""
        return not self.faults

    def _of(self, what: str) -> list[Seen]:
        return [seen for seen in self.seen if seen.what == what]


def _right(contact: Contact, answer: str | None) -> bool:
    """DONE with the API's answer; or anything else, without one."""
    return contact.number == (answer if contact.state == "DONE" else None) and (
        contact.state != "DONE" or answer is not None
    )
