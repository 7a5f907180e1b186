"""Inputs that went wrong, each with what is right now: `pytest tests/test_cases.py -v` prints a line for each.

The inputs of bug reports are files (`MBR_ESD_CASES`, or a folder `cases` beside the data); the attacks are here, but
for `leaderboard_same_name` (`cli/test_leaderboard_views.py`) and `batch_subset` (`generation/engines/test_batch.py`).
"""

from __future__ import annotations

import csv
import itertools
import json
import os
import subprocess
import sys
import time
import xml.dom.minidom
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mbr_esd_metric import InputError, load_metric
from tests.helpers.chat_server import Failure, FakeServer
from tests.helpers.command import Command

FOLDER = Path(os.environ.get("MBR_ESD_CASES", Path(__file__).parents[2] / "shared" / "cases")) / "reports"
MBR_ESD = Path(sys.executable).parent / "mbr-esd"
CLEAN = '{"errors": []}'


def error(span: str, severity: str = "major") -> str:
    """The answer with one error."""
    one = {"error_span": span, "category": "accuracy", "sub_category": "mistranslation", "severity": severity}
    return json.dumps({"errors": [one]}, ensure_ascii=False)


def always(text: str) -> Callable[[Any, int], None]:
    """`FakeServer.spoil` that makes every answer this text."""

    def spoil(reply: Any, number: int) -> None:
        for choice in reply["choices"]:
            choice["message"]["content"] = text

    return spoil


def candidates(path: Path, *pairs: tuple[str, str]) -> str:
    """The name of a model with one clean candidate of each pair in a file."""
    lines = [{"id": str(i), "src": s, "mt": t, "candidates": [{"text": CLEAN}]} for i, (s, t) in enumerate(pairs)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return f"mbr-esd-llama?candidates={path}&n=1"


@pytest.fixture
def case() -> Callable[[str], Path]:
    """The path of a report's input."""

    def path(name: str) -> Path:
        if not FOLDER.is_dir():
            pytest.skip(f"no inputs of reports in {FOLDER}; MBR_ESD_CASES names their folder")
        return FOLDER / name

    return path


@pytest.fixture
def replayed(case: Callable[[str], Path]) -> Iterator[Callable[[str], str]]:
    """The address of a server that answers as a report's did, with the option `model`."""
    servers = []

    def start(name: str) -> str:
        command = [sys.executable, case("00-replay-server.py"), case(name)]
        servers.append(server := subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        assert server.stdout is not None
        model = json.loads(case(name).read_text())["model"]
        return f"mbr-esd-server?server=http://127.0.0.1:{server.stdout.readline().strip()}/v1&model={model}&n=2"

    yield start
    for server in servers:
        server.kill()
        server.communicate()


@pytest.fixture
def texts(workdir: Path) -> str:
    """The options that name a source and a translation file of three lines; the second has "Ufer"."""
    (workdir / "s.txt").write_text("The door is open.\nThe bank closed.\nThe train is late.\n")
    (workdir / "t.txt").write_text("Die Tür ist offen.\nDas Ufer schloss.\nDer Zug ist spät.\n", encoding="utf-8")
    return "score -s s.txt -t t.txt --quiet --to_json o.json --lp en-de --model"


def rows(path: Path) -> list[dict[str, Any]]:
    """The segments of the only system of a JSON of scores."""
    [system] = json.loads(path.read_text()).values()
    return list(system)


@pytest.mark.parametrize("name", ["01-429-names-a-quota-page", "04-finish-reason-eos-token"])
def test_a_server_is_asked_again_and_its_whole_answers_count(
    name: str, replayed: Callable[[str], str], texts: str, workdir: Path, mbr_esd: Command
) -> None:
    mbr_esd(texts, f"'{replayed(f'{name}.json')}'")
    assert [row["COMET"] for row in rows(workdir / "o.json")] == [1, 1, 1]


def test_02_an_answer_in_parts_is_joined(
    replayed: Callable[[str], str], texts: str, workdir: Path, mbr_esd: Command
) -> None:
    mbr_esd(texts, f"'{replayed('02-answer-in-parts.json')}'")
    assert rows(workdir / "o.json")[1]["COMET"] == 0.8


def test_05_tool_calls_in_place_of_text_are_named(replayed: Callable[[str], str], texts: str, mbr_esd: Command) -> None:
    shown = mbr_esd(texts, f"'{replayed('05-finish-reason-tool-calls.json')}'", status=1)
    assert "tool" in shown.err


@pytest.mark.parametrize(
    ("name", "words"),
    [("06-403-is-not-the-key", "You have run out of credits"), ("07-one-prompt-filtered", "content policy")],
)
def test_a_refused_segment_has_no_score_and_the_others_have_theirs(
    name: str, words: str, replayed: Callable[[str], str], texts: str, workdir: Path, mbr_esd: Command
) -> None:
    shown = mbr_esd(texts, f"'{replayed(f'{name}.json')}'", status=1)
    assert [row["COMET"] for row in rows(workdir / "o.json")] == [1, None, 1]
    assert words in shown.err
    gate = texts.replace("--to_json o.json", "--fail-under 0")
    mbr_esd(gate, f"'{replayed(f'{name}.json')}'", status=3)  # as of a score below the threshold


def test_08_an_empty_answer_without_thinking_names_the_setting(
    replayed: Callable[[str], str], texts: str, workdir: Path, mbr_esd: Command
) -> None:
    model = replayed("08-ollama-empty-without-thinking.json")
    assert "reasoning_effort=low" in mbr_esd(texts, f"'{model}'", status=1).err
    mbr_esd(texts, f"'{model}&reasoning_effort=low'")


def test_09_a_deployment_has_a_name_of_its_own(
    replayed: Callable[[str], str], texts: str, workdir: Path, mbr_esd: Command
) -> None:
    mbr_esd(texts, f"'{replayed('09-azure-deployment-name.json')}&dialect=openai'")
    assert rows(workdir / "o.json")[0]["COMET"] == 1


def test_10_segments_of_cat_tools_are_units(case: Callable[[str], Path], workdir: Path, mbr_esd: Command) -> None:
    pairs = (
        ("The bank closed last week.", "Die Bank schloss letzte Woche."),
        ("The door is open.", "Die Tür ist offen."),
    )
    model = candidates(workdir / "c.jsonl", *pairs)
    mbr_esd("score", case("10-several-segments.sdlxliff"), f"--quiet --to_json o.json --model '{model}'")
    assert [(row["src"], row["mt"]) for row in rows(workdir / "o.json")] == list(pairs)


def test_12_elements_have_their_parents_prefix(case: Callable[[str], Path], workdir: Path, mbr_esd: Command) -> None:
    record = {"src": "The bank closed.", "mt": "Das Ufer schloss.", "candidates": [{"text": error("Ufer")}]}
    (workdir / "c.jsonl").write_text(json.dumps({"id": "1", **record}))
    model = "mbr-esd-llama?candidates=c.jsonl&n=1"
    mbr_esd("score", case("12-namespace-prefix.xlf"), f"--quiet -o o.xlf --model '{model}'")
    written = (workdir / "o.xlf").read_text()
    assert "<xlf:mrk" in written
    assert "<mrk" not in written


def test_13_a_line_break_divides_words_and_a_lost_placeholder_is_named(
    case: Callable[[str], Path], workdir: Path, mbr_esd: Command
) -> None:
    with FakeServer() as server:
        server.spoil = always(CLEAN)
        model = f"mbr-esd-server?server={server.url}&n=2"
        mbr_esd("score", case("13-line-break-and-placeholders.xlf"), f"--quiet --to_json o.json --model '{model}'")
        assert "lineSecond" not in json.dumps(server.bodies)
    scored = rows(workdir / "o.json")
    assert scored[0]["src"].split() == ["First", "line", "Second", "line"]
    [named] = [row for row in scored if "Nachrichten" in row["mt"] and "VAR_PLURAL" not in row["mt"]]
    assert "placeholder" in json.dumps(named)
    assert "placeholder" not in json.dumps(scored[0])


def test_14_the_variant_of_a_tmx_is_chosen_by_the_languages(
    case: Callable[[str], Path], workdir: Path, mbr_esd: Command
) -> None:
    model = candidates(workdir / "c.jsonl", ("Yes", "Ja"), ("The door is open.", "Die Tür ist offen."))
    command = ("score", case("14-four-languages.tmx"), f"--quiet --to_json o.json --model '{model}'")
    refused = mbr_esd(*command, status=1).err
    assert all(code in refused for code in ("ar", "de", "fr"))
    mbr_esd(*command, "--lp en-de")
    assert [row["mt"] for row in rows(workdir / "o.json")] == ["Ja", "Die Tür ist offen."]


def test_15_the_only_plural_form_belongs_to_the_plural(
    case: Callable[[str], Path], workdir: Path, mbr_esd: Command
) -> None:
    pytest.importorskip("translate", reason="translate-toolkit (extra documents) is not installed")
    source = "You have {count} new messages from {name}."
    target = "{name} さんから {count} 件の新しいメッセージがあります。"
    model = candidates(workdir / "c.jsonl", (source, target))
    mbr_esd("score", case("15-one-plural-form.po"), f"--quiet --lp en-ja --to_json o.json --model '{model}'")
    assert [row["src"] for row in rows(workdir / "o.json")] == [source]


def test_17_any_language_code_is_taken(case: Callable[[str], Path], workdir: Path, mbr_esd: Command) -> None:
    model = candidates(workdir / "c.jsonl", ("The door is open.", "Bukas ang pinto."))
    mbr_esd("score", case("17-filipino.xlf"), f"--quiet --model '{model}'")
    (workdir / "s.txt").write_text("The door is open.\n")
    (workdir / "t.txt").write_text("Bukas ang pinto.\n")
    for lp in ("en-fil", "en-ckb", "en-yue", "iw-en", "en-zh-CN", "eng_Latn-lld_Latn"):
        mbr_esd(f"score -s s.txt -t t.txt --quiet --lp {lp} --model '{model}'")
    with FakeServer() as server:
        server.spoil = always(CLEAN)
        model = f"mbr-esd-server?server={server.url}&n=2"
        mbr_esd("score", case("17-filipino.xlf"), f"--quiet --model '{model}'")
        assert "Filipino" in json.dumps(server.bodies)


def test_19_a_translation_without_a_visible_character_is_blank(
    case: Callable[[str], Path], workdir: Path, mbr_esd: Command
) -> None:
    model = candidates(workdir / "c.jsonl", ("another", "pair"))  # no candidate of a blank translation is looked up
    mbr_esd("score", case("19-invisible-translations.tsv"), f"--quiet --lp en-de --to_json o.json --model '{model}'")
    assert [row["COMET"] for row in rows(workdir / "o.json")] == [0, 0, 0]


def test_20_spans_copied_with_plain_characters_have_their_places(
    case: Callable[[str], Path], workdir: Path, mbr_esd: Command
) -> None:
    mbr_esd("decide", case("20-copied-spans.jsonl"), "-o d.jsonl")
    decided = [json.loads(line) for line in (workdir / "d.jsonl").read_text(encoding="utf-8").splitlines()]
    texts = [json.loads(line)["mt"] for line in case("20-copied-spans.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [len(one["error_spans"]) for one in decided] == [1, 1, 1, 1]
    for one, text in zip(decided, texts, strict=True):
        [span] = one["error_spans"]
        assert text[span["start"] : span["end"]] == span["text"]


def test_21_the_delimiter_is_that_of_the_header(case: Callable[[str], Path], workdir: Path, mbr_esd: Command) -> None:
    model = candidates(workdir / "c.jsonl", ("The door is open.", "Die Tür ist offen."))
    mbr_esd("score", case("21-comma-in-a-header-cell.csv"), f"--quiet --lp en-de --to_json o.json --model '{model}'")
    assert len(rows(workdir / "o.json")) == 1


def test_23_a_date_in_other_digits_is_the_same(case: Callable[[str], Path], workdir: Path, mbr_esd: Command) -> None:
    pair = case("23-eastern-digits.tsv").read_text(encoding="utf-8").splitlines()[1].split("\t")
    model = candidates(workdir / "c.jsonl", (pair[0], pair[1]))
    mbr_esd("score", case("23-eastern-digits.tsv"), f"--quiet --lp en-ar --to_json o.json --model '{model}'")
    assert "number" not in json.dumps(rows(workdir / "o.json"))


def test_two_runs_of_one_model_share_a_store(texts: str, workdir: Path) -> None:
    """`n=auto` beside another run waits, and both end."""
    with FakeServer("m1") as server:
        server.delay = 0.3
        runs = []
        for n in ("16", "auto/32"):
            model = f"mbr-esd-server?model=m1&server={server.url}&n={n}&concurrency=1"
            command = [MBR_ESD, *texts.split()[:-1], "--model", model]
            runs.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
            time.sleep(0.5)
        for run in runs:
            _, shown = run.communicate(timeout=100)
            assert run.returncode == 0, shown


def test_systems_of_two_files_never_share_a_name(workdir: Path, mbr_esd: Command) -> None:
    def scored(score: float) -> list[dict[str, object]]:
        return [{"src": f"s{i}", "mt": f"t{i}{score}", "COMET": score - 0.01 * (i % 2)} for i in range(6)]

    (workdir / "old.json").write_text(json.dumps({"base.txt": scored(0.9), "new.txt": scored(0.5)}))
    (workdir / "new.json").write_text(json.dumps({"base.txt": scored(0.8)}))
    shown = mbr_esd("compare old.json new.json").out
    assert all(mean in shown for mean in ("0.895", "0.495", "0.795"))


def test_a_carriage_return_is_quoted_in_a_csv(workdir: Path, mbr_esd: Command) -> None:
    record = {"src": "Hello world", "mt": "Hallo\rWelt", "candidates": [{"text": error("Hallo")}]}
    (workdir / "c.jsonl").write_text(json.dumps({"id": "1", **record}))
    (workdir / "d.xlf").write_text(
        '<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2"><file original="f" source-language="en" '
        'target-language="de" datatype="x"><body><trans-unit id="1"><source>Hello world</source>'
        "<target>Hallo&#13;Welt</target></trans-unit></body></file></xliff>"
    )
    model = "--quiet --lp en-de --model 'mbr-esd-llama?candidates=c.jsonl&n=1'"
    mbr_esd(f"score d.xlf --to_csv o.csv {model}")
    mbr_esd(f"score o.csv --to_json o.json {model}")
    assert [row["mt"] for row in rows(workdir / "o.json")] == ["Hallo\rWelt"]


def test_columns_of_the_user_stay(workdir: Path, mbr_esd: Command) -> None:
    (workdir / "human.csv").write_text('id,source,target,Score,Errors\n1,Hello world,Hallo Welt,77,"by Anna: tone"\n')
    model = candidates(workdir / "c.jsonl", ("Hello world", "Hallo Welt"))
    mbr_esd(f"score human.csv -o o.csv --quiet --lp en-de --model '{model}'")
    mbr_esd(f"score o.csv -o twice.csv --quiet --lp en-de --model '{model}'")
    for name in ("o.csv", "twice.csv"):
        with open(workdir / name, newline="", encoding="utf-8-sig") as file:
            [row] = csv.DictReader(file)
        assert (row["Score"], row["Errors"]) == ("77", "by Anna: tone")
        assert len(row) == 7 if name == "o.csv" else len(row) <= 7


def test_names_of_documents_have_blanks(texts: str, workdir: Path, mbr_esd: Command) -> None:
    """With `context=document` the first of "sport article" is not shown the text of "news article"."""
    (workdir / "docs.txt").write_text("news article\nnews article\nsport article\n")
    with FakeServer() as server:
        server.spoil = always(CLEAN)
        model = f"mbr-esd-server?server={server.url}&n=1&context=document"
        mbr_esd(texts, f"'{model}' --documents docs.txt")
        [prompt] = [str(body) for body in server.bodies if "The train is late." in str(body)]
        assert "The bank closed." not in prompt


def test_an_empty_omitted_span_is_read_in_any_spacing() -> None:
    from mbr_esd_metric.prompting.formats import get_format

    one = {"omitted_span": "", "category": "accuracy", "sub_category": "omission", "severity": "minor"}
    read = [
        str(get_format("json-omissions").parser("mt", "first", "src").parse(json.dumps({"errors": [one]}, **how)))
        for how in ({}, {"separators": (",", ":")})
    ]
    assert read[0] == read[1]


@pytest.mark.parametrize("ratio", [30, 1000, 100_000])
def test_exact_p_values_hold_with_one_large_difference(ratio: float) -> None:
    from mbr_esd_metric.metaeval.spa import exact_p_values

    signs = np.array(list(itertools.product((1, -1), repeat=18)), dtype=np.int8)
    for seed in range(2):
        d = np.concatenate([[ratio], np.random.default_rng(seed).normal(size=17)])
        sums, observed = signs @ d, d.sum()
        tie = np.abs(sums - observed) <= 1e-9 * np.sqrt((d * d).sum())
        expected = ((sums > observed) & ~tie).mean() + tie.mean() / 2
        assert exact_p_values(np.stack([d, np.zeros(18)]))[0, 1] == pytest.approx(expected, abs=2e-3)


def test_a_model_folder_makes_vllm_run_no_code(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    for setting in ("trust_remote_code:true", "worker_extension_cls:evil.Code", "hf_overrides:x"):
        (tmp_path / "hparams.yaml").write_text(f"class_identifier: mbr_esd_metric\nengine: vllm\nvllm: {setting}\n")
        with pytest.raises(InputError, match="for the user of a model to say"):
            load_metric(str(tmp_path))


def test_a_key_is_in_no_message(texts: str, workdir: Path, mbr_esd: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    key = "sk-SECRETKEY123456"
    monkeypatch.setenv("MBR_ESD_API_KEY", key)
    with FakeServer() as server:
        error = {"message": f"Incorrect API key provided: {key}", "type": "invalid_request_error"}
        server.spoil = lambda value, number: Failure(400, {"error": error})
        shown = mbr_esd(texts, f"'mbr-esd-server?server={server.url}&n=2'", status=1)
    assert "Incorrect API key" in shown.err
    assert key not in shown.err


def test_files_of_odd_names_are_scored(workdir: Path) -> None:
    model = candidates(workdir / "c.jsonl", ("Hello world", "Hallo Welt"))
    (workdir / "s.txt").write_text("Hello world\n")
    for name in (b"bad\xff.txt", "u\uffff.txt".encode(), b"esc\x1b[31mred.txt"):
        Path(os.fsdecode(name)).write_text("Hallo Welt\n")
        outputs = ["--junit", "j.xml", "--summary", "s.md", "--to_json", "o.json", "--fail-under", "0"]
        command = [MBR_ESD, "score", "-s", "s.txt", "-t", name, "--model", model, "--quiet", *outputs]
        done = subprocess.run(command, capture_output=True)
        assert done.returncode == 0, done.stderr
        xml.dom.minidom.parse(str(workdir / "j.xml"))
        assert b"\x1b" not in done.stdout + (workdir / "s.md").read_bytes()


def test_pairs_of_one_prompt_are_two_decisions() -> None:
    between = "\n\nTranslation in German:\n"
    a, b = {"src": "A", "mt": f"B{between}C"}, {"src": f"A{between}B", "mt": "C"}
    one = json.loads(error("C"))["errors"] + json.loads(error("B"))["errors"]
    with FakeServer() as server:
        server.spoil = always(json.dumps({"errors": one}))
        for batch in ([a, b], [b, a], [b]):
            metric = load_metric(f"mbr-esd-llama?model=test-model&server={server.url}&n=4&lp=en-de")
            scores = metric.predict(batch, progress_bar=False).scores
            assert [score for score, pair in zip(scores, batch, strict=True) if pair is b] == [0.8]


def test_sentences_of_a_text_without_stops_take_linear_time() -> None:
    from mbr_esd_metric.prompting.sentences import parts, sentences

    began = time.process_time()
    assert len(sentences("a" * 100_000, "en")) >= 1
    parts("A b. " * 2000, "C d. " * 1000, "en-de")
    assert time.process_time() - began < 5


def test_a_second_server_of_one_served_name_is_noticed(texts: str, mbr_esd: Command) -> None:
    for text in (CLEAN, error("Ufer")):
        with FakeServer("default") as server:
            server.spoil = always(text)
            shown = mbr_esd(texts, f"'mbr-esd-server?server={server.url}&n=4'")
    assert "MBR_ESD_STORE=" in shown.err


@pytest.mark.parametrize(
    "verb", ["decide x.jsonl -o y.jsonl", "decide x.jsonl -o y.jsonl --rule mbr", "compare x.jsonl"]
)
def test_what_is_sampled_with_a_corpus_rule_is_read(verb: str, texts: str, workdir: Path, mbr_esd: Command) -> None:
    model = candidates(workdir / "c.jsonl", ("Hello world", "Hallo Welt"), ("A door", "Eine Tür"))
    (workdir / "s.txt").write_text("Hello world\nA door\n")
    (workdir / "t.txt").write_text("Hallo Welt\nEine Tür\n", encoding="utf-8")
    mbr_esd(f"sample -s s.txt -t t.txt --model '{model}&rule=mbr-corpus' -o x.jsonl --quiet")
    mbr_esd(verb)


def test_a_lone_surrogate_ends_no_run(texts: str) -> None:
    from mbr_esd_metric.prompting.sentences import sentences

    assert sentences("One \ud83d. Two.", "en")
    with FakeServer() as server:
        server.spoil = always(CLEAN)
        metric = load_metric(f"mbr-esd-server?server={server.url}&n=2&lp=en-de")
        pairs = [{"src": "x", "mt": "fine"}, {"src": "x", "mt": "lone\ud83dsur"}]
        assert metric.predict(pairs, progress_bar=False).scores == [1.0, 1.0]
