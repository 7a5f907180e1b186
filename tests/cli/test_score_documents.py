"""`mbr-esd score project.xlf -o checked.xlf` over stored candidates."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from mbr_esd_metric.adapters.documents.reading import read_document
from mbr_esd_metric.cli.score import write_errors_of
from mbr_esd_metric.cli.score_inputs import Texts
from mbr_esd_metric.core.annotation import Annotation
from mbr_esd_metric.core.segment import Segment
from mbr_esd_metric.files.judged import JudgedSegment
from mbr_esd_metric.files.records import write_records
from tests.helpers.candidates import answer, record
from tests.helpers.command import Command

FILES = Path(__file__).parents[1] / "data" / "ratings"
XLIFF = (FILES / "project.xlf").read_text(encoding="utf-8")
MODEL = "mbr-esd-demo?candidates=candidates.jsonl&n=1"


def store(*pairs: tuple[str, str, str | None]) -> None:
    """Candidates that mark one text of a translation, or none."""
    write_records("candidates.jsonl", [record(src, mt, answer(*([word] if word else []))) for src, mt, word in pairs])


@pytest.fixture(autouse=True)
def project(workdir: Path) -> None:
    Path("project.xlf").write_text(XLIFF, encoding="utf-8")
    store(("The bank closed.", "Das Ufer schloss.", "Ufer"), ("He left.", "Er ging.", None))


def rows_of(path: str) -> list[dict[str, str]]:
    return list(csv.DictReader(Path(path).read_text(encoding="utf-8").splitlines()))


def test_a_file_comes_back_with_its_errors(mbr_esd: Command) -> None:
    result = mbr_esd("score project.xlf -o checked.xlf --to_csv e.csv --model", MODEL)
    assert result.out.splitlines() == [
        "project.xlf\tSegment o/a\tscore: 0.8000",
        "project.xlf\tSegment o/b\tscore: 1.0000",
        "project.xlf\tscore: 0.9000",
        "checked.xlf: 1 error marked",
    ]
    assert "note: project.xlf: 1 unit without a translation: o/c (line 4)" in result.err
    checked = Path("checked.xlf").read_text(encoding="utf-8")
    assert '<g id="1"><mrk mid="mbr-esd-1" mtype="x-its" its:locQualityIssueType="mistranslation"' in checked
    (row,) = rows_of("e.csv")
    assert (row["id"], row["severity"], row["text"], row["start"]) == ("o/a", "major", "Ufer", "4")
    # Scored again, the marked file gives itself.
    mbr_esd("score checked.xlf -o again.xlf --model", MODEL, "--quiet")
    assert Path("again.xlf").read_text(encoding="utf-8") == checked


def test_limits_of_the_model_are_said_once(mbr_esd: Command) -> None:
    """Beside the marked file, and where nothing is marked on standard error."""
    model = "mbr-esd-small?candidates=candidates.jsonl&n=1&format=json&score=chosen"
    limits, quality = "which of two good systems is better", "the quality of mbr-esd-small on "
    run = mbr_esd("score project.xlf -o checked.xlf --model", model)
    assert run.out.splitlines()[-1].startswith("checked.xlf: 1 error marked; mbr-esd-small detects gross errors")
    for text in (XLIFF, XLIFF.replace('target-language="de', 'target-language="fr')):
        Path("project.xlf").write_text(text, encoding="utf-8")
        run = mbr_esd("score project.xlf --model", model)
        assert (run.err.count(limits), run.out.count(limits)) == (1, 0)
        assert run.err.count(quality) == (text != XLIFF)
    assert mbr_esd("score project.xlf --lp en-fr --model", model).err.count(f"{quality}en-fr is unknown") == 1
    assert "limits            detects gross errors" in mbr_esd("models mbr-esd-small").out


@pytest.mark.parametrize(
    ("old", "new", "words", "message", "printed"),
    [
        # no terminal obeys a unit's name
        ('id="c"', 'id="&#x9b;31m"', "", "translation: o/\ufffd31m (line 4)", "0.9000"),
        # units that are not ready are counted
        ("<target>Er", '<target state="new">Er', "", '1 unit skipped (1 state="new")', "0.8000"),
        ("<target>Er", '<target state="new">Er', "--all", "1 unit without a translation", "0.9000"),
        # codes that differ are a data warning
        ("bank", "bank", "", "with other tags: 1 (unit o/a of project.xlf)", "0.9000"),
        ("bank", '<g id="1">bank</g>', "", "", "0.9000"),
        # a code without a name is in the prompt as it stands
        ('"de"', '"qq"', "", "", "0.9000"),
        (' target-language="de"', "", "--lp en-de", "", "0.9000"),
    ],
)
def test_what_a_file_says_of_its_units(
    old: str, new: str, words: str, message: str, printed: str, mbr_esd: Command
) -> None:
    Path("project.xlf").write_text(XLIFF.replace(old, new), encoding="utf-8")
    result = mbr_esd("score project.xlf --only_system --to_json o.json", words, "--model", MODEL)
    assert message in result.err
    assert result.out.startswith(f"project.xlf\tscore: {printed}\n")
    warned = json.loads(Path("o.json").read_text(encoding="utf-8"))["project.xlf"][0].get("data_warning")
    assert warned == (None if "bank</g>" in new else "with other tags")


def test_a_prompt_that_names_no_languages_needs_none(mbr_esd: Command) -> None:
    Path("project.xlf").write_text(XLIFF.replace('target-language="de"', ""), encoding="utf-8")
    Path("prompt.txt").write_text("{source}\n{translation}", encoding="utf-8")
    mbr_esd(f"score project.xlf --model {MODEL}&prompt=prompt.txt")


def test_a_pair_chooses_among_the_languages_of_a_file(mbr_esd: Command) -> None:
    """Units in others are skipped and counted, and stay as they are."""
    Path("t.csv").write_text("id,source,target,lp\na,Yes,Ja,en-de\nb,Yes,Oui,en-fr\n", encoding="utf-8")
    store(("Yes", "Ja", "Ja"), ("Yes", "Oui", None))
    assert len(mbr_esd("score t.csv --quiet --model", MODEL).out.splitlines()) == 3  # both, each with its own pair
    result = mbr_esd("score t.csv -o o.csv --lp en-de --only_system --model", MODEL)
    assert "t.csv: 1 unit skipped (1 not en-de), such as b" in result.err
    assert Path("o.csv").read_text(encoding="utf-8").splitlines()[2] == "b,Yes,Oui,en-fr,,"
    mbr_esd("score t.csv --lp en-de --only_system --model", f"{MODEL}&lp=en-fr", status=1)


CHANGED = {
    "xlf": XLIFF,
    "csv": "id,source,target\na,The bank closed.,Das Ufer schloss.\nb,He left.,Er ging.\n",
    "po": 'msgid "The bank closed."\nmsgstr "Das Ufer schloss."\n\nmsgid "He left."\nmsgstr "Er ging."\n',
}


@pytest.mark.parametrize("ending", CHANGED)
def test_only_what_changed_is_judged(mbr_esd: Command, ending: str) -> None:
    """The others keep their marks; nothing that changed passes every gate; an empty old file has nothing."""
    content, file, model = CHANGED[ending], f"new.{ending}", f"--model {MODEL}&lp=en-de --quiet"
    marked, out = Path(f"marked.{ending}"), Path(f"out.{ending}")
    for name in ("old", file):
        Path(name).write_text(content, encoding="utf-8")
    mbr_esd("score", file, "-o", marked, model)
    whole = marked.read_text(encoding="utf-8")
    Path("empty").touch()
    output = mbr_esd("score", marked, "--changed-from empty --only_system", model).out
    assert output == f"{marked}\tscore: 0.9000\n"
    # The first unit has an error, and its mark stays while the second, which is new, is judged alone.
    Path(file).write_text(whole.replace("Er ging.", "Er lief."), encoding="utf-8")
    store(("He left.", "Er lief.", "lief"))
    outputs = f"-o {out} --to_json o.json --to_csv e.csv --summary s.md --junit j.xml"
    result = mbr_esd("score", file, "--changed-from old --fail-under .5 --only_system", outputs, model)
    assert result.out.splitlines()[0] == f"{file}\tscore: 0.8000"
    assert "1 unit skipped (1 unchanged since old)" in result.err or "2 units skipped (1 without" in result.err
    assert [row["mt"] for row in json.loads(Path("o.json").read_text(encoding="utf-8"))[file]] == ["Er lief."]
    assert "1 of 2 units differs from old" in Path("s.md").read_text(encoding="utf-8")
    before = whole.partition("He left.")[0]
    assert out.read_text(encoding="utf-8").startswith(before.rpartition("\n")[0] or before)
    assert out.read_text(encoding="utf-8") != Path(file).read_text(encoding="utf-8")
    # What was marked is not a change.
    result = mbr_esd("score", marked, "--changed-from old --fail-under 1", outputs, model)
    said = f"{marked}: no unit differs from old"
    assert (
        result.out == f"{said}, so there is nothing to score\nPredictions saved in: o.json.\n{out}: 0 errors marked\n"
    )
    assert out.read_text(encoding="utf-8") == whole
    assert said in Path("j.xml").read_text(encoding="utf-8")
    assert f"✅ {said}" in Path("s.md").read_text(encoding="utf-8")


def test_an_older_file_of_another_kind_is_named(mbr_esd: Command) -> None:
    for name, kind in {"old.po": "a .po file, and project.xlf is a .xlf file", "old": "not a file like"}.items():
        Path(name).write_text(CHANGED["po"], encoding="utf-8")
        message = mbr_esd("score project.xlf --changed-from", name, "--model", MODEL, status=1).err
        assert f"{name} is {kind}" in message
        assert "give an older version of project.xlf" in message


def test_corrections_in_a_summary(mbr_esd: Command) -> None:
    """What a model says is not markup there; a correction that deletes is a dash."""
    kind = {"category": "style", "sub_category": "", "severity": "minor"}
    error = {"error_span": "<b>|`x", **kind, "correction": "", "reason": "![](http://x) |\n- no"}
    more = {"error_span": "Ja", **kind, "correction": "=Doch", "reason": ""}
    Path("t.csv").write_text("source,target\nYes,Ja <b>|`x\n", encoding="utf-8")
    said = json.dumps({"errors": [error, more]})
    write_records("candidates.jsonl", [record("Yes", "Ja <b>|`x", said, format="json-corrections")])
    mbr_esd(f"score t.csv --lp en-de --summary s.md --model {MODEL}&format=json-corrections")
    summary = Path("s.md").read_text(encoding="utf-8").splitlines()
    two, one = (line for line in summary if line.endswith("|") and "`" in line)
    assert [cell.strip() for cell in one.replace(r"\|", "/").strip("|").split("|")] == [
        "`1`", "2", "`<b>/'x`", "`minor`", "`style`", "\N{EM DASH}", "`![](http://x) / - no`",
    ]  # fmt: skip
    assert "`=Doch`" in two


def test_a_unit_that_a_server_refused_has_no_score_and_no_errors() -> None:
    """Not "[]", which says that it has none."""
    Path("t.csv").write_text("source,target\nYes,Ja\nNo,Nein\n", encoding="utf-8")
    texts = Texts({"t.csv": []}, {"t.csv": []}, {"t.csv": read_document("t.csv")})
    judged = [
        JudgedSegment(Segment("Yes", "Ja"), Annotation(), 1.0),
        JudgedSegment(Segment("No", "Nein"), None, refused="filtered"),
    ]
    assert write_errors_of(texts, {"t.csv": judged}, None, "o.csv") == "o.csv: 0 errors marked"
    assert Path("o.csv").read_text(encoding="utf-8").splitlines()[1:] == ["Yes,Ja,1.0,[]", "No,Nein,,"]
