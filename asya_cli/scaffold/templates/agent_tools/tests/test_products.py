import pytest
from asya.testing import Mesh, RefusedError


def test_products_are_found_by_a_word(asya_mesh: Mesh) -> None:
    found = asya_mesh.call("find-products", {"query": "lamp", "max_price": 50}).result
    assert [product["sku"] for product in found["products"]] == ["L1"]


def test_shipping_is_quoted(asya_mesh: Mesh) -> None:
    assert asya_mesh.call("quote-shipping", {"sku": "L1", "country": "SE"}).result["shipping"] == 7.0


def test_an_unknown_product_tells_the_model_what_to_do(asya_mesh: Mesh) -> None:
    run = asya_mesh.call("quote-shipping", {"sku": "X9", "country": "SE"})
    assert run.errors[0].message == "there is no product X9; find-products gives the skus"


@pytest.mark.parametrize("arguments", [{}, {"query": "lamp", "max_prize": 50}, {"query": ""}])
def test_arguments_that_do_not_fit_the_schema_are_refused(asya_mesh: Mesh, arguments: dict[str, object]) -> None:
    with pytest.raises(RefusedError):
        asya_mesh.call("find-products", arguments)
