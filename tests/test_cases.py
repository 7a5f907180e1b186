"""Inputs that went wrong, each with what is right now: `pytest tests/test_cases.py -v` prints a line for each.

The inputs of bug reports are files (`MBR_ESD_CASES`, or a folder `cases` beside the data); the attacks are here, but
for `leaderboard_same_name` (`cli/test_leaderboard_views.py`) and `batch_subset` (`generation/engines/test_batch.py`).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mbr_esd_metric import load_metric
from mbr_esd_metric.adapters.documents.po import read_po
from mbr_esd_metric.checks.check import Context
from mbr_esd_metric.core.decision import UNSURE
from mbr_esd_metric.files.records import write_records
from tests.helpers.candidates import answer, record
from tests.helpers.chat_server import FakeServer
from tests.helpers.checks import found
from tests.helpers.command import Command

FOLDER = Path(os.environ.get("MBR_ESD_CASES", Path(__file__).parents[2] / "shared" / "cases")) / "reports"
MBR_ESD = Path(sys.executable).parent / "mbr-esd"
CLEAN = answer()


def always(text: str) -> Callable[[Any, int], None]:
    """`FakeServer.spoil` that makes every answer this text."""

    def spoil(reply: Any, number: int) -> None:
        for choice in reply["choices"]:
            choice["message"]["content"] = text

    return spoil


def candidates(path: Path, *pairs: tuple[str, str], text: str = CLEAN) -> str:
    """The name of a model with this candidate of each pair in a file."""
    write_records(path, [record(*pair, text) for pair in pairs])
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


@pytest.mark.parametrize(
    ("name", "options", "scores"),
    [
        ("01-429-names-a-quota-page", "", [1, 1, 1]),
        ("02-answer-in-parts", "", [1, 0.8, 1]),
        ("04-finish-reason-eos-token", "", [1, 1, 1]),
        ("09-azure-deployment-name", "&dialect=openai", [1, 1, 1]),
    ],
)
def test_whole_answers_count(
    name: str,
    options: str,
    scores: list[float],
    replayed: Callable[[str], str],
    texts: str,
    workdir: Path,
    mbr_esd: Command,
) -> None:
    mbr_esd(texts, f"'{replayed(f'{name}.json')}{options}'")
    assert [row["COMET"] for row in rows(workdir / "o.json")] == scores


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


DOOR = ("The door is open.", "Die Tür ist offen.")
CAT = [("The bank closed last week.", "Die Bank schloss letzte Woche."), DOOR]
PLURAL = [("You have {count} new messages from {name}.", "{name} さんから {count} 件の新しいメッセージがあります。")]


@pytest.mark.parametrize(
    ("name", "lp", "pairs"),
    [
        ("10-several-segments.sdlxliff", "", CAT),
        ("14-four-languages.tmx", "--lp en-de", [("Yes", "Ja"), DOOR]),
        ("15-one-plural-form.po", "--lp en-ja", PLURAL),
        ("17-filipino.xlf", "", [("The door is open.", "Bukas ang pinto.")]),
        ("21-comma-in-a-header-cell.csv", "--lp en-de", [DOOR]),
    ],
)
def test_the_units_of_a_file(
    name: str, lp: str, pairs: list[tuple[str, str]], case: Callable[[str], Path], workdir: Path, mbr_esd: Command
) -> None:
    model = candidates(workdir / "c.jsonl", *pairs)
    mbr_esd("score", case(name), f"--quiet --to_json o.json --model '{model}' {lp}")
    assert [(row["src"], row["mt"]) for row in rows(workdir / "o.json")] == pairs


def test_14_a_file_of_several_languages_names_them(case: Callable[[str], Path], mbr_esd: Command) -> None:
    refused = mbr_esd("score", case("14-four-languages.tmx"), status=1).err
    assert all(code in refused for code in ("ar", "de", "fr"))


def test_12_elements_have_their_parents_prefix(case: Callable[[str], Path], workdir: Path, mbr_esd: Command) -> None:
    model = candidates(workdir / "c.jsonl", ("The bank closed.", "Das Ufer schloss."), text=answer("Ufer"))
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


def test_17_any_language_code_is_taken(case: Callable[[str], Path], workdir: Path, mbr_esd: Command) -> None:
    model = candidates(workdir / "c.jsonl", ("The door is open.", "Bukas ang pinto."))
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


def test_23_a_date_in_other_digits_is_the_same(case: Callable[[str], Path], workdir: Path, mbr_esd: Command) -> None:
    pair = case("23-eastern-digits.tsv").read_text(encoding="utf-8").splitlines()[1].split("\t")
    model = candidates(workdir / "c.jsonl", (pair[0], pair[1]))
    mbr_esd("score", case("23-eastern-digits.tsv"), f"--quiet --lp en-ar --to_json o.json --model '{model}'")
    assert "number" not in json.dumps(rows(workdir / "o.json"))


def test_two_runs_of_one_model_share_a_store(texts: str, workdir: Path) -> None:
    """A run beside another one waits, and both end."""
    with FakeServer("m1") as server:
        server.delay = 0.3
        runs = []
        for n in ("16", "32"):
            model = f"mbr-esd-server?model=m1&server={server.url}&n={n}&concurrency=1"
            command = [MBR_ESD, *texts.split()[:-1], "--model", model]
            runs.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
            time.sleep(0.5)
        for run in runs:
            _, shown = run.communicate(timeout=100)
            assert run.returncode == 0, shown


def test_pairs_of_one_prompt_are_two_decisions() -> None:
    between = "\n\nTranslation in German:\n"
    a, b = {"src": "A", "mt": f"B{between}C"}, {"src": f"A{between}B", "mt": "C"}
    with FakeServer() as server:
        server.spoil = always(answer("C", "B"))
        for batch in ([a, b], [b, a], [b]):
            metric = load_metric(f"mbr-esd-llama?model=test-model&server={server.url}&n=4&lp=en-de")
            scores = metric.predict(batch, progress_bar=False).scores
            assert [score for score, pair in zip(scores, batch, strict=True) if pair is b] == [0.8]


def test_a_lone_surrogate_ends_no_run(texts: str) -> None:
    from mbr_esd_metric.prompting.sentences import sentences

    assert sentences("One \ud83d. Two.", "en")
    with FakeServer() as server:
        server.spoil = always(CLEAN)
        metric = load_metric(f"mbr-esd-server?server={server.url}&n=2&lp=en-de")
        pairs = [{"src": "x", "mt": "fine"}, {"src": "x", "mt": "lone\ud83dsur"}]
        assert metric.predict(pairs, progress_bar=False).scores == [1.0, 1.0]


@pytest.mark.parametrize(
    "name",
    [
        "34-format-before-a-cjk-letter.tsv",
        "35-url-next-to-a-letter.tsv",
        "36-icu-branches.tsv",
        "39-repeated-on-purpose.tsv",
        "41-angle-brackets-for-words.tsv",
        "42-dates.tsv",
        "43-localised-addresses.tsv",
        "44-percent-and-elision.tsv",
    ],
)
def test_checks_mark_no_right_translation(case: Callable[[str], Path], name: str) -> None:
    rows = [line.split("\t") for line in case(name).read_text(encoding="utf-8").splitlines()[1:]]
    assert {source: found(source, target) for source, target in rows if found(source, target)} == {}


def test_checks_see_lost_placeholders(case: Callable[[str], Path]) -> None:
    rows = [line.split("\t") for line in case("65-lost-placeholders-unseen.tsv").read_text("utf-8").splitlines()[1:]]
    assert [source for source, target in rows if [kind for kind, _ in found(source, target)] != ["placeholder"]] == []


@pytest.mark.parametrize("name", ["37-singular-without-the-number.po", "38-arabic-forms-without-the-number.po"])
def test_checks_know_which_number_a_plural_form_is_for(case: Callable[[str], Path], name: str) -> None:
    units = read_po(case(name)).units
    assert len(units) in (2, 6)
    assert [found(one.source, one.translation, Context(numbers=one.numbers)) for one in units] == [[]] * len(units)


def of_texts(workdir: Path, unread: str, *others: str) -> str:
    """The name of a model whose candidates for the second of the `texts` are half this one, and else without error."""
    sides = [(workdir / name).read_text(encoding="utf-8").splitlines() for name in ("s.txt", "t.txt")]
    answers = {"Das Ufer schloss.": [unread, *(others or [unread])]}
    pairs = zip(*sides, strict=True)
    write_records(workdir / "c.jsonl", [record(*pair, *answers.get(pair[1], [CLEAN, CLEAN])) for pair in pairs])
    return "mbr-esd-llama?candidates=c.jsonl&n=2"


@pytest.mark.parametrize(
    "unread", [answer("Ufer")[:-1], answer(("Ufer", "grave")), answer("Ufer").replace("error_", "")]
)
def test_59_unread_answers_pass_no_gate(unread: str, texts: str, workdir: Path, mbr_esd: Command) -> None:
    """Half of the answers have a major error and cannot be read, and the others have none."""
    model = of_texts(workdir, unread, CLEAN)
    for gate in ("--fail-under 0.9", "--fail-on major"):
        said = mbr_esd(texts, f"'{model}' {gate}", status=3).err
        assert f"gate failed: 1 segment of t.txt cannot be judged ({UNSURE}): t.txt, line 2" in said
    assert [row["COMET"] for row in rows(workdir / "o.json")] == [1, 1, 1]


@pytest.mark.parametrize(
    "read",
    [
        '{"errors": [{"error_span": "Ufer", "category": null, "sub_category": null, "severity": "major"}]}',
        '{"errors": [{"error_span": "Ufer", "severity": "major"}]}',
        answer("Ufer").replace("]}", ', {"error_span": 1}]}'),
    ],
)
def test_59_an_answer_with_one_good_error_is_read(read: str, texts: str, workdir: Path, mbr_esd: Command) -> None:
    mbr_esd(texts, f"'{of_texts(workdir, read)}' --fail-on major", status=3)
    assert [row["COMET"] for row in rows(workdir / "o.json")] == [1, 0.8, 1]


def test_61_a_span_with_entities_is_found(
    replayed: Callable[[str], str], texts: str, workdir: Path, mbr_esd: Command
) -> None:
    (workdir / "t.txt").write_text("Das Üfer.\nAm &Uuml;fer.\nDer Zug ist spät.\n", encoding="utf-8")
    said = mbr_esd(texts, f"'{replayed('61-escaped-span.json')}'").err
    assert [[one["text"] for one in row["errors"]] for row in rows(workdir / "o.json")] == [["Üfer"], ["&Uuml;fer"], []]
    (workdir / "t.txt").write_text("Das Ufer.\nAm Ufer.\nDer Zug ist spät.\n", encoding="utf-8")
    said = mbr_esd(texts, f"'{replayed('61-escaped-span.json')}'", status=1).err
    assert "most error spans that candidates marked are not in the translation" in said
    assert len(rows(workdir / "o.json")) == 3  # written all the same
