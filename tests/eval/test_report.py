"""The files of a report against brute force, and what hostile labels may not do."""

from __future__ import annotations

import base64
import csv
import json
import math
import re

import numpy as np
import pytest
from PIL import Image

from common.errors import UserError
from eval import evaluate, report_html
from eval.readers import EmbeddingSet
from eval.report import Report, write_report
from eval.report_files import CLASS_COLUMNS
from eval.report_html import script_safe_json
from eval.spreadsheet import spreadsheet_safe
from tests.eval.awkward import BruteForce, brute_force, make_set

TARGET, FACTOR = 0.02, 1.5


@pytest.fixture(scope="module")
def awkward() -> EmbeddingSet:
    return make_set()


@pytest.fixture(scope="module")
def truth(awkward) -> BruteForce:
    return brute_force(awkward.embeddings, awkward.labels)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("report")


@pytest.fixture(scope="module")
def report(awkward, folder) -> Report:
    return write_report(awkward, folder, target_far=TARGET, factor=FACTOR)


@pytest.fixture(scope="module")
def threshold(truth) -> float:
    return float(truth.negatives[math.floor(TARGET * len(truth.negatives)) - 1])


def rows_of(folder) -> dict[str, dict[str, str]]:
    with open(folder / "per_class.csv", encoding="utf-8", newline="") as file:
        return {row["label"].removeprefix("'"): row for row in csv.DictReader(file)}


def payload(folder) -> dict:
    html = (folder / "report.html").read_text(encoding="utf-8")
    return json.loads(re.search(r'id="data">(.*?)</script>', html, re.DOTALL)[1])


def test_every_file_is_there(report, folder):
    names = {"metrics.json", "per_class.csv", "report.html"}
    names |= {
        f"{n}.{s}" for n in ("utility", "similarities", "error_rates") for s in ("png", "svg")
    }
    assert {path.name for path in folder.iterdir()} == names == {path.name for path in report.files}


def test_metrics_are_the_engines(report, awkward, folder):
    metrics = json.loads((folder / "metrics.json").read_text())
    direct = evaluate(awkward.embeddings, awkward.labels, domains=awkward.domains).to_dict()
    for name in ("recall_at_1", "map_at_r", "opis", "epsilon_opis", "d_min", "d_max", "opis_far"):
        assert metrics[name] == direct[name]
    assert set(metrics["domains"]) == {"east", "west"}
    assert metrics["domains"]["east"]["opis"] == direct["domains"]["east"]["opis"]


def test_recommended_threshold_and_the_classes_it_fails(report, truth, folder, threshold):
    found = report.recommendation
    assert found.threshold == pytest.approx(threshold, rel=1e-9)
    assert found.far == pytest.approx((truth.negatives <= threshold + 1e-9).mean())
    assert found.far <= TARGET
    low, high = found.threshold_interval
    assert low < threshold < high
    assert found.far_interval[0] < found.far < found.far_interval[1]
    upper = np.triu(truth.same, 1)
    overall_frr = (truth.distances[upper] > threshold + 1e-9).mean()
    metrics = json.loads((folder / "metrics.json").read_text())["recommendation"]
    labels = [label for label in np.unique(truth.labels) if (truth.labels == label).sum() > 1]
    rates = {label: truth.rates(label, threshold + 1e-9) for label in labels}
    far_fails = {label for label, (far, _) in rates.items() if far > FACTOR * TARGET}
    frr_fails = {label for label, (_, frr) in rates.items() if frr > FACTOR * overall_frr}
    assert far_fails
    assert frr_fails
    assert set(metrics["classes_far_fails"]) == far_fails
    assert set(metrics["classes_frr_fails"]) == frr_fails
    rows = rows_of(folder)
    assert {label for label, row in rows.items() if row["far_off"] == "1"} == far_fails
    assert {label for label, row in rows.items() if row["frr_off"] == "1"} == frr_fails
    count = len(far_fails | frr_fails)
    assert f"fails {count} of 23 classes" in report.summary


def test_per_class_table(report, truth, folder, threshold):
    rows = rows_of(folder)
    assert tuple(next(iter(rows.values()))) == CLASS_COLUMNS
    assert len(rows) == 23  # the class of one image has no rates
    hits, count = truth.hits(), len(truth.labels)
    utilities = [float(row["utility"]) for row in rows.values()]
    assert utilities == sorted(utilities)
    for label, row in rows.items():
        far, frr = truth.rates(label, threshold + 1e-9)
        size = int((truth.labels == label).sum())
        assert int(row["images"]) == size
        assert int(row["positives"]) == size * (size - 1) // 2
        assert int(row["negatives"]) == size * (count - size)
        assert float(row["far"]) == pytest.approx(far, rel=1e-5)
        assert float(row["frr"]) == pytest.approx(frr, rel=1e-5)
        assert float(row["recall_at_1"]) == pytest.approx(
            hits[truth.labels == label].mean(), rel=1e-5
        )
        expected = 2 * (1 - far) * (1 - frr) / (2 - far - frr)
        assert float(row["utility"]) == pytest.approx(expected, rel=1e-5)


def test_page_holds_the_rates_at_every_threshold(report, truth, folder):
    data = payload(folder)
    thresholds = data["thresholds"]
    classes = data["classes"]
    shape = (len(classes["names"]), len(thresholds))
    far, frr = (
        np.frombuffer(base64.b64decode(classes[key]), "<f4").reshape(shape)
        for key in ("far", "frr")
    )
    negatives = truth.negatives
    for t in range(0, len(thresholds), 10):
        # Thresholds made from a pair's own distance accept that pair, whatever the rounding.
        at = thresholds[t] + 1e-9
        assert data["overall"]["far"][t] == pytest.approx((negatives <= at).mean(), abs=1e-12)
        for i in range(0, shape[0], 5):
            assert (far[i, t], frr[i, t]) == pytest.approx(truth.rates(classes["names"][i], at))
    for end in data["calibration"]:
        assert min(abs(t - end) for t in thresholds) == 0
    assert report.recommendation.threshold == thresholds[data["start"]]
    assert sum(data["histogram"]["positive"]) == pytest.approx(1)
    assert sum(data["histogram"]["negative"]) == pytest.approx(1)


def test_histogram_counts_pairs(report, truth, folder):
    histogram = payload(folder)["histogram"]
    similarities = 1 - truth.distances[np.triu(truth.same, 1)] ** 2 / 2
    edges = np.array(histogram["edges"])
    expected = np.histogram(similarities, edges)[0] / len(similarities)
    # A pair on an edge may fall to either side.
    assert np.abs(expected - histogram["positive"]).sum() < 0.02


def test_page_asks_no_network_and_no_label_escapes(report, folder):
    html = (folder / "report.html").read_text(encoding="utf-8")
    for reference in ("http:", "https:", "src=", "href=", "url(", "@import", "fetch(", "XMLHttp"):
        assert reference not in html
    assert "default-src 'none'" in html
    assert html.count("</script>") == 2
    assert "<script>document.title" not in html


@pytest.mark.parametrize("text", ["</script>", "<!--<script>", "&lt;", "\u2028", "{{data}}", "\\"])
def test_script_safe_json(text):
    encoded = script_safe_json({"label": text})
    assert not set("<>&\u2028") & set(encoded)
    assert json.loads(encoded) == {"label": text}


@pytest.mark.parametrize(
    ("label", "safe"),
    [
        *[("=1+1", "'=1+1"), ("@x", "'@x"), ("+a", "'+a"), ("-x", "'-x"), ("\t=1", "'\t=1")],
        *[("-12", "-12"), ("+1e3", "+1e3"), ("plain", "plain"), (-3, "-3"), ("a=b", "a=b")],
    ],
)
def test_labels_are_no_formulas(label, safe):
    assert spreadsheet_safe(label) == safe


def test_figures_open_and_are_the_same_each_time(report, awkward, folder, tmp_path):
    write_report(awkward, tmp_path, target_far=TARGET, factor=FACTOR)
    for path in report.files:
        assert path.read_bytes() == (tmp_path / path.name).read_bytes(), path.name
        if path.suffix == ".png":
            with Image.open(path) as image:
                assert min(image.size) > 300


def test_without_a_target_the_best_mean_utility_is_shown(awkward, tmp_path):
    write_report(awkward, tmp_path, distance="cosine")
    data = payload(tmp_path)
    assert data["targetFar"] is None
    assert data["start"] == int(np.argmax(data["utility"]["mean"]))
    assert data["distance"] == "cosine"
    np.testing.assert_allclose(np.array(data["similarities"]), 1 - np.array(data["thresholds"]))


def test_many_classes_are_cut_and_it_says_so(awkward, tmp_path, monkeypatch):
    monkeypatch.setattr(report_html, "MAX_CLASSES_ON_PAGE", 5)
    write_report(awkward, tmp_path)
    worst = list(rows_of(tmp_path))[:5]
    assert set(payload(tmp_path)["classes"]["names"]) == set(worst)
    assert "The 5 worst of 23 classes" in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize(
    ("target", "message"),
    [(1e-9, "needs at least 1e\\+09 negative pairs"), (1.0, "between 0 and 1")],
)
def test_target_out_of_reach(awkward, tmp_path, target, message):
    with pytest.raises(UserError, match=message):
        write_report(awkward, tmp_path, target_far=target)
    assert not list(tmp_path.iterdir())
