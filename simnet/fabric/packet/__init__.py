"""The packet-level fabric: every packet on every hop."""
