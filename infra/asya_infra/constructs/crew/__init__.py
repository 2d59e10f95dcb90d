"""Constructs of the crew: the actors and the sweeps that every mesh has."""
