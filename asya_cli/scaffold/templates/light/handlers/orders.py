"""The handlers of orders. Annotations are checked before a handler is called."""

from dataclasses import dataclass

VAT = {"NO": 0.25, "SE": 0.25}
"""The rate by country."""


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


@dataclass
class Priced:
    orders: list[Order]
    count: int
    gross: float


def check_orders(payload: Orders) -> Checked:
    """Refuse a payload without orders, and count them."""
    if not payload.orders:
        raise ValueError("there are no orders")
    return Checked(payload.orders, len(payload.orders))


def add_vat(payload: Checked) -> Priced:
    """Add up the prices with VAT."""
    gross = sum(order.price * (1 + _vat(order.country)) for order in payload.orders)
    return Priced(payload.orders, payload.count, round(gross, 2))


def _vat(country: str) -> float:
    if country not in VAT:
        raise ValueError(f"there is no VAT rate for {country}")
    return VAT[country]
