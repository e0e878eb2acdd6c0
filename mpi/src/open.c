/* open.c - opening, closing and deleting files; their sizes, hints and modes. */
#include "back.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef int test_t(MPI_Request *, int *, MPI_Status *);

/* ---- Hints --------------------------------------------------------------------------------- */

int hints_give(open_file_t *file, MPI_Info info, int call)
{
    int count = 0;
    if (info == MPI_INFO_NULL)
        return MPI_SUCCESS;
    if (PMPI_Info_get_nkeys(info, &count) != MPI_SUCCESS)
        return wrong(MPI_ERR_INFO, call, "the info object cannot be read", "give a valid one");
    for (int i = 0; i < count; i++) {
        char key[MPI_MAX_INFO_KEY + 1] = "", value[MPI_MAX_INFO_VAL + 1] = "";
        int is_there = 0;
        if (PMPI_Info_get_nthkey(info, i, key) != MPI_SUCCESS
            || PMPI_Info_get(info, key, MPI_MAX_INFO_VAL, value, &is_there) != MPI_SUCCESS)
            return wrong(MPI_ERR_INFO, call, "the info object cannot be read", "give a valid one");
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

/* ---- Members of a new file ----------------------------------------------------------------- */

/* Seconds that members wait for one another, as the library does. */
static double timeout_s(void)
{
    const char *set = getenv("UNISONO_TIMEOUT");
    double seconds = set ? strtod(set, NULL) : 0;
    return seconds > 0 ? seconds : 60;
}

/* Collects the ranks whose marks lie in a directory. */
typedef struct marks {
    char *is_there; /* for each rank */
    int size;
} marks_t;

static int see_mark(const char *name, const unisono_stat_t *stat, void *context)
{
    (void)stat;
    const marks_t *marks = context;
    const char *slash = strrchr(name, '/');
    int rank = slash ? atoi(slash + 1) : -1;
    if (rank >= 0 && rank < marks->size)
        marks->is_there[rank] = 1;
    return 0;
}

/* Writes the ranks without marks: "1, 2, 5". */
static void list_missing(const marks_t *marks, char *text, size_t bytes)
{
    size_t used = 0;
    *text = 0;
    for (int rank = 0; rank < marks->size && used + 16 < bytes; rank++)
        if (!marks->is_there[rank])
            used += (size_t)snprintf(text + used, bytes - used, used ? ", %d" : "%d", rank);
}

/* Names the members that have not called MPI_File_open. Those that wait leave marks in the
 * instance, since MPI tells nobody who has come. */
static void explain_missing(MPI_Comm comm, const char *name)
{
    char folder[600], mark[700], cause[900], missing[400];
    int rank = 0, size = 1;
    PMPI_Comm_rank(comm, &rank);
    PMPI_Comm_size(comm, &size);
    marks_t marks = {calloc((size_t)size, 1), size};
    unisono_t *unisono = connection();
    unisono_file_t *file = NULL;
    if (!unisono || !marks.is_there)
        return;
    int used = snprintf(folder, sizeof folder, ".unisono/waiting/%d-", size);
    for (const char *c = name; *c && used + 1 < (int)sizeof folder; c++)
        folder[used++] = *c == '/' ? '-' : *c;
    folder[used] = 0;
    unisono_mkdir(unisono, folder, 1);
    snprintf(mark, sizeof mark, "%s/%d", folder, rank);
    unisono_open(unisono, mark, UNISONO_CREATE, NULL, &file);
    unisono_close(file);
    nanosleep(&(struct timespec){1, 0}, NULL);
    unisono_list(unisono, folder, see_mark, &marks);
    int lowest = 0;
    while (lowest < size && !marks.is_there[lowest])
        lowest++;
    list_missing(&marks, missing, sizeof missing);
    snprintf(cause, sizeof cause, "rank %s has not called it within %.0f s; the others are in it",
             missing, timeout_s());
    if (rank == lowest)
        explain("MPI_File_open failed", cause,
                "let every process of the communicator open the file");
    nanosleep(&(struct timespec){1, 0}, NULL);
    unisono_remove(unisono, mark);
    free(marks.is_there);
}

/* Duplicates the communicator, which all members must call. Sleeps while it waits. */
static int join(MPI_Comm comm, const char *name, MPI_Comm *joined)
{
    MPI_Request request;
    int flag = 0;
    if (PMPI_Comm_idup(comm, joined, &request) != MPI_SUCCESS)
        return MPI_ERR_COMM;
    double end = now_s() + timeout_s();
    for (unsigned turns = 0;; turns++) {
        if (REAL(Test, test_t)(&request, &flag, MPI_STATUS_IGNORE) != MPI_SUCCESS)
            return MPI_ERR_COMM;
        if (flag)
            return MPI_SUCCESS;
        if (now_s() > end)
            break;
        if (turns > 100)
            nanosleep(&(struct timespec){0, turns < 1000 ? 50000 : 1000000}, NULL);
    }
    explain_missing(comm, name);
    /* The call cannot be taken back, so the program cannot go on. */
    PMPI_Abort(comm, EXIT_MEMBERS_MISSING);
    return MPI_ERR_OTHER;
}

static int all_gather(const void *mine, void *all, size_t bytes, void *context)
{
    MPI_Comm comm = *(MPI_Comm *)context;
    return PMPI_Allgather(mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, comm)
           != MPI_SUCCESS;
}

/* ---- Opening ------------------------------------------------------------------------------- */

static int check_mode(int amode)
{
    const int call = CALL_File_open;
    const char *help = "give one of MPI_MODE_RDONLY, MPI_MODE_WRONLY and MPI_MODE_RDWR";
    int ways = !!(amode & MPI_MODE_RDONLY) + !!(amode & MPI_MODE_WRONLY)
               + !!(amode & MPI_MODE_RDWR);
    if (ways != 1)
        return wrong(MPI_ERR_AMODE, call, "the mode says not exactly how the file is used", help);
    if (amode & MPI_MODE_RDONLY && amode & (MPI_MODE_CREATE | MPI_MODE_EXCL))
        return wrong(MPI_ERR_AMODE, call, "MPI_MODE_RDONLY does not permit to create the file",
                     "open it with MPI_MODE_RDWR or MPI_MODE_WRONLY");
    if (amode & MPI_MODE_RDWR && amode & MPI_MODE_SEQUENTIAL)
        return wrong(MPI_ERR_AMODE, call, "MPI_MODE_RDWR and MPI_MODE_SEQUENTIAL exclude another",
                     "leave one of them out");
    return MPI_SUCCESS;
}

static long hash_name(const char *name)
{
    unsigned long hash = 14695981039346656037UL;
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 1099511628211UL;
    return (long)(hash >> 1);
}

/* Code on which all members agree, and that of them whose names or modes differ. */
static int agree_on_arguments(open_file_t *file, int code)
{
    long hash = hash_name(file->name);
    long mine[5] = {code, file->amode, -(long)file->amode, hash, -hash}, all[5];
    if (PMPI_Allreduce(mine, all, 5, MPI_LONG, MPI_MAX, file->comm) != MPI_SUCCESS)
        return MPI_ERR_INTERN;
    if (all[0] != MPI_SUCCESS)
        return (int)all[0];
    if (all[1] == -all[2] && all[3] == -all[4])
        return MPI_SUCCESS;
    if (!file->rank)
        wrong(MPI_ERR_NOT_SAME, CALL_File_open, "processes give different names or modes",
              "give the same name and mode at every process");
    return all[3] == -all[4] ? MPI_ERR_AMODE : MPI_ERR_NOT_SAME;
}

/* Makes the directory of a file whose name was redirected: the program relies on the local one. */
static void make_directory(const open_file_t *file)
{
    char *folder = strdup(file->name), *slash = folder ? strrchr(folder, '/') : NULL;
    if (slash) {
        *slash = 0;
        unisono_mkdir(connection(), folder, 1); /* opening the file tells more when this fails */
    }
    free(folder);
}

/* Opens the file: rank 0 first, which also creates it. */
static int open_everywhere(open_file_t *file)
{
    unsigned flags = (file->amode & MPI_MODE_CREATE ? UNISONO_CREATE : 0)
                     | (file->amode & MPI_MODE_EXCL ? UNISONO_EXCL : 0);
    unisono_layout_t layout = {.size = sizeof layout};
    int code = MPI_SUCCESS;
    if (unisono_hints_apply(file->hints, NULL, &layout, NULL))
        return class_of_failure(file, CALL_File_open);
    if (!file->rank && file->is_redirected && flags & UNISONO_CREATE)
        make_directory(file);
    if (!file->rank && unisono_open(connection(), file->name, flags, &layout, &file->file))
        code = class_of_failure(file, CALL_File_open);
    if (PMPI_Bcast(&code, 1, MPI_INT, 0, file->comm) != MPI_SUCCESS)
        return MPI_ERR_INTERN;
    if (code != MPI_SUCCESS)
        return code;
    if (file->rank && unisono_open(connection(), file->name, 0, NULL, &file->file))
        code = class_of_failure(file, CALL_File_open);
    return code;
}

static int form_group(open_file_t *file)
{
    if (unisono_group_form_with(connection(), (uint32_t)file->rank, (uint32_t)file->size,
                                all_gather, &file->comm, &file->group))
        return class_of_failure(file, CALL_File_open);
    return MPI_SUCCESS;
}

/* Sets the file pointers of a file that is opened with MPI_MODE_APPEND. */
static int move_to_end(open_file_t *file)
{
    uint64_t bytes = 0;
    if (!(file->amode & MPI_MODE_APPEND))
        return MPI_SUCCESS;
    if (unisono_size(file->file, &bytes))
        return class_of_failure(file, CALL_File_open);
    file->position = bytes;
    if (!file->rank && unisono_counter_set(file->group, bytes))
        return class_of_failure(file, CALL_File_open);
    return MPI_SUCCESS;
}

static int prepare(open_file_t *file, MPI_Info info)
{
    file->options = (unisono_collective_options_t){.size = sizeof file->options};
    if (!connection() || unisono_hints_new(connection(), file->name, &file->hints)
        || unisono_hints_apply(file->hints, &file->options, NULL, &file->is_independent))
        return class_of_failure(NULL, CALL_File_open);
    int code = check_mode(file->amode);
    if (code == MPI_SUCCESS)
        code = hints_give(file, info, CALL_File_open);
    return code == MPI_SUCCESS ? view_of_bytes(&file->view) : code;
}

static int open_file(MPI_Comm comm, const char *name, int amode, MPI_Info info, MPI_File *handle)
{
    *handle = MPI_FILE_NULL;
    open_file_t *file = file_new();
    if (!file)
        return fail(NULL, wrong(MPI_ERR_NO_MEM, CALL_File_open, "too many files are open",
                                "close files; a process may have 4096 open"));
    file->amode = amode;
    file->name = strdup(name_in_instance(name));
    file->is_redirected = strncmp(name, "unisono:", 8) != 0;
    errhandler_default(file);
    int code = file->name ? join(comm, file->name, &file->comm) : MPI_ERR_NO_MEM;
    if (code != MPI_SUCCESS) {
        file_free(file);
        return fail(NULL, code);
    }
    /* The handler of the program's communicator would end the program. */
    PMPI_Comm_set_errhandler(file->comm, MPI_ERRORS_RETURN);
    PMPI_Comm_rank(file->comm, &file->rank);
    PMPI_Comm_size(file->comm, &file->size);
    code = agree_on_arguments(file, prepare(file, info));
    if (code == MPI_SUCCESS) {
        int opened = open_everywhere(file);
        code = agree_on_arguments(file, opened);
    }
    if (code == MPI_SUCCESS)
        code = form_group(file);
    if (code == MPI_SUCCESS && file->amode & MPI_MODE_APPEND)
        code = agree(file, CALL_File_open, move_to_end(file));
    if (code != MPI_SUCCESS) {
        file_free(file);
        return fail(NULL, code);
    }
    report_open(file);
    *handle = handle_of(file);
    return MPI_SUCCESS;
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
    if (file->split) {
        transfer_end(file->split, &bytes);
        file->split = NULL;
        code = wrong(MPI_ERR_OTHER, call, "a split collective call was under way",
                     "call its end before MPI_File_close");
    }
    if (unisono_close(file->file))
        code = class_of_failure(file, call);
    file->file = NULL;
    code = agree(file, call, code);
    if (file->amode & MPI_MODE_DELETE_ON_CLOSE) {
        int removed = MPI_SUCCESS;
        if (!file->rank && unisono_remove(connection(), file->name))
            removed = class_of_failure(file, call);
        removed = agree(file, call, removed);
        code = code == MPI_SUCCESS ? removed : code;
    }
    code = fail(file, code);
    file_free(file);
    return code;
}

static int delete_file(const char *name, MPI_Info info)
{
    (void)info;
    if (!connection() || unisono_remove(connection(), name_in_instance(name)))
        return fail(NULL, class_of_failure(NULL, CALL_File_delete));
    return MPI_SUCCESS;
}

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
        code = wrong(MPI_ERR_ARG, call, "the size is negative", "give a size from 0 on");
    else if (file->amode & MPI_MODE_RDONLY)
        code = wrong(MPI_ERR_READ_ONLY, call, "the file was opened with MPI_MODE_RDONLY",
                     "open it with MPI_MODE_RDWR or MPI_MODE_WRONLY");
    /* Earlier writes of all members come first. */
    code = agree(file, call, code);
    if (code == MPI_SUCCESS && !file->rank) {
        int error = extends ? unisono_size(file->file, &now) : 0;
        if (!error && (!extends || now < (uint64_t)size))
            error = unisono_truncate(file->file, (uint64_t)size);
        code = error ? class_of_failure(file, call) : code;
    }
    code = agree(file, call, code);
    /* The library of this process learns the new size. */
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
    return fail(file, agree(file, call, code));
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
    /* Rank 0 stores what all members have written before. */
    int code = agree(file, call, MPI_SUCCESS);
    if (code == MPI_SUCCESS && !file->rank && unisono_fsync(file->file))
        code = class_of_failure(file, call);
    code = agree(file, call, code);
    report_time(file, call, started_at);
    return fail(file, code);
}

void open_enter(function_t **functions)
{
    ENTER(File_open, open_file);
    ENTER(File_close, close_file);
    ENTER(File_delete, delete_file);
    ENTER(File_set_size, set_size);
    ENTER(File_preallocate, preallocate);
    ENTER(File_get_size, get_size);
    ENTER(File_get_group, get_group);
    ENTER(File_get_amode, get_amode);
    ENTER(File_set_info, set_info);
    ENTER(File_get_info, get_info);
    ENTER(File_set_atomicity, set_atomicity);
    ENTER(File_get_atomicity, get_atomicity);
    ENTER(File_sync, sync_file);
}
