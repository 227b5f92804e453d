"""How often connections of redis-py were lost and made again: it does that by itself, and says nothing."""

# Of each time that a connection was made, which one it was. They are kept as long as their pool.
made: list[int] = []


def connected(connection) -> None:
    """What a connection does when its socket is there: its own work, which is counted. For `redis_connect_func`."""
    connection.on_connect()
    made.append(id(connection))


def reconnects() -> int:
    return len(made) - len(set(made))
