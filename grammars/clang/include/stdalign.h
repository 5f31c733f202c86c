/* Alignment as a C file asks for it. */
#ifndef __OPWALKER_STDALIGN
#define __OPWALKER_STDALIGN
#ifndef __cplusplus
#define alignas _Alignas
#define alignof _Alignof
#endif
#define __alignas_is_defined 1
#define __alignof_is_defined 1
#endif
