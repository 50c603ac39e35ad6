"""Everything that numba compiles, and the tables that it works on; nothing here knows of SimPy or of networks."""
