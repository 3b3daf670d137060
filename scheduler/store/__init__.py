"""The ordered key-value store under the wheel: RocksDB, and its in-memory twin."""
