/* hdf5.c - writes a distributed array by parallel HDF5, contiguous and in chunks, and reads it. The argument,
 * if any, is the start of the names of the files. */
#include <hdf5.h>
#include <mpi.h>
#include <stdio.h>

enum { ROWS = 64, COLUMNS = 32 };

static int rank, size;

static void require(int is_true, int code)
{
    if (!is_true)
        MPI_Abort(MPI_COMM_WORLD, code);
}

static void transfer(const char *name, int is_chunked)
{
    static double written[ROWS * COLUMNS], found[ROWS * COLUMNS];
    hsize_t whole[2] = {ROWS, (hsize_t)(COLUMNS * size)}, own[2] = {ROWS, COLUMNS};
    hsize_t start[2] = {0, (hsize_t)(COLUMNS * rank)}, chunk[2] = {16, 16};
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), creation = H5Pcreate(H5P_DATASET_CREATE);
    hid_t collective = H5Pcreate(H5P_DATASET_XFER);
    H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL);
    H5Pset_dxpl_mpio(collective, H5FD_MPIO_COLLECTIVE);
    if (is_chunked)
        H5Pset_chunk(creation, 2, chunk);
    hid_t file = H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, access);
    require(file >= 0, 1);
    hid_t space = H5Screate_simple(2, whole, NULL), memory = H5Screate_simple(2, own, NULL);
    H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, own, NULL);
    hid_t data = H5Dcreate(file, "t", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, creation, H5P_DEFAULT);
    for (int i = 0; i < ROWS * COLUMNS; i++)
        written[i] = rank * 10000 + i;
    require(H5Dwrite(data, H5T_NATIVE_DOUBLE, memory, space, collective, written) >= 0, 2);
    H5Dclose(data);
    require(H5Fclose(file) >= 0, 3);
    file = H5Fopen(name, H5F_ACC_RDONLY, access);
    require(file >= 0, 4);
    data = H5Dopen(file, "t", H5P_DEFAULT);
    require(H5Dread(data, H5T_NATIVE_DOUBLE, memory, space, collective, found) >= 0, 5);
    for (int i = 0; i < ROWS * COLUMNS; i++)
        require(written[i] == found[i], 6);
    H5Dclose(data);
    require(H5Fclose(file) >= 0, 7);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int is_chunked = 0; is_chunked < 2; is_chunked++) {
        char name[4096];
        snprintf(name, sizeof name, "%s%s.h5", argc > 1 ? argv[1] : "unisono://",
                 is_chunked ? "chunked" : "contiguous");
        transfer(name, is_chunked);
    }
    if (!rank)
        printf("hdf5: passed\n");
    MPI_Finalize();
    return 0;
}
