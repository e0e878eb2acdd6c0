#include "datatype_cases.h"

#include <time.h>

static double now(void)
{
    struct timespec time;
    timespec_get(&time, TIME_UTC);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void time_decoding(const char *name, MPI_Datatype type)
{
    enum { TIMES = 20000 };
    double start = now();
    for (int i = 0; i < TIMES; i++)
        layout_release(decode(type, NATIVE));
    printf("  decode %-24s %7.0f ns\n", name, (now() - start) / TIMES * 1e9);
}

static void time_packing(const char *name, MPI_Datatype type, int count)
{
    layout_t *layout = decode(type, NATIVE);
    layout_facts_t facts = layout_facts(layout);
    size_t room = (size_t)facts.extent * (size_t)count, bytes = facts.bytes * (size_t)count;
    char *memory = calloc(room, 1), *packed = calloc(bytes, 1);
    double times[3];
    for (int i = 0; i < 3; i++) {
        int position = 0;
        double start = now();
        for (int k = 0; k < 5; k++, position = 0) {
            if (i == 2)
                MPI_Pack(memory, count, type, packed, (int)bytes, &position, MPI_COMM_SELF);
            else
                layout_pack(layout, memory, 0, bytes, packed);
        }
        times[i] = (double)bytes * 5e-9 / (now() - start);
    }
    printf("  pack %-26s %7.2f GB/s (MPI_Pack %.2f GB/s)\n", name, times[1], times[2]);
    free(memory);
    free(packed);
    layout_release(layout);
}

void print_times(void)
{
    int sizes[2] = {4096, 4096}, rules[2] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC};
    int arguments[2] = {MPI_DISTRIBUTE_DFLT_DARG, 3}, grid[2] = {2, 2};
    MPI_Datatype array, vector, structure, pair;
    MPI_Type_create_darray(4, 1, 2, sizes, rules, arguments, grid, MPI_ORDER_C, MPI_DOUBLE, &array);
    MPI_Type_vector(1 << 20, 1, 2, MPI_DOUBLE, &vector);
    int lengths[2] = {1, 1};
    MPI_Aint places[2] = {0, 8};
    MPI_Datatype types[2] = {MPI_INT, MPI_DOUBLE};
    MPI_Type_create_struct(2, lengths, places, types, &structure);
    MPI_Type_commit(&structure);
    MPI_Type_commit(&array);
    MPI_Type_commit(&vector);
    pair = MPI_DOUBLE;
    time_decoding("of MPI_DOUBLE", pair);
    time_decoding("of a vector", vector);
    time_decoding("of a 2-D darray", array);
    time_packing("vector of doubles", vector, 1);
    time_packing("structures", structure, 1 << 20);
    time_packing("2-D darray", array, 1);
    MPI_Type_free(&array);
    MPI_Type_free(&vector);
    MPI_Type_free(&structure);
}
