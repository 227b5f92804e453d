"""Builds the package for pip: as maturin does, with the command `tickpath` in it."""

import os
import shutil
import subprocess
from pathlib import Path

import maturin
from maturin import (  # noqa: F401
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

SCRIPTS = Path("target/wheel-data/scripts")
"""Where `pyproject.toml` has maturin look (`data`)."""

# maturin wants the folder before it is asked for anything.
SCRIPTS.mkdir(parents=True, exist_ok=True)

PROFILE = "pip"
"""How Cargo compiles: in a third of the time that the wheel for other hosts takes."""


def build_command(*arguments: str) -> None:
    """Builds the command, and puts it where the wheel takes it from."""
    subprocess.run(["cargo", "build", "--profile", PROFILE, "-p", "tickpath-cli", *arguments], check=True)
    shutil.copy2(Path(os.environ.get("CARGO_TARGET_DIR", "target"), PROFILE, "tickpath"), SCRIPTS)


def build_wheel(directory: str, settings: dict[str, str] | None = None, metadata: str | None = None) -> str:
    """A wheel of what is here, for this host."""
    build_command()
    os.environ.setdefault("MATURIN_PEP517_ARGS", f"--profile {PROFILE}")
    return maturin.build_wheel(directory, settings, metadata)


def build_editable(directory: str, settings: dict[str, str] | None = None, metadata: str | None = None) -> str:
    """A wheel whose Python files are those of the checkout."""
    build_command()
    return maturin.build_editable(directory, settings, metadata)
