"""FastAPI under uvicorn and Flask with its own command: jobs on one worker, locks in the views."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor
from itertools import chain

import httpx
import pytest
from dev.servers import Server

from tests.examples.running import Stage, eventually


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def answers(url: str) -> bool:
    """Whether somebody answers there."""
    try:
        httpx.get(url)
    except httpx.TransportError:
        return False
    return True


@pytest.fixture
def workers(stage: Stage, redis: Server) -> list[str]:
    """The addresses of three workers of the FastAPI application, all up, their jobs due each second."""
    stage.environment["TICKOFF_URL"] = redis.url
    ports = [free_port() for _ in range(3)]
    for port in ports:
        stage.hurried("1s", "examples.fastapi_app", "uvicorn", str(port))
    addresses = [f"http://127.0.0.1:{port}" for port in ports]
    for address in addresses:
        eventually(lambda address=address: answers(f"{address}/imports"), stage)
    return addresses


def test_fastapi_workers_share_the_ticks_and_none_runs_twice(stage: Stage, workers: list[str]) -> None:
    """Each tick is on the list of one worker; they end in order when told to."""

    def lists() -> list[list[str]]:
        return [httpx.get(f"{address}/imports").json() for address in workers]

    eventually(lambda: len(list(chain(*lists()))) >= 4, stage)
    ticks = list(chain(*lists()))
    assert len(set(ticks)) == len(ticks)
    for program in stage.programs:
        program.terminate()
        assert "Traceback" not in program.said


def test_the_jobs_of_fastapi_run_without_the_web_application(stage: Stage, redis: Server) -> None:
    """`tickoff serve --app` on the same module."""
    stage.environment["TICKOFF_URL"] = redis.url
    server = stage.hurried("1s", "examples.fastapi_app", "serve")
    eventually(lambda: server.said.count("ok after") >= 2, stage)
    assert server.terminate() == 0, server.said


def test_a_fastapi_view_answers_409_while_another_worker_has_the_lock(
    stage: Stage, workers: list[str]
) -> None:
    """Three requests at once, to three workers: one gets in."""
    with ThreadPoolExecutor(3) as crowd:
        got = list(crowd.map(lambda address: httpx.post(f"{address}/reindex", timeout=30), workers))
    assert sorted(answer.status_code for answer in got) == [200, 409, 409], stage.everything_said()
    refused = next(answer for answer in got if answer.status_code == 409)
    assert "skipped: held by" in refused.json()["detail"]


def test_flask_s_command_runs_the_jobs_once_a_tick(stage: Stage, redis: Server) -> None:
    """Two servers with `flask jobs`; what the job logs, it logs once for each tick."""
    stage.environment["TICKOFF_URL"] = redis.url
    for _ in range(2):
        stage.hurried("1s", "examples.flask_app", "flask")

    def imported() -> list[str]:
        lines = stage.everything_said().splitlines()
        return [line.rpartition("importing for ")[2] for line in lines if "importing for" in line]

    eventually(lambda: len(set(imported())) >= 3, stage)
    assert [program.terminate() for program in stage.programs] == [0, 0], stage.everything_said()
    assert len(set(imported())) == len(imported())


def test_a_flask_view_answers_409_while_another_worker_has_the_lock(
    redis: Server, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The lock is held elsewhere, then it is free."""
    monkeypatch.setenv("TICKOFF_URL", redis.url)
    monkeypatch.setenv("TICKOFF_NAMESPACE", name)
    from examples.flask_app import app, jobs

    from tickoff import Tickoff

    client, elsewhere = app.test_client(), Tickoff(redis.url, namespace=name)
    with elsewhere.lock("reindex"):
        assert client.post("/reindex").status_code == 409
    assert client.post("/reindex").status_code == 200
    elsewhere.close()
    jobs.close()
