"""The light ends of a route: each notes that an envelope has passed."""


def enter(payload):
    return {**payload, "trail": ["enter"]}


def leave(payload):
    return {**payload, "trail": [*payload["trail"], "leave"]}
