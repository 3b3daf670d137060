"""What the world sees: every message, the partition of a key, definitions compiled for the wheel."""
