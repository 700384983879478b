"""From nothing to a data set on disk: archives fetched, checked, unpacked, perhaps reduced."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

from common.atomic import write_bytes, write_text
from common.errors import UserError
from datasets.catalogue import Download, Entry
from datasets.download import check_md5, fetch
from datasets.files import Layout, candidates
from datasets.http_reader import MirrorError, ResumingReader
from datasets.index_cache import cached_table
from datasets.resize import resize_folder, resize_stream
from datasets.unpack import unpack

# The one archive that is too large for most disks: reduced while it streams by.
STREAMED = "train_val2018.tar.gz"


def prepare(
    entry: Entry,
    root: Path,
    resize: int | None = None,
    skip_broken: bool = False,
    stand_in: bool = False,
    say: Callable[[str], None] = print,
    pause: float = 1.0,
) -> None:
    """Makes the data set's files appear under ``root``, unless they are there already.

    Archives go to ``root/NAME`` and are kept there. Archives that a person put there, or into
    ``root``, are used after a look at their checksum. A run that was broken off goes on where it
    stopped.

    Args:
        entry: what to fetch, from where.
        root: of all data sets; made if need be.
        resize: also make the copy ``root/NAME-<resize>`` with this shorter side, in pixels; of
            iNaturalist this is all that is stored.
        skip_broken: leave missing and damaged images out of that copy.
        stand_in: iNaturalist will be used without its published split.
        say: is told what happens.
        pause: seconds before a failed request is repeated; grows.

    Raises:
        UserError: something cannot be had, is damaged, or cannot be written; says what to do.
    """
    module = import_module(f"datasets.{entry.name}")
    layout: Layout = module.STAND_IN if stand_in else module.LAYOUT
    if resize is None:
        _prepare_archives(entry, layout, root, say, pause)
        return
    if resize < 1:
        raise UserError(f"--resize is {resize}; give a number of pixels")
    found = find(layout, root, resize)
    if found and not _begun(entry, root / f"{entry.name}-{resize}"):
        say(f"{entry.name} is at {found}")
    elif any(item.file == STREAMED for item in entry.downloads) and not find(layout, root):
        _prepare_streamed(entry, root, resize, say, pause)
    else:
        _prepare_archives(entry, layout, root, say, pause)
        if not found:
            _resize(entry, layout, root, resize, skip_broken, say)


def find(layout: Layout, root: Path, resized: int | None = None) -> Path | None:
    """The data set's folder under ``root``, or None."""
    places = candidates(layout.name, root, resized)
    return next((place for place in places if layout.holds(place)), None)


def _prepare_archives(
    entry: Entry, layout: Layout, root: Path, say: Callable[[str], None], pause: float
) -> None:
    folder = root / entry.name
    found = find(layout, root)
    if found and not _begun(entry, folder):
        say(f"{entry.name} is at {found}")
        _complete(entry, layout, root, found, say, pause)
        return
    for item in entry.alternatives:
        path = _brought(item, root, folder)
        if path is not None:
            _install(path, item, folder, say)
    if entry.alternatives and find(layout, root):
        return
    _fetch_and_install(entry, entry.downloads, root, folder, say, pause)


def _complete(
    entry: Entry, layout: Layout, root: Path, found: Path, say: Callable[[str], None], pause: float
) -> None:
    """Fetches the small annotation archives that a tree brought by a person lacks."""
    items = [item for item in entry.downloads if item.provides]
    missing = [item for item in items if not any((found / n).exists() for n in item.provides)]
    if not missing:
        return
    try:
        layout.list_images(found)
    except UserError:
        _fetch_and_install(entry, missing, root, found, say, pause)


def _fetch_and_install(
    entry: Entry,
    items: Sequence[Download],
    root: Path,
    target: Path,
    say: Callable[[str], None],
    pause: float,
) -> None:
    folder = root / entry.name
    for item in items:
        if _is_installed(item, target):
            continue
        path = _brought(item, root, folder)
        try:
            if path is None:
                say(f"fetching {item.file}")
                path = fetch(item, folder, pause)
        except UserError as error:
            if not item.optional:
                raise
            say(f"warning: {error}")
            continue
        _install(path, item, target, say)


def _brought(item: Download, root: Path, folder: Path) -> Path | None:
    """The archive, where a person or an earlier run has put it."""
    for place in (folder, root):
        path = place / item.file
        if path.is_file():
            check_md5(path, item)
            return path
    return None


def _install(path: Path, item: Download, folder: Path, say: Callable[[str], None]) -> None:
    if _is_installed(item, folder):
        return
    names = [item.file]
    if item.unpack_to is not None:
        say(f"unpacking {path}, which may be deleted afterwards")
        names = unpack(path, folder / item.unpack_to)
    elif path.parent != folder:
        write_bytes(folder / item.file, path.read_bytes())
    write_text(_mark(folder, item), "".join(f"{name}\n" for name in names))


def _begun(entry: Entry, folder: Path) -> bool:
    """Whether this program unpacked something there, and may have more to do."""
    items = (*entry.downloads, *entry.alternatives)
    return any(_mark(folder, item).is_file() for item in items)


def _mark(folder: Path, item: Download) -> Path:
    """The file that lists what came out of an archive."""
    return folder / f".unpacked-{item.file}"


def _is_installed(item: Download, folder: Path) -> bool:
    """Whether the archive was unpacked there, and nobody has deleted what came out since."""
    mark = _mark(folder, item)
    if not mark.is_file():
        return False
    place = folder / (item.unpack_to or ".")
    return all((place / name).exists() for name in mark.read_text(encoding="utf-8").splitlines())


def _prepare_streamed(
    entry: Entry, root: Path, resize: int, say: Callable[[str], None], pause: float
) -> None:
    folder, target = root / entry.name, root / f"{entry.name}-{resize}"
    others = [item for item in entry.downloads if item.file != STREAMED]
    (item,) = (item for item in entry.downloads if item.file == STREAMED)
    if not target.exists():
        _stream(item, root, folder, target, resize, say, pause)
    _fetch_and_install(entry, others, root, target, say, pause)


def _stream(
    item: Download,
    root: Path,
    folder: Path,
    target: Path,
    resize: int,
    say: Callable[[str], None],
    pause: float,
) -> None:
    for place in (folder, root):
        if (place / item.file).is_file():
            say(f"reducing {place / item.file}")
            with (place / item.file).open("rb") as stream:
                resize_stream(stream, item.file, item.md5, target, resize)
            return
    failures = []
    for url in item.urls:
        say(f"reducing {url} as it comes")
        try:
            with ResumingReader(url, pause=pause) as stream:
                resize_stream(stream, url, item.md5, target, resize)
            return
        except MirrorError as error:
            failures.append(f"{url}: {error}")
    raise UserError(
        f"cannot fetch {item.file} ({'; '.join(failures)}); by hand: {item.manual}, put it into "
        f"{folder}, and run prepare again"
    )


def _resize(
    entry: Entry,
    layout: Layout,
    root: Path,
    resize: int,
    skip_broken: bool,
    say: Callable[[str], None],
) -> None:
    folder = find(layout, root)
    if folder is None:
        raise UserError(f"{entry.name}: the archives do not hold {layout.looks_for}; get others")
    others = list(layout.depends_on(folder) or ())
    table = cached_table(
        layout.name, folder, lambda: layout.list_images(folder), others or None, skip_broken
    )
    if skip_broken:
        table = table[table["broken"] == ""]
    target = root / f"{entry.name}-{resize}"
    say(f"reducing {folder} to {target}")
    resize_folder(folder, list(table["key"]), others, target, resize)
