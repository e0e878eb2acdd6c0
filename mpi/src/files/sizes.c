/* sizes.c - sizes and modes of open files, and MPI_File_sync. */
#include "../errors/errors.h"
#include "files.h"

/* ---- Sizes --------------------------------------------------------------------------------- */

/* Changes the size, or only extends the file. */
static int resize(MPI_File handle, MPI_Offset size, int call, int extends)
{
    open_file_t *file = file_of(handle);
    uint64_t now = 0;
    int code = MPI_SUCCESS;
    if (!file)
        return fail(NULL, MPI_ERR_FILE);
    if (size < 0)
        code = wrong(MPI_ERR_ARG, call, "the size is negative", "give a size of 0 or more");
    else if (file->amode & MPI_MODE_RDONLY)
        code = wrong(MPI_ERR_READ_ONLY, call, "the file was opened with MPI_MODE_RDONLY",
                     "open it with MPI_MODE_RDWR or MPI_MODE_WRONLY");
    /* Earlier writes of all members have ended after this. */
    code = agree(file, call, code);
    if (code == MPI_SUCCESS && !file->rank) {
        int error = extends ? unisono_size(file->file, &now) : 0;
        if (!error && (!extends || now < (uint64_t)size))
            error = unisono_truncate(file->file, (uint64_t)size);
        code = error ? class_of_failure(file, call) : code;
    }
    code = agree_again(file, code);
    /* Refreshes the size that the library of this process knows. */
    if (code == MPI_SUCCESS && file->rank && unisono_size(file->file, &now))
        code = class_of_failure(file, call);
    return fail(file, code);
}

static int set_size(MPI_File handle, MPI_Offset size)
{
    return resize(handle, size, CALL_File_set_size, 0);
}

static int preallocate(MPI_File handle, MPI_Offset size)
{
    return resize(handle, size, CALL_File_preallocate, 1);
}

static int get_size(MPI_File handle, MPI_Offset *size)
{
    open_file_t *file = file_of(handle);
    uint64_t bytes = 0;
    if (!file)
        return fail(NULL, MPI_ERR_FILE);
    if (unisono_size(file->file, &bytes))
        return fail(file, class_of_failure(file, CALL_File_get_size));
    *size = (MPI_Offset)bytes;
    return MPI_SUCCESS;
}

/* ---- Modes --------------------------------------------------------------------------------- */

static int get_group(MPI_File handle, MPI_Group *group)
{
    open_file_t *file = file_of(handle);
    if (!file)
        return fail(NULL, MPI_ERR_FILE);
    return fail(file, PMPI_Comm_group(file->comm, group));
}

static int get_amode(MPI_File handle, int *amode)
{
    open_file_t *file = file_of(handle);
    if (!file)
        return fail(NULL, MPI_ERR_FILE);
    *amode = file->amode;
    return MPI_SUCCESS;
}

static int set_atomicity(MPI_File handle, int flag)
{
    open_file_t *file = file_of(handle);
    const int call = CALL_File_set_atomicity;
    if (!file)
        return fail(NULL, MPI_ERR_FILE);
    int code = agree(file, call, MPI_SUCCESS);
    pthread_mutex_lock(&file->lock);
    file->is_atomic = code == MPI_SUCCESS ? !!flag : file->is_atomic;
    pthread_mutex_unlock(&file->lock);
    return fail(file, agree_again(file, code));
}

static int get_atomicity(MPI_File handle, int *flag)
{
    open_file_t *file = file_of(handle);
    if (!file)
        return fail(NULL, MPI_ERR_FILE);
    *flag = file->is_atomic;
    return MPI_SUCCESS;
}

static int sync_file(MPI_File handle)
{
    open_file_t *file = file_of(handle);
    const int call = CALL_File_sync;
    double started_at = now_s();
    if (!file)
        return fail(NULL, MPI_ERR_FILE);
    /* Rank 0 stores the data of all members, whose earlier writes have ended. */
    int are_unsynced = 0;
    unisono_has_unsynced(file->file, &are_unsynced);
    int code = agree_on(file, call, MPI_SUCCESS, &are_unsynced);
    if (code == MPI_SUCCESS && !file->rank && unisono_fsync(file->file))
        code = class_of_failure(file, call);
    code = agree_again(file, code);
    /* Servers that were lost before may have lost writes of members which only these know. */
    if (code == MPI_SUCCESS && are_unsynced) {
        if (file->rank && unisono_confirm_fsync(file->file))
            code = class_of_failure(file, call);
        code = agree_again(file, code);
    }
    report_time(file, call, started_at);
    return fail(file, code);
}

void sizes_enter(function_t **functions)
{
    ENTER(File_set_size, set_size);
    ENTER(File_preallocate, preallocate);
    ENTER(File_get_size, get_size);
    ENTER(File_get_group, get_group);
    ENTER(File_get_amode, get_amode);
    ENTER(File_set_atomicity, set_atomicity);
    ENTER(File_get_atomicity, get_atomicity);
    ENTER(File_sync, sync_file);
}
