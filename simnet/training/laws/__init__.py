"""Closed forms: speed-up, and how much a training takes."""
