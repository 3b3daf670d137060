"""Simulation: the scheduler's rules played from a seed, judged by the checker."""
