"""What an actor process runs: commands as JSON lines on stdin, answers as JSON lines on stdout."""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import Any

from tickoff import Lease, LeaseLost, Skipped, StoreUnreachable, Tickoff
from tickoff.model import Bid, Ending, Outcome
from tickoff.names import new_token

from .planted import apply_from_environment


class Acting:
    """One Tickoff, and the lease won last."""

    def __init__(self, url: str) -> None:
        self.jobs = Tickoff(url)
        self.lease: Lease | None = None

    def race(self, name: str, ttl: float) -> dict[str, Any]:
        """Race once."""
        verdict = self.jobs.race(name, ttl=ttl)
        if isinstance(verdict, Skipped):
            return {"won": False, "why": verdict.why, "by": verdict.by}
        self.lease = verdict
        return {"won": True, "fence": verdict.fence, "token": verdict.token, "owner": verdict.owner}

    def race_tick_of_now(self, name: str) -> dict[str, Any]:
        """Race for the tick that is due by this process's clock."""
        bid = Bid(name=name, token=new_token(), owner="actor", ttl=60_000, tick=int(time.time() * 1000))
        answer = self.jobs.store.race([bid])[0]
        return {"won": answer.ok, "why": answer.why}

    def release(self) -> bool:
        """Let go."""
        return self._lease.release()

    def renew(self) -> str:
        """Ask the store itself for a renewal, past the local deadline."""
        return "renewed" if self.jobs.store.renew([self._lease.hold()])[0].ok else "refused"

    def settle(self) -> str:
        """Settle with the store itself."""
        ending = Ending(hold=self._lease.hold(), outcome=Outcome.OK)
        return "settled" if self.jobs.store.settle([ending])[0].ok else "refused"

    def store_release(self) -> bool:
        """Release with the store itself, whatever the lease thinks."""
        return self.jobs.store.release(self._lease.name, self._lease.token)

    def lost(self) -> bool:
        """Whether the lease says that it is lost."""
        return self._lease.lost

    def check(self) -> str:
        """What the lease's check says."""
        try:
            self._lease.check()
        except LeaseLost as error:
            return error.why
        return "good"

    def sleep(self, seconds: float) -> str:
        """Be busy for a while."""
        time.sleep(seconds)
        return "slept"

    @property
    def _lease(self) -> Lease:
        assert self.lease is not None
        return self.lease


def skew_clock(seconds: float) -> None:
    """Make this process's wall clock wrong."""
    right, right_ns = time.time, time.time_ns
    time.time = lambda: right() + seconds
    time.time_ns = lambda: right_ns() + int(seconds * 1e9)


def main() -> None:
    """Act until stdin ends."""
    logging.basicConfig(level=logging.ERROR)
    apply_from_environment()
    skew_clock(float(sys.argv[2]))
    acting = Acting(sys.argv[1])
    for line in sys.stdin:
        verb, arguments = json.loads(line)
        try:
            answer = getattr(acting, verb)(**arguments)
        except StoreUnreachable as error:
            answer = {"unreachable": str(error)}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
