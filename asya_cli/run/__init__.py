"""`asya run`: one call of a handler or job on this machine."""
