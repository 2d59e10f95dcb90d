"""A handler of the mesh, beside the capability."""


def greet(payload: dict[str, str]) -> dict[str, str]:
    """Greet somebody."""
    return {"text": f"Hello {payload['name']}"}
