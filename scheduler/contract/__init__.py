"""What the world sees: every message, the partition of a key, compiled definitions."""
