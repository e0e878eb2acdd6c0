/* file_handles.c - handles of open files: addresses, and numbers in Fortran. */
#include "files.h"

static file_handle_t *handles;
static open_file_t *files[FILES_MAX];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void handles_set(file_handle_t *given)
{
    handles = given;
}

int handle_take(open_file_t *file)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < FILES_MAX && !file->handle; i++)
        if (!files[i]) {
            files[i] = file;
            file->handle = &handles[i];
        }
    pthread_mutex_unlock(&lock);
    return file->handle != NULL;
}

void handle_return(open_file_t *file)
{
    pthread_mutex_lock(&lock);
    files[file->handle - handles] = NULL;
    pthread_mutex_unlock(&lock);
}

MPI_File handle_of(const open_file_t *file)
{
    return (MPI_File)(void *)file->handle;
}

open_file_t *file_of(MPI_File handle)
{
    size_t number = (size_t)((file_handle_t *)(void *)handle - handles);
    return number < FILES_MAX ? __atomic_load_n(&files[number], __ATOMIC_ACQUIRE) : NULL;
}

int file_to_fortran(void *file)
{
    return FORTRAN_BASE + (int)((file_handle_t *)file - handles);
}

void *file_from_fortran(int number)
{
    return &handles[number - FORTRAN_BASE];
}
