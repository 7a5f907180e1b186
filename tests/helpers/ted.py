"""A small real test set: four segments of six outputs of the WMT21 TED talks, and what the demo model says of them.

The candidates are kept as offsets, so that no text of the annotations is in the repository; what sampled them stands
in `golden/ted_candidates.json`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

TEST_SET, LP = "wmt21.tedtalks", "en-de"
SYSTEMS = ("Facebook-AI", "Nemo", "Online-W", "UEdin", "eTranslation", "ref")
SEGMENTS = ("29", "87", "93", "251")
STORED = Path(__file__).parents[1] / "golden" / "ted_candidates.json"


def write_tsv(mqm_folder: Path, path: Path) -> Path:
    """The rows of these systems and segments."""
    header, *lines = (mqm_folder / "mqm_ted_ende.tsv").read_text(encoding="utf-8").split("\n")
    rows = [line for line in lines if line and line.split("\t")[0] in SYSTEMS and line.split("\t")[3] in SEGMENTS]
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
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
