"""What only the in-memory twin has: losing what was not flushed."""

from scheduler.store.memory import MemoryStore

TOP = b"\xff"


def test_a_crash_takes_back_everything_since_the_last_flush() -> None:
    store = MemoryStore()
    store.write([(b"a", b"1"), (b"b", b"1"), (b"c", b"1")])
    store.flush()
    store.write([(b"a", b"2"), (b"b", None), (b"d", b"1")])
    store.write([(b"a", b"3"), (b"d", None), (b"e", b"1")])
    store.drop_range(b"c", b"d")

    survivor = store.after_crash()

    assert survivor.scan(b"", TOP, 10) == [(b"a", b"1"), (b"b", b"1"), (b"c", b"1")]


def test_a_flush_survives_two_crashes() -> None:
    store = MemoryStore()
    store.write([(b"a", b"1")])
    store.flush()

    assert store.after_crash().after_crash().get(b"a") == b"1"
