"""A tokenizer made on the spot: real classes, trained on a few lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

TEXTS = [
    '{"errors": [{"error_span": "die Größe der Straße", "category": "accuracy", "sub_category": "mistranslation", '
    '"severity": "major"}, {"error_span": "又好又快", "category": "fluency", "severity": "minor"}]}',
    "Mark the errors in the translation below. The quick brown fox jumps over the lazy dog. Über süße Äpfel 😀 翻訳",
]
TEMPLATE = (
    "{% for message in messages %}<|user|>{{ message['content'] }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|model|>{% endif %}"
)
WIDTH = 512  # logits of the models: more than the tokenizer has tokens, as in many published models


def byte_level_tokenizer(texts: Sequence[str] = TEXTS, size: int = 400) -> Any:
    """A byte-level BPE tokenizer of about so many tokens with a chat template, trained on these texts."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        min_frequency=1,
        show_progress=False,
        special_tokens=["<|end|>", "<|user|>", "<|model|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|end|>", chat_template=TEMPLATE)
