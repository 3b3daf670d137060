"""The executor owns runs: it claims them, has them done, and says what came of it."""
