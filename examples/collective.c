/* Collective write and read: each of 3 processes writes its block of one array together with the
 * others, then all read the array back in another distribution.
 *
 *     unisono start --servers 2
 *     cc -o collective collective.c $(pkg-config --cflags --libs unisono)
 *     ./collective 0 3 &
 *     ./collective 1 3 &
 *     ./collective 2 3 & */
#include <stdio.h>
#include <stdlib.h>
#include <unisono.h>

static double block[1000], turns[1000];

int main(int argc, char **argv)
{
    uint32_t rank = argc > 2 ? atoi(argv[1]) : 0, size = argc > 2 ? atoi(argv[2]) : 1;
    unisono_dimension_t blocks = {.extent = 1000 * size, .rule = UNISONO_BLOCK, .clients = size};
    unisono_dimension_t cyclic = {
        .extent = 1000 * size, .chunk = 1, .rule = UNISONO_CYCLIC, .clients = size};
    unisono_t *u; unisono_file_t *file; unisono_group_t *group; unisono_part_t *own, *other;
    for (int i = 0; i < 1000; i++) block[i] = rank * 1000 + i;
    if (unisono_connect(NULL, NULL, &u) || unisono_open(u, "field", UNISONO_CREATE, NULL, &file)
        || unisono_group_form(u, "example", rank, size, &group)
        || unisono_part_distribution(&blocks, 1, sizeof(double), size, rank, 0, &own)
        || unisono_part_distribution(&cyclic, 1, sizeof(double), size, rank, 0, &other)
        || unisono_write_all(group, file, own, block, sizeof block, NULL) < 0
        || unisono_read_all(group, file, other, turns, sizeof turns, NULL) < 0
        || unisono_close(file) || unisono_group_free(group) || unisono_disconnect(u))
        return fprintf(stderr, "%s\n", unisono_last_error()->text), 1;
    for (uint32_t i = 0; i < 1000; i++)
        if (turns[i] != i * size + rank)
            return fprintf(stderr, "number %u of rank %u is in a wrong place\n", i, rank), 1;
    printf("rank %u of %u wrote %u to %u\n", rank, size, rank * 1000, rank * 1000 + 999);
    printf("rank %u of %u read %u, %u, %u, ...\n", rank, size, rank, rank + size, rank + 2 * size);
    unisono_part_free(own);
    unisono_part_free(other);
    return 0;
}
