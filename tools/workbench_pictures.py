"""Take the pictures of the workbench that the docs show, on the demo's questions: ``make pictures``."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from maskmatch.testing.server import ServerProcess

PICTURES = Path(__file__).resolve().parents[1] / "docs" / "pictures"
SIZES = ((1280, 800, "light"), (768, 1024, "dark"), (390, 844, "dark"))
PAGES = {"texts": "/", "labels": "/labels", "mark": "/mark", "map": "/map", "learn": "/learn", "ship": "/ship"}


class Demo(ServerProcess):
    """``maskmatch demo --workbench``."""

    command = "demo"


def main() -> None:
    """Write the pictures."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        sys.exit("Chromium is not installed.")
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # the pictures show where files are written
        _take(chromium)
        os.chdir(PICTURES)


def _take(chromium: str) -> None:
    with Demo("--workbench", "--port", "0", "--no-browser") as server, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        for width, height, scheme in SIZES:
            page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)  # type: ignore[arg-type]
            for name, path in PAGES.items():
                page.goto(f"{server.url}{path}")
                page.wait_for_timeout(2500)
                _act(page, name)
                end = "" if width == SIZES[0][0] else f"-{width}"
                page.screenshot(path=PICTURES / f"workbench-{name}{end}.png")
            page.close()
        browser.close()


def _act(page: Page, name: str) -> None:
    """What the picture of a page shows."""
    if name == "labels":
        page.get_by_role("button", name="Change").first.click()
        field = page.get_by_label("Name", exact=True)
        field.fill(f"{field.input_value()} or invoice")
        page.get_by_text("texts would get another label").wait_for()
        page.wait_for_timeout(500)
    if name == "map":
        page.locator("canvas").first.wait_for()
        page.get_by_text("UMAP, which shows groups better").wait_for(state="detached", timeout=120_000)
        page.wait_for_timeout(1500)
    if name == "mark":
        for _ in range(8):
            page.keyboard.press("1")
            page.wait_for_timeout(300)


if __name__ == "__main__":
    main()
