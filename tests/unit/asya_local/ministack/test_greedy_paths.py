"""A greedy variable matches a path that ends with the slash before it."""

from types import SimpleNamespace

import pytest

from asya_local.ministack.greedy_paths import install


@pytest.mark.parametrize(
    ("route", "path", "found"),
    [
        ("/mesh/{proxy+}", "/mesh/", {"proxy": ""}),
        ("/mesh/{proxy+}", "/mesh/a", "of MiniStack"),
        ("/mesh/{proxy+}", "/mesh", "of MiniStack"),
        ("/mesh/{id}", "/mesh/", "of MiniStack"),
    ],
)
def test_a_slash_is_enough(route: str, path: str, found: object) -> None:
    service = SimpleNamespace(_extract_path_params=lambda *_: "of MiniStack")
    install(service)  # type: ignore[arg-type]
    assert service._extract_path_params(route, path) == found
