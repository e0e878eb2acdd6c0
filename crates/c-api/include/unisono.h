/* unisono.h - files of a Unisono instance, and collective transfers directed by its servers.
 *
 * Results. A function of type int returns 0 or a negative errno; one of type int64_t returns a
 * number of bytes, at least 0, or a negative errno. unisono_last_error() says more about the last
 * failure of the calling thread. Every function may fail with -EINVAL (kind usage) for an argument
 * that is NULL or makes no sense, -EPERM (kind forked) in a child process, and -ENOTRECOVERABLE
 * (kind internal) for a defect of the library; comments name further errors. A function that makes
 * a handle sets it to NULL when it fails.
 *
 * Sizes and offsets are bytes; a file has at most 2^62. Strings are UTF-8 and end with a zero byte.
 * Names of files are paths in the instance such as "runs/42/field"; slashes at their ends do not
 * count, and "unisono://" may stand in front. "" and "/" name the root directory.
 *
 * Threads. Every handle may be used by any thread, and all but unisono_op_t by several at a time.
 * A handle must not be used after, or during, the call that frees it. Functions that free a handle
 * accept NULL and do nothing.
 *
 * Fork. Handles belong to the process that made them. In a child process every call with them fails
 * with -EPERM at once, and those that free a handle leave it alone. A child connects by itself.
 *
 * Effects on the process, from its first connection to the end of its last:
 * - One thread, "unisono-io", talks to the servers. All signals are blocked on it.
 * - Sockets to the servers are open (close-on-exec), and shared memory is mapped.
 * - Where Yama restricts ptrace, processes of the same user are permitted to read and write this
 *   one's memory (prctl PR_SET_PTRACER), because servers on this machine copy data directly.
 *   This lasts until the process ends.
 * The library installs no signal handler, starts no process and changes no environment variable. It
 * reads UNISONO_INSTANCE, XDG_RUNTIME_DIR, TMPDIR, SLURM_JOB_ID, SLURM_JOB_NUM_NODES,
 * SLURM_SUBMIT_DIR, UNISONO_TIMEOUT, UNISONO_RECONNECT and UNISONO_GATHER when it connects, and
 * UNISONO_HINTS, UNISONO_METHOD and UNISONO_STRICT in unisono_hints_new.
 *
 * Link with the flags of "pkg-config --cflags --libs unisono". The manual begins at unisono(7).
 */
#ifndef UNISONO_H
#define UNISONO_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Version ------------------------------------------------------------------------------- */

#define UNISONO_VERSION_MAJOR 0
#define UNISONO_VERSION_MINOR 2
#define UNISONO_VERSION_PATCH 0
#define UNISONO_VERSION "0.2.0"

/* Version of the library that runs, such as "0.2.0". Never fails. */
const char *unisono_version(void);

/* Version of the library that runs, as major * 65536 + minor * 256 + patch. Never fails. */
uint32_t unisono_version_number(void);

/* ---- Errors -------------------------------------------------------------------------------- */

/* Kinds of errors. Numbers never change; new ones go to the end. */
enum {
    UNISONO_ERR_OTHER = 1,              /* a failure that no other kind names */
    UNISONO_ERR_USAGE = 2,              /* a request that makes no sense */
    UNISONO_ERR_NO_INSTANCE = 3,        /* no instance there, or its key cannot be used */
    UNISONO_ERR_NOT_FOUND = 4,          /* no such file or directory */
    UNISONO_ERR_ALREADY_EXISTS = 5,     /* the name is taken */
    UNISONO_ERR_BAD_NAME = 6,           /* the name cannot name a file */
    UNISONO_ERR_NOT_A_DIRECTORY = 7,    /* a file, where a directory must be */
    UNISONO_ERR_IS_A_DIRECTORY = 8,     /* a directory, where a file must be */
    UNISONO_ERR_DIRECTORY_NOT_EMPTY = 9,
    UNISONO_ERR_BAD_ACCESS = 10,        /* a part does not fit the file or the memory */
    UNISONO_ERR_PAST_END = 11,          /* the file ends before the bytes of a part */
    UNISONO_ERR_REFUSED = 12,           /* a server refuses the request */
    UNISONO_ERR_WRONG_VERSION = 13,     /* client and server are of different releases */
    UNISONO_ERR_NO_SPACE = 14,          /* a disk is full */
    UNISONO_ERR_CORRUPT = 15,           /* data is not what was written */
    UNISONO_ERR_DISK_FAILED = 16,
    UNISONO_ERR_CATALOGUE_FAILED = 17,
    UNISONO_ERR_SERVER_LEFT = 18,       /* a server has ended, or cannot be reached */
    UNISONO_ERR_SERVER_STALLED = 19,    /* a server does not answer within the time-out */
    UNISONO_ERR_MEMBER_LEFT = 20,       /* a member has left during a collective call */
    UNISONO_ERR_MEMBERS_MISSING = 21,   /* members did not join a call within the time-out */
    UNISONO_ERR_CALLS_DIFFER = 22,      /* members made different calls */
    UNISONO_ERR_CANCELLED = 23,         /* another server or member failed */
    UNISONO_ERR_TRANSFER_FAILED = 24,   /* a transfer failed in an unforeseen way */
    UNISONO_ERR_FORKED = 25,            /* the handle belongs to the parent process */
    UNISONO_ERR_INTERNAL = 26,          /* a defect of the library */
    UNISONO_ERR_INTERRUPTED = 27,       /* the user interrupted the call */
    UNISONO_ERR_LOCAL_FILE = 28,        /* a local file could not be read or written */
    UNISONO_ERR_LOCK_TIMED_OUT = 29,    /* a member holds a lock for longer than the time-out */
    UNISONO_ERR_READ_ONLY = 30          /* some data of the instance is lost: nothing can change */
};

/* An error. Strings are never NULL, except file. New fields go to the end. */
typedef struct unisono_error {
    uint32_t kind;         /* UNISONO_ERR_... */
    int errno_value;       /* fitting errno, positive */
    int exit_code;         /* exit code of a command that ends with this error, 1 to 6 */
    int has_range;         /* 1 when range_start and range_end are known */
    const char *name;      /* name of the kind, such as "not-found" */
    const char *mpi_class; /* name of the MPI error class, such as "MPI_ERR_NO_SUCH_FILE" */
    const char *error;     /* first part: which call failed */
    const char *cause;     /* second part: the reason */
    const char *help;      /* third part: a way out */
    const char *text;      /* all three, in three lines without a line feed at the end */
    const char *file;      /* name of the file that the error is about, or NULL */
    uint64_t range_start;  /* first byte of that file, and ... */
    uint64_t range_end;    /* ... one past the last byte that the error is about */
    int64_t server;        /* number of the server, or -1 */
    size_t rank_count;     /* number of ranks of the group, 0 when none is known */
    const uint32_t *ranks; /* these ranks, ascending */
} unisono_error_t;

/* One row of the table of kinds. */
typedef struct unisono_kind {
    const char *name;      /* such as "not-found" */
    const char *mpi_class; /* such as "MPI_ERR_NO_SUCH_FILE" */
    int errno_value;       /* positive */
    int exit_code;         /* 1 to 6 */
} unisono_kind_t;

/* Last error of the calling thread, or NULL when none of its calls has failed. It is valid until
 * the thread's next failing call, or its end. A call that succeeds changes nothing. */
const unisono_error_t *unisono_last_error(void);

/* Looks up a kind of error. row: filled with strings that are valid for ever.
 * Errors: -EINVAL when there is no such kind. */
int unisono_kind(uint32_t kind, unisono_kind_t *row);

/* ---- Connections --------------------------------------------------------------------------- */

/* A connection to all servers of an instance. */
typedef struct unisono unisono_t;

/* How to connect. Set size to sizeof(unisono_options_t) and the rest to 0 for the default. */
typedef struct unisono_options {
    size_t size;
    uint64_t pool_bytes; /* memory for short transfers, at most 2^40; 0 means 64 MiB */
    uint64_t timeout_ms; /* wait for servers and missing members; 0 means UNISONO_TIMEOUT seconds,
                            or 60 s without that variable */
} unisono_options_t;

/* Connects to all servers of an instance.
 * instance: its directory, or a path below a mount of it (unisono mount), or NULL for that of
 * UNISONO_INSTANCE, or else the user's default one.
 * options: NULL means the default.
 * Errors: -ENXIO when there is no instance, -ENOTCONN when a server cannot be reached,
 * -EPROTONOSUPPORT when the servers are of another release. */
int unisono_connect(const char *instance, const unisono_options_t *options,
                    unisono_t **connection);

/* Frees the handle. The connection ends with the last of its files, pages, groups, locks and
 * operations. The sizes of files that were not closed are recorded then. */
int unisono_disconnect(unisono_t *connection);

/* Number that tells instances apart: it is the same in all processes that are connected to one
 * instance. 0 when the connection is not valid. */
uint64_t unisono_instance_number(unisono_t *connection);

/* ---- Names --------------------------------------------------------------------------------- */

/* A name is a path in the instance. "unisono:" in front, doubled slashes, and slashes at either end
 * say nothing; "." is the directory itself and ".." the one above, which of the root is the root.
 * "a/b", "/a//b/", "./a/b", "a/c/../b" and "unisono://a/b" are one name. */

/* Tells which name a word means, in the form in which the instance lists it: "a/b", and "" for the
 * root. Stores it with a zero byte at its end; of a name that does not fit in `bytes` bytes, the
 * beginning. name may be NULL when bytes is 0. Returns the number of bytes of the name. */
int64_t unisono_name(const char *word, char *name, size_t bytes);

/* Tells which file a local path means that lies below a mount of an instance (unisono mount). The
 * path need not exist; links are followed, also the last part. Stores the directory of the instance
 * and the name in it, each with a zero byte at its end, in 4096 and 4097 bytes at most. Returns the
 * number of bytes of the directory, or 0 for a path that lies below no mount.
 * Errors: -ENXIO when the mount does not tell its instance, since its process has ended. */
int64_t unisono_mounted(const char *path, char *instance, size_t instance_bytes, char *name,
                        size_t name_bytes);

/* An open file. */
typedef struct unisono_file unisono_file_t;

/* Flags of unisono_open. */
enum {
    UNISONO_CREATE = 1, /* create the file when there is none */
    UNISONO_EXCL = 2,   /* with UNISONO_CREATE: fail when there is one */
    UNISONO_TRUNC = 4,  /* make it empty */
    UNISONO_IN_PLACE = 8 /* the name is the path of an ordinary file, which the servers work on there */
};

/* Protection of a new file against the loss of a server. */
enum {
    UNISONO_PROTECTION_DEFAULT = 0, /* as the directory says */
    UNISONO_PROTECTION_NONE = 1,
    UNISONO_PROTECTION_MIRROR = 2, /* the next server of the file has a copy of what a server holds */
    UNISONO_PROTECTION_PARITY = 3, /* each row of blocks has a parity block on a further server */
    UNISONO_PROTECTION_ROWS = 0x10000 /* + n: as PARITY, with rows of n blocks */
};

/* Layout of a new file. Set size to sizeof(unisono_layout_t) and the rest to 0 for the default. */
typedef struct unisono_layout {
    size_t size;
    uint64_t block_bytes; /* unit of striping, at most 1 GiB; 0 means as the directory says */
    uint32_t protection;  /* UNISONO_PROTECTION_... */
    uint32_t reserved;    /* 0 */
} unisono_layout_t;

/* Kinds of directory entries. */
/* Links, named pipes and sockets are made and used in a mount. */
enum {
    UNISONO_FILE = 1,
    UNISONO_DIRECTORY = 2,
    UNISONO_LINK = 3, /* symbolic link; its bytes are those of the path that it stands for */
    UNISONO_FIFO = 4,
    UNISONO_SOCKET = 5
};

/* A directory entry. Set size to sizeof(unisono_stat_t) before it is filled. */
typedef struct unisono_stat {
    size_t size;
    uint64_t bytes;       /* size of a file; 0 for a directory */
    uint64_t block_bytes; /* unit of striping of a file; 0 for a directory */
    uint64_t made_at_s;   /* time of creation in seconds since 1970 */
    uint32_t kind;        /* UNISONO_FILE, UNISONO_DIRECTORY ... */
    uint32_t owner;       /* number of the user that created it */
    uint32_t servers;     /* number of servers that a file is striped over */
    uint32_t padding;     /* 0 */
    uint64_t modified_ns; /* time of the last change of a file's data or size, in nanoseconds since
                           * 1970; of a directory, that of its creation */
} unisono_stat_t;

/* Opens a file, and creates it first if the flags say so: empty, over all servers that its
 * directory permits. flags: UNISONO_CREATE, UNISONO_EXCL, UNISONO_TRUNC and UNISONO_IN_PLACE, or 0.
 * layout: used only when the file is created; NULL means the default. All servers must find a file in
 * place at its path; any program finds there what was written before a sync or the last close.
 * Errors: -ENOENT, -EEXIST, -EISDIR; what servers meet. */
int unisono_open(unisono_t *connection, const char *name, unsigned flags,
                 const unisono_layout_t *layout, unisono_file_t **file);

/* Looks at a name; the size of a file is that of now. stat->size must be set.
 * Errors: -ENOENT. */
int unisono_stat(unisono_t *connection, const char *name, unisono_stat_t *stat);

/* Receives one directory entry: its whole name, which begins with that of the directory. Both are
 * valid during the call only. Returns 0 to go on, anything else to stop. It must not throw. */
typedef int unisono_entry_t(const char *name, const unisono_stat_t *stat, void *context);

/* Lists a directory, ascending by name; calls `each` in the calling thread. Sizes of files that
 * others have open may be old. Returns 0 also when `each` has stopped it.
 * Errors: -ENOENT, -ENOTDIR. */
int unisono_list(unisono_t *connection, const char *directory, unisono_entry_t *each,
                 void *context);

/* Makes a directory. parents: not 0 to make missing parents too, and to accept one that is there.
 * Errors: -EEXIST, -ENOENT, -ENOTDIR. */
int unisono_mkdir(unisono_t *connection, const char *name, int parents);

/* Renames a file or a directory. replace: not 0 to permit that a file has the new name; it is
 * removed. Errors: -ENOENT, -EEXIST, -EISDIR, -ENOTDIR. */
int unisono_rename(unisono_t *connection, const char *from, const char *to, int replace);

/* Removes a file or an empty directory. Errors: -ENOENT, -ENOTEMPTY. */
int unisono_remove(unisono_t *connection, const char *name);

/* ---- Files --------------------------------------------------------------------------------- */

/* Reads up to `bytes` bytes at `offset`. Returns the number of bytes read, fewer only at the end of
 * the file. Errors: what servers meet. */
int64_t unisono_pread(unisono_file_t *file, void *memory, uint64_t bytes, uint64_t offset);

/* Writes `bytes` bytes at `offset`; a file that ends before becomes longer. Every later read sees
 * them; unisono_fsync stores them. Returns `bytes`. After an error it is not known which bytes were
 * written. Small writes may be gathered in this process: all clients see them at once, errors come
 * with a later write, flush or close, and a killed process loses those of its last half second.
 * Errors: -ENOSPC; what servers meet. */
int64_t unisono_pwrite(unisono_file_t *file, const void *memory, uint64_t bytes,
                       uint64_t offset);

/* unisono_pread to several memories, one after the other; count: at most 1024. */
int64_t unisono_preadv(unisono_file_t *file, const struct iovec *memories, size_t count,
                       uint64_t offset);

/* unisono_pwrite from several memories, one after the other; count: at most 1024. */
int64_t unisono_pwritev(unisono_file_t *file, const struct iovec *memories, size_t count,
                        uint64_t offset);

/* Size of the file now, in bytes, whoever has changed it. */
int unisono_size(unisono_file_t *file, uint64_t *bytes);

/* Makes the file `bytes` bytes long. Bytes beyond are freed, new ones are zero. */
int unisono_truncate(unisono_file_t *file, uint64_t bytes);

/* Waits until all that was written is with the disks. Fails with errors of write-behind that this
 * connection has not met yet, by a flush, an fsync or a later write, since it opened the file. */
int unisono_flush(unisono_file_t *file);

/* As unisono_flush, and waits until everything is on stable storage of every server. */
int unisono_fsync(unisono_file_t *file);

/* Stores 1 in `*flag` if a server may lose what this process has written to the file: it is started
 * again when it is lost, and no unisono_fsync has stored the writes. Else 0. */
int unisono_has_unsynced(unisono_file_t *file, int *flag);

/* Tells that the unisono_fsync of another process has stored what this one had written before.
 * Processes that write a file together need only one that calls unisono_fsync. Errors: -ENOTCONN,
 * a server was lost between the writes and the unisono_fsync, and so may be the writes. */
int unisono_confirm_fsync(unisono_file_t *file);

/* Closes the file and frees the handle, also when it fails. Errors: what servers meet. */
int unisono_close(unisono_file_t *file);

/* ---- Parts --------------------------------------------------------------------------------- */

/* One client's part of a file: pieces of the file, and the place of each in the client's memory.
 * It belongs to no connection; one part may be used in many calls. */
typedef struct unisono_part unisono_part_t;

/* One repetition of a nested stride: copy i lies i strides further, in the file and in memory. */
typedef struct unisono_level {
    uint64_t count;
    uint64_t file_stride;
    uint64_t memory_stride;
} unisono_level_t;

/* One piece of a list. */
typedef struct unisono_piece {
    uint64_t file_offset;
    uint64_t memory_offset;
    uint64_t bytes; /* at least 1 */
} unisono_piece_t;

/* Rules by which the indices of one dimension are dealt to the clients along it. */
enum {
    UNISONO_WHOLE = 0, /* not distributed: clients is 1 */
    UNISONO_BLOCK = 1, /* contiguous blocks of ceil(extent / clients) indices */
    UNISONO_CYCLIC = 2 /* blocks of `chunk` indices in turn */
};

/* One dimension of a distributed array. */
typedef struct unisono_dimension {
    uint64_t extent;  /* number of indices, at least 1 */
    uint64_t chunk;   /* UNISONO_CYCLIC: indices in a block, at least 1; otherwise 0 */
    uint32_t rule;    /* UNISONO_WHOLE, UNISONO_BLOCK or UNISONO_CYCLIC */
    uint32_t clients; /* clients along this dimension, at least 1 */
} unisono_dimension_t;

/* `bytes` bytes at `file_offset`, which lie at the start of the memory. 0 bytes: an empty part. */
int unisono_part_contiguous(uint64_t file_offset, uint64_t bytes, unisono_part_t **part);

/* A piece of `bytes` bytes, repeated by each level in turn, the innermost first. Copies must ascend
 * in the file without overlap, and must not overlap in memory. level_count: at most 16. A level
 * with count 0, or 0 bytes, makes an empty part. */
int unisono_part_nested(uint64_t file_offset, uint64_t memory_offset, uint64_t bytes,
                        const unisono_level_t *levels, size_t level_count,
                        unisono_part_t **part);

/* Adds a nested stride to a part that unisono_part_contiguous or unisono_part_nested made: the part
 * becomes the union, of at most 65536. Calls that were begun with the part are not affected. Where
 * members of the union overlap it is undefined which of them counts. */
int unisono_part_add(unisono_part_t *part, uint64_t file_offset, uint64_t memory_offset,
                     uint64_t bytes, const unisono_level_t *levels, size_t level_count);

/* Part of client `client` (counted row-major) of a row-major array of records that is distributed
 * over a grid of clients, as in High Performance Fortran; packed in memory, row-major.
 * dimensions: the slowest first; dimension_count: 1 to 16. record_bytes: at least 1.
 * clients: members that take part; those beyond the grid own nothing.
 * file_offset: first byte of the array in the file. */
int unisono_part_distribution(const unisono_dimension_t *dimensions, size_t dimension_count,
                              uint64_t record_bytes, uint32_t clients, uint32_t client,
                              uint64_t file_offset, unisono_part_t **part);

/* A list of pieces, which ascend in the file and overlap neither there nor in memory.
 * count: at most 2^20. */
int unisono_part_list(const unisono_piece_t *pieces, size_t count, unisono_part_t **part);

/* Number of bytes in all pieces. */
int unisono_part_bytes(const unisono_part_t *part, uint64_t *bytes);

/* Bytes of memory that a transfer of the part needs. */
int unisono_part_memory_bytes(const unisono_part_t *part, uint64_t *bytes);

/* Frees a part. Calls that were begun with it go on. */
void unisono_part_free(unisono_part_t *part);

/* Reads a part with one request to each server. Memory between the pieces stays as it is.
 * memory_bytes: at least unisono_part_memory_bytes. Returns the number of bytes read.
 * Errors: -ENODATA (kind past-end) when the file ends before; what servers meet. */
int64_t unisono_read_part(unisono_file_t *file, const unisono_part_t *part, void *memory,
                          uint64_t memory_bytes);

/* Writes a part with one request to each server; a file that ends before becomes longer. At its end
 * the bytes are with the disks; sync: not 0 to have them on stable storage. Returns the number of
 * bytes written. Errors: -ENOSPC; what servers meet. */
int64_t unisono_write_part(unisono_file_t *file, const unisono_part_t *part, const void *memory,
                           uint64_t memory_bytes, int sync);

/* ---- Pages --------------------------------------------------------------------------------- */

/* A block of a file as it was when it was pinned, in the memory of its server if that is on this
 * machine. */
typedef struct unisono_page unisono_page_t;

/* Bytes of a page (the unit of striping); the last one of a file may be shorter. */
int unisono_page_bytes(unisono_file_t *file, uint64_t *bytes);

/* Pins page `number`, counted from 0. Errors: -ENODATA when the file has no such page. */
int unisono_page_pin(unisono_file_t *file, uint64_t number, unisono_page_t **page);

/* Address and length of a pinned page, for reading only, valid until it is released. */
int unisono_page_data(const unisono_page_t *page, const void **data, uint64_t *bytes);

/* Releases a page. */
void unisono_page_release(unisono_page_t *page);

/* ---- Groups and collective calls ----------------------------------------------------------- */

/* The calling process as a member of a group. Members make the same collective calls in the same
 * order; several calls may be under way. */
typedef struct unisono_group unisono_group_t;

/* Gathers `bytes` bytes at `mine` of each member into `all`, by rank (size * bytes bytes), at every
 * member. Returns 0 on success. It must not throw. */
typedef int unisono_all_gather_t(const void *mine, void *all, size_t bytes, void *context);

/* Forms a group of members that meet at the servers. Collective: waits for all members.
 * name: the same at every member, used by no other group at the time. rank: 0 to size - 1.
 * Errors: -ETIMEDOUT (kind members-missing) names the ranks that did not come. */
int unisono_group_form(unisono_t *connection, const char *name, uint32_t rank, uint32_t size,
                       unisono_group_t **group);

/* Forms a group by an all-gather of the caller's, such as MPI_Allgather, which is called once, in
 * the calling thread, with 8 bytes. Collective. Errors: -EIO when it fails; -ETIMEDOUT as above. */
int unisono_group_form_with(unisono_t *connection, uint32_t rank, uint32_t size,
                            unisono_all_gather_t *all_gather, void *context,
                            unisono_group_t **group);

/* Rank of the calling process. */
int unisono_group_rank(const unisono_group_t *group, uint32_t *rank);

/* Number of members. */
int unisono_group_size(const unisono_group_t *group, uint32_t *size);

/* Waits until all members are here. Collective.
 * Errors: -ETIMEDOUT (kind members-missing) names the ranks that did not come. */
int unisono_barrier(unisono_group_t *group);

/* Leaves the group and frees the handle. Members that wait for this one in a call then fail. Its
 * locks are released; their handles stay valid, and unisono_unlock frees them. */
int unisono_group_free(unisono_group_t *group);

/* Strategies of a collective transfer. */
enum {
    UNISONO_DISK_DIRECTED = 0,  /* servers direct it */
    UNISONO_TWO_PHASE = 1,      /* members transfer large pieces and exchange data */
    UNISONO_CACHING = 2,        /* each member asks for each of its pieces */
    UNISONO_NONCOLLECTIVE = 3,  /* servers direct the part of each member by itself */
    UNISONO_GLOBAL_BARRIER = 4, /* each member asks for each of its pieces, all blocks at once */
    UNISONO_NODE_GROUPING = 5   /* groups of members do so, one group after another */
};

/* Orders in which servers use their disks. */
enum {
    UNISONO_SORTED = 0,   /* by place on the disk */
    UNISONO_AS_ASKED = 1, /* by place in the file */
    UNISONO_STAGGERED = 2 /* sorted, each server from another place on */
};

/* How a collective transfer is carried out; the same at every member. Set size to
 * sizeof(unisono_collective_options_t) and the rest to 0 for the default. */
typedef struct unisono_collective_options {
    size_t size;
    uint32_t strategy;             /* UNISONO_DISK_DIRECTED ... */
    uint32_t order;                /* UNISONO_SORTED ... */
    uint32_t sync;                 /* not 0: written data is on stable storage at the end */
    uint32_t outstanding_per_disk; /* requests under way at a disk (caching and two-phase), at most
                                      1024; 0 means 1 */
    uint64_t node_group_size;      /* members of a group (node grouping), at most 2^32 - 1; 0 means
                                      one for each disk, but at least two groups */
    uint64_t relaxed;              /* not 0: small calls need not wait for other members, and this
                                      member makes no other call of the group before this one has
                                      ended. Then members make some small calls by themselves, and
                                      get only errors of their own in these. */
} unisono_collective_options_t;

/* Reads this member's part together with all members. Collective. options: NULL means the default.
 * memory_bytes: at least unisono_part_memory_bytes. Returns the number of bytes of the part.
 * Errors: every member's call ends with the same error, except -EINVAL for an argument of its own,
 * with which a member does not join the call. */
int64_t unisono_read_all(unisono_group_t *group, unisono_file_t *file,
                         const unisono_part_t *part, void *memory, uint64_t memory_bytes,
                         const unisono_collective_options_t *options);

/* Writes this member's part together with all members. Collective. A file that ends before becomes
 * longer. Where parts of members overlap it is undefined whose bytes are written. Servers may write
 * some of the data behind; unisono_flush meets their errors, as does sync in options. Arguments, result
 * and errors are those of unisono_read_all. */
int64_t unisono_write_all(unisono_group_t *group, unisono_file_t *file,
                          const unisono_part_t *part, const void *memory, uint64_t memory_bytes,
                          const unisono_collective_options_t *options);

/* A member's part in a transfer of unisono_transfer_all. */
typedef struct unisono_transfer {
    uint64_t direction;         /* UNISONO_READ or UNISONO_WRITE */
    unisono_file_t *file;       /* opened by the connection of the group */
    const unisono_part_t *part;
    void *memory;               /* a write does not change it */
    uint64_t memory_bytes;      /* at least unisono_part_memory_bytes */
} unisono_transfer_t;

/* Directions of a transfer. */
enum {
    UNISONO_READ = 0,
    UNISONO_WRITE = 1
};

/* Reads and writes parts of several files in one call. Collective: all members name the same files
 * in the same order, with the same directions; a file may be named again. All transfers are under
 * way together. Where two of them meet in a file, and one is a write, it is undefined which comes
 * first. count: at most 65536. `relaxed` in options has no effect. Returns the number of bytes of
 * all parts of this member. Errors: as for unisono_read_all; if several transfers fail, the error
 * is that of the first of them, and the other transfers are carried out. */
int64_t unisono_transfer_all(unisono_group_t *group, const unisono_transfer_t *transfers,
                             size_t count, const unisono_collective_options_t *options);

/* ---- Records -------------------------------------------------------------------------------- */

/* Selects records of a file that match a condition. The servers look at all records; only those
 * that match, or a number of them, come to the program. A type says what a record has, with the
 * kinds of NumPy: "id:u8, energy:f4, at:3f8". NULL means that the file says so, by a header of
 * NumPy's .npy format. A value is a field ("energy"), an element of one ("at[2]"), or is computed
 * of one: "flags & 4", "id % 16", "hash(id)", "bin(energy, 0, 0.25)", which is
 * floor((energy - 0) / 0.25). */

/* A condition over the fields of a record, for any type that has them. */
typedef struct unisono_condition unisono_condition_t;

/* Comparisons. */
enum {
    UNISONO_EQUAL = 0,
    UNISONO_NOT_EQUAL = 1,
    UNISONO_LESS = 2,
    UNISONO_LESS_OR_EQUAL = 3,
    UNISONO_GREATER = 4,
    UNISONO_GREATER_OR_EQUAL = 5
};

/* A condition as a text in the manner of Python: "energy > 5 and (0 <= at[0] < 1 or id in {1, 2})". */
int unisono_condition_text(const char *text, unisono_condition_t **condition);

/* Compares a value with a number, which for a field of 4 bytes is rounded to one. NaN equals
 * nothing. */
int unisono_condition_compare(const char *value, uint32_t comparison, double with,
                              unisono_condition_t **condition);

/* Compares a value with an integer, exactly. */
int unisono_condition_compare_integer(const char *value, uint32_t comparison, int64_t with,
                                      unisono_condition_t **condition);

/* True if a value is one of `count` integers, at most 1024. */
int unisono_condition_in(const char *value, const int64_t *set, size_t count,
                         unisono_condition_t **condition);

/* True if both are. The two stay as they are. */
int unisono_condition_and(const unisono_condition_t *left, const unisono_condition_t *right,
                          unisono_condition_t **condition);

/* True if one of the two is. */
int unisono_condition_or(const unisono_condition_t *left, const unisono_condition_t *right,
                         unisono_condition_t **condition);

/* True if the other one is not. */
int unisono_condition_not(const unisono_condition_t *of, unisono_condition_t **condition);

/* A module of WebAssembly, in its binary form of up to 1 MiB, that selects records. docs/modules.md
 * says what it exports. Its numbers are answer() in keys and values. A module can be combined with
 * one other condition, by unisono_condition_and: it looks only at records for which that is true. */
int unisono_condition_module(const uint8_t *module, size_t module_bytes,
                             unisono_condition_t **condition);

/* An operator, as a module is one, that the program of the servers has added. */
int unisono_condition_operator(const char *name, unisono_condition_t **condition);

/* Frees a condition. */
int unisono_condition_free(unisono_condition_t *condition);

/* Shares of the members of a group. */
enum {
    UNISONO_SHARE_EVEN = 0, /* as many records as the others, or one more, in the order of the file */
    UNISONO_SHARE_PART = 1  /* those in an equal part of the file, in its order */
};

/* Records of a file. Set size to sizeof(unisono_records_options_t) and the rest to 0
 * for all of them. */
typedef struct unisono_records_options {
    size_t size;
    uint64_t offset; /* first byte of the first record; 0 means the start, or the end of a header */
    uint64_t count;  /* number of records; 0 means all */
    uint64_t share;  /* UNISONO_SHARE_EVEN ... */
} unisono_records_options_t;

/* Records of the calling process that match. */
typedef struct unisono_records unisono_records_t;

/* Finds the records that match. With a group all members make the call with equal arguments, and
 * each gets its share; with NULL the process gets all. condition: NULL means all records match.
 * key: NULL, or an integer of each record that is the rank of the member that gets it; nobody gets a
 * record for which it is negative. options: NULL means the default.
 * Errors: -EINVAL (kind usage) for a type or condition that makes no sense, with which a member
 * does not join the call; -EINVAL (kind bad-access) for records that are not in the file, and a key
 * that is no rank; kind calls-differ when members want different records. */
int unisono_find_records(unisono_file_t *file, unisono_group_t *group, const char *type,
                         const unisono_condition_t *condition, const char *key,
                         const unisono_records_options_t *options, unisono_records_t **records);

/* Number of records of the calling process. */
int unisono_records_count(const unisono_records_t *records, uint64_t *count);

/* Reads the records into memory, in the order of the file, one after the other. With a group all
 * members make the call. Returns their number. May be called again.
 * Errors: -EINVAL (kind bad-access) at all members when the memory of one is too small. */
int64_t unisono_records_read(unisono_records_t *records, void *memory, uint64_t memory_bytes);

/* Frees the handle. Servers keep records until the member of rank 0 has freed its own, or leaves:
 * the others must have read theirs before. */
int unisono_records_free(unisono_records_t *records);

/* Returns the number of all records that match. Arguments are those of unisono_find_records; share
 * means nothing. */
int64_t unisono_count_records(unisono_file_t *file, unisono_group_t *group, const char *type,
                              const unisono_condition_t *condition,
                              const unisono_records_options_t *options);

/* Numbers of the values of all records that match. */
enum {
    UNISONO_MINIMUM = 0, /* NaN if there is one, or if there is no record */
    UNISONO_MAXIMUM = 1,
    UNISONO_SUM = 2
};

/* Computes a number of the values of all records that match. result: the number as a float, may be
 * NULL. integer: the number exactly, or NULL; -EINVAL if it is no integer of 64 bits. */
int unisono_reduce_records(unisono_file_t *file, unisono_group_t *group, const char *type,
                           const unisono_condition_t *condition,
                           const unisono_records_options_t *options, uint32_t what,
                           const char *value, double *result, int64_t *integer);

/* Has the servers compute bounds of fields ("energy" or "id; at[2]") for each block, so that later
 * calls on the same records of the file do not read blocks in which nothing matches. The bounds count
 * until the file changes or its servers end. With a group all members make the call.
 * Errors: as unisono_find_records; -EIO (kind transfer-failed) when the file changes meanwhile. */
int unisono_summarise_records(unisono_file_t *file, unisono_group_t *group, const char *type,
                              const unisono_records_options_t *options, const char *fields);

/* Counts the values of all records that match between each two of the edges, which ascend:
 * edge_count - 1 counts. The last bin has its upper edge too; NaN is in none. */
int unisono_histogram_records(unisono_file_t *file, unisono_group_t *group, const char *type,
                              const unisono_condition_t *condition,
                              const unisono_records_options_t *options, const char *value,
                              const double *edges, size_t edge_count, uint64_t *counts);

/* ---- Counters and locks of groups ---------------------------------------------------------- */

/* These calls are not collective: no other member need be in a call. Server 0 of the instance keeps
 * the counter and the locks of a group, in its memory, until the last member has left. */

/* Adds to the counter of the group, which is 0 when the group is formed. No other member's change
 * comes between. before: set to the value before.
 * Errors: -EINVAL (kind usage) when the sum does not fit 64 bits; the counter stays as it is. */
int unisono_counter_add(unisono_group_t *group, uint64_t add, uint64_t *before);

/* Sets the counter of the group. */
int unisono_counter_set(unisono_group_t *group, uint64_t value);

/* Counter of the group. */
int unisono_counter_get(unisono_group_t *group, uint64_t *value);

/* Sharing of a locked range. */
enum {
    UNISONO_LOCK_SHARED = 0,   /* other members may hold shared locks of the range */
    UNISONO_LOCK_EXCLUSIVE = 1 /* no other member may hold a lock of the range */
};

/* A lock of a byte range that the calling process holds as a member of a group. */
typedef struct unisono_lock unisono_lock_t;

/* Locks the bytes from start up to but not including end; they need not be of a file. Waits until
 * no other member holds a lock that conflicts: one of an overlapping range, where one of the two is
 * exclusive. Conflicting requests are granted in the order of their arrival. Locks of one member do
 * not conflict with one another. A member that ends or leaves the group releases its locks.
 * exclusive: UNISONO_LOCK_SHARED or UNISONO_LOCK_EXCLUSIVE.
 * Errors: -ETIMEDOUT (kind lock-timed-out) names the rank that holds a conflicting lock after the
 * time-out of the connection; -EPROTO (kind refused) when the process has 4096 locks of the group
 * or its members have 65536. */
int unisono_lock_range(unisono_group_t *group, uint64_t start, uint64_t end, int exclusive,
                       unisono_lock_t **lock);

/* Releases a lock and frees the handle, also when it fails. */
int unisono_unlock(unisono_lock_t *lock);

/* ---- Hints --------------------------------------------------------------------------------- */

/* Hints of MPI-IO for one file: those in force, and those rejected, with reasons. The command
 * "unisono hints" lists all. Members of a group must set the same. */
typedef struct unisono_hints unisono_hints_t;

/* Makes the hints of the environment (UNISONO_HINTS, then UNISONO_METHOD) for a file, which need not
 * exist. Errors: -EINVAL (kind usage) when one is rejected and UNISONO_STRICT is 1. */
int unisono_hints_new(unisono_t *connection, const char *file_name, unisono_hints_t **hints);

/* Sets a hint, such as "unisono_method" to "two-phase". Returns 0 also when it is rejected; then
 * nothing in force changes. Errors: -EINVAL (kind usage) when it is rejected and UNISONO_STRICT
 * is 1. */
int unisono_hints_set(unisono_hints_t *hints, const char *key, const char *value);

/* Number of hints in force, and one more, "unisono_hints_rejected", when some were rejected.
 * For an argument that makes no sense returns 0. */
size_t unisono_hints_count(const unisono_hints_t *hints);

/* Key and value of entry `index`, counted from 0. Both are valid until the next
 * unisono_hints_set, or until the hints are freed. A value has no limit of length. */
int unisono_hints_get(const unisono_hints_t *hints, size_t index, const char **key,
                      const char **value);

/* Puts the hints in force into the arguments of other calls; each may be NULL. options: strategy,
 * order and sync are set. layout: block_bytes and protection are set if hints say them. Both must
 * have their size.
 * is_independent: 1 when members must transfer their parts by calls of their own, as with
 * unisono_read_part; options then has UNISONO_NONCOLLECTIVE. */
int unisono_hints_apply(const unisono_hints_t *hints, unisono_collective_options_t *options,
                        unisono_layout_t *layout, int *is_independent);

/* Frees hints. */
void unisono_hints_free(unisono_hints_t *hints);

/* ---- Started calls ------------------------------------------------------------------------- */

/* A call under way, which makes progress by itself. Its memory must not be touched (a write: not be
 * changed) or freed until it was waited for. Used by one thread at a time. */
typedef struct unisono_op unisono_op_t;

/* These begin the call of the same name and return 0 when it has begun; its result and errors are
 * those of unisono_op_wait. Members begin collective calls in the same order. unisono_start_close
 * frees the handle at once. */
int unisono_start_pread(unisono_file_t *file, void *memory, uint64_t bytes, uint64_t offset,
                        unisono_op_t **op);
int unisono_start_pwrite(unisono_file_t *file, const void *memory, uint64_t bytes,
                         uint64_t offset, unisono_op_t **op);
int unisono_start_read_part(unisono_file_t *file, const unisono_part_t *part, void *memory,
                            uint64_t memory_bytes, unisono_op_t **op);
int unisono_start_write_part(unisono_file_t *file, const unisono_part_t *part,
                             const void *memory, uint64_t memory_bytes, int sync,
                             unisono_op_t **op);
int unisono_start_read_all(unisono_group_t *group, unisono_file_t *file,
                           const unisono_part_t *part, void *memory, uint64_t memory_bytes,
                           const unisono_collective_options_t *options, unisono_op_t **op);
int unisono_start_write_all(unisono_group_t *group, unisono_file_t *file,
                            const unisono_part_t *part, const void *memory,
                            uint64_t memory_bytes, const unisono_collective_options_t *options,
                            unisono_op_t **op);
int unisono_start_transfer_all(unisono_group_t *group, const unisono_transfer_t *transfers,
                               size_t count, const unisono_collective_options_t *options,
                               unisono_op_t **op);
int unisono_start_close(unisono_file_t *file, unisono_op_t **op);

/* Sets *ended to 1 when the call has ended, to 0 otherwise. Never waits, never frees. */
int unisono_op_test(unisono_op_t *op, int *ended);

/* Waits for the end of the call, at most timeout_us microseconds, and sets *ended as unisono_op_test
 * does. Never frees. */
int unisono_op_wait_for(unisono_op_t *op, uint64_t timeout_us, int *ended);

/* Waits for the end of the call and frees the operation. Returns the number of bytes, or the error
 * of the call. For NULL returns 0. */
int64_t unisono_op_wait(unisono_op_t *op);

/* Waits until one of `count` operations has ended, and sets *index to the lowest such index. NULL
 * operations are passed over; when all are NULL, *index is `count`. Frees nothing: wait for the
 * operation next. count: at most 2^20. */
int unisono_op_wait_any(unisono_op_t *const *ops, size_t count, size_t *index);

#ifdef __cplusplus
}
#endif

#endif
