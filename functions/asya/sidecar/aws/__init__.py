"""What a sidecar keeps between calls: circuit state, buffered frames, archived inputs, completed hops."""
