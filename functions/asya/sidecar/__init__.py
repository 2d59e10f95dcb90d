"""The sidecar of an actor: arrival, the handler call, outcome, retries and the circuit breaker."""
