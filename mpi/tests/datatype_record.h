/* datatype_record.h - parts of the client library, as a recording of the calls that make them.
 *
 * The recording has the rules of the library for nests and lists, and refuses what breaks them.
 */
#ifndef DATATYPE_RECORD_H
#define DATATYPE_RECORD_H

#include <stddef.h>
#include <unisono.h>

typedef struct recorded_nest {
    uint64_t file_offset, memory_offset, bytes;
    unisono_level_t levels[16];
    size_t level_count;
} recorded_nest_t;

struct unisono_part {
    recorded_nest_t *nests;
    size_t nest_count;
    unisono_piece_t *pieces; /* of a list */
    size_t piece_count;
};

/* Calls `each` with every contiguous piece of a part. */
void record_pieces(const unisono_part_t *part,
                   void (*each)(unisono_piece_t piece, void *context), void *context);

/* Bytes that describe a part in a request: those of its offsets, levels and pieces. */
size_t record_description_bytes(const unisono_part_t *part);

/* Parts that were made and not freed. */
extern long record_parts;

#endif
