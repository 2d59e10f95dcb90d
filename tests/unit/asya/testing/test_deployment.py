"""The test kit: the services of the functions."""

from pathlib import Path

from asya.testing import Mesh


def test_the_values_of_secrets_are_not_in_errors(shop: Path) -> None:
    mesh = Mesh(shop, env={"API_KEY": "a-long-secret"})
    mesh.fail("price", ValueError("refused: a-long-secret"))
    assert mesh.send("price", {"total": 1}).errors[0].message == "refused: [secret API_KEY]"
