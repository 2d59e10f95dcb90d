"""A function and its layers together may have 250 MB unzipped."""

from pathlib import Path
from typing import Any

from asya_infra.limits.gate import check_assets

MEGABYTE = 1024 * 1024


def asset(folder: Path, name: str, megabytes: int) -> str:
    (folder / name).mkdir()
    with (folder / name / "package.so").open("wb") as file:
        file.truncate(megabytes * MEGABYTE)  # sparse: it takes no space
    return name


def template(layer: str, code: str) -> dict[str, dict[str, Any]]:
    path = {"aws:cdk:path": "S/score/Function/Resource"}
    return {
        "S": {
            "Resources": {
                "Layer": {"Type": "AWS::Lambda::LayerVersion", "Properties": {}, "Metadata": {"aws:asset:path": layer}},
                "Function": {
                    "Type": "AWS::Lambda::Function",
                    "Properties": {"Layers": [{"Ref": "Layer"}, "arn:aws:lambda:eu-central-1:1:layer:other:1"]},
                    "Metadata": {"aws:asset:path": code} | path,
                },
            }
        }
    }


def test_code_and_layers_count_together(tmp_path: Path) -> None:
    layer = asset(tmp_path, "layer", 20)
    assert list(check_assets(tmp_path, template(layer, asset(tmp_path, "fits", 230)))) == []
    (violation,) = check_assets(tmp_path, template(layer, asset(tmp_path, "large", 231)))
    assert str(violation).startswith(f"S/score/Function: {251 * MEGABYTE:,} bytes of a function's code and layers")
    assert "large files into a bucket" in str(violation)
    assert "Its largest files are package.so (242 MB)." in str(violation)
