"""The actor mesh: protocol, runtime, routing decisions, AWS edges and Lambda entry points."""
