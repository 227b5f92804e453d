"""Autobahn's cases of the WebSocket protocol, run by PyPI `kosoku`: `autobahntestsuite` itself needs Python 2.

`websocket_cases.py client URL` is a client of the server at the URL. `websocket_cases.py server` is a server: it prints
`{"port": …}`, and the client under test runs the cases, as Autobahn's clients do: `/getCaseCount`, `/runCase?case=N` and
`/updateReports`. Most cases give the other side one second, and a busy machine may need more: those that fail are run
again, for which a server prints another port. The last line is `{"cases": …, "failed": […]}`.
"""

import asyncio
import json
import sys
from fnmatch import fnmatchcase
from typing import Any

from kosoku import FailureError, run_fuzzingclient, run_fuzzingserver
from kosoku.cases import CASES

ROUNDS = 3
"""Max runs of a case."""
BEYOND = {
    # Compression, which our server does not offer, and messages above 1 MiB.
    "client": ["12.*", "13.*", "9.[12].[456]", "9.3.*", "9.4.*"],
    # Compression, and echoes that our client cannot send: binary messages, and those of 256 KiB.
    "server": ["12.*", "13.*", "1.2.*", "9.1.[!1]", "9.[234568].*"],
}
"""Cases that are left out, by the role of the suite."""


async def as_client(cases: list[str], url: str) -> list[Any]:
    """Runs cases against a server."""
    return await run_fuzzingclient(url, cases)


async def as_server(cases: list[str]) -> list[Any]:
    """Lets a client run cases."""
    async with run_fuzzingserver(cases, host="127.0.0.1", port=0) as server:
        print(json.dumps({"port": server.port}), flush=True)
        return await server.get_result()


async def main(role: str, *url: str) -> int:
    selected = [case for case in CASES if not any(fnmatchcase(case, pattern) for pattern in BEYOND[role])]
    cases, failed = selected, []
    for _ in range(ROUNDS):
        try:
            results = await {"client": as_client, "server": as_server}[role](cases, *url)
        except FailureError as failure:
            results = failure.results
        failed = [result for result in results if not result.passed]
        if not failed:
            break
        cases = [result.case_id for result in failed]
    report = [
        f"{case.case_id}: {case.behavior.value} ({case.result}), close {case.behavior_close.value} ({case.result_close})"
        for case in failed
    ]
    print(json.dumps({"cases": len(selected), "failed": report}), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(*sys.argv[1:])))
