"""Tasks followed by Server-Sent Events."""
