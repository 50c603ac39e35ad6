"""Sweeps: a scenario, and which of its keys take which values."""
