"""GEMBA-MQM's own question, from the user's installation of the package `gemba`.

Its wording is not ours to ship (CC BY-SA). It is taken from the package's source, which is read and not run: importing
it would start a debugger's and a service's libraries.
"""

from __future__ import annotations

import ast
import hashlib
from importlib.util import find_spec
from pathlib import Path

from mbr_esd_metric.elicit.prompt import Prompt
from mbr_esd_metric.errors import InputError, MissingDependencyError

#: The module with the question, and what is read in it.
_MODULE, _FUNCTION, _EXAMPLES, _USED = "gemba_mqm_utils.py", "mqm_fewshot", "few_shots", "TEMPLATE_GEMBA_MQM"


def gemba_mqm_prompt() -> Prompt:
    """The question of GEMBA-MQM: its system message and its three examples as earlier turns, then its template.

    Raises:
        MissingDependencyError: the package is not installed.
        InputError: this version of the package has the question in another form.
    """
    spec = find_spec("gemba")
    if spec is None or spec.origin is None:
        raise MissingDependencyError("gemba", "gemba", "prompt=gemba-mqm")
    path = Path(spec.origin).with_name(_MODULE)
    try:
        text = path.read_text(encoding="utf-8")
        system, template, examples = _read(ast.parse(text))
        turns = [("system", system)]
        for example in examples:
            # As the package does it: Python's own formatting of its own template.
            turns += [("user", template.format(**example)), ("assistant", example["answer"])]
    except (OSError, SyntaxError, ValueError, KeyError, StopIteration, AttributeError) as error:
        raise InputError(
            f"{path} has GEMBA's question in a form unknown here ({type(error).__name__}); install gemba 0.1.3"
        ) from None
    digest = hashlib.sha256(repr((turns, template)).encode()).hexdigest()[:8]
    return Prompt(f"gemba-mqm:{digest}", template, tuple(turns))


def _read(module: ast.Module) -> tuple[str, str, list[dict[str, str]]]:
    """System message, template of a question, and the examples in their order."""
    function = next(node for node in module.body if isinstance(node, ast.FunctionDef) and node.name == _FUNCTION)
    system, template = "", ""
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "template":
            template = _constant(node.value)
        elif isinstance(node, ast.Dict):
            said = dict(zip((_constant(key) for key in node.keys if key is not None), node.values, strict=True))
            role = said.get("role")
            if isinstance(role, ast.Constant) and role.value == "system":
                system = _constant(said["content"])
    values = {
        node.targets[0].id: node.value
        for node in module.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    every: dict[str, dict[str, str]] = ast.literal_eval(values[_EXAMPLES])
    used = [node.slice for node in ast.walk(values[_USED]) if isinstance(node, ast.Subscript)]
    if not system or not template or not used:
        raise ValueError
    return system, template, [every[_constant(name)] for name in used]


def _constant(node: ast.AST) -> str:
    """A text of the source, also one that is marked as a format and has nothing to fill in."""
    parts = node.values if isinstance(node, ast.JoinedStr) else [node]
    return "".join(str(ast.literal_eval(part)) for part in parts)
