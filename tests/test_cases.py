"""Inputs that went wrong: ``pytest tests/test_cases.py -v`` prints for each whether the output is right now.

They are files of bug reports and scripts of attacks (`MBR_ESD_CASES`, or a folder `cases` beside the data). Of the
attacks `leaderboard_same_name.txt` is in `cli/test_leaderboard_views.py`, as it needs a test set.
"""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mbr_esd_metric.adapters.documents.po import read_po
from mbr_esd_metric.checks.check import Context
from mbr_esd_metric.core.decision import UNSURE
from mbr_esd_metric.files.records import write_records
from tests.helpers.candidates import answer, record
from tests.helpers.chat_server import FakeServer
from tests.helpers.checks import found
from tests.helpers.command import Command
from tests.helpers.document import ROOT

FOLDER = Path(os.environ.get("MBR_ESD_CASES", Path(__file__).parents[2] / "shared" / "cases"))
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
    """The path of a report's input, or of an attack."""

    def path(name: str) -> Path:
        if not FOLDER.is_dir():
            pytest.skip(f"no cases in {FOLDER}; MBR_ESD_CASES names their folder")
        return next(file for part in ("reports", "attacks") if (file := FOLDER / part / name).exists())

    return path


def test_every_case_is_tried() -> None:
    if not FOLDER.is_dir():
        pytest.skip(f"no cases in {FOLDER}; MBR_ESD_CASES names their folder")
    tried = Path(__file__).read_text(encoding="utf-8")
    assert [file.name for file in sorted(FOLDER.glob("*/*")) if file.stem not in tried] == []


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
        ("53-finish-reason-null", "", [1, 0.8, 1]),
        ("54-no-index", "", [1, 0.8, 1]),
        ("55-index-from-1", "", [1, 0.8, 1]),
        ("56-event-stream-unasked", "", [1, 0.8, 1]),
        ("58-413-tokens-a-minute", "", [1, 0.8, 1]),
        ("60-object-twice", "", [1, 0.8, 1]),
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
ESCAPES = ('Path "C:\\new\\table"\tand\nnext line A A', 'Pfad "C:\\new\\table"\tund\nnächste Zeile A A')
PLURAL = [("You have {count} new messages from {name}.", "{name} さんから {count} 件の新しいメッセージがあります。")]


@pytest.mark.parametrize(
    ("name", "lp", "pairs"),
    [
        ("10-several-segments.sdlxliff", "", CAT),
        ("14-four-languages.tmx", "--lp en-de", [("Yes", "Ja"), DOOR]),
        ("15-one-plural-form.po", "--lp en-ja", PLURAL),
        ("17-filipino.xlf", "", [("The door is open.", "Bukas ang pinto.")]),
        ("21-comma-in-a-header-cell.csv", "--lp en-de", [DOOR]),
        ("46-sep-line.csv", "--lp en-de", [DOOR]),
        ("47-columns-named-by-languages.csv", "--lp en-de", [DOOR]),
        ("47-columns-named-by-languages.csv", "--columns en,de", [DOOR]),
        ("48-weblate-fuzzy-column.csv", "--lp en-de", [DOOR]),
        ("49-octal-and-hex-escapes.po", "--lp en-de", [ESCAPES]),
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
    segments = [unit.segment for unit in read_po(case(name)).units]
    assert len(segments) in (2, 6)
    errors = [found(one.source, one.translation, Context(numbers=one.known.numbers)) for one in segments]
    assert errors == [[]] * len(segments)


def test_51_keys_in_place_of_sources_are_a_data_warning(
    case: Callable[[str], Path], workdir: Path, mbr_esd: Command
) -> None:
    said = mbr_esd("score", case("51-keys-as-msgid.po"), "--quiet --model mbr-esd-checks --to_json o.json").err
    assert "most sources are keys; -s SOURCE -t TRANSLATION" in said
    assert [row["data_warning"] for row in rows(workdir / "o.json")] == ["a key in place of its source"] * 2


def test_79_a_translation_in_another_language_is_an_error(
    case: Callable[[str], Path], workdir: Path, mbr_esd: Command
) -> None:
    mbr_esd("score", case("79-spanish-for-german.xlf"), "--quiet --model mbr-esd-checks --to_json o.json")
    first, _ = rows(workdir / "o.json")
    assert [one["category"] for one in first["errors"]] == ["check/language"]


def test_62_expired_requests_of_a_batch_are_submitted_again(
    case: Callable[[str], Path], texts: str, workdir: Path, mbr_esd: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MBR_ESD_CACHE", str(workdir / "cache"))
    command = [sys.executable, case("62-batch-expired-server.py"), "expired"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    model = f"mbr-esd-server?server=http://127.0.0.1:{server.stdout.readline().strip()}/v1&model=gpt-x&n=1&engine=batch"
    try:
        said = mbr_esd(texts, f"'{model}'", status=1).err
        assert re.search("line 3 of t.txt: the batch is expired .*run the same command to sample the rest", said)
        mbr_esd(texts, f"'{model}'")
    finally:
        server.kill()
        server.communicate()
    assert [row["COMET"] for row in rows(workdir / "o.json")] == [1, 1, 1]


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
    assert "most error spans of the candidates were dropped because they are not in the translation" in said
    assert len(rows(workdir / "o.json")) == 3  # written all the same


#: An attack -> what its output has, and what it has not.
ATTACKS = {
    "auto_lock.py": (r"n=16 rc 0 ", "Traceback"),
    "batch_odd_results.py": (r"(.*: 48 samples of 48\n){5}one expired: EngineError: .*\n.*: 48 samples", "TypeError"),
    "batch_subset.py": (r"run 2: .* billed 5\nrun 3: .* billed 5 ", "Error"),
    "changed_from_fuzzy.sh": (r"(?s)second.* 0\.[0-7]\d{3}\nexit 3\n.*XLIFF.* 0\.[0-7]\d{3}\nexit 3", ""),
    "checks_by_sentence.py": (r"numbers moved +\S+ \[\]", "check/"),
    "checks_false_alarms.py": (r"(?s)repetition: 0 false alarms .*items: 0 false alarms", ""),
    "checks_misses.py": (r"[0-9] of 35", ""),
    "cjk_url_gate.sh": ("exit 0", ""),
    "compare_names.sh": (r"(?s)old/base.*old/new.*new/base.*gate rc 1", "gate rc 0"),
    "compare_other_options.sh": ("scores of different settings", "gate passed"),
    "corrected_wrong_place.sh": (
        r"(?s)Mann klopft .*\n.*Mann klopft .*den Katze\..*den Katze\..* in Berlin, in .* ist ihr Erbe",
        "Man dien",
    ),
    "csv_score_errors_columns.sh": (r"1,Hello world,Hallo Welt,77,\"by Anna: tone\",1\.0,\[\]", ""),
    "document_ids_with_spaces.py": (r"\['news article', 'news article', 'sport article', 'sport article'\]", ""),
    "empty_omitted_span.py": (r"(-> Parsed\(.*dropped=1.*\n){1}.*-> Parsed\(.*dropped=1", "Invalid"),
    "exact_spa_outlier.py": (r"(\d+ 0\n){7}(lognormal \d+ 0(\.0)?\n){5}", ""),
    "hparams_vllm.sh": ("trust_remote_code:true may only be set by the user", ""),
    "key_echo.py": ("1 False .*Incorrect API key provided", "SECRETKEY"),
    "names.sh": ("escM-bM-", r"Traceback|\^\[\[31m[^r]|not well-formed"),
    "plain_no_index.py": (r"(.* \[0\.98\]\n){4}", "Error"),
    "prompt_collision.py": (r"\[\(27, 0\.6.*\(1, 0\.8.*\n\[\(1, 0\.8.*\(27, 0\.6.*\n\[\(1, 0\.8", "Error"),
    "quadratic_cut.py": (r"100000 \d+ [0-9]\.\d s", ""),
    "same_served_name.py": ("came from .*, but this run uses .*: if that serves a different model", ""),
    "sample_corpus_rule.sh": (r"(?s)decide x.jsonl -o y.jsonl: rc 0.*report .*: rc 0.*--rule mbr: rc 0", ""),
    "spa_exact_order.py": (r"none 0\.5 .*\n(\[.*\] 0\.6596\d*\n){3}", ""),
    "surrogate.py": (r"\[[\d.]+, [\d.]+\]\n\('One .*', 'Two\.'\)", "Error"),
    "threads.py": (r"(right .*\n){6}", "WRONG"),
}


#: An attack that is still wrong -> what is.
WRONG = {"checks_false_alarms.py": "an amount of Korean digits and words, 3만 5천"}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(one, marks=[pytest.mark.xfail(reason=WRONG[one], strict=True)] if one in WRONG else [])
        for one in ATTACKS
    ],
)
def test_attack(name: str, case: Callable[[str], Path], workdir: Path) -> None:
    script, folders = case(name), os.pathsep.join([str(MBR_ESD.parent), os.environ["PATH"]])
    made = {"MBR_ESD": str(MBR_ESD), "B": str(MBR_ESD), "PY": sys.executable, "PATH": folders, "PYTHONPATH": str(ROOT)}
    run = [sys.executable, "-m", "tests.helpers.attack"] if script.suffix == ".py" else ["bash"]
    done = subprocess.run(
        [*run, script], env=os.environ | made, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300
    )
    shown = done.stdout.decode(errors="replace")
    right, wrong = ATTACKS[name]
    assert re.search(right, shown), shown
    assert not (wrong and re.search(wrong, shown)), shown


def test_a_carriage_return_in_a_unit_stays_in_its_cell(
    case: Callable[[str], Path], workdir: Path, mbr_esd: Command
) -> None:
    """What `csv_carriage_return.py` writes."""
    subprocess.run([sys.executable, case("csv_carriage_return.py")], check=True)
    mbr_esd("score d.xlf --quiet --to_csv e.csv --model 'mbr-esd-llama?candidates=c.jsonl&n=1'")
    with Path("e.csv").open(encoding="utf-8", newline="") as file:
        [row] = csv.DictReader(file)
    assert (row["text"], row["translation"].split()) == ("Hallo", ["Hallo", "Welt"])
