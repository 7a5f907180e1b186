"""The command of `mbr-esd serve`, and the names under which models are served."""

from __future__ import annotations

import pytest

from mbr_esd_metric.cli.serve import answer_flags, serve_command
from mbr_esd_metric.errors import MissingDependencyError, OptionError
from mbr_esd_metric.generation.engine import EngineOptions
from mbr_esd_metric.generation.engines import vllm
from mbr_esd_metric.generation.engines.server import ServerEngine
from mbr_esd_metric.generation.engines.vllm import VllmEngine
from mbr_esd_metric.metric.cards import load_card
from tests.helpers.command import Command

NAME = "mbr-esd-llama?vllm=max_num_seqs:512,kv_cache_dtype:fp8"


@pytest.fixture
def gpu_build(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mbr_esd_metric.cli.serve.require", lambda *_: None)
    monkeypatch.setattr(vllm, "is_cpu_build", lambda: False)


def test_serve_needs_vllm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingDependencyError, match=r"mbr-esd serve .*needs the package 'vllm'.*pip install"):
        serve_command("mbr-esd-llama", "127.0.0.1", 8000)
    with pytest.raises(OptionError, match="engine=vllm: .*format=tags; take engine=tagger"):
        serve_command("mbr-esd-small", "127.0.0.1", 8000)


def test_flags_of_a_server(gpu_build: None, monkeypatch: pytest.MonkeyPatch) -> None:
    flags = vllm.server_flags(EngineOptions(model="org/m", revision="r1", vllm=("tensor_parallel_size:4",)))
    assert " ".join(flags) == (
        "--revision r1 --dtype auto --max-model-len 4096 --enable-prefix-caching "
        "--structured-outputs-config.backend guidance --generation-config vllm --tensor-parallel-size 4"
    )
    monkeypatch.setattr(vllm, "is_cpu_build", lambda: True)
    assert "--no-enable-chunked-prefill" in vllm.server_flags(EngineOptions(model="org/m"))


def test_the_command_becomes_the_server(gpu_build: None, mbr_esd: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[list[str]] = []

    def become(path: str, command: list[str], environment: object) -> None:
        started.append(command)
        raise KeyboardInterrupt

    monkeypatch.setattr("os.execve", become)
    printed = mbr_esd("serve mbr-esd-llama --port 9 -q fp8 --api-key s3cret t0ken --api-key=s3cret", status=130)
    assert started[0][-6:] == ["-q", "fp8", "--api-key", "s3cret", "t0ken", "--api-key=s3cret"]
    assert printed.out == "once the server is ready: export MBR_ESD_SERVER=http://127.0.0.1:9/v1\n"
    assert "to use this server, add to the model name: vllm=quantization:fp8" in printed.err
    assert "s3cret" not in printed.err


def test_the_checks_alone_are_no_model_to_serve() -> None:
    with pytest.raises(OptionError, match="mbr-esd-checks runs no model, so there is nothing to serve"):
        serve_command("mbr-esd-checks", "127.0.0.1", 8000)


def test_arguments_of_vllm_are_flags_of_its_command(gpu_build: None) -> None:
    command = " ".join(serve_command(NAME, "127.0.0.1", 8000)[1:])
    assert command.startswith("-m vllm.entrypoints.cli.main serve ")
    assert "--kv-cache-dtype fp8 --max-num-seqs 512" in command
    with pytest.raises(OptionError, match="revision is the option model=NAME@REVISION"):
        load_card("mbr-esd-llama?vllm=revision:v2")


def test_what_changes_candidates_is_in_the_served_name_and_in_the_keys(gpu_build: None) -> None:
    def served(name: str, *flags: str) -> str:
        command = serve_command(name, "127.0.0.1", 8000, flags)
        assert command[len(command) - len(flags) :] == list(flags)
        return command[command.index("--served-model-name") + 1]

    plain, fp8 = served("mbr-esd-llama"), served(NAME)
    assert plain == served("mbr-esd-llama", "--max-num-seqs", "512", "--api-key", "k")
    assert fp8 == f"{plain}@kv_cache_dtype:fp8" == served("mbr-esd-llama", "--kv-cache-dtype=fp8")
    both = served("mbr-esd-llama?vllm=kv_cache_dtype:fp8", "-q", "fp8")
    assert both == f"{plain}@kv_cache_dtype:fp8,quantization:fp8"
    flags = answer_flags(["--calculate-kv-scales", "--quantization", "fp8"])
    assert flags == ("calculate_kv_scales:true", "quantization:fp8")
    request = load_card(f"{NAME}&server=http://127.0.0.1:1/v1&dialect=vllm").engine_options
    assert ServerEngine(request).identity["model"] == fp8
    alone = load_card(NAME).engine_options
    assert VllmEngine(alone).identity["vllm"] == "kv_cache_dtype:fp8"
    assert "vllm" not in VllmEngine(load_card("mbr-esd-llama?vllm=max_num_seqs:1").engine_options).identity
