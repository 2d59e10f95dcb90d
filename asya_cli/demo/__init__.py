"""`asya demo`: runs the flight-delay pipeline end to end on its own local cloud."""
