"""Records beside job queues, side by side: `python -m bench.peers [GROUP …] [--rounds 3] [--write]`."""

from __future__ import annotations

import sys
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from dev.servers import mariadb_server, postgres_server, redis_server

from bench import page, report
from bench.peers.groups import GROUPS
from bench.peers.results import as_table, gates_of, measured

SETTINGS = (
    "PostgreSQL with fsync on, max_wal_size 4 GB, shared_buffers 512 MB; MariaDB flushing its log once a "
    "second; Redis without persistence; SQLite in WAL mode; servers, workers and watcher on the same cores"
)


def main() -> int:
    """Measure the groups that were asked for, print, write; the exit status."""
    options = _options()
    missed = [gate for name in options.groups for gate in _run(name, options) if not gate.met]
    print("\n".join(f"MISSED: {gate.name}: {gate.measured}, asked {gate.asked}" for gate in missed))
    return 1 if missed else 0


def _run(name: str, options: Namespace) -> list[page.Gate]:
    group = GROUPS[name]
    context = replace(
        report.Context.of_now(f"{name} --rounds {options.rounds}", "-m bench.peers"), settings=SETTINGS
    )
    with servers({entry.peer.broker for entry in group.entries}) as urls:
        results = measured(group, urls, options.rounds)
    text = f"{as_table(group, results)}\n\n{report.told(context)}"
    print(f"\n{group.title}\n\n{text}", flush=True)
    if options.write:
        page.put(page.PAGE, f"bench.peers writes {name}", text)
        page.put_gates(page.PAGE, gates_of(group, results))
    return gates_of(group, results)


@contextmanager
def servers(brokers: set[str]) -> Iterator[dict[str, str]]:
    """Servers of our own, by what they are."""
    with ExitStack() as stack:
        yield {broker: _started(broker, stack) for broker in brokers}


def _started(broker: str, stack: ExitStack) -> str:
    match broker:
        case "postgres":
            tuned = postgres_server("max_wal_size=4GB", "shared_buffers=512MB", fsync=True)
            return stack.enter_context(tuned).url
        case "mariadb":
            return stack.enter_context(mariadb_server("--innodb-buffer-pool-size=512M")).url
        case "redis":
            return stack.enter_context(redis_server()).url
        case _:
            return f"sqlite:///{stack.enter_context(tempfile.TemporaryDirectory())}/bench.db"


def _options() -> Namespace:
    parser = ArgumentParser(description=__doc__, prog="python -m bench.peers")
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=f"of {', '.join(GROUPS)}; all by default")
    parser.add_argument("--rounds", type=int, default=3, help="rounds in which all contenders take turns (3)")
    parser.add_argument("--write", action="store_true", help="rewrite the tables in docs/performance.md")
    options = parser.parse_args()
    options.groups = options.groups or list(GROUPS)
    unknown = set(options.groups) - set(GROUPS)
    if unknown:
        parser.error(f"no such group: {', '.join(unknown)}; there are {', '.join(GROUPS)}")
    return options


if __name__ == "__main__":
    sys.exit(main())
