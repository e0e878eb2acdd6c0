/* open_file.c - open files: their fields before MPI_File_open and after MPI_File_close. */
#include "../errors/errors.h"
#include "../transfers/transfers.h"
#include "files.h"

#include <stdlib.h>

open_file_t *file_new(void)
{
    open_file_t *file = calloc(1, sizeof *file);
    if (!file)
        return NULL;
    if (!handle_take(file)) {
        free(file);
        return NULL;
    }
    file->comm = MPI_COMM_NULL;
    file->is_in_world = has_world();
    file->errhandler = MPI_ERRORS_RETURN;
    file->view.etype = file->view.filetype = MPI_DATATYPE_NULL;
    pthread_mutex_init(&file->lock, NULL);
    return file;
}

void file_free(open_file_t *file)
{
    unisono_group_free(file->group);
    unisono_close(file->file);
    unisono_hints_free(file->hints);
    view_release(&file->view);
    errhandler_free(file);
    if (file->comm != MPI_COMM_NULL)
        PMPI_Comm_free(&file->comm);
    pthread_mutex_destroy(&file->lock);
    handle_return(file);
    free(file->starts);
    free(file->name);
    free(file);
}
