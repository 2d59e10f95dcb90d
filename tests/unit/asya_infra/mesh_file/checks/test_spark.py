"""Heavy actors and the Spark application: the messages of values that EMR Serverless does not take."""

from pathlib import Path

import pytest

from tests.unit.asya_infra.mesh_file.loading import heavy_actor_problems

pytestmark = pytest.mark.usefixtures("folder")


@pytest.mark.parametrize(
    ("keys", "spark", "more", "problem"),
    [
        ("batch: {window: 901s}", "", "", "4: actors.a.batch.window: should be at most 900s for a heavy actor"),
        ("timeout: 7h", "", "", "4: actors.a.timeout: is longer than the time limit of a job run (spark.max_run, 6h)"),
        (
            "fair_by: tenant",
            "isolation: tenant",
            "",
            "4: actors.a.spark.isolation: needs fair_by: owner, which names the proven tenant; set it too",
        ),
        (
            "",
            "isolation: envelope, parallel: 2",
            "",
            "4: actors.a.spark.parallel: has no effect with isolation: envelope, whose runs have one envelope; remove it",
        ),
        (
            "",
            "isolation: envelope, linger: 5m",
            "",
            "4: actors.a.spark.linger: has no effect with isolation: envelope, whose drivers take no further batch; remove it",
        ),
        (
            "",
            "size_by: /rows",
            "",
            "4: actors.a.spark.size_by: selects among sizes, and there are none; add sizes, or remove this key",
        ),
        ("", "sizes: {s: {}}", "", "4: actors.a.spark.sizes: should have 2 to 8 sizes; got 1"),
        (
            "",
            "size_by: rows, sizes: {s: {}, l: {}}",
            "",
            "4: actors.a.spark.size_by: 'rows' is not a JSON pointer: it starts with '/'",
        ),
        (
            "",
            "sizes: {s: {up_to: 1}, l: {}}",
            "",
            "4: actors.a.spark.sizes.s.up_to: needs size_by, a JSON pointer into the payload",
        ),
        (
            "",
            "size_by: /rows, sizes: {s: {}, l: {}}",
            "",
            "4: actors.a.spark.sizes.s: needs up_to, the largest value at /rows that has this size",
        ),
        (
            "",
            "size_by: /rows, sizes: {s: {up_to: 9}, m: {up_to: 9}, l: {}}",
            "",
            "4: actors.a.spark.sizes.m.up_to: should be more than that of the size before (9)",
        ),
        (
            "",
            "size_by: /rows, sizes: {s: {up_to: 9}, l: {up_to: 10}}",
            "",
            "4: actors.a.spark.sizes.l.up_to: is that of the last size, which has all larger values; remove it",
        ),
        (
            "",
            "sizes: {S_1: {}, l: {}}",
            "",
            "4: actors.a.spark.sizes.S_1: should be a name of 1 to 20 lowercase letters, digits and -",
        ),
        (
            "",
            "sizes: {s: {}, l: {driver: {memory: 8g}}}",
            "",
            "4: actors.a.spark.sizes.l.driver.memory: 8192 MB + 819 MB overhead exceeds the 8192 MB of a worker with 1 cores",
        ),
        (
            "",
            "driver: {memory: 8g}, sizes: {s: {driver: {memory: 4g}}, m: {}, l: {}}",
            "",
            "4: actors.a.spark.driver.memory: 8192 MB + 819 MB overhead exceeds the 8192 MB of a worker with 1 cores",
        ),
        (
            "",
            "sizes: {s: {}, l: {executors: {cores: 16, memory: 32g}}}",
            "",
            "4: actors.a.spark.sizes.l.executors: a job run needs 17 vCPU to start, but the application has 16 "
            "(spark.application.max_vcpu)",
        ),
        (
            "",
            "sizes: {s: {}, l: {conf: {spark.executor.cores: 2}}}",
            "",
            "4: actors.a.spark.sizes.l.conf.spark.executor.cores: has a key of its own; set executors.cores instead",
        ),
        ("", "executors: {min: 3, max: 2}", "", "4: actors.a.spark.executors.min: is more than max (2)"),
        (
            "",
            "driver: {memory: 8g}",
            "",
            "4: actors.a.spark.driver.memory: 8192 MB + 819 MB overhead exceeds the 8192 MB of a worker with 1 cores",
        ),
        (
            "",
            "py_files: [x.zip]",
            "",
            "4: actors.a.spark.py_files[0]: should be an s3:// address; got 'x.zip'; put code into the jobs folder instead",
        ),
        (
            "",
            "executors: {cores: 4, memory: 2g}",
            "spark: {application: {max_vcpu: 4, max_memory: 64g}}",
            "4: actors.a.spark.executors: a job run needs 5 vCPU to start, but the application has 4 "
            "(spark.application.max_vcpu)",
        ),
        (
            "",
            "",
            "spark: {application: {id: 00abc, release: emr-spark-8.1.0}}",
            "5: spark.application.release: conflicts with id: an existing application has its own settings; remove this key",
        ),
        (
            "",
            "executors: {cores: 4}",
            "spark: {application: {id: 00abc, max_vcpu: 4, max_memory: 64g}}",
            "4: actors.a.spark.executors: a job run needs 5 vCPU to start, but the application has 4 "
            "(spark.application.max_vcpu)",
        ),
        (
            "",
            "executors: {memory: 6g}",
            "spark: {application: {max_memory: 8g}}",
            "4: actors.a.spark.executors: a job run needs 10 GB of memory to start, but the application has 8 GB "
            "(spark.application.max_memory)",
        ),
        (
            "",
            "executors: {min: 16, max: 20}",
            "",
            "4: actors.a.spark.executors: a job run needs 17 vCPU to start, but the application has 16 "
            "(spark.application.max_vcpu)",
        ),
        (
            "",
            "executors: {cores: 4, max: 1}",
            "spark: {application: {warm: {drivers: 1, executors: 4}}}",
            "5: spark.application.warm: needs 17 vCPU and 35 GB, because each warm worker fits the largest job, but the "
            "application has 16 vCPU and 128 GB; raise max_vcpu or max_memory",
        ),
        ("", "max_run: 8d", "", "4: actors.a.spark.max_run: should be at most 7d, the limit of EMR Serverless"),
        (
            "",
            'executors: {memory: 4g}, conf: {spark.executor.memoryOverhead: "5g"}',
            "",
            "4: actors.a.spark.executors.memory: 4096 MB + 5120 MB overhead exceeds the 8192 MB of a worker with 1 cores",
        ),
        (
            "",
            'driver: {memory: 6g}, conf: {spark.driver.memoryOverheadFactor: "0.5"}',
            "",
            "4: actors.a.spark.driver.memory: 6144 MB + 3072 MB overhead exceeds the 8192 MB of a worker with 1 cores",
        ),
        (
            "",
            "conf: {spark.dynamicAllocation.maxExecutors: 40}",
            "",
            "4: actors.a.spark.conf.spark.dynamicAllocation.maxExecutors: has a key of its own; set executors.max instead",
        ),
        (
            "",
            "executors: {max: 2}, conf: {spark.dynamicAllocation.initialExecutors: 3}",
            "",
            "4: actors.a.spark.conf.spark.dynamicAllocation.initialExecutors: is more than executors.max (2), which EMR "
            "Serverless refuses; lower it, or raise executors.max",
        ),
        (
            "",
            "executors: {max: 20}, conf: {spark.dynamicAllocation.initialExecutors: 16}",
            "",
            "4: actors.a.spark.conf.spark.dynamicAllocation.initialExecutors: is more than the 15 executors that fit into the "
            "application, to which executors.max is clamped; lower it, or raise spark.application.max_vcpu or max_memory",
        ),
        (
            "",
            "conf: {spark.dynamicAllocation.initialExecutors: few}",
            "",
            "4: actors.a.spark.conf.spark.dynamicAllocation.initialExecutors: should be a whole number; got 'few'",
        ),
        (
            "",
            "conf: {spark.master: yarn}",
            "",
            "4: actors.a.spark.conf.spark.master: is set by EMR Serverless, which places the driver and its executors; remove it",
        ),
        (
            "",
            "conf: {spark.submit.deployMode: cluster}",
            "",
            "4: actors.a.spark.conf.spark.submit.deployMode: is set by EMR Serverless, which places the driver and its executors; "
            "remove it",
        ),
        (
            "",
            'driver: {memory: 6g}, conf: {spark.emr-serverless.memoryOverheadFactor: "0.5"}',
            "",
            "4: actors.a.spark.driver.memory: 6144 MB + 3072 MB overhead exceeds the 8192 MB of a worker with 1 cores",
        ),
        (
            "access: [{bucket: data, read: [lib/*]}]",
            'conf: {spark.jars: "s3://my-jars/a.jar"}',
            "",
            "4: actors.a.spark.conf.spark.jars: the job may not read s3://my-jars/a.jar; add to access: "
            '{bucket: my-jars, read: ["a.jar"]}',
        ),
    ],
)
def test_a_heavy_actor(keys: str, spark: str, more: str, problem: str) -> None:
    assert heavy_actor_problems(keys, spark, more) == [problem]


@pytest.mark.parametrize(
    ("access", "more", "address"),
    [
        ("{bucket: my-jars, read: [lib/*]}", "", "s3://my-jars/lib/a.jar"),
        ("{bucket: data, read: [lib/*]}", "storage: {data_bucket: shop-data}", "s3://shop-data/lib/a.jar"),
        ("{bucket: data, read: [lib/*]}", "", "s3://asya-shop-123456789012-eu-central-1/data/lib/a.jar"),
        ("{statement: {Effect: Allow, Action: 's3:GetObject', Resource: '*'}}", "", "s3://my-jars/a.jar"),
        ("{bucket: my-jars, read: [lib/*]}", "", "local:///usr/lib/a.jar"),
    ],
)
def test_a_jar_that_the_actor_may_read(access: str, more: str, address: str) -> None:
    assert heavy_actor_problems(f"access: [{access}]", f"conf: {{spark.jars: '{address}'}}", more) == []


def test_an_index_that_does_not_fit() -> None:
    small = "driver: {memory: 1g}, executors: {memory: 1g}"
    assert heavy_actor_problems("", small, "sink: {index: false}\nspark: {application: {max_memory: 5g}}") == []
    assert heavy_actor_problems("", small, "spark: {application: {max_memory: 5g}}") == [
        "5: spark.application: has no room for one job run of x-index, which needs 2 vCPU and 6 GB; "
        "raise max_vcpu or max_memory"
    ]


def test_iceberg_needs_a_catalog() -> None:
    problem = "needs catalog: glue beside it: without a catalog, Iceberg loses commits of several writers on S3; set catalog: glue"
    assert heavy_actor_problems("", "tables: iceberg") == [f"4: actors.a.spark.tables: {problem}"]
    assert heavy_actor_problems("", "", "spark: {tables: iceberg}") == [f"5: spark.tables: {problem}"]
    assert heavy_actor_problems("", "catalog: none", "spark: {catalog: glue, tables: iceberg}") == [
        f"4: actors.a.spark.tables: {problem}"
    ]
    assert heavy_actor_problems("", "", "spark: {catalog: glue, tables: iceberg}") == []


def test_a_heavy_actor_may_take_long_and_many() -> None:
    assert heavy_actor_problems("timeout: 30m, batch: {size: 10000, window: 5m}") == []


@pytest.mark.rule("10.parallel")
@pytest.mark.parametrize(("parallel", "is_refused"), [(1, False), (2, True)])
def test_10_envelopes_at_work_at_the_same_time_may_not_change_their_process(parallel: int, is_refused: bool) -> None:
    Path("spark_jobs/heavy.py").write_text("import os\ndef crunch(spark, payload):\n    os.environ['A'] = 'b'\n")
    found = heavy_actor_problems("", f"parallel: {parallel}")
    assert (
        found
        == [
            "4: actors.a.spark.parallel: spark_jobs/heavy.py:3 changes os.environ, which the envelopes at work at the same "
            "time share; set it for all of them, in env or spark.conf of the actor or outside of functions, or remove this key"
        ]
        * is_refused
    )
