"""Inline PTX decoded: each instruction's kind, memory order, scope, space, width, and all of it in words.

In: the template of an ``asm`` statement. Out: ``Instruction`` values, in order. An instruction is read by its parts, as
the instruction set is made: opcode, then modifiers that say order, scope, space, vector and type, in any order that is
written; no list of whole instructions is kept. What is not known is returned with ``what`` None.
"""

from __future__ import annotations

import re
from functools import lru_cache

from opwalker.model.assembly import Instruction
from opwalker.notation.ptx_words import (
    AMD,
    ARITHMETIC,
    HINTS,
    OPCODES,
    OPERATIONS,
    ORDER_WORDS,
    ORDERS,
    SCOPE_WORDS,
    SCOPES,
    SPACE_WORDS,
    SPACES,
    TYPES,
    VECTORS,
)
from opwalker.notation.regex import Regex

_COMMENT = Regex(r"//[^\n]*|/\*[\s\S]*?\*/")
_LABEL = Regex(r"\s*[$%\w]+(?:%=)?\s*:(?!:)")
_PREDICATE = Regex(r"@\s*(!?\s*[%\w]+|!?\s*%\[\w+\])\s*")
_NAME = Regex(r"[A-Za-z]\w*(?:::\w+)*(?:\.[A-Za-z0-9_]\w*(?:::\w+)*)*")
_SHAPE = Regex(r"m\d+n\d+k\d+\Z|\d+x\d+b\Z|\d+x\d+bx\d+\Z|m\d+n\d+\Z")
_REPEAT = Regex(r"x\d+\Z")
#: Instructions that touch memory: their order and scope have defaults.
_MEMORY = frozenset(("ld", "ldu", "st", "atom", "red"))
#: Barriers whose wait is an acquire and whose arrival is a release, in the scope of the block, where nothing is said.
_DEFAULTS = {
    "mbarrier.arrive": ("release", "block"), "mbarrier.arrive_drop": ("release", "block"),
    "mbarrier.test_wait": ("acquire", "block"), "mbarrier.try_wait": ("acquire", "block"),
    "barrier.cluster.arrive": ("release", "cluster"), "barrier.cluster.wait": ("acquire", "cluster"),
}  # fmt: skip


def decode(template: str) -> tuple[Instruction, ...]:
    """The instructions of an assembly template, in order; directives, labels, braces and comments are left out."""
    out: list[Instruction] = []
    for piece in re.split(r"[;{}]" if ";" in template else r"[{}\n]", _shielded(template)):
        text = " ".join(piece.replace("\x01", "{").replace("\x02", "}").split())
        while label := _LABEL.match(text):
            text = text[label.end() :].lstrip()
        if text and not text.startswith("."):
            made = decode_one(text)
            if made is not None:
                out.append(made)
    return tuple(out)


def _shielded(template: str) -> str:
    """The template without comments, the braces of operand lists (``{%0, %1}``) told apart from those of blocks."""
    text = _COMMENT.sub(" ", template)
    return re.sub(
        r"\{([^{};]*)\}", lambda m: f"\x01{' '.join(m[1].split())}\x02" if _is_operand_list(m[1]) else m[0], text
    )


def _is_operand_list(inside: str) -> bool:
    return bool(re.fullmatch(r"\s*(?:%?[\w%\[\]$-]+\s*,?\s*)+", inside)) and not re.search(r"[a-z]\w*\.[a-z]", inside)


@lru_cache(maxsize=4096)
def decode_one(text: str) -> Instruction | None:
    """One instruction (``"@p st.release.sys.global.u32 [%1], %0"``); None where the text is none."""
    predicate = _PREDICATE.match(text)
    rest = text[predicate.end() :] if predicate else text
    name = _NAME.match(rest)
    if name is None:
        return None
    parts = name.group().split(".")
    opcode, taken = _opcode(parts)
    modifiers = parts[taken:]
    operands = _operands(rest[name.end() :])
    what, phrase = OPCODES.get(opcode) or _plain(parts[0])
    order, scope = _order(opcode, modifiers)
    space = _space(opcode, modifiers, what)
    operation = next((m for m in modifiers if m in OPERATIONS), None) if what in _OPERATING else None
    width = _bytes(opcode, modifiers, operands)
    means = "" if what is None else _sentence(opcode, phrase, modifiers, order, scope, space, width, operation)
    return Instruction(
        text=text,
        opcode=opcode,
        what=what,
        order=order,
        scope=scope,
        space=space,
        bytes=width,
        means=means,
        operation=operation,
        address=next((o.strip("[] ") for o in operands if o.startswith("[")), None),
        predicate="".join(predicate.group(1).split()) if predicate else None,
    )


_OPERATING = frozenset(
    (
        "atomic", "reduction", "async reduction", "multicast reduction", "multicast load-reduce", "warp reduction",
        "bulk reduction", "tensor reduction", "multicast copy",
    )
)  # fmt: skip


def _opcode(parts: list[str]) -> tuple[str, int]:
    """The longest known name that an instruction begins with, and how many of its parts it takes."""
    for count in range(min(len(parts), 6), 0, -1):
        name = ".".join(parts[:count])
        if name in OPCODES:
            return name, count
    return parts[0], 1


def _plain(opcode: str) -> tuple[str | None, str]:
    kind = ARITHMETIC.get(opcode)
    if kind is not None:
        return kind, kind
    return next(((what, phrase) for begin, what, phrase in AMD if opcode.startswith(begin)), (None, ""))


def _order(opcode: str, modifiers: list[str]) -> tuple[str | None, str | None]:
    order = next((m for m in modifiers if m in ORDERS), None)
    scope = next((SCOPES[m] for m in modifiers if m in SCOPES), None)
    first = opcode.split(".")[0]
    if first == "membar" and opcode == "membar":
        return "sc", scope
    if opcode == "fence":
        return order or "acq_rel", scope
    if opcode in _DEFAULTS:
        default_order, default_scope = _DEFAULTS[opcode]
        return order or default_order, scope or default_scope
    if opcode == "fence.mbarrier_init":
        return order or "release", scope or "cluster"
    if first in _MEMORY:
        atomic = first in ("atom", "red")
        order = order or ("relaxed" if atomic else "weak")
        if order == "volatile":
            # As strong as relaxed at system scope; the compiler may not leave it out.
            return order, scope or "system"
        if order == "weak":
            return order, None
        return order, scope or ("gpu" if atomic or order != "mmio" else "system")
    return order, scope


def _space(opcode: str, modifiers: list[str], what: str | None) -> str | None:
    named = [m for m in modifiers if m in SPACES]
    if named:
        return " <- ".join(named) if opcode.startswith(("cp.", "multimem.cp")) and len(named) > 1 else named[0]
    if opcode.split(".")[0] in _MEMORY and what is not None:
        return "generic"
    if opcode in ("ldmatrix", "stmatrix"):
        return "shared"
    return None


def _bytes(opcode: str, modifiers: list[str], operands: list[str]) -> int | None:
    """What one thread moves, for loads, stores, atomics, and copies whose size is a number."""
    first = opcode.split(".")[0]
    if opcode == "cp.async":
        size = operands[2] if len(operands) > 2 else ""
        return int(size) if size.isdigit() else None
    if first not in (*_MEMORY, "multimem"):
        return None
    bits = next((TYPES[m] for m in reversed(modifiers) if m in TYPES), None)
    count = next((VECTORS[m] for m in modifiers if m in VECTORS), 1)
    return bits * count // 8 if bits else None


def _operands(text: str) -> list[str]:
    """The operands, cut at the commas outside brackets and braces."""
    out: list[str] = []
    depth = start = 0
    for at, char in enumerate(text):
        depth += (char in "[{(") - (char in "]})")
        if char == "," and depth == 0:
            out.append(text[start:at].strip())
            start = at + 1
    last = text[start:].strip()
    return [*out, last] if last else out


def _sentence(
    opcode: str,
    phrase: str,
    modifiers: list[str],
    order: str | None,
    scope: str | None,
    space: str | None,
    width: int | None,
    operation: str | None,
) -> str:
    first = opcode.split(".")[0]
    words = ORDER_WORDS.get(order or "", "") + phrase
    if operation:
        words += f" ({operation})"
    details: list[str] = []
    if width is not None:
        words += f" of {width} byte{'' if width == 1 else 's'}"
    if space and first in (*_MEMORY, "cp", "multimem", "prefetch"):
        words += _direction(first, opcode, space)
    elif opcode in _SHAPED:
        shape = [m for m in modifiers if _SHAPE.match(m) or _REPEAT.match(m)]
        kinds = [m for m in modifiers if m in TYPES or m.startswith("kind::")]
        details += [" ".join(part) for part in (shape, kinds) if part]
        if "cta_group::2" in modifiers:
            details.append("two blocks together")
    elif opcode == "cvt":
        kinds = [m for m in modifiers if m in TYPES]
        if len(kinds) >= 2:
            words += f" from {kinds[1]} to {kinds[0]}"
    elif opcode in ("fence.proxy", "membar.proxy"):
        details += [m for m in modifiers if m not in ORDERS and m not in SCOPES]
    elif opcode == "redux" or opcode == "setmaxnreg" or opcode == "shfl":
        details += [m for m in modifiers if m in ("inc", "dec", "idx", "up", "down", "bfly")]
    elif opcode.startswith("mbarrier.") and "expect_tx" in modifiers:
        details.append("with the bytes to expect")
    if first in (*_MEMORY, "cp", "multimem", "prefetch"):
        details += [HINTS[m] for m in modifiers if m in HINTS]
    if scope and order != "weak":
        details.append(SCOPE_WORDS[scope])
    return words + "".join(f", {d}" for d in details)


#: Instructions whose shape and element types say most.
_SHAPED = frozenset("mma wmma wgmma.mma_async tcgen05.mma ldmatrix stmatrix tcgen05.ld tcgen05.st".split())


def _direction(first: str, opcode: str, space: str) -> str:
    ends = [SPACE_WORDS.get(part, part) for part in space.split(" <- ")]
    if len(ends) > 1:
        return f" from {ends[1]} to {ends[0]}"
    if first in ("ld", "ldu") or opcode == "multimem.ld_reduce":
        return f" from {ends[0]}"
    return f" {'to' if first == 'st' else 'in'} {ends[0]}"
