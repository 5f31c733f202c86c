"""Whether a Python function leaves an argument as it is: read by the rules about mutation marks.

In: a file's text, the line of a function, a parameter. Out: whether every use of the parameter in it is seen to read. A
use that may write, or hand the tensor on to what may, makes it a no.
"""

from __future__ import annotations

import ast

#: Attributes of a tensor that are no method.
_PLAIN = frozenset("shape dtype device ndim is_cuda requires_grad layout itemsize nbytes".split())
#: Methods that return what shares the data, or is the tensor: what is done to that is not followed.
_SHARES = frozenset(
    "view reshape contiguous to squeeze unsqueeze transpose permute t select narrow flatten expand detach view_as"
    " expand_as data_ptr numpy T mT unbind chunk split swapaxes movedim unfold diagonal cpu cuda float half"
    " bfloat16 type".split()
)
_MODULES = frozenset(("torch", "F"))


def only_reads(text: str, line: int, name: str) -> bool:
    """Whether the function around (or decorated at) a line shows that it reads the parameter alone."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    begun = [node for node in functions if _first(node) <= line]
    if not begun:
        return False
    function = max(begun, key=lambda node: node.lineno)
    parents = {child: node for node in ast.walk(function) for child in ast.iter_child_nodes(node)}
    uses = [node for one in function.body for node in ast.walk(one) if isinstance(node, ast.Name) and node.id == name]
    return bool(uses) and all(_reads(node, parents) for node in uses)


def _first(node: ast.FunctionDef) -> int:
    return min([node.lineno, *(one.lineno for one in node.decorator_list)])


def _reads(node: ast.Name, parents: dict[ast.AST, ast.AST]) -> bool:
    if not isinstance(node.ctx, ast.Load):
        return False
    parent = parents.get(node)
    if isinstance(parent, ast.Attribute):
        if parent.attr in _PLAIN:
            return True
        called = parents.get(parent)
        if not isinstance(called, ast.Call) or called.func is not parent:
            return False
        return not parent.attr.endswith("_") and parent.attr not in _SHARES
    if isinstance(parent, ast.BinOp | ast.UnaryOp | ast.Compare):
        return True
    # A function of torch returns its result; one whose name ends so writes, and so does an ``out``.
    if isinstance(parent, ast.Call) and node in parent.args and isinstance(parent.func, ast.Attribute):
        head = ast.unparse(parent.func).split(".")
        return head[0] in _MODULES and "ops" not in head and not head[-1].endswith("_") and head[-1] not in _SHARES
    return False
