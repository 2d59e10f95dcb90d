"""The handlers behind the tools. The keys of a payload are the parameters of a handler."""

from dataclasses import dataclass


@dataclass
class Product:
    sku: str
    name: str
    price: float
    weight: float


@dataclass
class Found:
    products: list[Product]


@dataclass
class Quote:
    sku: str
    country: str
    shipping: float


PRODUCTS = (
    Product("L1", "Desk lamp", 39.0, 1.2),
    Product("L2", "Floor lamp", 89.0, 4.5),
    Product("C1", "Office chair", 249.0, 14.0),
)
_HOME = "NO"


def find_products(query: str, max_price: float | None = None) -> Found:
    """Find products by a word in their name."""
    limit = float("inf") if max_price is None else max_price
    return Found([each for each in PRODUCTS if query.lower() in each.name.lower() and each.price <= limit])


def quote_shipping(sku: str, country: str) -> Quote:
    """Quote the shipping of one product. The text of an error is what the model reads."""
    for product in PRODUCTS:
        if product.sku == sku:
            rate = 1.0 if country == _HOME else 2.5
            return Quote(sku, country, round(4 + rate * product.weight, 2))
    raise ValueError(f"there is no product {sku}; find-products gives the skus")
