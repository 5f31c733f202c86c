; What a function body holds, after preprocessing. One pattern a fact; facts/cpp_body.py reads the captures.

(call_expression) @call

(kernel_call_syntax) @launch_configuration

(new_expression) @new

(compound_literal_expression) @braced

(declaration) @declaration

(condition_clause (declaration) @condition_declaration)

(alias_declaration name: (_) @alias_name type: (_) @alias_type) @alias

(type_definition) @type_definition

(using_declaration) @using

(namespace_alias_definition) @namespace_alias

(lambda_expression) @lambda
(field_declaration_list (function_definition) @method)

(assignment_expression left: (_) @assigned right: (_) @assigned_value) @assignment

(return_statement (_) @returned)

(return_statement) @exit
(throw_statement) @exit

(if_statement) @if

(case_statement) @case

(switch_statement condition: (_) @switch_on) @switch

(for_statement) @loop
(while_statement) @loop
(do_statement) @loop
(for_range_loop) @loop

(compound_statement (compound_statement) @scope)
(case_statement (compound_statement) @scope)
(try_statement body: (compound_statement) @scope)
(catch_clause body: (compound_statement) @scope)

(sizeof_expression) @unevaluated
(alignof_expression) @unevaluated
(decltype) @unevaluated

(conditional_expression) @ternary

(gnu_asm_expression) @asm

(ERROR) @error
