/* forms.c - one switch for all functions that read and write. */
#include "forms.h"

#include <stdio.h>

#define ARGUMENTS call->buffer, call->count, call->type
#define AT_ARGUMENTS call->file, call->offset, ARGUMENTS

static int wait_for(int code, MPI_Request *request, MPI_Status *status)
{
    return code == MPI_SUCCESS ? MPI_Wait(request, status) : code;
}

/* Defines a function with all calls of one direction. */
#define DIRECTION(function, word, c)                                                               \
    static int function(const call_t *call, MPI_Status *status)                                    \
    {                                                                                              \
        MPI_Request request = MPI_REQUEST_NULL;                                                    \
        int code = MPI_ERR_OTHER;                                                                  \
        switch (call->form) {                                                                      \
        case AT:                                                                                   \
            return MPI_File_##word##_at##c(AT_ARGUMENTS, status);                                  \
        case AT_ALL:                                                                               \
            return MPI_File_##word##_at_all##c(AT_ARGUMENTS, status);                              \
        case IAT:                                                                                  \
            code = MPI_File_i##word##_at##c(AT_ARGUMENTS, &request);                               \
            return wait_for(code, &request, status);                                               \
        case IAT_ALL:                                                                              \
            code = MPI_File_i##word##_at_all##c(AT_ARGUMENTS, &request);                           \
            return wait_for(code, &request, status);                                               \
        case AT_ALL_SPLIT:                                                                         \
            code = MPI_File_##word##_at_all_begin##c(AT_ARGUMENTS);                                \
            return code ? code : MPI_File_##word##_at_all_end(call->file, call->buffer, status);   \
        case INDIVIDUAL:                                                                           \
            return MPI_File_##word##c(call->file, ARGUMENTS, status);                              \
        case ALL:                                                                                  \
            return MPI_File_##word##_all##c(call->file, ARGUMENTS, status);                        \
        case INONBLOCKING:                                                                         \
            code = MPI_File_i##word##c(call->file, ARGUMENTS, &request);                           \
            return wait_for(code, &request, status);                                               \
        case IALL:                                                                                 \
            code = MPI_File_i##word##_all##c(call->file, ARGUMENTS, &request);                     \
            return wait_for(code, &request, status);                                               \
        case ALL_SPLIT:                                                                            \
            code = MPI_File_##word##_all_begin##c(call->file, ARGUMENTS);                          \
            return code ? code : MPI_File_##word##_all_end(call->file, call->buffer, status);      \
        case SHARED:                                                                               \
            return MPI_File_##word##_shared##c(call->file, ARGUMENTS, status);                     \
        case ISHARED:                                                                              \
            code = MPI_File_i##word##_shared##c(call->file, ARGUMENTS, &request);                  \
            return wait_for(code, &request, status);                                               \
        case ORDERED:                                                                              \
            return MPI_File_##word##_ordered##c(call->file, ARGUMENTS, status);                    \
        case ORDERED_SPLIT:                                                                        \
            code = MPI_File_##word##_ordered_begin##c(call->file, ARGUMENTS);                      \
            return code ? code : MPI_File_##word##_ordered_end(call->file, call->buffer, status);  \
        default:                                                                                   \
            return code;                                                                           \
        }                                                                                          \
    }

DIRECTION(read_call, read, )
DIRECTION(write_call, write, )
#if MPI_VERSION >= 4
DIRECTION(read_call_c, read, _c)
DIRECTION(write_call_c, write, _c)
#else
#define read_call_c read_call
#define write_call_c write_call
#endif

int make_call(const call_t *call, MPI_Status *status)
{
    if (call->is_large)
        return call->is_write ? write_call_c(call, status) : read_call_c(call, status);
    return call->is_write ? write_call(call, status) : read_call(call, status);
}

const char *call_name(const call_t *call)
{
    static const char *const names[FORM_COUNT][2] = {
        [AT] = {"read_at", "write_at"},
        [AT_ALL] = {"read_at_all", "write_at_all"},
        [IAT] = {"iread_at", "iwrite_at"},
        [IAT_ALL] = {"iread_at_all", "iwrite_at_all"},
        [AT_ALL_SPLIT] = {"read_at_all_begin", "write_at_all_begin"},
        [INDIVIDUAL] = {"read", "write"},
        [ALL] = {"read_all", "write_all"},
        [INONBLOCKING] = {"iread", "iwrite"},
        [IALL] = {"iread_all", "iwrite_all"},
        [ALL_SPLIT] = {"read_all_begin", "write_all_begin"},
        [SHARED] = {"read_shared", "write_shared"},
        [ISHARED] = {"iread_shared", "iwrite_shared"},
        [ORDERED] = {"read_ordered", "write_ordered"},
        [ORDERED_SPLIT] = {"read_ordered_begin", "write_ordered_begin"},
    };
    static char name[40];
    snprintf(name, sizeof name, "%s%s", names[call->form][!!call->is_write],
             call->is_large ? "_c" : "");
    return name;
}
