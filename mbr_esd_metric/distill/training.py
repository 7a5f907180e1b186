"""What both kinds of training share: the model, the trainer's arguments, helpful errors, resuming, the result."""

from __future__ import annotations

import dataclasses
import json
import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mbr_esd_metric.distill.settings import DpoOptions, SftOptions
from mbr_esd_metric.elicit.prompt import TEMPLATES
from mbr_esd_metric.errors import EngineError, InputError, MissingDependencyError, OptionError
from mbr_esd_metric.files.streams import write_whole
from mbr_esd_metric.generation.embedded import EMBEDDED, embedded_weights
from mbr_esd_metric.generation.engine import EngineOptions
from mbr_esd_metric.generation.model_files import model_name
from mbr_esd_metric.generation.pretrained import bf16_works, quiet_peft
from mbr_esd_metric.generation.threads import wait_passively

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


#: The trainer's log in a result folder: what `mbr-esd distill plot FOLDER` reads.
STATE = "trainer_state.json"
#: Folder of the checkpoints inside a result folder.
CHECKPOINTS = "checkpoints"
#: The settings that a run was started with; next to its checkpoints.
_RUN = "run.json"
#: Options that may change when a run is resumed. They affect how it computes, or the card of the result, but not what
#: the model learns.
_FREE = {
    "per_device",
    "gradient_checkpointing",
    "precompute_reference",
    "max_length",
    "prompt",
    "grounded",
    "max_tokens",
}
#: Alpha of LoRA as a multiple of its rank.
_LORA_SCALE = 2


def need_training_packages() -> None:
    """Raise `MissingDependencyError` for the first package of the extra `train` that is missing."""
    import importlib.util

    for package in ("torch", "transformers", "peft", "datasets", "accelerate", "trl"):
        if importlib.util.find_spec(package) is None:
            raise MissingDependencyError(package, "train", "training")


def load_tokenizer(model: str, revision: str | None = None) -> PreTrainedTokenizerBase:
    """The model's tokenizer, which must have a chat template.

    Raises:
        EngineError: there is none, or it cannot be downloaded.
        InputError: it has no chat template.
    """
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(resolved(model), revision=revision)
    except (OSError, ValueError) as error:
        raise EngineError(f"no tokenizer for {model!r}: {_first_line(error)}") from None
    if not tokenizer.chat_template:
        raise InputError(
            f"the tokenizer of {model!r} has no chat template; take the instruction-tuned version of the model, or set "
            "tokenizer.chat_template and save it with the model"
        )
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def load_trainable(
    model: str,
    *,
    adapter: str | None = None,
    lora_rank: int = 0,
    lora_first_layer: int = 0,
    revision: str | None = None,
    bf16: bool = True,
) -> Any:
    """A causal language model ready to be trained.

    Args:
        model: hub id or folder; the id of the embedded model means its folder.
        adapter: folder of a LoRA adapter that is trained further.
        lora_rank: rank of a new adapter on all linear layers; 0 trains all weights.
        lora_first_layer: layers before this one get no adapter.
        revision: of the hub model.
        bf16: put frozen weights into bfloat16; trained ones stay in float32.

    Raises:
        EngineError: the model cannot be downloaded, or is not a causal language model.
    """
    frozen = adapter is not None or lora_rank > 0
    loaded = load_weights(model, revision=revision, bf16=bf16 and frozen)
    if not frozen:
        return loaded
    from peft import LoraConfig, PeftModel, get_peft_model

    if adapter is not None:
        if not Path(adapter, "adapter_config.json").is_file():
            raise InputError(f"{adapter} is no folder of a LoRA adapter: it has no adapter_config.json")
        with quiet_peft():
            return PeftModel.from_pretrained(loaded, adapter, is_trainable=True)
    import torch

    config = LoraConfig(
        r=lora_rank, lora_alpha=_LORA_SCALE * lora_rank, target_modules="all-linear", task_type="CAUSAL_LM"
    )
    if lora_first_layer:
        # peft takes layers only with the names of the linear modules in them.
        linear = {name.rpartition(".")[2] for name, m in loaded.named_modules() if isinstance(m, torch.nn.Linear)}
        config.target_modules = linear - {"lm_head"}
        layers = loaded.config.get_text_config().num_hidden_layers
        config.layers_to_transform = list(range(lora_first_layer, layers))
    with quiet_peft():
        return get_peft_model(loaded, config)


def load_weights(model: str, *, revision: str | None = None, bf16: bool = True) -> Any:
    """A causal language model as it was saved, in bfloat16 or float32; arguments and errors as `load_trainable`."""
    import torch
    from transformers import AutoModelForCausalLM

    wait_passively()
    # On processors, PyTorch's fused attention is slower than plain products (7.2 s for a training step, against 4.5
    # s).
    attention = {} if torch.cuda.is_available() else {"attn_implementation": "eager"}
    try:
        return AutoModelForCausalLM.from_pretrained(
            resolved(model), revision=revision, dtype=torch.bfloat16 if bf16 else torch.float32, **attention
        )
    except (OSError, ValueError) as error:
        raise EngineError(
            f"{model!r} cannot be loaded as a causal language model: {_first_line(error)} Give the hub id or the "
            "folder of an instruction-tuned, decoder-only model"
        ) from None


def on_device(model: Any) -> Any:
    """A model that is not trained, where the trained one will be."""
    import torch

    if torch.cuda.is_available():
        model.to(torch.device("cuda", torch.cuda.current_device()))
    return model.eval().requires_grad_(False)


def resolved(model: str) -> str:
    """`model`, or the folder of an embedded model where its id is given."""
    return str(embedded_weights(model)) if model in EMBEDDED else model


def has_bf16() -> bool:
    """Whether the device that trains has bfloat16 instructions: the GPU if there is one, otherwise the processor."""
    import torch

    return bf16_works("cuda" if torch.cuda.is_available() else "cpu")


def accumulation(batch_size: int, per_device: int) -> int:
    """Forward passes for each update, given the number of processes (``WORLD_SIZE`` of torchrun and accelerate).

    Raises:
        OptionError: the batch size is not a multiple of one pass.
    """
    processes = int(os.environ.get("WORLD_SIZE", "1"))
    passes, rest = divmod(batch_size, per_device * processes)
    if rest or not passes:
        raise OptionError(
            f"batch_size {batch_size} is no multiple of per_device x processes ({per_device} x {processes}); change one"
        )
    return passes


def trainer_arguments(
    folder: Path, options: SftOptions | DpoOptions, *, bf16: bool, validated: bool, every: int
) -> dict[str, Any]:
    """The arguments of the trainer for both kinds of training.

    Args:
        folder: of the result; checkpoints go to ``checkpoints/`` in it.
        options: of the training.
        bf16: compute in bfloat16.
        validated: whether there are validation data; if so, the checkpoint with the lowest loss on them is kept.
        every: updates between checkpoints, and validations.

    Raises:
        OptionError: as `accumulation`.
    """
    import torch

    on_cpu = not torch.cuda.is_available()
    return {
        "output_dir": str(folder / CHECKPOINTS),
        "per_device_train_batch_size": options.per_device,
        "per_device_eval_batch_size": options.per_device,
        "gradient_accumulation_steps": accumulation(options.batch_size, options.per_device),
        "num_train_epochs": options.epochs,
        "learning_rate": options.learning_rate,
        "lr_scheduler_type": "linear",
        "warmup_steps": options.warmup_steps,
        "weight_decay": options.weight_decay,
        "bf16": bf16,
        "use_cpu": on_cpu,
        "dataloader_pin_memory": not on_cpu,
        "eval_strategy": "steps" if validated else "no",
        "eval_steps": every,
        "save_steps": every,
        "save_total_limit": 2,
        "load_best_model_at_end": validated,
        "metric_for_best_model": "eval_loss" if validated else None,
        "greater_is_better": False,
        "report_to": "none",
        "seed": options.seed,
    }


def last_checkpoint(folder: Path) -> str | None:
    """The newest complete checkpoint in a result folder, to resume from."""
    found = [
        (int(path.name.rpartition("-")[2]), path)
        for path in (folder / CHECKPOINTS).glob("checkpoint-*")
        if (path / "trainer_state.json").is_file()  # written last
    ]
    return str(max(found)[1]) if found else None


def check_same_run(
    folder: Path, options: SftOptions | DpoOptions, model: str, adapter: str | None, **data: str
) -> None:
    """Write down the settings of a run. If there is a checkpoint, check that its run had the same settings.

    Args:
        folder: of the result.
        options: of the training.
        model, adapter: what is trained; folders are compared by their content.
        data: the name and a digest of the training data.

    Raises:
        OptionError: the run began with other settings; the message names the first one.
        InputError: nothing says what the checkpoints began with.
    """
    if os.environ.get("RANK", "0") != "0":  # one process is enough
        return
    run = {name: value for name, value in dataclasses.asdict(options).items() if name not in _FREE}
    run |= {"model": model_name(EngineOptions(model)), **data}
    if adapter is not None:
        run["adapter"] = model_name(EngineOptions(adapter))
    run = json.loads(json.dumps(run))
    path = folder / CHECKPOINTS / _RUN
    if last_checkpoint(folder) is None:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps(run, indent=2) + "\n")
        return
    if not path.is_file():
        raise InputError(f"{path.parent} does not say what its checkpoints began with; give another folder")
    before = json.loads(path.read_text(encoding="utf-8"))
    for name in run | before:
        old, new = before.get(name), run.get(name)
        if old != new:
            raise OptionError(
                f"{folder} holds a run with {name} {old!r}, not {new!r}; give what it began with to go on, or another "
                "folder to begin anew"
            )


@contextmanager
def training_errors(memory_fix: str) -> Iterator[None]:
    """Turn running out of memory into an error that says what to lower."""
    import torch

    try:
        yield
    except torch.OutOfMemoryError as error:
        raise EngineError(f"out of memory while training ({_first_line(error)}): {memory_fix}") from None
    except RuntimeError as error:
        if "can't allocate memory" not in str(error) and "out of memory" not in str(error):
            raise
        raise EngineError(f"out of memory while training ({_first_line(error)}): {memory_fix}") from None


def quiet_libraries() -> None:
    """Hide warnings of the libraries that do not concern the user. Errors still show."""
    for name in ("transformers", "peft", "trl", "accelerate", "datasets"):
        logging.getLogger(name).setLevel(logging.ERROR)


def finish(
    trainer: Any, tokenizer: PreTrainedTokenizerBase, folder: Path, base: str, card: Mapping[str, Any], counted: str
) -> dict[str, float]:
    """Write the log and the result of a finished training. Every process must call it; one of them writes.

    Args:
        trainer: has trained.
        tokenizer, folder, base, card: as `save_result`.
        counted: the name of the training data in the figures.

    Returns:
        Figures of the run, those of updates, losses and reward margins as far as they were logged; none in the other
        processes.
    """
    # With ZeRO-3 every process holds a part of the weights, so all processes must take part in gathering them.
    weights = trainer.accelerator.get_state_dict(trainer.deepspeed) if trainer.is_deepspeed_enabled else None
    if not trainer.is_world_process_zero():
        return {}
    trainer.state.save_to_json(str(folder / STATE))
    save_result(trainer.model, tokenizer, folder, base, card, weights)
    figures = {counted: float(len(trainer.train_dataset)), "updates": float(trainer.state.global_step)}
    logged = [entry for entry in trainer.state.log_history if "loss" in entry]
    if logged:
        figures |= {"first_loss": logged[0]["loss"], "last_loss": logged[-1]["loss"]}
        if "rewards/margins" in logged[-1]:
            figures["last_margin"] = logged[-1]["rewards/margins"]
    if trainer.state.best_metric is not None:
        figures["validation_loss"] = trainer.state.best_metric
    return figures


def save_result(
    model: Any,
    tokenizer: PreTrainedTokenizerBase,
    folder: Path,
    base: str,
    card: Mapping[str, Any],
    gathered: Mapping[str, Any] | None = None,
) -> None:
    """Write a folder for ``comet-score --model FOLDER``.

    A LoRA adapter goes to ``adapter/`` in bfloat16 and the base model is named in ``hparams.yaml`` (it is merged when
    loaded); without one the whole model is written.

    Args:
        model: what was trained.
        tokenizer: saved beside a whole model.
        folder: exists.
        base: the base model's hub id or folder.
        card: the other options of the model card, such as decision and prompt.
        gathered: the state of `model`, if this process does not hold all of it.
    """
    import torch
    import yaml

    from mbr_esd_metric.metric.model_folder import CLASS_IDENTIFIER

    hparams: dict[str, Any] = {"class_identifier": CLASS_IDENTIFIER}
    if hasattr(model, "peft_config"):
        from peft import get_peft_model_state_dict

        weights = get_peft_model_state_dict(model, state_dict=gathered, adapter_name="default")
        model.save_pretrained(str(folder / "adapter"), selected_adapters=["default"], state_dict=gathered)
        _rewrite_adapter(folder / "adapter", {name: value.to(torch.bfloat16) for name, value in weights.items()})
        hparams |= {"model": base, "adapter": "adapter"}
    else:
        state = gathered and {name: value.to(torch.bfloat16) for name, value in gathered.items()}
        model.to(torch.bfloat16).save_pretrained(str(folder), state_dict=state)
        tokenizer.save_pretrained(str(folder))
    hparams |= dict(card)
    prompt = Path(str(hparams.get("prompt", ""))).expanduser()
    if hparams.get("prompt") not in TEMPLATES and prompt.is_file():  # a folder names nothing outside itself
        (folder / "prompt.txt").write_bytes(prompt.read_bytes())
        hparams["prompt"] = "prompt.txt"
    (folder / "hparams.yaml").write_text(yaml.safe_dump(hparams, sort_keys=False), encoding="utf-8")


def _rewrite_adapter(folder: Path, weights: Mapping[str, Any]) -> None:
    """Write the adapter's weights in bfloat16, and its configuration without defaults.

    Then it holds no path of this machine, and other versions of peft, which know other options, read it without
    warnings.
    """
    from safetensors.torch import save_file

    path = folder / "adapter_model.safetensors"
    save_file({n: w.contiguous().cpu() for n, w in weights.items()}, path)
    path.chmod(0o644)
    config_path = folder / "adapter_config.json"
    config = json.loads(config_path.read_text(encoding="utf-8"))
    config = {key: value for key, value in config.items() if value and key != "base_model_name_or_path"}
    config["target_modules"] = sorted(config["target_modules"])
    config_path.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    (folder / "README.md").unlink(missing_ok=True)  # peft's template; the model card is the folder's own


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".") + "."
