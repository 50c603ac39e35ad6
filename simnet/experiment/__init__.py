"""Runs, their results as tables, sweeps and plots."""
