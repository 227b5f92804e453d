"""A desk: an OMS and a simulated exchange, as the command `tickpath` runs them, in a folder of their own."""

import os
import shutil
import signal
import subprocess
import time
from itertools import count
from pathlib import Path

import tickpath as tp

COMMAND = shutil.which(os.environ.get("TICKPATH", ""))
"""The real command, as named in the environment."""
NAMES = count()
PATIENCE_S = 60.0

BTC = 1
BID, ASK = tp.units(61_800), tp.units("61800.1")


class Desk:
    """A desk with the files of `init`, and names that are unique on this host."""

    def __init__(self, folder: Path, **faults: str) -> None:
        assert COMMAND is not None
        self.command, self.folder = COMMAND, folder
        self.name = f"python-desk-{os.getpid()}-{next(NAMES)}"
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self.ticks = f"{self.name}.ticks"
        for program in ("oms", "exchange"):
            subprocess.run([self.command, program, "init", "--folder", str(folder)], check=True, capture_output=True)
        self.change("oms.toml", 'name = "oms"', f'name = "{self.name}"')
        self.change("oms.toml", 'tcp = "127.0.0.1:7001"', "")
        self.change("exchange.toml", 'oms = "oms"', f'oms = "{self.name}"')
        for file in ("oms.toml", "exchange.toml"):
            self.change(file, '"oms.ticks"', f'"{self.ticks}"')
        for fault, value in faults.items():
            self.change("exchange.toml", f"#{fault} = 0", f"{fault} = {value}")
        self.url = f"unix://{folder}/oms.sock"
        self.password = (folder / "trader.password").read_text().strip()
        self.symbols = tp.instruments(folder / "instruments.csv")

    def change(self, file: str, before: str, after: str) -> None:
        path = self.folder / file
        text = path.read_text()
        assert before in text, f"{file} has no {before}"
        path.write_text(text.replace(before, after, 1))

    def start(self, program: str) -> None:
        messages = self.folder / f"{program}.messages"
        with messages.open("wb") as err:
            command = [self.command, program, "--config", str(self.folder / f"{program}.toml")]
            started = subprocess.Popen(command, stderr=err, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
            self.running[program] = started
        if program == "oms":
            await_text(messages, ": ready")

    def kill(self, program: str) -> None:
        process = self.running.pop(program)
        process.send_signal(signal.SIGKILL)
        process.wait()

    def open(self, url: str | None = None) -> tp.Orders:
        return tp.orders(url or self.url, "trader", self.password, account=1, symbols=self.symbols)

    def journal(self) -> str:
        """Returns the OMS's journal, a line per record."""
        command = [self.command, "log", "cat", str(self.folder / "journal")]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def close(self) -> None:
        for program in list(self.running):
            self.kill(program)
        for left in Path("/dev/shm").glob(f"tickpath.{self.name}.*"):
            shutil.rmtree(left, ignore_errors=True)
            left.unlink(missing_ok=True)


def await_text(file: Path, text: str) -> None:
    end = time.monotonic() + PATIENCE_S
    while text not in file.read_text():
        assert time.monotonic() < end, f"{text!r} is missing: {file.read_text()}"
        time.sleep(0.01)


def report(orders: tp.Orders, *, of: int, exec_type: str) -> tp.Report:
    """Returns the first report of this type that answers this request."""
    received: list[object] = []
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        orders.wait(1)
        for event in orders.poll(1):
            received.append(event)
            if isinstance(event, tp.Report) and (event.client_order_id, event.exec_type) == (of, exec_type):
                return event
    raise AssertionError(f"no {exec_type} of {of}: {received}")


def await_price(desk: Desk) -> None:
    """Waits until the market has quoted: without a reference price the OMS denies every order."""
    with tp.connect("shm://") as bus, bus.subscribe(desk.ticks) as ticks:
        assert ticks.wait(PATIENCE_S)
    with desk.open() as orders:
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            id = orders.submit(BTC, tp.BUY, tp.units(61_000), tp.units("0.001"), time_in_force="ioc")
            for event in orders:
                if isinstance(event, tp.Report) and event.client_order_id == id:
                    if event.denial is None and event.exec_type != "pending_new":
                        return
                    if event.denial is not None:
                        assert event.denial.name in ("NoReference", "StaleReference"), event
                        time.sleep(0.1)
                        break
    raise AssertionError("the market has no price")
