"""Write wmt26.json: a small human evaluation in the shape of WMT26's release, and what the task's scripts say of it.

Pearmut's own server deals out the screens, keeps the answers, resets a user and gives the download. The answers are
posted as its page posts them; no browser is needed. Four users rate three of five systems at a time (cESA, dynamic
assignment) after a tutorial; one is reset, one fails the attention check, one answers at random. Needs Pearmut
(scripts/setup_pearmut.sh) and the folder humeval of wmt-conference/wmt26-general-mt:

    MBR_ESD_PEARMUT=... PYTHONPATH=. python tests/golden/make_wmt26.py HUMEVAL FILTER.py ANALYZE.py PARTICIPANTS.jsonl
"""

from __future__ import annotations

import json
import os
import random
import runpy
import shutil
import sys
import tempfile
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

from mbr_esd_metric.adapters.wmt26_esa import blocks_of
from tests.helpers.pearmut import Server

PAIR, CAMPAIGN = ("eng_Latn", "deu_Latn"), "eng_Latn---deu_Latn v3"
QUALITY = {"Ada": 92, "Bob 2 - 9B": 78, "Cyd": 64, "Dee": 40, "Human (from scratch)": 85}
TOKENS = ["[missing]", "[instructions fault]"]


def documents() -> dict[str, str]:
    """Domain and name -> source."""
    found = {"speech_###_id_talk_1": "well this is what somebody said"}
    found["software_###_app"] = '```json\n{\n"menu.open": "Open {{count}} files",\n"menu.close": "Close all"\n}\n```'
    for number in range(6):
        paragraphs = [f"<p>The {word} of paper {number} 😀 is here.</p>" for word in ("first page", "second page")]
        found[f"news_###_paper.{number}"] = "\n".join(paragraphs)
    return found


def translated(system: str, source: str) -> str:
    """Words of the source with the system's name; of one system, a document in a single paragraph."""
    text = source.replace("The", f"Die {system.split()[0]}").replace("Open", f"Öffne {system[:3]}")
    text = text.replace("well", f"also {system[:3]}")
    return text.replace("</p>\n<p>", " ") if system == "Cyd" and "paper 5" in source else text


def campaign() -> dict[str, Any]:
    """As 01-prepare_campaigns.py makes one."""
    data = []
    for identifier, source in documents().items():
        sources = blocks_of(source)
        outputs = {}
        for system in QUALITY:
            blocks = blocks_of(translated(system, source), source)
            if len(blocks) < len(sources):  # the organisers divide it
                (text,) = blocks
                cut = text.index(" Die ", 1) + 1
                blocks = [text[:cut], text[cut:]]
            outputs[system] = [block.removesuffix("\n") + " " if block.endswith("\n") else block for block in blocks]
        document = []
        for at, block in enumerate(sources):
            speech = "speech" in identifier
            item: dict[str, Any] = {"src": "<video src='assets/talk.mp4' controls></video>" if speech else block}
            item |= {"src_text": block} if speech else {}
            item |= {"tgt": {system: each[at] for system, each in outputs.items()}}
            document.append({**item, "item_id": f"{identifier}_###_{at}"})
        data.append(document)
    tutorial = [{"src": "t", "tgt": {"A": "t"}, "item_id": "en_#_tutorial_#_1", "instructions": "try"}]
    names = ["1st translation", "2nd translation"]
    rule = {names[0]: {"score_greaterthan": names[1], "warning": ""}}
    check = [{"src": "c", "tgt": dict(zip(names, "ab", strict=True)), "validation": rule}]
    info = {"assignment": "dynamic", "protocol": "cESA", "shuffle": False, "dynamic_models": 3, "dynamic_coldstart": 3}
    info |= {"dynamic_coldstart_pool": 8, "special_tokens": TOKENS, "data_random_prob": 1.0}
    info |= {"users": ["anna", "ben", "eve", "zoe"], "docs_per_user": 9}
    return {
        "campaign_id": CAMPAIGN,
        "info": info,
        "data": data,
        "data_welcome": [tutorial],
        "data_random": [[{**check[0], "item_id": "attention_check_0"}]],
    }


class Client:
    """One user's page, without the page."""

    def __init__(self, server: Server, user: str) -> None:
        self._server, self.user = server, user
        self._rng, self._time = random.Random(user), 1_000.0

    def post(self, path: str, **body: Any) -> Any:
        content = json.dumps({"campaign_id": CAMPAIGN, "user_id": self.user, **body}).encode()
        request = urllib.request.Request(self._server.url(path), content, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request) as reply:
            return json.loads(reply.read())

    def screen(self) -> bool:
        """Answer the next screen; False if there is none."""
        shown = self.post("/get-next-item")
        if shown["status"] == "goodbye":
            return False
        items, screen = shown["payload"], shown["info"]["item_i"]
        actions: list[dict[str, Any]] = [{"time": self._time, "action": "load"}]
        answers = [
            {system: self._answer(system, item, at, actions) for system in item["tgt"]} for at, item in enumerate(items)
        ]
        payload: dict[str, Any] = {"annotation": answers, "actions": actions, "item": items}
        if str(screen).startswith("random_"):
            first, second = answers[0]
            passes = self.user != "ben"
            answers[0][first]["score"], answers[0][second]["score"] = (80, 20) if passes else (20, 80)
            payload["validations"] = [passes]
        self._time += 30
        self.post("/log-response", item_i=screen, payload=payload)
        return True

    def _answer(self, system: str, item: dict[str, Any], at: int, actions: list[dict[str, Any]]) -> dict[str, Any]:
        self._time += self._rng.randint(1, 9)
        actions.append({"time": self._time, "action": "score", "index": at, "model": system})
        score = QUALITY.get(system, 50) + self._rng.randint(-5, 5)
        if self.user == "eve":
            score = self._rng.choice([0, 100])
        units = len(item["tgt"][system].encode("utf-16-le")) // 2
        spans = []
        if score < 90 and units > 3:
            spans.append({"start_i": 3, "end_i": min(7, units - 1), "category": None, "severity": "minor"})
        if score < 60:
            spans.append({"start_i": units, "end_i": units, "category": None, "severity": "major"})  # [missing]
        if score < 40:
            spans.append({"start_i": units + 1, "end_i": units + 1, "category": None, "severity": "minor"})
        return {"score": score, "error_spans": spans, "textfield": None}


def downloaded() -> dict[str, Any]:
    """The download, after everybody has finished."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "campaign.json"
        path.write_text(json.dumps(campaign()), encoding="utf-8")
        server = Server(Path(folder) / "root", path)
        server.start()
        try:
            clients = [Client(server, user) for user in ("anna", "ben", "eve", "zoe")]
            for _ in range(4):
                clients[3].screen()
            added = json.loads((server.folder / "data" / "campaigns" / f"{CAMPAIGN}.json").read_text("utf-8"))
            clients[3].post("/reset-campaign", token=added["token"])
            while clients:
                clients = [client for client in clients if client.screen()]
            query = urllib.parse.urlencode({"campaign_id": CAMPAIGN})
            with urllib.request.urlopen(server.url(f"/download-annotations?{query}")) as reply:
                found: dict[str, Any] = json.loads(reply.read())
                return found
        finally:
            server.kill()


def theirs(humeval: Path, filtering: Path, analysis: Path, participants: Path, log: dict[str, Any]) -> dict[str, Any]:
    """Who is left out, and each system's mean and number of scores, by their scripts; what draws is left out."""
    drawn: list[dict[str, Any]] = []
    typst = MagicMock()
    typst.compile = lambda **given: drawn.append({"input": given["input"], **given["sys_inputs"]})
    sys.modules |= {"typst": typst, "matplotlib": MagicMock(), "matplotlib.pyplot": MagicMock()}
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "humeval" / "data").mkdir(parents=True)
        for script, name in ((filtering, "a.py"), (analysis, "b.py"), (humeval / "utils.py", "utils.py")):
            shutil.copy(script, root / "humeval" / name)
        shutil.copy(participants, root / participants.name)
        place, data = os.getcwd(), root / "humeval" / "data"
        (data / "annotations.json").write_text(json.dumps(log), encoding="utf-8")
        sys.path.insert(0, str(root / "humeval"))
        runpy.run_path(str(root / "humeval" / "a.py"))
        filtered = json.loads((data / "annotations_filtered.json").read_text("utf-8"))
        shutil.copy(data / "annotations_filtered.json", data / "annotations.json")  # an older script reads this one
        runpy.run_path(str(root / "humeval" / "b.py"))
        os.chdir(place)
    table = json.loads(next(one["data"] for one in drawn if "perlang" in one["input"]))
    rows = {row["model"]: [row["scores_mean"], sum(score >= 0 for score in row["scores_seg"])] for row in table}
    return {"users": sorted({line["user_id"] for line in filtered[CAMPAIGN]}), "systems": rows}


def main() -> None:
    """Write the file."""
    humeval, filtering, analysis, participants = (Path(path).resolve() for path in sys.argv[1:5])
    log = downloaded()
    texts: list[dict[str, Any]] = []
    systems: dict[str, list[dict[str, Any]]] = {name: [] for name in QUALITY if not name.startswith("Human")}
    for identifier, source in [*documents().items(), ("news_###_unrated", "<p>Nobody.</p>")]:
        domain, name = identifier.split("_###_")
        full = f"WMT26_###_{domain}_###_{PAIR[0]}_###_{PAIR[1]}_###_{name}"
        refs = {"refA": translated("Human (from scratch)", source)}
        texts.append({"doc_id": full, "domain": domain, "src_text": source, "video": None, "refs": refs})
        for system, rows in systems.items():
            rows.append({"doc_id": full, "hypothesis": translated(system, source), "metadata": {}})
    found = {"annotations": log, "documents": texts, "systems": systems}
    found["theirs"] = theirs(humeval, filtering, analysis, participants, log)
    path = Path(__file__).with_name("wmt26.json")
    path.write_text(json.dumps(found, ensure_ascii=False, indent=0) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
