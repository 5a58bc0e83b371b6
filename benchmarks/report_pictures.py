"""The pictures of the reports: ``python benchmarks/report_pictures.py``, with Chromium, playwright and rich.

It runs ``report_example`` as the tests of a project, and needs no GPU. It writes ``docs/report-page.png``
and ``docs/report-terminal.svg``.
"""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

_TREE = pathlib.Path(__file__).parents[1]
EXAMPLE = _TREE / "benchmarks" / "report_example.py"
PAGE = _TREE / "docs" / "report-page.png"
TERMINAL = _TREE / "docs" / "report-terminal.svg"

OPTIONS = ("--reinplace-verify", "--reinplace-report", "--reinplace-backend=graph")
_TESTS, _HTML = "test_decoder.py", "report.html"
_WIDTH, _HEIGHT, _COLUMNS = 1000, 1150, 100
# The sections of the plugin begin here; what pytest prints before is no part of the report.
_BEGIN = " reinplace verify "


def run(folder: pathlib.Path) -> str:
    """Run the example in a folder, where the page is written, and return what pytest prints, with colours.

    Raises:
        RuntimeError: the run did not end as the example means it to: with one failure, that of the verifier.
    """
    shutil.copy(EXAMPLE, folder / _TESTS)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--color=yes", *OPTIONS]
    environment = {**os.environ, "COLUMNS": str(_COLUMNS)}
    done = subprocess.run(
        [*command, f"--reinplace-html={_HTML}", _TESTS],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )
    if done.returncode != 1 or _BEGIN not in done.stdout:
        raise RuntimeError(
            f"expected one test to fail by --reinplace-verify, got:\n{done.stdout}{done.stderr}"
        )
    return done.stdout


def terminal(printed: str) -> str:
    """Return the sections of the plugin as an SVG.

    Args:
        printed: by pytest, with colours.
    """
    from rich.console import Console
    from rich.text import Text

    lines = printed.splitlines()
    begin = next(i for i, line in enumerate(lines) if _BEGIN in line)
    end = next(i for i in range(begin, len(lines)) if " short test summary info " in lines[i])
    with open(os.devnull, "w") as nowhere:
        console = Console(record=True, width=_COLUMNS, file=nowhere, force_terminal=True)
        console.print(Text.from_ansi("\n".join(lines[begin:end])))
        title = f"pytest {' '.join(OPTIONS[:2])}"
        drawn = console.export_svg(title=title, unique_id="report")
    return re.sub(r"@font-face\s*{.*?}\s*", "", drawn, flags=re.DOTALL)  # which come from elsewhere


def screenshot(html: pathlib.Path, picture: pathlib.Path) -> None:
    """Write what Chromium shows of a page, in its light scheme: its beginning."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        raise RuntimeError(
            "expected a Chromium on the PATH, found none: install one, e.g. apt install chromium"
        )
    with sync_playwright() as drivers:
        browser = drivers.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        tab = browser.new_page(color_scheme="light", viewport={"width": _WIDTH, "height": _HEIGHT})
        tab.goto(html.as_uri())
        tab.screenshot(path=picture)
        browser.close()


def main() -> None:
    """Write both pictures."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        TERMINAL.write_text(terminal(run(folder)))
        screenshot(folder / _HTML, PAGE)
    for path in (PAGE, TERMINAL):
        print(f"{path.relative_to(_TREE)}: {path.stat().st_size} B")


if __name__ == "__main__":
    main()
