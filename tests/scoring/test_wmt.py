"""Scores into the layout: what is written, what is left alone, and how a stopped run goes on."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

from mbr_esd_metric.adapters.wmt import TestSet, load_test_set
from mbr_esd_metric.adapters.wmt import layout as files
from mbr_esd_metric.core.annotation import Annotation, ErrorSpan, mqm_score
from mbr_esd_metric.core.signature import Signature
from mbr_esd_metric.errors import EngineError, OptionError
from mbr_esd_metric.scoring.wmt import (
    Scored,
    ScoredText,
    Scorer,
    default_name,
    make_scorer,
    score_test_set,
    xcomet_annotation,
)
from tests.helpers.comet_checkpoint import make_checkpoint
from tests.helpers.command import Command
from tests.helpers.refused import refused
from tests.helpers.wmt_folder import DATA, write_folder


@pytest.fixture
def test_set(tmp_path: Path) -> TestSet:
    """Without metrics; two systems say "Danke.", and one left it out."""
    layout = write_folder(tmp_path, "tiny")
    for path in layout.metric_files():
        path.unlink()
    return load_test_set(tmp_path, "tiny", "en-de")


@pytest.fixture
def score(test_set: TestSet, tmp_path: Path, mbr_esd: Command) -> Command:
    """`mbr-esd wmt score` of the test set."""
    return partial(mbr_esd, f"wmt score --test-set {tmp_path}/tiny --lp en-de --quiet")


def counting(version: int = 1, fail: str | None = None, marks: bool = True) -> tuple[Scorer, list[str]]:
    """Lengths as scores, under two names, and the list of the systems that are scored; one may fail."""
    systems: list[str] = []

    def score(texts: Sequence[ScoredText], progress: bool) -> Mapping[str, Scored]:
        if texts[0].system == fail:
            raise EngineError("out of memory")
        systems.append(texts[0].system)
        lengths = [float(len(text.translation)) for text in texts]
        spans = [Annotation([ErrorSpan(0, 1, "minor", "x", 0.5)] if n > 30 else ()) for n in lengths]
        return {"length-src": Scored(lengths, spans if marks else None), "half-refA": Scored([n / 2 for n in lengths])}

    return Scorer({"length-src": Signature.of("length", {}, version), "half-refA": Signature("half")}, score), systems


def test_scores_of_all_systems_but_the_reference_used(test_set: TestSet) -> None:
    written = score_test_set(test_set, counting()[0])
    assert [(w.name, w.systems, w.scored) for w in written] == [("length-src", 3, True), ("half-refA", 2, True)]
    layout = test_set.layout
    assert files.read_scores(layout.metric_file("length-src", "seg.score"))["B"] == [18, 32, 0]
    assert sorted(files.read_scores(layout.metric_file("half-refA", "seg.score"))) == ["A", "B"]
    assert files.read_scores(layout.metric_file("length-src", "sys.score"))["A"] == [pytest.approx((37 + 26 + 6) / 3)]
    ratings, span = test_set.metric("length-src").ratings, ErrorSpan(0, 1, "minor", "x", 0.5)
    assert ratings is not None
    assert ratings.annotations["B"] == (Annotation(), Annotation([span]), Annotation())
    assert list(ratings.annotations["A"][0] or ()) == [span]
    assert test_set.metric("half-refA").ratings is None
    assert not list(layout.root.glob("**/.*"))


def test_stored_scores_are_left_alone_and_a_new_system_is_scored(test_set: TestSet) -> None:
    score_test_set(test_set, counting()[0])
    again, systems = counting()
    assert not any(written.scored for written in score_test_set(test_set, again))
    assert systems == []
    files.write_text(test_set.layout.output("C"), ["x", "y", "z"])
    more = load_test_set(test_set.layout.data, "tiny", "en-de")
    assert [written.scored for written in score_test_set(more, again)] == [True, True]
    assert systems == ["C"]
    assert "C" in files.read_scores(test_set.layout.metric_file("length-src", "seg.score"))
    refused(r"length\|v:1 instead of length\|v:2.*--overwrite", score_test_set, test_set, counting(version=2)[0])
    newer, systems = counting(version=2, marks=False)
    score_test_set(test_set, newer, overwrite=True)
    assert systems == ["A", "B", "refA"]
    assert str(test_set.signature("length-src")) == "length|v:2"
    assert test_set.metric("length-src").ratings is None  # those of the older scores went with them


def test_a_stopped_run_goes_on_and_ends_with_the_same_files(test_set: TestSet) -> None:
    with pytest.raises(EngineError, match="out of memory"):
        score_test_set(test_set, counting(fail="B")[0])
    refused("no scores for system B", test_set.metric, "length-src")
    second, systems = counting()
    score_test_set(test_set, second)
    assert systems == ["B", "refA"]
    resumed = {p.name: p.read_text() for p in test_set.layout.root.glob("metric-*/**/*.*")}
    score_test_set(test_set, counting()[0], overwrite=True)
    assert {p.name: p.read_text() for p in test_set.layout.root.glob("metric-*/**/*.*")} == resumed


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("writes", range(4))
def test_a_killed_write_is_no_metric(
    test_set: TestSet, writes: int, overwrite: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Error spans, system scores, signature, segment scores: killed before each of these is written."""
    if overwrite:
        score_test_set(test_set, counting()[0])
    scorer, _ = counting(version=2)
    left, write = iter(range(writes)), files.write_whole

    def killed(path: Path, text: str) -> None:
        if next(left, None) is None:
            raise KeyboardInterrupt
        write(path, text)

    with monkeypatch.context() as patched:
        patched.setattr("mbr_esd_metric.adapters.wmt.layout.write_whole", killed)
        patched.setattr("mbr_esd_metric.adapters.wmt.metric_files.write_whole", killed)
        with pytest.raises(KeyboardInterrupt):
            score_test_set(test_set, scorer, overwrite=overwrite)
    assert "length-src" not in test_set.find_metrics()
    assert next(one.name for one in score_test_set(test_set, scorer) if one.scored) == "length-src"
    assert test_set.signature("length-src") == scorer.signatures["length-src"]


def test_sacrebleu_is_sacrebleu(test_set: TestSet) -> None:
    import sacrebleu

    references = [str(text) for text in test_set.outputs["refA"]]
    for kind, of_sentence in (("BLEU", sacrebleu.sentence_bleu), ("chrF", sacrebleu.sentence_chrf)):
        score_test_set(test_set, make_scorer(kind, reference="refA", lp="en-de"))
        for system, scores in zip("AB", test_set.metric(f"{kind}-refA").scores.tolist(), strict=True):
            texts = [text or "" for text in test_set.outputs[system]]
            assert scores == [of_sentence(t, [r]).score for t, r in zip(texts, references, strict=True)]
    corpus = files.read_scores(test_set.layout.metric_file("BLEU-refA", "sys.score"))
    assert corpus["B"] == [sacrebleu.corpus_bleu([text or "" for text in test_set.outputs["B"]], [references]).score]
    assert str(test_set.signature("BLEU-refA")).startswith("BLEU|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|")


def test_invalid_and_missing_candidates(score: Command) -> None:
    model = f"mbr-esd-demo?candidates={DATA}/tiny-nowhere.jsonl&n=2"
    assert "; to score the other systems: --exclude refA" in score("--all --model", model, status=1).err
    said = score("--all --exclude refA --model", model, "empty").err  # --quiet leaves warnings
    first, unsure, _ = said.splitlines()
    assert first.startswith("most error spans of the candidates were dropped because they are not in the translation")
    assert "segments unsure: the model marks no error, but a third or more" in unsure


def test_only_the_chosen_systems_are_scored(test_set: TestSet, score: Command) -> None:
    stored = test_set.layout.metric_file("empty-src", "seg.score")
    for systems, are_there in (("--systems refA", ["refA"]), ("--exclude A refA", ["B", "refA"])):
        score("--model empty", systems)  # the reference has no gold, and what was there stays
        assert sorted(files.read_scores(stored)) == are_there
    assert "is there already" in score("--model empty --exclude A refA").out
    none = score("--model empty --exclude A B refA", status=1).err
    assert "no system is selected for empty-src; available: A, B, refA" in none
    score("--model empty")
    assert sorted(files.read_scores(stored)) == ["A", "B", "refA"]


def test_candidates_of_what_is_rated_are_enough(
    test_set: TestSet, score: Command, tmp_path: Path, mbr_esd: Command
) -> None:
    """`sample --test-set`, `wmt score` and `decide` are of the translations with gold; a board takes each."""
    words = f"--model ours=mbr-esd-demo?candidates={DATA}/tiny-sleeps.jsonl&n=1"
    assert "ours-src scored for 2 systems, on the 5 of 6 translations with gold" in score(words).out
    stored = files.read_scores(test_set.layout.metric_file("ours-src", "seg.score"))["B"]
    assert [one is None for one in stored] == [False, False, True]
    # What is there is scored again where all is wanted.
    assert "ours-src is there already, on the 5 of 6" in score(words).out
    score(words, "--all", status=1)
    decisions = tmp_path / "d.jsonl"
    mbr_esd("decide", DATA / "tiny-sleeps.jsonl", "-o", decisions, "--quiet")
    board = f"leaderboard --test-set {tmp_path}/tiny --lp en-de --k 0 --metric ours theirs={decisions}"
    assert "theirs covers 5 of 6 translations of en-de, all that have gold" in mbr_esd(board, "--table json").out
    decisions.write_text(decisions.read_text().replace("schläft", "wacht"))
    assert "segment 1 of A: the error span 'wacht' is not at offset" in mbr_esd(board, status=1).err


def test_names_of_metrics() -> None:
    names = {
        "mbr-esd-demo?n=64&utility=softf1+scoresim": "mbr-esd-demo_n=64_utility=softf1+scoresim",
        "mbr-esd-llama?candidates=/a/b.jsonl&n=4&server=http://me:pw@h/v1": "mbr-esd-llama_n=4",
        "Unbabel/XCOMET-XXL": "XCOMET-XXL",
        "/models/mine/checkpoints/model.ckpt": "mine",
        "/models/mine.v2.ckpt": "mine.v2",
    }
    assert {model: default_name(model) for model in names} == names


def test_xcomet_spans_become_annotations() -> None:
    places = (0, 2, "critical", 0.9), (3, 99, "minor", 0.6), (0, 0, "major", 0.8)
    spans = [dict(zip(("start", "end", "severity", "confidence"), place, strict=True)) for place in places]
    whole, cut = ErrorSpan(0, 2, "major", None, 0.9), ErrorSpan(3, 5, "minor", None, 0.6)
    assert list(xcomet_annotation(spans, "ab cd")) == [whole, cut]
    assert list(xcomet_annotation(spans, "ab cd", 0.7)) == [whole]


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        ("BLEU", {}, "BLEU needs a reference"),
        ("mbr-esd-lama", {}, "did you mean 'mbr-esd-llama'"),
        *(("mbr-esd-demo", {"name": one}, f"{one}=mbr-esd-demo: .*may only contain") for one in ("foo/bar", "a b", "")),
    ],
)
def test_problems_say_what_to_do(model: str, options: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        make_scorer(model, **options)


@pytest.mark.comet
def test_xcomet_in_its_variants(test_set: TestSet, tmp_path: Path) -> None:
    comet = pytest.importorskip("comet", reason="unbabel-comet is not installed")
    checkpoint = make_checkpoint(tmp_path / "toy")
    scorer = make_scorer(str(checkpoint), reference="refA")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        names = [written.name for written in score_test_set(test_set, scorer)]
    variants = ("Reg", "ESD", "ESD-Conf")
    assert names == [f"toy-{one}-refA" for one in variants] + [f"toy-QE-{one}-src" for one in variants]
    model = comet.load_from_checkpoint(str(checkpoint)).half()
    samples = [{"src": s, "mt": t or ""} for s, t in zip(test_set.sources, test_set.outputs["A"], strict=True)]
    with_references = [{**sample, "ref": r} for sample, r in zip(samples, test_set.outputs["refA"], strict=True)]
    for stem, reference, inputs in (("toy", "refA", with_references), ("toy-QE", "src", samples)):
        prediction = model.predict(inputs, batch_size=16, gpus=0, progress_bar=False)
        np.testing.assert_allclose(test_set.metric(f"{stem}-Reg-{reference}").scores[0], prediction.scores, atol=1e-6)
        for variant, least in (("ESD", 0.0), ("ESD-Conf", 0.7)):
            metric = test_set.metric(f"{stem}-{variant}-{reference}")
            spans = zip(prediction.metadata.error_spans, test_set.outputs["A"], strict=True)
            expected = [xcomet_annotation(marked, text or "", least) for marked, text in spans]
            assert metric.ratings is not None
            assert list(metric.ratings.annotations["A"]) == expected
            assert metric.scores[0].tolist() == [mqm_score(annotation) for annotation in expected]
    assert not any(written.scored for written in score_test_set(test_set, scorer))
    without = make_scorer(str(checkpoint), name="other", reference=None)
    assert sorted(without.signatures) == ["other-QE-ESD-Conf-src", "other-QE-ESD-src", "other-QE-Reg-src"]


def test_a_checkpoint_that_cannot_be_loaded() -> None:
    pytest.importorskip("comet.models", reason="unbabel-comet is not installed")
    with pytest.raises(EngineError, match=r"COMET cannot load .*tiny-sleeps\.jsonl"):
        make_scorer(str(DATA / "tiny-sleeps.jsonl"))


def test_a_dry_run_counts_what_a_model_of_ours_would_sample(test_set: TestSet, score: Command) -> None:
    model = "mbr-esd-llama?n=8"
    assert "5 translations of 2 systems" in score("--dry-run --model", model).out  # those with gold
    out = score("--all --dry-run --model BLEU", model).out
    # One is missing, and one is said by two systems.
    for line in ("tiny en-de: BLEU, 9 translations of 3 systems", "distinct pairs       7", "candidates           56"):
        assert line in out
    assert not test_set.layout.metric_file("BLEU-refA", "seg.score").exists()
    score("--all --model BLEU --dry-run 2", status=1)


def test_a_tokeniser_that_is_missing_stops_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mbr_esd: Command
) -> None:
    monkeypatch.setattr("sacrebleu.metrics.BLEU", Mock(side_effect=RuntimeError("no MeCab")))
    write_folder(tmp_path, "made", "en-ja")
    where = f"--test-set {tmp_path}/made --lp en-ja --reference refA"
    printed = mbr_esd("wmt score", where, "--model BLEU chrF x=chrF empty --quiet", status=1)
    assert [line.split()[2] for line in printed.out.splitlines()] == ["chrF-refA", "x-refA", "empty-src"]
    assert "not scored: BLEU in en-ja: BLEU of ja needs a tokeniser" in printed.err
    assert "pip install 'sacrebleu[ja]'" in printed.err
