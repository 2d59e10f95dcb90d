"""The secrets of a job: in its driver alone, and in no text (`protocol §10`)."""

import pytest

from asya_spark.secrets import Secrets
from tests.doubles.secret_stores import SecretStores
from tests.spark.job_run import Run

VALUE = "sk-4f9c81d2e6"

pytestmark = pytest.mark.spark


@pytest.fixture
def secrets(monkeypatch):
    """The secret SHOP_KEY, which is no variable after the test."""
    monkeypatch.setenv("SHOP_KEY", "")
    monkeypatch.delenv("SHOP_KEY")
    return Secrets({"SHOP_KEY": "shop/key"}, lambda _: SecretStores(secrets={"shop/key": VALUE}))


def texts(folder):
    """The text of all files that the run wrote."""
    return "".join(path.read_bytes().decode("latin-1") for path in folder.rglob("*") if path.is_file())


@pytest.mark.rule("10.secrets")
def test_10_the_driver_has_its_secrets_and_nothing_else_has(spark, tmp_path, secrets, capfd):
    """Neither the executors nor Spark's settings; errors have the name."""
    payloads = [{"do": "secret-length"}, {"do": "secret-of-executor"}, {"do": "raise-secret"}]

    done = Run(spark, tmp_path, payloads, job="by_payload", secrets=secrets)

    assert (done.payloads(0), done.payloads(1)) == ([len(VALUE)], ["unset"])
    assert done.heads[2].error.message == "401: [secret SHOP_KEY]"
    assert "ValueError: 401: [secret SHOP_KEY]" in done.heads[2].error.traceback
    settings = spark.sparkContext.getConf().getAll()
    assert VALUE not in texts(tmp_path) + str(settings) + "".join(capfd.readouterr())


@pytest.mark.rule("10.secrets.redacted")
def test_10_an_import_and_a_dataframe_job_leave_no_value(spark, tmp_path, secrets, capfd, monkeypatch):
    code = tmp_path / "code"
    code.mkdir()
    (code / "fails_at_import.py").write_text("import os\nraise ValueError('at import: ' + os.environ['SHOP_KEY'])\n")
    monkeypatch.syspath_prepend(code)
    Run(spark, tmp_path / "import", [{}], job="fails_at_import.run", secrets=secrets)
    frame = Run(spark, tmp_path / "frame", [{}, {}], job="raise_secret_frame", shape="dataframe", secrets=secrets)

    assert [head.error.message for head in frame.heads.values()] == ["401: [secret SHOP_KEY]"] * 2
    written = texts(tmp_path) + "".join(capfd.readouterr())
    assert "at import: [secret SHOP_KEY]" in written
    assert VALUE not in written


@pytest.mark.rule("10.secrets.unreadable")
def test_10_without_its_secret_the_run_ends_before_the_job_is_loaded(spark, tmp_path):
    secrets = Secrets({"SHOP_KEY": "shop/missing"}, lambda _: SecretStores())

    done = Run(spark, tmp_path, [{}, {}], job="no_such_module.run", secrets=secrets)

    assert done.heads == {}
    assert done.commit.error.type == "asya_spark.secrets.SecretError"
    assert done.commit.error.message.startswith("the secret 'shop/missing' for the variable SHOP_KEY cannot be read (")
    assert done.commit.unreached is None
