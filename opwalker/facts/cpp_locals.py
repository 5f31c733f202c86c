"""Small parts of a parsed body that more than one reader of it needs: what a declaration declares, what a call names.

In: nodes of the parser's tree and the text that it was made from. Out: plain facts. Nodes stay among the readers of
bodies.
"""

from __future__ import annotations

from opwalker.model.body import LocalFact, Span2

#: What stands before a body's text when it is parsed, so that it is the body of a function.
HEAD = "void _(){"
_SHIFT = len(HEAD)


def one_line(source: str, node) -> str:
    """A node's text with its white space made even."""
    return " ".join(source[node.start_byte : node.end_byte].split())


def name_of(source: str, node) -> tuple[str, tuple[Span2, ...] | None]:
    """A callee's name without its own template arguments, and those."""
    if node.type == "dependent_name" and node.named_child_count:
        return name_of(source, node.named_children[-1])
    if node.type in ("template_function", "template_method", "template_type"):
        listed = node.child_by_field_name("arguments")
        spans = tuple(_span(c) for c in listed.named_children if c.type != "comment") if listed is not None else ()
        return one_line(source, node.child_by_field_name("name")), spans
    if node.type == "qualified_identifier":
        scope = node.child_by_field_name("scope")
        inner = node.child_by_field_name("name")
        if inner is None:
            return one_line(source, node), None
        name, template = name_of(source, inner)
        prefix = one_line(source, scope) if scope is not None else ""
        return f"{prefix}::{name}", template
    return one_line(source, node), None


def declared_in(source: str, node, block: int = -1) -> list[LocalFact]:
    """The locals that a declaration declares (or a range loop: its element); ``block`` is the block it stands in."""
    out: list[LocalFact] = []
    kind = node.child_by_field_name("type")
    first = node.children_by_field_name("declarator")
    if kind is None or not first:
        return out
    begin = node.start_byte
    if node.type == "for_range_loop":
        begin = source.index("(", begin) + 1
    base = " ".join(source[begin : first[0].start_byte].split())
    for declarator in first:
        # A range's elements are what the loop's variable is made of.
        value = declarator.child_by_field_name("value") or node.child_by_field_name("right")
        inner = declarator
        if declarator.type == "function_declarator" and base.startswith("extern"):
            continue  # a function declared inside the body is no variable
        if declarator.type == "init_declarator":
            inner = declarator.child_by_field_name("declarator")
        stars = ""
        # Where the extents of an array of arrays begin: the outermost declarator holds the last of them.
        arrays = -1
        span = _span(value) if value is not None else None
        while inner is not None and inner.type != "identifier":
            if inner.type == "pointer_declarator":
                stars += "*"
            elif inner.type == "reference_declarator":
                stars += "&&" if source.startswith("&&", inner.start_byte) else "&"
            elif inner.type == "array_declarator":
                size = inner.child_by_field_name("size")
                arrays = arrays if arrays >= 0 else len(stars)
                extent = f"[{one_line(source, size) if size is not None else ''}]"
                stars = stars[:arrays] + extent + stars[arrays:]
            elif inner.type == "function_declarator":
                # `dim3 grid(n);` reads as a function's declaration: its "parameters" are constructor arguments.
                listed = inner.child_by_field_name("parameters")
                if listed is not None and span is None:
                    span = _span(listed)
            elif inner.type == "structured_binding_declarator":
                for name in inner.named_children:
                    out.append(
                        LocalFact(
                            one_line(source, name),
                            base,
                            None,
                            name.start_byte - _SHIFT,
                            node.end_byte - _SHIFT,
                            block,
                        )
                    )
                inner = None
                break
            following = inner.child_by_field_name("declarator")
            if following is None:
                named = [
                    c
                    for c in inner.named_children
                    if c.type
                    in (
                        "identifier",
                        "pointer_declarator",
                        "reference_declarator",
                        "array_declarator",
                        "parenthesized_declarator",
                        "function_declarator",
                    )
                ]
                following = named[-1] if named else None
            inner = following
        if inner is not None:
            out.append(
                LocalFact(
                    one_line(source, inner),
                    (base + stars).strip(),
                    span,
                    declarator.start_byte - _SHIFT,
                    node.end_byte - _SHIFT,
                    block,
                )
            )
    return out


def _span(node) -> Span2:
    return node.start_byte - _SHIFT, node.end_byte - _SHIFT
