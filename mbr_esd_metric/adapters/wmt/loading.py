"""Reads a test set of one language pair, and checks that its files fit together."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from mbr_esd_metric.adapters.wmt.layout import Layout, default_data, packed_file, read_documents, read_scores, read_text
from mbr_esd_metric.adapters.wmt.meta_info import SystemChoice, TestSetInfo, gold_there, info_of
from mbr_esd_metric.adapters.wmt.rating_files import RatingsReader, check_blocks
from mbr_esd_metric.adapters.wmt.test_set import TestSet, choose_ratings
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.metaeval.matrices import FloatMatrix


def load_test_set(
    data: str | Path | None,
    test_set: str,
    lp: str,
    *,
    reference: str | None = None,
    gold: str | None = None,
    choice: SystemChoice = SystemChoice(),  # noqa: B008
    blind: bool = False,
) -> TestSet:
    """Read a test set and language pair of an mt-metrics-eval data folder; check that its files fit together.

    Args:
        data: the folder that holds the test sets; None for the folder of the toolkit's download.
        test_set: such as "wmt24".
        lp: such as "en-de".
        reference: the standard reference, if it differs from the table's (`MQM_TEST_SETS`).
        gold: the name of the gold scores, if it differs from the table's.
        choice: which systems are evaluated.
        blind: whether gold may be missing, as before a task has ended; nothing is rated then.

    Raises:
        InputError: a file is missing, malformed or does not fit the others; names the file and the line.
    """
    layout = Layout(Path(data).expanduser() if data is not None else default_data(), test_set, lp)
    _check_folders(layout)
    notes: list[str] = []
    info = _info(layout, gold, notes)
    sources = _texts(layout.source(), "source", None)
    documents = read_documents(layout.documents)
    _check_count(layout.documents, len(documents), len(sources))
    references = {n: _texts(p, "target", len(sources)) for n, p in layout.references().items()}
    outputs = {n: _texts(p, "hypothesis", len(sources)) for n, p in layout.outputs().items()}
    if not outputs:
        raise InputError(f"{layout.output('*').parent}: no system outputs; give one .txt file a system")
    info = replace(info, standard_reference=_standard(layout, info, reference, references, notes))
    if blind and not layout.human_scores(info.gold, "seg").is_file():
        systems = tuple(system for system in outputs if choice.takes(system, info, references))
        gold_scores = np.full((len(systems), len(sources)), np.nan)
    else:
        systems, gold_scores = _gold(layout, info, outputs, references, len(sources), choice)
    # A merged set has the single raters' spans again: the notes count those that are evaluated.
    files = layout.human_ratings()
    evaluated = choose_ratings(files, info.gold)
    reader, others = (RatingsReader(outputs, systems) for _ in range(2))
    ratings = tuple((reader if name in evaluated else others).read(name, path) for name, path in files.items())
    return TestSet(
        layout=layout,
        info=info,
        systems=systems,
        sources=tuple(text or "" for text in sources),
        documents=tuple(documents),
        references=references,
        outputs=outputs,
        gold=gold_scores,
        ratings=ratings,
        notes=(*notes, *reader.notes(f"people, {lp}")),
    )


def _info(layout: Layout, gold: str | None, notes: list[str]) -> TestSetInfo:
    """What is known of the test set, with the gold scores that are named, or that are there."""
    info = info_of(layout.test_set, layout.lp)
    if gold:
        return replace(info, gold=gold)
    if not layout.human_scores(info.gold, "seg").is_file():
        names = layout.human_score_names("seg")
        instead = gold_there(names) or (names[0] if len(names) == 1 else None)
        if instead is not None:
            notes.append(f"no gold scores {info.gold} in {layout.lp}: {instead} take their place")
            return replace(info, gold=instead)
    return info


def _standard(
    layout: Layout, info: TestSetInfo, reference: str | None, references: Collection[str], notes: list[str]
) -> str | None:
    """The standard reference: the one that is named, else the usual one, else the first."""
    there = ", ".join(references) or "none"
    if reference is not None and reference not in references:
        raise InputError(
            f"{layout.root / 'references'}: no reference {reference!r} for {layout.lp}; there are: {there}; "
            "name it with --reference"
        )
    usual = reference or info.standard_reference
    if usual in references:
        return usual
    # Error spans and metrics without a reference need none.
    first = next(iter(sorted(references)), None)
    if usual is not None:
        instead = f"{first} takes its place" if first else "no metric with a reference is compared"
        notes.append(f"no reference {usual} in {layout.lp} (there are: {there}): {instead}")
    return first


def _check_folders(layout: Layout) -> None:
    if not layout.root.is_dir():
        sets = sorted(path.name for path in layout.data.glob("*") if path.is_dir())
        there = f"there are {', '.join(sets)}" if sets else f"{layout.data} is empty or missing"
        raise InputError(
            f"{layout.root}: no such test set; {there}; name its folder, such as --test-set data/wmt24; the "
            "published test sets come with mt-metrics-eval (mtme --download), ratings of your own by mbr-esd wmt import"
        )
    if not layout.source().is_file():
        if packed := packed_file(layout.source()):
            raise InputError(f"{packed}: files of a test set are plain text; unpack it")
        files = (layout.root / "sources").glob("*.[tj][xs]*")
        there = ", ".join(sorted({path.name.split(".")[0] for path in files})) or "none"
        raise InputError(f"{layout.source()}: no such file; language pairs of {layout.test_set}: {there}")


def _texts(path: Path, field: str, count: int | None) -> tuple[str | None, ...]:
    segments = read_text(path, field)
    if count is not None:
        _check_count(path, len(segments), count)
    elif not segments:
        raise InputError(f"{path}: the file is empty")
    return tuple(segments)


def _check_count(path: Path, lines: int, segments: int) -> None:
    if lines != segments:
        raise InputError(f"{path}, line {min(lines, segments) + 1}: {lines} lines, but {segments} source segments")


def _gold(
    layout: Layout,
    info: TestSetInfo,
    outputs: Mapping[str, object],
    references: Collection[str],
    segments: int,
    choice: SystemChoice,
) -> tuple[tuple[str, ...], FloatMatrix]:
    path = layout.human_scores(info.gold, "seg")
    if not path.is_file():
        there = ", ".join(layout.human_score_names("seg"))
        fix = "`mbr-esd leaderboard --gold` takes one" if there else "import human ratings first: mbr-esd wmt import"
        raise InputError(f"{path}: no such gold scores; there are: {there or 'none'}; {fix}")
    stored = read_scores(path)
    check_blocks(path, stored, outputs, segments)
    rated = [system for system in sorted(stored) if any(score is not None for _, score in stored[system])]
    systems = tuple(system for system in rated if choice.takes(system, info, references))
    if not systems:
        raise InputError(
            f"{path}: of the systems with a gold score ({', '.join(rated) or 'none'}) none is evaluated; name "
            "those that are with --systems"
        )
    scores = [[np.nan if score is None else score for _, score in stored[system]] for system in systems]
    return systems, np.array(scores, dtype=np.float64)
