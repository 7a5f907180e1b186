"""WMT26's human evaluation in its released format: contrastive ESA.

annotations.json contains Pearmut's logs, with one campaign per language pair. The texts are in a folder:
wmt26-genmt.jsonl, with one document per line, and systems/NAME.jsonl with the translations. A document is split into
segments after `</p>`, or after the values of its JSON; annotators saw the translations of some systems for all segments
of a document.

The rules are those of the task's own scripts (humeval/02a-filter_data.py, 02b-analyze_results.py and
07-build_synthetic_references.py of wmt-conference/wmt26-general-mt): tutorials, attention checks, reset answers and
scores of translations that were not shown do not count as ratings; users with low agreement with the others are
excluded; all other scores of a translation count, including repeated ones.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain, combinations, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mbr_esd_metric.adapters.esa_files import SourceSegment, TestSetTexts
from mbr_esd_metric.adapters.pearmut.annotations import Answer, Campaign, answers_of, error_of, read_logs
from mbr_esd_metric.adapters.ratings import LeftOut, MqmError, Rating, RatingData, score_in_range
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.files.untrusted import json_objects, reading, text_of

#: Separator of the parts of document and segment names.
_SEPARATOR = "_###_"
#: Tokens after a translation that could be marked.
_TOKENS = ("[missing]", "[instructions fault]")
#: Name of a human translation on annotators' screens -> its reference name.
_PEOPLE = {"Human (from scratch)": "refA", "Human (postediting)": "refPE"}
_ENDING = " with-reasoning"
#: Minimum agreement of a user with the scores of all users, minimum number of screens for computing it, and one less
#: than the minimum number of scores of a system used for it.
_LEAST_AGREEMENT, _LEAST_SCREENS, _FEW_SCORES = 0.75, 3, 10
_STRINGS = [re.compile(rf"{quote}(?:[^{quote}\\]|\\.)*{quote}") for quote in '"”“„']


class _Document(NamedTuple):
    """A document's segments, translations by system, and other fields, such as video, screenshot and instructions."""

    segments: tuple[str, ...]
    outputs: Mapping[str, str]
    fields: Mapping[str, Any]


def read_wmt26_esa(path: str | Path, texts: str | Path, lps: Collection[str] = ()) -> TestSetTexts:
    """The rated documents, with the translations of all systems.

    Args:
        path: annotations.json, plain or compressed.
        texts: the folder with wmt26-genmt.jsonl and systems.
        lps: the language pairs to read, such as "eng_Latn-deu_Latn"; all if empty.
    """
    left_out: dict[str, Counter[str]] = defaultdict(Counter)
    answered: dict[str, dict[str, list[Answer]]] = {}
    for name, log in read_logs(path).items():
        lp = name.split()[0].replace("---", "-") if name.split() else name
        if lps and lp not in lps:
            continue
        answers = answers_of(Campaign(name, lp, tokens=_TOKENS), log)
        counts = left_out[lp]
        counts.update(answers.left_out)
        checks = [passed for of_person in answers.checks.values() for passed in of_person.values()]
        counts["attention check"] += len(checks)
        counts["attention check that was failed"] += checks.count(False)
        by_user: dict[str, list[Answer]] = defaultdict(list)
        for answer in answers.kept:
            if answer.value.get("score") is None:
                counts["answer without a score"] += 1
            else:
                by_user[answer.person].append(answer)
        for user in unreliable_users(by_user):
            counts[f"score of a user who agrees with the others by less than {_LEAST_AGREEMENT}"] += len(by_user[user])
            counts["user who agrees with the others too little"] += 1
            del by_user[user]
        if by_user:
            answered[lp] = by_user
    if not answered:
        raise InputError(f"{path}: no rating{' of ' + ', '.join(lps) if lps else ' in this file'}")
    folder = Path(texts)
    documents = _documents(folder, answered)
    pairs: list[tuple[SourceSegment, list[Rating]]] = []
    for lp, by_user in answered.items():
        with reading(f"{path}, {lp}"):
            pairs += _segments(lp, by_user, documents[lp], left_out[lp], folder)
    rated = {(segment.lp, segment.domain, segment.document) for segment, _ in pairs}
    fields = {lp: [one.fields for key, one in documents[lp].items() if (lp, *key) in rated] for lp in answered}
    ratings = tuple(one for _, each in pairs for one in each)
    reasons = tuple(LeftOut(0, reason, lp) for lp, counts in left_out.items() for reason in counts.elements())
    return TestSetTexts(tuple(segment for segment, _ in pairs), (RatingData(Path(path), ratings, reasons),), fields)


def unreliable_users(by_user: Mapping[str, Sequence[Answer]]) -> list[str]:
    """The users whose score differences do not fit the mean differences of the systems.

    For two systems a and b on one screen, with the user's scores x_a and x_b, the fit is
    2^-((x_a - x_b - (m_a - m_b))^2 / (2 (v_a + v_b) + 1e-6)), where m and v are mean and variance of all scores of a
    system that has more than ten. Users with at least three screens are excluded if their mean fit is below 0.75.
    """
    scores: dict[str, list[float]] = defaultdict(list)
    for each in by_user.values():
        for answer in each:
            scores[answer.code].append(score_in_range(answer.value["score"]))
    moments = {s: (float(np.mean(v)), float(np.var(v, ddof=1))) for s, v in scores.items() if len(v) > _FEW_SCORES}
    users = []
    for user, each in by_user.items():
        items: dict[tuple[int, int], list[tuple[str, float]]] = defaultdict(list)
        for answer in each:
            items[id(answer.shown), answer.at].append((answer.code, float(answer.value["score"])))
        fits = []
        for (a, x_a), (b, x_b) in chain.from_iterable(combinations(item, 2) for item in items.values()):
            if a != b and a in moments and b in moments:
                (m_a, v_a), (m_b, v_b) = moments[a], moments[b]
                fits.append(2 ** -((x_a - x_b - (m_a - m_b)) ** 2 / (2 * (v_a + v_b) + 1e-6)))
        if len({screen for screen, _ in items}) >= _LEAST_SCREENS and fits and np.mean(fits) < _LEAST_AGREEMENT:
            users.append(user)
    return users


def _documents(folder: Path, lps: Collection[str]) -> dict[str, dict[tuple[str, str], _Document]]:
    """Language pair -> (domain, document) -> the document, in the order of the test set."""
    outputs: dict[str, dict[str, str]] = defaultdict(dict)
    for path in sorted((folder / "systems").glob("*.jsonl*")):
        for where, _, item in json_objects(path):
            with reading(where):
                outputs[text_of(item, "doc_id")][path.name.partition(".jsonl")[0]] = text_of(item, "hypothesis")
    files = [path for path in sorted(folder.glob("wmt26-genmt.jsonl*")) if path.is_file()]
    if not files or not outputs:
        raise InputError(f"{folder}: give the folder with wmt26-genmt.jsonl and systems/*.jsonl")
    documents: dict[str, dict[tuple[str, str], _Document]] = {lp: {} for lp in lps}
    for where, _, item in json_objects(files[0]):
        with reading(where):
            identifier = text_of(item, "doc_id")
            first, domain, source, target, name = identifier.split(_SEPARATOR, 4)
            if first == "WMT26" and f"{source}-{target}" in documents:
                people = {str(ref): str(text) for ref, text in (item.get("refs") or {}).items() if text}
                segments = tuple(blocks_of(text_of(item, "src_text")))
                fields = {key: value for key, value in item.items() if key not in ("src_text", "refs")}
                document = _Document(segments, outputs.get(identifier, {}) | people, fields)
                documents[f"{source}-{target}"][domain, name] = document
    return documents


def blocks_of(text: str, like: str | None = None) -> list[str]:
    """The segments of a document: paragraphs up to `</p>`, JSON values, or the whole text; joined, they equal the text.

    Args:
        like: the source of a translation, which determines its format.
    """
    head = (text if like is None else like).strip()
    if head.startswith("<p>"):
        ends = [match.end() for match in re.finditer("</p>", text)]
    elif head.startswith("```json"):
        ends = _ends_of_values(text)
    else:
        return [text]
    cuts = [0, *ends, *([len(text)] if not ends or ends[-1] < len(text) else [])]
    blocks = [text[start:end] for start, end in pairwise(cuts)]
    # Line ends belong to the preceding block.
    for at in range(1, len(blocks)):
        rest = blocks[at].lstrip("\n")
        blocks[at - 1] += blocks[at][: len(blocks[at]) - len(rest)]
        blocks[at] = rest
    return blocks


def _ends_of_values(text: str) -> list[int]:
    """The end of each string value, including the comma after it; some systems use other quotation marks."""
    pattern = next((one for one in _STRINGS if one.search(text)), _STRINGS[0])
    ends = []
    for match in pattern.finditer(text):
        behind = re.compile(r"\s*([:,]?)").match(text, match.end())
        if behind is not None and behind[1] != ":":
            ends.append(behind.end() if behind[1] else match.end())
    return ends


def _segments(
    lp: str,
    by_user: Mapping[str, Sequence[Answer]],
    documents: Mapping[tuple[str, str], _Document],
    left_out: Counter[str],
    folder: Path,
) -> Iterator[tuple[SourceSegment, list[Rating]]]:
    """The segments of the rated documents, in the order of the test set, and their ratings."""
    rated: dict[tuple[str, str], dict[int, list[Answer]]] = defaultdict(lambda: defaultdict(list))
    for answer in chain.from_iterable(by_user.values()):
        identifier = str(answer.item["item_id"])
        domain, rest = identifier.split(_SEPARATOR, 1)
        name, place = rest.rsplit(_SEPARATOR, 1)
        document = documents.get((domain, name))
        if document is None or not int(place) < len(document.segments):
            raise InputError(f"segment {identifier} is not in {folder}/wmt26-genmt.jsonl")
        rated[domain, name][int(place)].append(answer)
    # Screens omit the suffix of some names.
    shown = {answer.code for each in by_user.values() for answer in each}
    full = {system for document in documents.values() for system in document.outputs} - shown
    names = {s: s.removesuffix(_ENDING) for s in full if s.removesuffix(_ENDING) in shown}
    number = 0
    for (domain, name), document in documents.items():
        if (domain, name) not in rated:
            left_out["document that nobody rated"] += 1
            continue
        blocks = {}
        for system, text in document.outputs.items():
            parts = blocks_of(text, "".join(document.segments))
            if len(parts) == len(document.segments) + 1 and not parts[-1]:
                del parts[-1]  # a line end after the last paragraph
            if len(parts) == len(document.segments):
                blocks[names.get(system, system)] = parts
            else:
                left_out["document of a system that has other paragraphs than the source: only what people saw"] += 1
        for at, source in enumerate(document.segments):
            number += 1
            segment, ratings = SourceSegment(lp, domain, name, str(number), source), []
            for answer in rated[domain, name][at]:
                system, text = _PEOPLE.get(answer.code, answer.code), answer.item["tgt"][answer.code]
                segment.put(system, text)
                errors = tuple(_errors(answer.value.get("error_spans") or [], text, left_out))
                score = score_in_range(answer.value["score"])
                ratings.append(Rating(segment.translated_by(system), answer.person, errors, lp, score=score))
            for system, parts in blocks.items():
                segment.outputs.setdefault(system, parts[at])
            yield segment, ratings


def _errors(spans: Sequence[Mapping[str, Any]], text: str, left_out: Counter[str]) -> Iterator[MqmError]:
    for span in spans:
        try:
            error = error_of(span, text, _TOKENS)
        except (InputError, KeyError):
            left_out["error span without a severity, or outside of its translation"] += 1
            continue
        left_out["instructions fault: has no span"] += error.side is None
        yield error
