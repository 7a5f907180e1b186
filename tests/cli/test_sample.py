"""`mbr-esd sample`, with stored candidates in place of a model."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest

from mbr_esd_metric.files.records import read_candidates
from tests.helpers.chat_server import Failure, FakeServer
from tests.helpers.command import Command

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
TINY = "--test-set data/tiny --lp en-de"
MODEL = f"mbr-esd-demo?candidates={EXAMPLES / 'candidates.jsonl'}&n=8"
SAMPLE = "sample -s src.txt -t mt.txt -o out.jsonl --quiet --model"


@pytest.fixture(autouse=True)
def files(workdir: Path) -> None:
    for name in ("src.txt", "mt.txt"):
        shutil.copy(EXAMPLES / name, workdir)


def test_what_is_written_is_what_was_sampled(mbr_esd: Command) -> None:
    output = mbr_esd(SAMPLE.replace("out.jsonl", "out.jsonl.gz"), MODEL).out
    assert output == "out.jsonl.gz: 4 segments, 8 candidates each\n"
    written, sampled = list(read_candidates("out.jsonl.gz")), list(read_candidates(EXAMPLES / "candidates.jsonl"))
    assert [(r.segment.system, r.segment.label) for r in written] == [("mt", r.segment.label) for r in sampled]
    assert [(r.segment.source, r.segment.translation, r.columns) for r in written] == [
        (r.segment.source, r.segment.translation, r.columns) for r in sampled
    ]


@pytest.mark.parametrize("rule", ["mbr-corpus", "consensus-corpus", "map"])
def test_what_a_rule_of_its_own_utility_samples_is_read(rule: str, mbr_esd: Command) -> None:
    mbr_esd(SAMPLE, f"{MODEL}&rule={rule}")
    for words in ("decide out.jsonl -o one.jsonl", "decide out.jsonl -o two.jsonl --rule mbr", "compare out.jsonl"):
        mbr_esd(words)


def test_an_empty_translation_has_no_error(mbr_esd: Command) -> None:
    Path("src.txt").write_text("Nothing.\n", encoding="utf-8")
    Path("mt.txt").write_text("\n", encoding="utf-8")
    mbr_esd(SAMPLE, MODEL)
    (record,) = read_candidates("out.jsonl")
    assert record.texts == ('{"errors": []}',) * 8


def test_the_rated_translations_of_a_test_set(mbr_esd: Command) -> None:
    mbr_esd("wmt import", EXAMPLES / "human.tsv", TINY)
    for path in Path("data/tiny/human-scores").iterdir():
        path.rename(path.with_name(path.name.replace(".mqm.", ".other.")))  # the only gold there is
    mbr_esd(f"sample {TINY} --model {MODEL} --quiet -o out.jsonl")
    assert [(r.segment.system, r.segment.label) for r in read_candidates("out.jsonl")] == [
        ("mt", str(i)) for i in range(1, 5)
    ]


def test_a_failing_run_leaves_its_bar_once_and_a_message_a_line(
    mbr_esd: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("aiohttp")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with FakeServer("served", dialect="openai", spoil=lambda *_: Failure(402, {"error": "not today"})) as server:
        model = f"mbr-esd-llama?model=served&n=2&lp=en-de&dialect=openai&server={server.url}"
        message = mbr_esd(SAMPLE.replace("--quiet ", ""), model, status=1).err
    # A terminal shows of each line what was written last.
    shown = [line.rpartition("\r")[2] for line in message.split("\n")[:-1]]
    assert [line.split(":")[0] for line in shown] == ["http", "sampling", "mbr-esd sample"]
    assert "left out: top_k=10" in shown[0]
    assert "402 not today; sampled candidates are kept" in shown[2]


def test_candidates_that_were_cut_are_counted_with_the_fix(mbr_esd: Command) -> None:
    def cut(value: dict[str, list[dict[str, object]]], number: int) -> object:
        for choice in value["choices"][:3]:
            choice["finish_reason"] = "length"
        return value

    with FakeServer("mine", dialect="llamacpp", spoil=cut) as server:
        message = mbr_esd(SAMPLE, f"mbr-esd-server?server={server.url}&n=8&seed=3").err
    count = sum(flag for record in read_candidates("out.jsonl") for flag in record.columns.truncated)
    assert count >= 12
    assert f"{count} candidates of 32 cut at max_tokens=512" in message
    assert "use max_tokens=1024, or format=compact" in message


def test_a_panel_of_models_is_sampled_into_one_file_and_decided(mbr_esd: Command) -> None:
    with (
        FakeServer("first", dialect="llamacpp") as first,
        FakeServer("second", dialect="llamacpp") as second,
    ):
        models = [f"mbr-esd-server?server={one.url}&model={one.model}&n={n}" for one, n in ((first, 3), (second, 2))]
        compact = f"{models[1]}&format=compact"
        output = mbr_esd(SAMPLE, models[0], "--model", compact, "--model", MODEL).out
    assert output == "out.jsonl: 4 segments, 13 candidates each\n"
    (one, *_) = read_candidates("out.jsonl")
    assert Counter(each.annotator for each in one.candidates) == {"first": 3, "second": 2, "mbr-esd-demo": 8}
    assert {each.annotator: each.format for each in one.candidates}["second"] == "compact"
    message = mbr_esd("decide out.jsonl -o decided.jsonl --weights agreement").err
    # All answers of the second are invalid here.
    assert "weights=agreement: equal weights, because learning needs 3 annotators, but there are 2" in message
    assert "w:agreement/equal" in message
    message = mbr_esd(SAMPLE, MODEL, "--model", MODEL, status=1).err
    assert "duplicate --model; use n=N to sample one model several times" in message


def test_a_segment_that_one_model_of_a_panel_refuses_keeps_the_others(mbr_esd: Command) -> None:
    def spoil(value: dict[str, object], number: int) -> object:
        return Failure(400, {"error": {"message": "the prompt violates the policy", "code": "content_filter"}})

    with FakeServer("refusing", dialect="openai", spoil=spoil) as server:
        model = f"mbr-esd-server?server={server.url}&model=refusing&n=2&dialect=openai"
        run = mbr_esd(SAMPLE, MODEL, "--model", model, status=1)
    assert [len(record.columns) for record in read_candidates("out.jsonl")] == [8] * 4
    assert "by refusing" in run.err
