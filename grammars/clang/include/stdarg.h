/* Variable arguments. With __need___va_list only the C library's own name for the list is declared. */
#if !defined(__OPWALKER_GNUC_VA_LIST)
#define __OPWALKER_GNUC_VA_LIST
typedef __builtin_va_list __gnuc_va_list;
#endif
#if !defined(__need___va_list) && !defined(__OPWALKER_STDARG)
#define __OPWALKER_STDARG
typedef __builtin_va_list va_list;
#define va_start(list, last) __builtin_va_start(list, last)
#define va_end(list) __builtin_va_end(list)
#define va_arg(list, type) __builtin_va_arg(list, type)
#define va_copy(to, from) __builtin_va_copy(to, from)
#endif
#undef __need___va_list
