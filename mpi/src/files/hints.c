/* hints.c - hints of open files: info objects of MPI. */
#include "../errors/errors.h"
#include "files.h"

#include <stdio.h>

int hints_give(open_file_t *file, MPI_Info info, int call)
{
    int count = 0;
    if (info == MPI_INFO_NULL)
        return MPI_SUCCESS;
    if (PMPI_Info_get_nkeys(info, &count) != MPI_SUCCESS)
        return wrong(MPI_ERR_INFO, call, "the info object cannot be read", "pass a valid one");
    for (int i = 0; i < count; i++) {
        char key[MPI_MAX_INFO_KEY + 1] = "", value[MPI_MAX_INFO_VAL + 1] = "";
        int is_there = 0;
        if (PMPI_Info_get_nthkey(info, i, key) != MPI_SUCCESS
            || PMPI_Info_get(info, key, MPI_MAX_INFO_VAL, value, &is_there) != MPI_SUCCESS)
            return wrong(MPI_ERR_INFO, call, "the info object cannot be read", "pass a valid one");
        if (is_there && unisono_hints_set(file->hints, key, value))
            return class_of_failure(NULL, call);
    }
    pthread_mutex_lock(&file->lock);
    int error = unisono_hints_apply(file->hints, &file->options, NULL, &file->is_independent);
    pthread_mutex_unlock(&file->lock);
    return error ? class_of_failure(NULL, call) : MPI_SUCCESS;
}

static int set_info(MPI_File handle, MPI_Info info)
{
    open_file_t *file = file_of(handle);
    if (!file)
        return fail(NULL, MPI_ERR_FILE);
    int code = hints_give(file, info, CALL_File_set_info);
    return fail(file, agree(file, CALL_File_set_info, code));
}

static int get_info(MPI_File handle, MPI_Info *info)
{
    open_file_t *file = file_of(handle);
    if (!file)
        return fail(NULL, MPI_ERR_FILE);
    int code = PMPI_Info_create(info);
    size_t count = unisono_hints_count(file->hints);
    for (size_t i = 0; i < count && code == MPI_SUCCESS; i++) {
        const char *key, *value;
        if (unisono_hints_get(file->hints, i, &key, &value)) {
            code = class_of_failure(file, CALL_File_get_info);
        } else {
            char shortened[MPI_MAX_INFO_VAL];
            snprintf(shortened, sizeof shortened, "%s", value);
            code = PMPI_Info_set(*info, key, shortened);
        }
    }
    return fail(file, code);
}

void hints_enter(function_t **functions)
{
    ENTER(File_set_info, set_info);
    ENTER(File_get_info, get_info);
}
