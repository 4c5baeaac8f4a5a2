"""`tickoff once`: the crontabs of all servers have the line, and one of them runs it."""

from __future__ import annotations

import signal
import subprocess
import time
from datetime import UTC, datetime

import pytest
from dev.proxy import Mode, proxy_to

from tests.cli.wrapped import IGNORES_TERM, TICKOFF, alive, eventually, line_of, lines, started
from tickoff import Tickoff
from tickoff.model import Outcome, Run

YEARLY = ("--cron", "0 0 1 1 *", "--tz", "UTC")
"""Its tick is months ago: each firing is late, some later than others, and all are for the same tick."""

FLEET = 10


@pytest.fixture
def url(redis) -> str:
    """The store that starts fastest."""
    return redis.url


def history(url: str, name: str) -> list[Run]:
    """What the store has of the runs."""
    jobs = Tickoff(url)
    try:
        return jobs.store.history(name)
    finally:
        jobs.close()


def test_ten_servers_fire_and_one_runs_it_also_when_one_is_late(environment, shared_url, name, tmp_path):
    """Nine at once; the tenth when the command is long over. One ran, all say 0, nobody says a word."""
    log = tmp_path / "log"
    line = [*TICKOFF, "once", name, *YEARLY, "--url", shared_url, "--", "sh", "-c", f"echo ran $$ >> {log}"]
    fleet = [
        subprocess.Popen(line, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for _ in range(FLEET - 1)
    ]
    said = [server.communicate(timeout=100)[0] for server in fleet]
    late = subprocess.run(line, env=environment, capture_output=True, text=True, timeout=60)
    assert [server.returncode for server in fleet] == [0] * (FLEET - 1)
    assert (said, late.returncode, late.stdout, late.stderr) == ([""] * (FLEET - 1), 0, "", "")
    assert len(lines(log)) == 1
    assert [run.outcome for run in history(shared_url, name)] == [Outcome.OK]


def test_the_command_knows_its_tick(tickoff, url, name):
    """In UTC, as the schedule has it and not as the clock has it now."""
    script = 'echo "$TICKOFF_JOB $TICKOFF_TICK $TICKOFF_FENCE"'
    done = tickoff("once", name, *YEARLY, "--url", url, "--", "sh", "-c", script)
    job, tick, fence = done.stdout.split()
    (run,) = history(url, name)
    assert (job, int(fence), done.stderr) == (name, run.fence, "")
    at = datetime.fromisoformat(tick)
    assert at == datetime(datetime.now(UTC).year, 1, 1, tzinfo=UTC)
    assert tick.endswith("-01-01T00:00:00Z")


def test_the_zone_is_this_machine_s_unless_given(tickoff, url, name):
    """As cron has it: midnight in Kathmandu is a quarter past six in the evening before, in UTC."""
    options = ("--cron", "0 0 1 1 *", "--url", url, "--", "sh", "-c", "echo $TICKOFF_TICK")
    here = tickoff("once", name, *options, TZ="Asia/Kathmandu")
    given = tickoff("once", f"{name}-given", "--tz", "UTC", *options, TZ="Asia/Kathmandu")
    assert here.stdout.endswith("-12-31T18:15:00Z\n")
    assert given.stdout.endswith("-01-01T00:00:00Z\n")


@pytest.mark.parametrize(
    ("script", "status", "outcome", "error"),
    [
        ("exit 0", 0, Outcome.OK, ""),
        ("exit 3", 3, Outcome.FAILED, "exit status 3"),
        ("kill -9 $$", 137, Outcome.FAILED, "ended by SIGKILL"),
        ("exec sleep 60", 124, Outcome.TIMED_OUT, "it ran longer than its timeout of 2 s"),
    ],
)
def test_the_history_says_how_the_command_ended(tickoff, url, name, script, status, outcome, error):
    """And the status passes through; whatever it was, a later firing is skipped as -E says."""
    options = ("--timeout", "2s", "-E", "75", "--url", url, "--", "sh", "-c", script)
    assert tickoff("once", name, *YEARLY, *options).returncode == status
    assert tickoff("once", name, *YEARLY, *options).returncode == 75
    assert [(run.outcome, run.error) for run in history(url, name)] == [(outcome, error)]


def test_a_failed_tick_is_tried_again_while_it_has_attempts(tickoff, url, name):
    """By whichever server fires next."""
    options = ("--attempts", "2", "-E", "75", "--url", url, "--", "false")
    statuses = [tickoff("once", name, *YEARLY, *options).returncode for _ in range(3)]
    assert statuses == [1, 1, 75]


@pytest.mark.parametrize(("mode", "status"), [(None, 127), (0o644, 126), (0o755, 126)])
def test_a_server_that_cannot_run_the_command_leaves_the_tick_to_others(
    tickoff, url, name, tmp_path, mode, status
):
    """Not found, not executable, no program: nothing is recorded, and the next server runs it.

    What can be seen before does not even race: others that fire at the same time would lose to it.
    """
    program = tmp_path / "program"
    if mode is not None:
        program.write_bytes(b"\x00\x01nonsense")
        program.chmod(mode)
    done = tickoff("once", name, *YEARLY, "--url", url, "--", str(program))
    jobs = Tickoff(url)
    assert done.returncode == status
    assert (name in jobs.store.names(name)) == (mode == 0o755)
    assert jobs.store.history(name) == []
    jobs.close()
    assert tickoff("once", name, *YEARLY, "--url", url, "--", "echo", "ran").stdout == "ran\n"


def test_a_server_that_dies_is_replaced_by_one_that_stands_by(environment, url, name):
    """With --recover now; the default leaves a crashed tick alone."""
    options = ("once", name, *YEARLY, "--recover", "now", "--ttl", "2s", "--url", url, "--")
    with started(environment, *options, "sh", "-c", IGNORES_TERM) as winner:
        pid = int(line_of(winner))  # it has won before the other one races
        with started(environment, *options[:-1], "--", "echo", "taken over") as standby:
            time.sleep(1.5)
            assert standby.poll() is None
            winner.kill()
            began = time.monotonic()
            assert standby.communicate(timeout=30) == ("taken over\n", "")
            assert time.monotonic() - began < 2 + 2 + 5
            assert eventually(lambda: not alive(pid))
    assert [run.outcome for run in history(url, name)] == [Outcome.OK, Outcome.CRASHED]


def test_a_lease_taken_away_is_125_and_lost_in_the_history(environment, url, name):
    """The command is ended, also when it would not end by itself."""
    jobs = Tickoff(url)
    options = ("once", name, *YEARLY, "--ttl", "2s", "--url", url, "--")
    with started(environment, *options, "sh", "-c", IGNORES_TERM) as running:
        pid = int(line_of(running))
        jobs.store.evict(name, "ops", "test")
        assert running.wait(20) == 125
        assert not alive(pid)
    jobs.close()
    assert {run.outcome for run in history(url, name)} == {Outcome.LOST}


def test_an_outage_at_the_end_does_not_undo_what_was_done(environment, redis, name):
    """The command is over while the store is away: the status is the command's, and the tick is settled."""
    with proxy_to(redis.port) as proxy:
        url = f"redis://127.0.0.1:{proxy.port}/0"
        options = ("once", name, *YEARLY, "--ttl", "60s", "--url", url, "--")
        with started(environment, *options, "sh", "-c", "echo begun; sleep 1; exit 4") as running:
            assert line_of(running) == "begun"
            proxy.mode = Mode.REFUSE
            proxy.reset()
            time.sleep(3)
            assert running.poll() is None
            proxy.mode = Mode.PASS
            assert running.wait(30) == 4
    assert [(run.outcome, run.error) for run in history(redis.url, name)] == [
        (Outcome.FAILED, "exit status 4")
    ]


def test_a_clock_that_is_far_ahead_is_named(tickoff, url, name, tmp_path):
    """Every tick would be too early by the store's clock: 125, and the remedy."""
    (tmp_path / "sitecustomize.py").write_text(
        "import time\nright = time.time_ns\ntime.time_ns = lambda: right() + 300 * 10**9\n"
    )
    options = ("--every", "10s", "--url", url, "--", "echo", "ran")
    done = tickoff("once", name, *options, PYTHONPATH=str(tmp_path))
    assert (done.returncode, done.stdout) == (125, "")
    assert "clock ahead; let both keep time by NTP" in done.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "exactly one of cron"),
        (("--cron", "0 * * * *", "--every", "1h"), "exactly one of cron"),
        (("--cron", "61 * * * *"), "61"),
        (("--cron", "0 * * * *", "--tz", "Europe/Atlantis"), "Atlantis"),
        (("--every", "1h", "--tz", "UTC"), "tz='UTC'"),
        (("--every", "1h", "--attempts", "0"), "--attempts"),
        (("--every", "1h", "--recover", "maybe"), "--recover"),
    ],
)
def test_a_wrong_schedule_or_option_is_125(tickoff, options, said):
    """Before anything runs."""
    done = tickoff("once", "a", *options, "--url", "memory://", "--", "echo", "ran")
    assert (done.returncode, done.stdout) == (125, "")
    assert said in done.stderr


def test_without_a_store_nothing_runs(tickoff):
    """A file in cron's working folder would coordinate nobody, and nobody would notice."""
    done = tickoff("once", "a", *YEARLY, "--", "echo", "ran")
    assert (done.returncode, done.stdout) == (125, "")
    assert "pass --url or set TICKOFF_URL" in done.stderr


def test_signals_pass_through(environment, url, name):
    """As under a lock; the history has the end."""
    with started(
        environment, "once", name, *YEARLY, "--url", url, "--", "sh", "-c", "echo on; sleep 60"
    ) as line:
        assert line_of(line) == "on"
        line.send_signal(signal.SIGTERM)
        assert line.wait(20) == 143
    assert [(run.outcome, run.error) for run in history(url, name)] == [(Outcome.FAILED, "ended by SIGTERM")]


def test_the_help_shows_a_crontab(tickoff):
    """The line that people copy."""
    done = tickoff("once", "--help")
    assert '0 * * * *  tickoff once import-products --cron "0 * * * *" -- ./import.sh --all' in done.stdout
