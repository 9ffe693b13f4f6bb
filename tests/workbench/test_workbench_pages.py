"""The pages in a real Chromium, against a real server process: the whole loop, by mouse and by keyboard."""

from __future__ import annotations

import os
import shutil
import signal
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from axe_core_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect, sync_playwright

from maskmatch.data import read_rows
from maskmatch.evaluation.display import counted
from maskmatch.labels.files import load_labels
from maskmatch.testing.server import ServerProcess
from maskmatch.workbench.store import Store
from toy_data import LABELS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Tiny = Callable[[str], Path]
    Open = Callable[..., Page]

PAGES = ("/", "/labels", "/mark", "/map", "/learn", "/ship")


class Workbench(ServerProcess):
    command = "workbench"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        assert "CI" not in os.environ, "CI must have Chromium"
        pytest.skip("CHROMIUM IS NOT INSTALLED: no page is tested; apt-get install chromium")
    with sync_playwright() as playwright:
        options = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        made = playwright.chromium.launch(executable_path=chromium, args=options)
        yield made
        made.close()


@pytest.fixture
def started(tiny: Tiny, texts_file: Path, tmp_path: Path) -> Iterator[Workbench]:
    given = ["--labels", ",".join(LABELS), "--model", str(tiny("bert")), "--project", str(tmp_path / "project")]
    with Workbench(str(texts_file), *given, "--port", "0", "--no-browser") as process:
        yield process


@contextmanager
def visiting(browser: Browser, url: str, **options: Any) -> Iterator[Page]:
    """A page of a new visitor; a request to another host, or an error in the browser, fails the test."""
    wrong: list[str] = []
    context = browser.new_context(accept_downloads=True, **options)
    page = context.new_page()
    page.set_default_timeout(20_000)
    expect.set_options(timeout=20_000)
    own = ("data:", "blob:", url.replace("localhost", "127.0.0.1"))
    page.on("request", lambda request: None if request.url.startswith(own) else wrong.append(request.url))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    yield page
    context.close()
    assert not wrong


def test_the_whole_loop_by_mouse(browser: Browser, started: Workbench, tmp_path: Path) -> None:
    with visiting(browser, started.url) as page:
        page.goto(started.url)
        expect(page.get_by_text("1 to 50 of 120 texts")).to_be_visible()
        page.get_by_label("Search").fill("refund")
        expect(page.get_by_text("50 of 120 texts")).to_have_count(0)
        page.get_by_label("Search").fill("")
        expect(page.get_by_text("1 to 50 of 120 texts")).to_be_visible()
        page.get_by_role("button", name="Next", exact=True).click()
        expect(page.get_by_text("51 to 100 of 120 texts")).to_be_visible()
        page.get_by_role("button", name="Explain:").first.click()
        expect(page.get_by_text("Yellow words speak for a label")).to_be_visible()
        page.get_by_role("button", name="Close").click()
        page.get_by_role("button", name="Mark as correct:").first.click()

        page.get_by_role("link", name="Labels").click()
        page.get_by_role("button", name="Change refund").click()
        page.get_by_label("Name", exact=True).fill("money back")
        expect(page.get_by_text("texts would get another label")).to_be_visible()
        expect(page.get_by_text("“money back” would have")).to_be_visible()
        assert page.get_by_role("cell", name="money back").count() == 0, "nothing is kept yet"
        page.get_by_role("button", name="Keep").click()
        expect(page.get_by_text("renamed “refund” to “money back”").first).to_be_visible()
        page.get_by_role("button", name="Remove money back").click()
        expect(page.get_by_role("heading", name="Remove “money back”")).to_be_visible()
        page.get_by_role("button", name="Discard").click()
        page.get_by_role("button", name="Split money back").click()
        page.get_by_label("Names, separated by commas").fill("money back, voucher")
        expect(page.get_by_text("“voucher” would have")).to_be_visible()
        page.get_by_label("Names, separated by commas").fill("money back")
        expect(page.get_by_text("“voucher” would have")).to_have_count(0)
        page.get_by_role("button", name="Keep").click()
        expect(page.get_by_text("split into at least two").first).to_be_visible()
        page.get_by_role("button", name="Discard").click()
        page.get_by_role("button", name="Add a label").click()
        page.get_by_label("Name", exact=True).fill("card lost")
        expect(page.get_by_role("region", name="Editor").get_by_text("card lost")).to_be_visible()
        page.get_by_role("button", name="Keep").click()
        expect(page.get_by_text("is already called “card lost”").nth(1)).to_be_visible()

        page.get_by_role("link", name="Mark").click()
        for number in range(16):
            expect(page.get_by_text(counted(number + 1, "mark"))).to_be_visible()
            page.get_by_role("group", name="Labels").get_by_role("button").nth(number % 2).click()
        expect(page.get_by_text("marks drawn at random")).to_be_visible()

        page.get_by_role("link", name="Learn").click()
        page.get_by_role("button", name="Train", exact=True).click()
        expect(page.get_by_role("cell", name="done").first).to_be_visible(timeout=60_000)
        expect(page.get_by_role("cell", name="1: trained on marks")).to_be_visible()

        page.get_by_role("link", name="Ship").click()
        for name in ("predictions.csv", "labels.json"):
            with page.expect_download() as download:
                page.get_by_role("button", name=name, exact=True).click()
            download.value.save_as(tmp_path / name)
        page.get_by_role("button", name="classifier-int8", exact=True).click()
        expect(page.get_by_text("Written:").last).to_be_visible(timeout=60_000)
    assert len(list(read_rows(tmp_path / "predictions.csv"))) == 120
    assert list(load_labels(tmp_path / "labels.json")) == ["money back", *LABELS[1:]]


def test_the_loop_by_keyboard_alone(browser: Browser, started: Workbench) -> None:
    def tab_to(page: Page, name: str) -> None:
        for _ in range(80):
            page.keyboard.press("Tab")
            focused = page.evaluate(
                "(document.activeElement.getAttribute('aria-label') || document.activeElement.textContent || '').trim()"
            )
            if focused.startswith(name):
                return
        raise AssertionError(f"{name} cannot be reached with Tab")

    with visiting(browser, started.url) as page:
        page.goto(started.url)
        expect(page.get_by_text("1 to 50 of 120 texts")).to_be_visible()
        tab_to(page, "Labels")
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="Labels")).to_be_visible()
        tab_to(page, "Change refund")
        page.keyboard.press("Enter")
        expect(page.get_by_label("Name", exact=True)).to_be_focused()
        page.keyboard.press("Control+A")
        page.keyboard.type("money back")
        expect(page.get_by_text("“money back” would have")).to_be_visible()
        tab_to(page, "Keep")
        page.keyboard.press("Enter")
        expect(page.get_by_text("renamed “refund” to “money back”").first).to_be_visible()
        page.goto(f"{started.url}/mark")
        expect(page.get_by_text("0 marks, 0 of them yours.")).to_be_visible()
        for count, key in enumerate("1230", 1):
            page.keyboard.press(key)
            expect(page.get_by_text(f"{counted(count, 'mark')}, {count} of them yours.")).to_be_visible()
        page.keyboard.press("u")
        expect(page.get_by_text("3 marks, 3 of them yours.")).to_be_visible()
        page.keyboard.press("s")
        expect(page.get_by_text("3 marks, 3 of them yours.")).to_be_visible()


def test_texts_are_added_on_the_page(browser: Browser, started: Workbench, tmp_path: Path) -> None:
    broken, table = tmp_path / "broken.csv", tmp_path / "more.csv"
    broken.write_bytes(b"\x00\xff\xfe text\n")
    table.write_text("alpha,beta\nwhere is my parcel,1\nis my parcel lost,2\n")
    with visiting(browser, started.url) as page:
        page.goto(started.url)
        page.get_by_role("button", name="Add texts").click()
        page.locator("input[type=file]").set_input_files(broken)
        expect(page.get_by_text("broken.csv, line 1 is not valid UTF-8")).to_be_visible()
        page.get_by_role("button", name="Cancel").click()

        def add(column: str) -> None:
            page.get_by_role("button", name="Add texts").click()
            page.locator("input[type=file]").set_input_files(table)
            expect(page.get_by_role("cell", name="where is my parcel")).to_be_visible()
            page.get_by_role("combobox", name="Column with the texts").click()
            page.get_by_role("option", name=column).click()
            page.get_by_role("button", name="Add", exact=True).click()

        add("alpha")
        expect(page.get_by_text("2 texts added.")).to_be_visible()
        expect(page.get_by_text("1 to 50 of 122 texts")).to_be_visible()
        add("alpha")
        expect(page.get_by_text("The project has these texts already.")).to_be_visible()
        add("beta")
        expect(page.get_by_text("1 to 50 of 124 texts")).to_be_visible()


def test_what_the_page_shows_survives_a_kill(browser: Browser, started: Workbench, tiny: Tiny, tmp_path: Path) -> None:
    with visiting(browser, started.url) as page:
        page.goto(f"{started.url}/mark")
        for count in range(1, 6):
            page.keyboard.press("1")
            expect(page.get_by_text(f"{counted(count, 'mark')}, {count} of them yours.")).to_be_visible()
    started.process.send_signal(signal.SIGKILL)
    started.process.wait(30)
    store = Store(f"sqlite:///{tmp_path / 'project' / 'project.db'}")
    assert len(store.marks()) == 5
    store.close()
    given = ["--model", str(tiny("bert")), "--project", str(tmp_path / "project"), "--port", "0", "--no-browser"]
    with Workbench(*given) as again, visiting(browser, again.url) as page:
        page.goto(f"{again.url}/mark")
        expect(page.get_by_text("5 marks, 5 of them yours.")).to_be_visible()
        page.reload()
        expect(page.get_by_text("5 marks, 5 of them yours.")).to_be_visible()
        page.goto(again.url)
        expect(page.get_by_text("1 to 50 of 120 texts")).to_be_visible()


def meanwhile(page: Page) -> Any:
    return page.get_by_text("Somebody has changed the labels meanwhile")


def test_two_browsers_on_one_project(browser: Browser, started: Workbench, tmp_path: Path) -> None:
    with visiting(browser, started.url) as ada, visiting(browser, started.url) as bob:
        for page, name in ((ada, "ada"), (bob, "bob")):
            page.goto(f"{started.url}/labels")
            page.get_by_label("Your name").fill(name)
            page.keyboard.press("Tab")
        for page, name in ((ada, "money back"), (bob, "repayment")):
            page.get_by_role("button", name="Change refund").click()
            page.get_by_label("Name", exact=True).fill(name)
            expect(page.get_by_text(f"“{name}” would have")).to_be_visible()
        ada.get_by_role("button", name="Keep").click()
        expect(ada.get_by_text("ada: renamed “refund” to “money back”")).to_be_visible()
        bob.get_by_role("button", name="Keep").click()
        expect(bob.get_by_text("renamed “money back” to “repayment”").or_(meanwhile(bob)).first).to_be_visible()
        if meanwhile(bob).is_visible():  # else his page has followed hers before he kept his edit
            bob.get_by_role("button", name="Keep").click()
        expect(bob.get_by_text("bob: renamed “money back” to “repayment”")).to_be_visible()
        expect(ada.get_by_role("cell", name="repayment", exact=True)).to_be_visible()
    assert list((tmp_path / "project" / "browsers").iterdir()), "what a browser is known by is kept in the project"
    assert not Path(".nicegui").exists()


def test_only_people_with_a_token_get_in(browser: Browser, texts_file: Path, tiny: Tiny, tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.txt"
    tokens.write_text("ada s3cret\n")
    given = ["--labels", ",".join(LABELS), "--model", str(tiny("bert")), "--project", str(tmp_path / "project")]
    given += ["--token-file", str(tokens), "--port", "0", "--no-browser"]
    with Workbench(str(texts_file), *given) as process, visiting(browser, process.url) as page:
        for path in PAGES:
            page.goto(f"{process.url}{path}")
            expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
            assert "refund" not in page.content()
        page.get_by_label("Your token").fill("wrong")
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_text("Nobody has this token.")).to_be_visible()
        page.get_by_label("Your token").fill("s3cret")
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="Ship")).to_be_visible()
        page.goto(f"{process.url}/mark")
        page.keyboard.press("1")
        expect(page.get_by_text("1 mark, 1 of them yours.")).to_be_visible()
        page.goto(f"{process.url}/labels")
        page.get_by_role("button", name="Remove refund").click()
        page.get_by_role("button", name="Keep").click()
        expect(page.get_by_text("ada: removed “refund”")).to_be_visible()
        page.get_by_role("button", name="Sign out").click()
        expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


def test_circled_texts_become_a_label(browser: Browser, started: Workbench) -> None:
    with visiting(browser, started.url, viewport={"width": 1280, "height": 900}) as page:
        page.goto(f"{started.url}/map")
        chart = page.locator("canvas").first
        expect(chart).to_be_visible()
        expect(page.get_by_text("UMAP, which shows groups better")).to_have_count(0, timeout=120_000)
        page.wait_for_timeout(1000)
        box = chart.bounding_box()
        assert box is not None
        page.mouse.click(box["x"] + box["width"] - 55, box["y"] + 25)  # the rectangle of the toolbox
        page.mouse.move(box["x"] + 70, box["y"] + 60)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] - 70, box["y"] + box["height"] - 60, steps=8)
        page.mouse.up()
        expect(page.get_by_text("texts chosen.")).to_be_visible()
        page.get_by_label("Name of a new label").fill("parcel")
        expect(page.get_by_text("texts would get it")).to_be_visible()
        page.get_by_role("button", name="Make a label").click()
        expect(page.get_by_role("cell", name="parcel", exact=True)).to_be_visible()


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (768, "dark"), (390, "dark")])
def test_pages_are_accessible_and_fit(browser: Browser, started: Workbench, width: int, scheme: Any) -> None:
    viewport: Any = {"width": width, "height": 800}
    with visiting(browser, started.url, viewport=viewport, color_scheme=scheme) as page:
        for path in PAGES:
            page.goto(f"{started.url}{path}")
            expect(page.get_by_role("heading", level=1)).to_be_visible()
            page.wait_for_timeout(500)
            assert page.evaluate("document.documentElement.scrollWidth") <= width, path
            found = Axe().run(page)
            serious = [
                (each["id"], [node["html"][:200] for node in each["nodes"]])
                for each in found["violations"]
                if each["impact"] in ("serious", "critical")
            ]
            assert not serious, (path, serious)
