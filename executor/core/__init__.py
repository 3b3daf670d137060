"""Pure: what happens to a run, decided from the state of its partition."""
