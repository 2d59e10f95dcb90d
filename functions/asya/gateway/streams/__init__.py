"""Tasks followed by Server-Sent Events: `wiring.stream` in Lambda, `server` for long-lived streams."""
