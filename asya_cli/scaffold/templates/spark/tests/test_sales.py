import json
from pathlib import Path

import sales
from asya.testing import Mesh
from pyspark.sql import SparkSession

SAMPLE = json.loads((Path(__file__).parents[1] / "samples" / "orders.json").read_text())


def test_prices_are_added_up(asya_spark_session: SparkSession) -> None:
    checked = sales.Checked([sales.Order("NO", 1.0), sales.Order("NO", 2.0)], 2)
    assert sales.by_country(asya_spark_session, checked).sales == {"NO": 3}


def test_the_sample_passes_both_actors(asya_mesh: Mesh) -> None:
    run = asya_mesh.call("sales", SAMPLE)
    assert run.actors == ("check-orders", "sales-by-country")
    assert run.result == {"count": 3, "sales": {"NO": 20.0, "SE": 30.0}}
