"""Where an import writes to, and what it calls things there."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mbr_esd_metric.adapters.wmt.layout import Layout, check_reference_name
from mbr_esd_metric.errors import InputError, OptionError
from mbr_esd_metric.files.paths import file_name

#: Systems that are references by default.
_REFERENCE = re.compile(r"ref([A-Za-z0-9_]*)")
_TEST_SET = re.compile(r"\w[\w.+-]*")
_DIRECTION = re.compile(r"\w+-\w+")
_MEND = "change it with --rename OLD=NEW"


@dataclass(frozen=True, slots=True)
class Target:
    """A new test set, in one direction, of a data folder.

    Attributes:
        data: the data folder.
        test_set, direction: the place in it.
        references: which of the systems are references; where none is named, those called ref, refA, refB and so on.
        rename: system names to change, old -> new.
        weights: MQM weights of the gold scores, "google" as WMT's own, or "paper".
        overwrite: replace the texts and human scores of a test set and direction that is already there.
    """

    data: str | Path
    test_set: str
    direction: str
    references: Sequence[str] = ()
    rename: Mapping[str, str] = field(default_factory=dict)
    weights: str = "google"
    overwrite: bool = False

    def layout(self) -> Layout:
        """The place, after checking that nothing there would be lost.

        Raises:
            InputError: the test set is there already, or metric scores of its older texts are.
            OptionError: a test set or a direction whose name the layout cannot carry.
        """
        if not _TEST_SET.fullmatch(self.test_set):
            raise OptionError(f"test set {self.test_set!r} becomes a folder's name; give one such as wmt21.tedtalks")
        if not _DIRECTION.fullmatch(self.direction):
            raise OptionError(f"a direction is two language codes such as 'en-de', not {self.direction!r}")
        layout = Layout(Path(self.data).expanduser(), self.test_set, self.direction)
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
        found = tuple(s for s in systems if s in self.references or (not self.references and _REFERENCE.fullmatch(s)))
        for system in systems:
            if len(system.split()) != 1:
                raise InputError(f"system {system!r}: the layout takes no white space in a name; {_MEND}")
            try:
                file_name(system, "system", ".txt")
            except InputError as error:
                raise InputError(f"{error}: {_MEND}") from None
        for name in self.references:
            if name not in systems:
                raise OptionError(f"no system {name!r} to be a reference; there are: {', '.join(systems)}")
        for name in found:
            check_reference_name(name, _MEND)
        return found


def texts_and_human_scores(layout: Layout) -> list[Path]:
    """The files of an older import, which would not fit the new one. The source comes first."""
    folder = layout.root / "human-scores"
    paths = [layout.source(), layout.documents, *layout.references().values(), *layout.outputs().values()]
    paths += [*folder.glob(f"{layout.direction}.*.score"), *folder.glob(f"{layout.direction}.*.rating")]
    return [path for path in paths if path.is_file()]
