"""Python reads this file at its start, because its folder stands first in PYTHONPATH: the scripts stay as they are."""

import os
import sys

import tickpath_hook

tickpath_hook.start()


def run_hidden_one() -> None:
    """Runs the sitecustomize that this one hides, if there is one."""
    from importlib.machinery import PathFinder

    here = os.path.dirname(os.path.abspath(__file__))
    others = [folder for folder in sys.path if os.path.abspath(folder) != here]
    spec = PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        from importlib.util import module_from_spec

        module = module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


run_hidden_one()
