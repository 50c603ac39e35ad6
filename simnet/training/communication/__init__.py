"""What workers exchange, when, and with whom."""
