"""Package names and versions: ``NAME==VERSION`` taken apart, and spelt in one way.

In: what a user typed or a file is called. Out: normalised strings that can be compared and used as folder names. It
orders no versions. Written here because ``packaging`` costs 5 to 10 ms to import and opening a source that lies in the
cache must not.
"""

from __future__ import annotations

import re

from opwalker.notation.regex import Regex

_SPEC = Regex(r"([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*==\s*([A-Za-z0-9][A-Za-z0-9._!+-]*)")

#: What people write instead of ``NAME==VERSION``.
_MEANT = Regex(
    r"([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*(?:\[[^\]]*\])?\s*(?:={1,3}|~=|>=|<=|!=|>|<|@|:|\s|-(?=\d))"
    r"\s*v?(\d[A-Za-z0-9.!+-]*)"
)
_NAME = Regex(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")

_VERSION = Regex(
    r"v?(?:(?P<epoch>\d+)!)?(?P<release>\d+(?:\.\d+)*)"
    r"(?:[-_.]?(?P<pre>alpha|beta|preview|pre|rc|a|b|c)[-_.]?(?P<pre_n>\d*))?"
    r"(?:-(?P<post_bare>\d+)|[-_.]?(?P<post>post|rev|r)[-_.]?(?P<post_n>\d*))?"
    r"(?:[-_.]?(?P<dev>dev)[-_.]?(?P<dev_n>\d*))?"
    r"(?:\+(?P<local>[a-z0-9]+(?:[-_.][a-z0-9]+)*))?"
)
_PRE = {"alpha": "a", "beta": "b", "c": "rc", "pre": "rc", "preview": "rc"}

_ARCHIVE_STEM = Regex(r"(?P<name>.+?)-v?(?P<version>\d[A-Za-z0-9_.!+]*)$")


def normalise_name(name: str) -> str:
    """The name as an index compares it: lower case, runs of ``-``, ``_`` and ``.`` as one ``-``."""
    return re.sub(r"[-_.]+", "-", name).lower()


def canonical_version(version: str) -> str:
    """One spelling for equal versions: ``v1.0.0-RC1`` gives ``1rc1``. Any other text comes back in lower case."""
    text = version.strip().lower()
    match = _VERSION.fullmatch(text)
    if match is None:
        return text
    part = match.groupdict()
    release = [str(int(number)) for number in part["release"].split(".")]
    while len(release) > 1 and release[-1] == "0":
        release.pop()
    out = ".".join(release)
    if part["epoch"] and int(part["epoch"]):
        out = f"{int(part['epoch'])}!{out}"
    if part["pre"]:
        out += f"{_PRE.get(part['pre'], part['pre'])}{int(part['pre_n'] or 0)}"
    if part["post_bare"] or part["post"]:
        out += f".post{int(part['post_bare'] or part['post_n'] or 0)}"
    if part["dev"]:
        out += f".dev{int(part['dev_n'] or 0)}"
    if part["local"]:
        pieces = re.split(r"[-_.]", part["local"])
        out += "+" + ".".join(str(int(piece)) if piece.isdigit() else piece for piece in pieces)
    return out


def parse_spec(text: str) -> tuple[str, str] | None:
    """``(normalised name, version as written)`` of ``NAME==VERSION``; None when ``text`` has another form."""
    match = _SPEC.fullmatch(text.strip())
    return (normalise_name(match[1]), match[2]) if match else None


def meant_spec(text: str) -> str | None:
    """The ``NAME==VERSION`` that ``text`` seems to mean (``vllm=0.30.0``, ``vllm>=0.30``), ``NAME==VERSION`` with
    the literal word for a bare name, or None when it looks like neither."""
    text = text.strip()
    match = _MEANT.fullmatch(text)
    if match:
        return f"{match[1]}=={match[2].rstrip('.')}"
    return f"{text}==VERSION" if _NAME.fullmatch(text) else None


def split_stem(stem: str) -> tuple[str, str | None]:
    """``(name, version)`` of a file or folder called ``name-1.2.3``; version None when there is none to see."""
    match = _ARCHIVE_STEM.fullmatch(stem)
    return (match["name"], match["version"]) if match else (stem, None)
