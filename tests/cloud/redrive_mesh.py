"""A mesh with two mistakes in it, each of which a file in the mesh's data mends."""

MESH = """
namespace: repeat
code: handlers
actors:
  # It sends where it may not: AWS refuses, the message is kept on the queue and soon lies in the dead-letter queue.
  courier: {handler: shop.courier, can_send_to: [clerk], max_receives: 1, access: [{bucket: data, read: "flags/*"}]}
  clerk: {handler: shop.clerk, keep_input: true, access: [{bucket: data, read: "flags/*"}]}
  closed: {handler: shop.closed}
tools:
  order: {description: An order, route: [courier, x-checkpoint, clerk]}
"""

HANDLERS = """
from asya import data


def is_mended(name):
    try:
        return data.size(f"flags/{name}") > 0
    except FileNotFoundError:
        return False


def courier(payload):
    if not is_mended("courier"):
        yield ("SET", ".route.next[:0]", ["closed"])
    yield {**payload, "carried": True}


def clerk(payload):
    if not is_mended("clerk"):
        raise ValueError("no such order: " + payload["order"])
    return {**payload, "booked": True}


def closed(payload):
    return payload
"""
