"""Functions each call of which is a sample of a hop."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

from ._native import Hop, now


def timed(hop: Hop, function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the function, timed; a coroutine function is timed from its first step to its end, awaits included."""
    if not callable(function) or isinstance(function, type):
        raise TypeError(f"a hop decorates functions, and {function!r} is not one; put `with hop:` around the code to time")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        reason = f"{function.__qualname__} is a generator, whose body runs after the call"
        raise TypeError(f"{reason}; put `with hop:` into it, around the code between two yields")
    if inspect.iscoroutinefunction(function):

        @wraps(function)
        async def awaited(*arguments: Any, **named: Any) -> Any:
            # No block of the hop, since other tasks of this thread run within it.
            begun = now()
            try:
                return await function(*arguments, **named)
            finally:
                hop.since(begun)

        return awaited

    @wraps(function)
    def called(*arguments: Any, **named: Any) -> Any:
        with hop:
            return function(*arguments, **named)

    return called
