"""The light actors. Annotations are checked before a handler is called."""

from dataclasses import dataclass


@dataclass
class Order:
    country: str
    price: float


@dataclass
class Orders:
    orders: list[Order]


@dataclass
class Checked:
    orders: list[Order]
    count: int


def check_orders(payload: Orders) -> Checked:
    """Refuse a payload without orders, and count them."""
    if not payload.orders:
        raise ValueError("there are no orders")
    return Checked(payload.orders, len(payload.orders))
