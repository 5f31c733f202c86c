"""Inline assembly, decoded."""

from __future__ import annotations

from msgspec import Struct


class Instruction(Struct, frozen=True):
    """One instruction of inline assembly.

    ``opcode`` is its name (``"st"``, ``"cp.async.bulk"``), ``what`` the kind of work in a word or two (``"store"``,
    ``"fence"``; None where the name is not known). ``order`` is the memory order (``weak relaxed acquire release
    acq_rel sc volatile mmio``), ``scope`` who sees it in that order (``block cluster gpu system``), both None where
    the instruction has none. ``space`` is the state space as PTX writes it (``generic`` where it names none), ``bytes``
    what one thread moves. ``means`` says all of it in words. ``address`` is the operand that holds the address,
    ``operation`` what an atomic or a reduction does (``"add"``).
    """

    text: str
    opcode: str
    what: str | None = None
    order: str | None = None
    scope: str | None = None
    space: str | None = None
    bytes: int | None = None
    means: str = ""
    operation: str | None = None
    address: str | None = None
    predicate: str | None = None


class AsmFact(Struct, frozen=True):
    """An ``asm`` statement: its instructions, and the C++ expressions that stand for its operands ``%0``, ``%1``, …

    ``condition`` is the preprocessor condition that it stands under and its function does not, that of a macro
    definition in it included, and that of the calls that lead to its function from a kernel.
    """

    file: str
    line: int
    function: str
    text: str
    instructions: tuple[Instruction, ...] = ()
    operands: tuple[str, ...] = ()
    clobbers: tuple[str, ...] = ()
    condition: str | None = None
