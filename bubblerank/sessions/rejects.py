"""What becomes of a record that cannot be used: a row that says where, why and what."""

from __future__ import annotations

from enum import StrEnum

import pyarrow as pa

from schemas import arrow_schema

PAYLOAD_BYTES = 4096
"""A payload is cut at this many bytes of UTF-8."""

REJECT_SCHEMA = arrow_schema("reject")


class Reason(StrEnum):
    """Why a record was rejected: the codes of the column `reason`."""

    NOT_PARSABLE = "not_parsable"
    WRONG_TYPE = "wrong_type"
    WRONG_SCHEMA = "wrong_schema"
    TRUNCATED_FILE = "truncated_file"
    MISSING_QUERY = "missing_query"
    MISSING_SESSION_ID = "missing_session_id"
    BAD_EVENT_TIME = "bad_event_time"
    NO_ITEMS = "no_items"
    TOO_MANY_ITEMS = "too_many_items"
    EMPTY_ITEM = "empty_item"
    REPEATED_ITEM = "repeated_item"
    CLICKS_LENGTH = "clicks_length"
    NULL_CLICK = "null_click"
    BAD_STEP = "bad_step"
    CLICK_WITHOUT_QUERY = "click_without_query"
    LATE = "late"


def cut_payload(payload: str, limit: int = PAYLOAD_BYTES) -> str:
    """The longest beginning of `payload` that takes at most `limit` bytes of UTF-8."""
    encoded = payload[:limit].encode("utf-8", "replace")
    if len(encoded) <= limit:
        return encoded.decode("utf-8")
    return encoded[:limit].decode("utf-8", "ignore")


class RejectRows:
    """Collects the rejects of one source; `to_batch` gives them in `REJECT_SCHEMA`."""

    def __init__(self, source: str) -> None:
        self.source = source
        self._positions: list[int | None] = []
        self._reasons: list[str] = []
        self._details: list[str] = []
        self._payloads: list[str] = []

    def add(self, position: int | None, reason: Reason, detail: str, payload: str = "") -> None:
        """Reject the record at `position` (from 1; None where a file's unread rest is meant)."""
        self._positions.append(position)
        self._reasons.append(reason.value)
        self._details.append(cut_payload(detail))
        self._payloads.append(cut_payload(payload))

    def __len__(self) -> int:
        return len(self._positions)

    def to_batch(self) -> pa.RecordBatch:
        """All rejects so far as one record batch."""
        columns = [
            pa.array([self.source] * len(self), pa.string()),
            pa.array(self._positions, pa.int64()),
            pa.array(self._reasons, pa.string()),
            pa.array(self._details, pa.string()),
            pa.array(self._payloads, pa.string()),
        ]
        return pa.record_batch(columns, schema=REJECT_SCHEMA)


def to_ipc(batch: pa.RecordBatch) -> bytes:
    """One record batch of rejects as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def from_ipc(data: bytes) -> pa.Table:
    """The rejects that `to_ipc` wrote."""
    return pa.ipc.open_stream(data).read_all()
