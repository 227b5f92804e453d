"""The program of the tutorial: the same on its page in each language, and as resistant to kills as the page promises."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from desk import COMMAND, Desk

TUTORIAL = Path(__file__).parents[2] / "docs/tutorial"
LONGEST_S = 60


def program(page: str) -> str:
    """The first block of Python on a page."""
    found = re.search(r"^```python\n(.*?)^```", (TUTORIAL / page).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert found, f"{page} has no program"
    return found[1]


def test_the_program_is_the_same_in_each_language() -> None:
    pages = sorted(page.name for page in TUTORIAL.glob("*.md"))
    assert pages == ["index.md", "zh-CN.md", "zh-TW.md"]
    assert len({program(page) for page in pages}) == 1


@pytest.mark.skipif(COMMAND is None, reason="TICKPATH names no command: TICKPATH=target/debug/tickpath")
def test_the_program_and_its_oms_are_killed_and_resume(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "desk")
    (tmp_path / "strategy.py").write_text(program("index.md").replace('"oms.ticks"', f'"{desk.ticks}"'))

    def start(target: int) -> subprocess.Popen[str]:
        command = [sys.executable, "-u", "strategy.py", str(target)]
        return subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    try:
        desk.start("exchange")
        desk.start("oms")
        with start(100) as first:
            await_line(first, "holds 2 (now)")
            desk.kill("oms")
            await_line(first, "closed the connection")
            desk.start("oms")
            await_line(first, "session 0 is connected")
            await_line(first, "(now)")
            first.kill()
        with start(8) as second:
            printed, _ = second.communicate(timeout=LONGEST_S)
        assert second.returncode == 0, printed
        held = [int(number) for number in re.findall(r"holds (\d+)", printed)]
        assert held == list(range(1, 9)), printed
        assert printed.count("(earlier today)") >= 3, printed
        assert (tmp_path / "own.json").exists()
    finally:
        desk.close()


def await_line(process: subprocess.Popen[str], words: str) -> None:
    """Reads the output up to a line with these words."""
    assert process.stdout is not None
    lines: list[str] = []
    while words not in "".join(lines[-1:]):
        line = process.stdout.readline()
        assert line, f"{words!r} did not come: {lines}"
        lines.append(line)
