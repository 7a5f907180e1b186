"""Decisions over the annotations of several annotators."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from mbr_esd_metric import Candidate, InputError, OptionError, decide, decide_many, load_metric, mqm_score
from mbr_esd_metric.core.decision import CandidateColumns, Decision
from mbr_esd_metric.core.kernels import severity_vector
from mbr_esd_metric.core.panel import Panel
from mbr_esd_metric.core.segment import Segment
from mbr_esd_metric.decoding.file import decide_file, decided_records, file_panel
from mbr_esd_metric.decoding.options import DecisionOptions
from mbr_esd_metric.files.records import CandidateRecord, read_decisions, write_records
from tests.helpers.candidates import answer
from tests.helpers.panels import LENGTH, PanelSegment, panel_segments

SEGMENTS = panel_segments(300)
OPTIONS = DecisionOptions(weights="agreement", utility="softdice", score="expected")


def decided(segments: list[PanelSegment], options: DecisionOptions = OPTIONS) -> list[Decision]:
    return decide_many([(one.candidates, one.translation) for one in segments], options)


def corpus_softdice(decisions: list[Decision], segments: list[PanelSegment]) -> float:
    pairs = [
        (severity_vector(a.annotation, LENGTH), severity_vector(b.truth, LENGTH))
        for a, b in zip(decisions, segments, strict=True)
    ]
    return float(sum(2 * np.minimum(u, v).sum() for u, v in pairs) / sum(u.sum() + v.sum() for u, v in pairs))


def test_learnt_weights_are_better_than_equal_ones_and_useless_annotators_change_little() -> None:
    learnt = corpus_softdice(decided(list(SEGMENTS)), list(SEGMENTS))
    equal = corpus_softdice(decided(list(SEGMENTS), DecisionOptions(utility="softdice")), list(SEGMENTS))
    assert learnt > equal + 0.02
    copies = [PanelSegment(one.truth, {**one.annotations, "copy": one.annotations["poor"]}) for one in SEGMENTS]
    assert corpus_softdice(decided(copies), copies) == pytest.approx(learnt, abs=1e-9)
    skills = {"good": (0.9, 0.1), "fair": (0.7, 0.3), "weak": (0.4, 0.8), "poor": (0.3, 1.0), "noise": (0.0, 1.0)}
    noisy = list(panel_segments(1200, skills=skills))
    fewer = [
        PanelSegment(one.truth, {name: each for name, each in one.annotations.items() if name != "noise"})
        for one in noisy
    ]
    assert corpus_softdice(decided(noisy), noisy) == pytest.approx(corpus_softdice(decided(fewer), fewer), abs=0.005)


def test_the_expected_score_is_the_weighted_mean_of_scaled_scores_in_whole_points() -> None:
    panel = Panel.learnt([{name: mqm_score(each) for name, each in one.annotations.items()} for one in SEGMENTS])
    scale, weight = ({one.name: getattr(one, key) for one in panel.panelists} for key in ("scale", "weight"))
    for one, decision in zip(SEGMENTS, decided(list(SEGMENTS)), strict=True):
        mean = sum(weight[name] * scale[name] * mqm_score(each) for name, each in one.annotations.items())
        assert decision.mqm == max(round(mean), -25)
        assert decision.mqm_sd is not None


@pytest.mark.parametrize("rule", ["mbr", "mbr-corpus", "consensus-corpus"])
@pytest.mark.parametrize("workers", [1, 2])
def test_a_file_is_decided_as_its_segments_are(tmp_path: Path, rule: str, workers: int) -> None:
    path, out = tmp_path / "panel.jsonl", tmp_path / "out.jsonl"
    write_records(path, [one.record(number) for number, one in enumerate(SEGMENTS)])
    options = DecisionOptions(rule, weights="agreement", score="expected")
    summary = decide_file(path, out, options, workers=workers)
    assert "w:agreement/good=0." in str(summary.signature)
    segments = [(one.candidates, one.translation) for one in SEGMENTS]
    sources = [f"Source {number}." for number in range(len(SEGMENTS))]
    expected = [(one.annotation, one.mqm) for one in decide_many(segments, options, sources=sources)]
    assert [(one.annotation, one.mqm) for one in read_decisions(out)] == expected
    assert [one and (one.annotation, one.mqm) for _, one in decided_records(path, options)] == expected


def test_one_segment_has_no_agreement() -> None:
    one = SEGMENTS[0]
    with pytest.raises(OptionError, match="use decide_many"):
        decide(one.candidates, one.translation, weights="agreement")


def test_a_candidate_without_annotator_is_named(tmp_path: Path) -> None:
    unnamed = [([*one.candidates, Candidate(annotation=[])], one.translation) for one in SEGMENTS]
    with pytest.raises(InputError, match='segment 1: candidate 5 has no "annotator"'):
        decide_many(unnamed, weights="agreement")
    path = tmp_path / "c.jsonl"
    path.write_text(
        json.dumps(
            {"id": "1", "src": "s", "mt": "Der Hund", "candidates": [{"text": answer("Hund")}, {"text": answer()}]}
        )
    )
    with pytest.raises(InputError, match=r'c\.jsonl, line 1, segment .1.: candidate 1 has no "annotator"'):
        decide_file(path, tmp_path / "out.jsonl", OPTIONS)


def test_several_candidates_of_one_annotator_are_one_vote() -> None:
    segments = [
        ([*one.candidates, *[Candidate(annotation=one.annotations["poor"], annotator="poor")] * 9], one.translation)
        for one in SEGMENTS
    ]
    assert [a.annotation for a in decide_many(segments, OPTIONS)] == [a.annotation for a in decided(list(SEGMENTS))]


def test_candidates_in_several_formats_and_spans_are_read_together(tmp_path: Path) -> None:
    mt = "Der Hund bellt laut."
    compact = {"text": "major <Hund>", "format": "compact", "annotator": "b"}
    spans = {"error_spans": [{"start": 4, "end": 8, "severity": "major"}], "annotator": "c"}
    candidates = [{"text": answer("Hund"), "annotator": "a"}, compact, spans]
    line = {"id": "1", "src": "The dog barks loudly.", "mt": mt, "candidates": candidates}
    path = tmp_path / "c.jsonl"
    path.write_text(json.dumps(line) + "\n")
    ((record, decision),) = decided_records(path, DecisionOptions())
    assert decision is not None
    assert (decision.valid, decision.distinct) == (3, 1)
    write_records(tmp_path / "again.jsonl", [record])
    ((again, _),) = decided_records(tmp_path / "again.jsonl", DecisionOptions())
    assert again == record
    assert [one.annotator for one in record.candidates] == ["a", "b", "c"]
    assert file_panel(path, DecisionOptions(weights="agreement")).equal_because


def test_a_metric_over_a_file_of_a_panel_scores_as_the_file_is_decided(tmp_path: Path) -> None:
    path = tmp_path / "panel.jsonl"
    records = [one.record(number) for number, one in enumerate(SEGMENTS)]
    # Not every annotator has to annotate every segment.
    fewer = CandidateColumns.of(SEGMENTS[7].candidates[1:])
    records[7] = CandidateRecord(Segment("Source 7.", SEGMENTS[7].translation, "7", "A"), fewer)
    write_records(path, records)
    options = "weights=agreement&score=expected&utility=softdice"
    metric = load_metric(f"mbr-esd-llama?candidates={path}&{options}")
    texts = [{"src": one.segment.source, "mt": one.segment.translation} for one in records]
    prediction = metric.predict(texts[:20], progress_bar=False)
    decisions = [decision for _, decision in decided_records(path, OPTIONS)]
    assert prediction.scores == [one and one.score for one in decisions[:20]]
    assert "|w:agreement/good=0." in str(prediction.metadata.signature)
    with pytest.raises(OptionError, match="create a candidates file with `mbr-esd sample"):
        load_metric("mbr-esd-llama?engine=server&server=http://localhost:1&weights=agreement").predict(texts[:1])


@pytest.mark.parametrize(
    ("candidate", "message"),
    [
        ({"text": "x", "error_spans": []}, 'both "text" and "error_spans" are present; give only one'),
        ({"annotator": "a"}, 'candidate 2: no "text"'),
        ({"error_spans": [{"start": 3, "end": 2, "severity": "major"}]}, "candidate 2"),
        ({"error_spans": [], "annotator": 3}, '"annotator" is'),
        ({"error_spans": [], "format": "yaml"}, "yaml"),
    ],
)
def test_a_wrong_candidate_is_named(tmp_path: Path, candidate: dict[str, object], message: str) -> None:
    line = {"id": "1", "src": "s", "mt": "Der Hund", "candidates": [{"text": answer()}, candidate]}
    path = tmp_path / "c.jsonl"
    path.write_text(json.dumps(line))
    with pytest.raises(InputError, match=message):
        [*decided_records(path, DecisionOptions())]


def test_a_metric_over_a_panel_reads_each_candidate_in_its_own_format(tmp_path: Path) -> None:
    compact = {"text": "major <Hund>", "format": "compact", "annotator": "b"}
    plain = {"text": answer("Hund"), "annotator": "a"}
    of_lines = ([compact], [plain, compact], [plain])
    lines = [{"id": str(n), "src": f"Dog {n}.", "mt": "Der Hund", "candidates": one} for n, one in enumerate(of_lines)]
    path = tmp_path / "c.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    metric = load_metric(f"mbr-esd-llama?candidates={path}&weights=agreement")
    spans = metric.predict([{"src": line["src"], "mt": line["mt"]} for line in lines], progress_bar=False)
    assert [len(one) for one in spans.metadata.error_spans] == [1, 1, 1]
