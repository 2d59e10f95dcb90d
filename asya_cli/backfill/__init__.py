"""`asya backfill`: starts the slots of a schedule between two times, and follows them."""
