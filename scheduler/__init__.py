"""Decides when runs are due: the scheduler of Duewheel."""
