"""Imports of optional packages."""

from importlib import import_module
from typing import Any


def optional(module: str) -> Any:
    """Imports a module of an optional package. ImportError: names the package to install."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        if error.name != package:
            raise
        raise ImportError(f"{package} is not installed; install it with: pip install {package}", name=package) from None
