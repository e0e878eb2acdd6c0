/* access.c - the calls that read and write: by explicit offsets, by individual file pointers, and by the
 * shared file pointer. */
#include "../errors/errors.h"
#include "transfers.h"

/* Positioning of a call. */
enum pointer { EXPLICIT, INDIVIDUAL, SHARED, ORDERED = SHARED };

/* Code for a call that the mode of the file forbids. */
static int check_pointer(const open_file_t *file, int call, MPI_Offset offset)
{
    if (file->amode & MPI_MODE_SEQUENTIAL)
        return wrong(MPI_ERR_UNSUPPORTED_OPERATION, call,
                     "the file was opened with MPI_MODE_SEQUENTIAL",
                     "use the shared file pointer, or open the file without this mode");
    if (offset < 0)
        return wrong(MPI_ERR_ARG, call, "the offset is negative",
                     "give an offset of 0 or more");
    return MPI_SUCCESS;
}

/* Takes the etypes of an access from the individual file pointer; gives the first of them. */
static void advance(open_file_t *file, const access_t *access, uint64_t *first)
{
    pthread_mutex_lock(&file->lock);
    *first = file->position;
    file->position += access->etypes;
    pthread_mutex_unlock(&file->lock);
}

/* Prepares an access, and begins its transfer; gives its first etype. */
static transfer_t *begin(open_file_t *file, access_t *access, enum pointer pointer,
                         MPI_Offset offset, uint64_t *first)
{
    int code = pointer == SHARED ? MPI_SUCCESS : check_pointer(file, access->call, offset);
    *first = (uint64_t)offset;
    if (code == MPI_SUCCESS)
        code = access_prepare(file, access);
    if (pointer == SHARED)
        code = shared_take(file, access, code, first);
    else if (code == MPI_SUCCESS && pointer == INDIVIDUAL)
        advance(file, access, first);
    return transfer_begin(file, access, *first, code);
}

/* Sets the individual file pointer to the end of the data that a short read has found. */
static void step_back(open_file_t *file, const access_t *access, uint64_t first, uint64_t bytes)
{
    pthread_mutex_lock(&file->lock);
    if (file->view.representation == NATIVE && file->view.etype_bytes
        && file->position == first + access->etypes)
        file->position = first + bytes / file->view.etype_bytes;
    pthread_mutex_unlock(&file->lock);
}

static int blocking(MPI_File handle, access_t *access, enum pointer pointer,
                    MPI_Offset offset, MPI_Status *status)
{
    open_file_t *file = file_of(handle);
    double started_at = now_s();
    uint64_t first, bytes;
    if (!file)
        return fail(NULL, MPI_ERR_FILE);
    if (access->flags & COLLECTIVE)
        report_start(file, started_at);
    access->flags |= BLOCKING;
    transfer_t *transfer = begin(file, access, pointer, offset, &first);
    int code = transfer_end(transfer, &bytes);
    if (pointer == INDIVIDUAL && code == MPI_SUCCESS && !(access->flags & WRITE))
        step_back(file, access, first, bytes);
    status_set(status, bytes);
    report_time(file, access->call, started_at);
    return fail(file, code);
}

static int nonblocking(MPI_File handle, access_t *access, enum pointer pointer,
                       MPI_Offset offset, MPI_Request *request)
{
    open_file_t *file = file_of(handle);
    double started_at = now_s();
    uint64_t first;
    *request = MPI_REQUEST_NULL;
    if (!file)
        return fail(NULL, MPI_ERR_FILE);
    transfer_t *transfer = begin(file, access, pointer, offset, &first);
    int code = transfer ? request_make(file, transfer, request) : MPI_ERR_NO_MEM;
    report_time(file, access->call, started_at);
    return fail(file, code);
}

static int split_begin(MPI_File handle, access_t *access, enum pointer pointer,
                       MPI_Offset offset, int end_call)
{
    open_file_t *file = file_of(handle);
    double started_at = now_s();
    uint64_t first;
    if (!file)
        return fail(NULL, MPI_ERR_FILE);
    if (file->split)
        return fail(file, wrong(MPI_ERR_OTHER, access->call,
                                "another split collective operation is active on this file",
                                "end it first"));
    file->split = begin(file, access, pointer, offset, &first);
    file->split_end = end_call;
    report_time(file, access->call, started_at);
    return fail(file, file->split ? MPI_SUCCESS : MPI_ERR_NO_MEM);
}

static int split_end(MPI_File handle, int call, MPI_Status *status)
{
    open_file_t *file = file_of(handle);
    double started_at = now_s();
    uint64_t bytes;
    if (!file)
        return fail(NULL, MPI_ERR_FILE);
    if (!file->split || file->split_end != call)
        return fail(file, wrong(MPI_ERR_OTHER, call,
                                "no matching split collective operation is active",
                                "call the begin routine of the same name first"));
    int code = transfer_end(file->split, &bytes);
    file->split = NULL;
    status_set(status, bytes);
    report_time(file, call, started_at);
    return fail(file, code);
}

#define GIVEN(name, bits)                                                                          \
    &(access_t){.call = CALL_File_##name, .flags = bits, .buffer = buffer, .count = count, .type = type}
#define DATA(count_type) void *buffer, count_type count, MPI_Datatype type

/* Forms of the table: each defines one call. */
#define AT(name, bits, count_type, pointer)                                                        \
    static int call_##name(MPI_File handle, MPI_Offset offset, DATA(count_type),                   \
                           MPI_Status *status)                                                     \
    {                                                                                              \
        return blocking(handle, GIVEN(name, bits), pointer, offset, status);                       \
    }
#define IAT(name, bits, count_type, pointer)                                                       \
    static int call_##name(MPI_File handle, MPI_Offset offset, DATA(count_type),                   \
                           MPI_Request *request)                                                   \
    {                                                                                              \
        return nonblocking(handle, GIVEN(name, bits), pointer, offset, request);                   \
    }
#define AT_BEGIN(name, bits, count_type, pointer, end)                                             \
    static int call_##name(MPI_File handle, MPI_Offset offset, DATA(count_type))                   \
    {                                                                                              \
        return split_begin(handle, GIVEN(name, bits), pointer, offset, CALL_File_##end);           \
    }
#define NEXT(name, bits, count_type, pointer)                                                      \
    static int call_##name(MPI_File handle, DATA(count_type), MPI_Status *status)                  \
    {                                                                                              \
        return blocking(handle, GIVEN(name, bits), pointer, 0, status);                            \
    }
#define INEXT(name, bits, count_type, pointer)                                                     \
    static int call_##name(MPI_File handle, DATA(count_type), MPI_Request *request)                \
    {                                                                                              \
        return nonblocking(handle, GIVEN(name, bits), pointer, 0, request);                        \
    }
#define NEXT_BEGIN(name, bits, count_type, pointer, end)                                           \
    static int call_##name(MPI_File handle, DATA(count_type))                                      \
    {                                                                                              \
        return split_begin(handle, GIVEN(name, bits), pointer, 0, CALL_File_##end);                \
    }
#define END(name)                                                                                  \
    static int call_##name(MPI_File handle, void *buffer, MPI_Status *status)                      \
    {                                                                                              \
        (void)buffer;                                                                              \
        return split_end(handle, CALL_File_##name, status);                                        \
    }

#define ACCESS(n, name, letters, form, bits, pointer)                                              \
    form(name, bits, int, pointer)                                                                 \
    form(name##_c, bits, MPI_Count, pointer)
#define SPLIT_ACCESS(n, name, letters, form, bits, pointer)                                        \
    form(name##_begin, bits, int, pointer, name##_end)                                             \
    form(name##_begin_c, bits, MPI_Count, pointer, name##_end)                                     \
    END(name##_end)
#include "../accesses.def"

void access_enter(function_t **functions)
{
#define ENTER_ONE(name) ENTER(File_##name, call_##name)
#define ACCESS(n, name, letters, form, bits, pointer)                                              \
    ENTER_ONE(name);                                                                               \
    ENTER_ONE(name##_c);
#define SPLIT_ACCESS(n, name, letters, form, bits, pointer)                                        \
    ENTER_ONE(name##_begin);                                                                       \
    ENTER_ONE(name##_begin_c);                                                                     \
    ENTER_ONE(name##_end);
#include "../accesses.def"
}
