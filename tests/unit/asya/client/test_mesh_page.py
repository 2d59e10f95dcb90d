"""The programs of `docs/how-to/call-from-python.md` run on a mesh of the test kit, and print what the page promises."""

from __future__ import annotations

import runpy
import sys
from typing import TYPE_CHECKING, Any

import pytest

from asya.client import async_mesh, mesh
from tests.doubles.kit_cloud import KitMeshClient, kit_cloud
from tests.doubles.snippets import write_project

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

OUTPUTS = {
    "send_order.py": "low 9.50\n",
    "handle_failure.py": "check RuntimeError ValueError an order costs something\n",
    "call_tool.py": "Ship it? approved\n19.00\n",
    "repeat.py": "True 1\n",
    "follow.py": "checking Ada\nsucceeded\n",
    "clean_up.py": "",
    "send_orders.py": "low high\n",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder with the files of the page, whose mesh runs."""
    folder = tmp_path_factory.mktemp("page")
    write_project("call-from-python.md", folder)
    assert {path.name for path in folder.glob("*.py")} == OUTPUTS.keys()

    async def run(_: object, call: Any, *arguments: Any, **named: Any) -> Any:
        return call(*arguments, **named)  # a mesh of the kit lives in one thread

    others = sys.modules.pop("orders", None)  # of another test, with other models
    with pytest.MonkeyPatch.context() as patch, kit_cloud(folder / "mesh.yaml") as cloud:
        patch.chdir(folder)
        patch.syspath_prepend(str(folder / "handlers"))
        patch.setattr(mesh, "read_local", lambda _: cloud.mesh.connection)
        patch.setattr(mesh, "MeshClient", KitMeshClient)
        patch.setattr(async_mesh._Threads, "run", run)
        yield folder
    sys.modules.pop("orders", None)
    if others is not None:
        sys.modules["orders"] = others


@pytest.mark.parametrize("program", OUTPUTS)
def test_a_program_prints_what_the_page_promises(
    folder: Path, program: str, capsys: pytest.CaptureFixture[str]
) -> None:
    runpy.run_path(str(folder / program), run_name="__main__")
    assert capsys.readouterr().out == OUTPUTS[program]
