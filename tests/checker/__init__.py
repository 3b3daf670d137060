"""The checker: a history is plain data, its rules are pure, and it judges every kind of run."""
