"""The SimPy environment and what every actor in it needs: alarms, random streams by name, records."""
