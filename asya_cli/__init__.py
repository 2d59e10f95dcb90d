"""The `asya` command: the local cloud, the demo, and an operator's first questions about an envelope."""
