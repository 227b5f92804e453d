"""Recordings and journals as tables for polars, pyarrow, pandas and duckdb, and errors about invalid ones."""

import re
import shutil
import struct
import subprocess
import sys
import time
import warnings
from decimal import Decimal
from importlib import import_module
from os import environ
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import tickpath as tp
from conftest import Place
from tickpath import lab

pa: Any = import_module("pyarrow")

REPOSITORY = Path(__file__).parents[2]
REAL = shutil.which(environ.get("TICKPATH", ""))
"""The real command, as named in the environment."""

KIND = 200
TICK = tp.TopOfBook(tp.units("64000.25"), tp.units(1), tp.units("64000.5"), tp.units("2.5"), event_ns=7, symbol=3)
TRADE = tp.Trade(tp.units("-0.00000001"), tp.units("0.1"), trade_id=9, symbol=3, aggressor=2)


def loss(missed: int) -> bytes:
    """Returns the payload by which a recording notes a loss."""
    return b"TICKGAP1" + missed.to_bytes(8, "little")


def record(folder: Path, *messages: tuple[Any, int | None], topic: str = "ticks") -> tp.Recording:
    """Records these messages, each with its kind."""
    with tp.connect(f"file://{folder}") as bus, bus.publisher(topic, "keep") as publisher:
        for data, kind in messages:
            publisher.publish(data, kind)
    return tp.recording(f"file://{folder}", topic)


def mappings(folder: Path) -> int:
    """Returns the number of mapped files of this folder."""
    return Path("/proc/self/maps").read_text().count(str(folder))


def test_recording_has_a_table_for_each_kind(tmp_path: Path) -> None:
    begun = tp.now()
    found = record(tmp_path, (TICK, None), (b"any\0thing", KIND), (TRADE, None), (loss(3), 255), (loss(0), 255))
    assert (found.place, repr(found)) == (f"file://{tmp_path}/ticks", f"Recording(file://{tmp_path}/ticks)")
    assert repr(found.trades) == f"Table(trades of file://{tmp_path}/ticks)"

    ticks = pl.DataFrame(found.tops_of_book)
    moment = pl.Datetime("ns", "UTC")
    expected: dict[str, Any] = {"sequence": pl.UInt64, "stamp": pl.UInt64, "time": moment, "symbol": pl.UInt32}
    expected |= dict.fromkeys(["bid", "bid_quantity", "ask", "ask_quantity"], pl.Decimal(19, 8))
    assert dict(ticks.schema) == {**expected, "event_time": moment, "wire_age_ns": pl.UInt32}
    row = ticks.row(0, named=True)
    assert (row["bid"], row["ask_quantity"], row["symbol"]) == (Decimal("64000.25"), Decimal("2.5"), 3)
    assert begun <= row["stamp"] <= tp.now()
    assert ticks["event_time"].to_physical().to_list() == [7]
    assert abs(ticks["time"].to_physical()[0] - time.time_ns()) < 60_000_000_000

    trades = pl.DataFrame(found.trades)
    assert trades.columns[3:] == ["symbol", "price", "quantity", "aggressor", "trade_id", "event_time"]
    assert trades.row(0)[3:] == (3, Decimal("-0.00000001"), Decimal("0.1"), "sell", 9, None)
    messages = pl.DataFrame(found.messages)
    assert messages.select("sequence", "kind", "payload").rows() == [(1, KIND, b"any\0thing")]
    assert pl.DataFrame(found.gaps).select("sequence", "missed").rows() == [(3, 3), (4, None)]


def test_times_match_the_stamps(tmp_path: Path) -> None:
    first = tp.now()
    with tp.connect(f"file://{tmp_path}") as bus, bus.publisher("ticks", "keep") as publisher:
        for later in (0, 1_000, 5_000_000_000):
            publisher.publish(b"x", KIND, stamp=first + later)
    messages = pl.DataFrame(tp.recording(f"file://{tmp_path}", "ticks").messages)
    stamps, moments = messages["stamp"].to_list(), messages["time"].to_physical().to_list()
    assert stamps == [first, first + 1_000, first + 5_000_000_000]
    for stamp, moment in zip(stamps, moments, strict=True):
        assert abs(moment - moments[0] - tp.ns_between(first, stamp)) <= 1


def test_long_recording_is_read_in_batches(tmp_path: Path) -> None:
    count, batch = 70_000, np.zeros(1_000, tp.TOP_OF_BOOK)
    with tp.connect(f"file://{tmp_path}") as bus, bus.publisher("ticks", "keep") as publisher:
        for begin in range(0, count, len(batch)):
            batch["bid"] = np.arange(begin, begin + len(batch))
            publisher.publish_batch(batch)
    table = tp.recording(f"file://{tmp_path}", "ticks").tops_of_book
    batches = list(pa.RecordBatchReader.from_stream(table))
    assert [len(one) for one in batches] == [65_536, count - 65_536]
    frame = pl.DataFrame(table)
    assert frame["sequence"].to_list() == list(range(count))
    assert frame["bid"][count - 1] == tp.decimal(count - 1)


def test_pyarrow_pandas_and_duckdb_read_a_table(tmp_path: Path) -> None:
    trades = record(tmp_path, *[(TRADE, None)] * 3).trades
    table = pa.table(trades)
    assert table.schema == pa.schema(trades)
    assert table.schema.field("price").type == pa.decimal128(19, 8)
    assert str(table.schema.field("time").type) == "timestamp[ns, tz=UTC]"
    assert [field.name for field in table.schema if field.nullable] == ["aggressor", "event_time"]
    assert table["quantity"].to_pylist() == [Decimal("0.1")] * 3
    pandas: Any = import_module("pandas").DataFrame.from_arrow(trades)
    assert list(pandas["trade_id"]) == [9] * 3
    duckdb: Any = import_module("duckdb")
    counted = duckdb.sql("SELECT count(*), sum(quantity) FROM trades")
    assert counted.fetchall() == [(3, Decimal("0.3"))]


def test_table_is_read_anew_up_to_the_end_of_the_log(tmp_path: Path) -> None:
    with tp.connect(f"file://{tmp_path}") as bus, bus.publisher("ticks", "keep") as publisher:
        publisher.publish(b"1", KIND)
        table = tp.recording(f"file://{tmp_path}", "ticks").messages
        assert pl.DataFrame(table)["payload"].to_list() == [b"1"]
        half = pa.RecordBatchReader.from_stream(table)
        publisher.publish(b"2", KIND)
        assert half.read_all()["payload"].to_pylist() == [b"1"]
        assert pl.DataFrame(table)["payload"].to_list() == [b"1", b"2"]


def test_a_table_without_rows_has_its_columns(tmp_path: Path) -> None:
    found = record(tmp_path, (b"x", KIND))
    for table, name in ((found.trades, "price"), (found.gaps, "missed")):
        frame = pl.DataFrame(table)
        assert frame.height == 0 and name in frame.columns
        assert pa.table(table).num_rows == 0


def test_streams_are_released(tmp_path: Path) -> None:
    # Published by another process, since a helper thread of a closed publisher may still map a segment.
    script = "import sys, tickpath as tp\nwith tp.connect(sys.argv[1]) as bus, bus.publisher('ticks', 'keep') as to: to.publish(b'x', 200)"
    subprocess.run([sys.executable, "-c", script, f"file://{tmp_path}"], check=True, timeout=60)
    table = tp.recording(f"file://{tmp_path}", "ticks").messages
    assert mappings(tmp_path) == 0, "an unread table maps no file"
    capsule = table.__arrow_c_stream__(table.__arrow_c_schema__())
    assert mappings(tmp_path) > 0
    del capsule
    assert mappings(tmp_path) == 0, "the capsule is dropped"
    read = pa.table(table)
    assert mappings(tmp_path) == 0, "the stream is read to its end"
    assert read.num_rows == 1


def test_live_topic_is_read_up_to_its_present_end(log: Place) -> None:
    with log.bus.publisher(log.name, "overwrite", capacity=1 << 15) as publisher:
        publisher.publish(TICK)
        found = tp.recording("shm://", log.name)
        assert pl.DataFrame(found.tops_of_book).height == 1
        late = pa.RecordBatchReader.from_stream(found.tops_of_book)
        for _ in range(10_000):
            publisher.publish(TICK)
        with pytest.raises(OSError, match="messages of this live topic were overwritten before they were read; record it"):
            late.read_all()
        with pytest.raises(OSError, match="overwritten"):
            early = pa.RecordBatchReader.from_stream(found.messages)
            for _ in range(10_000):
                publisher.publish(TICK)
            early.read_all()


def test_rows_before_damage_are_read_and_the_damage_is_reported(tmp_path: Path) -> None:
    found = record(tmp_path, (b"the first one", KIND), (b"the second one", KIND))
    data = tmp_path / "ticks" / "data"
    raw = bytearray(data.read_bytes())
    raw[raw.index(b"the second one")] ^= 1
    data.write_bytes(raw)
    reader = pa.RecordBatchReader.from_stream(found.messages)
    assert reader.read_next_batch()["payload"].to_pylist() == [b"the first one"]
    with pytest.raises(OSError, match=f"{tmp_path}/ticks: damaged at sequence 1.*Restore it from a copy"):
        reader.read_next_batch()
    with pytest.raises(Exception, match="damaged at sequence 1"):
        pl.DataFrame(found.messages)


@pytest.mark.parametrize(
    ("url", "topic", "sentence"),
    [
        ("file://{}", "tick", "/tick does not exist.*; the folder has ticks, trades$"),
        ("shm://", "nobody-has-published-this", "shm://nobody-has-published-this does not exist: no writer has made it, or its files were removed"),
        ("file://{}", "none", "none is damaged or no log: it does not start like a Tickpath log"),
        ("file://{}", "a/b", "'a/b' is no topic name"),
        ("redis://me:secret@localhost:1", "ticks", "Redis cannot export a topic as tables; record it first"),
        ("nowhere://me:secret@there", "ticks", "'nowhere://there' names no transport"),
    ],
)
def test_invalid_recording_is_an_error(tmp_path: Path, url: str, topic: str, sentence: str) -> None:
    for name in ("ticks", "trades"):
        record(tmp_path, (b"x", KIND), topic=name)
    if topic == "none":
        (tmp_path / "none").mkdir()
        (tmp_path / "none" / "data").write_bytes(bytes(10_000))
    with pytest.raises(tp.ConnectError, match=sentence) as caught:
        tp.recording(url.format(tmp_path), topic)
    assert "secret" not in str(caught.value)


def test_removed_recording_is_an_error(tmp_path: Path) -> None:
    table = record(tmp_path, (b"x", KIND)).messages
    shutil.rmtree(tmp_path / "ticks")
    with pytest.raises(tp.ConnectError, match="does not exist"):
        pl.DataFrame(table)


EPOCH = 5
BUY, LIMIT, MARKET = 1, 2, 1
TRADE_EXEC, FILLED = 15, 2


def envelope(sent: int, released_before: int, queued_before: int = 0) -> bytes:
    return struct.pack("<QQqQHBBI", sent, released_before, tp.units(100), 1, 4, queued_before, 0, 0)


def new_order(id: int, cause: int, order_type: int = LIMIT, instructions: tuple[int, int, int] = (0, 0, 0)) -> bytes:
    price = tp.units("100.5") if order_type == LIMIT else 0
    return struct.pack("<QqqQIIBBBB3Bx", id, price, tp.units(2), cause, 3, 8, BUY, order_type, 0, 0, *instructions)


def plant(folder: Path, at: int) -> None:
    """Writes a journal with given stamps: two orders and a cancel of an undefined account, then a report."""
    source = (REPOSITORY / "crates/oms-core/src/core.rs").read_text()
    version = re.search(r"CORE_VERSION: u32 = (\d+);", source)
    assert version is not None
    filled = struct.pack("<QQQQQqqqqq", EPOCH << 40 | 2, EPOCH << 40 | 2, 77, 66, 1, tp.units(99), tp.units(2), tp.units(2), 0, 0)
    filled += struct.pack("<QIIHHBBBB", at + 900, 3, 8, 0, 6, TRADE_EXEC, FILLED, BUY, 0)
    records: list[tuple[int, int, bytes]] = [
        (64, at, struct.pack("<IIQQ", int(version[1]), 0, 1_000_000_000, 1)),
        (74, at, struct.pack("<Q16sQQ", EPOCH, bytes([1] * 16), 1_000_000_000, 0)),
        (70, at + 100, envelope(at + 50, 0) + new_order(1, at + 10, instructions=(1, 3, 2))),
        (70, at + 200, envelope(at + 150, at + 130) + new_order(2, 0, MARKET)),
        (71, at + 300, envelope(0, at + 230) + struct.pack("<QQQIIQ", 3, 1, 0, 3, 8, 0)),
        (73, at + 1_000, filled + struct.pack("<HHI", 6, 0, 0)),
        (69, at + 2_000, struct.pack("<QQ", at + 330, 0)),
    ]
    with tp.connect(f"file://{folder}") as bus, bus.publisher("journal", "keep") as publisher:
        for kind, stamp, payload in records:
            publisher.publish(payload, kind, stamp=stamp)


def test_a_journal_has_requests_reports_and_denials(tmp_path: Path) -> None:
    at = tp.now()
    plant(tmp_path, at)
    journal = tp.journal(tmp_path / "journal")
    assert journal.place == tp.journal(f"file://{tmp_path}/journal").place == f"file://{tmp_path}/journal"

    requests = pl.DataFrame(journal.requests)
    assert requests["request"].to_list() == ["new", "new", "cancel"]
    assert requests["order_id"].to_list() == [EPOCH << 40 | sequence for sequence in (2, 3, 4)]
    assert requests["order_type"].to_list() == ["limit", "market", None]
    assert requests["price"].to_list() == [Decimal("100.5"), None, None]
    assert requests["time_in_force"].to_list() == ["day", "day", None]
    assert requests["post_only"].to_list() == [True, False, None]
    assert requests["reduce_only"].to_list() == [False, False, None]
    assert requests["self_trade_mode"].to_list() == ["cancel_both", "default", None]
    assert requests["trade_mode"].to_list() == ["cross", "default", None]
    assert requests["original"].to_list() == [None, None, 1]
    assert requests["outcome"].to_list() == ["denied"] * 3
    assert set(requests["session"]) == {4} and set(requests["account"]) == {8}
    stamps = requests.select("cause", "sent", "stamp", "released").rows()
    assert stamps == [
        (at + 10, at + 50, at + 100, at + 130),
        (None, at + 150, at + 200, at + 230),
        (None, None, at + 300, at + 330),
    ]
    hops = requests.select((pl.col("released_time") - pl.col("time")).cast(pl.Int64)).to_series().to_list()
    assert all(abs(hop - tp.ns_between(at + 100, at + 130)) <= 1 for hop in hops)

    [report] = pl.DataFrame(journal.reports).rows(named=True)
    assert (report["exec_type"], report["status"], report["side"], report["venue"]) == ("trade", "filled", "buy", 6)
    assert (report["last_price"], report["exec_id"], report["reason"]) == (Decimal(99), 66, None)
    assert (report["arrived"], report["stamp"]) == (at + 900, at + 1_000)
    joined = requests.join(pl.DataFrame(journal.reports), left_on="order_id", right_on="client_order_id")
    assert joined["sequence"].to_list() == [2]

    denials = pl.DataFrame(journal.denials)
    assert denials["order_id"].to_list() == requests["order_id"].to_list()
    assert denials["client_order_id"].to_list() == [1, 2, 3]
    assert all(code > 0 for code in denials["code"]) and all(denials["check"].to_list())
    assert denials.schema["limit"] == pl.Decimal(38, 0)


def test_a_blotter_has_orders_fills_and_positions(tmp_path: Path) -> None:
    at = tp.now()
    plant(tmp_path, at)
    blotter = tp.blotter(tmp_path / "journal")
    assert blotter.place == f"file://{tmp_path}/journal" and repr(blotter) == f"Blotter({blotter.place})"
    assert (blotter.day, blotter.first_record, blotter.before_record) == (None, 0, 7)

    orders = pl.DataFrame(blotter.orders)
    assert orders["order_id"].to_list() == [EPOCH << 40 | sequence for sequence in (2, 3)]
    assert orders["status"].to_list() == ["denied"] * 2 and all(orders["reason"].to_list())
    assert orders["price"].to_list() == [Decimal("100.5"), None]
    assert orders["order_type"].to_list() == ["limit", "market"]
    assert orders["side"].to_list() == ["buy"] * 2 and orders["venue"].to_list() == [None] * 2
    assert orders.schema["entered_utc"] == pl.Datetime("ns", "UTC")
    # The report is about an order that was never sent, and changes nothing.
    assert pl.DataFrame(blotter.fills).height == pl.DataFrame(blotter.positions).height == 0
    assert pl.DataFrame(blotter.positions).schema["realised_profit"] == pl.Decimal(38, 16)

    with pytest.raises(tp.ConnectError, match="no day 20261128 has ended"):
        tp.blotter(tmp_path / "journal", day=20261128)
    with pytest.raises(tp.ConnectError, match="no day begins with record 3; days begin with 0"):
        tp.blotter(tmp_path / "journal", first_record=3)
    with pytest.raises(tp.ConnectError, match="'NOPE' is no instrument of this journal; no instrument is defined in it"):
        tp.blotter(tmp_path / "journal", marks={"NOPE": 1})


def test_invalid_journal_is_an_error(tmp_path: Path) -> None:
    record(tmp_path, (b"x", KIND))
    with pytest.raises(tp.ConnectError, match="no order journal: it does not begin with a start record"):
        tp.journal(tmp_path / "ticks")
    with pytest.raises(tp.ConnectError, match="nowhere does not exist"):
        tp.journal(tmp_path / "nowhere")
    with pytest.raises(tp.ConnectError, match="a journal is on a disk; give its folder"):
        tp.journal("shm://journal")


def test_journal_matches_the_result_of_the_command(tmp_path: Path) -> None:
    if REAL is None:
        pytest.skip("TICKPATH names no command: TICKPATH=target/debug/tickpath")
    with warnings.catch_warnings():
        # Other load on the machine may make a run invalid.
        warnings.simplefilter("ignore", RuntimeWarning)
        found = lab.run("orders", count=100, wait="block", journal=tmp_path / "journal")
    journal = tp.journal(tmp_path / "journal")
    requests, reports = pl.DataFrame(journal.requests), pl.DataFrame(journal.reports)
    assert requests.height == 100
    assert requests["outcome"].to_list().count("denied") == pl.DataFrame(journal.denials).height
    counts = {row.hop: row.count for row in found.rows}
    assert requests["sent"].count() == counts["t0_t1"]
    left = requests.filter(pl.col("outcome") == "released")
    assert left["released"].count() == counts["t1_t2"]
    assert left.filter(pl.col("released") < pl.col("stamp")).height == 0
    assert set(reports["client_order_id"].drop_nulls()) <= set(requests["order_id"])
    blotter = tp.blotter(tmp_path / "journal")
    orders, fills = pl.DataFrame(blotter.orders), pl.DataFrame(blotter.fills)
    assert set(orders["order_id"]) == set(requests["order_id"])
    assert orders["filled"].sum() == fills["counted_quantity"].sum()
