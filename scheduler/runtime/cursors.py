"""What ``cursors`` says: backups of cursors, and facts that a rebuild could not work out."""

from scheduler.core.cursor import Cursor, decode_cursor
from scheduler.core.records import Incoming
from scheduler.core.reports import Fact, decode_backup, decode_fact


class CursorLog:
    """The compacted ``cursors`` topic in memory: one backup a partition, few facts."""

    def __init__(self) -> None:
        self._backups: dict[int, tuple[int, Cursor]] = {}
        self._facts: dict[int, dict[bytes, Fact]] = {}

    def apply(self, record: Incoming) -> None:
        """Take in one record; what cannot be read is as good as absent."""
        name, _, job_id = (record.key or b"").partition(b"/")
        if not name.isdigit():
            return
        partition = int(name)
        if job_id:
            self._apply_fact(partition, job_id, record.value)
        elif record.value is not None:
            backup = decode_backup(record.value)
            cursor = decode_cursor(backup[1]) if backup else None
            if backup and cursor:
                self._backups[partition] = (backup[0], cursor)

    def _apply_fact(self, partition: int, job_id: bytes, value: bytes | None) -> None:
        facts = self._facts.setdefault(partition, {})
        fact = None if value is None else decode_fact(value)
        if fact is None:
            facts.pop(job_id, None)
        else:
            facts[job_id] = fact

    def backup(self, partition: int) -> tuple[int, Cursor] | None:
        """(position, cursor) last written for a partition."""
        return self._backups.get(partition)

    def fact(self, partition: int, job_id: bytes) -> Fact | None:
        """What a rebuild of this key has to know."""
        facts = self._facts.get(partition)
        return None if facts is None else facts.get(job_id)
