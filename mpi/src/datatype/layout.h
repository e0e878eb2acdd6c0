/* layout.h - MPI datatypes as nested strides.
 *
 * A layout is the typemap of a datatype, decoded once: a tree of repetitions and blocks, never one
 * entry for each element where a rule will do. Offsets and sizes are bytes.
 */
#ifndef UNISONO_MPI_DATATYPE_LAYOUT_H
#define UNISONO_MPI_DATATYPE_LAYOUT_H

#include <mpi.h>
#include <stdint.h>
#include <unisono.h>

/* Decoded datatype; shared, immutable, counted. */
typedef struct layout layout_t;

/* Sizes of the basic types that a layout is decoded with. */
enum representation {
    NATIVE,    /* as in memory */
    EXTERNAL32 /* as MPI's portable file format says */
};

/* Facts about a layout. */
typedef struct layout_facts {
    uint64_t bytes;      /* data bytes of one instance */
    int64_t lower_bound; /* first byte of an instance */
    int64_t extent;      /* distance between instances */
    int64_t true_start;  /* lowest byte of data */
    int64_t true_end;    /* one past the highest byte of data */
    int is_dense;        /* 1 when consecutive instances are contiguous bytes from offset 0 */
    int is_ordered;      /* 1 when displacements do not decrease, as in every filetype */
    int is_ascending;    /* 1 when blocks do not overlap either, as in a file for writing */
    int is_repeatable;   /* 1 when also consecutive instances ascend without overlap */
} layout_facts_t;

/* Decodes a datatype, which its owner may free afterwards. Predefined and contiguous types cost little.
 * Returns 0; or a negative errno: -ENOMEM, -EINVAL (MPI_DATATYPE_NULL, a type that MPI cannot describe),
 * -EOVERFLOW (an offset or a distance beyond 2^62), -E2BIG (more than 512 nested constructors, or 256
 * nested repetitions). */
int layout_decode(MPI_Datatype type, enum representation representation, layout_t **layout);
layout_t *layout_keep(layout_t *layout);
void layout_release(layout_t *layout); /* NULL is accepted */
layout_facts_t layout_facts(const layout_t *layout);

/* Describes an access as a part: bytes [first, first + bytes) of the data of the filetype `file`, which
 * is repeated without end from byte `displacement` of the file on. In memory these bytes are packed
 * (memory is NULL), or are the data of instances of `memory`, in order. README.md shows how.
 * When file and memory both have gaps, the part may need many pieces. The caller packs instead when
 * layout_is_simple returns 0.
 * The memory of the part begins at buffer + *memory_base, which is the address to give to unisono.
 * When memory overlaps itself, the part may only be written.
 * The pieces of a part ascend in the file, also when the data does not. A part in which a byte of the
 * file has several places in memory may only be read.
 * Returns 0 or a negative errno: -E2BIG when more than 2^20 pieces would be needed, -EOVERFLOW
 * beyond byte 2^62 of the file or of the memory, -EINVAL when the access starts before byte 0 of the
 * file, has no data, or has bytes of the file several times and needs more than 2^16 nested strides. */
int layout_part(const layout_t *file, uint64_t displacement, uint64_t first, uint64_t bytes,
                const layout_t *memory, int64_t *memory_base, unisono_part_t **part);

/* 1 when layout_part with this memory makes a compact description, however long the access. The answer
 * takes a microsecond or more. */
int layout_is_simple(const layout_t *file, const layout_t *memory);

/* Copies data bytes [first, first + bytes) of instances of `layout` at `buffer` to the packed
 * `target` (pack), or back (unpack). Strided loops make it faster than one memcpy for each element. */
void layout_pack(const layout_t *layout, const void *buffer, uint64_t first, uint64_t bytes,
                 void *target);
void layout_unpack(const layout_t *layout, void *buffer, uint64_t first, uint64_t bytes,
                   const void *source);

/* Position in the file (counted from the displacement, as all offsets below) of data byte `position`
 * of the repeated filetype, at most 2^63 - 1. */
uint64_t layout_file_offset(const layout_t *file, uint64_t position);

/* Data bytes from byte `first` on, in the order of the typemap, that come before the first one that
 * lies at or behind byte `offset` of the file; UINT64_MAX when none lies there. */
uint64_t layout_data_before(const layout_t *file, uint64_t first, uint64_t offset);

/* 1 when the `bytes` data bytes from byte `first` on ascend in the file without overlap. */
int layout_ascends(const layout_t *file, uint64_t first, uint64_t bytes);

/* Range of the file that holds these bytes, of which there is at least one. It is the smallest range
 * when they ascend. */
void layout_range(const layout_t *file, uint64_t first, uint64_t bytes, uint64_t *from,
                  uint64_t *to);

/* 1 when two of these bytes are the same byte of the file, 0 when not, or -ENOMEM. The filetype must
 * ascend, and its extent must not be negative. The answer is exact; its time grows with the number of
 * blocks in the instances that overlap. */
int layout_repeats(const layout_t *file, uint64_t first, uint64_t bytes);

/* Basic types of one instance in the order of the typemap, for conversion to external32: calls
 * `each` with each run of equal basic types; a value and an index, such as MPI_DOUBLE_INT, are two.
 * Returns what `each` returned when it was not 0, or a negative errno as layout_decode. */
int layout_elements(MPI_Datatype type,
                    int (*each)(MPI_Datatype basic, uint64_t count, void *context), void *context);

#endif
