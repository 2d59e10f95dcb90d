"""The Lambda functions of x-sink, x-sump, x-checkpoint and end actors."""
