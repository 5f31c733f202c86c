/* Types of the implementation, for a clang that comes without headers of its own. The C library asks for single types
   by defining __need_<type> before it includes this; then nothing else may be declared. */
#if !defined(__need_size_t) && !defined(__need_ptrdiff_t) && !defined(__need_wchar_t) && !defined(__need_NULL) && \
    !defined(__need_wint_t)
#define __OPWALKER_STDDEF_WHOLE
#define __need_size_t
#define __need_ptrdiff_t
#define __need_wchar_t
#define __need_NULL
#endif

#if defined(__need_size_t) && !defined(__OPWALKER_SIZE_T)
#define __OPWALKER_SIZE_T
typedef __SIZE_TYPE__ size_t;
#endif
#if defined(__need_ptrdiff_t) && !defined(__OPWALKER_PTRDIFF_T)
#define __OPWALKER_PTRDIFF_T
typedef __PTRDIFF_TYPE__ ptrdiff_t;
#endif
#if defined(__need_wchar_t) && !defined(__cplusplus) && !defined(__OPWALKER_WCHAR_T)
#define __OPWALKER_WCHAR_T
typedef __WCHAR_TYPE__ wchar_t;
#endif
#if defined(__need_wint_t) && !defined(__OPWALKER_WINT_T)
#define __OPWALKER_WINT_T
typedef __WINT_TYPE__ wint_t;
#endif
#if defined(__need_NULL)
#undef NULL
#ifdef __cplusplus
#define NULL __null
#else
#define NULL ((void*)0)
#endif
#endif

#if defined(__OPWALKER_STDDEF_WHOLE) && !defined(__OPWALKER_STDDEF_REST)
#define __OPWALKER_STDDEF_REST
#define offsetof(type, member) __builtin_offsetof(type, member)
typedef struct {
  long long __opwalker_integer __attribute__((__aligned__(__alignof__(long long))));
  long double __opwalker_real __attribute__((__aligned__(__alignof__(long double))));
} max_align_t;
#if defined(__cplusplus)
namespace std {
typedef decltype(nullptr) nullptr_t;
}
using ::std::nullptr_t;
#endif
#endif

#undef __OPWALKER_STDDEF_WHOLE
#undef __need_size_t
#undef __need_ptrdiff_t
#undef __need_wchar_t
#undef __need_wint_t
#undef __need_NULL
