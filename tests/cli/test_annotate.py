"""`mbr-esd annotate`: from a metric's spans to people and back, through Pearmut itself where it is installed."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from mbr_esd_metric.adapters.pearmut.campaign import utf16_units
from mbr_esd_metric.adapters.rating_formats import read_mqm
from mbr_esd_metric.adapters.ratings import Rating, read_rating_lines
from mbr_esd_metric.cli.main import main
from tests.helpers.command import Command
from tests.helpers.document import ROOT
from tests.helpers.pages import browser
from tests.helpers.real_server import RealServer
from tests.helpers.wmt_folder import DATA, DOCUMENTS, SYSTEMS

#: What `mbr-esd score --to_json` wrote; system B has two spans a segment but in the last, A none.
SCORED = Path(__file__).parents[1] / "data" / "ratings" / "scored.json"
A, B = ([row["mt"] for row in rows] for rows in json.loads(SCORED.read_text(encoding="utf-8")).values())


@pytest.fixture
def scored(workdir: Path) -> None:
    shutil.copy(SCORED, "out.json")


def _export(words: str = "") -> dict[str, Any]:
    assert main(f"annotate export out.json --lp en-de -o round1.json {words}".split()) == 0
    made: dict[str, Any] = json.loads(Path("round1.json").read_text(encoding="utf-8"))
    return made


def _screens(made: dict[str, Any]) -> list[list[dict[str, Any]]]:
    return [screen for task in made["data"] for screen in task]


def test_a_campaign_is_blind_and_counts_as_pearmut_does(scored: None) -> None:
    made = _export()
    assert "A.txt" not in json.dumps([made["data"], made["info"]])
    assert '"A"' not in json.dumps(made["data"])
    assert sorted(made["mbr_esd"]["systems"].values()) == ["A", "B"]
    code = {name: code for code, name in made["mbr_esd"]["systems"].items()}
    first = _screens(made)[0][0]
    assert first["tgt"] == {code["A"]: A[0], code["B"]: B[0]}
    spans = first["error_spans"][code["B"]]
    assert [B[0][s["start_i"] : s["end_i"] + 1] for s in spans] == ["Orte", "nördlich davon"]
    # Systems do not come in one order.
    assert len({tuple(screen[0]["tgt"]) for screen in _screens(made)}) == 2


def test_low_confidence_and_a_budget_leave_out(scored: None) -> None:
    """The same segments each time."""
    spans = [s for screen in _screens(_export("--min-confidence 0.5")) for s in screen[0]["error_spans"].values()]
    assert sum(len(each) for each in spans) == 5
    first, again = ([one["segment"] for screen in _screens(_export("--budget 2")) for one in screen] for _ in range(2))
    assert first == again
    assert len(first) == 2


def test_documents_keep_together_and_annotators_take_turns(scored: None) -> None:
    Path("docs.txt").write_text("news\tone\nnews\tone\nnews\ttwo\nnews\ttwo\nnews\tthree\nnews\tthree\n")
    made = _export("--documents docs.txt --annotators anna ben --each 2")
    assert made["info"]["users"] == ["anna", "ben"]
    assert [[item["segment"] for item in screen] for screen in made["data"][0]] == [["1", "2"], ["3", "4"], ["5", "6"]]
    assert [next(item["document"] for item in screen) for screen in made["data"][1]] == ["one", "two", "three"]


def test_a_test_set_brings_its_documents_and_a_metric_its_spans(workdir: Path, mbr_esd: Command) -> None:
    """Segments that nobody has rated are there as well, in order."""
    mbr_esd("annotate export --lp en-de -o r.json --prefill spans --test-set", DATA / "made")
    made = json.loads(Path("r.json").read_text(encoding="utf-8"))
    items = [item for screen in _screens(made) for item in screen]
    assert [(item["segment"], item["document"]) for item in items] == [
        (str(number), name) for number, (_, name) in enumerate(DOCUMENTS, 1)
    ]
    assert sorted(made["mbr_esd"]["systems"].values()) == sorted(SYSTEMS)
    assert all(len(item["tgt"]) == len(SYSTEMS) for item in items)
    assert sum(len(spans) for item in items for spans in item["error_spans"].values()) > len(items)


def test_messages(scored: None, mbr_esd: Command) -> None:
    for words, message in {
        "--prefill other": "unknown input with error spans 'other'",
        "--min-confidence 1.5": "--min-confidence 1.5: must be between 0 and 1",
        "--each 2": "--each 2: give a number from 1 to that of the annotators, 1",
        "--checks 99": "of 99 attention checks can be made",
        "--annotators x x": "duplicate name",
        "--prefill none --min-confidence 0.5": "has no effect without pre-filled spans",
        "--test-set wmt24": "specify files with translations, or --test-set",
        "--lp english": "a language pair is two language codes such as 'en-de', not 'english'",
    }.items():
        assert message in mbr_esd("annotate export out.json --lp en-de -o x.json", words, status=1).err
    _export()
    for wrong, message in {"round1.json": "only the campaign", "out.json": "not a Pearmut campaign"}.items():
        assert message in mbr_esd("annotate import", wrong, "-o r.jsonl", status=1).err


class Pearmut(RealServer):
    """Pearmut with one campaign."""

    health = "annotate"

    def __init__(self, folder: Path, campaign: Path) -> None:
        command = os.environ.get("MBR_ESD_PEARMUT") or shutil.which("pearmut")
        if command is None:
            pytest.skip("pearmut is not installed (scripts/setup_pearmut.sh FOLDER, and set MBR_ESD_PEARMUT)")
        (folder / "data").mkdir(parents=True)
        environment = {**os.environ, "PEARMUT_ROOT": str(folder)}
        subprocess.run([command, "add", str(campaign)], cwd=folder, env=environment, check=True)
        super().__init__(lambda port: [command, "run", "--port", str(port)], folder / "log", environment)
        self.folder, self.address = folder, f"http://127.0.0.1:{self.port}"

    def kill(self) -> None:
        """End it as a power cut would; its lock stays behind, which the page says how to remove."""
        super().kill()
        [lock] = re.findall(r"^\$ rm (\S+)", (ROOT / "docs" / "people.md").read_text(encoding="utf-8"), re.MULTILINE)
        (self.folder / lock).unlink()


class Person:
    """An annotator in a browser, who looks at the only segment of each screen."""

    def __init__(self, driver: Any, url: str) -> None:
        self.driver, self.url = driver, url
        self.open()

    def open(self) -> None:
        self.driver.get(self.url)
        self._until("return document.querySelectorAll('.output_candidate').length > 0")

    def mark(self, system: str, first: int, last: int, severity: str) -> None:
        """Click on the first and the last unit of an error, and on its severity."""
        unit = self._unit(system, first)
        self._click(unit)
        if last != first or "special_token" not in unit.get_attribute("class"):
            self._click(self._unit(system, last))
        self.press(system, first, f".error_{severity}")

    def press(self, system: str, first: int, button: str) -> None:
        """Press a button for the error that begins there: one for its severity, or to delete it."""
        from selenium.webdriver.common.action_chains import ActionChains

        ActionChains(self.driver).move_to_element(self._unit(system, first)).perform()
        self._until("return [...document.querySelectorAll('.span_toolbox_parent')].some(e => e.offsetHeight)")
        open_ = [e for e in self.driver.find_elements("css selector", ".span_toolbox_parent") if e.is_displayed()]
        self._click(open_[-1].find_element("css selector", button))

    def score(self, system: str, value: int) -> None:
        """Move the slider."""
        self.driver.execute_script(
            "const e = document.querySelector(arguments[0]); e.value = arguments[1];"
            "for (const name of ['input', 'change']) e.dispatchEvent(new Event(name, {bubbles: true}))",
            f".output_candidate[data-model='{system}'] input[type=range]",
            value,
        )

    def next(self) -> None:
        """Send the screen, and wait for another one or the end."""
        before = self.driver.find_element("css selector", "#progress .progress_current").text
        self._click(self.driver.find_element("id", "button_next"))
        self._until(
            "const e = document.querySelector('#progress .progress_current');"
            "return document.querySelector('#button_next').value == 'Finished' || (e && e.textContent != arguments[0])",
            before,
        )

    def _unit(self, system: str, unit: int) -> Any:
        place = f".output_candidate[data-model='{system}'] .tgt_char[data-i='{unit}']"
        return self.driver.find_element("css selector", place)

    def _click(self, element: Any) -> None:
        self.driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
        element.click()

    def _until(self, script: str, *arguments: Any) -> None:
        from selenium.webdriver.support.wait import WebDriverWait

        WebDriverWait(self.driver, 60, 0.05).until(lambda driver: driver.execute_script(script, *arguments), script)


def test_what_people_click_comes_back(
    scored: None, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest, mbr_esd: Command
) -> None:
    """Two annotators of two systems on seven screens each; the server dies in the middle."""
    made = _export("--annotators anna ben --each 2 --checks 1")
    server = Pearmut(tmp_path_factory.mktemp("pearmut") / "root", Path("round1.json").resolve())
    driver = browser(tmp_path_factory.mktemp("profile"))
    request.addfinalizer(driver.quit)
    server.__enter__()
    request.addfinalizer(server.kill)
    code = {name: code for code, name in made["mbr_esd"]["systems"].items()}
    a, b = code["A"], code["B"]
    for name, screens in zip(("anna", "ben"), made["data"], strict=True):
        person = Person(driver, f"{server.address}/annotate?campaign_id=round1&user_id={name}")
        for turn, (item,) in enumerate(screens):
            if (turn, name) == (3, "anna"):
                server.kill()
                server.__enter__()
                person.open()
            assert driver.find_element("css selector", ".output_src").text == item["src"]
            number = int(item["segment"]) - 1
            for system in item["tgt"]:
                person.score(system, 50 + number if system == a else 40 + number)
            if "validation" in item:
                if name == "ben":  # passes; anna sees nothing
                    ((system, rule),) = item["validation"].items()
                    at = rule["error_spans"][0]["end_i"][0]
                    person.mark(system, at, at, "major")
            elif name == "anna" and number == 0:
                person.press(b, utf16_units(B[0], B[0].index("nördlich")), ".error_delete")
                start = utf16_units(A[0], A[0].index("überflutete"))
                person.mark(a, start, start + len("überflutete") - 1, "minor")
            elif name == "anna" and number == 1:
                person.press(b, utf16_units(B[1], B[1].index("Orte")), ".error_minor")
                person.mark(a, utf16_units(A[1], len(A[1])), utf16_units(A[1], len(A[1])), "major")
            elif name == "anna" and number == 2:
                smile = utf16_units(A[2], A[2].index("😀"))
                person.mark(a, smile, smile, "major")  # the half of it that can be clicked
            person.next()

    output = mbr_esd("annotate import", server.folder, "-o ratings.jsonl").out
    assert "24 ratings of 2 annotators" in output
    assert "anna passed 0 of 1 attention check" in output
    assert "ben passed 1 of 1 attention check" in output
    read = list(read_rating_lines("ratings.jsonl"))
    ratings = {(one.rater, one.segment.system, int(one.segment.label) - 1): one for one in read}
    assert len(ratings) == 24

    for (name, system, number), one in ratings.items():
        assert one.score == (50 if system == "A" else 40) + number
        assert one.segment.translation == (A if system == "A" else B)[number]
        assert one.seconds > 0
        assert (one.lp, one.checks) == ("en-de", (0, 1) if name == "anna" else (1, 1))

    def marks(one: Rating) -> tuple[list[tuple[str, str]], list[str]]:
        """The errors, and the fates of those that were there before."""
        text = one.segment.translation
        texts = [text[e.start : e.end] if e.side == "translation" else "[missing]" for e in one.errors]
        return list(zip(texts, (e.severity for e in one.errors), strict=True)), [s.fate for s in one.suggested or ()]

    north = ("nördlich davon", "minor")
    kept = [("Orte", "major"), north], ["kept", "kept"]
    assert {key: marks(one) for key, one in ratings.items() if one.errors or one.suggested} == {
        **{(name, "B", number): kept for name in ("anna", "ben") for number in range(5)},
        ("anna", "B", 0): ([("Orte", "major")], ["kept", "deleted"]),
        ("anna", "A", 0): ([("überflutete", "minor")], []),
        ("anna", "B", 1): ([("Orte", "minor"), north], ["changed", "kept"]),
        ("anna", "A", 1): ([("[missing]", "major")], []),
        ("anna", "A", 2): ([("😀", "major")], []),
    }

    # The two downloads say the same as the folder.
    for kind in ("annotations", "campaigns"):
        with urllib.request.urlopen(f"{server.address}/download-{kind}?campaign_id=round1") as reply:
            Path(f"{kind}.json").write_bytes(reply.read())
    mbr_esd("annotate import campaigns.json annotations.json -o again.jsonl")
    assert Path("again.jsonl").read_bytes() == Path("ratings.jsonl").read_bytes()

    # Every verb for ratings of people reads them.
    assert len(read_mqm("ratings.jsonl").ratings) == 24
    output = mbr_esd("annotate report ratings.jsonl").out
    assert "A is better" in output
    assert "signature: mbr-esd-metric" in output
    mbr_esd("calibrate out.json ratings.jsonl --save c.json")
    mbr_esd("report out.json ratings.jsonl -o report.html")
    mbr_esd("wmt import ratings.jsonl --test-set data/mine")
    assert list(Path("data").rglob("en-de.esa.seg.score"))  # people's scores, not penalties of their errors


def test_two_systems_of_one_name_are_no_one_system(workdir: Path, mbr_esd: Command) -> None:
    for name in ("old", "new"):
        Path(f"{name}.json").write_text(json.dumps({"mt.txt": [{"src": "s", "mt": name, "COMET": 0.5}]}))
    export = "annotate export old.json new.json --lp en-de --prefill none -o c.json"
    assert "two files have a system mt, with two translations" in mbr_esd(export, status=1).err


def test_no_terminal_obeys_an_annotators_name(scored: None, mbr_esd: Command) -> None:
    made = _export("--annotators \x1b[31m --checks 1")
    answer = {"score": 70, "error_spans": []}
    log = [
        {"user_id": "\x1b[31m", "item_i": at, "item": [item], "annotation": [dict.fromkeys(item["tgt"], answer)]}
        for at, (item,) in enumerate(_screens(made))
    ]
    Path("a.json").write_text(json.dumps({"round1": log}), encoding="utf-8")
    output = mbr_esd("annotate import round1.json a.json -o r.jsonl").out
    assert output == "r.jsonl: 12 ratings of 1 annotator\n  \u241b[31m passed 0 of 1 attention check\n"
    assert "no difference shown" in mbr_esd("annotate report r.jsonl").out
