"""Checks of the sources of triggers: what AWS accepts, and whether the tasks of a trigger may start it again."""
