"""The table of the one error routine: an error, where it surfaced, what to do."""

import pytest
from confluent_kafka import KafkaError
from hypothesis import given
from hypothesis import strategies as st

from scheduler.kafka.transaction import Phase, Verdict, classify

ALL = tuple(Phase)
AFTER_PRODUCE = (Phase.OFFSETS, Phase.COMMIT)


def error(code: int, flag: str = "") -> KafkaError:
    return KafkaError(
        code,
        "injected",
        fatal=flag == "fatal",
        retriable=flag == "retriable",
        txn_requires_abort=flag == "abort",
    )


TABLE = [
    (KafkaError.ILLEGAL_GENERATION, "abort", AFTER_PRODUCE, Verdict.FENCED),
    (KafkaError.UNKNOWN_MEMBER_ID, "abort", AFTER_PRODUCE, Verdict.FENCED),
    (KafkaError.FENCED_INSTANCE_ID, "abort", AFTER_PRODUCE, Verdict.FENCED),
    (KafkaError.STALE_MEMBER_EPOCH, "abort", AFTER_PRODUCE, Verdict.FENCED),
    (KafkaError.OFFSET_METADATA_TOO_LARGE, "abort", AFTER_PRODUCE, Verdict.ABORT),
    (KafkaError.COORDINATOR_NOT_AVAILABLE, "abort", AFTER_PRODUCE, Verdict.ABORT),
    (KafkaError.TRANSACTION_ABORTABLE, "abort", AFTER_PRODUCE, Verdict.ABORT),
    (KafkaError.MSG_SIZE_TOO_LARGE, "abort", AFTER_PRODUCE, Verdict.ABORT),
    (KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER, "abort", AFTER_PRODUCE, Verdict.ABORT),
    (KafkaError.MSG_SIZE_TOO_LARGE, "", (Phase.PRODUCE,), Verdict.ABORT),
    (KafkaError._UNKNOWN_PARTITION, "", (Phase.PRODUCE,), Verdict.ABORT),
    (KafkaError._TIMED_OUT, "retriable", (*AFTER_PRODUCE, Phase.ABORT), Verdict.RETRY),
    (KafkaError._FENCED, "fatal", ALL, Verdict.REPLACE),
    (KafkaError._FENCED, "", ALL, Verdict.REPLACE),
    (KafkaError.INVALID_TXN_STATE, "fatal", ALL, Verdict.REPLACE),
    (KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER, "fatal", ALL, Verdict.REPLACE),
    (KafkaError._CONFLICT, "retriable", (Phase.BEGIN, Phase.COMMIT, Phase.ABORT), Verdict.REPLACE),
    (KafkaError._STATE, "", (Phase.BEGIN, Phase.COMMIT, Phase.ABORT), Verdict.REPLACE),
    (KafkaError._TIMED_OUT, "", AFTER_PRODUCE, Verdict.REPLACE),
    (KafkaError.ILLEGAL_GENERATION, "abort", (Phase.ABORT,), Verdict.REPLACE),
]


@pytest.mark.parametrize(
    ("code", "flag", "phase", "verdict"),
    [(code, flag, phase, verdict) for code, flag, phases, verdict in TABLE for phase in phases],
)
def test_the_table(code: int, flag: str, phase: Phase, verdict: Verdict) -> None:
    assert classify(error(code, flag), phase) is verdict


@given(
    st.integers(-200, 130),
    st.sampled_from(["", "fatal", "retriable", "abort"]),
    st.sampled_from(ALL),
)
def test_rules_that_hold_for_every_error(code: int, flag: str, phase: Phase) -> None:
    verdict = classify(error(code, flag), phase)
    if flag == "fatal":
        assert verdict is Verdict.REPLACE
    if verdict is Verdict.RETRY:
        assert flag == "retriable"
        assert phase is not Phase.PRODUCE  # its records would be produced twice
    if phase is Phase.ABORT:
        assert verdict in (Verdict.RETRY, Verdict.REPLACE)  # an abort is not aborted
    if verdict is Verdict.ABORT and phase is not Phase.PRODUCE:
        assert flag == "abort"  # else what was sent might still be committed
