"""The kinds of cursors and types that a reading of a unit tells apart, by number: comparing numbers is what is quick.

In: the loaded bindings. Out: ``Kinds``.
"""

from __future__ import annotations

from typing import Any

#: What a visitor answers: stop, go on beside, go on below.
BREAK, CONTINUE, RECURSE = 0, 1, 2


class Kinds:
    """The kinds of cursor that matter, by number."""

    def __init__(self, cindex: Any) -> None:
        def ids(*names: str) -> frozenset[int]:
            return frozenset(getattr(cindex.CursorKind, name).value for name in names)

        def types(*names: str) -> frozenset[int]:
            return frozenset(getattr(cindex.TypeKind, name).value for name in names)

        self.scopes = ids("NAMESPACE", "LINKAGE_SPEC", "UNEXPOSED_DECL")
        self.classes = ids("CLASS_DECL", "STRUCT_DECL", "CLASS_TEMPLATE", "CLASS_TEMPLATE_PARTIAL_SPECIALIZATION")
        self.functions = ids(
            "FUNCTION_DECL", "CXX_METHOD", "CONSTRUCTOR", "DESTRUCTOR", "CONVERSION_FUNCTION", "FUNCTION_TEMPLATE"
        )
        self.method = cindex.CursorKind.CXX_METHOD.value
        self.named_scopes = ids("NAMESPACE") | self.classes
        self.call = cindex.CursorKind.CALL_EXPR.value
        self.names = ids("DECL_REF_EXPR", "MEMBER_REF_EXPR")
        self.candidates = cindex.CursorKind.OVERLOADED_DECL_REF.value
        self.lambda_ = cindex.CursorKind.LAMBDA_EXPR.value
        self.variable = cindex.CursorKind.VAR_DECL.value
        self.variables = ids("VAR_DECL", "PARM_DECL")
        self.binary = cindex.CursorKind.BINARY_OPERATOR.value
        self.returned = cindex.CursorKind.RETURN_STMT.value
        self.arrays = types("CONSTANTARRAY", "INCOMPLETEARRAY")
        self.pointers = types("POINTER", "LVALUEREFERENCE")
        self.function_types = types("FUNCTIONPROTO", "FUNCTIONNOPROTO")
        self.macro = cindex.CursorKind.MACRO_DEFINITION.value
        self.macro_use = cindex.CursorKind.MACRO_INSTANTIATION.value
        self.global_ = cindex.CursorKind.CUDAGLOBAL_ATTR.value
        self.device = cindex.CursorKind.CUDADEVICE_ATTR.value
        self.host = cindex.CursorKind.CUDAHOST_ATTR.value
        self.parameters = ids("TEMPLATE_TYPE_PARAMETER", "TEMPLATE_NON_TYPE_PARAMETER", "TEMPLATE_TEMPLATE_PARAMETER")
        self.type_argument = cindex.TemplateArgumentKind.TYPE
        self.integral_argument = cindex.TemplateArgumentKind.INTEGRAL
        self.enumeration = cindex.TypeKind.ENUM.value
        self.boolean = cindex.TypeKind.BOOL.value
        self.unsigned = types("UINT", "ULONG", "ULONGLONG")
        self.body = cindex.CursorKind.COMPOUND_STMT.value

    def on_device(self, children: set[int]) -> bool:
        """Whether a function is compiled for a device alone, by the kinds of its cursor's children."""
        return self.global_ in children or (self.device in children and self.host not in children)
