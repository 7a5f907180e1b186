"""Model names, options and folders, and the small model that ships."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from mbr_esd_metric import load_metric
from mbr_esd_metric.cli.models import engine_problems
from mbr_esd_metric.decoding.options import DecisionOptions
from mbr_esd_metric.errors import InputError, OptionError
from mbr_esd_metric.generation.embedded import EMBEDDED
from mbr_esd_metric.generation.engine import Sampling
from mbr_esd_metric.generation.pretrained import model_name
from mbr_esd_metric.metric.advice import summary
from mbr_esd_metric.metric.card import with_options
from mbr_esd_metric.metric.cards import CARDS, limits, load_card

SMALL = Path(__file__).parents[2] / "mbr_esd_metric" / "small"
HEAD = "class_identifier: mbr_esd_metric\n"
PLACES = ("server", "candidates")
OUTSIDE = (
    *(f"prompt: {path}" for path in ("../secret", "{outside}", "secret", "link", "none")),
    *("adapter: ../a", "adapter: {outside}", "model: ../m"),
)
needs_weights = pytest.mark.skipif(not (SMALL / "model.safetensors").is_file(), reason=f"no weights in {SMALL}")


def test_the_cards_are_the_papers() -> None:
    assert CARDS["mbr-esd-llama"].model == "meta-llama/Llama-3.3-70B-Instruct"
    for name in ("llama", "gemma2", "phi4", "mistral"):
        card = CARDS[f"mbr-esd-{name}"]
        assert (card.samples, card.decision) == (256, DecisionOptions("mbr", "softf1", location="first"))
        assert card.sampling == Sampling(temperature=2.0, top_k=10, max_tokens=2048, seed=0)
    distilled = CARDS["mbr-esd-llama-distill"]
    assert (distilled.samples, distilled.sampling.temperature) == (1, 0.0)


def test_any_model_with_weights_has_a_name() -> None:
    card = load_card("mbr-esd-model?model=org/my-model&n=4")
    assert (card.title, card.decision.score, card.samples) == ("org/my-model", "expected", 4)
    assert {"server", "vllm", "transformers"} <= engine_problems(card).keys()


def test_options_are_typed_and_decoded() -> None:
    card = load_card("mbr-esd-llama?n=64&utility=softf1%2Bscoresim&server=http://a/v1,http://b/v1&seed=7&price=0.1/2")
    assert (card.n, card.decision.utility, card.seed, card.price) == (64, "softf1+scoresim", 7, (0.1, 2.0))
    assert card.server == ("http://a/v1", "http://b/v1")
    assert load_card("mbr-esd-llama?utility=softf1+scoresim").decision.utility == "softf1+scoresim"


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("mbr-esd-lama", "did you mean 'mbr-esd-llama"),
        ("mbr-esd-llama?utilty=softf1", "did you mean 'utility'"),
        ("mbr-esd-llama?utility=softf2", "softf1"),
        ("mbr-esd-llama?n=0", "a whole number from 1"),
        ("mbr-esd-llama?mqm=goog", "mqm=goog: unknown MQM weights 'goog'; did you mean 'google'?"),
        ("mbr-esd-llama?price=1", "two numbers from 0 to 1e+06, such as 0.1/0.5"),
        ("mbr-esd-llama?n", "has no value"),
        ("mbr-esd-llama?rule=mbr-corpus&utility=f1", "utility=f1 has no effect with rule=mbr-corpus"),
        ("mbr-esd-llama&n=3", "starts with ?, not &: mbr-esd-llama?option=value&"),
        ("mbr-esd-llama?n=٣", "must be a whole number"),
        ("mbr-esd-llama?temperature=1_0", "option temperature=1_0: must be a number from 0 to 100"),
        ("mbr-esd-llama?max_cost=1", "max_cost needs the price: add price=PROMPTS/ANSWERS"),
        # A model of the user's.
        ("my-model", "mbr-esd-server?model=my-model&server=URL"),
        ("org/my-model?n=4", "mbr-esd-model?model=org/my-model for a model in process"),
        ("mbr-esd-model?n=4", "mbr-esd-model needs a model: mbr-esd-model?model=HUB_ID"),
        ("my-model?server=http://a:hunter2@h:1/v1", "mbr-esd-server?model=my-model&server=URL"),
        ("mbr-esd-small?lp=english-german", "two language codes such as 'en-de', not 'english-german'"),
        ("mbr-esd-llama?n=1?server=http://alice:hunter2@h:1/v1", "model option n="),
    ],
)
def test_an_error_names_the_nearest_valid_values(name: str, part: str) -> None:
    with pytest.raises(OptionError, match=re.escape(part)) as caught:
        load_card(name)
    assert "\n" not in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_a_model_folder_is_a_card(tmp_path: Path) -> None:
    (tmp_path / "adapter").mkdir()
    (tmp_path / "hparams.yaml").write_text(
        "class_identifier: mbr_esd_metric\nlp: null\nmodel: org/base\nadapter: adapter\nrule: greedy\nn: 1\n"
    )
    card = load_card(f"{tmp_path}?max_tokens=99")
    assert (card.model, card.adapter, card.samples, card.max_tokens) == ("org/base", str(tmp_path / "adapter"), 1, 99)
    assert card.lp is None
    # A list is one of YAML's.
    assert with_options(card, {"server": ["http://a/v1", "http://b/v1"]}).server == ("http://a/v1", "http://b/v1")


def test_a_download_of_the_hub_links_to_its_files(tmp_path: Path) -> None:
    snapshot, blobs = tmp_path / "snapshots" / "abc", tmp_path / "blobs"
    snapshot.mkdir(parents=True)
    blobs.mkdir()
    (blobs / "1").write_text("a prompt")
    (snapshot / "prompt.txt").symlink_to(blobs / "1")
    (snapshot / "hparams.yaml").write_text(
        "class_identifier: mbr_esd_metric\nprompt: prompt.txt\nmodel: /models/base\nadapter: org/adapter\n"
    )
    card = load_card(str(snapshot))
    assert (card.prompt, card.model, card.adapter) == (str((blobs / "1").resolve()), "/models/base", "org/adapter")


@needs_weights
def test_limits_belong_to_the_model_of_a_name() -> None:
    """A name that begins as that of the small model is another one's."""
    small = load_card("mbr-esd-small")
    for name in ("mbr-esd-small", "mbr-esd-small?n=4", model_name(small.engine_options)):
        assert limits([name, None, "mbr-esd-small"]) == [f"mbr-esd-small {small.limits}"]
    assert limits(["small-bert-qe", "small-bert-qe-01234567", "small-01234567", "small", "mbr-esd-llama", None]) == []


def test_a_run_says_once_which_languages_were_not_measured(tmp_path: Path) -> None:
    hparams = "limits: finds numbers\nmeasured: 'en-de: .2 by item; en-zh: .1'\n"
    (tmp_path / "hparams.yaml").write_text(HEAD + hparams)
    card = load_card(f"{tmp_path}?lp=en-fr")
    assert (card.limits, card.measured_pairs) == ("finds numbers", ["en-de", "en-zh"])
    line = f"the quality of {card.title} on en-fr is unknown; it was measured on en-de, en-zh"
    assert card.unmeasured(["en_US-de_AT", "en-fr"]) == line
    assert card.unmeasured(["en-zh-TW"]) is CARDS["mbr-esd-llama"].unmeasured(["en-fr"]) is None
    assert summary(card, None, [], [])[1] == [line]


@pytest.mark.parametrize(
    ("hparams", "error", "part"),
    [
        *((f"{HEAD}{option}: http://elsewhere/v1", InputError, f"?{option}=") for option in PLACES),
        *((f"{HEAD}{line}", InputError, "is not in the folder; copy it there") for line in OUTSIDE),
        (f"{HEAD}measured: 'German: .2'", OptionError, "two language codes such as 'en-de'"),
        (f"{HEAD}utilty: f1", OptionError, "did you mean 'utility'"),
        ('class_identifier: "mbr_esd_metric', InputError, "is not YAML"),
        ("class_identifier: mbr_esd_metric_2", InputError, "class_identifier: mbr_esd_metric"),
        ("", InputError, "it has no hparams.yaml"),
        (
            f"{HEAD}vllm: max_model_len:9,trust_remote_code:true",
            InputError,
            "trust_remote_code:true may only be set by the user",
        ),
        (f"{HEAD}vllm: worker_extension_cls:evil.Code", InputError, "some arguments of vLLM run code"),
        (f"{HEAD}vllm: quantization:--trust-remote-code", InputError, "some arguments of vLLM run code"),
        (f"{HEAD}model: --worker-extension-cls=evil.Code", InputError, "is not in the folder"),
    ],
)
def test_an_error_in_a_folder_names_the_file(
    tmp_path: Path, hparams: str, error: type[Exception], part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A downloaded folder must not say where the user's key and texts go, nor have files of the user's sent there."""
    folder, outside = tmp_path / "model", tmp_path / "secret"
    folder.mkdir()
    outside.write_text("a key")
    (folder / "link").symlink_to(outside)
    monkeypatch.chdir(tmp_path)
    (folder / "hparams.yaml").write_text(hparams.format(outside=outside))
    with pytest.raises(error, match=re.escape(part)) as caught:
        load_card(str(folder))
    assert "hparams.yaml" in str(caught.value)


@needs_weights
def test_the_small_models_weights_are_small_and_its_embeddings_are_known() -> None:
    assert (SMALL / "model.safetensors").stat().st_size < 24e6
    config = json.loads((SMALL / "config.json").read_text(encoding="utf-8"))
    assert config["mbr_esd_metric"]["embeddings"] in EMBEDDED
    assert {"ok", "minor", "major"} <= set(config["label2id"])


@needs_weights
@pytest.mark.model
def test_the_small_model_scores() -> None:
    pytest.importorskip("transformers")
    metric = load_metric("mbr-esd-small?n=4")
    source, good = "The house is big.", "Das Haus ist groß."
    pairs = [
        (source, good),
        (source, "Das Xqz brr Haus bin gegroßt habbel."),
        (source, source),
        (f"{source} Nobody has lived there for twenty years.", good),
        ("", ""),
        (source, " "),
    ]
    prediction = metric.predict([{"src": src, "mt": mt} for src, mt in pairs], progress_bar=False)
    assert (prediction.metadata.valid[:4], prediction.metadata.invalid[:4]) == ([4] * 4, [0] * 4)
    assert "format:tags" in prediction.metadata.signature
    assert all(0 <= score <= 1 for score in prediction.scores)
    assert prediction.scores[0] == max(prediction.scores[:4])
    assert prediction.scores[4:] == [1, 0]
