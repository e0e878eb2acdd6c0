/* Prints the table of kinds: number, name, errno, exit code, MPI class. The test compares it. */
#include "check.h"

int main(void)
{
    unisono_kind_t row;
    for (uint32_t kind = 1; unisono_kind(kind, &row) == 0; kind++)
        printf("%u %s %d %d %s\n", (unsigned)kind, row.name, row.errno_value, row.exit_code,
               row.mpi_class);
    return 0;
}
