"""The YAML of a mesh file: the messages of files that cannot be read or parsed."""

from pathlib import Path

import pytest

from asya_infra.mesh_file import MeshFileError, load_mesh
from tests.unit.asya_infra.mesh_file.loading import problems_of

pytestmark = pytest.mark.usefixtures("folder")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "1: should be a mapping with `namespace` and `actors`; the file is empty"),
        ("- a\n- b\n", "1: should be a mapping with `namespace` and `actors`; got a list"),
        ("a: {b: [1, 2}\n", "1: not valid YAML: while parsing a flow sequence expected ',' or ']', but got '}'"),
        (
            "cron: * * * * *\n",
            "1: not valid YAML: while scanning an alias expected alphabetic or numeric character, but found ' '; "
            "put text that begins with * in quotes",
        ),
        ("a: 1\n---\nb: 2\n", "2: not valid YAML: expected a single document in the stream but found another document"),
        ("namespace: shop\nnamespace: other\n", "2: namespace: duplicate key, first in line 1; keep one of them"),
        ("a: &x [*x]\n", "1: not valid YAML: nested too deeply"),
        ("a: !!python/object:os.system {}\n", "1: a: unknown key"),
        ('"\\ud800": 1\n', "1: the key '\\ud800' has half of a surrogate pair, which is no character"),
        ('a:\n  "b\\udfff": 1\n', "2: a: the key 'b\\udfff' has half of a surrogate pair, which is no character"),
        ('a: ["x", "\\ud800"]\n', "1: a[1]: '\\ud800' has half of a surrogate pair, which is no character"),
    ],
)
def test_invalid_files(text: str, problem: str) -> None:
    assert problem in problems_of(text)


def test_aliases_cannot_expand_without_limit() -> None:
    levels = "".join(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]\n" for n in range(1, 12))
    assert "too many values" in problems_of(f"l0: &l0 [{', '.join('xxxxxxxxxx')}]\n{levels}")[0]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_a_file_in_the_encodings_of_windows(encoding: str) -> None:
    text = "namespace: shop\r\nactors: {a: {handler: shop.one}}\r\ntools: {tell: {description: Zoë, route: [a]}}\r\n"
    Path("mesh.yaml").write_bytes(text.encode(encoding))
    assert load_mesh(Path("mesh.yaml")).mesh.tools["tell"].description == "Zoë"
    Path("mesh.yaml").write_bytes(text.replace("route: [a]", "route: [b]").encode(encoding))
    with pytest.raises(MeshFileError, match=r"mesh.yaml:3: tools.tell.route"):
        load_mesh(Path("mesh.yaml"))


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "latin.yaml").write_bytes("namespace: caf\xe9\n".encode("latin-1"))
    for name, problem in (("none.yaml", "there is no such file"), (".", "cannot be read"), ("latin.yaml", "not UTF-8")):
        with pytest.raises(MeshFileError, match=problem):
            load_mesh(tmp_path / name)
