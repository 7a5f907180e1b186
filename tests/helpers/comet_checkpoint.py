"""Makes COMET checkpoints with random weights: the real classes, saved by Lightning as COMET's training saves one.

``comet-score --model FOLDER/checkpoints/model.ckpt`` runs one in seconds, without a download. Weights and vocabulary
come from their names alone, so that every version of torch, transformers and tokenizers makes the same model.
"""

from __future__ import annotations

import re
import zlib
from pathlib import Path
from typing import Any

SENTENCES = (
    "The committee will publish its findings at the end of the month.",
    "Der Ausschuss wird seine Ergebnisse am Ende des Monats veröffentlichen.",
    "She asked whether the museum was open on public holidays.",
    "Sie fragte, ob das Museum an Feiertagen geöffnet sei.",
    "Prices rose by 2.5 percent, more than most analysts had expected.",
    "Die Preise stiegen um 2,5 Prozent, mehr als die meisten Analysten erwartet hatten.",
    "Please read the instructions carefully before you start the engine!",
    "Bitte lesen Sie die Anleitung sorgfältig, bevor Sie den Motor starten!",
)


def make_checkpoint(folder: str | Path, kind: str = "xcomet") -> Path:
    """Write ``folder/checkpoints/model.ckpt``, ``folder/hparams.yaml`` and ``folder/encoder``; returns the checkpoint.

    Args:
        folder: made where it is not there; must stay where it is, as the checkpoint names its encoder's folder.
        kind: "regression" (reads a reference, as wmt22-comet-da), "unified" (none, as CometKiwi) or "xcomet".
    """
    import pytorch_lightning as ptl
    import yaml
    from comet.models import RegressionMetric, UnifiedMetric, XCOMETMetric
    from transformers import XLMRobertaConfig, XLMRobertaXLConfig

    folder = Path(folder).resolve()
    encoder = folder / "encoder"
    encoder.mkdir(parents=True, exist_ok=True)
    tokenizer = _tokenizer()
    tokenizer.save_pretrained(encoder)
    config = XLMRobertaXLConfig if kind == "xcomet" else XLMRobertaConfig
    config(
        vocab_size=len(tokenizer),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=514,
        layer_norm_eps=1e-5,
    ).save_pretrained(encoder)

    options = {"pretrained_model": str(encoder), "hidden_sizes": [16, 8], "load_pretrained_weights": False}
    model: Any = {
        "regression": lambda: RegressionMetric(**options, layer="mix"),
        "unified": lambda: UnifiedMetric(**options, word_layer=2, input_segments=["mt", "src"]),
        "xcomet": lambda: XCOMETMetric(**options, word_layer=2),
    }[kind]()
    _fill(model)
    trainer = ptl.Trainer(accelerator="cpu", logger=False, enable_checkpointing=False)
    trainer.strategy.connect(model)
    checkpoint = folder / "checkpoints" / "model.ckpt"
    trainer.save_checkpoint(checkpoint, weights_only=True)
    hparams = {**model.hparams, "class_identifier": f"{kind}_metric"}
    (folder / "hparams.yaml").write_text(yaml.safe_dump(hparams), encoding="utf-8")
    return checkpoint


def _tokenizer() -> Any:
    """XLM-R's tokenizer with the words and the characters of `SENTENCES` as its vocabulary."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
    from transformers import XLMRobertaTokenizerFast

    text = " ".join(SENTENCES)
    words = sorted({f"▁{word}" for word in re.findall(r"\w+", text) if len(word) > 1})
    pieces = ["<s>", "<pad>", "</s>", "<unk>", "▁", *words, *sorted(set(text) - {" "}), "<mask>"]
    tokenizer = Tokenizer(models.Unigram([(piece, -1.0 - len(piece) / 100) for piece in pieces], unk_id=3))
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    return XLMRobertaTokenizerFast(tokenizer_object=tokenizer)


def _fill(model: Any) -> None:
    """Weights from a generator of their own each: normal around the value that a layer starts with, 0 or 1."""
    import torch

    with torch.no_grad():
        for name, weights in model.named_parameters():
            generator = torch.Generator().manual_seed(zlib.crc32(f"10 {name}".encode()))
            centre = 1.0 if "norm" in name.lower() and name.endswith("weight") else 0.0
            # Most by the tokens themselves, and wide tags, so that spans vary in severity and confidence.
            wide = "word_embeddings" in name or name.startswith("hidden2tag")
            spread = 0.02 if name.endswith("bias") else 1.5 if wide else 0.3
            if weights.is_floating_point():
                weights.copy_(centre + spread * torch.randn(weights.shape, generator=generator))
