"""Claims that ran out: suspects, blame, and how others learn of rows that became PENDING behind them."""

from __future__ import annotations

import time

import pytest
import sqlalchemy as sa
from dev.proxy import Mode, proxy_to

from tests.tables.conftest import TTL, Contacts, keys, phone
from tickoff import StoreUnreachable
from tickoff.names import new_token
from tickoff.stores.base import IO_LIMIT
from tickoff.tables import open_table
from tickoff.tables.base import Charged, Done, Failed, State

pytestmark = pytest.mark.timeout(60)


def test_a_live_claim_is_not_swept(contacts: Contacts) -> None:
    """Nothing happens to records whose claim has time left."""
    contacts.fill(3)
    contacts.claim()
    assert contacts.records.sweep(5, deep=True).total == 0
    assert contacts.states() == "III"


def test_a_sweep_takes_only_its_own_rows_among_those_of_others(contacts: Contacts) -> None:
    """A claim reaches from its lowest to its highest key; what another one holds in between goes on."""
    contacts.fill(3)
    dead = contacts.records.claim_these(new_token(), "dead", [(phone(1),), (phone(3),)], TTL)
    living = contacts.claim()
    contacts.home.expire()
    assert contacts.records.renew([living.token], TTL) == {living.token}
    assert contacts.records.sweep(5).suspected == 2
    assert contacts.states() == "PIP"
    assert keys(dead) == [1, 3]


def test_swept_records_are_suspects_and_claimed_alone(contacts: Contacts) -> None:
    """A crash charges nobody; whoever was in flight is claimed again one by one, not in a batch."""
    contacts.fill(4)
    contacts.claim(3)
    contacts.home.expire()
    assert contacts.records.sweep(5).suspected == 3
    assert contacts.states() == "PPPP"
    assert keys(contacts.claim()) == [4]
    alone = [contacts.suspect() for _ in range(3)]
    assert [keys(batch) for batch in alone] == [[1], [2], [3]]
    assert all(batch.alone and batch.records[0].attempts == 0 for batch in alone)
    assert contacts.suspect().records == ()


def test_a_crash_of_a_lone_suspect_is_charged_until_it_is_parked(contacts: Contacts) -> None:
    """A poison record that kills its process every time ends as FAILED after its attempts."""
    contacts.fill(1)
    contacts.claim()
    for _ in range(3):
        contacts.home.expire()
        contacts.records.sweep(3)
        contacts.suspect()
    contacts.home.expire()
    assert contacts.records.sweep(3).failed == 1
    row = contacts.row(1)
    assert (row[0], row[2]) == ("FAILED", 3)
    assert "died" in row[3]


def test_a_suspect_that_is_settled_is_none_any_more(contacts: Contacts) -> None:
    """Its call came back, so it goes with the others again."""
    contacts.fill(1)
    contacts.claim()
    contacts.home.expire()
    contacts.records.sweep(5)
    alone = contacts.suspect()
    contacts.records.settle(alone.token, [Charged((phone(1),), "no", 0.0)], last=True)
    assert keys(contacts.claim()) == [1]


def test_a_suspect_given_back_stays_one(contacts: Contacts) -> None:
    """It was not started, so nothing is known of it yet."""
    contacts.fill(1)
    contacts.claim()
    contacts.home.expire()
    contacts.records.sweep(5)
    alone = contacts.suspect()
    contacts.records.give_back(alone.token)
    assert contacts.claim().records == ()
    assert keys(contacts.suspect()) == [1]


def test_done_records_of_a_dead_process_stay_done(contacts: Contacts) -> None:
    """A sweep puts back only what was in flight."""
    contacts.fill(3)
    batch = contacts.claim()
    contacts.records.settle(batch.token, [Done((phone(2),), {"aadhaar_number": "x"})])
    contacts.home.expire()
    contacts.records.sweep(5)
    assert contacts.states() == "PDP"


def test_a_claim_the_ledger_lost_is_found_by_a_deep_sweep(contacts: Contacts) -> None:
    """After a restored backup, say: rows in flight that nobody knows of do not stay so."""
    contacts.fill(3)
    contacts.claim()
    contacts.home.run(f"DELETE FROM tickoff_claim WHERE record = '{contacts.keeper}.status'")
    contacts.home.run(f"UPDATE {contacts.keeper} SET status_until = '2001-01-01 00:00:00.000000'")
    assert contacts.records.sweep(5).total == 0
    assert contacts.records.sweep(5, deep=True).suspected == 3
    assert keys(contacts.suspect()) == [1]


@pytest.mark.parametrize("kind", ["postgres", "mariadb"])
def test_a_server_that_vanished_amid_a_sweep_keeps_no_rows_from_the_others(contacts: Contacts) -> None:
    """Nobody hangs up for it, so its database ends what it had begun."""
    contacts.fill(2)
    contacts.claim()
    contacts.home.expire()
    port = sa.make_url(contacts.home.url).port
    assert port is not None
    with proxy_to(port) as proxy:
        url = contacts.home.url.replace(f":{port}/", f":{proxy.port}/")
        vanished = open_table(url, contacts.records.plan, 1.0)
        proxy.hold_after = b"DELETE FROM tickoff_claim"
        with pytest.raises(StoreUnreachable):
            vanished.sweep(5)
        assert proxy.mode is Mode.HOLD
        deadline = time.monotonic() + 2 * IO_LIMIT
        while contacts.records.sweep(5).suspected == 0:
            assert time.monotonic() < deadline
            time.sleep(0.1)
    assert contacts.states() == "PP"


def test_two_sweeps_at_once_do_it_once(contacts: Contacts) -> None:
    """The second finds nothing left to do."""
    contacts.fill(2)
    contacts.claim()
    contacts.home.expire()
    assert contacts.records.sweep(5).suspected == 2
    assert contacts.records.sweep(5).total == 0


def test_news_lower_the_floor_to_what_was_retried(contacts: Contacts) -> None:
    """A worker past the retried rows learns of it at once, and claims exactly them next."""
    contacts.fill(9)
    batch = contacts.claim(6)
    verdicts = [Failed(record.key, "boom") for record in batch.records]
    contacts.records.settle(batch.token, verdicts, last=True)
    floor = batch.records[-1].key
    quiet = contacts.records.news(floor)
    assert quiet.floor == floor
    contacts.home.run(
        f"UPDATE {contacts.keeper} SET status_error = 'other' WHERE phone_number < '{phone(3)}'"
    )
    assert contacts.records.retry("bo%") == 4
    news = contacts.records.news(floor, quiet.seen)
    assert news.floor == (phone(2),)
    assert not news.suspects
    assert keys(contacts.claim(10, floor=news.floor)) == [3, 4, 5, 6, 7, 8, 9]
    assert contacts.records.news(floor, news.seen).floor == floor


def test_news_of_the_very_first_row_lower_the_floor_to_the_start(contacts: Contacts) -> None:
    """There is no key below the first one."""
    contacts.fill(3)
    batch = contacts.claim()
    contacts.records.give_back(batch.token)
    assert contacts.records.news((phone(3),)).floor is None


def test_news_tell_of_suspects(contacts: Contacts) -> None:
    """As long as there are some."""
    contacts.fill(1)
    contacts.claim()
    contacts.home.expire()
    contacts.records.sweep(5)
    assert contacts.records.news(None).suspects
    contacts.suspect()
    contacts.suspect()
    assert not contacts.records.news(None).suspects


def test_reopened_rows_are_pending_as_if_never_tried(contacts: Contacts) -> None:
    """Only those finished before the instant, and where the user says."""
    contacts.fill(4)
    batch = contacts.claim()
    contacts.records.settle(batch.token, [Done(record.key) for record in batch.records], last=True)
    finished = contacts.records.show((phone(1),))
    assert finished is not None
    assert contacts.records.reopen(finished_before=finished.until) == 0
    assert contacts.records.reopen(where="phone_number <> 'p00002'") == 3
    assert contacts.states() == "PDPP"
    assert tuple(contacts.row(1))[:4] == ("PENDING", None, 0, None)
    assert contacts.records.reopen(where=sa.column("phone_number") == phone(2)) == 1
    assert contacts.records.counts()[State.PENDING] == 4


def test_retrying_and_reopening_go_in_pieces(contacts: Contacts) -> None:
    """More rows than one transaction takes are all found, once each."""
    contacts.fill(1200)
    batch = contacts.claim(1200)
    contacts.records.settle(batch.token, [Failed(record.key, "no") for record in batch.records], last=True)
    assert contacts.records.retry() == 1200
    assert contacts.records.counts() == {
        State.PENDING: 1200,
        State.IN_FLIGHT: 0,
        State.DONE: 0,
        State.FAILED: 0,
    }


def test_what_is_left_tells_when_to_come_back(contacts: Contacts) -> None:
    """Nothing: no wake. Something claimable: now. In flight: when the claim runs out, as renewed."""
    assert contacts.records.left().wake is None
    assert not contacts.records.left().any
    contacts.fill(1)
    assert contacts.records.left().wake == 0
    batch = contacts.claim(ttl=30.0)
    contacts.records.renew([batch.token], 3000.0)
    left = contacts.records.left()
    assert left.in_flight
    assert not left.pending
    assert left.wake is not None
    assert 2900 < left.wake <= 3000


def test_a_record_tells_why_it_is_where_it_is(contacts: Contacts) -> None:
    """State, holder, attempts, next try; a key that is not there is told as such."""
    contacts.fill(1)
    batch = contacts.claim()
    standing = contacts.records.show((phone(1),))
    assert standing is not None
    assert (standing.state, standing.owner, standing.claim) == ("IN_FLIGHT", "host:1:a", batch.token)
    assert standing.until is not None
    assert standing.until.tzinfo is not None
    assert contacts.records.show(("nobody",)) is None
    (holding,) = contacts.records.holdings()
    assert (holding.owner, holding.claims, holding.records) == ("host:1:a", 1, 1)


def test_a_sample_claims_nothing(contacts: Contacts) -> None:
    """It only looks."""
    contacts.fill(5)
    assert len(contacts.records.sample(3)) == 3
    assert contacts.states() == "PPPPP"
