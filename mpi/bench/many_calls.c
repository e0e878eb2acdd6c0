/* many_calls.c - measures a program that makes many small calls on a shared file, and prints the
 * times as one line of CSV.
 *
 * An ordinary MPI program. Each call moves one piece. Pieces are placed in the file in turns of the
 * processes (interleaved), or each process has a region of its own (contiguous). A pass opens the
 * file, makes all calls, and closes it; a pass of writes begins without the file. The time of a pass
 * is that of the calls alone, of the slowest process. It ends when all bytes are where other processes
 * find them: the process reads the last byte that it has written. Every byte is checked after each
 * pass, outside the measured time. The line, with the microseconds a call of each pass:
 *
 *   mode,placement,direction,bytes,ranks,calls,us,us,... */
#define PROGRAM "many_calls"
#include "call.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* What is measured. */
typedef struct setting {
    const char *name;
    int is_collective, is_contiguous, is_write, passes;
    long bytes, calls;
} setting_t;

/* Word of the file at byte `offset`, in the given pass. */
static uint64_t word_at(uint64_t offset, int pass)
{
    uint64_t word = (offset + 8 * (uint64_t)pass + 8) * 0x9e3779b97f4a7c15u;
    return word ^ word >> 29;
}

/* Offset of the piece of a call of this process. */
static MPI_Offset place_of(const setting_t *setting, long call)
{
    if (setting->is_contiguous)
        return (MPI_Offset)(rank * setting->calls + call) * setting->bytes;
    return (MPI_Offset)(call * size + rank) * setting->bytes;
}

/* Ends the program if words were wrong in any process. */
static void refuse_wrong(long wrong, int pass)
{
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (!wrong)
        return;
    if (!rank)
        fprintf(stderr, PROGRAM ": %ld words are wrong after pass %d\n", wrong, pass);
    MPI_Abort(MPI_COMM_WORLD, 4);
}

/* Fills memory with this process's pieces. */
static void fill(const setting_t *setting, uint64_t *words, int pass)
{
    for (long call = 0; call < setting->calls; call++)
        for (long at = 0; at < setting->bytes; at += 8)
            *words++ = word_at((uint64_t)(place_of(setting, call) + at), pass);
}

/* Checks that memory has this process's pieces. */
static void check_pieces(const setting_t *setting, const uint64_t *words, int pass)
{
    long wrong = 0;
    for (long call = 0; call < setting->calls; call++)
        for (long at = 0; at < setting->bytes; at += 8)
            wrong += *words++ != word_at((uint64_t)(place_of(setting, call) + at), 0);
    refuse_wrong(wrong, pass);
}

/* Checks the whole file, a region by each process. Its pieces are of all processes, or of another one. */
static void check_file(const setting_t *setting, uint64_t *words, int pass)
{
    MPI_File file;
    long region = setting->calls * setting->bytes, wrong = 0;
    MPI_Offset from = (MPI_Offset)((rank + 1) % size) * region;
    memset(words, 0xff, (size_t)region);
    CALL(MPI_File_open(MPI_COMM_WORLD, setting->name, MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
    CALL(MPI_File_read_at_all(file, from, words, (int)(region / 8), MPI_UINT64_T, MPI_STATUS_IGNORE));
    CALL(MPI_File_close(&file));
    for (long at = 0; at < region; at += 8)
        wrong += *words++ != word_at((uint64_t)(from + at), pass);
    refuse_wrong(wrong, pass);
}

/* Removes the file, if there is one. */
static void remove_file(const setting_t *setting)
{
    if (!rank)
        (void)MPI_File_delete(setting->name, MPI_INFO_NULL);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Writes the file once, a region by each process, for a measurement of reads. */
static void prepare(const setting_t *setting, uint64_t *memory)
{
    MPI_File file;
    setting_t regions = *setting;
    regions.is_contiguous = 1;
    fill(&regions, memory, 0);
    remove_file(setting);
    CALL(MPI_File_open(MPI_COMM_WORLD, setting->name, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL,
                       &file));
    CALL(MPI_File_write_at_all(file, place_of(&regions, 0), memory,
                               (int)(setting->calls * setting->bytes / 8), MPI_UINT64_T,
                               MPI_STATUS_IGNORE));
    CALL(MPI_File_close(&file));
}

static void write_pieces(const setting_t *setting, MPI_File file, const char *memory)
{
    int bytes = (int)setting->bytes;
    char last = 0;
    for (long call = 0; call < setting->calls; call++, memory += bytes) {
        MPI_Offset place = place_of(setting, call);
        if (setting->is_collective)
            CALL(MPI_File_write_at_all(file, place, memory, bytes, MPI_BYTE, MPI_STATUS_IGNORE));
        else
            CALL(MPI_File_write_at(file, place, memory, bytes, MPI_BYTE, MPI_STATUS_IGNORE));
    }
    /* OMPIO returns from a collective write in some processes before others have written for them. */
    if (setting->is_collective)
        MPI_Barrier(MPI_COMM_WORLD);
    /* What a file system gathers of a process comes before this. */
    MPI_Offset end = place_of(setting, setting->calls - 1) + bytes;
    CALL(MPI_File_read_at(file, end - 1, &last, 1, MPI_BYTE, MPI_STATUS_IGNORE));
    if (last != memory[-1]) {
        fprintf(stderr, PROGRAM ": rank %d read another last byte than it wrote\n", rank);
        MPI_Abort(MPI_COMM_WORLD, 4);
    }
}

static void read_pieces(const setting_t *setting, MPI_File file, char *memory)
{
    int bytes = (int)setting->bytes;
    for (long call = 0; call < setting->calls; call++, memory += bytes) {
        MPI_Offset place = place_of(setting, call);
        if (setting->is_collective)
            CALL(MPI_File_read_at_all(file, place, memory, bytes, MPI_BYTE, MPI_STATUS_IGNORE));
        else
            CALL(MPI_File_read_at(file, place, memory, bytes, MPI_BYTE, MPI_STATUS_IGNORE));
    }
}

/* Makes one pass; returns the microseconds a call of the slowest process. */
static double measure(const setting_t *setting, uint64_t *memory, int pass)
{
    MPI_File file;
    double spent;
    int amode = setting->is_write ? MPI_MODE_CREATE | MPI_MODE_RDWR : MPI_MODE_RDONLY;
    if (setting->is_write) {
        fill(setting, memory, pass);
        remove_file(setting);
    } else {
        memset(memory, 0xff, (size_t)(setting->calls * setting->bytes));
    }
    CALL(MPI_File_open(MPI_COMM_WORLD, setting->name, amode, MPI_INFO_NULL, &file));
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    if (setting->is_write)
        write_pieces(setting, file, (const char *)memory);
    else
        read_pieces(setting, file, (char *)memory);
    MPI_Barrier(MPI_COMM_WORLD);
    spent = MPI_Wtime() - start;
    CALL(MPI_File_close(&file));
    MPI_Allreduce(MPI_IN_PLACE, &spent, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (setting->is_write)
        check_file(setting, memory, pass);
    else
        check_pieces(setting, memory, pass);
    return spent * 1e6 / (double)setting->calls;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc != 8 || atol(argv[5]) < 8 || atol(argv[5]) % 8 || atol(argv[6]) < 1) {
        if (!rank)
            fprintf(stderr, "usage: many_calls FILE collective|independent interleaved|contiguous "
                            "write|read BYTES CALLS PASSES\n"
                            "BYTES is a multiple of 8\n");
        MPI_Finalize();
        return 2;
    }
    setting_t setting = {.name = argv[1],
                         .is_collective = strcmp(argv[2], "collective") == 0,
                         .is_contiguous = strcmp(argv[3], "contiguous") == 0,
                         .is_write = strcmp(argv[4], "write") == 0,
                         .bytes = atol(argv[5]),
                         .calls = atol(argv[6]),
                         .passes = atoi(argv[7])};
    uint64_t *memory = malloc((size_t)(setting.bytes * setting.calls));
    if (!setting.is_write)
        prepare(&setting, memory);
    if (!rank)
        printf("%s,%s,%s,%ld,%d,%ld", argv[2], argv[3], argv[4], setting.bytes, size, setting.calls);
    for (int pass = 0; pass < setting.passes; pass++) {
        double us = measure(&setting, memory, pass);
        if (!rank)
            printf(",%.3f", us);
    }
    if (!rank)
        printf("\n");
    remove_file(&setting);
    free(memory);
    MPI_Finalize();
    return 0;
}
