"""Write predictions.json: every rule, format, unit, source of candidates and score, with signatures and store keys.

    python tests/golden/make_predictions.py

Candidates come from a stub server that draws them from prompt and seed, or from files that `mbr-esd sample` wrote.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import random
import re
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mbr_esd_metric import Annotation, ErrorSpan, __version__, load_metric
from mbr_esd_metric.cli.main import main
from mbr_esd_metric.prompting.formats import get_format
from tests.helpers.chat_server import FakeServer

PATH = Path(__file__).with_name("predictions.json")
MODEL = "org/judge"
PARTS = [
    ("Good morning, dear friends.", "Guten Morgen, liebe Freunde."),
    ("I came from Paris in 1987.", "Ich kam 1987 aus Paris."),
    ("Nobody met me there.", "Niemand traf mich dort 🐉."),
]
PARAGRAPH = tuple(" ".join(side) for side in zip(*PARTS, strict=True))
PAIRS = [
    ("The bank on the corner closed last week.", "Das Ufer an der Ecke schloss letzte Woche."),
    ("The big dog barks at night.", "Der Hund, der Hund bellt 🐉."),
    ("The bank on the corner closed last week.", "Das Ufer an der Ecke schloss letzte Woche."),
    ("It is late.", " "),
    ("", ""),
    PARAGRAPH,
    ("Two words <here> & \\ there.", "Zwei Wörter <hier> & \\ dort."),
]
RULES = ("mbr", "map", "majority", "greedy", "empty", "mbr-corpus", "consensus-corpus")
FORMATS = ("json", "compact", "json-omissions", "compact-omissions", "esa", "gemba-mqm")
STATED = ("esa", "gemba-mqm", "tags")
#: Files that models name, and their content.
FILES = {"prompt.txt": "Mark the errors.\n{source}\n{translation}\nJSON please."}
SHOT = {"src": "We left.", "mt": "Wir links.", "spans": [{"start": 4, "end": 9, "severity": "major"}]}
FILES["shots.jsonl"] = f"{json.dumps(SHOT)}\n"


def cases() -> Iterator[tuple[str, str]]:
    """Name of a case -> options of its model."""
    for rule in RULES:
        yield f"rule {rule}", f"rule={rule}"
    for form in FORMATS:
        for score in ("chosen", "expected", *(["given"] if form in STATED else [])):
            yield f"format {form} {score}", f"format={form}&score={score}"
        yield f"format {form} corpus", f"format={form}&rule=mbr-corpus"
        yield f"format {form} one", f"format={form}&rule=greedy"
        yield f"format {form} sentence", f"format={form}&unit=sentence&lp=en-de"
    for options in (
        *("unit=auto", "unit=sentence&context=document", "context=document", "unit=sentence&rule=mbr-corpus"),
        *("unit=sentence&score=expected&format=esa", "invalid=empty", "mqm=google", "location=successive"),
        *("weights=model", "blank=skip", "blank=perfect", "blank=skip&rule=mbr-corpus", "utility=f1", "utility=mpp"),
        *("utility=scoresim", "utility=softdice", "utility=softf1+scoresim", "utility=0.7*softf1+0.3*f1"),
        *("grounded=true", "grounded=true&format=compact-omissions"),
        *("seed=3", "temperature=1", "temperature=0", "top_k=0", "lp=en-de", "max_tokens=99"),
        *("prompt=prompt.txt", "shots=shots.jsonl", "shots=shots.jsonl:1&format=compact", "dtype=float32"),
        *("reasoning_effort=low", "n=1", "model=org/judge@abc", "vllm=quantization:fp8,max_model_len:9"),
    ):
        yield f"option {options}", options
    for dialect in ("sglang", "llamacpp", "ollama", "openai", "plain", "transformers", "vllm"):
        yield f"dialect {dialect}", f"dialect={dialect}&temperature=1"
    for form in (*FORMATS, "tags"):
        for options in ("", "&score=expected", "&rule=mbr-corpus", "&rule=majority&invalid=empty"):
            yield f"file {form}{options}", f"format={form}{options}"
    yield "file one", "rule=greedy"
    yield "file unit=auto", "unit=auto"


class Judge(FakeServer):
    """Answers in a format with errors drawn from prompt and seed; some are cut, and some mark words that are absent."""

    def __init__(self, model: str, form: str, dialect: str = "vllm") -> None:
        super().__init__(model, dialect=dialect)
        self.form = form
        self.grounded = False
        #: Of each prompt the requests so far, which stand for the seed where a dialect has none.
        self.times: Counter[str] = Counter()

    def complete(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        prompt = "\n".join(message["content"] for message in body["messages"])
        source, translation = max(
            (*PAIRS[:3], *PARTS, *PAIRS[5:]), key=lambda pair: (prompt.rfind(pair[1]), -len(pair[1]))
        )
        seed = body.get("options", body).get("seed", self.times[prompt])
        self.times[prompt] += 1
        n = body.get("n", 1)
        drawn = [self.draw(f"{prompt}/{seed + i}", source, translation, n == 1) for i in range(n)]
        return self.completion(body, [(text, self.spelt(text), text.endswith("…")) for text in drawn])

    def draw(self, lot: str, source: str, translation: str, whole: bool = False) -> str:
        """An answer."""
        rng = random.Random(lot)
        spans: list[ErrorSpan] = []
        for _ in range(rng.choice((0, 1, 1, 2))):
            omitted = get_format(self.form).both_sides and rng.random() < 0.3
            text = source if omitted else translation
            word = rng.choice(text.split() or [""])
            severity, start = rng.choice(("major", "minor")), text.index(word)
            side = "source" if omitted else "translation"
            spans += [ErrorSpan(start, start + len(word), severity, "style/awkward", side=side)] if word else []
        text, _ = get_format(self.form).answer(Annotation(spans), translation, source)
        roll = rng.random()
        if roll < 0.1 and not whole and translation.strip():
            return text[: len(text) // 2] + "…"
        return text.replace("Hund", "Katze") if roll < 0.2 and not self.grounded else text

    @staticmethod
    def spelt(text: str) -> list[dict[str, Any]]:
        """The tokens of an answer, a word each, with log-probabilities that depend on them."""
        words = re.findall("[^ ]* |[^ ]+$", text)
        chances = [-(hashlib.sha256(word.encode()).digest()[0] + 1) / 1024 for word in words]
        return [
            {"token": word, "logprob": chance, "bytes": [*word.encode()], "top_logprobs": []}
            for word, chance in zip(words, chances, strict=True)
        ]


def outcome(name: str, options: str) -> dict[str, Any]:
    """Scores, metadata, signature and the store's keys of a case; run in an empty folder."""
    given = dict(option.split("=", 1) for option in options.split("&"))
    for file, content in FILES.items():
        Path(file).write_text(content, encoding="utf-8")
    os.environ["MBR_ESD_STORE"] = store = f"{hashlib.sha256(name.encode()).hexdigest()[:8]}.sqlite"
    if name.startswith("file"):
        return from_file({"format": "json", "unit": "segment", **given})
    served = given.get("model", MODEL) + ("@quantization:fp8" if "vllm" in given else "")
    with Judge(served, given.get("format", "json"), given.get("dialect", "vllm")) as server:
        server.grounded = "grounded" in given
        return predicted(asked(server, **{"unit": "segment", **given})) | {"keys": keys(store)}


def asked(server: Judge, **options: str) -> str:
    """The name of a model on this server."""
    values = {"model": MODEL, "score": "chosen", "n": "8", "engine": "server", "concurrency": "1", **options}
    return "mbr-esd-server?" + "&".join(f"{key}={value}" for key, value in {**values, "server": server.url}.items())


def from_file(options: Mapping[str, str]) -> dict[str, Any]:
    """A case of candidates that `mbr-esd sample` wrote; those of tags, which no server gives, are written here. The
    file is decided by `mbr-esd decide` as well."""
    for at, file in enumerate(("src", "mt")):
        Path(file).write_text("".join(f"{pair[at]}\n" for pair in PAIRS), encoding="utf-8")
    form, rule = options["format"], "greedy" if options.get("rule") == "greedy" else "mbr"
    with Judge(MODEL, form) as server:
        if form == "tags":
            rows = []
            for number, (source, mt) in enumerate(PAIRS, 1):
                texts = [server.draw(f"{number}/{i}", source, mt) for i in range(8)]
                row = {"id": str(number), "system": "mt", "src": source, "mt": mt, "format": form}
                rows.append(json.dumps({**row, "candidates": [{"text": text, "logprob": -1.0} for text in texts]}))
            Path("c.jsonl").write_text("\n".join([*rows, ""]), encoding="utf-8")
        else:
            run("sample -s src -t mt -o c.jsonl --quiet --model", asked(server, format=form, rule=rule))
    decision = {key: value for key, value in options.items() if key in ("rule", "score", "invalid")}
    shown_as = decision | {"n": "1" if rule == "greedy" else "8", "unit": options["unit"]}
    prediction = predicted("mbr-esd-llama?candidates=c.jsonl" + "".join(f"&{k}={v}" for k, v in shown_as.items()))
    run("decide c.jsonl -o d.jsonl --quiet", *(word for key, value in decision.items() for word in (f"--{key}", value)))
    lines = Path("d.jsonl").read_text(encoding="utf-8").replace('"error_spans"', '"spans"')
    decided = [json.loads(line) for line in lines.replace(f"|v:{__version__}", "|v:").splitlines()]
    digest = hashlib.sha256(Path("c.jsonl").read_bytes()).hexdigest()[:16]
    return prediction | {"file": digest, "decided": decided}


def run(words: str, *more: str) -> None:
    """A verb of the command line, which prints nothing here."""
    with contextlib.redirect_stderr(io.StringIO()) as said, contextlib.redirect_stdout(io.StringIO()):
        status = main([*words.split(), *more])
    assert status == 0, said.getvalue()


def predicted(name: str) -> dict[str, Any]:
    """The prediction of a model, without what is advice or a look at the data."""
    samples = [{"src": source, "mt": mt, "system": "mt", "doc": "d"} for source, mt in PAIRS]
    prediction = load_metric(name).predict(samples, progress_bar=False)
    left_out = ("data_warning", "summary", "advice", "signature")
    metadata = {key: value for key, value in prediction.metadata.items() if key not in left_out}
    signature = prediction.metadata["signature"].replace(f"v:{__version__}", "v:")
    return {"signature": signature, "system_score": prediction.system_score, "scores": prediction.scores, **metadata}


def keys(store: str) -> list[str]:
    """The beginnings of the store's keys, in order."""
    with contextlib.closing(sqlite3.connect(store)) as connection:
        return sorted(key[:16] for (key,) in connection.execute("SELECT key FROM request") if len(key) == 64)


def rounded(value: Any) -> Any:
    """A value with its floats in 12 digits, which libraries of linear algebra agree on; NaN as None."""
    if isinstance(value, float):
        return None if value != value else float(f"{value:.12g}")
    if isinstance(value, Mapping):
        return {key: rounded(one) for key, one in value.items()}
    return [rounded(one) for one in value] if isinstance(value, (list, tuple)) else value


if __name__ == "__main__":
    lines = []
    for name, options in cases():
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            os.environ["MBR_ESD_CACHE"] = folder
            lines.append(f"{json.dumps(name)}: {json.dumps(rounded(outcome(name, options)), ensure_ascii=False)}")
            os.chdir(PATH.parent)
    PATH.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
