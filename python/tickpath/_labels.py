"""Labels of rows, made from the fields and settings that differ among the rows."""

import json
from collections.abc import Sequence
from typing import Any

from ._rows import Row

_FIELDS = ("hop", "target", "client", "phase", "layout")


def labels(rows: Sequence[Row]) -> list[str]:
    """Returns a label for each row: the fields and settings that differ among the rows, or the target if none differs.
    """
    texts = [_texts(row) for row in rows]
    # A row without a setting does not make that setting differ.
    fields = dict.fromkeys(field for row in texts for field in row)
    kept = [field for field in fields if len({row[field] for row in texts if field in row}) > 1]
    # The repetition is last: only rows that are equal otherwise need it.
    kept.sort(key=lambda field: field == "repeat")
    distinct = _count_distinct(texts, kept)
    # Fields that distinguish no further rows are left out, from the last one on.
    for field in reversed(kept):
        others = [other for other in kept if other != field]
        if _count_distinct(texts, others) == distinct:
            kept = others
    joined = (", ".join(row[field] for field in kept if field in row) for row in texts)
    return [label or row.target for label, row in zip(joined, rows, strict=True)]


def _texts(row: Row) -> dict[str, str]:
    """Returns the fields and settings of a row as texts, in the order of a label."""
    texts = {field: str(getattr(row, field)) for field in _FIELDS if getattr(row, field)}
    if row.batch:
        texts["batch"] = f"batch {row.batch}"
    texts |= {f"params.{name}": f"{name} {_text(value)}" for name, value in row.params.items()}
    return {**texts, "repeat": f"#{row.repeat}"}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _count_distinct(texts: Sequence[dict[str, str]], fields: Sequence[str]) -> int:
    return len({tuple(row.get(field) for field in fields) for row in texts})
