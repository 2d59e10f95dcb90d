"""The app as the CDK's command runs it: errors without tracebacks."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from aws_cdk import App

import app
from asya_infra.assembly import Findings
from asya_infra.mesh_file import load_mesh
from asya_infra.options import OptionError
from asya_infra.synthesis import add_mesh
from tests.paths import PROJECT


def test_an_invalid_mesh_file_prints_its_problems(tmp_path: Path) -> None:
    (tmp_path / "functions" / "handlers").mkdir(parents=True)
    (tmp_path / "mesh.yaml").write_text(
        "namespace: shop\nactors:\n  a:\n    handler: orders.score\n    timeot: 3s\ntools:\n  t: {route: [a, b]}\n"
    )
    environment = {key: value for key, value in os.environ.items() if not key.startswith("AWS_")}
    environment |= {"CDK_CONTEXT_JSON": json.dumps({"mesh": str(tmp_path / "mesh.yaml")})}
    environment |= {"CDK_OUTDIR": str(tmp_path / "out")}
    command = [sys.executable, str(PROJECT / "app.py")]
    result = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, check=False)
    assert result.returncode == 1
    assert result.stderr.replace(f"{tmp_path}/", "").splitlines() == [
        "mesh.yaml:4: actors.a.handler: there is no module 'orders' in functions/handlers",
        "mesh.yaml:5: actors.a.timeot: unknown key; did you mean 'timeout'?",
        "mesh.yaml:7: tools.t.route[1]: there is no actor 'b'",
    ]
    assert not list(tmp_path.glob("out/*.template.json"))


def test_synthesis_prints_and_writes_what_it_finds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    mesh = SimpleNamespace(loaded=load_mesh(PROJECT / "mesh.yaml"))
    monkeypatch.setattr(app, "add_mesh", lambda *_: mesh)
    monkeypatch.setattr(app, "check_mesh", lambda *_: ["queues"])
    monkeypatch.setattr(app, "App", lambda: App(outdir=str(tmp_path)))
    app.main()
    printed = capsys.readouterr().err
    assert f"{PROJECT / 'mesh.yaml'}: operators: " in printed
    assert "beyond the default quota of an account: queues" in printed
    assert Findings.read(tmp_path) == Findings(("beyond the default quota of an account: queues",))


def test_an_issuer_of_this_machine_is_for_a_stage_of_the_local_cloud(tmp_path: Path) -> None:
    (tmp_path / "functions" / "handlers").mkdir(parents=True)
    (tmp_path / "functions" / "handlers" / "shop.py").write_text("def one(payload): return payload\n")
    (tmp_path / "mesh.yaml").write_text(
        "namespace: shop\nactors:\n  d: {handler: shop.one}\ngateway: {jwt: {issuer: https://who, audience: us}}\n"
        "stages:\n  local: {gateway: {jwt: {issuer: http://127.0.0.1:1}}}\n  prod: {}\n"
    )
    local = add_mesh(App(context={"mesh": "mesh.yaml", "stage": "local", "layer_target": "local"}), tmp_path)
    assert local.file.gateway.jwt is not None
    assert local.file.gateway.jwt.issuer == "http://127.0.0.1:1"
    with pytest.raises(OptionError, match=r"API Gateway needs TLS.*stages\.local\.gateway\.jwt"):
        add_mesh(App(context={"mesh": "mesh.yaml", "stage": "local"}), tmp_path)


def test_an_invalid_option(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="-c layer_target=docker: should be lambda or local"):
        add_mesh(App(context={"layer_target": "docker"}), tmp_path)
