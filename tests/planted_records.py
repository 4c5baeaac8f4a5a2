"""Bugs of the records to be planted on purpose, each with the tests that must notice; see `planted.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sqlalchemy as sa

from tickoff.tables import settling, sweeping, table
from tickoff.tables.ledger import Kind, ledger
from tickoff.tables.rows import Rows


class _Careless(Rows):
    """Takes every record in flight for its own, whoever has claimed it."""

    def ours(self, token: Any) -> sa.ColumnElement[bool]:
        """The token is asked for, but not for what it should be."""
        carried = self.shape.claim
        return super().ours(token) | ((self.shape.status == "IN_FLIGHT") & (carried != token))


def completion_without_token() -> None:
    """An answer is written whoever holds the record by now."""
    right = settling.Settling.__init__

    def wrong(self: settling.Settling, rows: Rows, database: Any) -> None:
        right(self, _Careless(rows.shape, rows.dialect), database)

    settling.Settling.__init__ = wrong  # type: ignore[method-assign]


def sweep_without_token() -> None:
    """A claim that ran out takes the records of others with it, which lie among its own."""
    right = sweeping.Sweeping.__init__

    def wrong(self: sweeping.Sweeping, rows: Rows, notes: Any) -> None:
        right(self, _Careless(rows.shape, rows.dialect), notes)

    sweeping.Sweeping.__init__ = wrong  # type: ignore[method-assign]


def claims_are_renewed_unasked() -> None:
    """Renewing one claim renews all there are, also those of the dead."""

    def wrong(
        self: table.SqlRecordTable, connection: Any, record: str, tokens: Any, ttl: float
    ) -> frozenset[str]:
        whole = (ledger.c.record == record) & (ledger.c.kind == Kind.CLAIM.value)
        connection.execute(sa.update(ledger).where(whole).values(until=self._database.dialect.after(ttl)))
        return frozenset(tokens)

    table.SqlRecordTable._renew = wrong  # type: ignore[method-assign]


def done_is_not_final() -> None:
    """Whoever still has the token may write again, also over DONE."""
    Rows.ours = lambda self, token: self.shape.claim == token  # type: ignore[method-assign]


_CLAIMS = "tests/tables/test_claims.py"
_SWEEPS = "tests/tables/test_sweeps.py"
_CRASHES = "tests/records/test_crashes.py"

RECORD_BUGS: dict[str, tuple[Callable[[], None], tuple[tuple[str, ...], ...]]] = {
    "completion_without_token": (
        completion_without_token,
        ((_CLAIMS, "-k", "zombie"), (_CRASHES, "-k", "stopped_while")),
    ),
    "sweep_without_token": (sweep_without_token, ((_SWEEPS, "-k", "among"),)),
    "claims_are_renewed_unasked": (claims_are_renewed_unasked, ((_CLAIMS, "-k", "renewed"),)),
    "done_is_not_final": (done_is_not_final, ((_CLAIMS, "-k", "final"),)),
}
"""How to plant each, and what to give pytest: each of these runs must fail."""
