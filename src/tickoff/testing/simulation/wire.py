"""The network between a simulated process and its store: it delays, drops, repeats, and cuts off."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from greenlet import GreenletExit

from ...errors import StoreUnreachable
from ...lending import Loan
from ...model import Answer, Bid, Ending, Hold, Note, Run
from ...stores.base import IO_LIMIT, LeaseStore
from .hub import Hub

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """How often what goes wrong; shares of all calls, unless said otherwise."""

    lost_request: float = 0.01
    lost_reply: float = 0.01
    repeated: float = 0.005
    slow: float = 0.02
    """Calls that take up to `slowness` seconds, past the time limit too."""
    slowness: float = 25.0
    killed: float = 0.003
    """Processes killed at a call, before it or after it."""
    stopped: float = 0.003
    """Processes stopped (SIGSTOP) at a call, for up to `stop` seconds."""
    stop: float = 12.0
    cut_off: float = 0.002
    """Processes cut off from the store at a call, for up to `cut` seconds."""
    cut: float = 10.0
    skew: float = 5.0
    """Seconds by which the clocks of the processes are wrong, at most."""
    drift: float = 0.0005
    """By which their clocks go too fast or too slowly, at most."""
    clock_steps: float = 0.001
    """Calls at which the wall clock of the process is set, by up to `skew`."""
    steered: float = 0.001
    """Calls at which an operator pauses a name, resumes it, or takes it from its holder."""
    store_steps: float = 0.0005
    """Calls at which the clock of the store is set, by up to `store_skew` seconds."""
    store_skew: float = 2.0
    amnesia: float = 0.0
    """Calls at which the store loses all it has, as a Redis without persistence does."""


NO_FAULTS = Faults(
    lost_request=0,
    lost_reply=0,
    repeated=0,
    slow=0,
    killed=0,
    stopped=0,
    cut_off=0,
    clock_steps=0,
    drift=0,
    skew=0,
    steered=0,
    store_steps=0,
)


class Weather:
    """The faults that happen now; they can be switched off."""

    def __init__(self, hub: Hub, faults: Faults) -> None:
        self.hub = hub
        self.faults = faults
        self.lose_everything: Callable[[], None] = _nothing
        self.revive: Callable[[], None] = _nothing
        self.steer: Callable[[], None] = _nothing
        self.go_on: Callable[[], None] = _nothing
        self.store_skew = 0.0
        """Seconds by which the store's clock is wrong."""
        self._cut: dict[str, float] = {}

    def calm(self) -> None:
        """No more faults from now on."""
        self.faults, self.store_skew = NO_FAULTS, 0.0
        self._cut = {}
        self.go_on()

    def strikes(self, share: float) -> bool:
        """Whether a fault of this share happens."""
        return share > 0 and self.hub.random.random() < share

    def befall(self) -> None:
        """What may happen to a process wherever it calls its store."""
        hub, process = self.hub, self.hub.current
        if process is None:
            return
        if self.strikes(self.faults.killed):
            self.revive()
            hub.die()
        if self.strikes(self.faults.stopped):
            process.stopped_until = hub.now + hub.random.uniform(0, self.faults.stop)
            hub.tell(f"stopped for {process.stopped_until - hub.now:.1f} s")
            hub.sleep(0)
        if self.strikes(self.faults.cut_off):
            self._cut[process.name] = hub.now + hub.random.uniform(0, self.faults.cut)
            hub.tell("cut off")
        if self.strikes(self.faults.clock_steps):
            process.skew = hub.random.uniform(-self.faults.skew, self.faults.skew)
            hub.tell(f"its clock is set, now {process.skew:+.1f} s wrong")
        self._befall_store()

    def _befall_store(self) -> None:
        hub = self.hub
        if self.strikes(self.faults.steered):
            self.steer()
        if self.strikes(self.faults.store_steps):
            self.store_skew = hub.random.uniform(-self.faults.store_skew, self.faults.store_skew)
            hub.tell(f"the store's clock is set, now {self.store_skew:+.1f} s wrong")
        if self.strikes(self.faults.amnesia):
            hub.tell("the store loses everything")
            self.lose_everything()

    def cut_off(self, name: str) -> bool:
        """Whether a process has no way to the store."""
        return self._cut.get(name, 0.0) > self.hub.now


class Wire:
    """A store as a simulated process sees it: every call is a request and a reply that may get lost."""

    def __init__(self, store: LeaseStore, weather: Weather, limit: float = IO_LIMIT) -> None:
        self._store = store
        self._weather = weather
        self._hub = weather.hub
        self._limit = limit
        self.calls = 0
        self.unclear: set[str] = set()
        """Tokens that raced, and of whose answer nothing was made so far: not heard, nor asked after."""

    @property
    def address(self) -> str:
        """Where the store is."""
        return "simulated://"

    def race(self, bids: Sequence[Bid]) -> list[Answer]:
        """Decide each bid."""
        return self._race(bids, lambda: self._store.race(bids))

    def take(self, bids: Sequence[Bid], limit: int) -> list[Answer | None]:
        """Race until `limit` are won."""
        return self._race(bids, lambda: self._store.take(bids, limit))

    def renew(self, holds: Sequence[Hold]) -> list[Answer]:
        """Prolong leases."""
        return self._call(f"renew {len(holds)}", lambda: self._store.renew(holds))

    def settle(self, endings: Sequence[Ending]) -> list[Answer]:
        """Settle ticks."""
        said = ", ".join(f"{e.hold.name} {e.outcome}" for e in endings)
        return self._call(f"settle {said}", lambda: self._store.settle(endings))

    def release(self, name: str, token: str) -> bool:
        """Let go."""
        return self._call(f"release {name}", lambda: self._store.release(name, token))

    def withdraw(self, name: str, token: str) -> bool:
        """Take a race back."""
        self.unclear.discard(token)
        return self._call(f"withdraw {name}", lambda: self._store.withdraw(name, token))

    def evict(self, name: str, by: str, why: str) -> Answer:
        """Take the name from its holder."""
        return self._call(f"evict {name}", lambda: self._store.evict(name, by, why))

    def steer(self, name: str, by: str, why: str | None) -> Answer:
        """Pause or resume."""
        return self._call(f"steer {name}", lambda: self._store.steer(name, by, why))

    def read(self, names: Sequence[str]) -> list[Answer]:
        """Read entries."""
        return self._call("", lambda: self._store.read(names))

    def names(self, prefix: str = "") -> list[str]:
        """List names."""
        return self._call("", lambda: self._store.names(prefix))

    def history(self, name: str, limit: int = 100) -> list[Run]:
        """List runs."""
        return self._call("", lambda: self._store.history(name, limit))

    def runs(self, names: Sequence[str], since: int) -> list[Run]:
        """List the runs of several names."""
        return self._call("", lambda: self._store.runs(names, since))

    def post(self, board: str, key: str, text: str, life: int) -> int:
        """Put a note on a board."""
        return self._call("", lambda: self._store.post(board, key, text, life))

    def notes(self, board: str) -> list[Note]:
        """Read a board."""
        return self._call("", lambda: self._store.notes(board))

    def strike(self, board: str, key: str) -> bool:
        """Take a note down."""
        return self._call(f"strike {key}", lambda: self._store.strike(board, key))

    def lend(self, name: str, window: int, limit: int, wanted: int) -> Loan:
        """Lend calls of a rate."""
        return self._call("", lambda: self._store.lend(name, window, limit, wanted))

    def now(self) -> int:
        """The store's clock."""
        return self._call("", self._store.now)

    def within(self, limit: float) -> Wire:
        """The same with a shorter time limit."""
        lane = Wire(self._store, self._weather, limit)
        lane.unclear = self.unclear
        return lane

    def migrate(self) -> str:
        """Nothing to do."""
        return self._store.migrate()

    def forget_connections(self) -> None:
        """Simulated processes do not fork."""

    def close(self) -> None:
        """Nothing to close."""

    def _race(self, bids: Sequence[Bid], apply: Callable[[], list[T]]) -> list[T]:
        tokens = {bid.token for bid in bids}
        self.unclear |= tokens
        answers = self._call(f"race {_ticks(bids)}", apply)
        self.unclear -= tokens
        return answers

    def _call(self, what: str, apply: Callable[[], T]) -> T:
        hub, weather, process = self._hub, self._weather, self._hub.current
        if process is None or not process.alive:
            raise GreenletExit  # only what the end of the simulation left over still gets here
        self.calls += 1
        weather.befall()
        call = _Call(self._hub, process.name, what, apply)
        there, back = self._trip(), self._trip()
        lost = weather.cut_off(process.name) or weather.strikes(weather.faults.lost_request)
        deaf = lost or weather.strikes(weather.faults.lost_reply)
        if not lost:
            hub.at(hub.now + there, None, call.arrive)
            if weather.strikes(weather.faults.repeated):
                hub.at(hub.now + there + self._trip() * 100, None, call.arrive)
        answered = not deaf and there + back < self._limit
        hub.sleep(there + back if answered else self._limit)
        weather.befall()
        if not answered or not call.arrived:
            hub.tell(f"no answer to: {what or 'a question'}")
            raise StoreUnreachable("simulated:// did not answer")
        result: T = call.result()
        return result

    def _trip(self) -> float:
        """Seconds one way."""
        faults, chance = self._weather.faults, self._hub.random
        if self._weather.strikes(faults.slow):
            return chance.uniform(0, faults.slowness)
        return chance.uniform(0.0002, 0.002)


class _Call:
    """A request on its way, and what became of it."""

    def __init__(self, hub: Hub, sender: str, what: str, apply: Callable[[], Any]) -> None:
        self._hub = hub
        self._sender = sender
        self._what = what
        self._apply = apply
        self.arrived = False
        self._value: Any = None

    def arrive(self) -> None:
        """The store does it; a repeated request changes nothing of the first answer."""
        value = self._apply()
        if not self.arrived:
            self._value = value
        self.arrived = True
        if self._what:
            self._hub.tell(f"from {self._sender}: {self._what} -> {_short(value)}")

    def result(self) -> Any:
        """The first answer."""
        return self._value


def _ticks(bids: Sequence[Bid]) -> str:
    return ", ".join(f"{bid.name}@{bid.tick // 1000 % 100_000}" for bid in bids)


def _short(value: Any) -> str:
    if not isinstance(value, list):
        return str(value)
    answers = [("won" if one.ok else one.why or "no") if isinstance(one, Answer) else "-" for one in value]
    return ", ".join(map(str, answers))


def _nothing() -> None:
    """Nothing happens."""
