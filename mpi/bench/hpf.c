/* hpf.c - writes or reads a distributed array by MPI-IO, and prints the time as one line of CSV.
 *
 * An ordinary MPI program. The array of records is distributed as in High Performance Fortran, by a
 * darray type as the view of each process. Every byte is checked after each transfer, outside the
 * measured time. The line that is printed:
 *
 *   pattern,record_bytes,mode,direction,sync,ranks,bytes,best_s,best_transfer_s,cpu_s
 *
 * best_s: least time of all repeats from before the open call to after the close call, of the last
 * process; best_transfer_s: the same of the transfer alone (with its sync); cpu_s: processor time of
 * all processes in the repeat of best_s. */
#define PROGRAM "hpf"
#include "call.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* What is measured. */
typedef struct setting {
    const char *name, *pattern, *mode, *direction;
    long bytes, record_bytes;
    int repeats, syncs;
} setting_t;

typedef struct time_spent {
    double total, transfer, cpu;
} time_spent_t;

static double cpu_s(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec)
           + (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

/* Word of the file at byte `offset`, in the given repeat. */
static uint64_t word_at(uint64_t offset, int repeat)
{
    uint64_t word = (offset + 8 * (uint64_t)repeat + 8) * 0x9e3779b97f4a7c15u;
    return word ^ word >> 29;
}

/* Distribution of the array: of one dimension for b and c, of two for bb, cc and cb. */
typedef struct array {
    int dimensions;
    int extents[2], rules[2], arguments[2], grid[2];
    MPI_Datatype record, filetype;
    long local_records;
} array_t;

static void distribute(const setting_t *setting, array_t *array)
{
    long records = setting->bytes / setting->record_bytes;
    array->dimensions = (int)strlen(setting->pattern);
    array->extents[0] = (int)records;
    if (array->dimensions == 2) {
        int side = 1;
        while ((long)side * side < records)
            side *= 2;
        array->extents[0] = (int)(records / side);
        array->extents[1] = side;
    }
    MPI_Dims_create(size, array->dimensions, array->grid);
    for (int i = 0; i < array->dimensions; i++) {
        int is_cyclic = setting->pattern[i] == 'c';
        array->rules[i] = is_cyclic ? MPI_DISTRIBUTE_CYCLIC : MPI_DISTRIBUTE_BLOCK;
        array->arguments[i] = MPI_DISTRIBUTE_DFLT_DARG;
    }
    MPI_Count bytes;
    CALL(MPI_Type_contiguous((int)setting->record_bytes, MPI_BYTE, &array->record));
    CALL(MPI_Type_commit(&array->record));
    CALL(MPI_Type_create_darray(size, rank, array->dimensions, array->extents, array->rules,
                                array->arguments, array->grid, MPI_ORDER_C, array->record,
                                &array->filetype));
    CALL(MPI_Type_commit(&array->filetype));
    CALL(MPI_Type_size_x(array->filetype, &bytes));
    array->local_records = bytes / setting->record_bytes;
}

/* Index in one dimension of the i-th record of a process. */
static long index_of(const array_t *array, int dimension, int place, long i)
{
    long extent = array->extents[dimension], parts = array->grid[dimension];
    if (array->rules[dimension] == MPI_DISTRIBUTE_CYCLIC)
        return place + i * parts;
    return place * ((extent + parts - 1) / parts) + i;
}

/* Records of a process along one dimension. */
static long length_of(const array_t *array, int dimension, int place)
{
    long length = 0;
    while (index_of(array, dimension, place, length) < array->extents[dimension]
           && (array->rules[dimension] == MPI_DISTRIBUTE_CYCLIC
               || length < (array->extents[dimension] + array->grid[dimension] - 1)
                               / array->grid[dimension]))
        length++;
    return length;
}

/* Calls `each` with each word of this process's part: its place in memory and its file offset. */
static long walk(const setting_t *setting, const array_t *array, uint64_t *words, int repeat,
                 long (*each)(uint64_t *word, uint64_t value))
{
    int place[2] = {rank, 0};
    long rows, columns = 1, wrong = 0;
    if (array->dimensions == 2) {
        place[0] = rank / array->grid[1];
        place[1] = rank % array->grid[1];
        columns = length_of(array, 1, place[1]);
    }
    rows = length_of(array, 0, place[0]);
    long in_record = setting->record_bytes / 8;
    for (long row = 0; row < rows; row++)
        for (long column = 0; column < columns; column++) {
            long record = index_of(array, 0, place[0], row);
            if (array->dimensions == 2)
                record = record * array->extents[1] + index_of(array, 1, place[1], column);
            uint64_t offset = (uint64_t)record * (uint64_t)setting->record_bytes;
            for (long i = 0; i < in_record; i++, offset += 8)
                wrong += each(words++, word_at(offset, repeat));
        }
    return wrong;
}

static long set_word(uint64_t *word, uint64_t value)
{
    *word = value;
    return 0;
}

static long compare_word(uint64_t *word, uint64_t value)
{
    return *word != value;
}

/* Reads the whole file in contiguous pieces, and checks it. */
static long check_file(const setting_t *setting, int repeat)
{
    MPI_File file;
    long share = setting->bytes / size, wrong = 0;
    uint64_t *words = malloc((size_t)share);
    CALL(MPI_File_open(MPI_COMM_WORLD, setting->name, MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
    CALL(MPI_File_read_at_all(file, rank * share, words, (int)(share / 8), MPI_UINT64_T,
                              MPI_STATUS_IGNORE));
    CALL(MPI_File_close(&file));
    for (long i = 0; i < share / 8; i++)
        wrong += words[i] != word_at((uint64_t)(rank * share + 8 * i), repeat);
    free(words);
    return wrong;
}

static void transfer(const setting_t *setting, const array_t *array, MPI_File file, void *memory)
{
    int is_collective = strcmp(setting->mode, "collective") == 0;
    int is_write = strcmp(setting->direction, "write") == 0, count = (int)array->local_records;
    MPI_Status status;
    if (is_write && is_collective)
        CALL(MPI_File_write_all(file, memory, count, array->record, &status));
    else if (is_write)
        CALL(MPI_File_write(file, memory, count, array->record, &status));
    else if (is_collective)
        CALL(MPI_File_read_all(file, memory, count, array->record, &status));
    else
        CALL(MPI_File_read(file, memory, count, array->record, &status));
    MPI_Get_count(&status, array->record, &count);
    if (count != array->local_records) {
        fprintf(stderr, "hpf: rank %d moved %d of %ld records\n", rank, count,
                array->local_records);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    if (is_write && setting->syncs)
        CALL(MPI_File_sync(file));
}

static time_spent_t measure(const setting_t *setting, const array_t *array, void *memory)
{
    MPI_File file;
    int amode = strcmp(setting->direction, "write") ? MPI_MODE_RDONLY
                                                    : MPI_MODE_CREATE | MPI_MODE_RDWR;
    MPI_Barrier(MPI_COMM_WORLD);
    double cpu = cpu_s(), start = MPI_Wtime();
    CALL(MPI_File_open(MPI_COMM_WORLD, setting->name, amode, MPI_INFO_NULL, &file));
    CALL(MPI_File_set_view(file, 0, array->record, array->filetype, "native", MPI_INFO_NULL));
    double begun = MPI_Wtime();
    transfer(setting, array, file, memory);
    double ended = MPI_Wtime();
    CALL(MPI_File_close(&file));
    double mine[2] = {MPI_Wtime() - start, ended - begun}, last[2], all_cpu;
    cpu = cpu_s() - cpu;
    MPI_Allreduce(mine, last, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    MPI_Allreduce(&cpu, &all_cpu, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return (time_spent_t){last[0], last[1], all_cpu};
}

/* Writes the file once, for a benchmark that reads. */
static void prepare(const setting_t *setting, const array_t *array, uint64_t *memory)
{
    setting_t writing = *setting;
    writing.direction = "write";
    writing.mode = "collective";
    walk(setting, array, memory, 0, set_word);
    measure(&writing, array, memory);
}

static time_spent_t run(const setting_t *setting, const array_t *array, uint64_t *memory)
{
    time_spent_t best = {1e9, 1e9, 0};
    int is_write = strcmp(setting->direction, "write") == 0;
    size_t bytes = (size_t)(array->local_records * setting->record_bytes);
    if (!is_write)
        prepare(setting, array, memory);
    for (int repeat = 0; repeat < setting->repeats; repeat++) {
        if (is_write)
            walk(setting, array, memory, repeat, set_word);
        else
            memset(memory, 0xff, bytes);
        time_spent_t spent = measure(setting, array, memory);
        long wrong = is_write ? check_file(setting, repeat)
                              : walk(setting, array, memory, 0, compare_word);
        MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        if (wrong) {
            if (!rank)
                fprintf(stderr, "hpf: %ld words are wrong\n", wrong);
            MPI_Abort(MPI_COMM_WORLD, 4);
        }
        best.transfer = spent.transfer < best.transfer ? spent.transfer : best.transfer;
        if (spent.total < best.total) {
            best.total = spent.total;
            best.cpu = spent.cpu;
        }
    }
    return best;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc != 9) {
        if (!rank)
            fprintf(stderr, "usage: hpf FILE BYTES b|c|bb|cc|cb RECORD_BYTES "
                            "collective|independent write|read nosync|sync REPEATS\n");
        MPI_Finalize();
        return 2;
    }
    setting_t setting = {.name = argv[1],
                         .bytes = atol(argv[2]),
                         .pattern = argv[3],
                         .record_bytes = atol(argv[4]),
                         .mode = argv[5],
                         .direction = argv[6],
                         .syncs = strcmp(argv[7], "sync") == 0,
                         .repeats = atoi(argv[8])};
    array_t array = {0};
    distribute(&setting, &array);
    uint64_t *memory = malloc((size_t)(array.local_records * setting.record_bytes) + 8);
    time_spent_t best = run(&setting, &array, memory);
    if (!rank)
        printf("%s,%ld,%s,%s,%s,%d,%ld,%.6f,%.6f,%.6f\n", setting.pattern, setting.record_bytes,
               setting.mode, setting.direction, argv[7], size, setting.bytes, best.total,
               best.transfer, best.cpu);
    free(memory);
    MPI_Type_free(&array.filetype);
    MPI_Type_free(&array.record);
    MPI_Finalize();
    return 0;
}
