"""Protocol errors injected into librdkafka's built-in mock cluster.

The client library that ships with the wheel exports the mock's C functions. The native handle is
the first field after the header of a Producer object: this relies on the object's layout, and is
the only place that does. The mock keeps no offsets and checks no generation; it serves to see
where an error surfaces, not what a broker does.
"""

import ctypes
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import confluent_kafka
from confluent_kafka import Producer

OBJECT_HEADER_BYTES = 16
"""Reference count and type, on 64-bit CPython."""

PRODUCE = 0
ADD_PARTITIONS = 24
ADD_OFFSETS = 25
END_TXN = 26
TXN_OFFSET_COMMIT = 28


@cache
def _library() -> ctypes.CDLL:
    folder = Path(confluent_kafka.__file__).parents[1] / "confluent_kafka.libs"
    (bundled,) = folder.glob("librdkafka*.so*")
    return ctypes.CDLL(str(bundled))


class MockCluster:
    """One broker inside a client that is there for nothing else."""

    def __init__(self) -> None:
        self._host = Producer({"bootstrap.servers": "", "test.mock.num.brokers": 1})
        library = _library()
        library.rd_kafka_handle_mock_cluster.restype = ctypes.c_void_p
        library.rd_kafka_handle_mock_cluster.argtypes = [ctypes.c_void_p]
        native = ctypes.c_void_p.from_address(id(self._host) + OBJECT_HEADER_BYTES).value
        self._cluster = library.rd_kafka_handle_mock_cluster(native)
        assert self._cluster, "the client has no mock cluster"

    @property
    def bootstrap(self) -> str:
        """Where clients find it."""
        function = _library().rd_kafka_mock_cluster_bootstraps
        function.restype, function.argtypes = ctypes.c_char_p, [ctypes.c_void_p]
        return str(function(self._cluster).decode())

    def create(self, topic: str, partitions: int) -> None:
        """Create a topic."""
        function = _library().rd_kafka_mock_topic_create
        function.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_int]
        assert function(self._cluster, topic.encode(), partitions, 1) == 0

    def inject(self, api: int, errors: Sequence[int]) -> None:
        """The next requests of one API are answered with these errors, one each."""
        push = _library().rd_kafka_mock_push_request_errors_array
        push.argtypes = [
            ctypes.c_void_p,
            ctypes.c_int16,
            ctypes.c_size_t,
            ctypes.POINTER(ctypes.c_int),
        ]
        push(self._cluster, api, len(errors), (ctypes.c_int * len(errors))(*errors))
