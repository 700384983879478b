"""Figures: what is behind them against brute force, and that they are drawn from CSVs alone."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from common.errors import UserError, run_cli
from eval import evaluate
from reproduce import curve_data, pareto, results, utility
from reproduce.config import dump
from reproduce.figures import curves, labels, margins, plane, style, times
from reproduce.sections import TCMConfig
from reproduce.table import plan
from reproduce.table2 import TABLE
from tests.reproduce import frames


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A run store of two tiny runs, ProxyAnchor and ProxyAnchor+TCM, and their table rows."""
    root = tmp_path_factory.mktemp("runs")
    rng = np.random.default_rng(0)
    labels_ = np.repeat([f"class {i}" for i in range(12)], 6)
    rows = []
    for run in plan(TABLE, "demo", seeds=1)[:2]:
        key = run.key_columns("table2") | {"run_hash": f"{len(rows)}" * 16}
        folder = root / key["run_hash"]
        folder.mkdir()
        centres = rng.normal(size=(12, 8)).repeat(6, 0)
        embeddings = centres + 0.8 * rng.normal(size=centres.shape)
        np.savez(folder / "embeddings.npz", embeddings=embeddings, labels=labels_)
        (folder / "config.yaml").write_text(dump(run.config))
        rows.append(key)
    return root, rows


def distances(path) -> tuple[np.ndarray, np.ndarray]:
    with np.load(path) as data:
        x, y = data["embeddings"], data["labels"]
    x = x / np.linalg.norm(x, axis=1, keepdims=True)
    return np.sqrt(np.maximum(2 - 2 * x @ x.T, 0)), y


def test_curves_and_histograms_against_brute_force(store):
    root, rows = store
    data = curve_data.of_pair(*rows, root, classes=12)
    found, histograms = data["utility"], data["similarity"]
    assert list(found["row"].unique()) == ["ProxyAnchor", "ProxyAnchor+TCM"]
    for row in rows:
        d, y = distances(root / row["run_hash"] / "embeddings.npz")
        mine = found[found["run_hash"] == row["run_hash"]]
        threshold = float(mine["threshold"].iloc[30])
        expected = []
        for name in np.unique(y):
            one = y == name
            inside = d[np.ix_(one, one)][~np.eye(one.sum(), dtype=bool)]
            sensitivity = np.mean(inside <= threshold)
            specificity = np.mean(d[np.ix_(one, ~one)] > threshold)
            expected.append(2 * sensitivity * specificity / (sensitivity + specificity))
        single = mine.iloc[30][[f"class {i}" for i in range(12)]].astype(float)
        assert sorted(single) == pytest.approx(sorted(expected))
        assert mine["mean"].iloc[30] == pytest.approx(np.mean(expected))
        assert mine["p90"].iloc[30] == pytest.approx(np.quantile(expected, 0.9))
        shown = histograms[histograms["run_hash"] == row["run_hash"]]
        similarity = 1 - d**2 / 2
        upper = np.triu(np.ones_like(d, dtype=bool), 1)
        same = y[:, None] == y[None, :]
        edges = np.append(shown["low"], 1.0)
        for kind, pairs in (("positives", same), ("negatives", ~same)):
            counts = np.histogram(similarity[upper & pairs], edges)[0]
            assert shown[kind].to_numpy() * counts.sum() == pytest.approx(counts, abs=1.01)
    # Classes are ranked by the base run: its single curves are in order, on average in the range.
    base = found[(found["row"] == "ProxyAnchor") & found["in_range"]]
    means = base[[f"class {i}" for i in range(12)]].mean().to_numpy()
    assert np.all(np.diff(means) > -0.03)


def test_opis_under_other_choices_is_that_of_a_pass_of_its_own(store):
    root, rows = store
    found = curve_data.of_pair(*rows, root)["choices"]
    mine = found[found["row"] == "ProxyAnchor"].set_index(["choice", "value"])["opis"]
    with np.load(root / rows[0]["run_hash"] / "embeddings.npz") as data:
        x, y = data["embeddings"], data["labels"]

    def opis(**settings) -> float:
        return evaluate(x, y, **settings).opis

    assert mine["as declared", ""] == pytest.approx(opis())
    assert mine["FAR range", "0.1 to 0.3"] == pytest.approx(opis(far_range=(0.1, 0.3)), rel=0.02)
    assert mine["distance", "cosine"] == pytest.approx(opis(distance="cosine"), rel=0.02)
    assert mine["weight c", "2"] == pytest.approx(opis(c=2.0), rel=0.02)


def test_error_rates_against_brute_force(store):
    root, rows = store
    found = curve_data.of_pair(*rows, root)["det"]
    mine = found[found["row"] == "ProxyAnchor"]
    d, y = distances(root / rows[0]["run_hash"] / "embeddings.npz")
    upper = np.triu(np.ones_like(d, dtype=bool), 1)
    same = y[:, None] == y[None, :]
    negatives, positives = np.sort(d[upper & ~same]), d[upper & same]
    assert mine["far"].min() >= 1 / len(negatives)
    for far, frr in mine[["far", "frr"]].to_numpy():
        threshold = negatives[int(far * len(negatives)) - 1]
        assert frr == pytest.approx(np.mean(positives > threshold + 1e-9))


def write_table(folder, rows) -> None:
    frame = frames.frame(TABLE, "demo", lambda row, seed: {"opis": 1e-4 * (1 + seed)})
    for row in rows:
        mine = (frame["row"] == row["row"]) & (frame["seed"] == 0)
        frame.loc[mine, "run_hash"] = row["run_hash"]
    keep = frame["row"].isin([row["row"] for row in rows])
    results.write(frame[keep], results.csv_path("table2", "demo", folder))


def test_the_utility_figure_needs_the_runs_once(store, tmp_path, capsys):
    root, rows = store
    write_table(tmp_path, rows)
    arguments = ["--table", "table2", "--results", str(tmp_path)]
    assert run_cli(utility.main, [*arguments, "--runs", str(tmp_path / "none")]) == 2
    assert "rerun python -m reproduce.table2, or give --runs" in capsys.readouterr().err
    assert run_cli(utility.main, [*arguments, "--runs", str(root)]) == 0
    picture = tmp_path / "demo" / "figures" / "table2_utility.svg"
    first = picture.read_bytes()
    picture.unlink()
    assert run_cli(utility.main, [*arguments, "--runs", str(tmp_path / "none")]) == 0
    assert picture.read_bytes() == first


def test_hyperbolic_runs_have_no_similarity_histogram(store, tmp_path):
    root, rows = store
    data = curve_data.of_pair(*rows, root)
    path = curves.draw(data["utility"], data["similarity"].iloc[:0], "title", tmp_path / "figure")
    assert "hyperbolic distance" in path.with_suffix(".svg").read_text()


def test_the_plane_shows_every_run_of_every_table(tmp_path, capsys):
    assert run_cli(pareto.main, ["--results", str(tmp_path)]) == 2
    assert "no results" in capsys.readouterr().err

    def metrics(row, seed):
        far_behind = row == "ArcFace"
        return {"recall_at_1": 0.5 if far_behind else 0.9 + 0.001 * seed, "opis": 1e-4}

    frame = frames.frame(TABLE, "demo", metrics)
    results.write(frame, results.csv_path("table2", "demo", tmp_path))
    assert run_cli(pareto.main, ["--results", str(tmp_path)]) == 0
    text = (tmp_path / "demo" / "figures" / "pareto.svg").read_text()
    assert "glyphs/kanji, glyph_cnn" in text
    assert "not shown: ArcFace, R@1 50.0" in text
    for name in ("ProxyAnchor", "RS@K"):
        assert f">{name}<" in text


def test_names_cover_neither_each_other_nor_points():
    figure = Figure(figsize=(6, 4), layout="constrained")
    FigureCanvasAgg(figure)
    axis = figure.add_subplot()
    points = [(0.5, 0.5), (0.52, 0.5), (0.5, 0.53), (0.9, 0.1)]
    axis.set(xlim=(0, 1), ylim=(0, 1))
    names = ["first", "second", "", "fourth"]
    labels.place(axis, points, [(0.01, 0.02)] * 4, names, ["black"] * 4)
    assert [text.get_text() for text in axis.texts] == ["first", "second", "fourth"]
    renderer = figure.canvas.get_renderer()
    boxes = [Text.get_window_extent(text, renderer) for text in axis.texts]
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
    pixels = axis.transData.transform(points)
    assert not any(box.contains(*pixel) for box in boxes for pixel in pixels)
    assert all(axis.bbox.x0 <= box.x0 and box.x1 <= axis.bbox.x1 for box in boxes)


def test_families_are_told_apart_beyond_the_palette():
    looks = [style.look(i) for i in range(40)]
    assert len(set(looks)) == 40


def line(row, seed=0, **more) -> dict:
    names = {"row": row, "dataset": "d", "backbone": "b", "loss": row, "seed": seed}
    return {**names, "recall_at_1": 0.9, "opis": 1e-4, **more}


def test_margins_are_shown_where_they_belong(tmp_path):
    settings = {"base": None, "lambda 3": TCMConfig(lambda_plus=3.0, lambda_minus=3.0)}
    rows = [line("base"), line("lambda 3", recall_at_1=0.7)]
    for plus in (0.9, 1.0):
        for minus in (0.0, 0.5):
            name = f"{plus} {minus}"
            settings[name] = TCMConfig(margin_plus=plus, margin_minus=minus)
            rows += [line(name, seed, recall_at_1=0.8 + plus / 100 + minus / 10) for seed in (0, 1)]
    path = margins.draw(pd.DataFrame(rows), settings, "title", tmp_path / "figure")
    text = path.with_suffix(".svg").read_text()
    for plus in (0.9, 1.0):
        for minus in (0.0, 0.5):
            assert f">{80 + plus + 10 * minus:.2f}<" in text
    assert "base alone" in text


def test_figures_are_the_same_bytes_twice(tmp_path):
    rows = [line("A"), line("A", 1), line("B", recall_at_1=0.91, opis=2e-4)]
    rows = pd.DataFrame(rows).assign(base=[None, None, "A"])
    for stem in ("one", "two"):
        plane.draw(rows, tmp_path / stem)
    for suffix in (".png", ".svg"):
        one, two = ((tmp_path / f"{stem}{suffix}").read_bytes() for stem in ("one", "two"))
        assert one == two


def test_step_times_are_drawn_from_their_csv(tmp_path):
    lines = [
        {
            "row": row, "backbone": "b", "device": "cpu: test", "batch_size": batch,
            "repeat": repeat, "base_ms": batch + repeat, "tcm_ms": 1.02 * (batch + repeat),
            "base_peak_mb": batch, "tcm_peak_mb": batch + 1,
        }
        for row in ("A", "B")
        for batch in (64, 128)
        for repeat in range(3)
    ]  # fmt: skip
    path = times.draw(pd.DataFrame(lines), tmp_path / "times")
    text = path.with_suffix(".svg").read_text()
    assert "A+TCM" in text
    assert "limit of the claim" in text


def test_a_run_folder_that_is_gone_is_named(store, tmp_path):
    _, rows = store
    with pytest.raises(UserError, match="does not hold the run of row 'ProxyAnchor'"):
        curve_data.of_pair(*rows, tmp_path)
