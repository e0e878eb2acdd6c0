/* view.c - file views, and file pointers, which count etypes of the view. */
#include "../errors/errors.h"
#include "transfers.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* ---- Datatypes in memory ------------------------------------------------------------------- */

/* Layouts are attributes of their datatypes, so that MPI frees both together. */
static int layout_key = MPI_KEYVAL_INVALID;
static pthread_once_t layout_key_once = PTHREAD_ONCE_INIT;

static int drop_layout(MPI_Datatype type, int key, void *layout, void *state)
{
    (void)type, (void)key, (void)state;
    layout_release(layout);
    return MPI_SUCCESS;
}

static void make_layout_key(void)
{
    if (PMPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, drop_layout, &layout_key, NULL))
        layout_key = MPI_KEYVAL_INVALID;
}

/* Code for a datatype that cannot be decoded. */
static int undecodable(int call, int error)
{
    if (error == -ENOMEM)
        return wrong(MPI_ERR_NO_MEM, call, "not enough memory for a datatype", "free memory");
    if (error == -E2BIG)
        return wrong(MPI_ERR_TYPE, call, "a datatype has more than 512 nested constructors",
                     "build the datatype with fewer levels");
    if (error == -EOVERFLOW)
        return wrong(MPI_ERR_TYPE, call, "a datatype extends beyond 2^62 bytes",
                     "correct its extent and its displacements");
    return wrong(MPI_ERR_TYPE, call, "a datatype is null or not committed",
                 "call MPI_Type_commit before the datatype is used");
}

/* 1 when a datatype is committed. MPI checks that only in a call that would use the datatype. */
static int is_committed(const open_file_t *file, MPI_Datatype type)
{
    static char nothing;
    return PMPI_Send(&nothing, 1, type, MPI_PROC_NULL, 0, file->comm) == MPI_SUCCESS;
}

int layout_of(const open_file_t *file, int call, MPI_Datatype type, layout_t **layout)
{
    int found = 0;
    *layout = NULL;
    if (type == MPI_DATATYPE_NULL)
        return undecodable(call, -EINVAL);
    /* A key is lost when the last session ends, without notice: only programs with MPI_Init have one. */
    if (file->is_in_world)
        pthread_once(&layout_key_once, make_layout_key);
    const int has_key = file->is_in_world && layout_key != MPI_KEYVAL_INVALID;
    if (has_key && PMPI_Type_get_attr(type, layout_key, layout, &found) == MPI_SUCCESS && found) {
        layout_keep(*layout);
        return MPI_SUCCESS;
    }
    if (!is_committed(file, type))
        return undecodable(call, -EINVAL);
    int error = layout_decode(type, NATIVE, layout);
    if (error)
        return undecodable(call, error);
    if (has_key && PMPI_Type_set_attr(type, layout_key, *layout) == MPI_SUCCESS)
        layout_keep(*layout);
    return MPI_SUCCESS;
}

/* ---- Making views -------------------------------------------------------------------------- */

static int is_named(MPI_Datatype type)
{
    int integers, addresses, types, combiner = MPI_COMBINER_NAMED;
    PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
    return combiner == MPI_COMBINER_NAMED;
}

static int keep_type(MPI_Datatype type, MPI_Datatype *kept)
{
    if (is_named(type)) {
        *kept = type;
        return MPI_SUCCESS;
    }
    return PMPI_Type_dup(type, kept);
}

static void drop_type(MPI_Datatype *type)
{
    if (*type != MPI_DATATYPE_NULL && !is_named(*type))
        PMPI_Type_free(type);
    *type = MPI_DATATYPE_NULL;
}

void view_release(view_t *view)
{
    drop_type(&view->etype);
    drop_type(&view->filetype);
    layout_release(view->layout);
    view->layout = NULL;
}

int view_of_bytes(view_t *view)
{
    *view = (view_t){.etype = MPI_BYTE, .filetype = MPI_BYTE, .etype_bytes = 1};
    return layout_decode(MPI_BYTE, NATIVE, &view->layout) ? MPI_ERR_NO_MEM : MPI_SUCCESS;
}

uint64_t view_etypes_before(const view_t *view, uint64_t offset)
{
    uint64_t size = view->etype_bytes, displacement = view->displacement;
    if (!size || !layout_facts(view->layout).bytes)
        return 0;
    uint64_t bytes = layout_data_before(view->layout, 0,
                                        offset > displacement ? offset - displacement : 0);
    return bytes == UINT64_MAX ? UINT64_MAX : bytes / size + !!(bytes % size);
}

/* Checks a filetype as other libraries do. An etype or a filetype may have no data, and repetitions of a
 * filetype may overlap, because programs often use only one. Error classes are those of ROMIO. */
static int check_filetype(const open_file_t *file, const view_t *view)
{
    const int call = CALL_File_set_view;
    layout_facts_t facts = layout_facts(view->layout);
    int may_write = !(file->amode & MPI_MODE_RDONLY);
    if (!facts.bytes)
        return MPI_SUCCESS;
    if (view->etype_bytes && facts.bytes % view->etype_bytes)
        return wrong(MPI_ERR_ARG, call, "the filetype is not a whole number of etypes",
                     "build the filetype from the etype");
    if (facts.true_start < 0)
        return wrong(MPI_ERR_IO, call, "the filetype has data at a negative displacement",
                     "move its data to 0 or more, and reduce the displacement of the view");
    if (!facts.is_ordered || facts.extent < 0)
        return wrong(MPI_ERR_IO, call, "the displacements of the filetype decrease",
                     "sort the blocks of the filetype by their displacements");
    if (!facts.is_ascending && may_write)
        return wrong(MPI_ERR_IO, call, "blocks of the filetype overlap, and the file is open for writing",
                     "move the blocks apart, or open the file with MPI_MODE_RDONLY");
    return MPI_SUCCESS;
}

/* Byte of the file at the shared file pointer of a sequential file. Earlier calls that move the pointer
 * have ended at all members, and no later one has begun. */
static int current_displacement(open_file_t *file, MPI_Offset *displacement)
{
    const int call = CALL_File_set_view;
    uint64_t shared = 0;
    long result[2] = {0, MPI_SUCCESS};
    int code = agree(file, call, MPI_SUCCESS);
    if (code == MPI_SUCCESS && !file->rank) {
        if (unisono_counter_get(file->group, &shared))
            result[1] = class_of_failure(file, call);
        result[0] = (long)shared;
    }
    if (code == MPI_SUCCESS && file->size > 1)
        code = members_broadcast(file, result, 2, 0);
    const view_t *view = &file->view;
    *displacement = (MPI_Offset)(view->displacement
                                 + layout_file_offset(view->layout,
                                                      (uint64_t)result[0] * view->etype_bytes));
    return code == MPI_SUCCESS ? (int)result[1] : code;
}

static int make_view(const open_file_t *file, MPI_Offset displacement, MPI_Datatype etype,
                     MPI_Datatype filetype, const char *representation, view_t *view)
{
    const int call = CALL_File_set_view;
    if (displacement < 0)
        return wrong(MPI_ERR_ARG, call, "the displacement is negative",
                     "give 0 or more; MPI_DISPLACEMENT_CURRENT needs MPI_MODE_SEQUENTIAL");
    if (etype == MPI_DATATYPE_NULL || filetype == MPI_DATATYPE_NULL || !is_committed(file, etype)
        || !is_committed(file, filetype))
        return undecodable(call, -EINVAL);
    if (!representation || (strcmp(representation, "native") && strcmp(representation, "internal")
                            && strcmp(representation, "external32")))
        return wrong(MPI_ERR_UNSUPPORTED_DATAREP, call, "the data representation is unknown",
                     "give native, internal or external32");
    view->displacement = (uint64_t)displacement;
    view->representation = strcmp(representation, "external32") ? NATIVE : EXTERNAL32;
    layout_t *etype_layout = NULL;
    int error = layout_decode(etype, view->representation, &etype_layout);
    if (!error)
        error = layout_decode(filetype, view->representation, &view->layout);
    view->etype_bytes = error ? 0 : layout_facts(etype_layout).bytes;
    layout_release(etype_layout);
    if (error)
        return undecodable(call, error);
    int code = check_filetype(file, view);
    if (code == MPI_SUCCESS)
        code = keep_type(etype, &view->etype);
    return code == MPI_SUCCESS ? keep_type(filetype, &view->filetype) : code;
}

/* Code on which the members agree. They must have the same data representation, and the same etype size
 * where etypes have data. Sets file->has_moved_shared when any member has moved the shared file
 * pointer. */
static int agree_on_view(open_file_t *file, const view_t *view, int code)
{
    long size = (long)view->etype_bytes, representation = (long)view->representation;
    long mine[6] = {code, size, size ? -size : LONG_MIN, representation, -representation,
                    file->has_moved_shared};
    long all[6];
    if (file->size > 1) {
        int result = members_maximum(file, CALL_File_set_view, mine, all, 6);
        if (result != MPI_SUCCESS)
            return result;
        code = (int)all[0];
        file->has_moved_shared = (int)all[5];
        if (code == MPI_SUCCESS && ((all[1] && all[1] != -all[2]) || all[3] != -all[4])) {
            if (!file->rank)
                wrong(MPI_ERR_NOT_SAME, CALL_File_set_view,
                      "the processes gave etypes of different sizes, or different data "
                      "representations", "give the same etype and representation on every process");
            return MPI_ERR_NOT_SAME;
        }
    }
    return code;
}

/* Sets the shared file pointer to 0 for a new view, after all members have used it with the old one
 * and before any uses it with the new one. */
static int reset_shared(open_file_t *file)
{
    const int call = CALL_File_set_view;
    if (!file->has_moved_shared)
        return MPI_SUCCESS;
    int is_set = file->rank || !unisono_counter_set(file->group, 0);
    int code = agree_again(file, is_set ? MPI_SUCCESS : class_of_failure(file, call));
    file->has_moved_shared = code != MPI_SUCCESS;
    return code;
}

static int set_view(MPI_File handle, MPI_Offset displacement, MPI_Datatype etype,
                    MPI_Datatype filetype, const char *representation, MPI_Info info)
{
    open_file_t *file = file_of(handle);
    view_t view;
    if (!file)
        return fail(NULL, MPI_ERR_FILE);
    MPI_Offset current = displacement;
    int code = MPI_SUCCESS;
    /* Collective on a sequential file in any case: only some members may give the current displacement. */
    if (file->amode & MPI_MODE_SEQUENTIAL)
        code = current_displacement(file, &current);
    if (displacement != MPI_DISPLACEMENT_CURRENT)
        current = displacement;
    view = (view_t){.etype = MPI_DATATYPE_NULL, .filetype = MPI_DATATYPE_NULL};
    if (code == MPI_SUCCESS)
        code = make_view(file, current, etype, filetype, representation, &view);
    if (code == MPI_SUCCESS)
        code = hints_give(file, info, CALL_File_set_view);
    code = agree_on_view(file, &view, code);
    if (code == MPI_SUCCESS)
        code = reset_shared(file);
    pthread_mutex_lock(&file->lock);
    file->is_view_refused = code != MPI_SUCCESS;
    view_t dropped = view;
    if (code == MPI_SUCCESS) {
        dropped = file->view;
        file->view = view;
        file->position = 0;
    }
    pthread_mutex_unlock(&file->lock);
    view_release(&dropped);
    return fail(file, code);
}

static int get_view(MPI_File handle, MPI_Offset *displacement, MPI_Datatype *etype,
                    MPI_Datatype *filetype, char *representation)
{
    open_file_t *file = file_of(handle);
    if (!file)
        return fail(NULL, MPI_ERR_FILE);
    *displacement = (MPI_Offset)file->view.displacement;
    strcpy(representation, file->view.representation == EXTERNAL32 ? "external32" : "native");
    int code = keep_type(file->view.etype, etype);
    if (code == MPI_SUCCESS)
        code = keep_type(file->view.filetype, filetype);
    return fail(file, code);
}

/* ---- Positions ----------------------------------------------------------------------------- */

static int type_extent(MPI_File handle, MPI_Datatype type, int64_t *extent)
{
    open_file_t *file = file_of(handle);
    layout_t *layout = NULL;
    if (!file)
        return fail(NULL, MPI_ERR_FILE);
    int error = layout_decode(type, file->view.representation, &layout);
    if (error)
        return fail(file, undecodable(CALL_File_get_type_extent, error));
    *extent = layout_facts(layout).extent;
    layout_release(layout);
    return MPI_SUCCESS;
}

static int get_type_extent(MPI_File handle, MPI_Datatype type, MPI_Aint *extent)
{
    int64_t found = 0;
    int code = type_extent(handle, type, &found);
    *extent = (MPI_Aint)found;
    return code;
}

static int get_type_extent_c(MPI_File handle, MPI_Datatype type, MPI_Count *extent)
{
    int64_t found = 0;
    int code = type_extent(handle, type, &found);
    *extent = (MPI_Count)found;
    return code;
}

/* Position that a seek call names, in etypes. */
static int seek_target(open_file_t *file, int call, MPI_Offset offset, int whence,
                       uint64_t current, uint64_t *target)
{
    uint64_t base = 0, bytes = 0;
    if (whence == MPI_SEEK_CUR) {
        base = current;
    } else if (whence == MPI_SEEK_END) {
        if (unisono_size(file->file, &bytes))
            return class_of_failure(file, call);
        base = view_etypes_before(&file->view, bytes);
        if (base > INT64_MAX)
            return wrong(MPI_ERR_ARG, call, "the view has no end: its filetype has the extent 0",
                         "set a filetype with a positive extent");
    } else if (whence != MPI_SEEK_SET) {
        return wrong(MPI_ERR_ARG, call, "the argument whence is invalid",
                     "give MPI_SEEK_SET, MPI_SEEK_CUR or MPI_SEEK_END");
    }
    int64_t sum;
    if (__builtin_add_overflow((int64_t)base, (int64_t)offset, &sum) || sum < 0)
        return wrong(MPI_ERR_ARG, call, "the position lies before the start of the view",
                     "give an offset that leads to a position of 0 or more");
    *target = (uint64_t)sum;
    return MPI_SUCCESS;
}

/* Code for a call about positions, which a sequential file does not have. */
static int check_seekable(const open_file_t *file, int call)
{
    if (file->amode & MPI_MODE_SEQUENTIAL)
        return wrong(MPI_ERR_UNSUPPORTED_OPERATION, call,
                     "the file was opened with MPI_MODE_SEQUENTIAL",
                     "open the file without this mode");
    return MPI_SUCCESS;
}

static int get_byte_offset(MPI_File handle, MPI_Offset offset, MPI_Offset *byte)
{
    open_file_t *file = file_of(handle);
    if (!file)
        return fail(NULL, MPI_ERR_FILE);
    int code = check_seekable(file, CALL_File_get_byte_offset);
    if (code != MPI_SUCCESS)
        return fail(file, code);
    const view_t *view = &file->view;
    if (offset < 0 || (view->etype_bytes && offset > INT64_MAX / (int64_t)view->etype_bytes))
        return fail(file, wrong(MPI_ERR_ARG, CALL_File_get_byte_offset,
                                "the offset is negative, or too large",
                                "give a number of etypes that is 0 or more, and less than 2^63 bytes"));
    pthread_mutex_lock(&file->lock);
    *byte = (MPI_Offset)(view->displacement
                         + layout_file_offset(view->layout, (uint64_t)offset * view->etype_bytes));
    pthread_mutex_unlock(&file->lock);
    return MPI_SUCCESS;
}

static int seek(MPI_File handle, MPI_Offset offset, int whence)
{
    open_file_t *file = file_of(handle);
    if (!file)
        return fail(NULL, MPI_ERR_FILE);
    int code = check_seekable(file, CALL_File_seek);
    if (code != MPI_SUCCESS)
        return fail(file, code);
    pthread_mutex_lock(&file->lock);
    code = seek_target(file, CALL_File_seek, offset, whence, file->position, &file->position);
    pthread_mutex_unlock(&file->lock);
    return fail(file, code);
}

static int get_position(MPI_File handle, MPI_Offset *offset)
{
    open_file_t *file = file_of(handle);
    if (!file)
        return fail(NULL, MPI_ERR_FILE);
    int code = check_seekable(file, CALL_File_get_position);
    if (code != MPI_SUCCESS)
        return fail(file, code);
    pthread_mutex_lock(&file->lock);
    *offset = (MPI_Offset)file->position;
    pthread_mutex_unlock(&file->lock);
    return MPI_SUCCESS;
}

static int seek_shared(MPI_File handle, MPI_Offset offset, int whence)
{
    open_file_t *file = file_of(handle);
    const int call = CALL_File_seek_shared;
    uint64_t current = 0, target = 0;
    if (!file)
        return fail(NULL, MPI_ERR_FILE);
    int code = check_seekable(file, call);
    /* After this all members have ended earlier calls with the shared file pointer. */
    code = agree(file, call, code);
    if (code == MPI_SUCCESS && file->rank == 0) {
        if (unisono_counter_get(file->group, &current))
            code = class_of_failure(file, call);
        else
            code = seek_target(file, call, offset, whence, current, &target);
        if (code == MPI_SUCCESS && unisono_counter_set(file->group, target))
            code = class_of_failure(file, call);
        file->has_moved_shared = 1;
    }
    return fail(file, agree_again(file, code));
}

static int get_position_shared(MPI_File handle, MPI_Offset *offset)
{
    open_file_t *file = file_of(handle);
    uint64_t position = 0;
    if (!file)
        return fail(NULL, MPI_ERR_FILE);
    int code = check_seekable(file, CALL_File_get_position_shared);
    if (code != MPI_SUCCESS)
        return fail(file, code);
    if (unisono_counter_get(file->group, &position))
        return fail(file, class_of_failure(file, CALL_File_get_position_shared));
    *offset = (MPI_Offset)position;
    return MPI_SUCCESS;
}

void view_enter(function_t **functions)
{
    ENTER(File_set_view, set_view);
    ENTER(File_get_view, get_view);
    ENTER(File_get_type_extent, get_type_extent);
    ENTER(File_get_type_extent_c, get_type_extent_c);
    ENTER(File_get_byte_offset, get_byte_offset);
    ENTER(File_seek, seek);
    ENTER(File_get_position, get_position);
    ENTER(File_seek_shared, seek_shared);
    ENTER(File_get_position_shared, get_position_shared);
}
