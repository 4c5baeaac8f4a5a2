"""PostgreSQL: the common cases of race, renew and release in one autocommit statement each.

Each statement does what `rules` would do, for the plain case only: a free name that was never withdrawn,
paused or forgotten, a lease that is still ours. All else falls through to load and swap.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import resources
from typing import Any, cast

import psycopg
import sqlalchemy as sa

from .... import rules
from ....errors import StoreUnreachable
from ....model import Answer, Bid, Ending, Hold, Outcome, won_entry
from ...base import IO_LIMIT
from ...idle import Idle
from ...wire import bid_values, ending_values
from ..bounded import notice_pooler, suit_pooler
from ..engines import EngineSource
from ..store import SqlStore, entry_of, in_one_line, prunes


def _statement(name: str) -> str:
    return resources.files(__package__).joinpath(f"{name}.sql").read_text("utf-8")


_LOCK = _statement("lock")
_RACE_ONE = _statement("race_one").replace("-- TAKE\n", _statement("take"))
_RACE_MANY = _statement("race_many").replace("-- TAKE\n", _statement("take"))
_RENEW = _statement("renew")
_RELEASE = _statement("release")
_SETTLE = _statement("settle")

_TOGETHER = 500
"""So many ticks are settled by one statement: their rows are locked meanwhile."""


class PostgresStore(SqlStore):
    """The SQL store with the shortcuts PostgreSQL allows."""

    def __init__(self, source: EngineSource, limit: float = IO_LIMIT) -> None:
        super().__init__(source, limit)
        self._idle = Idle(self._open, psycopg.Connection.close)

    def race(self, bids: Sequence[Bid]) -> list[Answer]:
        """Win, or learn why not, in one statement; what is not plain goes the long way."""
        if len(bids) == 1 and bids[0].plain and bids[0].known.fence:
            decided: Sequence[Answer | None] = self._lock(bids[0]) or super().take(bids, 1)
        else:
            decided = self.take(bids, len(bids))
        return [answer for answer in decided if answer is not None]

    def take(self, bids: Sequence[Bid], limit: int) -> list[Answer | None]:
        """The same until `limit` are won; what is not plain goes the long way, as far as the limit allows."""
        distinct = len({bid.name for bid in bids}) == len(bids)
        found = self._race(bids, limit) if distinct and limit > 0 else {}
        verdicts = [_verdict(found.get(bid.name), bid) for bid in bids]
        wins = sum(verdict is not None and verdict.ok for verdict in verdicts)
        left = [i for i, verdict in enumerate(verdicts) if verdict is None]
        if left and wins < limit:
            others = super().take([bids[i] for i in left], limit - wins)
            for i, answer in zip(left, others, strict=True):
                verdicts[i] = answer
        return verdicts

    def renew(self, holds: Sequence[Hold]) -> list[Answer]:
        """Prolong in one statement what is still ours; the rest goes the long way."""
        wanted = [{"name": hold.name, "token": hold.token, "ttl": hold.ttl} for hold in holds]
        rows = self._run(_RENEW, {"holds": json.dumps(wanted)}).fetchall()
        answers = [Answer(True, entry_of(json.loads(entry)), now) for now, entry in rows]
        renewed = {answer.entry.token: answer for answer in answers}
        left = [hold for hold in holds if hold.token not in renewed]
        others = iter(super().renew(left) if left else [])
        return [renewed.get(hold.token) or next(others) for hold in holds]

    def settle(self, endings: Sequence[Ending]) -> list[Answer]:
        """Finish what ended well in statements of many; the rest goes the long way."""
        plain = [ending_values(ending) for ending in endings if _ended_plainly(ending)]
        settled: dict[str, Answer] = {}
        for i in range(0, len(plain), _TOGETHER):
            rows = self._run(_SETTLE, {"endings": json.dumps(plain[i : i + _TOGETHER])}).fetchall()
            answers = [Answer(True, entry_of(json.loads(entry)), now) for now, entry in rows]
            settled |= {answer.entry.let_go: answer for answer in answers}
        left = [ending for ending in endings if ending.hold.token not in settled]
        others = iter(super().settle(left) if left else [])
        return [settled.get(ending.hold.token) or next(others) for ending in endings]

    def release(self, name: str, token: str) -> bool:
        """Let go of a plain lock in one statement; a tick, or a lease that is not ours, goes the long way."""
        freed = self._run(_RELEASE, {"name": name, "token": token})
        return freed.rowcount == 1 or super().release(name, token)

    def saw(self, error: BaseException) -> None:
        """Notice a pooler behind which prepared statements do not work."""
        super().saw(error)
        notice_pooler(self.address, error)

    def forget_connections(self) -> None:
        """Leave the parent's connections to the parent and open new ones."""
        self._idle.abandon()
        super().forget_connections()

    def close(self) -> None:
        """Close the connections."""
        self._idle.close()
        super().close()

    def _lock(self, bid: Bid) -> list[Answer]:
        """Win a lock that this server has had before; no answer where that is not plain to see."""
        self.purge_sometimes()
        wanted = {
            "name": bid.name,
            "token": bid.token,
            "owner": bid.owner,
            "ttl": bid.ttl,
            "fence": bid.known.fence,
        }
        return [_win(bid, *row) for row in self._run(_LOCK, wanted).fetchall()]

    def _race(self, bids: Sequence[Bid], limit: int) -> dict[str, Answer]:
        self.purge_sometimes()
        plain = [bid_values(bid) for bid in bids if _plain(bid)]
        if len(plain) == 1:  # the loser of a single race makes a second trip, for which the winner is quicker
            wins = self._run(_RACE_ONE, plain[0]).fetchall()
            return _answers(bids, [(None, taken, *told) for taken, *told in wins])
        if not plain:
            return {}
        rows = self._run(_RACE_MANY, {"bids": json.dumps(plain), "limit": limit}).fetchall()
        return _answers(bids, rows)

    def _run(self, statement: str, values: Mapping[str, Any]) -> psycopg.Cursor[Any]:
        """Run a statement on one of the engine's connections, kept out of its pool."""
        try:
            return self._idle.exchange(lambda connection: connection.execute(statement, values))
        except (psycopg.Error, sa.exc.SQLAlchemyError) as error:
            self.engine.dispose()  # what the pool still has was dropped as well
            self.saw(error)
            raise StoreUnreachable(f"{self.address} did not answer: {in_one_line(error)}") from error

    def _open(self) -> psycopg.Connection[Any]:
        self.ensure_schema()
        pooled = self.engine.raw_connection()
        connection = cast("psycopg.Connection[Any]", pooled.driver_connection)
        pooled.detach()
        suit_pooler(self.address, connection)
        return connection


def _plain(bid: Bid) -> bool:
    """Whether a statement may decide it: a lock, or a tick that starts afresh."""
    return not bid.manual and (not bid.tick or bid.tick > bid.known.decided)


def _ended_plainly(ending: Ending) -> bool:
    """Whether a statement may settle it; one in a few goes the long way, which prunes the history."""
    hold = ending.hold
    return ending.outcome is Outcome.OK and hold.tick > 0 and not hold.manual and not prunes(hold.fence)


def _answers(bids: Sequence[Bid], rows: Sequence[Sequence[Any]]) -> dict[str, Answer]:
    """What the statement said of each name: of a win only what the bid does not know."""
    by_name = {bid.name: bid for bid in bids}
    answers: dict[str, Answer] = {}
    for lost, now, name, *told in rows:
        if lost is None:
            answers[name] = _win(by_name[name], now, *told)
        else:
            answers[name] = Answer(False, entry_of(json.loads(lost)), now)
    return answers


def _win(bid: Bid, taken: int, *told: int) -> Answer:
    return Answer(True, won_entry(bid, taken, *told), taken)


def _verdict(answer: Answer | None, bid: Bid) -> Answer | None:
    """A win stands; a loss stands if the rules, too, would leave the row alone. Else the long way decides."""
    if answer is None or answer.ok:
        return answer
    step = rules.race(answer.entry, bid, answer.now)
    lost = not step.ok and step.entry == answer.entry and not step.runs
    return replace(answer, why=step.why) if lost else None
