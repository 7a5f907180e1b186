"""A small real test set: four segments of six outputs of the WMT21 TED talks, and what the demo model says of them.

The candidates are kept as offsets, so that no text of the annotations is in the repository:

    python -m tests.helpers.ted MQM_FOLDER    # samples them again, with `mbr-esd-demo`
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

TEST_SET, LP = "wmt21.tedtalks", "en-de"
SYSTEMS = ("Facebook-AI", "Nemo", "Online-W", "UEdin", "eTranslation", "ref")
SEGMENTS = ("29", "87", "93", "251")
MODEL = "mbr-esd-demo?n=8&engine=transformers&grounded=true&max_tokens=96"
STORED = Path(__file__).parents[1] / "golden" / "ted_candidates.json"


def write_tsv(mqm_folder: Path, path: Path) -> Path:
    """The rows of these systems and segments."""
    header, *lines = (mqm_folder / "mqm_ted_ende.tsv").read_text(encoding="utf-8").split("\n")
    kept = [line for line in lines if line and line.split("\t")[0] in SYSTEMS and line.split("\t")[3] in SEGMENTS]
    path.write_text("\n".join([header, *kept]) + "\n", encoding="utf-8")
    return path


def write_candidates(mqm_folder: Path, path: Path) -> Path:
    """The stored candidates as a file that `engine=replay` takes."""
    from mbr_esd_metric.adapters.mqm_tsv import read_mqm_tsv

    texts = {(r.segment, r.system): r for r in read_mqm_tsv(write_tsv(mqm_folder, path.with_suffix(".tsv")))}
    with path.open("w", encoding="utf-8") as file:
        for item in json.loads(STORED.read_text(encoding="utf-8"))["segments"]:
            rating = texts[item["segment"], item["system"]]
            candidates = [
                {"text": _answer(spans, rating.target), "logprob": logprob} for spans, logprob in item["candidates"]
            ]
            record = {"id": item["segment"], "system": item["system"], "src": rating.source, "mt": rating.target}
            file.write(json.dumps({**record, "candidates": candidates}) + "\n")
    return path


def _answer(spans: list[list[Any]] | None, translation: str) -> str:
    """An answer with these errors; one that cannot be parsed for None."""
    if spans is None:
        return '{"errors": ['
    errors = [
        {"error_span": translation[start:end], "category": category, "sub_category": "", "severity": severity}
        for start, end, severity, category in spans
    ]
    return json.dumps({"errors": errors}, ensure_ascii=False)


def main(mqm_folder: Path) -> None:
    """Sample, and keep what can be parsed as offsets."""
    import tempfile

    from mbr_esd_metric.adapters.mqm_tsv import read_mqm_tsv
    from mbr_esd_metric.core.annotation import Annotation
    from mbr_esd_metric.errors import NoValidCandidateError
    from mbr_esd_metric.generation.store import CandidateStore
    from mbr_esd_metric.metric.cards import load_card
    from mbr_esd_metric.metric.pipeline import annotate
    from mbr_esd_metric.metric.plan import Segment, plan
    from mbr_esd_metric.metric.signature import signature
    from tests.helpers.annotations import parse_candidate

    store = Path(tempfile.gettempdir()) / "ted_candidates.sqlite"
    card = load_card(f"{MODEL}&store={store}")
    ratings = read_mqm_tsv(write_tsv(mqm_folder, store.with_suffix(".tsv")))
    segments = [Segment(r.source, r.target, f"{r.system} {r.segment}") for r in ratings]
    try:
        annotate(card, segments, progress=True)
    except NoValidCandidateError as error:
        print(error, file=sys.stderr)
    todo = plan(card, segments)
    items = []
    with CandidateStore.open(store) as samples:
        for rating, key in zip(ratings, todo.keys, strict=True):
            candidates = []
            for sample in samples.get(key or "", card.samples):
                parsed = None if sample is None or sample.truncated else parse_candidate(sample.text, rating.target)
                spans = None
                if isinstance(parsed, Annotation):
                    spans = [[s.start, s.end, s.severity, s.category or ""] for s in parsed]
                candidates.append([spans, round(sample.logprob, 3) if sample else None])
            items.append({"segment": rating.segment, "system": rating.system, "candidates": candidates})
    lines = ",\n".join(json.dumps(item) for item in items)
    STORED.write_text(f'{{"made by": {json.dumps(signature([todo]))},\n"segments": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main(Path(sys.argv[1]))
