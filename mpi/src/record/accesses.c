/* accesses.c - the calls that read and write. Events have the place of the data in the file, without
 * pointers and views. Memory counts as packed. */
#include "recording.h"

/* Flags of an access. */
enum {
    READ = UNISONO_TRACE_READ,
    WRITE = UNISONO_TRACE_WRITE,
    ALL = UNISONO_TRACE_IS_COLLECTIVE,
    READ_ALL = READ | ALL,
    WRITE_ALL = WRITE | ALL
};

/* Positioning of a call. */
enum pointer { EXPLICIT, INDIVIDUAL, SHARED, ORDERED };

/* Access of a call. */
typedef struct access {
    file_t *file; /* NULL when it is not recorded */
    MPI_File handle;
    int flags; /* flags of the trace */
    enum pointer pointer;
    uint64_t first; /* etype of the view, once it is known */
    uint64_t bytes; /* in the file */
} access_t;

/* ---- Where the data lie -------------------------------------------------------------------- */

/* Bytes of an access in the file. */
static uint64_t bytes_in_file(const file_t *file, MPI_Count count, MPI_Datatype type)
{
    layout_t *external = NULL;
    if (file->representation == NATIVE || count <= 0)
        return data_bytes(count, type);
    if (layout_decode(type, EXTERNAL32, &external))
        return 0;
    uint64_t bytes = layout_facts(external).bytes;
    layout_release(external);
    return (uint64_t)count * bytes;
}

static uint64_t etypes(const access_t *access)
{
    uint64_t size = access->file->etype_bytes;
    return size ? access->bytes / size : 0;
}

/* A sequential file has no calls that return its positions. */
static int is_sequential(const file_t *file)
{
    return file->amode & MPI_MODE_SEQUENTIAL;
}

static uint64_t shared_position(const access_t *access)
{
    MPI_Offset position = 0;
    if (is_sequential(access->file)) {
        note("files opened with MPI_MODE_SEQUENTIAL");
        return access->file->sequential;
    }
    return PMPI_File_get_position_shared(access->handle, &position) ? 0 : (uint64_t)position;
}

/* Communicator of the members of a file, which their first ordered call makes. */
static MPI_Comm members_of(access_t *access)
{
    MPI_Comm *comm = &access->file->ordered_comm;
    MPI_Group group;
    if (*comm == MPI_COMM_NULL && PMPI_File_get_group(access->handle, &group) == MPI_SUCCESS) {
        if (PMPI_Comm_create_group(MPI_COMM_WORLD, group, 0, comm))
            *comm = MPI_COMM_NULL;
        PMPI_Group_free(&group);
    }
    return *comm;
}

/* First etype of this rank in an ordered call, behind those of lower ranks. */
static uint64_t ordered_position(access_t *access)
{
    int is_first = !access->file->members->rank;
    uint64_t base = is_first ? shared_position(access) : 0, before = base;
    uint64_t mine = base + etypes(access);
    MPI_Comm comm = access->file->members->size > 1 ? members_of(access) : MPI_COMM_NULL;
    if (comm != MPI_COMM_NULL && PMPI_Exscan(&mine, &before, 1, MPI_UINT64_T, MPI_SUM, comm))
        before = 0;
    return is_first ? base : before;
}

/* Describes the access of a call before the call. */
static access_t begin(MPI_File handle, int flags, enum pointer pointer, MPI_Offset offset,
                      MPI_Count count, MPI_Datatype type)
{
    access_t access = {file_of(handle), handle, flags, pointer, 0, 0};
    if (!access.file)
        return access;
    access.bytes = bytes_in_file(access.file, count, type);
    if (pointer == ORDERED)
        access.first = ordered_position(&access);
    else if (pointer == INDIVIDUAL && !PMPI_File_get_position(handle, &offset))
        access.first = (uint64_t)offset;
    else if (pointer == EXPLICIT)
        access.first = (uint64_t)offset;
    return access;
}

/* Position of an independent call that has moved the shared file pointer. Other ranks may have moved it
 * since, so the order of the ranks is not known exactly. */
static void find_shared(access_t *access)
{
    uint64_t after, mine = etypes(access);
    access->file->sequential += mine;
    after = shared_position(access);
    access->first = after > mine ? after - mine : 0;
}

/* ---- Events -------------------------------------------------------------------------------- */

/* Part of the file that an access moves, to be freed; NULL for nothing. */
static unisono_part_t *part_of(const access_t *access)
{
    const file_t *file = access->file;
    unisono_part_t *part = NULL;
    int64_t memory_base;
    uint64_t first = access->first * file->etype_bytes;
    if (!access->bytes || !layout_facts(file->layout).bytes)
        return NULL;
    if (!layout_facts(file->layout).is_dense) {
        if (!layout_part(file->layout, file->displacement, first, access->bytes, NULL,
                         &memory_base, &part))
            return part;
        note("accesses that have more than 2^20 pieces");
        first = layout_file_offset(file->layout, first);
    }
    if (unisono_part_contiguous(file->displacement + first, access->bytes, &part))
        return NULL;
    return part;
}

/* Writes an access. number: of the request of an access that only begins. */
static void write_transfer(access_t *access, uint32_t number)
{
    if (access->pointer == SHARED) {
        clock_depends();
        find_shared(access);
    }
    unisono_part_t *part = part_of(access);
    WRITE_EVENT(transfer, clock_times(), access->file->number, access->flags, part, number);
    if (part)
        unisono_part_free(part);
}

/* True for an access that belongs in the trace. A failed collective one is written without data. */
static int is_made(access_t *access, int code)
{
    if (!access->file || (code && !(access->flags & ALL)))
        return 0;
    if (code)
        access->bytes = 0;
    return 1;
}

static int ended(access_t *access, int code, const MPI_Status *status)
{
    if (!is_made(access, code))
        return code;
    if (!code && !(access->flags & WRITE) && access->file->representation == NATIVE) {
        uint64_t found = status_bytes(status, access->bytes);
        access->bytes = found < access->bytes ? found : access->bytes;
    }
    write_transfer(access, UNISONO_TRACE_NO_REQUEST);
    return code;
}

static int begun(access_t *access, int code, const MPI_Request *handle)
{
    if (!is_made(access, code))
        return code;
    request_t *request = code ? NULL : request_add(*handle, OTHER, NULL);
    write_transfer(access, request ? request->number : UNISONO_TRACE_NO_REQUEST);
    return code;
}

static int split_begun(access_t *access, int code)
{
    file_t *file = access->file;
    if (!is_made(access, code))
        return code;
    if (!code && !file->has_split) {
        file->has_split = 1;
        file->split = number_take();
    }
    write_transfer(access, file->has_split ? file->split : UNISONO_TRACE_NO_REQUEST);
    return code;
}

static int split_ended(MPI_File handle, int code)
{
    file_t *file = file_of(handle);
    if (!file || !file->has_split)
        return code;
    file->has_split = 0;
    WRITE_EVENT(wait, clock_times(), &file->split, 1);
    number_return(file->split);
    return code;
}

/* ---- Calls --------------------------------------------------------------------------------- */

#define DATA(count_type) void *buffer, count_type count, MPI_Datatype type
#define BEGIN(bits, pointer, offset) begin(handle, bits, pointer, offset, count, type)

/* Forms of the table: each defines one call. */
#define AT(name, bits, count_type, pointer)                                                        \
    static int call_File_##name(MPI_File handle, MPI_Offset offset, DATA(count_type),              \
                                MPI_Status *status)                                                \
    {                                                                                              \
        MPI_Status own = {0}, *used = status == MPI_STATUS_IGNORE ? &own : status;                 \
        access_t access = BEGIN(bits, pointer, offset);                                            \
        int code = RUN(File_##name, handle, offset, buffer, count, type, used);                    \
        return ended(&access, code, used);                                                         \
    }
#define IAT(name, bits, count_type, pointer)                                                       \
    static int call_File_##name(MPI_File handle, MPI_Offset offset, DATA(count_type),              \
                                MPI_Request *request)                                              \
    {                                                                                              \
        access_t access = BEGIN(bits, pointer, offset);                                            \
        int code = RUN(File_##name, handle, offset, buffer, count, type, request);                 \
        return begun(&access, code, request);                                                      \
    }
#define AT_BEGIN(name, bits, count_type, pointer)                                                  \
    static int call_File_##name(MPI_File handle, MPI_Offset offset, DATA(count_type))              \
    {                                                                                              \
        access_t access = BEGIN(bits, pointer, offset);                                            \
        int code = RUN(File_##name, handle, offset, buffer, count, type);                          \
        return split_begun(&access, code);                                                         \
    }
#define NEXT(name, bits, count_type, pointer)                                                      \
    static int call_File_##name(MPI_File handle, DATA(count_type), MPI_Status *status)             \
    {                                                                                              \
        MPI_Status own = {0}, *used = status == MPI_STATUS_IGNORE ? &own : status;                 \
        access_t access = BEGIN(bits, pointer, 0);                                                 \
        int code = RUN(File_##name, handle, buffer, count, type, used);                            \
        return ended(&access, code, used);                                                         \
    }
#define INEXT(name, bits, count_type, pointer)                                                     \
    static int call_File_##name(MPI_File handle, DATA(count_type), MPI_Request *request)           \
    {                                                                                              \
        access_t access = BEGIN(bits, pointer, 0);                                                 \
        int code = RUN(File_##name, handle, buffer, count, type, request);                         \
        return begun(&access, code, request);                                                      \
    }
#define NEXT_BEGIN(name, bits, count_type, pointer)                                                \
    static int call_File_##name(MPI_File handle, DATA(count_type))                                 \
    {                                                                                              \
        access_t access = BEGIN(bits, pointer, 0);                                                 \
        int code = RUN(File_##name, handle, buffer, count, type);                                  \
        return split_begun(&access, code);                                                         \
    }
#define END(name)                                                                                  \
    static int call_File_##name(MPI_File handle, void *buffer, MPI_Status *status)                 \
    {                                                                                              \
        int code = RUN(File_##name, handle, buffer, status);                                       \
        return split_ended(handle, code);                                                          \
    }

#define ACCESS(n, name, letters, form, bits, pointer)                                              \
    form(name, bits, int, pointer)                                                                 \
    form(name##_c, bits, MPI_Count, pointer)
#define SPLIT_ACCESS(n, name, letters, form, bits, pointer)                                        \
    form(name##_begin, bits, int, pointer)                                                         \
    form(name##_begin_c, bits, MPI_Count, pointer)                                                 \
    END(name##_end)
#include "../accesses.def"

void accesses_enter(function_t **functions)
{
#define ACCESS(n, name, letters, form, bits, pointer)                                              \
    ENTER(File_##name);                                                                            \
    ENTER(File_##name##_c);
#define SPLIT_ACCESS(n, name, letters, form, bits, pointer)                                        \
    ENTER(File_##name##_begin);                                                                    \
    ENTER(File_##name##_begin_c);                                                                  \
    ENTER(File_##name##_end);
#include "../accesses.def"
}
