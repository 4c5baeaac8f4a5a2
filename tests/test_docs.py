"""The documentation is tried: its code runs and prints what the page says, its links lead somewhere."""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from dev.pages import renewed
from dev.servers import Server
from examples.file_store import FileStore

from tests.databases import database
from tests.examples.running import eventually, stage_in
from tests.pages import ROOT, Block, blocks_of, comparable, replaced, without_blocks
from tickoff import stores
from tickoff.cli.once import once
from tickoff.stores.sql import schema
from tickoff.testing import LeaseStoreContract, Subject, aged, compare_with_memory

README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").rglob("*.md"))]
STORES_PAGE = ROOT / "docs" / "stores.md"

STANDINS = {
    "redis://localhost:6379/0": "redis",
    "postgresql://localhost/shop": "postgres",
    "postgresql+psycopg://localhost/shop": "postgres",
    "mysql://localhost/shop": "mariadb",
}
"""URLs in the text, and the fixture whose server answers for each."""

every_page = pytest.mark.parametrize(
    "page", PAGES, ids=[str(page.relative_to(ROOT).with_suffix("")) for page in PAGES]
)


def steps_of(page: Path) -> list[tuple[Block, str | None]]:
    """The page's Python, each block with the output that a following `text` block promises.

    A block with a title is a file, and tried elsewhere.
    """
    blocks = blocks_of(page)
    after = [*blocks, Block("", None, "", 0)][1:]
    return [
        (block, following.text if following.language == "text" else None)
        for block, following in zip(blocks, after, strict=True)
        if block.language == "python" and block.title is None
    ]


RUNNER = """
import contextlib, io, json, sys

page, printed = {"__name__": "__main__"}, []
for file, line, text in json.load(sys.stdin):
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile("\\n" * line + text, file, "exec"), page)
    printed.append(output.getvalue())
json.dump(printed, sys.stdout)
"""


@every_page
def test_the_python_of_a_page_runs_and_prints_what_the_page_says(
    page: Path, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """A page is one program: its blocks run in order, in a folder of their own."""
    steps = steps_of(page)
    if not steps:
        return
    servers = {url: fixture for url, fixture in STANDINS.items() if any(url in b.text for b, _ in steps)}
    answering = {url: at(url, request.getfixturevalue(fixture)) for url, fixture in servers.items()}
    program = [(str(page), block.line, replaced(block.text, answering)) for block, _ in steps]
    clean = {key: value for key, value in os.environ.items() if not key.startswith("TICKOFF_")}
    done = subprocess.run(
        [sys.executable, "-c", RUNNER],
        input=json.dumps(program),
        cwd=tmp_path,
        env=clean | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert len(said) == len(steps)
    back = {real: url for url, real in answering.items()}
    for (block, promised), output in zip(steps, said, strict=True):
        if promised is not None:
            where = f"{page.name}:{block.line}"
            assert comparable(replaced(output, back)) == comparable(promised), where


def at(url: str, server: Server) -> str:
    """The address of a server, under the scheme that the page uses."""
    return url.partition("://")[0] + "://" + server.url.partition("://")[2]


@every_page
def test_the_python_of_a_page_needs_nothing_from_another_page(page: Path) -> None:
    """Every block parses by itself, so that it can be copied."""
    for block, _ in steps_of(page):
        ast.parse(block.text, f"{page.name}:{block.line}")


@every_page
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    """Files exist, and a part of a page that is named has a heading."""
    targets = re.findall(r"\]\(([^)\s]+)\)", without_blocks(page))
    for target in targets:
        link = urlsplit(target)
        if link.scheme:
            continue
        file = (page.parent / link.path) if link.path else page
        assert file.exists(), f"{page.name}: {target}"
        if link.fragment:
            assert link.fragment in anchors_of(file), f"{page.name}: {target}"


@every_page
def test_a_page_of_the_site_links_to_no_file_beside_it(page: Path) -> None:
    """What is not under docs/ is not on the site."""
    if page == README:
        return
    links = re.findall(r"\]\(([^)\s:#]+)[^)]*\)", without_blocks(page))
    outside = [link for link in links if not (page.parent / link).resolve().is_relative_to(ROOT / "docs")]
    assert outside == []


def anchors_of(page: Path) -> set[str]:
    """The headings of a page as links name them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def shell_lines() -> list[str]:
    """Every line of a shell block on any page."""
    blocks = [block for page in PAGES for block in blocks_of(page) if block.language == "sh"]
    return sorted({line.strip() for block in blocks for line in block.text.splitlines()})


@pytest.mark.parametrize(
    "command", sorted({line.split()[1] for line in shell_lines() if line.startswith("tickoff ")})
)
def test_every_command_shown_exists(command: str) -> None:
    """`tickoff COMMAND --help` answers."""
    done = subprocess.run(
        [sys.executable, "-m", "tickoff", command, "--help"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert "Usage: tickoff" in done.stdout


def test_migrating_says_what_the_page_says(tmp_path: Path) -> None:
    """`tickoff migrate`, twice, prints the lines of the stores page."""
    command = [sys.executable, "-m", "tickoff", "migrate", "--url", "sqlite:///shop.db"]
    said = [subprocess.run(command, cwd=tmp_path, capture_output=True, text=True).stdout for _ in range(2)]
    assert "".join(said) in [block.text for block in blocks_of(STORES_PAGE)]


def test_who_holds_what_can_be_asked_in_sql(postgres: Server, name: str) -> None:
    """The statement of the stores page finds a lease that is held, and no other."""
    import psycopg

    from tickoff import Tickoff

    query = next(block.text for block in blocks_of(STORES_PAGE) if block.language == "sql")
    jobs = Tickoff(postgres.url)
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        with jobs.lock(name) as lease:
            held = connection.execute(query.encode()).fetchall()
        left = connection.execute(query.encode()).fetchall()
    assert (name, lease.owner, lease.fence) in [row[:3] for row in held]
    assert name not in [row[0] for row in left]
    jobs.close()


def test_every_make_target_shown_exists() -> None:
    """`make TARGET` is one of the Makefile's."""
    shown = {line.split()[1] for line in shell_lines() if line.startswith("make ")}
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    assert {"demo", "test"} <= shown <= targets


def test_every_extra_shown_exists() -> None:
    """`tickoff[EXTRA]` is one that pyproject.toml declares."""
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    shown = {
        extra
        for page in PAGES
        for listed in re.findall(r"tickoff\[([\w,]+)\]", page.read_text("utf-8"))
        for extra in listed.split(",")
    }
    assert {"redis", "postgres", "mysql"} <= shown <= set(project["optional-dependencies"])


@pytest.mark.parametrize(("page", "text"), list(renewed()), ids=lambda value: getattr(value, "name", ""))
def test_a_page_shows_what_the_files_and_docstrings_say_today(page: Path, text: str) -> None:
    """Examples, the API and the help of commands; `make docs` writes them anew."""
    assert page.read_text("utf-8") == text, f"{page.name} is out of date; run: make docs"


def test_every_page_is_in_the_menu_of_the_site_and_the_menu_has_no_other() -> None:
    """A page that no menu leads to is not found."""
    listed = re.findall(r": ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.MULTILINE)
    written = [str(page.relative_to(ROOT / "docs")) for page in PAGES if page != README]
    assert sorted(listed) == sorted(written), "write the page into mkdocs.yml"


def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    """Every link and every part of a page that is named is there; what is searched for is found."""
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--strict"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    site = tmp_path / "build" / "site"
    found = json.loads((site / "search.json").read_text("utf-8"))["items"]
    assert any(item["location"].startswith("tutorial.html") for item in found)


README_NEEDS = """
from types import SimpleNamespace

def fetch_products(since):
    yield {"id": 1, "name": f"tea since {since}"}

async def ask_provider(number):
    return SimpleNamespace(status_code=200, json=lambda: {"carrier": "Amber"})
"""


@pytest.mark.timeout(180)
def test_the_ticks_and_records_of_the_readme_do_what_they_say(
    request: pytest.FixtureRequest, redis: Server, tmp_path: Path, name: str
) -> None:
    """Its Python, in one file, run by its own commands: rows are imported, contacts are enriched."""
    with database("postgres", request, tmp_path) as engine, stage_in(tmp_path) as stage:
        shop = engine.url.render_as_string(hide_password=False)
        urls = {"redis://localhost:6379/0": redis.url, "postgresql+psycopg://localhost/shop": shop}
        program = README_NEEDS + "".join(replaced(block.text, urls) for block, _ in steps_of(README))
        (tmp_path / "shop.py").write_text(program, "utf-8")
        stage.environment |= {"TICKOFF_NAMESPACE": name, "PYTHONPATH": f"{ROOT}:{tmp_path}"}
        with engine.begin() as db:
            db.exec_driver_sql("CREATE TABLE products (id integer PRIMARY KEY, name text)")
            db.exec_driver_sql("CREATE TABLE contacts (phone_number text PRIMARY KEY, carrier text)")
            db.exec_driver_sql("INSERT INTO contacts SELECT 'n' || n FROM generate_series(1, 50) n")
        for line in [line for line in shell_lines() if line.endswith("find-carrier --app shop")]:
            assert stage.run("-m", *line.split()).process.returncode == 0, stage.everything_said()
        server = stage.hurried("1s", "shop", "serve")
        eventually(lambda: server.said.count("ok after") >= 2, stage)
        server.terminate()
        with engine.connect() as db:
            assert db.exec_driver_sql("SELECT id FROM products").all() == [(1,)]
            states = db.exec_driver_sql("SELECT lookup, carrier, count(*) FROM contacts GROUP BY 1, 2")
            assert states.all() == [("DONE", "Amber", 50)]


@pytest.mark.parametrize(
    "line",
    [line for block in blocks_of(README) if block.language == "crontab" for line in block.text.splitlines()],
)
def test_the_crontab_line_of_the_readme_is_understood(line: str) -> None:
    """Its options exist, and the schedule it names is the one it is fired by."""
    command, schedule = shlex.split(line)[5:], " ".join(line.split()[:5])
    assert command[:2] == ["tickoff", "once"]
    assert f'--cron "{schedule}"' in line
    once.make_context("once", command[2:])


def test_the_readme_is_short() -> None:
    """120 lines are what somebody reads."""
    assert len(README.read_text("utf-8").splitlines()) <= 120


def test_the_readme_begins_with_the_sentence() -> None:
    """What Tickoff is for stands on top."""
    assert "**Every tick once. Every row once.**" in README.read_text("utf-8").splitlines()[:4]


def test_the_stores_page_names_every_scheme() -> None:
    """No URL that works is left unsaid."""
    text = STORES_PAGE.read_text("utf-8")
    assert [scheme for scheme in stores._SCHEMES if scheme not in text] == []


def test_the_stores_page_names_every_column() -> None:
    """The tables of the page are the tables of the schema."""
    text = STORES_PAGE.read_text("utf-8")
    for table in schema.metadata.sorted_tables:
        assert f"`{table.name}`" in text
        missing = [column.name for column in table.columns if f"`{column.name}`" not in text]
        assert missing == [], table.name


def test_the_wire_recipe_of_the_readme_and_a_lock_exclude_each_other(redis: Server, name: str) -> None:
    """What the page says of `SET lock:NAME token NX EX 60` is so, in both directions."""
    from redis import Redis

    from tickoff import Skipped, Tickoff

    jobs = Tickoff(redis.url)
    with Redis.from_url(redis.url) as other:
        assert other.set(f"lock:{name}", "a-token", nx=True, ex=60)
        lost = jobs.race(name)
        assert isinstance(lost, Skipped)
        assert lost.note == "held by a program other than Tickoff"
        assert delete_if_mine(other, name, "another-token") == 0
        assert delete_if_mine(other, name, "a-token") == 1
        with jobs.lock(name):
            assert not other.set(f"lock:{name}", "a-token", nx=True, ex=60)
        assert other.set(f"lock:{name}", "a-token", nx=True, ex=60)
    jobs.close()


def delete_if_mine(client: object, name: str, token: str) -> object:
    """Run the compare-and-delete script as the page prints it."""
    script = next(block.text for block in blocks_of(STORES_PAGE) if block.language == "lua")
    return client.eval(script, 1, f"lock:{name}", token)  # type: ignore[attr-defined]


class TestTheStoreOfTheExample(LeaseStoreContract):
    """A store written as the page teaches keeps the contract."""

    @pytest.fixture
    def subject(self, tmp_path: Path) -> Subject:
        store = FileStore(tmp_path / "leases.json")

        def age(name: str, ms: int) -> None:
            store.rewrite(name, lambda entry: aged(entry, ms))

        return Subject(store, age, store.forget)

    def test_answers_like_the_reference(self, subject: Subject) -> None:
        """Random operations have the same outcome here as in the memory store."""
        compare_with_memory(subject)
