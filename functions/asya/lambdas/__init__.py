"""One entry point per kind of function; each reads events, asks the core and carries out what it decided."""
