"""`python -m chaos --store redis --minutes 10 --seed 1`: a run, its counts, and its verdict."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path

from dev.servers import MissingServer

from .clock import faketime
from .ground import go_into_namespaces
from .run import Course, run
from .stores import CANNOT, NEED_MACHINES, STORES

_MEMORY = Path("/dev/shm")


def main() -> int:
    """Run, tell, and say by the exit status whether a promise was broken."""
    told = _arguments()
    why = go_into_namespaces(sys.argv[1:])
    if why:
        print(f"no namespaces of our own ({why}): no partitions, no full disks, no Sentinels", flush=True)
    if why and told.store in NEED_MACHINES:
        return CANNOT
    if not faketime():
        print("libfaketime is not installed: clocks are wrong in Python only, and none is set", flush=True)
    folder = Path(tempfile.mkdtemp(prefix="tickoff-chaos-", dir=told.folder or _quick_folder()))
    folder.chmod(0o755)  # a PostgreSQL that may not be root has its files below
    try:
        course = run(told.store, folder, told.seed, told.minutes * 60, told.members)
    except MissingServer as error:
        print(error)
        return CANNOT
    print(_told(course, told.seed))
    if course.violations:
        print(f"the histories are kept in {folder}")
        return 1
    shutil.rmtree(folder, ignore_errors=True)
    return 0


def _quick_folder() -> Path | None:
    """In memory where there is such a place: what is noted must not wait for a busy disk."""
    return _MEMORY if _MEMORY.is_dir() else None


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="chaos", description=__doc__)
    parser.add_argument("--store", choices=STORES, default="redis")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--members", type=int, default=8)
    parser.add_argument(
        "--folder", type=Path, help="for what is noted; by default in memory, where there is room"
    )
    return parser.parse_args()


def _told(course: Course, seed: int) -> str:
    counts = "".join(f"  {count:8,} {what}\n" for what, count in course.counts.items())
    wrong = "".join(f"  {line}\n" for line in course.violations[:20])
    verdict = (
        f"{len(course.violations)} violations\n{wrong}{course.excerpt}"
        if course.violations
        else "0 violations"
    )
    return f"chaos on {course.store}, seed {seed}, {course.seconds:.0f} s\n{counts}{verdict}"


if __name__ == "__main__":
    sys.exit(main())
