"""Mutation testing: change one thing in a module, and see whether its tests notice.

    pip install -e ".[mutate]"
    python scripts/mutate.py core elicit decoding metaeval --minutes 30

The mutations are cosmic-ray's: a comparison, a number, a truth value, an arithmetic sign. They are drawn at random, as
many as fit into the time. Each one is tested in a child process that sees the changed source; no file is written. A
mutation that no test notices has *survived*, and is printed as a difference. Not every survivor is a gap: some changes
make no difference. With `--own` only the tests that mirror a module run, so that more mutations fit into the time.
"""

from __future__ import annotations

import argparse
import difflib
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import random
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "mbr_esd_metric"
#: Tests of a folder besides those that mirror it.
ALSO = {"decoding": ("tests/cli/test_decide.py", "tests/core/test_decision.py", "tests/core/test_similarity_golden.py")}
#: cosmic-ray's operators that change what a reader would get wrong, not what no test could miss.
OPERATORS = (
    *("core/NumberReplacer", "core/AddNot", "core/ReplaceAndWithOr", "core/ReplaceOrWithAnd"),
    *("core/ReplaceTrueWithFalse", "core/ReplaceFalseWithTrue", "core/ReplaceUnaryOperator_Delete_Not"),
    *(
        f"core/ReplaceComparisonOperator_{pair}"
        for pair in ("Lt_LtE", "LtE_Lt", "Gt_GtE", "GtE_Gt", "Eq_NotEq", "NotEq_Eq")
    ),
    *(f"core/ReplaceBinaryOperator_{pair}" for pair in ("Add_Sub", "Sub_Add", "Mul_Div", "Div_Mul", "FloorDiv_Div")),
    *("core/ReplaceBreakWithContinue", "core/ReplaceContinueWithBreak"),
)


@dataclass(frozen=True)
class Mutant:
    """One change of one module."""

    path: Path
    source: str

    @property
    def module(self) -> str:
        parts = self.path.relative_to(ROOT).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    def difference(self) -> str:
        before = self.path.read_text(encoding="utf-8").splitlines()
        lines = difflib.unified_diff(
            before, self.source.splitlines(), str(self.path.relative_to(ROOT)), "", lineterm="", n=0
        )
        return "\n".join(line for line in lines if line.strip() not in ("+++", "---"))


class _Changed(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports one module from a changed source."""

    def __init__(self, mutant: Mutant) -> None:
        self.mutant = mutant

    def find_spec(self, name: str, path: object = None, target: object = None) -> importlib.machinery.ModuleSpec | None:
        if name != self.mutant.module:
            return None
        places = [str(self.mutant.path.parent)] if self.mutant.path.stem == "__init__" else None
        return importlib.util.spec_from_file_location(
            name, self.mutant.path, loader=self, submodule_search_locations=places
        )

    def exec_module(self, module: ModuleType) -> None:
        exec(compile(self.mutant.source, str(self.mutant.path), "exec"), module.__dict__)


def mutants(folder: str) -> Iterator[Mutant]:
    """Every mutation of a folder's modules."""
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator

    for path in sorted((PACKAGE / folder).rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        for name in OPERATORS:
            occurrence = 0
            while (changed := mutate_code(source, get_operator(name)(), occurrence)) is not None:
                occurrence += 1
                mutant = Mutant(path, changed)
                if "\n-@dataclass" not in mutant.difference():  # frozen and slots are for speed and for us
                    yield mutant


def tests_of(mutant: Mutant, *, mirrored_only: bool) -> list[str]:
    """The tests of a module: those that mirror it first, then (unless `mirrored_only`) those of its folder."""
    folder, *rest = mutant.path.relative_to(PACKAGE).with_suffix("").parts
    everything = sorted((ROOT / "tests" / folder).rglob("test_*.py"))
    mirrored = [path for path in everything if path.stem.removeprefix("test_").startswith(tuple(rest))]
    if mirrored_only and mirrored:
        return [str(path) for path in mirrored]
    named = [*mirrored, *(path for path in everything if path not in mirrored)]
    return [*(str(path) for path in named), *ALSO.get(folder, ())]


def survives(mutant: Mutant | None, tests: Sequence[str], seconds: float) -> bool:
    """Whether all tests pass in a child process that sees the mutant; one that takes too long has been noticed."""
    child = os.fork()
    if child == 0:
        os.setsid()
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        status = 1
        try:
            if mutant is not None:
                sys.meta_path.insert(0, _Changed(mutant))
            import pytest

            status = int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", *tests]))
        finally:
            os._exit(status)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status) == 0
        time.sleep(0.05)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", help="folders of the package, such as core/rules")
    parser.add_argument("--minutes", type=float, default=30.0, help="of testing, for all of them together (30)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-k", default="", help="as of pytest: which tests")
    parser.add_argument(
        "--own",
        action="store_true",
        help="only the tests that mirror the changed module, where it has any: quick, with more survivors",
    )
    args = parser.parse_args()
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))
    # Once, for all children; the tests' own settings first, as they pin numpy's kernels.
    for name in ("tests.conftest", "hypothesis", "numpy", "pytest", "scipy.optimize"):
        importlib.import_module(name)

    share = 60 * args.minutes / len(args.folders)
    for folder in args.folders:
        drawn = list(mutants(folder))
        random.Random(args.seed).shuffle(drawn)
        chosen = ["-k", args.k] if args.k else []
        # Tests (in any order) -> seconds that they may take, from one run without a mutation.
        limits: dict[frozenset[str], float] = {}
        unmutated = 0.0
        started = time.monotonic()
        tried = survived = 0
        for mutant in drawn:
            if time.monotonic() > started + share + unmutated:
                break
            tests = tests_of(mutant, mirrored_only=args.own)
            same = frozenset(tests)
            if same not in limits:
                before = time.monotonic()
                if not survives(None, [*tests, *chosen], 600):
                    print(f"{folder}: the tests of {mutant.module} fail as they are", flush=True)
                    return 1
                limits[same] = 3 * (time.monotonic() - before) + 10
                unmutated += time.monotonic() - before
            tried += 1
            if survives(mutant, [*tests, *chosen], limits[same]):
                survived += 1
                print(mutant.difference(), flush=True)
        print(f"{folder}: {survived} of {tried} mutations survived ({len(drawn)} are possible)\n", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
