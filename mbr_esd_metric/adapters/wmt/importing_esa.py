"""Writes segments in the layout of mt-metrics-eval: ESA and MQM of its files with gold, and a task's test set without.

    wmt25    mteval-task1-test25.tsv, mteval-task2-test25.tsv: one row a segment and system
    wmt26    mteval-test26.jsonl: one segment a line, item_id, src, ref and hyps

A task's own names of systems and numbers of segments are kept, so that a submission can use them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mbr_esd_metric.adapters.esa_files import EsaAnnotation, EsaData, EsaSegment, read_table_segments
from mbr_esd_metric.adapters.mqm_tsv import MqmError, score_of
from mbr_esd_metric.adapters.wmt import layout as files
from mbr_esd_metric.adapters.wmt.importing import Imported
from mbr_esd_metric.adapters.wmt.layout import Layout
from mbr_esd_metric.adapters.wmt.meta_info import info_of
from mbr_esd_metric.adapters.wmt.rating_files import write_ratings
from mbr_esd_metric.adapters.wmt.submissions import read_items
from mbr_esd_metric.adapters.wmt.target import Target, replacing
from mbr_esd_metric.core.mqm import MqmWeights, weights_of
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.files.paths import plain_name
from mbr_esd_metric.files.streams import json_text


def import_esa(human: EsaData, target: Target) -> Imported:
    """Write a test set of ESA in the layout of mt-metrics-eval.

    Gold scores are the raters' scores; for annotations without a score, such as MQM's, they are minus the penalties of
    the errors. If a segment has several annotations, their mean counts, and each is also written by itself. The gold is
    called "esa", the first annotation of each segment "esa-human1", the second "esa-human2" and so on. WMT25's standard
    gold is the first. MQM's gold is called "mqm".

    Args:
        human: what `read_esa` returned.
        target: where to. In names that are not changed, white space and slashes become underscores.

    Raises:
        InputError: no annotation in that language pair, some with a score and some without, a name the layout cannot
            carry, the test set is there, or metric scores of its older texts are.
        OptionError: a reference or a system to rename that is not in the data; a test set or a language pair whose name
            the layout cannot carry.
    """
    layout, lp = target.layout(), target.lp
    segments = ordered([segment for segment in human.segments if segment.lp == lp])
    if not any(segment.annotations for segment in segments):
        raise InputError(f"no annotation of {lp}; there are: {', '.join(human.lps)}")
    names = layout_names(segments, target)
    systems = tuple(sorted(set(names.values())))
    given = target.references_among(systems)
    scored = {one.score is not None for s in segments for each in s.annotations.values() for one in each}
    if len(scored) > 1:
        raise InputError("some annotations have a score and some have none; give ESA and MQM to an import each")
    table = weights_of(target.weights)
    notes = [f"{count} times: {reason}" for reason, count in sorted(human.left_out.get(lp, {}).items())]
    with replacing(layout, [segment.source for segment in segments]) as new:
        write_texts(new, segments, names, given)
        if lp in human.documents:
            files.write_lines(new.task("documents"), (json_text(one) for one in human.documents[lp]))
        waves = _write_gold(new, segments, names, "esa" if True in scored else "mqm", table)
    if waves > 1:
        notes.append(f"up to {waves} annotations a translation")
    annotators = {one.annotator for s in segments for each in s.annotations.values() for one in each if one.annotator}
    return Imported(
        layout,
        systems,
        given,
        tuple(sorted(annotators)),
        len(segments),
        len({segment.document for segment in segments}),
        sum(len(each) for segment in segments for each in segment.annotations.values()),
        tuple(notes),
    )


def write_texts(
    layout: Layout, segments: Sequence[EsaSegment], names: Mapping[str, str], references: Sequence[str]
) -> None:
    """Write everything except gold."""
    files.write_text(layout.source(), (segment.source for segment in segments))
    files.write_documents(layout.documents, ((segment.domain, segment.document) for segment in segments))
    for name in sorted(set(names.values())):
        own = [old for old, new in names.items() if new == name]
        texts = [next((s.outputs[old] for old in own if old in s.outputs), None) for s in segments]
        files.write_text(layout.output(name), texts)
        if name in references:
            files.write_text(layout.reference(name), texts)


def ordered(segments: Iterable[EsaSegment]) -> list[EsaSegment]:
    """The segments by number if all have one; each document stays in one piece."""
    listed = list(segments)
    first: dict[str, int] = {}
    for segment in listed:
        first.setdefault(segment.document, len(first))
    if all(segment.number.isdecimal() for segment in listed):
        listed.sort(key=lambda segment: int(segment.number))
    listed.sort(key=lambda segment: first[segment.document])
    return listed


def layout_names(segments: Sequence[EsaSegment], target: Target) -> dict[str, str]:
    """System as in the file -> its name in the layout."""
    there = {system for segment in segments for system in (*segment.outputs, *segment.annotations)}
    target.check_rename(there)
    return {old: target.rename.get(old, "_".join(old.replace("/", " ").split())) for old in there}


def _write_gold(
    layout: Layout, segments: Sequence[EsaSegment], names: Mapping[str, str], kind: str, weights: MqmWeights
) -> int:
    """Write scores and error spans; returns the most annotations of a translation."""
    cells: dict[str, list[list[EsaAnnotation]]] = {name: [[] for _ in segments] for name in names.values()}
    for number, segment in enumerate(segments):
        for system, each in segment.annotations.items():
            cells[names[system]][number] += each
    rated = {name: row for name, row in cells.items() if any(row)}
    waves = max(len(each) for row in rated.values() for each in row)
    standard = info_of(layout.test_set, layout.lp).gold
    kept = {kind: list(range(waves))}
    if waves > 1 or standard == f"{kind}-human1":
        kept |= {f"{kind}-human{wave + 1}": [wave] for wave in range(waves)}
    for gold, which in kept.items():
        chosen = {
            name: [[each[w] for w in which if w < len(each)] for each in row]
            for name, row in rated.items()
            if any(len(each) > which[0] for each in row)
        }
        _write_scores(layout, gold, segments, chosen, weights)
        asked = any(one.errors is not None for row in chosen.values() for each in row for one in each)
        if asked and (len(which) == 1 or waves == 1):
            _write_ratings(layout, f"{gold}.merged", chosen)
    return waves


def _write_scores(
    layout: Layout,
    gold: str,
    segments: Sequence[EsaSegment],
    cells: Mapping[str, Sequence[Sequence[EsaAnnotation]]],
    weights: MqmWeights,
) -> None:
    scores = {name: [_mean([_score(one, weights) for one in each]) for each in row] for name, row in cells.items()}
    domains = ["_".join(segment.domain.split()) for segment in segments]
    files.write_scores(layout.human_scores(gold, "seg"), scores)
    files.write_scores(layout.human_scores(gold, "sys"), {name: [_mean(row)] for name, row in scores.items()})
    by_domain = {
        name: {
            domain: _mean([score for score, own in zip(row, domains, strict=True) if own == domain])
            for domain in dict.fromkeys(domains)
        }
        for name, row in scores.items()
    }
    files.write_domain_scores(layout.human_scores(gold, "domain"), by_domain)


def _write_ratings(layout: Layout, name: str, cells: Mapping[str, Sequence[Sequence[EsaAnnotation]]]) -> None:
    ratings: dict[str, list[Sequence[MqmError] | None]] = {}
    raters: dict[str, list[str | None]] = {}
    for system, row in cells.items():
        ratings[system] = [each[0].errors if each else None for each in row]
        raters[system] = ["_".join((each[0].annotator or "").split()) or None if each else None for each in row]
    write_ratings(layout.human_rating(name), ratings, raters)


def _score(one: EsaAnnotation, weights: MqmWeights) -> float:
    return score_of(one.errors or (), weights) if one.score is None else one.score


def _mean(scores: Sequence[float | None]) -> float | None:
    there = [score for score in scores if score is not None]
    return sum(there) / len(there) if there else None


def read_task(path: str | Path, *, quoted: bool = False) -> tuple[EsaSegment, ...]:
    """The official segments of a task's test set, in the file's order; rows of challenge sets are left out.

    Args:
        path: a .tsv of WMT25 or a .jsonl of WMT26, plain or compressed.
        quoted: fields of the .tsv are quoted as in CSV.

    Raises:
        InputError: another format; the message names the line.
    """
    path = Path(path)
    of_wmt26 = plain_name(path).endswith(".jsonl")
    segments = read_items(path, _wmt26) if of_wmt26 else read_table_segments(path, quoted=quoted)
    if not segments:
        raise InputError(f"{path}: no official segment in this file")
    return tuple(segments)


def _wmt26(item: Mapping[str, Any], lp: str, domain: str, document: str, place: str) -> list[EsaSegment]:
    outputs = {str(system): str(text) for system, text in item["hyps"].items()}
    reference = (item.get("ref") or {}).get("text")
    if reference:
        outputs["refA"] = str(reference)
    return [EsaSegment(lp, domain, document, place, str(item["src"]), outputs)]


def import_task(segments: Sequence[EsaSegment], target: Target) -> Imported:
    """Write the texts of one language pair in the layout of mt-metrics-eval.

    Raises:
        InputError: nothing in that language pair, a name that the layout cannot carry, the test set is there, or metric
            scores of its older texts are.
        OptionError: a test set or a language pair whose name the layout cannot carry.
    """
    layout, lp = target.layout(), target.lp
    own = ordered([segment for segment in segments if segment.lp == lp])
    if not own:
        there = ", ".join(sorted({segment.lp for segment in segments}))
        raise InputError(f"nothing of {lp}; there are: {there}")
    names = layout_names(own, target)
    systems = tuple(sorted(set(names.values())))
    references = target.references_among(systems)
    with replacing(layout, [segment.source for segment in own]) as new:
        write_texts(new, own, names, references)
        files.write_lines(new.task("systems"), (f"{name}\t{old}" for old, name in sorted(names.items())))
        files.write_lines(new.task("segments"), (segment.number for segment in own))
    documents = len({segment.document for segment in own})
    return Imported(layout, systems, references, (), len(own), documents, 0, ())
