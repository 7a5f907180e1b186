"""Models that people use today, beside those of the paper: one line each.

None of them has been tried in this role here; the paper's have been, by its authors. The lines were held against public
pages in November 2026. Names and contexts of hosted models are those of OpenAI's, Google's and DeepSeek's
documentation, Mistral's those of services that pass it on; its API takes temperatures up to 1.5 (its OpenAPI
description). Hub ids and contexts of the others are those of their model
cards or of pages that quote them. Sizes are those of the files on the hub as repositories list them, with the parts
that read images (bfloat16 where nothing else is said). Services take models away after a year or two; their pages of
deprecations say when.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Judge:
    """A model that can be asked.

    Attributes:
        name: of the card, after ``mbr-esd-``.
        model: hub id, or the name under which a hosted service offers it.
        description: one line.
        memory_gb: of the weights, in GB (10^9 bytes); 0 for a hosted one.
        context: in tokens.
        dialect: of its service, for a hosted one.
        reasoning_effort: for a model that reasons before it answers unless it is told not to ("none").
        temperature: of sampling; the paper's, where the service takes it.
    """

    name: str
    model: str
    description: str
    memory_gb: float
    context: int
    dialect: str = "auto"
    reasoning_effort: str | None = None
    temperature: float = 2.0

    @property
    def hosted(self) -> bool:
        """Whether somebody else runs it."""
        return self.memory_gb == 0

    @property
    def reasons(self) -> bool:
        """Whether it reasons before it answers."""
        return self.reasoning_effort not in (None, "none")


_OPENAI = "openai"

# fmt: off
CATALOGUE = (
    Judge("qwen3.5-2b", "Qwen/Qwen3.5-2B", "Qwen 3.5 2B", 4.5, 262_144),
    Judge("qwen3.5-4b", "Qwen/Qwen3.5-4B", "Qwen 3.5 4B", 9.3, 262_144),
    Judge("qwen3.5-9b", "Qwen/Qwen3.5-9B", "Qwen 3.5 9B", 19.3, 262_144),
    Judge("qwen3.8-27b", "Qwen/Qwen3.8-27B", "Qwen 3.8 27B", 55.6, 262_144),
    Judge("qwen3.6-35b-a3b", "Qwen/Qwen3.6-35B-A3B", "Qwen 3.6 35B, 3B active", 71.9, 262_144),
    Judge("qwen3-14b", "Qwen/Qwen3-14B", "Qwen 3 14B", 29.5, 32_768),
    Judge("qwen3-32b", "Qwen/Qwen3-32B", "Qwen 3 32B", 65.5, 32_768),
    Judge("qwen3-30b-a3b", "Qwen/Qwen3-30B-A3B-Instruct-2507", "Qwen 3 30B, 3B active", 61.1, 262_144),
    Judge("qwen3-235b-a22b", "Qwen/Qwen3-235B-A22B-Instruct-2507", "Qwen 3 235B, 22B active", 470.2, 262_144),
    Judge("qwen2.5-72b", "Qwen/Qwen2.5-72B-Instruct", "Qwen 2.5 72B", 145.4, 32_768),
    Judge("llama3.2-3b", "meta-llama/Llama-3.2-3B-Instruct", "Llama 3.2 3B", 6.4, 131_072),
    Judge("llama3.1-8b", "meta-llama/Llama-3.1-8B-Instruct", "Llama 3.1 8B", 16.1, 131_072),
    Judge("gemma3-4b", "google/gemma-3-4b-it", "Gemma 3 4B", 8.6, 131_072),
    Judge("gemma3-12b", "google/gemma-3-12b-it", "Gemma 3 12B", 24.4, 131_072),
    Judge("gemma3-27b", "google/gemma-3-27b-it", "Gemma 3 27B", 54.9, 131_072),
    Judge("gemma4-12b", "google/gemma-4-12B-it", "Gemma 4 12B", 23.9, 262_144),
    Judge("gemma4-26b-a4b", "google/gemma-4-26B-A4B-it", "Gemma 4 26B, 4B active", 51.6, 262_144),
    Judge("gemma4-31b", "google/gemma-4-31B-it", "Gemma 4 31B", 62.5, 262_144),
    Judge("mistral-nemo", "mistralai/Mistral-Nemo-Instruct-2407", "Mistral Nemo 12B", 24.5, 131_072),
    Judge("mistral-small", "mistralai/Mistral-Small-3.2-24B-Instruct-2506", "Mistral Small 3.2", 48.0, 131_072),
    Judge("phi4-mini", "microsoft/Phi-4-mini-instruct", "Phi 4 mini 3.8B", 7.7, 131_072),
    Judge("gpt-oss-20b", "openai/gpt-oss-20b", "gpt-oss 20B, 4 bits; reasons", 13.8, 131_072, "auto", "low"),
    Judge("gpt-oss-120b", "openai/gpt-oss-120b", "gpt-oss 120B, 4 bits; reasons", 65.3, 131_072, "auto", "low"),
    Judge("gpt-6-luna", "gpt-6-luna", "OpenAI GPT-6 Luna, told not to reason", 0, 1_050_000, _OPENAI, "none"),
    Judge("gpt-6.1-terra", "gpt-6.1-terra", "OpenAI GPT-6.1 Terra; reasons", 0, 1_050_000, _OPENAI, "low"),
    Judge("gpt-4.1", "gpt-4.1", "OpenAI GPT-4.1; OpenAI ends it on 14 January 2027", 0, 1_047_576, _OPENAI),
    Judge("gpt-4.1-mini", "gpt-4.1-mini", "OpenAI GPT-4.1 mini; ends on 14 January 2027", 0, 1_047_576, _OPENAI),
    Judge("gemini-3.8-flash", "gemini-3.8-flash", "Google Gemini 3.8 Flash; reasons", 0, 1_048_576, _OPENAI, "low"),
    Judge("gemini-3.5-flash-lite", "gemini-3.5-flash-lite", "Google Flash-Lite; reasons", 0, 1_048_576, _OPENAI, "low"),
    Judge("deepseek-flash", "deepseek-flash", "DeepSeek V4.1 Flash; reasons", 0, 1_000_000, "plain", "low"),
    Judge("mistral-large-api", "mistral-large-latest", "Mistral Large 3, hosted", 0, 262_144, "plain", None, 1.5),
)
# fmt: on
