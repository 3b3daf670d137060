"""Clients for the tests of the Kafka edge."""

import pytest

from tests.conftest import Kafka
from tests.integration.kafka.edge import Edge


@pytest.fixture
def edge(kafka: Kafka, prefix: str) -> Edge:
    return Edge(kafka.bootstrap, prefix)
