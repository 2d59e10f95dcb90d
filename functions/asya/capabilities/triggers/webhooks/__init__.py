"""Webhooks: signatures, the keys that make them, and what a body tells (`protocol §16.webhooks`).

`aws/` of the triggers reads the keys and sends what was signed; `asya.gateway.routes.webhooks` answers the calls.
"""
