"""The light actors at the ends of a heavy route; each appends its name to the trail of the payload."""


def enter(payload):
    return {**payload, "trail": ["enter"]}


def leave(payload):
    return {**payload, "trail": [*payload["trail"], "leave"]}
