/* transfers.h - file views, and transfers through them.
 *
 * Functions of type int return codes of MPI, MPI_SUCCESS or an error class, where no comment says
 * otherwise. Positions and sizes are bytes, or etypes of the view where a comment says so. */
#ifndef UNISONO_MPI_TRANSFERS_H
#define UNISONO_MPI_TRANSFERS_H

#include "../files/files.h"

/* ---- Views (view.c) ------------------------------------------------------------------------ */

/* Layout of a datatype in memory, which the caller releases. It is kept with the datatype. */
int layout_of(const open_file_t *file, int call, MPI_Datatype type, layout_t **layout);

int view_of_bytes(view_t *view);
void view_release(view_t *view);

/* First etype of the view at or behind byte `offset` of the file: 0 for a view without data, UINT64_MAX
 * when all data of the view lies before that byte. */
uint64_t view_etypes_before(const view_t *view, uint64_t offset);

void view_enter(function_t **functions);

/* ---- Transfers (prepare.c, transfer.c) ----------------------------------------------------- */

/* Flags of an access. */
enum {
    READ = 0,
    WRITE = 1,
    COLLECTIVE = 2,
    BLOCKING = 4, /* the calling thread waits for the end */
    READ_ALL = READ | COLLECTIVE,
    WRITE_ALL = WRITE | COLLECTIVE
};

/* Data that a call of a program names. */
typedef struct access {
    int call;   /* number of the call */
    int flags; /* READ or WRITE, COLLECTIVE, BLOCKING */
    void *buffer;
    MPI_Count count;
    MPI_Datatype type;
    /* Lengths, which access_prepare computes: 0 for an access that it refuses. */
    layout_t *memory;      /* of the datatype, or NULL */
    uint64_t memory_bytes; /* data in the buffer */
    uint64_t file_bytes;   /* data in the file, where elements of external32 have other sizes */
    uint64_t etypes;       /* of the view */
} access_t;

/* Checks an access, and computes its lengths in the view of the file. Its layout is released by
 * transfer_begin or by the end of the transfer. */
int access_prepare(open_file_t *file, access_t *access);

/* Begins the transfer of a prepared access, from etype `offset` of the view on. `code` is an earlier
 * error of this process, which then has nothing to move. It joins a collective call nevertheless, and
 * the transfer ends with this code. Returns NULL only when memory is short. */
transfer_t *transfer_begin(open_file_t *file, const access_t *access, uint64_t offset, int code);

/* 1 when the transfer has ended. */
int transfer_has_ended(transfer_t *transfer);

/* Operation of the library for which the transfer waits, or NULL. */
unisono_op_t *transfer_operation(const transfer_t *transfer);

/* 1 when its end depends on other members, so that a process which waits must call MPI. */
int transfer_waits_for_members(const transfer_t *transfer);

/* Waits for the end, and frees the transfer. Gives the number of bytes that were read or written in
 * memory. */
int transfer_end(transfer_t *transfer, uint64_t *bytes);

/* Takes the etypes of an access from the shared file pointer, those of an ordered call in the order of
 * ranks (shared_pointer.c). Gives the first of them. A process with an earlier error, `code`, takes
 * none. */
int shared_take(open_file_t *file, const access_t *access, int code, uint64_t *first);

void status_set(MPI_Status *status, uint64_t bytes);

void access_enter(function_t **functions);

/* ---- Requests (generalized_requests.c) ----------------------------------------------------- */

/* Makes the request of a nonblocking transfer. */
int request_make(open_file_t *file, transfer_t *transfer, MPI_Request *request);

/* Ends the transfers of a file for which the program has not waited. */
void requests_end(open_file_t *file);

/* Number of requests for which the program has not waited. */
extern int requests_pending;

void requests_enter(function_t **functions);

/* ---- Conversion to the portable representation (external32.c) ------------------------------ */

/* Convert packed elements of instances of a type between memory (native) and file (external). `bytes`:
 * bytes of the source. The target must have room for as many elements. Decoding gives the number of
 * bytes in memory. */
int external32_encode(MPI_Datatype type, const void *native, uint64_t bytes, void *external);
int external32_decode(MPI_Datatype type, const void *external, uint64_t bytes, void *native,
                      uint64_t *native_bytes);

#endif
