"""A protocol, an all-reduce and a topology for simnet."""
