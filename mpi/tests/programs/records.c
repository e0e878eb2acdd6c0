/* Proves: records that an MPI program writes are found by its ranks, each by a key and in equal
 * shares, in a group of a communicator; a condition that differs is an error at every rank. */
#include "check.h"

#include <unisono_mpi.h>

test_t test;

enum { OF_RANK = 3000 };

struct particle {
    int64_t id;
    float mass;
    int32_t cell;
};

static const char TYPE[] = "id:i8, mass:f4, cell:i4";

static struct particle particle_of(int64_t id)
{
    struct particle particle = {id, (float)(id % 10) / 4, (int32_t)(id * 13 % 17)};
    return particle;
}

/* Finds particles with a key or without, and returns them. */
static struct particle *find(unisono_file_t *file, unisono_group_t *group, const char *text,
                             const char *key, uint64_t *count)
{
    unisono_condition_t *condition = NULL;
    unisono_records_t *records = NULL;
    CHECK(unisono_condition_text(text, &condition) == 0);
    CHECK(unisono_find_records(file, group, TYPE, condition, key, NULL, &records) == 0);
    CHECK(unisono_records_count(records, count) == 0);
    struct particle *found = malloc((*count + 1) * sizeof *found);
    int64_t read = unisono_records_read(records, found, *count * sizeof *found);
    CHECK(read == (int64_t)*count);
    CHECK(unisono_records_free(records) == 0);
    CHECK(unisono_condition_free(condition) == 0);
    return found;
}

int main(int argc, char **argv)
{
    begin(argc, argv, "records");
    const int rank = test.rank, size = test.size;
    const int64_t all = (int64_t)OF_RANK * size;

    MPI_File out;
    struct particle *own = malloc(OF_RANK * sizeof *own);
    for (int i = 0; i < OF_RANK; i++)
        own[i] = particle_of((int64_t)rank * OF_RANK + i);
    const int mode = MPI_MODE_CREATE | MPI_MODE_WRONLY;
    OK(MPI_File_open(MPI_COMM_WORLD, test.file, mode, MPI_INFO_NULL, &out));
    OK(MPI_File_write_at_all(out, (MPI_Offset)rank * OF_RANK * (MPI_Offset)sizeof *own, own,
                             OF_RANK * (int)sizeof *own, MPI_BYTE, MPI_STATUS_IGNORE));
    OK(MPI_File_close(&out));

    unisono_t *connection = NULL;
    unisono_group_t *group = NULL;
    unisono_file_t *file = NULL;
    CHECK(unisono_connect(NULL, NULL, &connection) == 0);
    CHECK(unisono_group_of_communicator(connection, MPI_COMM_WORLD, &group) == 0);
    const char *name = strstr(test.file, "://");
    CHECK(unisono_open(connection, name ? name + 3 : test.file, 0, NULL, &file) == 0);

    /* Each rank gets the particles of its cells, in the order of the file. */
    char key[32];
    snprintf(key, sizeof key, "cell %% %d", size);
    uint64_t count = 0, expected = 0;
    struct particle *found = find(file, group, "mass >= 1", key, &count);
    for (int64_t id = 0; id < all; id++) {
        struct particle particle = particle_of(id);
        if (particle.mass >= 1 && particle.cell % size == rank) {
            CHECK(expected < count && !memcmp(&found[expected], &particle, sizeof particle));
            expected++;
        }
    }
    CHECK(expected == count);
    free(found);

    /* Equal shares, which are all of them together. */
    found = find(file, group, "mass < 0.3", NULL, &count);
    long long mine = (long long)count, sum = 0, before = 0;
    MPI_Allreduce(&mine, &sum, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    MPI_Exscan(&mine, &before, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum == all / 10 * 2 && mine <= sum / size + 1 && mine >= sum / size);
    before = rank ? before : 0;
    for (uint64_t i = 0; i < count; i++) {
        /* Of ten particles those with the ids 0 and 1 have such a mass. */
        long long at = before + (long long)i;
        CHECK(found[i].id == at / 2 * 10 + at % 2);
    }
    free(found);

    double least = 0;
    int64_t total = 0;
    CHECK(unisono_count_records(file, group, TYPE, NULL, NULL) == all);
    CHECK(unisono_reduce_records(file, group, TYPE, NULL, NULL, UNISONO_SUM, "id", &least, &total)
          == 0);
    CHECK(total == all * (all - 1) / 2);

    /* Ranks that want something else. */
    unisono_condition_t *own_condition = NULL;
    CHECK(unisono_condition_compare_integer("id", UNISONO_GREATER, rank, &own_condition) == 0);
    CHECK(unisono_count_records(file, group, TYPE, own_condition, NULL) < 0);
    CHECK(unisono_last_error()->kind == UNISONO_ERR_CALLS_DIFFER);
    CHECK(unisono_condition_free(own_condition) == 0);

    CHECK(unisono_close(file) == 0);
    CHECK(unisono_group_free(group) == 0);
    CHECK(unisono_disconnect(connection) == 0);
    free(own);
    return end();
}
