"""The tables that readers see, Markdown and LaTeX, worked by hand from a few runs."""

import re
import shutil
import subprocess

import pandas as pd
import pytest

from common.errors import run_cli
from reproduce import latex, latex_table, markdown, results
from reproduce.columns import BELOW_FLOOR, ORACLE, notes, text_columns
from reproduce.metrics import of_domain, scaled
from reproduce.seal import require_sealed
from reproduce.table2 import TABLE
from tests.reproduce import frames

BASES = {"A": None, "A+TCM": "A"}


def table(name: str = "table2", **columns) -> pd.DataFrame:
    """Row A at R@1 0.90 and 0.92, A+TCM one point above, OPIS 2e-4 and half of it."""
    lines = [
        {
            "table": name,
            "row": row,
            "dataset": "glyphs/kana",
            "backbone": "net_1",
            "loss": row,
            "seed": seed,
            "recall_at_1": 0.90 + 0.02 * seed + 0.01 * tcm,
            "opis": 2e-4 - 1e-4 * tcm,
            "opis_floor": 1e-6,
            "selection": "last",
            "selected_epoch": 5,
            "train_seconds": 20.0 + 5 * tcm,
            "seconds": 30.0,
            "commit": "0123456789abcdef",
            "dirty": False,
            "device": "cpu: test",
            **{key: value[tcm] for key, value in columns.items()},
        }
        for tcm, row in enumerate(("A", "A+TCM"))
        for seed in (0, 1)
    ]
    return pd.DataFrame(lines)


def cells(frame) -> dict[str, dict[str, str]]:
    head, *rows = text_columns(frame, BASES)
    return {row[0]: dict(zip(head, row, strict=True)) for row in rows}


def test_mean_deviation_and_signed_delta_by_hand():
    found = cells(table())
    # 90 and 92: mean 91, standard deviation sqrt(2).
    assert found["A"]["R@1 %"] == "91.00 ± 1.41"
    assert found["A"]["Δ R@1"] == ""
    assert found["A+TCM"]["Δ R@1"] == "+1.00"
    assert found["A+TCM"]["Δ OPIS e-3"] == "-0.100"
    assert found["A+TCM"]["seeds"] == "2"


def test_one_seed_has_no_deviation():
    assert cells(table().query("seed == 0"))["A"]["R@1 %"] == "90.00"


def test_effects_below_the_floor_and_oracle_rows_are_marked_and_explained():
    marked = table(opis_floor=(1e-3, 1e-3), selection=("last", "oracle"))
    found = cells(marked)
    assert found[f"A+TCM {ORACLE}"]["Δ OPIS e-3"] == f"-0.100 {BELOW_FLOOR}"
    assert len(notes(text_columns(marked, BASES))) == 2
    assert notes(text_columns(table(), BASES)) == []


def test_times_stand_in_the_table_that_compares_them():
    found = cells(table("hier", peak_memory_mb=(100.0, 120.0), opis_far=(2e-4, 1e-4)))
    assert found["A"]["s per epoch"] == "4.00 ± 0.00"
    assert found["A"]["training time, s"] == "20.0 ± 0.0"
    assert found["A+TCM"]["Δ training time, s"] == "+5.0"
    assert found["A+TCM"]["peak memory, MiB"] == "120 ± 0"
    assert "training time, s" not in cells(table())["A"]


def test_verification_stands_first_where_faces_are_compared():
    head = text_columns(table("digiface", **{"tar_at_far_0.0001": (0.5, 0.6)}), BASES)[0]
    assert head[3] == "TAR@FAR=0.0001 %"


def test_each_domain_has_its_columns_where_there_are_several():
    columns = {"opis_across_domains": (1e-4, 2e-4)}
    columns |= {f"{domain}_recall_at_1": (0.5, 0.75) for domain in ("kana", "kanji")}
    columns |= {f"{domain}_opis": (1e-3, 2e-3) for domain in ("kana", "kanji")}
    found = cells(table("cross_domain", **columns))
    assert found["A+TCM"]["kana R@1 %"] == "75.00 ± 0.00"
    assert found["A"]["kanji OPIS e-3"] == "1.000 ± 0.000"
    assert found["A+TCM"]["Δ OPIS across domains e-3"] == "+0.100"


def test_names_of_metrics():
    assert of_domain("sop_opis") == ("sop", "opis")
    assert of_domain("epsilon_opis") == ("", "epsilon_opis")
    assert of_domain("opis") == ("", "opis")
    assert scaled("tar_at_far_0.001").plain(0.5) == "50.00"
    assert scaled("something else")(1.0) == "+1.000"


def test_a_page_is_sealed_to_its_csv(tmp_path):
    frame = frames.frame(TABLE, "demo", lambda row, seed: {})
    path = tmp_path / "table2.csv"
    results.write(frame, path)
    bases = {row.name: row.base for row in TABLE.rows["demo"]}
    text = markdown.write(frame, bases, TABLE.title, path.with_suffix(".md"))
    assert text.count("\n| ") == 2 + len(TABLE.rows["demo"])
    assert len({line.count("|") for line in text.splitlines() if line.startswith("|")}) == 1
    require_sealed(path)


def test_latex_escapes_what_it_would_take_for_itself():
    assert latex_table.escape("a_b & 5 % ± #1 {x} \\ ^ ~ $") == (
        r"a\_b \& 5 \% $\pm$ \#1 \{x\} \textbackslash{} \textasciicircum{} \textasciitilde{} \$"
    )
    assert latex_table.escape("-0.5 e-3 ProxyAnchor-2") == "$-$0.5 e-3 ProxyAnchor-2"


def test_latex_is_a_whole_table_with_equal_rows(tmp_path):
    text = latex_table.write(table(), BASES, "Title", tmp_path / "t.tex")
    assert (tmp_path / "t.tex").read_text(encoding="utf-8") == text
    rows = [line for line in text.splitlines() if line.endswith(r"\\")]
    columns = re.search(r"begin\{tabular\}\{(\w+)\}", text)[1]
    assert [len(re.split(r"(?<!\\)&", row)) for row in rows] == [len(columns)] * 3
    for name in ("table", "tabular"):
        assert text.count(f"\\begin{{{name}}}") == text.count(f"\\end{{{name}}}") == 1
    assert r"glyphs/kana, net\_1" in text


@pytest.mark.skipif(not shutil.which("pdflatex"), reason="pdflatex is not installed")
def test_latex_compiles(tmp_path):
    latex_table.write(table(opis_floor=(1e-3, 1e-3)), BASES, "Title & more", tmp_path / "t.tex")
    (tmp_path / "main.tex").write_text(
        r"\documentclass{article}\usepackage{booktabs,graphicx}\begin{document}\input{t}"
        r"\end{document}"
    )
    done = subprocess.run(
        ["pdflatex", "-halt-on-error", "main.tex"], cwd=tmp_path, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_the_command_writes_a_table_or_says_what_is_missing(tmp_path, capsys):
    assert run_cli(latex.main, ["--results", str(tmp_path)]) == 2
    assert "no results" in capsys.readouterr().err
    frame = frames.frame(TABLE, "demo", lambda row, seed: {})
    results.write(frame, results.csv_path("table2", "demo", tmp_path))
    assert run_cli(latex.main, ["--results", str(tmp_path)]) == 0
    assert (tmp_path / "demo" / "table2.tex").exists()
