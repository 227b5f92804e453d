"""Builds the package for pip: the module and the command `tickpath` by one call of Cargo, so that nothing is compiled twice.

Maturin provides the metadata, and this backend packs the files; `make wheel` builds the wheel for other hosts by maturin alone.
"""

import base64
import hashlib
import os
import shutil
import subprocess
import tempfile
import zipfile
from pathlib import Path

SCRIPTS = Path("target/wheel-data/scripts")
"""Folder of the command for maturin, as in `pyproject.toml` (`data`)."""

# maturin needs the folder at every call.
SCRIPTS.mkdir(parents=True, exist_ok=True)

import maturin  # noqa: E402
from maturin import (  # noqa: E402, F401
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

PROFILE = "pip"
"""Cargo profile, which compiles faster than `wheel`: without optimisation across crates."""

BROKERS = "TICKPATH_BROKERS"
"""Environment variable that builds NATS, RabbitMQ and Kafka in, which takes longer."""

FORMATS = "TICKPATH_FORMATS"
"""Environment variable that builds Databento's files and Parquet into the command, which takes longer."""

COMMAND = "tickpath-cli"
"""Package of the command `tickpath`."""


def build(*packages: str) -> Path:
    """Builds packages by Cargo; returns the folder of the files built."""
    names = [word for package in packages for word in ("-p", package)]
    features = [f"{package}/brokers" for package in packages if os.environ.get(BROKERS)]
    features += [f"{package}/formats" for package in packages if package == COMMAND and os.environ.get(FORMATS)]
    command = ["cargo", "build", "--profile", PROFILE, "--no-default-features", *names]
    subprocess.run([*command, "--features", ",".join(features)], check=True)
    return Path(os.environ.get("CARGO_TARGET_DIR", "target"), PROFILE)


def build_wheel(directory: str, settings: dict[str, str] | None = None, metadata: str | None = None) -> str:
    """Builds a wheel of this source for this host; returns its name."""
    built = build(COMMAND, "tickpath-python")
    with tempfile.TemporaryDirectory() as folder:
        info = Path(metadata) if metadata else Path(folder, prepare_metadata_for_build_wheel(folder, settings))
        name = info.name.removesuffix(".dist-info")
        files = {f"{info.name}/{path.relative_to(info)}": path for path in info.rglob("*") if path.is_file()}
        files |= {f"tickpath/{path.name}": path for path in Path("python/tickpath").iterdir() if path.is_file()}
        files["tickpath/_native.abi3.so"] = built / "lib_native.so"
        files[f"{name}.data/scripts/tickpath"] = built / "tickpath"
        lines = (info / "WHEEL").read_text().splitlines()
        tag = next(line.removeprefix("Tag: ") for line in lines if line.startswith("Tag: "))
        wheel = f"{name}-{tag}.whl"
        pack(Path(directory, wheel), files, f"{info.name}/RECORD")
    return wheel


def pack(wheel: Path, files: dict[str, Path], record: str) -> None:
    """Writes files and their record, as in PEP 427."""
    rows = [f"{record},,"]
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, path in sorted(files.items()):
            if name == record:
                continue
            packed.write(path, name)
            digest = hashlib.sha256(path.read_bytes()).digest()
            rows.append(f"{name},sha256={base64.urlsafe_b64encode(digest).rstrip(b'=').decode()},{path.stat().st_size}")
        packed.writestr(record, "\n".join(rows) + "\n")


def build_editable(directory: str, settings: dict[str, str] | None = None, metadata: str | None = None) -> str:
    """Builds a wheel whose Python files are those of the checkout; returns its name."""
    shutil.copy2(build(COMMAND) / "tickpath", SCRIPTS)
    return maturin.build_editable(directory, settings, metadata)
