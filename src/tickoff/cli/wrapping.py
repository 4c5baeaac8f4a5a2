"""What `lock` and `once` share: `-- CMD`, and statuses of their own for what goes wrong around the command.

The command's status passes through, so 1 and 2 are its words. Ours are 124 to 127 only, as `timeout` and
`env` have it: also a bad option is 125.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import click

from ..errors import TickoffError
from ..ground.clocks import elapsed
from ..leases.referee import Referee
from .child import CannotRun
from .exits import CANNOT_EXECUTE, NOT_FOUND, WRAPPER_FAILED, say
from .options import namespace_option, required_url, url_option

_LAST_WORDS = 1.0
"""Seconds for what the store is still to be told when we leave."""

F = TypeVar("F", bound=Callable[..., Any])

STATUSES = """\b
Exit status:
  that of the command, or 128+n if signal n ended it
  0    skipped: another server has it (-E changes this)
  124  --timeout was over: TERM, and KILL 5 s later
  125  no answer from the store, the lease was lost, or a wrong option
  126  the command cannot be executed
  127  the command was not found"""


class Wrapper(click.Command):
    """A command line that ends in `-- CMD…`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read our own options up to `--`: what follows is the command's."""
        with _failures_of_ours():
            ours, words = _divided(args)
            wants_help = not {"-h", "--help"}.isdisjoint(ours)
            if not words and not wants_help and not ctx.resilient_parsing:
                raise click.UsageError("the command to run is missing; put it after --", ctx)
            left = super().parse_args(ctx, args)
            if not ctx.resilient_parsing:  # else the shell asks how to complete what is typed so far
                _refuse_misplaced(ctx, words)
            return left

    def invoke(self, ctx: click.Context) -> Any:
        """Run it; an error of ours is told in one line."""
        with _failures_of_ours():
            try:
                return super().invoke(ctx)
            except CannotRun as error:
                say(str(error))
                return NOT_FOUND if error.missing else CANNOT_EXECUTE
            except (TickoffError, OSError) as error:
                say(str(error))
                return WRAPPER_FAILED


def _divided(args: list[str]) -> tuple[list[str], list[str]]:
    """What is ours, and after `--` the words of the command."""
    place = args.index("--") if "--" in args else len(args)
    return args[:place], args[place + 1 :]


def _refuse_misplaced(ctx: click.Context, words: list[str]) -> None:
    """Only NAME stands before `--`: else a word of the command would be taken for it, or for the command."""
    misplaced = len(ctx.params["command"]) - len(words)
    if misplaced < 0:
        raise click.UsageError(f"NAME is missing; put it before --, and {words[0]!r} stays after it", ctx)
    if misplaced > 0:
        stray = " ".join(ctx.params["command"][:misplaced])
        raise click.UsageError(
            f"{stray!r} stands before --, where only NAME does; put the command after it", ctx
        )


@contextmanager
def _failures_of_ours() -> Iterator[None]:
    try:
        yield
    except click.ClickException as error:
        vars(error)["exit_code"] = WRAPPER_FAILED  # declared as the class's own
        raise


def wrapping(function: F) -> F:
    """The arguments and options that both commands have."""
    for decorate in reversed(
        [
            click.argument("name"),
            click.argument(
                "command", nargs=-1, metavar="-- COMMAND...", required=True, type=click.UNPROCESSED
            ),
            click.option(
                "--ttl",
                default="60s",
                show_default=True,
                metavar="D",
                help="How long the lease outlives a server that dies; renewed while the command runs.",
            ),
            click.option("--timeout", metavar="D", help="End the command when it runs longer than this."),
            click.option(
                "-E",
                "skipped_status",
                type=click.IntRange(0, 255),
                default=0,
                show_default=True,
                metavar="CODE",
                help="Exit status when another server has it.",
            ),
            url_option,
            namespace_option,
        ]
    ):
        function = decorate(function)
    return function


@contextmanager
def refereed(url: str | None) -> Iterator[Referee]:
    """The referee at this URL; what it still has to be told is told before we leave, for a while."""
    from ..stores import open_store

    logging.basicConfig(format="tickoff: %(message)s", level=logging.WARNING)
    store = open_store(required_url(url, ": cron strips the environment, so put it into the crontab"))
    referee = Referee(store)
    try:
        yield referee
    finally:
        _await_withdrawals(referee)
        referee.close()


def _await_withdrawals(referee: Referee) -> None:
    """A race given up by Ctrl-C must win nothing: let its withdrawal get through."""
    deadline = elapsed() + _LAST_WORDS
    while referee.keeper.withdrawals and elapsed() < deadline:
        time.sleep(0.01)
