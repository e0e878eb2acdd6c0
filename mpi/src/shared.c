/* shared.c - the calls that use the shared file pointer, a counter at the servers.
 *
 * Ordered calls are collective: members take their places behind one another by a prefix sum, and
 * the last member moves the counter for all of them. */
#include "back.h"

/* Takes the etypes of an access from the shared file pointer; gives the first of them. */
static int take(open_file_t *file, const access_t *access, uint64_t *first)
{
    uint64_t etypes;
    *first = 0;
    file->has_moved_shared = 1;
    int code = access_etypes(file, access, &etypes);
    if (code == MPI_SUCCESS && unisono_counter_add(file->group, etypes, first))
        code = class_of_failure(file, access->call);
    return code;
}

/* Takes the places of all members from the shared file pointer, in the order of their ranks. A
 * member with an earlier error takes none. */
static int take_ordered(open_file_t *file, const access_t *access, uint64_t *first)
{
    uint64_t mine = 0, end = 0, start = 0;
    long told[2] = {0, MPI_SUCCESS};
    int last = file->size - 1;
    file->has_moved_shared = 1;
    int code = access_etypes(file, access, &mine);
    if (code != MPI_SUCCESS)
        mine = 0;
    end = mine;
    int met = file->size > 1 ? members_sum(file, access->call, mine, &end) : MPI_SUCCESS;
    if (met == MPI_SUCCESS && file->rank == last) {
        if (unisono_counter_add(file->group, end, &start))
            told[1] = class_of_failure(file, access->call);
        told[0] = (long)start;
    }
    if (met == MPI_SUCCESS && file->size > 1)
        met = members_tell(file, told, 2, last);
    if (met != MPI_SUCCESS)
        return met;
    *first = (uint64_t)told[0] + end - mine;
    return code == MPI_SUCCESS ? (int)told[1] : code;
}

static transfer_t *begin(open_file_t *file, const access_t *access)
{
    uint64_t first = 0;
    int code = access->manner & COLLECTIVE ? take_ordered(file, access, &first)
                                           : take(file, access, &first);
    return transfer_begin(file, access, first, code);
}

static int blocking(MPI_File handle, const access_t *access, MPI_Status *status)
{
    open_file_t *file = file_of(handle);
    double started_at = now_s();
    uint64_t bytes;
    if (!file)
        return fail(NULL, MPI_ERR_FILE);
    if (access->manner & COLLECTIVE)
        report_start(file, started_at);
    int code = transfer_end(begin(file, access), &bytes);
    status_set(status, bytes);
    report_time(file, access->call, started_at);
    return fail(file, code);
}

static int nonblocking(MPI_File handle, const access_t *access, MPI_Request *request)
{
    open_file_t *file = file_of(handle);
    double started_at = now_s();
    *request = MPI_REQUEST_NULL;
    if (!file)
        return fail(NULL, MPI_ERR_FILE);
    transfer_t *transfer = begin(file, access);
    int code = transfer ? request_make(file, transfer, request) : MPI_ERR_NO_MEM;
    report_time(file, access->call, started_at);
    return fail(file, code);
}

static int ordered_begin(MPI_File handle, const access_t *access, int end_call)
{
    open_file_t *file = file_of(handle);
    double started_at = now_s();
    if (!file)
        return fail(NULL, MPI_ERR_FILE);
    if (file->split)
        return fail(file, wrong(MPI_ERR_OTHER, access->call,
                                "another split collective call is under way on this file",
                                "end it first"));
    file->split = begin(file, access);
    file->split_end = end_call;
    report_time(file, access->call, started_at);
    return fail(file, file->split ? MPI_SUCCESS : MPI_ERR_NO_MEM);
}

#define ACCESS(name, manner) &(access_t){CALL_File_##name, manner, buffer, count, type}
#define DATA(count_type) void *buffer, count_type count, MPI_Datatype type

#define BLOCKING(name, manner, count_type)                                                         \
    static int call_##name(MPI_File handle, DATA(count_type), MPI_Status *status)                  \
    {                                                                                              \
        return blocking(handle, ACCESS(name, manner), status);                                     \
    }
#define NONBLOCKING(name, manner, count_type)                                                      \
    static int call_##name(MPI_File handle, DATA(count_type), MPI_Request *request)                \
    {                                                                                              \
        return nonblocking(handle, ACCESS(name, manner), request);                                 \
    }
#define BEGIN(name, manner, count_type, end)                                                       \
    static int call_##name(MPI_File handle, DATA(count_type))                                      \
    {                                                                                              \
        return ordered_begin(handle, ACCESS(name, manner), CALL_File_##end);                       \
    }
#define END(name)                                                                                  \
    static int call_##name(MPI_File handle, void *buffer, MPI_Status *status)                      \
    {                                                                                              \
        (void)buffer;                                                                              \
        return split_end(handle, CALL_File_##name, status);                                        \
    }
#define DIRECTION(word, manner, count_type, suffix)                                                \
    BLOCKING(word##_shared##suffix, manner, count_type)                                            \
    NONBLOCKING(i##word##_shared##suffix, manner, count_type)                                      \
    BLOCKING(word##_ordered##suffix, manner | COLLECTIVE, count_type)                              \
    BEGIN(word##_ordered_begin##suffix, manner | COLLECTIVE, count_type, word##_ordered_end)

DIRECTION(read, READ, int, )
DIRECTION(write, WRITE, int, )
DIRECTION(read, READ, MPI_Count, _c)
DIRECTION(write, WRITE, MPI_Count, _c)
END(read_ordered_end)
END(write_ordered_end)

#define ENTER_ONE(name) ENTER(File_##name, call_##name)
#define ENTER_DIRECTION(word, suffix)                                                              \
    do {                                                                                           \
        ENTER_ONE(word##_shared##suffix);                                                          \
        ENTER_ONE(i##word##_shared##suffix);                                                       \
        ENTER_ONE(word##_ordered##suffix);                                                         \
        ENTER_ONE(word##_ordered_begin##suffix);                                                   \
    } while (0)

void shared_enter(function_t **functions)
{
    ENTER_DIRECTION(read, );
    ENTER_DIRECTION(write, );
    ENTER_DIRECTION(read, _c);
    ENTER_DIRECTION(write, _c);
    ENTER_ONE(read_ordered_end);
    ENTER_ONE(write_ordered_end);
}
