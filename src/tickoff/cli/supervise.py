"""Running a command under a lease: signals go to it, and it ends before anybody else can have the lease."""

from __future__ import annotations

import math
import signal
from dataclasses import dataclass

from ..ground.clocks import elapsed
from ..leases.lease import Lease
from ..model import Outcome
from ..work import End, exited, overran
from .child import Child
from .course import Cause, Course
from .exits import TIMED_OUT, WRAPPER_FAILED, say
from .terminal import STOPS, Terminal
from .wakes import Wakes

_LONGEST_WAIT = 1.0
"""Waits are cut here: one that was under way when the machine was suspended counts on."""

_STRAGGLERS_EVERY = 0.05


@dataclass(frozen=True, slots=True)
class Finish:
    """How a child came to its end: what the shell is told, and what the history is."""

    status: int
    end: End


def supervise(child: Child, lease: Lease, variables: dict[str, str], timeout: float | None) -> Finish:
    """Give the child the word, see it through, and say how it ended; raises `CannotRun`."""
    with Wakes() as wakes:
        lease.on_loss(wakes.wake)
        with Terminal(child.pid) as terminal:
            child.start(variables)
            course = Course(lease, elapsed() + timeout if timeout else math.inf)
            _see_through(child, course, wakes, terminal)
            _share_interrupt(child, terminal)
    return _finish(child, course, timeout)


def _see_through(child: Child, course: Course, wakes: Wakes, terminal: Terminal) -> None:
    while not _over(child, course):
        due = course.step(elapsed())
        if due is not None:
            _explain(course, due)
            child.send(due)
        for number in wakes.wait(_pause(child, course)):
            _forward(number, child, terminal)
        _heed_stop(child.look(), child, terminal)


def _heed_stop(number: int | None, child: Child, terminal: Terminal) -> None:
    """Ctrl-Z stops us, too; a child that asks for the terminal gets it if we have it, or waits with us."""
    if number in STOPS and terminal.there:
        if number == signal.SIGTSTP or not terminal.lend(asked=True):
            terminal.stop_with_it()
        _forward(signal.SIGCONT, child, terminal)


def _over(child: Child, course: Course) -> bool:
    """A child that ends by itself may leave others behind; one that is ended takes them along."""
    if child.code is None:
        return False
    return course.cause is None or course.killed or child.gone


def _pause(child: Child, course: Course) -> float:
    return min(course.due - elapsed(), _LONGEST_WAIT if child.code is None else _STRAGGLERS_EVERY)


def _forward(number: int, child: Child, terminal: Terminal) -> None:
    if number == signal.SIGCONT:
        terminal.lend()
    child.send(number)


def _share_interrupt(child: Child, terminal: Terminal) -> None:
    """Ctrl-C is for all that is in the foreground: a script around us gets it once the child had it."""
    lent = terminal.take_back()
    if lent and child.code in (-signal.SIGINT, -signal.SIGQUIT):
        terminal.interrupt(-child.code)


def _explain(course: Course, number: int) -> None:
    if number == signal.SIGKILL:
        say("it does not end: killing it")
    elif course.cause is Cause.TIMED_OUT:
        say("its time is over: ending it")
    else:
        say("the lease is lost: ending the command before another server begins it")


def _finish(child: Child, course: Course, timeout: float | None) -> Finish:
    code = child.code or 0
    match course.cause:
        case Cause.TIMED_OUT:
            return Finish(TIMED_OUT, overran(timeout or 0))
        case Cause.LOST:
            return Finish(WRAPPER_FAILED, End(Outcome.LOST, "the lease was lost: the command was ended"))
        case None if code < 0:
            return Finish(128 - code, End(Outcome.FAILED, f"ended by {_name(-code)}"))
        case None:
            return Finish(code, exited(code))


def _name(number: int) -> str:
    """A signal's name; real-time signals have none."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
