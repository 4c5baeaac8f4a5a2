"""`tickoff lock`: a fleet-wide flock."""

from __future__ import annotations

import os

import click

from ..durations import timeout_seconds, ttl_ms, wait_seconds
from ..leases.lease import Lease
from ..leases.lock import Lock
from ..leases.referee import Referee
from ..model import Skipped
from ..names import check_namespace, full_name
from .child import Child
from .exits import WRAPPER_FAILED, say
from .interrupts import ending_tidily, held_back
from .supervise import supervise
from .wrapping import STATUSES, Wrapper, refereed, wrapping


@click.command(
    cls=Wrapper, short_help="Run a command while holding a lock of the whole fleet.", epilog=STATUSES
)
@wrapping
@click.option("-w", "--wait", metavar="D", help="Queue for the lock this long; without it, skip at once.")
def lock(
    name: str,
    command: tuple[str, ...],
    url: str | None,
    namespace: str | None,
    ttl: str,
    wait: str | None,
    timeout: str | None,
    skipped_status: int,
) -> int:
    """Run COMMAND while this server holds the lock NAME, and on no other server meanwhile.

    \b
    Example:
      tickoff lock nightly-import -w 10m --url redis://localhost:6379/0 -- ./import.sh --all

    The command sees TICKOFF_JOB and TICKOFF_FENCE, a number greater than that of any holder before.
    It gets the signals that we get, and TERM, then KILL, before a lost lock can be given to another server.
    """  # noqa: D301 - the escape is click's
    full, limit = full_name(check_namespace(namespace), name), timeout_seconds(timeout, "--timeout")
    length, patience = ttl_ms(ttl, "--ttl"), wait_seconds(wait, "--wait")
    with ending_tidily(), Child(command) as child, refereed(url) as referee:
        verdict = Lock(lambda: referee, full, length, patience).acquire()
        if isinstance(verdict, Skipped):
            return skipped_status
        return _run(referee, child, verdict, name, limit)


def _run(referee: Referee, child: Child, lease: Lease, name: str, timeout: float | None) -> int:
    try:
        variables = {"TICKOFF_JOB": name, "TICKOFF_FENCE": str(lease.fence)}
        status = supervise(child, lease, variables, timeout).status
    finally:
        with held_back():
            referee.leave(lease)
    if status == os.EX_OK and lease.lost:
        say(f"the lock was lost before the command ended: {lease.why_lost}")
        return WRAPPER_FAILED
    return status
