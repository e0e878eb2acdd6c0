// cxx.cpp - an ordinary MPI program in C++: writes a view of blocks, and reads it back.
#include <cstdio>
#include <mpi.h>
#include <vector>

int main(int count, char **arguments)
{
    MPI_Init(&count, &arguments);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    std::vector<double> written(1000), read(1000);
    for (size_t i = 0; i < written.size(); i++)
        written[i] = rank + 0.001 * static_cast<double>(i);
    MPI_Datatype blocks;
    MPI_Type_vector(100, 10, 10 * size, MPI_DOUBLE, &blocks);
    MPI_Type_commit(&blocks);
    MPI_File file;
    int wrong = 0;
    wrong += MPI_File_open(MPI_COMM_WORLD, "unisono://cxx", MPI_MODE_CREATE | MPI_MODE_RDWR,
                           MPI_INFO_NULL, &file) != MPI_SUCCESS;
    MPI_Offset start = static_cast<MPI_Offset>(sizeof(double)) * 10 * rank;
    wrong += MPI_File_set_view(file, start, MPI_DOUBLE, blocks, "native", MPI_INFO_NULL)
             != MPI_SUCCESS;
    wrong += MPI_File_write_all(file, written.data(), 1000, MPI_DOUBLE, MPI_STATUS_IGNORE)
             != MPI_SUCCESS;
    wrong += MPI_File_read_at_all(file, 0, read.data(), 1000, MPI_DOUBLE, MPI_STATUS_IGNORE)
             != MPI_SUCCESS;
    wrong += written != read;
    wrong += MPI_File_close(&file) != MPI_SUCCESS;
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (!rank)
        std::puts(wrong ? "cxx: failed" : "cxx: passed");
    MPI_Type_free(&blocks);
    MPI_Finalize();
    return wrong != 0;
}
