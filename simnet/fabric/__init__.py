"""The flow-level fabric: plays schedules on a topology under a protocol, in simulated time."""
