"""The short form of an answer, in which expectations are written: one line a fact, every one with its place.

Comes in: a document of ``--json`` (``walk``, ``ops`` or ``kernels``). Goes out: text. It keeps what a reader follows
(who calls what, where it stands, what is launched and how) and leaves out what is told about each function on the way.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Document = dict[str, Any]


def spine(document: Document) -> str:
    """The short form, each line ended."""
    kind = "walk" if "implementations" in document else "kernels" if "kernels" in document else "ops"
    lines = {"walk": _walk, "kernels": _kernels, "ops": _ops}[kind](document)
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _place(fact: Document) -> str:
    end = fact.get("end_line")
    return f"{fact['file']}:{fact['line']}" + (f"-{end}" if end is not None and end != fact["line"] else "")


def _under(fact: Document) -> str:
    """The builds and the condition that a fact holds under, where they are known."""
    builds = fact.get("builds")
    words = [f"builds {' '.join(builds) or 'none'}"] if builds is not None else []
    words += [f"if {fact['condition']}"] if fact.get("condition") else []
    return "".join(f"  [{word}]" for word in words)


def _walk(walk: Document) -> Iterator[str]:
    op = walk.get("op")
    if op is None:
        entry = walk["entry"]
        yield f"{entry['kind']:<9} {entry['name']}" + ("" if entry["kind"] == "file" else f" {_place(entry)}")
    else:
        yield f"op        {op['name']}  {op['kind']}"
    for step in walk["python"]:
        called = f" {step['call_line']}" if step["call_line"] not in (None, step["line"]) else ""
        yield f"python    {_place(step)}{called} {step['function']} -> {step['callee']}"
    if op is not None:
        yield f"schema    {op['schema'] or op['signature'] or '-'}"
        for definition in op["defs"]:
            yield f"def       {_place(definition)}{_under(definition)}"
    for implementation in walk["implementations"]:
        yield from _implementation(implementation)
    for fake in op["fake"] if op is not None else ():
        yield f"fake      {_place(fake)} {fake['function']}"
    yield from _gaps(walk)


def _gaps(answer: Document) -> Iterator[str]:
    for gap in answer["gaps"]:
        yield f"gap       {gap['kind']} {_place(gap['span']) if gap['span'] else ''}"


def _implementation(found: Document) -> Iterator[str]:
    registered = found["registered_at"]
    start = f"impl      {found['key'] or '-'} {_place(registered)}" if registered else "path     "
    yield f"{start} {found['certainty']}{_under(found)}"
    host = found["host"]
    if host is not None:
        yield f"  host      {host['name']} {_place(host)}"
    for step in found["dispatch"]:
        yield f"  dispatch  {step['macro']} {_place(step)} on {step['on']}"
        yield f"              {step['binds']} = {' | '.join(step['values'])}"
        if step["defined_at"]:
            yield f"              defined {_place(step['defined_at'])}"
    for launch in found["launches"]:
        yield from _launch(launch)
    for kernel in found["kernels"]:
        yield f"  kernel    {kernel['name']} {_place(kernel)}"
    if found["python"]:
        yield "  end       in Python"
        return
    for end in found["terminals"]:
        yield f"  end       {end['kind']} {end['name']} {_place(end)}"


def _launch(launch: Document) -> Iterator[str]:
    arguments = f"<{', '.join(launch['template_arguments'])}>" if launch["template_arguments"] else ""
    yield f"  launch    {launch['kernel']}{arguments} {_place(launch)} {launch['style']} {launch['certainty']}"
    yield f"              <<<{', '.join(str(launch[part]) for part in ('grid', 'block', 'shared', 'stream'))}>>>"
    if launch["macros"]:
        yield f"              in {' in '.join(reversed(launch['macros']))}, used {_place(launch['used_at'])}"
    if launch["under"]:
        yield f"              if {' and '.join(_steps(launch['under'], 'condition'))}"
    yield f"              via {' > '.join(_steps(launch['path'], 'function'))}"
    count = len(launch["instances"])
    yield f"              {count} instance{'s' * (count != 1)}, {'' if launch['complete'] else 'not '}complete"


def _steps(facts: list[Document], what: str) -> list[str]:
    return [f"{fact[what]}:{fact['line']}" for fact in facts]


def _ops(answer: Document) -> Iterator[str]:
    for op in answer["ops"]:
        yield f"{op['name']}  {op['kind']}  {op['schema'] or op['signature'] or '-'}"
        for definition in op["defs"]:
            yield f"  def   {_place(definition)}{_under(definition)}"
        for implementation in op["impls"]:
            host = f" -> {_place(implementation['host'])}" if implementation["host"] else ""
            name = f"{implementation['key'] or '-'} {implementation['function']}"
            yield f"  impl  {_place(implementation)} {name}{host}{_under(implementation)}"
        for fake in op["fake"]:
            yield f"  fake  {_place(fake)} {fake['function']}"
        for call in op["python"]:
            yield f"  call  {_place(call)} {call['function']}"
    yield from _gaps(answer)


def _kernels(answer: Document) -> Iterator[str]:
    for kernel in answer["kernels"]:
        reach = ", ".join(kernel["ops"]) or "nothing"
        yield f"{kernel['name']}  {_place(kernel)}  from {reach}"
        yield from (f"  <{instance}>" for instance in kernel["instances"] if instance)
        if not kernel["complete"]:
            yield f"  not complete: {kernel['why_incomplete']}"
    yield from _gaps(answer)
