"""Lets the greedy variable of a path match a path that ends with the slash before it, as API Gateway does.

Runs in MiniStack's process, in `.venv-cloud`. It imports nothing of this project.
"""

from types import ModuleType

_GREEDY = "{proxy+}"


def install(apigateway: ModuleType) -> None:
    """Make `/things/{proxy+}` match `/things/`; MiniStack asks for a character more."""
    extract = apigateway._extract_path_params

    def extract_path_params(route_path: str, request_path: str) -> dict[str, str] | None:
        if request_path.endswith("/") and route_path == f"{request_path}{_GREEDY}":
            return {"proxy": ""}
        found: dict[str, str] | None = extract(route_path, request_path)
        return found

    apigateway._extract_path_params = extract_path_params  # type: ignore[attr-defined]
