"""A page with marked blocks that scripts rewrite, and the table of gates and aims that stands first on it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

PAGE = Path(__file__).resolve().parents[1] / "docs" / "performance.md"
_END = "<!-- to here -->"
_GATES = "bench writes gates"


@dataclass(frozen=True)
class Gate:
    """Something that was asked for, and what was measured."""

    name: str
    asked: str
    measured: str
    met: bool

    @property
    def row(self) -> str:
        """Its line of the table."""
        return f"| {self.name} | {self.asked} | {self.measured} | {'met' if self.met else '**missed**'} |"


def put(page: Path, block: str, text: str) -> None:
    """Put the text into that block of the page; all else stays as it is."""
    before, _, after = _parted(page, block)
    page.write_text(f"{before}\n\n{text.strip()}\n\n{after}", "utf-8")


def put_gates(page: Path, gates: Iterable[Gate]) -> None:
    """Renew the rows of these gates, in their places; new ones are added below."""
    _, table, _ = _parted(page, _GATES)
    rows = {_name(line): line for line in table.strip().splitlines()}
    rows |= {gate.name: gate.row for gate in gates}
    put(page, _GATES, "\n".join(rows.values()))


def _parted(page: Path, block: str) -> tuple[str, str, str]:
    begin = f"<!-- {block} from here -->"
    before, found, rest = page.read_text("utf-8").partition(begin)
    inside, ended, after = rest.partition(_END)
    if not (found and ended):
        raise SystemExit(f"{page.name} lacks the lines {begin!r} and {_END!r}: nothing was written")
    return before + begin, inside, _END + after


def _name(row: str) -> str:
    """What a row is about; the two lines of the table's head have names as well."""
    return re.split(r"\s*\|\s*", row)[1]
