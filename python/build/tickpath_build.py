"""Builds the package for pip: the module and the command `tickpath` by one call of Cargo, so that nothing is compiled twice.

`make wheel` makes the wheel for other hosts, by maturin alone. Here maturin knows the metadata, and this packs the files."""

import base64
import hashlib
import os
import shutil
import subprocess
import tempfile
import zipfile
from pathlib import Path

SCRIPTS = Path("target/wheel-data/scripts")
"""Where `pyproject.toml` has maturin look (`data`)."""

# maturin wants the folder before it is asked for anything.
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
"""How Cargo compiles: quicker than `wheel`, which optimises across crates, too."""

BROKERS = "TICKPATH_BROKERS"
"""With this in the environment NATS, RabbitMQ and Kafka are built in, which takes longer."""


def build(*packages: str) -> Path:
    """Has Cargo build packages; gives the folder where they are."""
    names = [word for package in packages for word in ("-p", package)]
    features = [f"{package}/brokers" for package in packages if os.environ.get(BROKERS)]
    command = ["cargo", "build", "--profile", PROFILE, "--no-default-features", *names]
    subprocess.run([*command, "--features", ",".join(features)], check=True)
    return Path(os.environ.get("CARGO_TARGET_DIR", "target"), PROFILE)


def build_wheel(directory: str, settings: dict[str, str] | None = None, metadata: str | None = None) -> str:
    """A wheel of what is here, for this host."""
    built = build("tickpath-cli", "tickpath-python")
    with tempfile.TemporaryDirectory() as folder:
        told = Path(metadata) if metadata else Path(folder, prepare_metadata_for_build_wheel(folder, settings))
        name = told.name.removesuffix(".dist-info")
        files = {f"{told.name}/{path.relative_to(told)}": path for path in told.rglob("*") if path.is_file()}
        files |= {f"tickpath/{path.name}": path for path in Path("python/tickpath").iterdir() if path.is_file()}
        files["tickpath/_native.abi3.so"] = built / "lib_native.so"
        files[f"{name}.data/scripts/tickpath"] = built / "tickpath"
        words = (told / "WHEEL").read_text().splitlines()
        tag = next(line.removeprefix("Tag: ") for line in words if line.startswith("Tag: "))
        wheel = f"{name}-{tag}.whl"
        pack(Path(directory, wheel), files, f"{told.name}/RECORD")
    return wheel


def pack(wheel: Path, files: dict[str, Path], record: str) -> None:
    """Writes files and the record of them, as PEP 427 has it."""
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
    """A wheel whose Python files are those of the checkout."""
    shutil.copy2(build("tickpath-cli") / "tickpath", SCRIPTS)
    return maturin.build_editable(directory, settings, metadata)
