"""`python -m chaos --store redis --minutes 10 --seed 1`: a run, its counts, and its verdict."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path

from .run import Course, run
from .stores import STORES


def main() -> int:
    """Run, tell, and say by the exit status whether a promise was broken."""
    told = _arguments()
    folder = Path(tempfile.mkdtemp(prefix="tickoff-chaos-"))
    course = run(told.store, folder, told.seed, told.minutes * 60, told.rows)
    print(_told(course, told.seed))
    if course.violations:
        print(f"the histories are kept in {folder}")
        return 1
    shutil.rmtree(folder, ignore_errors=True)
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="chaos", description=__doc__)
    parser.add_argument("--store", choices=STORES, default="redis")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--rows", type=int, default=0, help="records; by default as many as fit the time")
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
