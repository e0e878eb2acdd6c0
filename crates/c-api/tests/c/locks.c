/* Proves: four processes share a counter and locks of ranges; a lock of a process that was killed
 * blocks no other; a lock that is kept is named after the time-out; bad arguments are refused. */
#include "check.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MEMBERS = 4, ROUNDS = 50 };

/* Memory that the processes share. */
struct shared {
    atomic_int inside;
    atomic_int has_timed_out;
    atomic_int seen[MEMBERS * ROUNDS];
};

static void share(struct shared *shared, unisono_group_t *group)
{
    uint64_t value = 0;
    for (int round = 0; round < ROUNDS; round++) {
        unisono_lock_t *lock = NULL;
        OK(unisono_counter_add(group, 1, &value));
        CHECK(value < MEMBERS * ROUNDS && atomic_fetch_add(&shared->seen[value], 1) == 0);
        OK(unisono_lock_range(group, value / 8, 100, UNISONO_LOCK_EXCLUSIVE, &lock));
        CHECK(lock && atomic_fetch_add(&shared->inside, 1) == 0);
        atomic_fetch_sub(&shared->inside, 1);
        OK(unisono_unlock(lock));
    }
    OK(unisono_barrier(group));
    OK(unisono_counter_get(group, &value));
    CHECK(value == MEMBERS * ROUNDS);
    OK(unisono_barrier(group));
}

static void refuse(unisono_group_t *group)
{
    uint64_t value = 5;
    unisono_lock_t *lock = (unisono_lock_t *)&lock;
    OK(unisono_counter_set(group, UINT64_MAX));
    FAILS(unisono_counter_add(group, 1, &value), EINVAL, UNISONO_ERR_USAGE);
    CHECK(value == 5);
    OK(unisono_counter_add(group, 0, &value));
    CHECK(value == UINT64_MAX);
    FAILS(unisono_counter_add(NULL, 1, &value), EINVAL, UNISONO_ERR_USAGE);
    FAILS(unisono_counter_add(group, 1, NULL), EINVAL, UNISONO_ERR_USAGE);
    FAILS(unisono_counter_set(NULL, 1), EINVAL, UNISONO_ERR_USAGE);
    FAILS(unisono_counter_get(group, NULL), EINVAL, UNISONO_ERR_USAGE);
    FAILS(unisono_lock_range(group, 5, 5, 0, &lock), EINVAL, UNISONO_ERR_USAGE);
    CHECK(!lock);
    FAILS(unisono_lock_range(group, 6, 5, 0, &lock), EINVAL, UNISONO_ERR_USAGE);
    FAILS(unisono_lock_range(group, 5, 6, 2, &lock), EINVAL, UNISONO_ERR_USAGE);
    FAILS(unisono_lock_range(group, 5, 6, -1, &lock), EINVAL, UNISONO_ERR_USAGE);
    FAILS(unisono_lock_range(NULL, 5, 6, 0, &lock), EINVAL, UNISONO_ERR_USAGE);
    FAILS(unisono_lock_range(group, 5, 6, 0, NULL), EINVAL, UNISONO_ERR_USAGE);
    OK(unisono_unlock(NULL));
}

/* Members hold a lock each. The last is killed, the first keeps its own. */
static int member(struct shared *shared, uint32_t rank)
{
    unisono_options_t options = {.size = sizeof options, .timeout_ms = 5000};
    unisono_t *u = NULL;
    unisono_group_t *group = NULL;
    unisono_lock_t *own = NULL, *other = NULL;
    OK(unisono_connect(NULL, &options, &u));
    OK(unisono_group_form(u, "locks", rank, MEMBERS, &group));
    share(shared, group);
    if (rank == 1)
        refuse(group);
    OK(unisono_lock_range(group, 10 * rank, 10 * rank + 10, UNISONO_LOCK_EXCLUSIVE, &own));
    OK(unisono_barrier(group));
    if (rank == MEMBERS - 1)
        raise(SIGKILL);
    if (rank == 2) {
        OK(unisono_lock_range(group, 10 * rank, 10 * rank + 20, UNISONO_LOCK_SHARED, &other));
        OK(unisono_unlock(other));
        FAILS(unisono_lock_range(group, 0, 1, UNISONO_LOCK_SHARED, &other), ETIMEDOUT,
              UNISONO_ERR_LOCK_TIMED_OUT);
        const unisono_error_t *error = unisono_last_error();
        CHECK(!other && error->rank_count == 1 && error->ranks[0] == 0);
        CHECK(!strcmp(error->mpi_class, "MPI_ERR_FILE_IN_USE"));
        atomic_store(&shared->has_timed_out, 1);
    }
    while (rank == 0 && !atomic_load(&shared->has_timed_out))
        sched_yield();
    /* Leaving the group releases the lock; its handle is still there. */
    OK(unisono_group_free(group));
    OK(unisono_unlock(own));
    OK(unisono_disconnect(u));
    return 0;
}

int main(void)
{
    struct shared *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
    pid_t children[MEMBERS];
    for (uint32_t rank = 0; rank < MEMBERS; rank++) {
        children[rank] = fork();
        CHECK(children[rank] >= 0);
        if (children[rank] == 0)
            exit(member(shared, rank));
    }
    for (uint32_t rank = 0; rank < MEMBERS; rank++) {
        int status = 1;
        CHECK(waitpid(children[rank], &status, 0) == children[rank]);
        CHECK(rank == MEMBERS - 1 ? WIFSIGNALED(status) : status == 0);
    }
    return 0;
}
