"""Where an import writes to, and what it calls things there."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from mbr_esd_metric.adapters.wmt.layout import (
    Layout,
    check_reference_name,
    one_line,
    read_documents,
    read_domain_scores,
    read_scores,
    read_text,
)
from mbr_esd_metric.adapters.wmt.meta_info import is_reference_name
from mbr_esd_metric.adapters.wmt.rating_files import read_ratings
from mbr_esd_metric.errors import InputError, OptionError
from mbr_esd_metric.files.paths import file_name
from mbr_esd_metric.files.streams import whole_file

_TEST_SET = re.compile(r"\w[\w.+-]*")
_LP = re.compile(r"\w+-\w+")
_FIX = "change it with --rename OLD=NEW"


@dataclass(frozen=True, slots=True)
class Target:
    """A new test set, in one language pair, of a data folder.

    Attributes:
        data: the data folder.
        test_set, lp: the place in it.
        references: which of the systems are references; where none is named, those called ref, refA, refB and so on.
        rename: system names to change, old -> new.
        weights: MQM weights of the gold scores, "google" as WMT's own, or "paper".
        overwrite: replace the texts and human scores of a test set and language pair that is already there.
    """

    data: str | Path
    test_set: str
    lp: str
    references: Sequence[str] = ()
    rename: Mapping[str, str] = field(default_factory=dict)
    weights: str = "google"
    overwrite: bool = False

    def layout(self) -> Layout:
        """The place, after checking that nothing there would be lost.

        Raises:
            InputError: the test set is there already, or metric scores of its older texts are.
            OptionError: a test set or a language pair whose name the layout cannot carry.
        """
        if not _TEST_SET.fullmatch(self.test_set):
            raise OptionError(f"test set {self.test_set!r} becomes a folder's name; give one such as wmt21.tedtalks")
        if not _LP.fullmatch(self.lp):
            raise OptionError(f"a language pair is two language codes such as 'en-de', not {self.lp!r}")
        layout = Layout(Path(self.data).expanduser(), self.test_set, self.lp)
        if layout.source().exists() and not self.overwrite:
            raise InputError(
                f"{layout.source()} is already there; choose another test set or folder, or add --overwrite"
            )
        if stale := layout.metric_files():
            folders = " and ".join(dict.fromkeys(str(path.parent) for path in stale))
            first = ", ".join(path.name for path in stale[:5]) + (" ..." if len(stale) > 5 else "")
            raise InputError(
                f"{folders}: scores of the texts that would be replaced ({first}); move them away or delete them, and "
                "score the new texts with: mbr-esd wmt score"
            )
        return layout

    def check_rename(self, systems: Collection[str]) -> None:
        """Raise `OptionError` for a system to rename that is none of these."""
        for old in self.rename:
            if old not in systems:
                raise OptionError(f"no system {old!r} to rename; there are: {', '.join(sorted(systems))}")

    def references_among(self, systems: Sequence[str]) -> tuple[str, ...]:
        """Those of the systems, under their new names, that are references.

        Raises:
            InputError: a name that the layout cannot carry.
            OptionError: a reference that is no system.
        """
        found = tuple(s for s in systems if s in self.references or (not self.references and is_reference_name(s)))
        for system in systems:
            if len(system.split()) != 1:
                raise InputError(f"system {system!r}: the layout takes no white space in a name; {_FIX}")
            try:
                file_name(system, "system", ".txt")
            except InputError as error:
                raise InputError(f"{error}: {_FIX}") from None
        for name in self.references:
            if name not in systems:
                raise OptionError(f"no system {name!r} to be a reference; there are: {', '.join(systems)}")
        for name in found:
            check_reference_name(name, _FIX)
        return found


@contextmanager
def replacing(layout: Layout, sources: Sequence[str]) -> Iterator[Layout]:
    """A place to write a test set. Its files take that of older ones once they have been read, as every command will.

    Raises:
        InputError: a file cannot be read, or has another number of segments; nothing has changed then.
    """
    with TemporaryDirectory() as folder:
        new = replace(layout, data=Path(folder))
        yield new
        try:
            _read_back(new, sources)
        except InputError as error:
            why = str(error).replace(folder, str(layout.data))
            raise InputError(
                f"the data cannot be kept in mt-metrics-eval's layout ({why}); nothing is imported"
            ) from None
        for old in _texts_and_human_scores(layout):
            old.unlink()
        # The source comes last, because its presence means that the test set is complete.
        made = [path for path in new.root.rglob("*") if path.is_file()]
        for path in sorted(made, key=lambda path: path == new.source()):
            place = layout.root / path.relative_to(new.root)
            place.parent.mkdir(parents=True, exist_ok=True)
            with whole_file(place) as file:
                file.write(path.read_bytes())


def _texts_and_human_scores(layout: Layout) -> list[Path]:
    """The files of an older import, which would not fit the new one. The source comes first."""
    folder = layout.root / "human-scores"
    paths = [layout.source(), layout.documents, *layout.references().values(), *layout.outputs().values()]
    paths += [*folder.glob(f"{layout.lp}.*.score"), *folder.glob(f"{layout.lp}.*.rating")]
    return [path for path in paths if path.is_file()]


def _read_back(layout: Layout, sources: Sequence[str]) -> None:
    """Raise `InputError` for a file that cannot be read, or has another number of segments."""
    if read_text(layout.source(), "source") != [one_line(source).rstrip() for source in sources]:
        raise InputError(f"{layout.source()}: a source is not read back as it was written")
    counts = {layout.documents: len(read_documents(layout.documents))}
    for path in (*layout.outputs().values(), *layout.references().values()):
        counts[path] = len(read_text(path, "hypothesis"))
    for path, count in counts.items():
        if count != len(sources):
            raise InputError(f"{path}: {count} segments, and {len(sources)} sources")
    for name in layout.human_score_names("seg"):
        scored = read_scores(layout.human_scores(name, "seg"))
        if any(len(each) != len(sources) for each in scored.values()):
            raise InputError(f"{layout.human_scores(name, 'seg')}: not a score or None for each segment")
    for name in layout.human_score_names("domain"):
        read_domain_scores(layout.human_scores(name, "domain"))
    for path in layout.human_ratings().values():
        read_ratings(path)
