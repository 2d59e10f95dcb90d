"""HTTP for the gateway: parses API Gateway events, identifies callers and renders responses."""
