"""A race run in a thread for a coroutine, which may give it up at any moment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import StoreUnreachable
from ..model import Answer, Bid

if TYPE_CHECKING:
    from .referee import Referee


@dataclass(frozen=True, slots=True)
class Reply:
    """A store's answer to a bid, when the bid was first sent, and whether it had to be sent again."""

    answer: Answer
    sent: float
    repeated: bool = False


class Pursuit:
    """Whichever comes last, the answer or the giving up, sees to it that nothing stays won.

    A race that is given up is withdrawn, since its request may be anywhere; but when its answer comes after
    all, that is known better. Else, where many give up, their withdrawals would queue up before the lock.
    """

    def __init__(self, referee: Referee, bid: Bid) -> None:
        self._referee = referee
        self._bid = bid
        self._begun = False
        self._given_up = False

    def send(self) -> Reply:
        """Send the bid, and wait for the answer; in the thread."""
        self._begun = True
        reply = self._referee.send(self._bid)
        if self._given_up:
            self._tidy(reply)
        return reply

    def give_up(self) -> None:
        """Withdraw the bid, unless it was never sent; in the event loop."""
        self._given_up = True
        if self._begun:
            self._referee.keeper.withdraw(self._bid.name, self._bid.token)

    def _tidy(self, reply: Reply) -> None:
        """Let go of a win: then nothing is left to withdraw, unless a first request is still on its way."""
        if reply.repeated or (reply.answer.ok and not self._let_go()):
            self._referee.keeper.withdraw(self._bid.name, self._bid.token)
        else:
            self._referee.keeper.spare(self._bid.token)

    def _let_go(self) -> bool:
        try:
            self._referee.store.release(self._bid.name, self._bid.token)
        except StoreUnreachable:
            return False
        return True
