"""For those who write a store, or test with one: the contract every store keeps, and time that can be moved.

    from tickoff.testing import LeaseStoreContract, Subject

    class TestMyStore(LeaseStoreContract):
        @pytest.fixture
        def subject(self):
            yield Subject(MyStore(), age=…, forget=…)

Needs pytest and hypothesis: `pip install 'tickoff[testing]'`.
"""

from .contract import LeaseStoreContract
from .machine import compare_with_memory
from .subjects import Subject, aged, memory_subject, redis_subject, sql_subject

__all__ = [
    "LeaseStoreContract",
    "Subject",
    "aged",
    "compare_with_memory",
    "memory_subject",
    "redis_subject",
    "sql_subject",
]
