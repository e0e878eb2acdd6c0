/* open.c - MPI_File_open. */
#include "../errors/errors.h"
#include "../process/names.h"
#include "../transfers/transfers.h"
#include "files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int check_mode(int amode)
{
    const int call = CALL_File_open;
    int ways = !!(amode & MPI_MODE_RDONLY) + !!(amode & MPI_MODE_WRONLY)
               + !!(amode & MPI_MODE_RDWR);
    if (ways != 1)
        return wrong(MPI_ERR_AMODE, call, "the access mode must have exactly one of MPI_MODE_RDONLY, "
                     "MPI_MODE_WRONLY and MPI_MODE_RDWR", "give one of them");
    if (amode & MPI_MODE_RDONLY && amode & (MPI_MODE_CREATE | MPI_MODE_EXCL))
        return wrong(MPI_ERR_AMODE, call, "MPI_MODE_CREATE and MPI_MODE_EXCL are not allowed with "
                     "MPI_MODE_RDONLY", "open the file with MPI_MODE_RDWR or MPI_MODE_WRONLY");
    if (amode & MPI_MODE_RDWR && amode & MPI_MODE_SEQUENTIAL)
        return wrong(MPI_ERR_AMODE, call, "MPI_MODE_SEQUENTIAL is not allowed with MPI_MODE_RDWR",
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

/* Makes the directory of a redirected file. The program has made it only in the local file system. */
static void make_directory(const open_file_t *file)
{
    char *folder = strdup(file->name), *slash = folder ? strrchr(folder, '/') : NULL;
    if (slash) {
        *slash = 0;
        unisono_mkdir(file->unisono, folder, 1); /* the open call explains a failure */
    }
    free(folder);
}

static int open_named(open_file_t *file, unsigned flags, const unisono_layout_t *layout)
{
    char path[NAME_BYTES + 1];
    if (!file->is_in_place)
        return unisono_open(file->unisono, file->name, flags, layout, &file->file);
    snprintf(path, sizeof path, "/%s", file->name);
    return unisono_open(file->unisono, path, flags | UNISONO_IN_PLACE, layout, &file->file);
}

/* Opens the file in this process; rank 0 also creates it. */
static int open_here(open_file_t *file)
{
    unsigned flags = (file->amode & MPI_MODE_CREATE ? UNISONO_CREATE : 0)
                     | (file->amode & MPI_MODE_EXCL ? UNISONO_EXCL : 0);
    unisono_layout_t layout = {.size = sizeof layout};
    if (unisono_hints_apply(file->hints, NULL, &layout, NULL))
        return class_of_failure(file, CALL_File_open);
    if (!file->rank && file->is_redirected && flags & UNISONO_CREATE)
        make_directory(file);
    if (open_named(file, file->rank ? 0 : flags, &layout))
        return class_of_failure(file, CALL_File_open);
    return MPI_SUCCESS;
}

/* Result of opening a file on rank 0, which it broadcasts in units of `long`. */
typedef struct opened {
    long code, amode;
    long given;            /* hash of the name as the program gives it */
    long is_mounted;       /* a path below a mount */
    uint64_t instance;     /* number of the instance */
    char name[NAME_BYTES]; /* in the instance */
} opened_t;

static int broadcast(const open_file_t *file, opened_t *opened)
{
    return members_broadcast((open_file_t *)file, opened, sizeof *opened / sizeof(long), 0);
}

/* Takes the name that rank 0 has found, if this process gives the same word: a relative name that is
 * redirected is a path below the working directory of rank 0. Another word must have the same
 * meaning. `mounted`: the name here of a path below a mount, or NULL. */
static int take_name(open_file_t *file, const char *given, const char *mounted, const opened_t *opened)
{
    int code = MPI_SUCCESS;
    const int is_same_word = hash_name(given) == opened->given;
    if (is_same_word && file->is_mounted != opened->is_mounted)
        return wrong(MPI_ERR_NOT_SAME, CALL_File_open,
                     file->is_mounted ? "the path lies below a mount of an instance here, but not at rank 0"
                                      : "the path lies below a mount of an instance at rank 0, but not here",
                     "mount the instance at the same path on the hosts of all processes");
    if (unisono_instance_number(file->unisono) != opened->instance)
        return wrong(MPI_ERR_NOT_SAME, CALL_File_open, "the processes gave files of different instances",
                     "mount the same instance on the hosts of all processes, or set UNISONO_INSTANCE to it there");
    file->name = is_same_word ? strdup(opened->name)
                 : mounted    ? strdup(mounted)
                              : name_in_instance(given, CALL_File_open, &code);
    if (!file->name)
        return code == MPI_SUCCESS ? MPI_ERR_NO_MEM : code;
    int is_same_name = strcmp(file->name, opened->name) == 0;
    if (is_same_name && opened->amode == file->amode)
        return MPI_SUCCESS;
    return wrong(is_same_name ? MPI_ERR_AMODE : MPI_ERR_NOT_SAME, CALL_File_open,
                 is_same_name ? "the processes gave different access modes"
                              : "the processes gave different file names",
                 "give the same file name and access mode on every process");
}

/* Data that each member gathers when the group of the file is formed. */
typedef struct gathered {
    char number[8]; /* of the library */
    long code;
} gathered_t;

/* Context of an open call for the all-gather of the library. */
typedef struct gathering {
    open_file_t *file;
    int code; /* of this member; then the greatest of all */
    int is_speaker; /* 1 for the lowest member that has failed */
} gathering_t;

/* Gathers the numbers of the library and the codes of all members. Fails when a member has failed. */
static int gather(const void *mine, void *all, size_t bytes, void *context)
{
    gathering_t *gathering = context;
    open_file_t *file = gathering->file;
    gathered_t own = {.code = gathering->code}, *others = calloc((size_t)file->size, sizeof own);
    if (!others || bytes > sizeof own.number)
        return -1;
    memcpy(own.number, mine, bytes);
    int result = members_allgather(file, &own, others, sizeof own);
    gathering->is_speaker = result == MPI_SUCCESS && own.code != MPI_SUCCESS;
    for (int rank = 0; rank < file->size && result == MPI_SUCCESS; rank++) {
        memcpy((char *)all + (size_t)rank * bytes, others[rank].number, bytes);
        if (others[rank].code != MPI_SUCCESS && rank < file->rank)
            gathering->is_speaker = 0;
        if (others[rank].code > gathering->code)
            gathering->code = (int)others[rank].code;
    }
    free(others);
    gathering->code = result == MPI_SUCCESS ? gathering->code : result;
    return gathering->code;
}

/* Forms the group of the file, unless a member has no connection: the all-gather tells all members. */
static int form_group(open_file_t *file, int code)
{
    gathering_t gathering = {file, code, 0};
    char nothing[8] = {0}, *all = NULL;
    int error;
    if (file->unisono) {
        error = unisono_group_form_with(file->unisono, (uint32_t)file->rank, (uint32_t)file->size,
                                        gather, &gathering, &file->group);
    } else {
        all = calloc((size_t)file->size, sizeof nothing);
        error = all ? gather(nothing, all, sizeof nothing, &gathering) : MPI_ERR_NO_MEM;
        free(all);
    }
    explanations_release(gathering.is_speaker);
    /* No member may end the program before the explanation is printed. */
    if (gathering.code != MPI_SUCCESS)
        agree_again(file, gathering.code);
    if (gathering.code != MPI_SUCCESS || !error)
        return gathering.code;
    return class_of_failure(file, CALL_File_open);
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
    file->has_moved_shared = 1;
    if (!file->rank && unisono_counter_set(file->group, bytes))
        return class_of_failure(file, CALL_File_open);
    return MPI_SUCCESS;
}

/* Refuses processes that were started by the mpiexec of another MPI library. Each takes itself for the
 * only one, and would overwrite the data of the others. */
static int check_launcher(void)
{
    static const char *const sizes[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"};
    int world = 0;
    if (has_world())
        PMPI_Comm_size(MPI_COMM_WORLD, &world);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes && world == 1; i++) {
        const char *set = getenv(sizes[i]);
        char cause[200];
        if (!set || atoi(set) <= 1)
            continue;
        snprintf(cause, sizeof cause, "mpiexec started %d processes, but the MPI library of the "
                 "program knows only this one", atoi(set));
        return wrong(MPI_ERR_OTHER, CALL_File_open, cause,
                     "start the program with the mpiexec of its own MPI library");
    }
    return MPI_SUCCESS;
}

/* Refuses a name that leads out of the patterns of UNISONO_IN_PLACE by a link. */
static int check_place(const open_file_t *file, const char *given)
{
    char path[PATH_BYTES], cause[3 * PATH_BYTES];
    if (!file->is_in_place || !name_leaves_place(given, path))
        return MPI_SUCCESS;
    snprintf(cause, sizeof cause, "\"%s\" leads by a link to %s, which no pattern of --in-place matches (%s)",
             given, path, getenv("UNISONO_IN_PLACE"));
    return wrong(MPI_ERR_BAD_FILE, CALL_File_open, cause,
                 "name that path in a pattern too, or open a file that the patterns match");
}

static int prepare(open_file_t *file, MPI_Info info)
{
    file->options = (unisono_collective_options_t){.size = sizeof file->options};
    if (unisono_hints_new(file->unisono, file->name, &file->hints)
        || unisono_hints_apply(file->hints, &file->options, NULL, &file->is_independent))
        return class_of_failure(NULL, CALL_File_open);
    int code = check_launcher();
    if (code == MPI_SUCCESS)
        code = check_mode(file->amode);
    if (code == MPI_SUCCESS)
        code = hints_give(file, info, CALL_File_open);
    return code == MPI_SUCCESS ? view_of_bytes(&file->view) : code;
}

/* Opens the file on rank 0, which resolves its name and creates it, and broadcasts the result. `code`: 0 if
 * the instance was found. */
static int open_first(open_file_t *file, const char *given, const char *mounted, int code, MPI_Info info)
{
    opened_t opened = {.amode = file->amode, .given = hash_name(given), .is_mounted = file->is_mounted};
    if (code == MPI_SUCCESS && !(file->name = mounted ? strdup(mounted)
                                                      : name_in_instance(given, CALL_File_open, &code)))
        code = code == MPI_SUCCESS ? MPI_ERR_NO_MEM : code;
    if (code == MPI_SUCCESS)
        code = check_place(file, given);
    if (code == MPI_SUCCESS) {
        opened.instance = unisono_instance_number(file->unisono);
        snprintf(opened.name, sizeof opened.name, "%s", file->name);
        code = prepare(file, info);
    }
    if (code == MPI_SUCCESS)
        code = open_here(file);
    opened.code = code;
    broadcast(file, &opened);
    return code;
}

/* Opens the file on another rank, after rank 0. */
static int open_after(open_file_t *file, const char *given, const char *mounted, int code, MPI_Info info)
{
    opened_t opened = {.code = MPI_SUCCESS};
    int result = broadcast(file, &opened);
    if (result == MPI_SUCCESS)
        result = (int)opened.code;
    if (result == MPI_SUCCESS)
        result = code;
    if (result == MPI_SUCCESS)
        result = take_name(file, given, mounted, &opened);
    if (result == MPI_SUCCESS)
        result = prepare(file, info);
    return result == MPI_SUCCESS ? open_here(file) : result;
}

static int open_file(MPI_Comm comm, const char *name, int amode, MPI_Info info, MPI_File *handle)
{
    *handle = MPI_FILE_NULL;
    closings_end();
    cause_forget();
    open_file_t *file = file_new();
    if (!file)
        return fail(NULL, wrong(MPI_ERR_NO_MEM, CALL_File_open, "too many files are open",
                                "close some files; a process may have 4096 files open"));
    file->amode = amode;
    errhandler_default(file);
    explanations_hold();
    char *mounted;
    int code = instance_find(name, CALL_File_open, &file->unisono, &mounted);
    file->is_mounted = mounted != NULL;
    file->is_in_place = !mounted && name_is_in_place(name);
    file->is_redirected = !mounted && !file->is_in_place && !name_has_scheme(name_bare(name));
    const int joined = members_join(file, comm, name);
    if (joined != MPI_SUCCESS) {
        explanations_release(1);
        free(mounted);
        file_free(file);
        return fail(NULL, joined);
    }
    /* The duplicate has the error handler of the program's communicator, which may end the program. */
    PMPI_Comm_set_errhandler(file->comm, MPI_ERRORS_RETURN);
    PMPI_Comm_rank(file->comm, &file->rank);
    PMPI_Comm_size(file->comm, &file->size);
    code = file->rank ? open_after(file, name, mounted, code, info)
                      : open_first(file, name, mounted, code, info);
    free(mounted);
    code = form_group(file, code);
    if (code == MPI_SUCCESS && file->amode & MPI_MODE_APPEND)
        code = agree_again(file, move_to_end(file));
    if (code != MPI_SUCCESS) {
        file_free(file);
        return fail(NULL, code);
    }
    report_open(file);
    *handle = handle_of(file);
    return MPI_SUCCESS;
}

void open_enter(function_t **functions)
{
    ENTER(File_open, open_file);
}
