import orders
import pytest


def test_orders_are_counted() -> None:
    assert orders.check_orders(orders.Orders([orders.Order("NO", 1)])).count == 1


def test_a_payload_without_orders_is_refused() -> None:
    with pytest.raises(ValueError, match="there are no orders"):
        orders.check_orders(orders.Orders([]))
