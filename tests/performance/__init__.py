"""Figures, each beside its conditions and, where there is a reference, with a ratio.

``python -m tests.performance`` runs every bench against a real broker; name some to run those.
"""
