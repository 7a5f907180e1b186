"""The translation to which a record of a file belongs: the same for every command."""

from __future__ import annotations

import itertools
import json
import shutil
from pathlib import Path

import pytest

from mbr_esd_metric import load_metric
from mbr_esd_metric.adapters.wmt import load_test_set
from mbr_esd_metric.adapters.wmt.layout import Layout, write_scores
from mbr_esd_metric.adapters.wmt.metric_files import metric_of_file, read_sampled
from mbr_esd_metric.adapters.wmt.rating_files import write_ratings
from mbr_esd_metric.core.annotation import Annotation, ErrorSpan
from mbr_esd_metric.core.segment import MARK, Segment
from mbr_esd_metric.decoding.options import DecisionOptions
from mbr_esd_metric.files.paths import NamedPath
from mbr_esd_metric.files.records import CandidateRecord, Join, write_records
from mbr_esd_metric.metaeval.choosing import choose_all
from mbr_esd_metric.report.inputs import read_table
from tests.helpers import candidates
from tests.helpers.command import Command
from tests.helpers.wmt_folder import write_texts

#: Three segments of two systems: the first two translations are equal, and so are A's first and third.
TARGETS = {"A": ["eins zwei drei", "vier fünf", "eins zwei drei"], "B": ["eins zwei drei", "sechs sieben", "acht"]}
SOURCES = ["one", "two", "one"]


def record(system: str, number: int, *words: str, blank: str = "", n: int = 3) -> CandidateRecord:
    """A candidates' record for that system's translation; it marks these words."""
    texts = [candidates.answer(*words)] * n
    return candidates.record(SOURCES[number], TARGETS[system][number] + blank, *texts, number=number, system=system)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    layout = Layout(tmp_path_factory.mktemp("joined"), "tiny", "en-de")
    write_texts(layout, SOURCES, TARGETS)
    write_scores(layout.human_file("mqm", "seg.score"), {"A": [0.0, 0.0, 0.0], "B": [-5.0, 0.0, 0.0]})
    return layout.data


def test_a_known_system_is_bound_and_an_unknown_one_is_not() -> None:
    places = [
        Segment("s", "t", system="A"),
        Segment("s", "t ", system="B"),
        Segment("s", "t", system="out/x.txt"),
        Segment("s\n", "t"),
    ]
    join = Join(zip(places, itertools.count(), strict=False), {"A", "B", "C"})
    assert join.find(Segment("s", "t", system=system) for system in ("A", "B", "C", "D", "")) == [0, 1, 2, 2, 2]
    assert join.find(Segment(source, "t", system="C") for source in ("s", "s ", "s")) == [2, 3, 3]
    assert join.find([Segment("s", " t", system="A")]) == [None]


#: For each translation of A and B, the word that its record marks.
MARKED = {"A": ["eins", "vier", "drei"], "B": ["zwei", "sechs", "acht"]}
PLACES = list(itertools.product("AB", range(3)))


@pytest.mark.parametrize("blank", ["", " "])
@pytest.mark.parametrize("order", ["AB", "BA"])
def test_one_file_means_the_same_to_every_command(
    data: Path, tmp_path: Path, blank: str, order: str, mbr_esd: Command
) -> None:
    """Two systems with equal translations, one text twice in a system, and translations that end in a space."""
    records = [record(s, i, MARKED[s][i], blank=blank, n=256) for s in order for i in range(3)]
    path = tmp_path / "llama.en-de.jsonl"
    write_records(path, records)
    test_set = load_test_set(data, "tiny", "en-de")

    def words_of(annotations: object) -> dict[str, list[str]]:
        return {
            system: [
                " ".join(TARGETS[system][i][span.start : span.end] for span in annotation)
                for i, annotation in enumerate(row)
            ]
            for system, row in zip(test_set.systems, annotations, strict=True)  # type: ignore[call-overload]
        }

    sampled = read_sampled(test_set, str(path))  # oracle and scaling
    assert words_of(choose_all(sampled, DecisionOptions("mbr"))) == MARKED

    model = f"mbr-esd-llama?candidates={path}"
    mbr_esd(f"wmt score --test-set {data}/tiny --lp en-de --model replayed{tmp_path.name}={model} --quiet")
    ratings = test_set.metric(f"replayed{tmp_path.name}-src").ratings
    assert ratings is not None
    assert words_of(ratings.of(test_set.systems, 3)) == MARKED
    sheet = read_table([NamedPath(path)], test_set)
    assert len(sheet.rows) == 6
    for text, distribution in zip(sheet.rows, sheet.candidates[0].distributions, strict=True):
        assert distribution is not None
        assert sum(width for width, _, _ in distribution.runs) == len(text.translation + blank)
        (candidate,) = distribution.annotations
        at = int(text.label) - 1
        assert [text.translation[s.start : s.end] for s in candidate.annotation] == [MARKED[text.system][at]]


def test_replay_does_not_depend_on_the_batch(tmp_path: Path) -> None:
    path = tmp_path / "candidates.jsonl"
    write_records(path, [record("A", 0, "eins"), record("A", 2, "drei"), record("B", 0, "zwei")])
    metric = load_metric(f"mbr-esd-llama?n=3&candidates={path}")
    samples = [{"src": "one", "mt": "eins zwei drei", "system": s} for s in ("B", "A", "A")]
    spans = metric.predict(samples, progress_bar=False).metadata.error_spans
    assert [errors[0]["text"] for errors in spans] == ["zwei", "eins", "drei"]
    # Without systems: the k-th text takes the k-th record.
    unnamed = [{key: value for key, value in sample.items() if key != "system"} for sample in samples]
    spans = metric.predict(unnamed, progress_bar=False).metadata.error_spans
    assert [errors[0]["text"] for errors in spans] == ["eins", "drei", "zwei"]


def test_a_byte_order_mark_is_a_character_of_a_test_set_and_of_no_metric(
    data: Path, tmp_path: Path, mbr_esd: Command
) -> None:
    """As of AIRC in WMT23's en-de: people's spans count it, and what a metric wrote without it is found, and moved."""
    shutil.copytree(data, own := tmp_path / "own")
    layout = Layout(own, "tiny", "en-de")
    for path in (layout.source(), layout.output("B")):
        path.write_text(MARK + path.read_text(encoding="utf-8"), encoding="utf-8")
    write_ratings(layout.human_file("mqm.merged", "seg.rating"), {"B": [Annotation([ErrorSpan(6, 10, "major")])] * 3})
    test_set = load_test_set(own, "tiny", "en-de")
    assert (test_set.outputs["B"][0], test_set.sources[0]) == (f"{MARK}eins zwei drei", f"{MARK}one")

    write_records(tmp_path / "c.jsonl", [record(system, number, MARKED[system][number]) for system, number in PLACES])
    for system in "AB":
        (tmp_path / f"{system}.txt").write_text("".join(f"{text}\n" for text in TARGETS[system]))
    (tmp_path / "s.txt").write_text("".join(f"{text}\n" for text in SOURCES))
    files = " ".join(str(tmp_path / name) for name in ("A.txt", "B.txt"))
    model = f"mbr-esd-llama?candidates={tmp_path}/c.jsonl&n=3"
    mbr_esd(f"score -s {tmp_path}/s.txt -t {files} --quiet --to_json {tmp_path}/o.json --model {model}")
    mbr_esd(f"decide {tmp_path}/c.jsonl -o {tmp_path}/d.jsonl --quiet")
    for name in ("o.json", "d.jsonl"):
        if name == "d.jsonl":  # decisions name segments by their numbers
            lines = [json.loads(line) for line in (tmp_path / name).read_text().splitlines()]
            numbered = [json.dumps({**line, "id": str(int(line["id"]) + 1)}) for line in lines]
            (tmp_path / name).write_text("\n".join(numbered))
        ratings = metric_of_file(test_set, "m", tmp_path / name).ratings
        assert ratings is not None
        marked = [
            test_set.outputs[s][i][a.spans[0].start : a.spans[0].end]
            for s in "AB"
            for i, a in enumerate(ratings.both[s])
        ]
        assert marked == [*MARKED["A"], *MARKED["B"]]
    sheet = read_table([NamedPath(tmp_path / "o.json")], test_set)
    [column] = [column for column in sheet.columns if column.name == "o"]
    for text, rating in zip(sheet.rows, column.judged, strict=True):
        if rating is not None:
            [span] = rating.annotation or ()
            assert text.translation[span.start : span.end] == MARKED[text.system][int(text.label) - 1]
    printed = mbr_esd(f"leaderboard --test-set {own}/tiny --lp en-de --view spans --metric {tmp_path}/o.json").out
    assert "o" in printed
