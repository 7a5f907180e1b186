"""A model card: the weights and settings behind a name, and the options that change them."""

from __future__ import annotations

import dataclasses
import math
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeAlias

from mbr_esd_metric.decoding.options import FIELDS, DecisionFields, DecisionOptions
from mbr_esd_metric.errors import OptionError, no_effect_error, unknown
from mbr_esd_metric.generation.engine import ENGINES, NO_MODEL, Engine, EngineOptions, Sampling
from mbr_esd_metric.generation.server.address import shown
from mbr_esd_metric.messages import first_of
from mbr_esd_metric.prompting.formats import get_format
from mbr_esd_metric.prompting.languages import language_code, language_pair

#: Parser of an option's value, which raises ValueError, KeyError or `OptionError`; and a description of valid values.
_Values: TypeAlias = "tuple[Callable[[str], Any], str]"


def _number(kind: type[int | float], low: float, high: float = math.inf) -> _Values:
    def read(text: str) -> float:
        # `int` and `float` also accept underscores (1_0) and digits of other scripts, which are more likely mistakes.
        if "_" in text or not text.isascii() or not low <= kind(text) <= high:
            raise ValueError
        return kind(text)

    whole, last = ("whole ", f"{high}") if kind is int else ("", f"{high:g}")
    return read, f"a {whole}number from {low:g}" + ("" if high == math.inf else f" to {last}")


def _choice(*valid: str) -> _Values:
    def read(text: str) -> str:
        if text not in valid:
            raise unknown("value", text, valid)
        return text

    return read, "one of " + ", ".join(valid)


def _read_engine(text: str) -> str:
    if text != "auto":
        ENGINES.check(text)
    return text


def _read_dialect(text: str) -> str:
    from mbr_esd_metric.generation.server.dialects import get_dialect

    return text if text == "auto" else get_dialect(text).name


def _read_text(text: str) -> str:
    if not text:
        raise ValueError
    return text


def _read_pair(text: str) -> str:
    language_pair(text)
    return text


def _languages(lp: str) -> tuple[str, ...]:
    """A language pair without regions."""
    return tuple(map(language_code, language_pair(lp)))


def _read_list(text: str) -> tuple[str, ...]:
    return tuple(url.strip() for url in text.split(",") if url.strip())


def _read_price(text: str) -> tuple[float, float]:
    prompts, answers = map(_number(float, 0, 1e6)[0], text.split("/"))
    return prompts, answers


def _read_vllm(text: str) -> tuple[str, ...]:
    arguments = tuple(sorted(_read_list(text)))
    for argument in arguments:
        key, _, value = argument.partition(":")
        if not re.fullmatch(r"[a-z][a-z0-9_.]*", key) or not value:
            raise ValueError
        options = {"model": "model=NAME", "revision": "model=NAME@REVISION", "dtype": "dtype=TYPE"}
        if key in options:
            raise OptionError(f"{key} is the option {options[key]}")
    return arguments


_TEXT: _Values = (_read_text, "a non-empty text")
_FLAG: _Values = ({"true": True, "false": False}.__getitem__, "true or false")


def _option(default: Any, values: _Values, meaning: str, *, place: bool = False, short: str = "") -> Any:
    """A field that is an option. A `place` is a path or address that a run accesses; only the user may set it. `short`
    is its name in signatures."""
    about = {"read": values[0], "takes": values[1], "help": meaning, "place": place, "short": short}
    return field(default=default, metadata=about)


#: A hub id and its revision.
_REVISION = re.compile(r"([\w.-]+/[\w.-]+)@([\w./-]+)")
#: Name of the card for any model on the user's server.
ANY_MODEL = "mbr-esd-server"
#: Name of the card for any other model with weights.
LOCAL_MODEL = "mbr-esd-model"


@dataclass(frozen=True)
class ModelCard:
    """All settings of a run. Fields with a help text are options of a model name.

    Attributes:
        name, description: the name as the user wrote it, without options; and one line for `mbr-esd models`.
        memory_gb: size of the weights in bfloat16, in GB (10^9 bytes), the minimum memory of an in-process engine; 0 if
            unknown, or if a service runs the model.
        limits: a phrase after the model's name about what it can and cannot detect; "" if unknown.
        measured: figures of quality by language pair, ``en-de: .23 by item; zh-en: .16``; "" if there are none.
        needs_prompt: whether the model was trained with another prompt than ours, which the user has to provide.
        calibration: file from `mbr-esd calibrate` for recalibrating the confidences; "" for none.
        adapter: folder of a LoRA adapter in a model folder, merged on load.
        device: "auto", or "cpu" to leave GPUs alone.
        decision: the decision options, which are options of a model name too.
    """

    name: str
    description: str = ""
    memory_gb: float = 0.0
    limits: str = ""
    measured: str = ""
    needs_prompt: bool = False
    calibration: str = ""
    adapter: str | None = None
    device: str = "auto"
    model: str = _option("", _TEXT, "hub id (NAME or NAME@REVISION) or folder of the language model")
    engine: str = _option("auto", (_read_engine, "auto, or the name of an engine"), "engine that runs the model")
    n: int = _option(
        256,
        _number(int, 1, 65536),
        "number of candidates per segment",
    )
    decision: DecisionOptions = DecisionOptions()
    temperature: float | None = _option(
        None, _number(float, 0, 100), "sampling temperature; by default 2, or 1 on a server without top-k", short="t"
    )
    top_k: int = _option(10, _number(int, 0), "tokens kept by top-k; 0 keeps all", short="k")
    max_tokens: int = _option(512, _number(int, 1), "maximum length of an answer in tokens", short="max")
    seed: int = _option(0, _number(int, 0, 2**31 - 1), "random seed of the sampling")
    unit: str = _option(
        "segment",
        _choice("segment", "sentence", "auto"),
        "unit of annotation; auto: sentences for paragraphs, otherwise segments",
    )
    join: str = _option(
        "mean",
        _choice("mean", "sum"),
        "score of a segment from those of its sentences; sum: of their penalties, as in MQM scores",
    )
    context: str = _option("segment", _choice("segment", "document"), "context shown to the model around a sentence")
    grounded: bool = _option(False, _FLAG, "constrain error spans to substrings of the translation")
    prompt: str = _option("v1", _TEXT, "version of the built-in prompt, or the path of a template")
    lp: str | None = _option(
        None,
        (_read_pair, "a language pair such as en-de"),
        "language pair of the texts, for prompts that contain it and for data warnings",
    )
    shots: str | None = _option(
        None,
        _TEXT,
        "few-shot examples: JSON lines of annotated translations; FILE:3 uses the three with the most similar sources",
    )
    dtype: str = _option("auto", _choice("auto", "float32", "bfloat16", "float16"), "number format of the weights")
    server: tuple[str, ...] = _option(
        (), (_read_list, "one or several URLs, separated by commas"), "OpenAI-compatible server", place=True
    )
    dialect: str = _option(
        "auto", (_read_dialect, "auto, or the name of a dialect"), "API dialect of the server; auto detects it"
    )
    reasoning_effort: str | None = _option(None, _TEXT, "reasoning effort of a reasoning model, such as low")
    price: tuple[float, float] | None = _option(
        None,
        (_read_price, "two numbers from 0 to 1e+06, such as 0.1/0.5"),
        "price per million tokens: prompts/answers",
    )
    max_cost: float | None = _option(None, _number(float, 0, 1e9), "maximum cost of a run at this price")
    concurrency: int | None = _option(
        None, _number(int, 1), "concurrent requests to servers; with engine=ray, replicas of the model"
    )
    vllm: tuple[str, ...] = _option(
        (),
        (_read_vllm, "KEY:VALUE, such as tensor_parallel_size:4,quantization:fp8"),
        "arguments of vLLM, in process and for mbr-esd serve",
    )
    candidates: str | None = _option(None, _TEXT, "candidates file to use instead of a model", place=True)

    @property
    def title(self) -> str:
        """The name in spans, headings and tables: the card's, or the one of the model that the user specified."""
        if self.name not in (ANY_MODEL, LOCAL_MODEL) or not self.model:
            return self.name
        return Path(self.model).name if Path(self.model).is_absolute() else self.model

    @property
    def names_languages(self) -> bool:
        """Whether the prompt names the languages."""
        return self.engine != NO_MODEL and get_format(self.decision.format).prompt(self.prompt).names_languages

    @property
    def measured_pairs(self) -> list[str]:
        """The language pairs of `measured`."""
        return [part.partition(":")[0].strip() for part in self.measured.split(";") if part.strip()]

    def unmeasured(self, pairs: Iterable[str]) -> str | None:
        """A line about the given language pairs without measured quality; None if there are none, or no pair was
        measured."""
        measured = set(map(_languages, self.measured_pairs))
        others = sorted({pair for pair in pairs if _languages(pair) not in measured}) if measured else []
        return (
            f"the quality of {self.title} on {first_of(others)} is unknown; it was measured on "
            f"{', '.join(self.measured_pairs)}"
            if others
            else None
        )

    @property
    def sampling(self) -> Sampling:
        """The sampling settings; rules for a single candidate use greedy decoding (temperature 0)."""
        if self.decision.rule_instance.candidates == "one" or self.temperature == 0:
            return Sampling(temperature=0.0, top_k=0, max_tokens=self.max_tokens, seed=0)
        temperature = Sampling().temperature if self.temperature is None else self.temperature
        return Sampling(temperature, self.top_k, self.max_tokens, self.seed)

    @property
    def samples(self) -> int:
        """N, the number of candidates per segment; 1 for greedy decoding, because all would be equal."""
        return 1 if self.sampling.greedy else self.n

    def format_problem(self, engine: Engine) -> str | None:
        """Why an engine cannot answer in the card's format; None if it can."""
        form = self.decision.format
        only = get_format(form).engine
        if engine.name == only or (not only and engine.only_format in ("", form)):
            return None
        return f"it does not answer in format={form}; take " + (
            f"engine={only}" if only else f"format={engine.only_format}"
        )

    @property
    def engine_options(self) -> EngineOptions:
        """The options of an engine; `server` defaults to the variable ``MBR_ESD_SERVER``."""
        model, revision = self.model, None
        if (match := _REVISION.fullmatch(model)) and not Path(model).is_dir():
            model, revision = match[1], match[2]
        same = {f.name: getattr(self, f.name) for f in fields(EngineOptions) if hasattr(self, f.name)}
        return EngineOptions(
            **same
            | {
                "model": os.path.expanduser(model),
                "revision": revision,
                "server": self.server or _read_list(os.environ.get("MBR_ESD_SERVER", "")),
                "weights_gb": self.memory_gb,
            }
        )


class ModelFields(DecisionFields, total=False):
    """The options of a model name as arguments of `load_metric`, for type checkers and editors; None leaves one as it
    is."""

    model: str | None
    engine: str | None
    n: int | None
    temperature: float | None
    top_k: int | None
    max_tokens: int | None
    seed: int | None
    unit: str | None
    join: str | None
    context: str | None
    grounded: bool | None
    prompt: str | None
    lp: str | None
    shots: str | None
    dtype: str | None
    server: str | Sequence[str] | None
    dialect: str | None
    reasoning_effort: str | None
    price: str | tuple[float, float] | None
    max_cost: float | None
    concurrency: int | None
    vllm: str | Sequence[str] | None
    candidates: str | None


OPTIONS = {f.name: f for f in fields(ModelCard) if "help" in f.metadata}
#: Fields that describe the model and are not options.
DESCRIBED = ("name", "description", "limits", "measured", "memory_gb", "adapter")


def with_options(card: ModelCard, options: Mapping[str, object]) -> ModelCard:
    """The card with changed options. Raises `OptionError` for an unknown option, an invalid value, or an option without
    effect. Values are texts as in a model name, or typed values. None keeps the card's value; a list replaces values
    separated by commas in a name (for `price`, by a slash)."""
    changes: dict[str, Any] = {}
    decision: dict[str, str] = {}
    for key, value in options.items():
        if key not in OPTIONS and key not in FIELDS:
            raise unknown("model option", key, [*OPTIONS, *FIELDS], "`mbr-esd models NAME`")
        if value is None:
            continue
        if key in FIELDS:
            decision[key] = str(value)
            continue
        between = "/" if key == "price" else ","
        text = between.join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
        try:
            changes[key] = OPTIONS[key].metadata["read"](text.lower() if isinstance(value, bool) else text)
        except (ValueError, KeyError):
            raise OptionError(f"model option {key}={shown(text)}: must be {OPTIONS[key].metadata['takes']}") from None
        except OptionError as error:
            raise OptionError(f"model option {key}: {error}") from None
    if "candidates" in changes and changes.get("engine", "auto") != "auto":
        raise no_effect_error(
            f"engine={changes['engine']}", f"candidates={changes['candidates']}, which are already sampled"
        )
    if {"server", "dialect"} & changes.keys():
        changes.setdefault("engine", "server")
    stored = os.path.expanduser(changes.get("candidates") or "")
    if stored and Path(stored).is_file():  # an invalid path is reported by the run
        from mbr_esd_metric.decoding.file import file_options

        changes["decision"] = file_options(stored, decision, "{}={}".format, card.decision)
    elif decision:
        changes["decision"] = card.decision.changed(decision, "{}={}".format)
    changed = dataclasses.replace(card, **changes)
    if changed.max_cost is not None and changed.price is None:
        raise OptionError("max_cost needs the price: add price=PROMPTS/ANSWERS, per million tokens")
    if changed.join != "mean" and changed.unit == "segment":
        raise OptionError(f"join={changed.join} joins the scores of sentences: add unit=auto or unit=sentence")
    return changed


def settings(card: ModelCard) -> dict[str, object]:
    """The description of a card, and the value of every option of a model name; None for an unknown size."""
    values = {name: getattr(card, name) for name in (*DESCRIBED, *OPTIONS)}
    return values | {"memory_gb": card.memory_gb or None} | {name: str(getattr(card.decision, name)) for name in FIELDS}


def with_pair(card: ModelCard, lp: str | None, *, of_test_set: bool = False) -> ModelCard:
    """The card with this language pair, if given. Raises `OptionError` if it conflicts with the model's name; a test
    set's pair does not override the name's."""
    if of_test_set and card.lp:
        return card
    if lp is not None and card.lp not in (None, lp):
        raise OptionError(f"--lp {lp} conflicts with lp={card.lp} in the model name; remove one of them")
    return card if lp is None else with_options(card, {"lp": lp})
