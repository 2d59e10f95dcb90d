"""`asya smoke`: sends test envelopes through a deployed mesh."""
