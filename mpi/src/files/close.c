/* close.c - closing and deleting files. */
#include "../errors/errors.h"
#include "../process/names.h"
#include "../transfers/transfers.h"
#include "files.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Compares when the members began their collective calls, for the report. Collective. */
static void compare_starts(open_file_t *file)
{
    long counts[2] = {file->start_count, -file->start_count}, all[2];
    long *starts, *latest;
    double waited = 0;
    if (!file->report || file->size == 1
        || members_maximum(file, CALL_File_close, counts, all, 2) != MPI_SUCCESS
        || all[0] != -all[1] || !all[0])
        return;
    starts = calloc((size_t)file->start_count, sizeof *starts);
    latest = calloc((size_t)file->start_count, sizeof *latest);
    for (int i = 0; starts && i < file->start_count; i++)
        starts[i] = (long)(file->starts[i] * 1e6);
    if (starts && latest
        && members_maximum(file, CALL_File_close, starts, latest, file->start_count) == MPI_SUCCESS)
        for (int i = 0; i < file->start_count; i++)
            waited += (double)(latest[i] - starts[i]) * 1e-6;
    free(starts);
    free(latest);
    report_waited(file, waited);
}

static int remove_named(const open_file_t *file)
{
    char path[NAME_BYTES + 1];
    if (!file->is_in_place)
        return unisono_remove(file->unisono, file->name);
    snprintf(path, sizeof path, "/%s", file->name);
    return unlink(path);
}

/* Closes the file at the servers, which write behind: failures after a call are reported here at the
 * latest. Waits for a file in place, which has all data then; others are closed later. */
static int close_at_servers(open_file_t *file)
{
    int code = MPI_SUCCESS;
    if (file->is_in_place) {
        unisono_file_t *closed = file->file;
        file->file = NULL;
        return unisono_close(closed) ? class_of_failure(file, CALL_File_close) : MPI_SUCCESS;
    }
    if (file->has_unreported && unisono_flush(file->file))
        code = class_of_failure(file, CALL_File_close);
    return closing_begin(file) ? class_of_failure(file, CALL_File_close) : code;
}

static int close_file(MPI_File *handle)
{
    open_file_t *file = file_of(*handle);
    const int call = CALL_File_close;
    uint64_t bytes;
    int code = MPI_SUCCESS;
    if (!file)
        return fail(NULL, MPI_ERR_FILE);
    *handle = MPI_FILE_NULL;
    requests_end(file);
    compare_starts(file);
    if (file->split) {
        transfer_end(file->split, &bytes);
        file->split = NULL;
        code = wrong(MPI_ERR_OTHER, call, "a split collective operation is still active",
                     "call its end routine before MPI_File_close");
    }
    const int closed = close_at_servers(file);
    code = closed == MPI_SUCCESS ? code : closed;
    /* Other programs find a file in place when all members have closed it. */
    if (file->is_in_place && !(file->amode & MPI_MODE_DELETE_ON_CLOSE))
        code = agree(file, call, code);
    /* Only this mode needs to wait: the file is removed when all members have closed it. */
    if (file->amode & MPI_MODE_DELETE_ON_CLOSE) {
        closings_end();
        code = agree(file, call, code);
        int removed = MPI_SUCCESS;
        if (!file->rank && remove_named(file))
            removed = class_of_failure(file, call);
        removed = agree_again(file, removed);
        code = code == MPI_SUCCESS ? removed : code;
    }
    code = fail(file, code);
    file_free(file);
    return code;
}

typedef int delete_t(const char *, MPI_Info);

/* 1 for a link to a file below a mount. */
static int is_link(const char *name)
{
    mounted_name_t found;
    struct stat link;
    return lstat(name_bare(name), &link) == 0 && S_ISLNK(link.st_mode) && name_mounted(name, &found) > 0;
}

static int delete_file(const char *name, MPI_Info info)
{
    char *meant;
    unisono_t *unisono;
    closings_end();
    /* It is the link that unlink would delete. */
    if (is_link(name) || name_is_in_place(name))
        return REAL(File_delete, delete_t)(name, info);
    int code = file_find(name, CALL_File_delete, &unisono, &meant);
    if (code == MPI_SUCCESS && unisono_remove(unisono, meant))
        code = class_of_failure(NULL, CALL_File_delete);
    free(meant);
    return fail(NULL, code);
}

void close_enter(function_t **functions)
{
    ENTER(File_close, close_file);
    ENTER(File_delete, delete_file);
}
