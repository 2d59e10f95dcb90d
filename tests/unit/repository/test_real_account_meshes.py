"""The meshes of `scripts/real-account-smoke --all`: they have every risky option, and the mesh file takes them."""

import json
from pathlib import Path
from typing import Any

import pytest

from asya_infra.mesh_file.load import load_mesh
from tests.real_account.meshes import MESHES, document, is_allowed, main, plan
from tests.real_account.options import BASE, RISKS, UNREACHABLE, set_in, settings

GIVEN: dict[str, Any] = {
    "boundary": "team/boundary",
    "data_bucket": "lake",
    "email": "ops@example.org",
    "issuer": "https://login.example.com/",
    "kms_key": "arn:aws:kms:eu-west-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab",
    "security_groups": ["sg-0123456789abcdef0"],
    "subnets": ["subnet-0aaaaaaaaaaaaaaaa", "subnet-0bbbbbbbbbbbbbbbb"],
}
"""An account that has everything."""
FULL, BARE = plan(GIVEN), plan({})


def test_each_option_of_the_mesh_file_is_tried_or_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The options are those of the pairwise meshes, so a new key is named without an edit."""
    main([str(tmp_path)])
    told = capsys.readouterr().out
    named = set(told.partition("not set in any mesh: ")[2].partition("\n")[0].split(", "))
    tried = set_in(BASE).union(*(set_in(risk.document) for risk in RISKS))
    assert "telemetry.collector: a layer with a collector" in told
    assert not tried & (named | UNREACHABLE.keys())
    rest = settings() - tried - named - UNREACHABLE.keys()
    assert [name for name in rest if not any(name.startswith(f"{other}.") for other in named)] == []


def test_what_risks_need_and_exclude_are_risks() -> None:
    names = {risk.name for risk in RISKS}
    assert {each for risk in RISKS for each in (*risk.excludes, *([risk.after] if risk.after else []))} <= names
    assert {value for risk in RISKS for value in risk.account} == GIVEN.keys()


@pytest.mark.parametrize("found", [FULL, BARE], ids=["with everything", "with nothing"])
def test_each_option_is_in_a_mesh_and_missing_in_another(found: Any) -> None:
    possible = {risk.name for risk in RISKS} - found.left_out.keys()
    assert len(found.meshes) == MESHES
    assert frozenset().union(*found.meshes) == possible
    assert frozenset.intersection(*found.meshes) == frozenset()
    assert all(is_allowed(choice, RISKS) for choice in (*found.meshes, *found.changes))


@pytest.mark.parametrize("found", [FULL, BARE], ids=["with everything", "with nothing"])
def test_most_pairs_of_options_meet(found: Any) -> None:
    """Four meshes have four of the combinations of two options at most, and others need a mesh each."""
    assert found.covered / found.pairs > 0.7


def test_each_change_takes_one_option_out_or_puts_one_in_and_they_differ() -> None:
    steps = [(mesh - changed, changed - mesh) for mesh, changed in zip(FULL.meshes, FULL.changes, strict=True)]
    assert all(len(out) == 1 and len(more) <= 1 for out, more in steps)
    assert len({out for out, _ in steps}) == MESHES


def test_an_option_without_its_values_is_left_out_and_told(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    main([str(tmp_path)])
    told = capsys.readouterr().out
    assert "  VPC: needs --set subnets=… and --set security_groups=…" in told
    assert f"{BARE.covered} of {BARE.pairs} pairs of options" in told
    assert "VPC" not in told.partition("not shown")[0]
    assert {path.name for path in tmp_path.iterdir()} == {
        f"{number}{suffix}.yaml" for number in range(1, MESHES + 1) for suffix in ("", "-changed")
    }


@pytest.mark.parametrize("text", ["kms=arn", "kms_key", "kms_key="])
def test_a_wrong_value_is_refused(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([str(tmp_path / "none"), text])
    assert "is no value of the account" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("found", [FULL, BARE], ids=["with everything", "with nothing"])
def test_the_mesh_file_takes_each_mesh_before_and_after_its_change(found: Any, tmp_path: Path) -> None:
    for number, choices in enumerate(zip(found.meshes, found.changes, strict=True)):
        for choice in choices:
            path = tmp_path / "mesh.yaml"
            path.write_text(json.dumps(document(choice, f"all{number}", GIVEN)))
            assert load_mesh(path, "smoke").mesh.namespace == f"all{number}"
