/* files.c - opening, closing and deleting files; their views and sizes. */
#include "recording.h"

#include "../process/names.h"

#include <stdlib.h>
#include <string.h>

static handle_table_t table;

file_t *file_of(MPI_File handle)
{
    return (file_t *)table_find(&table, WORD(handle));
}

/* Name in the trace, to be freed: for a file of an instance, its name there. */
static char *name_in_trace(const char *name)
{
    mounted_name_t found;
    if (name_mounted(name, &found) > 0)
        return strdup(found.name);
    char *meant = name_is_taken(name) ? name_meaning(name) : NULL;
    return meant ? meant : strdup(name);
}

/* ---- Opening and closing ------------------------------------------------------------------- */

/* Size of a file that all members have just opened. They continue when the first one knows it, so that
 * none changes the size earlier. */
static uint64_t size_at_open(MPI_File handle, MPI_Comm comm, const communicator_t *communicator)
{
    MPI_Offset bytes = 0;
    if (!communicator->rank && PMPI_File_get_size(handle, &bytes))
        bytes = 0;
    if (communicator->size > 1)
        PMPI_Bcast(&bytes, sizeof bytes, MPI_BYTE, 0, comm);
    return (uint64_t)bytes;
}

static file_t *file_new(MPI_File handle, const communicator_t *communicator, const char *name,
                        int amode)
{
    file_t *file = calloc(1, sizeof *file);
    if (!file || layout_decode(MPI_BYTE, NATIVE, &file->layout)
        || !(file->name = name_in_trace(name))
        || !(file->members = communicator_twin(communicator))) {
        stream_fail("not enough memory");
        return NULL;
    }
    file->ordered_comm = MPI_COMM_NULL;
    file->amode = amode;
    file->etype_bytes = 1;
    table_add(&table, &file->entry, WORD(handle));
    return file;
}

static void file_free(file_t *file)
{
    table_remove(&table, &file->entry);
    if (file->ordered_comm != MPI_COMM_NULL)
        PMPI_Comm_free(&file->ordered_comm);
    communicator_release(file->members);
    layout_release(file->layout);
    free(file->name);
    free(file);
}

static int call_File_open(MPI_Comm comm, const char *name, int amode, MPI_Info info,
                          MPI_File *handle)
{
    communicator_t *communicator;
    int code = RUN(File_open, comm, name, amode, info, handle);
    if (code || !(communicator = communicator_of(comm)))
        return code;
    uint64_t bytes = size_at_open(*handle, comm, communicator);
    file_t *file = file_new(*handle, communicator, name, amode);
    if (!file)
        return code;
    file->number = (uint32_t)WRITE_EVENT(file, file->name);
    int creates = amode & MPI_MODE_CREATE ? UNISONO_TRACE_CREATES : 0;
    int is_fresh = creates && !bytes ? UNISONO_TRACE_IS_FRESH : 0;
    WRITE_EVENT(open, clock_times(), file->number, communicator->number, creates | is_fresh, bytes);
    return code;
}

static int call_File_close(MPI_File *handle)
{
    file_t *file = file_of(*handle);
    int code = RUN(File_close, handle);
    if (!file)
        return code;
    WRITE_EVENT(close, clock_times(), file->number);
    if (file->amode & MPI_MODE_DELETE_ON_CLOSE && !file->members->rank)
        WRITE_EVENT(delete, clock_times(), file->name);
    file_free(file);
    return code;
}

static int call_File_delete(const char *name, MPI_Info info)
{
    int code = RUN(File_delete, name, info);
    char *deleted = code ? NULL : name_in_trace(name);
    if (deleted)
        WRITE_EVENT(delete, clock_times(), deleted);
    free(deleted);
    return code;
}

/* ---- Views --------------------------------------------------------------------------------- */

/* Displacement of the view, for a program that gives MPI_DISPLACEMENT_CURRENT. */
static uint64_t current_displacement(MPI_File handle)
{
    MPI_Offset displacement = 0;
    MPI_Datatype types[2];
    char representation[MPI_MAX_DATAREP_STRING + 1];
    if (PMPI_File_get_view(handle, &displacement, &types[0], &types[1], representation))
        return 0;
    for (int i = 0; i < 2; i++) {
        int integers, addresses, inner, combiner = MPI_COMBINER_NAMED;
        PMPI_Type_get_envelope(types[i], &integers, &addresses, &inner, &combiner);
        if (combiner != MPI_COMBINER_NAMED)
            PMPI_Type_free(&types[i]);
    }
    return (uint64_t)displacement;
}

static void take_view(file_t *file, uint64_t displacement, MPI_Datatype etype,
                      MPI_Datatype filetype, const char *representation)
{
    layout_t *etype_layout = NULL, *layout = NULL;
    file->representation = strcmp(representation, "external32") ? NATIVE : EXTERNAL32;
    if (layout_decode(etype, file->representation, &etype_layout)
        || layout_decode(filetype, file->representation, &layout)) {
        layout_release(etype_layout);
        note("views whose datatypes MPI cannot describe");
        return;
    }
    layout_release(file->layout);
    file->layout = layout;
    file->displacement = displacement;
    file->etype_bytes = layout_facts(etype_layout).bytes;
    layout_release(etype_layout);
}

/* Writes an agreement for a call that is collective because it changes shared state. numbers: those that
 * each member tells. */
static int joined(int code, MPI_File handle, uint64_t numbers)
{
    const file_t *file = file_of(handle);
    if (!code && file)
        agreed(file->members, numbers * sizeof(long));
    return code;
}

static int call_File_set_view(MPI_File handle, MPI_Offset displacement, MPI_Datatype etype,
                              MPI_Datatype filetype, const char *representation, MPI_Info info)
{
    int code = RUN(File_set_view, handle, displacement, etype, filetype, representation, info);
    file_t *file = file_of(handle);
    if (code || !file)
        return code;
    if (displacement == MPI_DISPLACEMENT_CURRENT)
        displacement = (MPI_Offset)current_displacement(handle);
    take_view(file, (uint64_t)displacement, etype, filetype, representation);
    return joined(code, handle, 6);
}

static int call_File_set_info(MPI_File handle, MPI_Info info)
{
    int code = RUN(File_set_info, handle, info);
    return joined(code, handle, 1);
}

static int call_File_set_atomicity(MPI_File handle, int is_atomic)
{
    int code = RUN(File_set_atomicity, handle, is_atomic);
    return joined(code, handle, 1);
}

static int call_File_seek_shared(MPI_File handle, MPI_Offset offset, int whence)
{
    int code = RUN(File_seek_shared, handle, offset, whence);
    return joined(code, handle, 1);
}

/* ---- Sizes --------------------------------------------------------------------------------- */

static int call_File_sync(MPI_File handle)
{
    int code = RUN(File_sync, handle);
    const file_t *file = file_of(handle);
    if (!code && file)
        WRITE_EVENT(sync, clock_times(), file->number);
    return code;
}

static int call_File_set_size(MPI_File handle, MPI_Offset bytes)
{
    int code = RUN(File_set_size, handle, bytes);
    const file_t *file = file_of(handle);
    if (!code && file)
        WRITE_EVENT(set_size, clock_times(), file->number, (uint64_t)bytes, 0);
    return code;
}

static int call_File_preallocate(MPI_File handle, MPI_Offset bytes)
{
    int code = RUN(File_preallocate, handle, bytes);
    const file_t *file = file_of(handle);
    if (!code && file)
        WRITE_EVENT(set_size, clock_times(), file->number, (uint64_t)bytes, 1);
    return code;
}

static int call_File_get_size(MPI_File handle, MPI_Offset *bytes)
{
    int code = RUN(File_get_size, handle, bytes);
    const file_t *file = file_of(handle);
    if (!code && file)
        WRITE_EVENT(get_size, clock_times(), file->number);
    return code;
}

void files_enter(function_t **functions)
{
    ENTER(File_open);
    ENTER(File_close);
    ENTER(File_delete);
    ENTER(File_set_view);
    ENTER(File_set_info);
    ENTER(File_set_atomicity);
    ENTER(File_seek_shared);
    ENTER(File_sync);
    ENTER(File_set_size);
    ENTER(File_preallocate);
    ENTER(File_get_size);
}
