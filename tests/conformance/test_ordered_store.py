"""One suite for every `OrderedStore`: each must behave like a plain dict that is sorted late."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from scheduler.core.ports import OrderedStore, Write
from scheduler.errors import InvariantViolation
from scheduler.store.memory import MemoryStore
from scheduler.store.rocks import open_store

KEYS = st.lists(st.sampled_from([0x00, 0x01, 0x61, 0x7F, 0xFE, 0xFF]), max_size=3).map(bytes)
VALUES = st.sampled_from([b"", b"\x00", b"value", b"v" * 3000])
WRITES = st.lists(st.tuples(KEYS, st.none() | VALUES), max_size=12)
TOP = b"\xff" * 4
"""Above every key of these tests."""

StoreMaker = Callable[[Path], OrderedStore]


def memory_store(_: Path) -> OrderedStore:
    """The in-memory twin."""
    return MemoryStore()


def rocks_store(path: Path) -> OrderedStore:
    """RocksDB in ``path``."""
    return open_store(path)[0]


@pytest.fixture(params=[memory_store, rocks_store])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OrderedStore]:
    """An empty store of each kind, closed afterwards."""
    make: StoreMaker = request.param
    opened = make(tmp_path / "store")
    yield opened
    opened.close()


class OrderedStoreModel(RuleBasedStateMachine):
    """Random histories, compared with a dict after every step."""

    make: StoreMaker

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="ordered-store-"))
        self.store = type(self).make(self.folder / "store")
        self.model: dict[bytes, bytes] = {}

    @rule(writes=WRITES)
    def write(self, writes: list[Write]) -> None:
        self.store.write(iter(writes))
        for key, value in writes:
            self.model.pop(key, None)
            if value is not None:
                self.model[key] = value

    @rule(lower=KEYS, upper=KEYS)
    def drop_range(self, lower: bytes, upper: bytes) -> None:
        self.store.drop_range(lower, upper)
        self.model = {k: v for k, v in self.model.items() if not lower <= k < upper}

    @rule()
    def flush(self) -> None:
        self.store.flush()

    @rule(lower=KEYS, upper=KEYS, limit=st.integers(0, 6))
    def scan(self, lower: bytes, upper: bytes, limit: int) -> None:
        expected = sorted((k, v) for k, v in self.model.items() if lower <= k < upper)
        assert self.store.scan(lower, upper, limit) == expected[:limit]

    @rule(key=KEYS)
    def get(self, key: bytes) -> None:
        assert self.store.get(key) == self.model.get(key)

    @rule(keys=st.lists(KEYS, max_size=8))
    def get_many(self, keys: list[bytes]) -> None:
        assert self.store.get_many(keys) == [self.model.get(key) for key in keys]

    @invariant()
    def holds_what_the_model_holds(self) -> None:
        assert self.store.scan(b"", TOP, 10_000) == sorted(self.model.items())

    def teardown(self) -> None:
        self.store.close()
        shutil.rmtree(self.folder)


class MemoryModel(OrderedStoreModel):
    make = staticmethod(memory_store)


class RocksModel(OrderedStoreModel):
    make = staticmethod(rocks_store)

    @rule()
    def reopen(self) -> None:
        self.store.close()
        self.store = rocks_store(self.folder / "store")


TestMemoryModel = MemoryModel.TestCase
TestMemoryModel.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
TestRocksModel = RocksModel.TestCase
TestRocksModel.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)


def test_a_later_write_of_a_key_wins_within_a_batch(store: OrderedStore) -> None:
    store.write([(b"a", b"1"), (b"a", None), (b"b", b"1"), (b"a", b"2"), (b"b", None)])

    assert store.scan(b"", TOP, 10) == [(b"a", b"2")]


def test_a_batch_that_fails_half_way_leaves_nothing(store: OrderedStore) -> None:
    def half_a_batch() -> Iterator[Write]:
        yield b"a", b"1"
        raise ConnectionError

    with pytest.raises(ConnectionError):
        store.write(half_a_batch())

    assert store.get(b"a") is None


def test_keys_are_ordered_bytewise_and_bounds_are_half_open(store: OrderedStore) -> None:
    keys = [b"\xff", b"a\x00", b"a", b"b", b"", b"a\xff"]
    store.write((key, b"v") for key in keys)

    assert [key for key, _ in store.scan(b"a", b"b", 10)] == [b"a", b"a\x00", b"a\xff"]


def test_large_batches_add_and_remove_what_they_say(store: OrderedStore) -> None:
    keys = [number.to_bytes(4, "big") for number in range(3_000)]
    store.write((key, b"v") for key in reversed(keys))
    store.write((key, None) for key in keys[::2])

    assert [key for key, _ in store.scan(b"", TOP, 3_000)] == keys[1::2]


def test_a_write_during_a_long_walk_is_seen_by_the_next_scan(store: OrderedStore) -> None:
    store.write([(b"a", b"1"), (b"c", b"1")])
    first = store.scan(b"", TOP, 1)
    store.write([(b"b", b"1")])

    assert store.scan(first[-1][0] + b"\x00", TOP, 10) == [(b"b", b"1"), (b"c", b"1")]


@pytest.mark.parametrize(
    "use",
    [
        lambda store: store.get(b"a"),
        lambda store: store.get_many([b"a"]),
        lambda store: store.scan(b"", TOP, 1),
        lambda store: store.write([(b"a", b"1")]),
        lambda store: store.drop_range(b"a", b"b"),
        lambda store: store.flush(),
    ],
    ids=["get", "get_many", "scan", "write", "drop_range", "flush"],
)
def test_a_closed_store_refuses_every_use(
    store: OrderedStore, use: Callable[[OrderedStore], object]
) -> None:
    store.close()
    store.close()

    with pytest.raises(InvariantViolation, match="the store is closed"):
        use(store)
