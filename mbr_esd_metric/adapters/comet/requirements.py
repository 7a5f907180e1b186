"""Which of COMET's own requirements the installed packages do not meet."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, requires, version

#: COMET's name on the package index.
COMET = "unbabel-comet"


def unmet() -> list[str]:
    """What COMET asks for and is not so, such as ``numpy 2.4.6 (it asks for <2.0.0,>=1.20.0)``, in its own order.

    COMET 2.2.7 asks for narrower versions than its code needs, so that it works beside others (``docs/comet.md``).
    Empty where COMET is not installed, or is installed as it asks.
    """
    try:
        lines = requires(COMET) or []
        from packaging.requirements import Requirement  # comes with COMET
    except ImportError:  # PackageNotFoundError is one
        return []
    found = []
    for wanted in map(Requirement, lines):
        if wanted.marker is not None and not wanted.marker.evaluate({"extra": ""}):
            continue
        try:
            installed = version(wanted.name)
        except PackageNotFoundError:
            found.append(f"no {wanted.name} (it asks for {wanted.specifier})")
            continue
        if not wanted.specifier.contains(installed, prereleases=True):
            found.append(f"{wanted.name} {installed} (it asks for {wanted.specifier})")
    return found


def remark() -> str | None:
    """A line for people about `unmet`, or None where there is nothing to say."""
    found = unmet()
    if not found:
        return None
    return (
        f"{COMET} {version(COMET)} is installed against its requirements, beside {', '.join(found)}. In our tests it "
        "works so with the versions of scripts/constraints-new.txt (docs/comet.md says what to know). On Python 3.10 "
        'to 3.12, pip install "mbr-esd-metric[comet]" installs it as it asks'
    )
