"""The actors and sweeps that every mesh has."""
