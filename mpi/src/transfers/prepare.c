/* prepare.c - checks of accesses, and their lengths in memory and in the file. */
#include "../errors/errors.h"
#include "transfers.h"

static int check(const open_file_t *file, const access_t *access)
{
    if (file->is_view_refused)
        return wrong(MPI_ERR_IO, access->call, "the last MPI_File_set_view of this file has failed",
                     "set a valid view; see the error of MPI_File_set_view");
    if (access->count < 0)
        return wrong(MPI_ERR_COUNT, access->call, "the count is negative", "give a count of 0 or more");
    if (access->flags & WRITE && file->amode & MPI_MODE_RDONLY)
        return wrong(MPI_ERR_READ_ONLY, access->call, "the file was opened with MPI_MODE_RDONLY",
                     "open it with MPI_MODE_RDWR or MPI_MODE_WRONLY");
    if (!(access->flags & WRITE) && file->amode & MPI_MODE_WRONLY)
        return wrong(MPI_ERR_ACCESS, access->call, "the file was opened with MPI_MODE_WRONLY",
                     "open it with MPI_MODE_RDWR or MPI_MODE_RDONLY");
    return MPI_SUCCESS;
}

static int compute_lengths(const open_file_t *file, access_t *access)
{
    int code = layout_of(file, access->call, access->type, &access->memory);
    if (code != MPI_SUCCESS)
        return code;
    uint64_t size = layout_facts(access->memory).bytes, in_file = size;
    if (file->view.representation == EXTERNAL32) {
        layout_t *external = NULL;
        if (layout_decode(access->type, EXTERNAL32, &external))
            return wrong(MPI_ERR_CONVERSION, access->call, "a datatype has no representation in external32",
                         "use the native representation, or other datatypes");
        in_file = layout_facts(external).bytes;
        layout_release(external);
    }
    if (__builtin_mul_overflow(size, (uint64_t)access->count, &access->memory_bytes)
        || __builtin_mul_overflow(in_file, (uint64_t)access->count, &access->file_bytes))
        return wrong(MPI_ERR_COUNT, access->call, "the access is longer than 2^64 bytes",
                     "give a smaller count");
    uint64_t etype_bytes = file->view.etype_bytes, bytes = access->file_bytes;
    if (etype_bytes ? bytes % etype_bytes : bytes)
        return wrong(MPI_ERR_TYPE, access->call, "the access is not a whole number of etypes",
                     "build the datatype from the etype of the view");
    access->etypes = etype_bytes ? bytes / etype_bytes : 0;
    return MPI_SUCCESS;
}

int access_prepare(open_file_t *file, access_t *access)
{
    pthread_mutex_lock(&file->lock);
    int code = check(file, access);
    if (code == MPI_SUCCESS)
        code = compute_lengths(file, access);
    pthread_mutex_unlock(&file->lock);
    if (code != MPI_SUCCESS)
        access->memory_bytes = access->file_bytes = access->etypes = 0;
    return code;
}
