"""A night on call, on real processes: what breaks, what is asked, what the answers are.

`python -m dev.incident` plays it and prints the transcript; with `--write` it goes into docs/operating.md.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dev.proxy import Mode, proxy_to
from dev.servers import Server, redis_server

PAGE = Path(__file__).parent.parent / "docs" / "operating.md"
ZONE = "Europe/Berlin"
BEGIN, END = "<!-- played by dev/incident.py -->\n", "<!-- until here -->\n"

SHOP = """
import os, socket, time
from pathlib import Path

name, ahead, real = os.environ["SHOP_HOST"], int(os.environ.get("SHOP_AHEAD", "0")), time.time_ns
socket.gethostname = lambda: name
time.time_ns = lambda: real() + ahead * 10**9

from tickoff import Tickoff

jobs = Tickoff(os.environ["SHOP_URL"], grace="0s", alarm="2s")

@jobs.every(os.environ.get("SHOP_EVERY", "6s"), name="export", ttl="2s")
def export(tick):
    ends = time.monotonic() + float(Path("work").read_text())
    while time.monotonic() < ends and not tick.lost:
        time.sleep(0.05)
"""


@dataclass
class Scene:
    """What happened, and the commands that were typed, each with its answer."""

    title: str
    story: str
    typed: list[tuple[str, str]] = field(default_factory=list)

    @property
    def text(self) -> str:
        """All answers."""
        return "\n".join(answer for _, answer in self.typed)


class Stage:
    """A Redis, servers that come and go, and a person at a laptop."""

    def __init__(self, redis: Server, folder: Path) -> None:
        self.redis = redis
        self._folder = folder
        self._servers: list[subprocess.Popen[bytes]] = []
        (folder / "shop.py").write_text(SHOP)
        self.work(0)

    def work(self, seconds: float) -> None:
        """How long the work takes from now on."""
        (self._folder / "work").write_text(str(seconds))

    def serve(self, host: str, url: str = "", **settings: str) -> subprocess.Popen[bytes]:
        """Start a server of this name, which says what it does in a log of its own."""
        shop = {f"SHOP_{key.upper()}": value for key, value in settings.items()}
        shop |= {"SHOP_HOST": host, "SHOP_URL": url or self.redis.url, "TZ": ZONE}
        with (self._folder / f"{host}.log").open("ab") as log:
            server = subprocess.Popen(
                [sys.executable, "-m", "tickoff", "serve", "--app", "shop"],
                cwd=self._folder,
                env=os.environ | shop,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self._servers.append(server)
        self.until(lambda: any(s["owner"].startswith(host) for s in self.asked("ls")["servers"]))
        return server

    def stop(self, server: subprocess.Popen[bytes], how: signal.Signals = signal.SIGTERM) -> None:
        """End a server."""
        server.send_signal(how)
        server.wait(30)

    def close(self) -> None:
        """End all that are left."""
        for server in self._servers:
            if server.poll() is None:
                self.stop(server, signal.SIGKILL)

    def log(self, host: str, words: str) -> str:
        """The first line of a server's log with these words."""
        self.until(lambda: words in (self._folder / f"{host}.log").read_text())
        lines = (self._folder / f"{host}.log").read_text().splitlines()
        return next(line for line in lines if words in line)

    def run(self, *command: str) -> str:
        """Type a command; what it answers, with this machine's particulars taken out."""
        environment = os.environ | {"TICKOFF_URL": self.redis.url, "TZ": ZONE, "LOGNAME": "ann"}
        done = subprocess.run(
            [sys.executable, "-m", "tickoff", *command],
            cwd=self._folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
        )
        said = done.stdout + done.stderr
        return said.replace(self.redis.url, "redis://redis:6379/0").replace(
            f"@{socket.gethostname()}", "@laptop"
        )

    def asked(self, *command: str) -> Any:
        """The same as JSON."""
        return json.loads(self.run(*command, "--json"))

    def until(self, what: Callable[[], Any], limit: float = 90.0) -> Any:
        """Wait until there is an answer, or it is so; the answer."""
        deadline = time.monotonic() + limit
        while not (found := what()):
            if time.monotonic() > deadline:
                raise TimeoutError("the incident does not go on; see the logs of its servers")
            time.sleep(0.1)
        return found

    def running_on(self, host: str) -> str:
        """Wait until a server is at work; its tick."""
        return str(self.until(lambda: self._tick_on(host)))

    def skipped(self) -> str:
        """The last tick, if it was skipped."""
        told = self.asked("explain", "export")
        return str(told["tick"]) if told["fate"] == "skipped" else ""

    def _tick_on(self, host: str) -> str:
        running = [job["running"] for job in self.asked("ls")["jobs"] if job["running"]]
        return next((one["tick"] for one in running if one["owner"].startswith(host)), "")

    def fate(self, tick: str) -> str:
        """What became of a tick, in a word."""
        told = self.asked("explain", "export", tick)
        return str(told["runs"][-1]["outcome"] if told["fate"] == "ran" else told["fate"])


def play() -> Iterator[Scene]:
    """The scenes, one after the other, on the same stage."""
    with ExitStack() as stack:
        redis = stack.enter_context(redis_server("--appendonly", "yes"))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        stage = Stage(redis, folder)
        stack.callback(stage.close)
        yield _killed(stage)
        yield _partitioned(stage)
        yield _paused(stage)
        yield _astray(stage)
        yield _evicting(stage)


def _killed(stage: Stage) -> Scene:
    stage.work(60)
    winner = stage.serve("web-1")
    tick = stage.running_on("web-1")
    stage.stop(winner, signal.SIGKILL)
    stage.work(0)
    stage.serve("web-2")
    alarm = stage.log("web-2", "nobody finished it")
    stage.until(lambda: stage.asked("history", "export")[0]["outcome"] == "ok")
    scene = Scene(
        "The winner is killed",
        "`web-1` dies in the middle of its work. Another one notices, and says so once for the fleet:",
    )
    scene.typed.append(("grep 'nobody finished' web-2.log", alarm))
    scene.typed.append((f"tickoff explain export {_typed(tick)}", stage.run("explain", "export", tick)))
    scene.typed.append(("tickoff history export -n 3", stage.run("history", "export", "-n", "3")))
    return scene


def _partitioned(stage: Stage) -> Scene:
    stage.stop(stage._servers[-1])
    stage.work(60)
    with proxy_to(stage.redis.port) as between:
        stage.serve("web-3", f"redis://127.0.0.1:{between.port}/0")
        tick = stage.running_on("web-3")
        between.mode = Mode.HOLD
        stage.log("web-3", " lost after ")
        stage.work(0)
        stage.serve("web-2")
        stage.until(lambda: stage.fate(tick) == "crashed")
        apart = stage.run("explain", "export", tick)
        between.mode = Mode.PASS
        between.reset()
        stage.until(lambda: stage.fate(tick) == "lost")
        scene = Scene(
            "A server is cut off",
            "`web-3` is at work, and its network goes. From outside that looks like a crash, until it is "
            "back and tells what it was like:",
        )
        scene.typed.append((f"tickoff explain export {_typed(tick)}", apart))
        again = stage.run("explain", "export", tick)
        scene.typed.append((f"tickoff explain export {_typed(tick)}   # a minute later", again))
        scene.typed.append(("tickoff doctor", stage.run("doctor")))
        stage.stop(stage._servers[-2], signal.SIGKILL)
    return scene


def _paused(stage: Stage) -> Scene:
    scene = Scene(
        "Somebody paused the job", "And forgot. Who asks why nothing runs is told by whom, and why:"
    )
    why = "stock-taking until noon"
    scene.typed.append((f"tickoff pause export --why '{why}'", stage.run("pause", "export", "--why", why)))
    tick = stage.until(stage.skipped)
    scene.typed.append((f"tickoff explain export {_typed(tick)}", stage.run("explain", "export", tick)))
    for command in ("ls", "trigger export", "resume export"):
        scene.typed.append((f"tickoff {command}", stage.run(*command.split())))
    return scene


def _astray(stage: Stage) -> Scene:
    server = stage.serve("web-4", ahead="90", every="4s")
    stage.until(lambda: "web-4" in stage.run("doctor"))
    scene = Scene(
        "A server with a wrong clock and an old schedule",
        "`web-4` was set up by hand: its clock is 90 s ahead, its code a version behind. Its ticks come "
        "at the right time nevertheless, since the store's clock decides:",
    )
    scene.typed.append(("tickoff doctor --ignore ttl-short", stage.run("doctor", "--ignore", "ttl-short")))
    stage.stop(server)
    return scene


def _evicting(stage: Stage) -> Scene:
    for setting in (("maxmemory", "100mb"), ("maxmemory-policy", "allkeys-lru")):
        _redis(stage.redis, "CONFIG", "SET", *setting)
    scene = Scene("Redis is set to evict", "Somebody made the Redis a cache as well:")
    scene.typed.append(("tickoff doctor --ignore ttl-short", stage.run("doctor", "--ignore", "ttl-short")))
    return scene


def _redis(server: Server, *command: str) -> None:
    from redis import Redis

    with Redis.from_url(server.url) as client:
        client.execute_command(*command)


def _typed(tick: str) -> str:
    """A tick as a person would type it."""
    os.environ["TZ"] = ZONE
    time.tzset()
    from datetime import datetime

    return f"{datetime.fromisoformat(tick).astimezone():%H:%M:%S}"


def transcript() -> str:
    """The scenes as a part of a page."""
    parts = []
    for scene in play():
        typed = "\n\n".join(f"$ {command}\n{answer.strip()}" for command, answer in scene.typed)
        parts.append(f"### {scene.title}\n\n{scene.story}\n\n```console\n{typed}\n```\n")
    return "\n".join(parts)


def main() -> None:
    """Play, and print or write."""
    told = transcript()
    if "--write" not in sys.argv:
        sys.stdout.write(told)
        return
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n{told}\n{END}{rest.partition(END)[2]}", "utf-8")


if __name__ == "__main__":
    main()
