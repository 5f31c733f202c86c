; What a function body says about memory, after preprocessing; facts/cpp_access.py reads the captures.

(subscript_expression) @index

(pointer_expression operator: "*") @deref

(field_expression operator: "->") @arrow

(call_expression function: (identifier)) @call

(for_statement) @for
(while_statement) @while
(do_statement) @do

(if_statement consequence: (return_statement)) @leave
(if_statement consequence: (continue_statement)) @leave
(if_statement consequence: (break_statement)) @leave
(if_statement consequence: (compound_statement)) @leave_block

(assignment_expression) @assignment
(update_expression) @update
