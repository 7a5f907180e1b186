"""Answers that cannot be read: segments that are unsure in every output, gates that fail on them, and spans that are in
no text."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from mbr_esd_metric.core.decision import UNSURE
from mbr_esd_metric.files.records import write_records
from tests.helpers.candidates import answer, record
from tests.helpers.command import Command

#: A major error in an answer that cannot be read, and one that can.
UNREAD, CLEAN = '{"errors": [{"error_span": "w", "severity": "MAJOR!"}]}', answer()
MODEL = "mbr-esd-demo?candidates=c.jsonl&n=6"
SCORE = f"score -s s.txt -t mt.txt --quiet --only_system --to_json o.json --model {MODEL}"
PLACES = {2: "mt.txt, line 2", 4: "mt.txt, line 4"}


@pytest.fixture(autouse=True)
def files(workdir: Path) -> None:
    """Of six candidates of four segments so many are unread: none, two (a third), one, and, beside an error, none."""
    answers = [[CLEAN] * 6, [UNREAD] * 2 + [CLEAN] * 4, [UNREAD] + [CLEAN] * 5, [UNREAD] * 4 + [answer("w4")] * 2]
    records = [record(f"s{n}", f"mt w{n}", *texts, number=n) for n, texts in enumerate(answers, 1)]
    write_records("c.jsonl", records)
    Path("s.txt").write_text("s1\ns2\ns3\ns4\n")
    Path("mt.txt").write_text("mt w1\nmt w2\nmt w3\nmt w4\n")


def test_a_gate_fails_on_a_segment_that_is_unsure(mbr_esd: Command) -> None:
    """In words, in JUnit and in the summary; the scores stay."""
    gates = "--fail-under 0.5 --min-segment 0.5 --fail-on major --junit j.xml --summary s.md"
    said = mbr_esd(SCORE, gates, status=3)
    assert f"1 segment {UNSURE} (line 2 of mt.txt): " in said.err  # --quiet keeps it
    unjudged = f"1 segment of mt.txt cannot be judged ({UNSURE}): {PLACES[2]}"
    assert [line for line in said.err.splitlines() if "gate" in line] == [
        f"mbr-esd score: gate failed: {unjudged}",
        f"mbr-esd score: gate failed: {unjudged}",
        "mbr-esd score: gate failed: 1 segment of mt.txt with a major error: "
        f'mt.txt, line 4 (major "w4", accuracy/mistranslation); {unjudged}',
    ]
    assert said.out.splitlines()[0] == "mt.txt\tscore: 0.9500"
    rows = json.loads(Path("o.json").read_text())["mt.txt"]
    assert [(row["COMET"], row.get("unsure")) for row in rows] == [(1, None), (1, True), (1, None), (0.8, None)]
    cases = ElementTree.parse("j.xml").getroot()[0].findall("testcase")
    assert [case.get("line") for case in cases if case.get("file")] == ["2", "2", "4", "2"]
    assert f"1 segment {UNSURE} (line 2 of mt.txt)" in Path("s.md").read_text(encoding="utf-8")
    mbr_esd(SCORE)  # without a gate it is a warning


@pytest.mark.parametrize("rule", ["mbr", "mbr-corpus"])
def test_decisions_are_unsure_too(rule: str, mbr_esd: Command) -> None:
    said = mbr_esd(f"decide c.jsonl -o d.jsonl --quiet --rule {rule}").err
    assert f"1 segment {UNSURE}" in said
    rows = [json.loads(line) for line in Path("d.jsonl").read_text().splitlines()]
    assert [row.get("unsure") for row in rows] == [None, True, None, None]


def test_the_other_verbs_show_it(mbr_esd: Command) -> None:
    mbr_esd(SCORE)
    mbr_esd("decide c.jsonl -o d.jsonl --quiet")
    old = json.loads(Path("o.json").read_text())
    for row in old["mt.txt"]:
        row.pop("unsure", None)
    Path("old.json").write_text(json.dumps({"old.txt": old["mt.txt"]}))
    for gate in ("--fail-if-worse", "--max-drop 0.5"):
        said = mbr_esd(f"compare old.json o.json {gate}", status=3)
        assert f"gate failed: 1 segment of mt cannot be judged ({UNSURE}): mt.txt, line 2" in said.err
        assert f"mt: 1 segment {UNSURE} (2)" in said.out
        mbr_esd(f"compare o.json old.json {gate}")  # a higher score of the old system is no kind one
    for given in ("o.json", "d.jsonl c.jsonl", "c.jsonl"):
        shown = mbr_esd(f"show {given}").out
        assert [line for line in shown.splitlines() if UNSURE in line and "score 1.0000" in line]
        assert shown.count(UNSURE) == 1
    assert f"c: 1 segment {UNSURE} (2)" in mbr_esd("compare c.jsonl").out


def test_a_run_whose_spans_are_in_no_text_ends_with_1(mbr_esd: Command) -> None:
    """After the files are written, and with the reason also where answers were to be grounded."""
    lost = [answer("nowhere", "w1")] + [answer("elsewhere")] * 5
    write_records("c.jsonl", [record(f"s{n}", f"mt w{n}", *lost, number=n) for n in range(1, 5)])
    for option in ("", "&grounded=true"):
        said = mbr_esd(SCORE + option, "--summary s.md --to_csv o.csv --fail-on major", status=1)
        assert "most error spans of the candidates were dropped because they are not in the translation" in said.err
        assert "are not in the translation" in Path("s.md").read_text(encoding="utf-8")
        for name in ("o.json", "o.csv", "s.md"):
            assert Path(name).exists()
            Path(name).unlink()
    assert (
        "of the candidates' error spans do not occur in the texts" in mbr_esd("decide c.jsonl -o d.jsonl", status=1).err
    )
    assert len(Path("d.jsonl").read_text().splitlines()) == 4


#: A train's numbers, so that lines differ; the old system is right.
PAIRS = [
    (f"The train number {n} leaves the old station early.", f"Der Zug Nummer {n} verlässt früh den alten Bahnhof.")
    for n in range(1, 41)
]
WRONG = {
    7: "ERROR 404",
    12: "El tren número 12 sale temprano de la antigua estación de la ciudad.",
    20: "Der Zug Nummer 20 verlässt früh den alten Bahnhof.",  # without its tag
}


def xliff(name: str, changes: dict[int, str]) -> None:
    """Forty units; the words "old station" of the twentieth are in a tag, in the translation unless it is changed."""
    units = []
    for n, (source, translation) in enumerate(PAIRS, 1):
        if n == 20:
            source = source.replace("old station", '<g id="1">old station</g>')
            translation = translation.replace("alten Bahnhof", '<g id="1">alten Bahnhof</g>')
        texts = f"<source>{source}</source><target>{changes.get(n, translation)}</target>"
        units.append(f'<trans-unit id="u{n}">{texts}</trans-unit>\n')
    file = '<file source-language="en" target-language="de"><body>\n'
    Path(name).write_text(f'<xliff version="1.2">{file}{"".join(units)}</body></file></xliff>', encoding="utf-8")


def test_forty_segments_with_a_catastrophe_another_language_and_a_lost_tag(mbr_esd: Command) -> None:
    """Each gate says what is true, also where half of the answers are unread."""
    xliff("old.xlf", {})
    xliff("new.xlf", WRONG)
    texts = dict.fromkeys(
        (PAIRS[n - 1][0], text) for n in range(1, 41) for text in (PAIRS[n - 1][1], WRONG.get(n, PAIRS[n - 1][1]))
    )
    score = "score {}.xlf --quiet --only_system --to_json {}.json --model 'mbr-esd-demo?candidates=c.jsonl&n=4{}' {}"

    def run(system: str, options: str = "", gates: str = "", status: int = 0) -> list[str]:
        return mbr_esd(score.format(system, system, options, gates), status=status).err.splitlines()

    write_records("c.jsonl", [record(*pair, *[CLEAN] * 4, format="json-omissions") for pair in texts])
    # A model that finds nothing, without the checks: a warning reports the rule-based errors, which the gates ignore.
    said = run("new", gates="--fail-on major")
    assert any(line.startswith("3 segments with rule-based errors that the gates ignore (") for line in said)
    assert said[-1] == "mbr-esd score: gate passed: no segment of new.xlf has a major error"
    # With them each gate is true: the mean hides the three, the single segment and the severity do not.
    said = run("new", "&checks=true", "--fail-under 0.9 --min-segment 0.9 --fail-on major", 3)
    passed, low, marked = (line.removeprefix("mbr-esd score: gate ") for line in said if "gate " in line)
    assert passed == "passed: new.xlf scores 0.9850, at least 0.9"
    assert low.startswith("failed: 3 segments of new.xlf scored less than 0.9: ")
    assert marked.startswith("failed: 3 segments of new.xlf with a major error: ")
    assert all(f"unit u{n}, line {n + 1}" in line for line in (low, marked) for n in WRONG)
    assert all(kind in marked for kind in ("check/number", "check/language", "check/tag"))
    run("old", "&checks=true", "--fail-on major")
    said = mbr_esd("compare old.json new.json --fail-if-worse --max-drop 0.1", status=3).err.splitlines()
    assert (
        "gate passed: the mean of new is lower than that of old by 0.01500, but the difference is not significant"
        in said[0]
    )
    assert "gate failed: 3 segments of new scored more than 0.1 below old: " in said[1]

    # Half of the answers unread: the certain errors are named all the same, the others are not judged.
    answers = [UNREAD, UNREAD, CLEAN, CLEAN]
    write_records("c.jsonl", [record(*pair, *answers, format="json-omissions") for pair in texts])
    said = run("new", "&checks=true", "--fail-under 0.9 --fail-on major", 3)
    low, marked = (line.removeprefix("mbr-esd score: gate ") for line in said if "gate " in line)
    assert low.startswith(f"failed: 40 segments of new.xlf cannot be judged ({UNSURE}): new.xlf, unit u1, line 2; ")
    assert marked.startswith("failed: 3 segments of new.xlf with a major error: new.xlf, unit u7, line 8 ")
    assert f"; 37 segments of new.xlf cannot be judged ({UNSURE}): new.xlf, unit u1, line 2; " in marked
    # A format that marks no words of the source has no place for the lost tag.
    write_records("c.jsonl", [record(*pair, *[CLEAN] * 4) for pair in texts])
    said = run("new", "&checks=true", "--fail-on major", 3)
    assert any("1 segment with rule-based errors that the gates ignore" in line and "u20" in line for line in said)
