"""Loads the light handlers of the example; its jobs have the same package name, `flights`."""

import importlib.util
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

FOLDER = Path(__file__).parents[1] / "functions/handlers"


@cache
def load_handlers() -> ModuleType:
    """Loads functions/handlers/flights.py by its path."""
    sys.path.append(str(FOLDER))
    try:
        spec = importlib.util.spec_from_file_location("flights_handlers", FOLDER / "flights.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(FOLDER))
    return module
