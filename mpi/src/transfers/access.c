/* access.c - the calls that read and write: by explicit offsets, by individual file pointers, and by the
 * shared file pointer. */
#include "../errors/errors.h"
#include "transfers.h"

/* Positioning of a call. */
enum pointer { EXPLICIT, INDIVIDUAL, SHARED };

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

#define ACCESS(name, bits)                                                                         \
    &(access_t){.call = CALL_File_##name, .flags = bits, .buffer = buffer, .count = count, .type = type}
#define DATA(count_type) void *buffer, count_type count, MPI_Datatype type

/* Defines one call: with an offset, or by a file pointer. */
#define AT(name, flags, count_type)                                                               \
    static int call_##name(MPI_File handle, MPI_Offset offset, DATA(count_type),                   \
                           MPI_Status *status)                                                     \
    {                                                                                              \
        return blocking(handle, ACCESS(name, flags), EXPLICIT, offset, status);                   \
    }
#define IAT(name, flags, count_type)                                                              \
    static int call_##name(MPI_File handle, MPI_Offset offset, DATA(count_type),                   \
                           MPI_Request *request)                                                   \
    {                                                                                              \
        return nonblocking(handle, ACCESS(name, flags), EXPLICIT, offset, request);               \
    }
#define AT_BEGIN(name, flags, count_type, end)                                                    \
    static int call_##name(MPI_File handle, MPI_Offset offset, DATA(count_type))                   \
    {                                                                                              \
        return split_begin(handle, ACCESS(name, flags), EXPLICIT, offset, CALL_File_##end);       \
    }
#define NEXT(name, flags, count_type, pointer)                                                    \
    static int call_##name(MPI_File handle, DATA(count_type), MPI_Status *status)                  \
    {                                                                                              \
        return blocking(handle, ACCESS(name, flags), pointer, 0, status);                         \
    }
#define INEXT(name, flags, count_type, pointer)                                                   \
    static int call_##name(MPI_File handle, DATA(count_type), MPI_Request *request)                \
    {                                                                                              \
        return nonblocking(handle, ACCESS(name, flags), pointer, 0, request);                     \
    }
#define NEXT_BEGIN(name, flags, count_type, pointer, end)                                         \
    static int call_##name(MPI_File handle, DATA(count_type))                                      \
    {                                                                                              \
        return split_begin(handle, ACCESS(name, flags), pointer, 0, CALL_File_##end);             \
    }
#define END(name)                                                                                  \
    static int call_##name(MPI_File handle, void *buffer, MPI_Status *status)                      \
    {                                                                                              \
        (void)buffer;                                                                              \
        return split_end(handle, CALL_File_##name, status);                                        \
    }

/* Defines the calls of one direction and one kind of count. */
#define DIRECTION(word, flags, count_type, suffix)                                                \
    AT(word##_at##suffix, flags, count_type)                                                      \
    AT(word##_at_all##suffix, flags | COLLECTIVE, count_type)                                     \
    IAT(i##word##_at##suffix, flags, count_type)                                                  \
    IAT(i##word##_at_all##suffix, flags | COLLECTIVE, count_type)                                 \
    AT_BEGIN(word##_at_all_begin##suffix, flags | COLLECTIVE, count_type, word##_at_all_end)      \
    NEXT(word##suffix, flags, count_type, INDIVIDUAL)                                             \
    NEXT(word##_all##suffix, flags | COLLECTIVE, count_type, INDIVIDUAL)                          \
    NEXT(word##_shared##suffix, flags, count_type, SHARED)                                        \
    NEXT(word##_ordered##suffix, flags | COLLECTIVE, count_type, SHARED)                          \
    INEXT(i##word##suffix, flags, count_type, INDIVIDUAL)                                         \
    INEXT(i##word##_all##suffix, flags | COLLECTIVE, count_type, INDIVIDUAL)                      \
    INEXT(i##word##_shared##suffix, flags, count_type, SHARED)                                    \
    NEXT_BEGIN(word##_all_begin##suffix, flags | COLLECTIVE, count_type, INDIVIDUAL,              \
               word##_all_end)                                                                     \
    NEXT_BEGIN(word##_ordered_begin##suffix, flags | COLLECTIVE, count_type, SHARED,              \
               word##_ordered_end)

DIRECTION(read, READ, int, )
DIRECTION(write, WRITE, int, )
DIRECTION(read, READ, MPI_Count, _c)
DIRECTION(write, WRITE, MPI_Count, _c)
END(read_at_all_end)
END(write_at_all_end)
END(read_all_end)
END(write_all_end)
END(read_ordered_end)
END(write_ordered_end)

#define ENTER_ONE(name) ENTER(File_##name, call_##name)
#define ENTER_DIRECTION(word, suffix)                                                              \
    do {                                                                                           \
        ENTER_ONE(word##_at##suffix);                                                              \
        ENTER_ONE(word##_at_all##suffix);                                                          \
        ENTER_ONE(i##word##_at##suffix);                                                           \
        ENTER_ONE(i##word##_at_all##suffix);                                                       \
        ENTER_ONE(word##_at_all_begin##suffix);                                                    \
        ENTER_ONE(word##suffix);                                                                   \
        ENTER_ONE(word##_all##suffix);                                                             \
        ENTER_ONE(word##_shared##suffix);                                                          \
        ENTER_ONE(word##_ordered##suffix);                                                         \
        ENTER_ONE(i##word##suffix);                                                                \
        ENTER_ONE(i##word##_all##suffix);                                                          \
        ENTER_ONE(i##word##_shared##suffix);                                                       \
        ENTER_ONE(word##_all_begin##suffix);                                                       \
        ENTER_ONE(word##_ordered_begin##suffix);                                                   \
    } while (0)

void access_enter(function_t **functions)
{
    ENTER_DIRECTION(read, );
    ENTER_DIRECTION(write, );
    ENTER_DIRECTION(read, _c);
    ENTER_DIRECTION(write, _c);
    ENTER_ONE(read_at_all_end);
    ENTER_ONE(write_at_all_end);
    ENTER_ONE(read_all_end);
    ENTER_ONE(write_all_end);
    ENTER_ONE(read_ordered_end);
    ENTER_ONE(write_ordered_end);
}
