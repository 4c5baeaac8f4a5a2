"""Bugs to be planted on purpose: each must make a test fail, or the tests prove nothing.

`TICKOFF_PLANT=name pytest …` runs the tests with the bug in place; `test_planted_bugs.py` does so for each.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha1
from typing import Any

from tickoff import rules
from tickoff.ground.clocks import elapsed
from tickoff.leases.referee import Referee, Reply
from tickoff.model import Bid, Entry
from tickoff.stores.redis import scripts
from tickoff.stores.sql import store as sql_store
from tickoff.testing.simulation.wire import Wire

from .planted_records import RECORD_BUGS
from .planted_ticks import TICK_BUGS


@dataclass(frozen=True)
class Plant:
    """How to plant a bug, and the tests that must notice."""

    apply: Callable[[], None]
    runs: tuple[tuple[str, ...], ...]
    """What to give pytest: each of these runs must fail."""


def apply_from_environment() -> None:
    """Plant the bug the environment names, if any."""
    name = os.environ.get("TICKOFF_PLANT")
    if name:
        PLANTS[name].apply()


def _in_lua(old: str, new: str) -> None:
    """Change the text of every script that has it."""
    known = [value for value in vars(scripts).values() if isinstance(value, scripts.Script)]
    changed = [script for script in known if old in script.text]
    assert changed, f"no script has {old!r}"
    for script in changed:
        script.text = script.text.replace(old, new)
        script.digest = sha1(script.text.encode(), usedforsecurity=False).hexdigest()


def _in_rules(name: str, wrong: Any) -> None:
    assert hasattr(rules, name)
    setattr(rules, name, wrong)


def blind_delete() -> None:
    """Release frees the name whoever holds it."""
    _in_lua("if not ours(e, token) then return was_let_go(token) end", "")
    _in_lua("holder == ARGV[1] and meta", "meta")
    _in_rules("release", lambda entry, _token, now: rules.Step(rules._let_go(entry, now), ok=True))


def no_token_on_renew() -> None:
    """Renewal prolongs whatever lease there is."""
    _in_lua(
        "local ok = ours(e, hold.token)\nif ok then\n    redis.call('PEXPIRE'",
        "local ok = live\nif ok then\n    redis.call('PEXPIRE'",
    )
    _in_rules(
        "renew",
        lambda entry, hold, now: rules.Step(replace(entry, until=now + hold.ttl), ok=entry.live(now)),
    )


def client_clock() -> None:
    """The database's time is ignored for that of the client."""
    right = sql_store.SqlStore.load

    def wrong(self: sql_store.SqlStore, names: Any) -> Any:
        return time.time_ns() // 1_000_000, right(self, names)[1]

    sql_store.SqlStore.load = wrong  # type: ignore[method-assign]
    _simulated_client_clock()


def _simulated_client_clock() -> None:
    """The simulated store reads the clock of whoever asks."""
    right = Wire._call

    def wrong(self: Wire, what: str, apply: Callable[[], Any]) -> Any:
        sender, store = self._hub.current, self._store
        skew = int(sender.skew * 1000) if sender else 0

        def by_its_clock() -> Any:
            true = store._clock
            store._clock = lambda: true() + skew
            try:
                return apply()
            finally:
                store._clock = true

        return right(self, what, by_its_clock)

    Wire._call = wrong


def no_tombstone() -> None:
    """A withdrawn race is released and forgotten."""
    _in_lua("redis.call('SET', TOMB, '', 'PX', ARGV[2])", "")
    _in_rules("withdraw", rules.release)


def no_fence() -> None:
    """Fences do not grow."""
    _in_lua(
        "put(e, 'fence', math.max(e.fence + 1, now))",
        "put(e, 'fence', 1)",
    )
    _in_lua("math.max((e.fence or 0) + 1, now)", "1")
    right = rules._grant
    _in_rules("_grant", lambda entry, bid, now: replace(right(entry, bid, now), fence=1))


def no_watermark() -> None:
    """A finished tick may be started again."""
    _in_lua("(tick < e.decided or tick <= e.finished)", "false")
    _in_lua("bid.tick or 0, e.decided or 0, e.finished or 0", "bid.tick or 0, 0, 0")
    right = rules._refusal

    def wrong(entry: Entry, bid: Bid, now: int) -> Any:
        return right(replace(entry, decided=0, finished=0), bid, now)

    _in_rules("_refusal", wrong)


def short_way(old: str, new: str) -> Callable[[], None]:
    """The short way of ticks leaves out one of its conditions, and so does not leave the bid to `decide`."""
    return lambda: _in_lua(old, new)


_BLIND_SET = "redis.call('SET', lock, bid.token, 'PX', ttl)"

SHORT_WAYS = {
    "tombstone": ("if tombstone or e.paused", "if e.paused"),
    "pause": ("e.paused or e.barrier or bid.manual", "e.barrier or bid.manual"),
    "barrier": ("e.paused or e.barrier or bid.manual", "e.paused or bid.manual"),
    "manual": ("or bid.manual == 1 or tick == 0", "or tick == 0"),
    "future": ("tick == 0 or tick > now then", "tick == 0 then"),
    "memory": ("if not knows(e, bid) then return end", ""),
    "held": ("if not redis.call('SET', lock, bid.token, 'PX', ttl, 'NX') then return end", _BLIND_SET),
    "crash": ("not e.token and finished < tick", "finished < tick"),
    "foreign": ("holder and (holder ~= e.token or holder == bid.token)", "holder and holder == bid.token"),
    "own": ("holder and (holder ~= e.token or holder == bid.token)", "holder and holder ~= e.token"),
    "limit": ("if won then left = left - 1 end", ""),
    "purse": ("PURSE and redis.call('GET', PURSE) or ARGV[1]", "ARGV[1]"),
    "settled token": ("holder ~= ending.token or not stored", "not stored"),
    "settled failure": ("ending.outcome == 'ok' and (ending", "(ending"),
    "settled later": ("and e.decided == ending.tick and", "and"),
    "settled manual": ("or e.manual == 1 or redis", "or redis"),
}
"""What the short ways in Lua must look at, and the same without it."""


def no_read_back() -> None:
    """A race whose answer was lost counts as lost: not raced again with its token, and not withdrawn."""

    def wrong(self: Referee, bid: Bid) -> Reply:
        return Reply(self.store.race([bid])[0], 0.0)

    def wrong_for_ticks(self: Referee, bids: Sequence[Bid], limit: int) -> list[Any]:
        sent = elapsed()
        answers = self.store.take(bids, limit)
        self.learn_time(answers, sent)
        return [
            self._kept(bid, answer, sent) if answer is not None and answer.ok else self._noted(answer)
            for bid, answer in zip(bids, answers, strict=True)
        ]

    Referee.send = wrong  # type: ignore[method-assign]
    Referee.take = wrong_for_ticks  # type: ignore[method-assign]


def no_wait_after_amnesia() -> None:
    """Who remembers a forgotten holder wins at once."""
    _in_lua("math.floor(wait * 2 / 5)", "0")
    right = rules._recall
    _in_rules("_recall", lambda entry, known, now, wait: replace(right(entry, known, now, wait), barrier=0))


def no_assertion() -> None:
    """A holder does not put back what the store forgot."""
    _in_lua("if not forgotten or hold.held_until <= now then return end", "do return end")
    _in_rules("_asserted", lambda entry, _hold, _now: entry)


def blind_assertion() -> None:
    """A holder puts back also what was released on purpose."""
    right = rules._asserted
    _in_rules("_asserted", lambda entry, hold, now: right(replace(entry, fence=0), hold, now))
    _in_lua(
        "local forgotten = not live and (e.fence < hold.held_fence or waiting)", "local forgotten = not live"
    )


def no_deadline() -> None:
    """A win counts however late its answer."""
    right = Referee.conclude

    def wrong(self: Referee, bid: Bid, reply: Reply) -> Any:
        return right(self, bid, replace(reply, sent=float("inf")))

    Referee.conclude = wrong  # type: ignore[method-assign]


def no_skip_mark() -> None:
    """A tick that fell on a running one is not decided."""
    _in_lua("or not (overlap or why == 'paused') then return end", "or true then return end")
    _in_rules("_skip", lambda entry, _bid, _now, why: rules.Step(entry, ok=False, why=why))


def repeated_release_refused() -> None:
    """A release whose answer was lost looks like a lost lease."""
    _in_lua("return redis.call('GET', LET_GO) == token", "return false")
    _in_rules("_let_go", rules._freed)


_CONTRACT = tuple(("tests/stores/test_contract.py", "-k", kind) for kind in ("Memory", "Redis"))
_WIRE = ("tests/test_wire.py",)
_NETWORK = "tests/faults/test_network.py"
_SIMULATION = ("tests/test_simulation.py", "-k", "no_seed")

PLANTS: dict[str, Plant] = {
    "blind_delete": Plant(blind_delete, (*_CONTRACT, _SIMULATION)),
    "no_token_on_renew": Plant(no_token_on_renew, (*_CONTRACT, _SIMULATION)),
    "client_clock": Plant(
        client_clock, (("tests/faults/test_clocks.py", "-k", "mariadb or sqlite"), _SIMULATION)
    ),
    "no_tombstone": Plant(no_tombstone, _CONTRACT),
    "no_fence": Plant(no_fence, (*_CONTRACT, _SIMULATION)),
    "no_watermark": Plant(no_watermark, (*_CONTRACT, _SIMULATION)),
    "no_read_back": Plant(no_read_back, ((_NETWORK, "-k", "found_to_be_ours and redis"), _SIMULATION)),
    "no_wait_after_amnesia": Plant(no_wait_after_amnesia, _CONTRACT),
    "no_assertion": Plant(no_assertion, (("tests/faults/test_forgetful_store.py",),)),
    "blind_assertion": Plant(blind_assertion, _CONTRACT),
    "no_deadline": Plant(no_deadline, ((_NETWORK, "-k", "after_its_deadline and redis"),)),
    "no_skip_mark": Plant(no_skip_mark, _CONTRACT),
    "repeated_release_refused": Plant(repeated_release_refused, _CONTRACT),
}

PLANTS |= {
    f"no {name}": Plant(short_way(*texts), (_WIRE if name in ("held", "foreign") else _CONTRACT[1],))
    for name, texts in SHORT_WAYS.items()
}

PLANTS |= {name: Plant(apply, (run,)) for name, (apply, run) in TICK_BUGS.items()}
PLANTS |= {name: Plant(apply, runs) for name, (apply, runs) in RECORD_BUGS.items()}
