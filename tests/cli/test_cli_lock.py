"""`tickoff lock`: statuses, signals and streams to the letter; no child outlives its lease."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest
from dev.proxy import Mode, proxy_to
from dev.servers import Server

from tests.cli.wrapped import (
    FAMILY,
    IGNORES_TERM,
    TICKOFF,
    alive,
    eventually,
    kill,
    line_of,
    lines,
    pipe,
    started,
)
from tickoff import Tickoff
from tickoff.cli.course import GRACE, Cause, Course

SHORT = ["sh", "-c"]


@pytest.fixture
def url(redis: Server) -> str:
    """The store that starts fastest."""
    return redis.url


@pytest.mark.parametrize(
    ("script", "status"),
    [("exit 0", 0), ("exit 1", 1), ("exit 7", 7), ("kill -9 $$", 137), ("kill -TERM $$", 143)],
)
def test_the_command_s_status_passes_through(tickoff, url, name, script, status):
    """Its exit status, or 128+n when signal n ended it; and no word of ours."""
    done = tickoff("lock", name, "--url", url, "--", *SHORT, script)
    assert (done.returncode, done.stdout, done.stderr) == (status, "", "")


def test_the_command_holds_the_lock_and_knows_its_fence(tickoff, shared_url, name):
    """On every store; a tick of a wrapper around us is not handed on."""
    script = 'echo "$TICKOFF_JOB $TICKOFF_FENCE ${TICKOFF_TICK-none}"'
    jobs = Tickoff(shared_url)
    before = jobs.race(name)
    assert before
    before.release()
    done = tickoff("lock", name, "--url", shared_url, "--", *SHORT, script, TICKOFF_TICK="of another")
    job, fence, tick = done.stdout.split()
    assert (job, tick, done.stderr, done.returncode) == (name, "none", "", 0)
    after = jobs.race(name)
    assert after
    assert before.fence < int(fence) < after.fence
    after.release()
    jobs.close()


@pytest.mark.parametrize(("options", "status"), [([], 0), (["-E", "75"], 75)])
def test_a_held_lock_is_skipped_in_silence(tickoff, url, name, options, status):
    """With status 0, or what -E says; the command does not run."""
    jobs = Tickoff(url)
    with jobs.lock(name):
        done = tickoff("lock", name, *options, "--url", url, "--", "echo", "ran")
    assert (done.returncode, done.stdout, done.stderr) == (status, "", "")
    jobs.close()


def test_a_namespace_makes_it_another_lock(tickoff, url, name):
    """The same one that the library's namespace makes."""
    jobs = Tickoff(url, namespace="shop")
    with jobs.lock(name):
        skipped = tickoff("lock", name, "--url", url, "--namespace", "shop", "--", "echo", "ran")
        ran = tickoff("lock", name, "--url", url, "--", "echo", "ran")
    assert (skipped.stdout, ran.stdout) == ("", "ran\n")
    jobs.close()


def test_waiting_gets_the_lock_once_it_is_free(environment, url, name):
    """`-w` queues."""
    jobs = Tickoff(url)
    with started(environment, "lock", name, "-w", "30s", "--url", url, "--", "echo", "ran") as queued:
        with jobs.lock(name):
            time.sleep(1)
            assert queued.poll() is None
        assert queued.communicate(timeout=30) == ("ran\n", "")
        assert queued.returncode == 0
    jobs.close()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_waiting_can_be_interrupted(environment, url, name, number):
    """At once, with 128+n, and nothing is left in the store or among the processes."""
    jobs = Tickoff(url)
    with (
        jobs.lock(name),
        started(environment, "lock", name, "-w", "60s", "--url", url, "--", "echo", "ran") as queued,
    ):
        time.sleep(1.5)
        queued.send_signal(number)
        said = queued.communicate(timeout=10)
    assert (queued.returncode, "".join(said).strip()) == (128 + number, "")
    assert jobs.race(name)
    jobs.close()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["a", "--", "true"],
            "no store is named; pass --url or set TICKOFF_URL: cron strips the environment",
        ),
        (["a", "--url", "redis://:secret@127.0.0.1:1", "--", "true"], "127.0.0.1:1"),
        (["a", "--url", "nosuch://host", "--", "true"], "nosuch"),
        (["a", "--url", "memory://", "true"], "put it after --"),
        (["a", "--url", "memory://", "--"], "COMMAND"),
        (["a", "--url", "memory://", "--ttl", "0", "--", "true"], "--ttl='0' is not above zero"),
        (["a", "--url", "memory://", "--timeout", "x", "--", "true"], '--timeout="x" is not a duration'),
        (["a", "--url", "memory://", "-w", "-1s", "--", "true"], "--wait"),
        (["a", "--url", "memory://", "-E", "256", "--", "true"], "256"),
        (["a", "--url", "memory://", "--nonsense", "--", "true"], "--nonsense"),
        (["a{b}", "--url", "memory://", "--", "true"], "brace"),
        (["a", "--url", "memory://", "--namespace", "a:b", "--", "true"], "namespace='a:b' has a colon"),
    ],
)
def test_every_failure_of_ours_is_125_and_not_the_command_s_word(tickoff, arguments, said):
    """Outages and wrong options alike: 1 and 2 are for the command to say."""
    done = tickoff("lock", *arguments)
    assert (done.returncode, done.stdout) == (125, "")
    assert said in done.stderr
    assert "secret" not in done.stderr


def test_a_command_that_does_not_exist_is_127(tickoff, url, name):
    """In the words of the system."""
    done = tickoff("lock", name, "--url", url, "--", "no-such-command")
    assert (done.returncode, done.stdout) == (127, "")
    assert done.stderr == "tickoff: cannot run no-such-command: No such file or directory\n"


@pytest.mark.parametrize(("mode", "why"), [(0o644, "Permission denied"), (0o755, "Exec format error")])
def test_a_command_that_cannot_run_is_126_and_leaves_the_lock_free(tickoff, url, name, tmp_path, mode, why):
    """Not executable, or executable and no program."""
    program = tmp_path / "program"
    program.write_bytes(b"\x00\x01nonsense")
    program.chmod(mode)
    done = tickoff("lock", name, "--url", url, "--", str(program))
    assert (done.returncode, done.stderr) == (126, f"tickoff: cannot run {program}: {why}\n")
    jobs = Tickoff(url)
    assert jobs.race(name)
    jobs.close()


def test_output_comes_at_once(environment, url, name):
    """What the command writes is read while it still runs: nothing of ours lies between."""
    with started(environment, "lock", name, "--url", url, "--", *SHORT, "echo first; sleep 30") as running:
        assert line_of(running) == "first"
        assert running.poll() is None
        running.terminate()
        assert running.wait(20) == 143


def test_a_hundred_megabytes_pass_through(environment, url, name):
    """Every byte, and the status after them."""
    size = 100_000_000
    command = [*TICKOFF, "lock", name, "--url", url, "--", *SHORT, f"head -c {size} /dev/zero; exit 3"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        came = 0
        while part := running.stdout.read(1 << 20):
            came += len(part)
        assert (came, running.wait(20)) == (size, 3)


def test_input_passes_through(environment, url, name):
    """The command reads what we are given."""
    command = [*TICKOFF, "lock", name, "--url", url, "--", "cat"]
    done = subprocess.run(command, env=environment, input=b"a\0b\n", capture_output=True, timeout=60)
    assert (done.stdout, done.stderr, done.returncode) == (b"a\0b\n", b"", 0)


@pytest.mark.parametrize("signame", ["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"])
def test_signals_go_to_the_command_and_to_all_it_started(environment, url, name, tmp_path, signame):
    """Each process of its group meets it once; the status is the command's."""
    log, number = tmp_path / "log", getattr(signal, signame)
    family = [sys.executable, "-c", FAMILY, FAMILY, str(log), str(int(number))]
    with started(environment, "lock", name, "--url", url, "--", *family, FIRST="1") as running:
        assert line_of(running) == "ready"
        running.send_signal(number)
        assert running.wait(20) == 9
    assert sorted(lines(log)) == [f"child {signame}", f"parent {signame}"]


def test_a_signal_ignored_from_the_start_stays_ignored(environment, url, name):
    """Under nohup a hangup neither ends us nor is handed on."""
    code = "import signal, time; signal.signal(1, lambda *_: print('met')); print('ready'); time.sleep(1)"
    command = ["nohup", *TICKOFF, "lock", name, "--url", url, "--", sys.executable, "-uc", code]
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
    ) as running:
        assert line_of(running) == "ready"
        running.send_signal(signal.SIGHUP)
        assert (line_of(running), running.wait(20)) == ("", 0)


def test_a_command_that_takes_too_long_is_ended(environment, url, name):
    """By TERM, with status 124 whatever it says itself, and a word on stderr."""
    script = "trap 'echo asked; exit 0' TERM; read line"
    with pipe() as endless:
        command = [*TICKOFF, "lock", name, "--timeout", "1s", "--url", url, "--", *SHORT, script]
        done = subprocess.run(
            command, env=environment, stdin=endless, capture_output=True, text=True, timeout=60
        )
    assert (done.returncode, done.stdout) == (124, "asked\n")
    assert done.stderr == "tickoff: its time is over: ending it\n"


def test_a_command_that_ignores_term_is_killed_with_all_it_started(tickoff, url, name):
    """The one in front obeys, the one behind it does not: after the grace neither is left."""
    script = f"({IGNORES_TERM}) & wait"
    began = time.monotonic()
    done = tickoff("lock", name, "--timeout", "1s", "--url", url, "--", *SHORT, script)
    assert time.monotonic() - began >= 1 + GRACE
    assert done.returncode == 124
    assert done.stderr == "tickoff: its time is over: ending it\ntickoff: it does not end: killing it\n"
    assert eventually(lambda: not alive(int(done.stdout)))


def test_what_a_command_leaves_behind_on_purpose_stays(tickoff, url, name):
    """A command that ends by itself may leave a daemon."""
    done = tickoff("lock", name, "--url", url, "--", *SHORT, "sleep 30 >/dev/null 2>&1 & echo $!")
    assert (done.returncode, done.stderr) == (0, "")
    assert alive(int(done.stdout))
    kill(int(done.stdout), signal.SIGKILL)


@pytest.mark.parametrize("script", ["echo $$; while :; do sleep 0.05; done", IGNORES_TERM])
def test_a_lost_lock_ends_the_command_before_the_store_gives_it_away(environment, redis, name, script):
    """Cut off: TERM at two thirds of the TTL, KILL by nine tenths, and only then another wins."""
    jobs = Tickoff(redis.url)
    with proxy_to(redis.port) as proxy:
        url = f"redis://127.0.0.1:{proxy.port}/0"
        with started(environment, "lock", name, "--ttl", "3s", "--url", url, "--", *SHORT, script) as running:
            pid = int(line_of(running))
            time.sleep(1.5)
            proxy.mode = Mode.HOLD
            while not jobs.race(name):
                assert alive(pid) or running.poll() is not None or eventually(lambda: not alive(pid), 1)
            assert not alive(pid)
            assert running.wait(20) == 125
            assert running.stderr is not None
            assert "the lease is lost: ending the command" in running.stderr.read()
    jobs.close()


def test_a_lock_taken_away_ends_the_command(environment, url, name):
    """An operator's release is noticed at the next renewal."""
    jobs = Tickoff(url)
    with started(
        environment, "lock", name, "--ttl", "2s", "--url", url, "--", *SHORT, IGNORES_TERM
    ) as running:
        pid = int(line_of(running))
        jobs.store.evict(name, "ops", "test")
        assert running.wait(20) == 125
        assert not alive(pid)
    jobs.close()


def test_a_wrapper_that_slept_past_its_ttl_ends_the_command_when_it_wakes(environment, url, name):
    """It was stopped, as a suspended machine is."""
    with started(
        environment, "lock", name, "--ttl", "1s", "--url", url, "--", *SHORT, IGNORES_TERM
    ) as running:
        pid = int(line_of(running))
        running.send_signal(signal.SIGSTOP)
        time.sleep(1.5)
        running.send_signal(signal.SIGCONT)
        assert running.wait(20) == 125
        assert not alive(pid)


@pytest.mark.skipif(sys.platform != "linux", reason="other kernels do not tell a child that its parent died")
def test_a_wrapper_that_is_killed_takes_the_command_along(environment, url, name):
    """Nobody works on under a lease that nobody renews."""
    with started(environment, "lock", name, "--url", url, "--", *SHORT, IGNORES_TERM) as running:
        pid = int(line_of(running))
        running.kill()
        assert eventually(lambda: not alive(pid))


class At:
    """A lease in virtual time."""

    ttl = 60.0

    def __init__(self) -> None:
        self.lost = False
        self.deadline = 60.0


def test_the_course_of_a_lost_lease_is_term_then_kill_by_nine_tenths() -> None:
    """In virtual time: lost at 40 of 60 seconds, killed at 54."""
    lease = At()
    course = Course(lease)
    assert course.step(39) is None
    lease.lost = True
    assert (course.step(40), course.cause, course.due) == (signal.SIGTERM, Cause.LOST, 54.0)
    assert (course.step(53.9), course.step(54), course.step(99)) == (None, signal.SIGKILL, None)


def test_a_lease_lost_in_the_grace_of_a_timeout_shortens_it_and_is_called_lost() -> None:
    """The nearer end counts."""
    lease = At()
    course = Course(lease, timeout_at=51.0)
    assert (course.step(51), course.due) == (signal.SIGTERM, 51 + GRACE)
    lease.lost = True
    assert (course.step(52), course.cause, course.due) == (signal.SIGTERM, Cause.LOST, 54.0)


def test_the_help_shows_an_example_and_the_statuses(tickoff):
    """On one screen."""
    done = tickoff("lock", "--help")
    assert "tickoff lock nightly-import -w 10m --url redis://localhost:6379/0 -- ./import.sh" in done.stdout
    assert all(f"\n    {status} " in done.stdout for status in (0, 124, 125, 126, 127))


def test_nothing_is_imported_that_is_not_used(environment, redis, name, tmp_path):
    """A lock on Redis pays neither for SQL nor for colours; one on SQLite not for Redis."""
    heavy = {"sqlalchemy", "redis", "psycopg", "pymysql", "rich", "hypothesis"}
    allowed = {redis.url: {"redis"}, f"sqlite:///{tmp_path}/x.db": {"sqlalchemy"}}
    for url, used in allowed.items():
        code = (
            "import sys\nfrom tickoff.cli import program\n"
            f"program.main(['lock', {name!r}, '--url', {url!r}, '--', 'true'], standalone_mode=False)\n"
            f"print(*sorted({heavy} & set(sys.modules)))"
        )
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
        assert (set(done.stdout.split()), done.stderr) == (used, "")


def test_the_environment_names_the_store(tickoff, url, name):
    """As a crontab does."""
    done = tickoff("lock", name, "--", "echo", "ran", TICKOFF_URL=url)
    assert (done.returncode, done.stdout) == (0, "ran\n")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--", "sh", "-c", "true"], "NAME is missing; put it before --, and 'sh' stays after it"),
        (["one", "two", "--", "true"], "'two' stands before --, where only NAME does"),
        (["one", "--"], "the command to run is missing"),
        (["one", "true"], "the command to run is missing"),
    ],
)
@pytest.mark.parametrize("command", [["lock"], ["once", "--every", "1h"]])
def test_only_the_name_stands_before_the_dashes(tickoff, tmp_path, command, words, says):
    """A forgotten NAME would be taken from the command, and the rest of it run."""
    done = tickoff(*command, "--url", f"sqlite:///{tmp_path}/tickoff.db", *words)
    assert done.returncode == 125
    assert says in done.stderr


@pytest.mark.parametrize("typed", ["lock x --ti", "once --ti"])
def test_the_shell_completes_what_is_typed_before_the_command(tickoff, typed):
    """There are no dashes yet, and perhaps no name."""
    words = ["tickoff", *typed.split()]
    asked = {"COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1)}
    done = tickoff(_TICKOFF_COMPLETE="bash_complete", **asked)
    assert (done.stdout, done.stderr) == ("plain,--timeout\n", "")
