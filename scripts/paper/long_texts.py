"""The tables of docs/evidence/long-texts.md: the effect of text length on scores and spans.

    python scripts/paper/long_texts.py people RATINGS...            # four scores of a text of several sentences
    python scripts/paper/long_texts.py model TED.tsv --model NAME   # a model on texts of 1 to 20 segments

Consecutive segments of a document are joined with a space, and their annotations are merged. Ratings are Google's MQM
(TSV) or JSON lines. `people` evaluates the annotations of one rater as a metric, with another rater as gold.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations

import numpy as np
from scipy.stats import spearmanr

from mbr_esd_metric.adapters.rating_formats import read_mqm
from mbr_esd_metric.adapters.ratings import Rating
from mbr_esd_metric.core.annotation import WEIGHTS, Annotation
from mbr_esd_metric.core.segment import Segment
from mbr_esd_metric.metaeval.spa import spa
from mbr_esd_metric.metaeval.spans import evaluate_spans
from mbr_esd_metric.metric.cards import load_card
from mbr_esd_metric.metric.run import annotate
from mbr_esd_metric.prompting.pieces import word_count
from mbr_esd_metric.prompting.sentences import Part, parts

JOINS = (1, 2, 5, 10, 20)
MQM = WEIGHTS["google"]


@dataclass(frozen=True)
class Text:
    """Consecutive segments of a system's translation of a document, joined with spaces.

    Attributes:
        place: the document, and the number of the text in it.
        annotations: rater -> annotation of the joined text.
    """

    system: str
    place: tuple[str, int]
    source: str
    translation: str
    annotations: Mapping[str, Annotation]


def text_of(place: tuple[str, int], segments: Sequence[Mapping[str, Rating]]) -> Text:
    """The joined text of consecutive segments; each item maps raters to ratings."""
    first = [next(iter(one.values())) for one in segments]
    raters = sorted(set.intersection(*(set(one) for one in segments)) or {"any"})
    ratings = {rater: [one.get(rater, any_) for one, any_ in zip(segments, first, strict=True)] for rater in raters}
    joined = [one.segment for one in first]
    source, translation = " ".join(one.source for one in joined), " ".join(one.translation for one in joined)
    return Text(joined[0].system, place, source, translation, {rater: _joined(of) for rater, of in ratings.items()})


def _joined(ratings: Sequence[Rating]) -> Annotation:
    spans, at, in_source = [], 0, 0
    for one in ratings:
        for span in one.both:
            shift = at if span.side == "translation" else in_source
            spans.append(replace(span, start=span.start + shift, end=span.end + shift))
        at += len(one.segment.translation) + 1
        in_source += len(one.segment.source) + 1
    return Annotation.of_rater(spans)


def texts(path: str, join: int, most: int | None = None) -> Iterator[Text]:
    """The texts of `join` segments each, from the first `most` segments of every document; a shorter rest is
    omitted."""
    documents: dict[tuple[str, str], dict[tuple[str, str], dict[str, Rating]]] = defaultdict(dict)
    for rating in read_mqm(path):
        one = rating.segment
        place = (one.label, one.translation)  # bio-MQM has several documents with the same name
        documents[one.system, one.document].setdefault(place, {})[rating.rater] = rating
    for (_, document), by_segment in documents.items():
        segments = list(by_segment.values())[:most]
        for first in range(0, len(segments) - join + 1, join):
            yield text_of((document, first), segments[first : first + join])


#: Score of a text as a function of the MQM scores of its sentences, each at most 0.
SCORES = {
    "one sum, floor -25": lambda each: max(sum(each), MQM.floor),
    "sum without floor": sum,
    "sum per sentence": lambda each: sum(each) / len(each),
    "mean of the sentences' scores": lambda each: float(np.mean(np.maximum(each, MQM.floor))),
    "minimum": lambda each: max(min(each), MQM.floor),
}


def _penalties(annotation: Annotation, places: Sequence[Part]) -> list[float]:
    ends = [part.end for part in places[:-1]]
    scores = [0.0] * len(places)
    for span in annotation.on("translation"):
        scores[sum(end <= span.start for end in ends)] += MQM.of(span)
    return scores


def people(paths: Sequence[str]) -> None:
    """Print Spearman's rho of each score with the penalties per 100 words of another rater, by file and length."""
    for path in paths:
        print(path)
        for join in JOINS:
            scored: dict[str, list[float]] = {name: [] for name in SCORES}
            truth, words, sentences = [], [], []
            for text in texts(path, join):
                places = parts(text.source, text.translation, "en-de")
                length = word_count(text.translation)
                for one, other in permutations(text.annotations.values(), 2):
                    each = _penalties(one, places)
                    for name, score in SCORES.items():
                        scored[name].append(score(each))
                    truth.append(100 * MQM.total(other.on("translation")) / max(length, 1))
                    words.append(length)
                    sentences.append(len(each))
            if len(truth) < 50:
                continue
            mean_words, mean_sentences = np.mean(words), np.mean(sentences)
            print(f"  {join} joined: {len(truth)} pairs, {mean_words:.0f} words, {mean_sentences:.1f} sentences")
            for name, values in scored.items():
                floor = np.mean(np.array(values) <= MQM.floor)
                print(f"    {name:30} rho {spearmanr(values, truth)[0]:.3f}  at -25: {floor:.1%}")


def model(path: str, name: str, joins: Sequence[int], systems: Sequence[str], most: int, documents: int) -> None:
    """Print one row for each length, for scoring whole texts and scoring by sentence."""
    shown: list[str] = []
    print("| joined | words | unit | rho | SPA | softdice-corpus | mpp-corpus | marks/100 words | at 0 | CPU s/100 |")
    print("|" + "--:|" * 10)
    for join in joins:
        some = [one for one in texts(path, join, most) if not systems or one.system in systems]
        shown = shown or list(dict.fromkeys(one.place[0] for one in some))[:documents]
        some = [one for one in some if one.place[0] in shown]
        for unit in ("segment", "sentence") if join > 1 else ("segment",):
            print(_row(some, join, unit, name), flush=True)


def _row(some: Sequence[Text], join: int, unit: str, name: str) -> str:
    card = load_card(name, {"unit": unit})
    segments = [Segment(one.source, one.translation, f"text {i}", one.system) for i, one in enumerate(some)]
    start = time.process_time()
    decisions = annotate(card, segments).decisions
    seconds = time.process_time() - start
    gold, lengths = [next(iter(one.annotations.values())) for one in some], [len(one.translation) for one in some]
    words = [word_count(one.translation) for one in some]
    marks = sum(len(one.annotation.on("translation")) for one in decisions)
    scores = [one.score for one in decisions]
    truth = [100 * MQM.total(one) / max(count, 1) for one, count in zip(gold, words, strict=True)]
    systems, places = sorted({one.system for one in some}), sorted({one.place for one in some})
    matrices = np.full((2, len(systems), len(places)), np.nan)
    for one, score, true in zip(some, scores, truth, strict=True):
        matrices[:, systems.index(one.system), places.index(one.place)] = true, score
    spans = evaluate_spans([[d.annotation for d in decisions]], [[gold]], [lengths], ("softdice-corpus", "mpp-corpus"))
    cells = [
        str(join), f"{np.mean(words):.0f}", unit, f"{spearmanr(scores, truth)[0]:.3f}", f"{spa(*matrices):.3f}",
        *(f"{value:.3f}" for value in spans.values.values()), f"{100 * marks / sum(words):.2f}",
        f"{np.mean(np.array(scores) <= 0):.0%}", f"{100 * seconds / sum(words):.2f}",
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Read the arguments."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    of_people = verbs.add_parser("people")
    of_people.add_argument("ratings", nargs="+")
    of_model = verbs.add_parser("model")
    of_model.add_argument("ratings")
    of_model.add_argument("--model", required=True)
    of_model.add_argument("--joins", type=int, nargs="+", default=JOINS)
    of_model.add_argument("--systems", nargs="*", default=(), help="only these")
    of_model.add_argument("--most", type=int, default=20, help="segments of a document")
    of_model.add_argument("--documents", type=int, default=100, help="documents")
    args = parser.parse_args()
    if args.verb == "people":
        people(args.ratings)
    else:
        model(args.ratings, args.model, args.joins, args.systems, args.most, args.documents)


if __name__ == "__main__":
    main()
