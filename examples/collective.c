/* Each of SIZE processes writes its block of one array together with the others.
 * cc collective.c $(pkg-config --cflags --libs unisono); ./a.out RANK SIZE, once for each rank */
#include <stdio.h>
#include <stdlib.h>
#include <unisono.h>

static double block[1000];

int main(int argc, char **argv)
{
    uint32_t rank = argc > 2 ? atoi(argv[1]) : 0, size = argc > 2 ? atoi(argv[2]) : 1;
    unisono_dimension_t array = {.extent = 1000 * size, .rule = UNISONO_BLOCK, .clients = size};
    unisono_t *u; unisono_file_t *file; unisono_group_t *group; unisono_part_t *part;
    for (int i = 0; i < 1000; i++) block[i] = rank * 1000 + i;
    if (unisono_connect(NULL, NULL, &u) || unisono_open(u, "field", UNISONO_CREATE, NULL, &file)
        || unisono_group_form(u, "example", rank, size, &group)
        || unisono_part_distribution(&array, 1, sizeof(double), size, rank, 0, &part)
        || unisono_write_all(group, file, part, block, sizeof block, NULL) < 0
        || unisono_close(file) || unisono_group_free(group) || unisono_disconnect(u))
        return fprintf(stderr, "%s\n", unisono_last_error()->text), 1;
    unisono_part_free(part);
    return 0;
}
