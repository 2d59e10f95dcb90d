"""The crew: x-sink, x-sump, x-checkpoint, and end actors."""
