"""Claiming, settling, renewing, giving back: what every database does alike."""

from __future__ import annotations

import threading

import pytest
import sqlalchemy as sa

from tests.tables.conftest import TTL, Contacts, keys, phone
from tickoff.names import new_token
from tickoff.tables.base import Charged, Deferred, Done, Failed, Verdict

pytestmark = pytest.mark.timeout(60)


def test_a_claim_takes_pending_rows_in_key_order(contacts: Contacts) -> None:
    """Each row is claimed once, lowest key first, and the function gets the user's columns only."""
    contacts.fill(5)
    first, second = contacts.claim(3), contacts.claim(3)
    assert keys(first) == [1, 2, 3]
    assert keys(second) == [4, 5]
    assert not first.exhausted
    assert second.exhausted
    assert contacts.claim().records == ()
    other = "aadhaar_number" if contacts.keeper == contacts.name else "city"
    assert first.records[0].row._asdict() == {"phone_number": phone(1), other: None}
    assert first.records[0].row.phone_number == phone(1)
    assert contacts.states() == "IIIII"


def test_a_claim_begins_above_its_floor(contacts: Contacts) -> None:
    """What lies at or below the floor is left for the wrap-around, which finds it."""
    contacts.fill(4)
    assert keys(contacts.claim(10, floor=(phone(2),))) == [3, 4]
    assert keys(contacts.claim(10)) == [1, 2]


def test_rows_inserted_later_are_pending(contacts: Contacts) -> None:
    """The column's default makes them records."""
    contacts.fill(1)
    contacts.claim()
    contacts.fill(1, start=2)
    assert keys(contacts.claim()) == [2]


def test_the_result_is_written_with_done(contacts: Contacts) -> None:
    """The row tells what, that it is done, by which claim and when; the claim is struck off the ledger."""
    contacts.fill(2)
    batch = contacts.claim()
    settled = contacts.records.settle(batch.token, done(batch, "1234"), last=True)
    assert settled.written == {(phone(1),), (phone(2),)}
    assert tuple(contacts.row(1)) == ("DONE", batch.token, 0, None, "1234", True)
    assert contacts.ledger() == 0


def test_null_is_an_answer(contacts: Contacts) -> None:
    """A row DONE with null is claimed by no second pass, and touched by no sweep."""
    contacts.fill(1)
    batch = contacts.claim()
    contacts.records.settle(batch.token, done(batch, None))
    contacts.home.expire()
    contacts.records.sweep(5, deep=True)
    assert contacts.claim().records == ()
    assert contacts.row(1)[0] == "DONE"


def test_a_repeated_flush_is_recognised(contacts: Contacts) -> None:
    """A flush whose answer was lost is sent again: written, not refused, and not written twice."""
    contacts.fill(3)
    batch = contacts.claim()
    verdicts = [Done((phone(1),), {}), Charged((phone(2),), "no", 60.0), Failed((phone(3),), "never")]
    once = contacts.records.settle(batch.token, verdicts)
    again = contacts.records.settle(batch.token, verdicts)
    assert once.written == again.written == {(phone(1),), (phone(2),), (phone(3),)}
    assert [contacts.row(i)[2] for i in (1, 2, 3)] == [0, 1, 1]


def test_a_zombie_is_refused(contacts: Contacts) -> None:
    """An answer that comes after the record went to somebody else changes nothing and is told."""
    contacts.fill(2)
    zombie = contacts.claim()
    contacts.home.expire()
    contacts.records.sweep(5)
    taken = contacts.suspect()
    settled = contacts.records.settle(zombie.token, done(zombie, "late"))
    assert settled.refused == {(phone(1),), (phone(2),)}
    assert not settled.written
    contacts.records.settle(taken.token, done(taken, "right"))
    assert contacts.records.settle(zombie.token, done(zombie, "late")).refused
    assert [contacts.row(i)[4] for i in (1, 2)] == ["right", None]


def test_done_is_final(contacts: Contacts) -> None:
    """No verdict of any kind, from whatever claim, moves a row that is DONE."""
    contacts.fill(1)
    batch = contacts.claim()
    contacts.records.settle(batch.token, done(batch, "first"))
    before = contacts.row(1)
    verdicts: list[Verdict] = [
        Done((phone(1),), {"aadhaar_number": "second"}),
        Charged((phone(1),), "no", 0.0),
    ]
    for token in (batch.token, new_token()):
        for verdict in [*verdicts, Failed((phone(1),), "no"), Deferred((phone(1),), "later", 0.0)]:
            contacts.records.settle(token, [verdict])
    assert contacts.records.give_back(batch.token, [(phone(1),)]) == 0
    assert contacts.row(1) == before


def test_a_charged_record_waits_and_counts(contacts: Contacts) -> None:
    """An attempt more, the error readable, not claimable before its wait is over."""
    contacts.fill(2)
    batch = contacts.claim()
    contacts.records.settle(
        batch.token, [Charged((phone(1),), "boom", 60.0), Charged((phone(2),), "bang", 0.0)], last=True
    )
    assert contacts.row(1)[0::2][:2] == ("PENDING", 1)
    assert contacts.row(1)[3] == "boom"
    again = contacts.claim()
    assert keys(again) == [2]
    assert again.records[0].attempts == 1
    left = contacts.records.left()
    assert left.pending
    assert left.in_flight
    assert left.wake is not None
    assert 0 < left.wake <= 60


def test_a_deferred_record_is_not_charged(contacts: Contacts) -> None:
    """The provider's fault costs the record nothing."""
    contacts.fill(1)
    batch = contacts.claim()
    contacts.records.settle(batch.token, [Deferred((phone(1),), "429", 0.0)])
    assert contacts.claim().records[0].attempts == 0
    assert contacts.row(1)[3] == "429"


def test_a_failed_record_is_parked(contacts: Contacts) -> None:
    """FAILED rows are claimed by nobody until they are retried."""
    contacts.fill(1)
    batch = contacts.claim()
    contacts.records.settle(batch.token, [Failed((phone(1),), "bad \0 number \ud800")])
    assert contacts.claim().records == ()
    assert contacts.row(1)[:1] == ("FAILED",)
    assert contacts.row(1)[3] == "bad \\0 number \\ud800"


def test_all_kinds_of_verdicts_go_into_one_flush(contacts: Contacts) -> None:
    """Each record becomes what its own verdict says."""
    contacts.fill(4)
    batch = contacts.claim()
    verdicts = [
        Failed((phone(4),), "d"),
        Done((phone(1),), {"aadhaar_number": "a"}),
        Deferred((phone(3),), "c", 9.0),
        Charged((phone(2),), "b", 9.0),
    ]
    assert len(contacts.records.settle(batch.token, verdicts).written) == 4
    assert contacts.states() == "DPPF"
    assert [contacts.row(i)[2] for i in (1, 2, 3, 4)] == [0, 1, 0, 1]


def test_an_answer_the_database_refuses_takes_nobody_with_it(contacts: Contacts) -> None:
    """Of 50 answers two are too long for their column: they are named, the others are DONE."""
    contacts.fill(50)
    batch = contacts.claim(50)
    verdicts = [
        Done(record.key, {"aadhaar_number": "x" * 13 if i in {7, 30} else "ok"})
        for i, record in enumerate(batch.records)
    ]
    if contacts.home.kind == "sqlite":  # which has no lengths, but triggers
        when = f"BEFORE UPDATE ON {contacts.keeper} WHEN length(NEW.aadhaar_number) > 12"
        contacts.home.run(f"CREATE TRIGGER long {when} BEGIN SELECT RAISE(ABORT, 'too long'); END")
    settled = contacts.records.settle(batch.token, verdicts, last=True)
    assert set(settled.culprits) == {(phone(8),), (phone(31),)}
    assert "long" in settled.culprits[(phone(8),)]
    assert len(settled.written) == 48
    assert contacts.states().count("D") == 48
    charged = [Charged(key, error, 0.0) for key, error in settled.culprits.items()]
    assert len(contacts.records.settle(batch.token, charged, last=True).written) == 2
    assert contacts.ledger() == 0


def test_an_answer_no_driver_can_send_is_a_culprit_too(contacts: Contacts) -> None:
    """An object that is no value of any column is named like any other refusal."""
    contacts.fill(3)
    batch = contacts.claim()
    verdicts = [
        Done(r.key, {"aadhaar_number": object() if i == 1 else "ok"}) for i, r in enumerate(batch.records)
    ]
    settled = contacts.records.settle(batch.token, verdicts)
    assert set(settled.culprits) == {(phone(2),)}
    assert contacts.states() == "DID"


def test_what_was_not_started_is_given_back(contacts: Contacts) -> None:
    """It is PENDING as before, uncharged and unsuspected; the rest of the claim goes on."""
    contacts.fill(4)
    batch = contacts.claim()
    assert contacts.records.give_back(batch.token, [(phone(2),), (phone(3),)]) == 2
    assert contacts.states() == "IPPI"
    assert tuple(contacts.row(2)) == ("PENDING", None, 0, None, None, False)
    assert keys(contacts.claim()) == [2, 3]
    assert contacts.records.give_back(batch.token) == 2
    assert keys(contacts.claim()) == [1, 4]


def test_a_renewed_claim_outlives_its_first_end(contacts: Contacts) -> None:
    """Sweeps go by the ledger, where renewals are."""
    contacts.fill(2)
    batch, other = contacts.claim(1), contacts.claim(1)
    contacts.home.expire()
    assert contacts.records.renew([batch.token], TTL) == {batch.token}
    assert contacts.records.sweep(5).suspected == 1
    assert contacts.states() == "IP"
    assert contacts.records.renew([batch.token, other.token], TTL) == {batch.token}


def test_rows_locked_by_a_user_are_passed_over(contacts: Contacts) -> None:
    """A user's open transaction stalls neither claims, nor renewals, nor completions of the others."""
    if contacts.home.kind == "sqlite":
        pytest.skip("SQLite locks the whole file, so there are no locked rows to pass over")
    contacts.fill(6)
    batch = contacts.claim(3)
    with contacts.home.engine.connect() as user, user.begin():
        user.execute(
            sa.text(
                f"UPDATE {contacts.keeper} SET aadhaar_number = 'u' WHERE phone_number IN ('p00002','p00005')"
            )
        )
        settled = contacts.records.settle(batch.token, done(batch, "ok"), last=True)
        assert settled.written == {(phone(1),), (phone(3),)}
        assert settled.busy == {(phone(2),)}
        assert keys(contacts.claim()) == [4, 6]
        assert contacts.records.renew([batch.token], TTL) == {batch.token}
        contacts.home.expire()
        swept = contacts.records.sweep(5)
        assert (swept.suspected, swept.busy) == (2, 1)
        assert contacts.records.renew([batch.token], TTL) == frozenset()
    assert contacts.records.settle(batch.token, [Done((phone(2),), {})]).written
    assert contacts.states() == "DDDPPP"


def test_deadlocks_are_tried_again(contacts: Contacts) -> None:
    """Two reopenings and workers at once end well: all take their locks in key order, or try again."""
    contacts.fill(300)
    ends: list[BaseException | None] = []

    def work() -> None:
        try:
            for _ in range(6):
                batch = contacts.claim(100)
                contacts.records.settle(batch.token, list(reversed(done(batch, "x"))), last=True)
                contacts.records.reopen()
        except BaseException as error:  # noqa: BLE001 - told below
            ends.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(50)
    assert ends == []


def done(batch: object, answer: str | None) -> list[Verdict]:
    """Everything in it is DONE with this."""
    records = batch.records  # type: ignore[attr-defined]
    return [Done(record.key, {"aadhaar_number": answer}) for record in records]
