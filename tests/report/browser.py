"""A page in headless Chromium: its elements after the scripts, its console, its requests."""

import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
_BROWSER = "not an origin"
needs_browser = pytest.mark.skipif(not CHROMIUM, reason="no browser: apt install chromium")


@dataclass(frozen=True)
class Opened:
    """What a browser made of a page.

    Attributes:
        dom: the elements after all scripts, as HTML.
        console: its lines, errors of scripts and of the content security policy among them.
        requests: URLs that were asked for, besides the page.
    """

    dom: str
    console: list[str]
    requests: list[str]


def open_page(page: Path, tmp_path: Path, script: str = "", width: int = 1280) -> Opened:
    """Open a page from its file.

    Args:
        page: the file.
        tmp_path: where the browser keeps its files.
        script: what the page does in the end, e.g. clicks; JavaScript.
        width: of the window, in pixels.
    """
    assert CHROMIUM
    shown = tmp_path / "shown.html"
    before, end, after = page.read_text(encoding="utf-8").rpartition("</body>")
    shown.write_text(f"{before}<script>{script}</script>{end}{after}", encoding="utf-8")
    log = tmp_path / "net.json"
    command = [
        *(CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"),
        *(f"--window-size={width},900", "--virtual-time-budget=20000", "--enable-logging=stderr"),
        *(f"--user-data-dir={tmp_path / 'profile'}", f"--log-net-log={log}"),
        "--host-resolver-rules=MAP * ~NOTFOUND",
        shown.as_uri(),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    console = [line for line in done.stderr.splitlines() if ":CONSOLE" in line]
    return Opened(done.stdout, console, _requests(log))


def _requests(log: Path) -> list[str]:
    """URLs in Chromium's log of its network stack that a page asked for.

    Those that the browser asks for on its own have another initiator.
    """
    events = [event.get("params", {}) for event in json.loads(log.read_text("utf-8"))["events"]]
    pages = [event for event in events if event.get("initiator", _BROWSER) != _BROWSER]
    return sorted({event["url"] for event in pages})
