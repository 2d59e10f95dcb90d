import json
from pathlib import Path

import orders
import pytest
from asya.testing import Mesh, RefusedError

SAMPLE = json.loads((Path(__file__).parents[1] / "samples" / "orders.json").read_text())


def test_vat_is_that_of_the_country() -> None:
    checked = orders.check_orders(orders.Orders([orders.Order("NO", 10), orders.Order("SE", 2)]))
    assert orders.add_vat(checked).gross == 15


def test_orders_are_priced(asya_mesh: Mesh) -> None:
    run = asya_mesh.call("price-orders", SAMPLE)
    assert run.actors == ("check-orders", "add-vat")
    assert (run.result["count"], run.result["gross"]) == (3, 62.5)


def test_a_country_without_a_rate_fails(asya_mesh: Mesh) -> None:
    run = asya_mesh.call("price-orders", {"orders": [{"country": "XX", "price": 1}]})
    assert run.status == "failed"
    assert run.errors[0].message == "there is no VAT rate for XX"


def test_a_price_that_is_no_number_is_refused(asya_mesh: Mesh) -> None:
    with pytest.raises(RefusedError, match="price"):
        asya_mesh.call("price-orders", {"orders": [{"country": "NO", "price": "much"}]})
