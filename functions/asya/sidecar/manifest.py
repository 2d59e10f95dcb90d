"""Declares the function of light actors."""

from asya.manifest import ActorFunction

FUNCTIONS = (ActorFunction(kind="handler", entry_point="asya.sidecar.lambdas.wiring.sidecar"),)
