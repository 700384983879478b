"""The interactive page in headless Chromium, against brute force."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from eval.report import write_report
from tests.eval.awkward import HOSTILE, brute_force, make_set
from tests.eval.browser import final_dom, needs_chromium, screenshot

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Seen:
    """What a reader of the page sees."""

    title: str
    errors: str
    texts: dict[str, str]  # by id
    rows: list[list[str]]  # of the table of classes


class Reader(HTMLParser):
    """Collects the texts of elements with an id, and of the cells of the table of classes."""

    def __init__(self):
        super().__init__()
        self.texts, self.rows, self.errors = {}, [], None
        self.inside, self.in_table, self.title = [], False, ""

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag == "body":
            self.errors = attributes.get("data-errors")
        self.in_table = self.in_table or attributes.get("id") == "classes"
        if tag == "tr" and self.in_table:
            self.rows.append([])
        if tag == "td" and self.in_table:
            self.rows[-1].append("")
        if tag not in ("input", "meta", "br"):
            self.inside.append((tag, attributes.get("id")))

    def handle_endtag(self, tag):
        while self.inside and self.inside.pop()[0] != tag:
            pass
        if tag == "table":
            self.in_table = False

    def handle_data(self, text):
        for tag, name in self.inside:
            if name:
                self.texts[name] = self.texts.get(name, "") + text
            if tag == "title":
                self.title += text
        if self.in_table and self.rows and self.rows[-1]:
            self.rows[-1][-1] += text


def see(page: str, folder: Path, driver: str = "", **options) -> Seen:
    reader = Reader()
    reader.feed(final_dom(page, folder, driver, **options))
    rows = [row for row in reader.rows if row]
    return Seen(reader.title, reader.errors, reader.texts, rows)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("page")


@pytest.fixture(scope="module")
def page(folder) -> str:
    write_report(make_set(), folder, target_far=0.02)
    return (folder / "report.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def truth():
    data = make_set()
    return brute_force(data.embeddings, data.labels)


def percent(text: str) -> float:
    return float(text.removesuffix(" %")) / 100


def assert_table_is_true(seen: Seen, truth, threshold: float) -> None:
    rates = {row[0]: (percent(row[2]), percent(row[3])) for row in seen.rows}
    assert len(rates) == 23
    for name, shown in rates.items():
        assert shown == pytest.approx(truth.rates(name, threshold), rel=6e-3, abs=1e-9)
    utilities = [float(row[6]) for row in seen.rows]
    assert utilities == sorted(utilities)
    accepted = int((truth.negatives <= threshold).sum())
    assert seen.texts["overall-accepts"] == f"{accepted:,} of {len(truth.negatives):,}"
    assert percent(seen.texts["overall-far"]) == pytest.approx(
        accepted / len(truth.negatives), rel=6e-3
    )


@needs_chromium
def test_page_opens_from_disk_at_the_recommended_threshold(page, folder, truth):
    seen = see(page, folder)
    assert seen.errors == ""
    assert seen.title == "awkward: threshold report"  # the hostile label has not run
    assert HOSTILE in [row[0] for row in seen.rows]
    rank = int(0.02 * len(truth.negatives))
    threshold = truth.negatives[rank - 1]
    assert float(seen.texts["distance"]) == pytest.approx(threshold, rel=1e-3)
    assert_table_is_true(seen, truth, threshold + 1e-9)


@needs_chromium
def test_address_sets_the_threshold(page, folder):
    seen = see(page, folder, fragment="#d=1.1")
    assert seen.errors == ""
    assert float(seen.texts["distance"]) == pytest.approx(1.1, abs=0.01)


@needs_chromium
def test_slider_moves_table_counts_and_address(page, folder, truth):
    driver = """
      const slider = document.getElementById("slider");
      slider.value = 20;
      slider.dispatchEvent(new Event("input"));
      document.body.append(Object.assign(document.createElement("p"), {
        id: "exact", textContent: data.thresholds[20] + " " + location.hash }));
    """
    seen = see(page, folder, driver)
    assert seen.errors == ""
    threshold, address = seen.texts["exact"].split()
    assert float(seen.texts["distance"]) == pytest.approx(float(threshold), rel=1e-3)
    assert float(address.removeprefix("#d=")) == pytest.approx(float(threshold), rel=1e-5)
    assert_table_is_true(seen, truth, float(threshold) + 1e-9)


@needs_chromium
def test_search_sorting_and_the_filter_of_classes_that_are_off(page, folder):
    driver = """
      const find = document.getElementById("search");
      document.querySelector('th[data-key="name"] button').click();
      find.value = "CLASS 1";
      find.dispatchEvent(new Event("input"));
    """
    seen = see(page, folder, driver)
    assert seen.errors == ""
    names = [row[0] for row in seen.rows]
    # Class 11 has another name; numbers sort as numbers.
    assert names == [f"class {i}" for i in (1, 10, 12, 13, 14, 15, 16, 17, 18, 19)]
    assert seen.texts["found"] == "10 found"
    seen = see(page, folder, 'document.getElementById("only-off").click();')
    assert seen.texts["found"] == f"{len(seen.rows)} found"
    assert seen.texts["overall-off"].startswith(f"{len(seen.rows)} of ")
    assert 0 < len(seen.rows) < 23
    assert all(row[7] for row in seen.rows)


@needs_chromium
@pytest.mark.parametrize("dark", [False, True])
def test_plots_are_drawn(page, folder, dark):
    flags = ["--blink-settings=preferredColorScheme=0"] if dark else []
    path = folder / f"shot{dark}.png"
    screenshot((folder / "report.html").as_uri(), path, 1100, 2400, *flags)
    with Image.open(path) as image:
        pixels = np.asarray(image.convert("RGB")).astype(int)
    background = pixels[2, 2]
    assert (background.mean() < 60) == dark
    # In the middle of the page stand the plots: curves in blue, histograms in orange.
    red, _, blue = np.moveaxis(pixels, 2, 0)
    assert (blue - red > 40).sum() > 3000
    assert (red - blue > 40).sum() > 1000


@needs_chromium
def test_nothing_sticks_out_on_a_phone(page, folder):
    """Headless windows are at least 500 wide: enlarged so that 390 of the page's pixels fit in."""
    driver = """
      const root = document.documentElement;
      const plots = [...document.querySelectorAll("canvas")].map((c) => c.clientWidth);
      document.body.append(Object.assign(document.createElement("p"), {
        id: "widths", textContent: [root.scrollWidth, root.clientWidth, innerWidth, ...plots] }));
    """
    narrow = page.replace("<head>", f"<head><style>html {{ zoom: {500 / 390}; }}</style>", 1)
    seen = see(narrow, folder, driver, window=(500, 900))
    assert seen.errors == ""
    needed, there, window, *plots = map(float, seen.texts["widths"].split(","))
    assert window == 500
    assert needed <= there
    assert len(plots) == 2
    assert min(plots) > 300


def luminance(colour: str) -> float:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return float(np.dot(linear, (0.2126, 0.7152, 0.0722)))


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", [0, 1])
def test_contrast_is_enough_in_both_schemes(scheme):
    style = (ROOT / "eval" / "page" / "style.css").read_text()
    block = style.split(":root {")[scheme + 1].split("}")[0]
    colours = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", block))
    for text in ("ink", "soft"):
        for ground in ("paper", "panel"):
            assert contrast(colours[text], colours[ground]) >= 4.5, (text, ground)
    for line in ("accent", "class-line", "mean", "positive", "negative", "chosen", "marker"):
        assert contrast(colours[line], colours["paper"]) >= 3, line
