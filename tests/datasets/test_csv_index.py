"""Anyone's images listed in a CSV file."""

import pytest

import datasets
from common.errors import UserError
from datasets.index_cache import location
from tests.datasets.trees import link_images, write

ROWS = "path,label\na/1.png,ant\na/2.png,ant\nb 1/\u00e9.png,bee\nb 1/2.png,bee\n"
KEYS = ["a/1.png", "a/2.png", "b 1/\u00e9.png", "b 1/2.png"]


@pytest.fixture
def listed(tmp_path):
    link_images(tmp_path, KEYS)
    return write(tmp_path / "mine.csv", ROWS)


def load(path, **options):
    return datasets.load(f"csv:{path}", **options)


def test_path_and_label(listed):
    source = load(listed)
    table = source.index.table
    assert list(table["key"]) == KEYS
    assert list(table["label"]) == ["ant", "ant", "bee", "bee"]
    assert set(table["domain"]) == {"csv"}
    assert set(table["split"]) == {"train", "test"}
    assert (location(listed.parent) / "mine/split-0.5-seed0.csv").is_file()
    assert source.read("b 1/\u00e9.png").size == (16, 16)


def test_all_four_columns_in_any_order_with_others_between(listed):
    rows = [f"{key},x,{'train' if key[0] == 'a' else 'test'},d{key[0]},{key[0]}" for key in KEYS]
    write(listed, "path,note,split,domain,label\n" + "\n".join(rows))
    table = load(listed).index.table
    assert list(table["split"]) == ["train", "train", "test", "test"]
    assert list(table["domain"]) == ["da", "da", "db", "db"]


def test_windows_line_ends_mark_quotes_and_blank_lines(listed):
    text = "\ufeff" + ROWS.replace("ant", '"ant, big"').replace("\n", "\r\n") + "\r\n,\r\n"
    write(listed, text)
    assert load(listed).index.classes == ("ant, big", "bee")


def test_absolute_paths(listed, tmp_path):
    write(
        tmp_path / "elsewhere/all.csv",
        "path,label\n" + "".join(f"{tmp_path / key},{key[0]}\n" for key in KEYS),
    )
    source = load(tmp_path / "elsewhere/all.csv")
    assert source.read(str(tmp_path / "a/1.png")).size == (16, 16)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the first line has no column 'path'"),
        ("path,label\n", "there is no row below the first line"),
        ("path,class\na/1.png,ant\n", "the first line has no column 'label'"),
        ("path;label\na/1.png;ant\n", "the first line has no column 'path'"),
        ("path,label\na/1.png,\n", "line 2 has no label"),
        ("path,label\n\na/1.png,ant\n,bee\n", "line 4 has no path"),
        ("path,label\na/1.png,ant,brown\n", "line 2 has 3 cells instead of 2"),
        ("path,label\na/1.png,ant\n./a//1.png,bee\n", r"lines 2 and 3 both name a/1\.png"),
        ("path,label,split\na/1.png,ant,val\n", "line 2 has split 'val'"),
        (
            "path,label,split\na/1.png,x,train\na/2.png,x,test\n",
            "'x' is in training and in testing",
        ),
        (
            "path,label,domain\na/1.png,x,d\na/2.png,x,e\nb 1/2.png,y,d\n",
            "'x' occurs in two domains",
        ),
        ("path,label\na/1.png,ant\na/7.png,bee\n", r"1 of 2 images are missing, .*a/7\.png"),
        ('path,label\na/1.png,"ant\n', "cannot read .*save it as UTF-8"),
    ],
)
def test_faults_are_named_with_their_line(listed, text, message):
    write(listed, text)
    with pytest.raises(UserError, match=message) as caught:
        load(listed)
    assert "\n" not in str(caught.value)


def test_a_file_in_another_encoding_or_missing(listed):
    listed.write_bytes(ROWS.encode("latin-1"))
    with pytest.raises(UserError, match=r"cannot read .*save it as UTF-8"):
        load(listed)
    with pytest.raises(UserError, match="there is no file"):
        load(listed.parent / "none.csv")
    with pytest.raises(UserError, match="write csv:FILE"):
        datasets.load("csv")
    with pytest.raises(UserError, match="resized is for prepared"):
        load(listed, resized=64)


def test_a_changed_file_is_read_again(listed):
    load(listed)
    write(listed, ROWS.replace("bee", "wasp").replace("label\n", "label\n"))
    with pytest.raises(UserError, match="made for other classes"):
        load(listed)
    assert load(listed, seed=1).index.classes == ("ant", "wasp")
