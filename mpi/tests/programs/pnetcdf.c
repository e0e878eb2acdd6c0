/* pnetcdf.c - writes a distributed variable by PnetCDF, and reads it. NC_NOCLOBBER keeps a file that is there,
 * and NC_CLOBBER nothing of it: PnetCDF asks for files by POSIX calls, in which they are not. The argument, if
 * any, is the start of the names of the files. */
#include <mpi.h>
#include <pnetcdf.h>
#include <stdio.h>

enum { ROWS = 64, COLUMNS = 32 };

static void require(int code)
{
    if (code == NC_NOERR)
        return;
    fprintf(stderr, "pnetcdf: %s\n", ncmpi_strerror(code));
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static MPI_Offset bytes_of(const char *name)
{
    MPI_File file;
    MPI_Offset bytes;
    if (MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &file) != MPI_SUCCESS)
        return -1;
    MPI_File_get_size(file, &bytes);
    MPI_File_close(&file);
    return bytes;
}

/* A file of this name is kept or replaced as a mode says, and its format is told. */
static void clobber(const char *name, const char *none)
{
    int file, format;
    MPI_Offset before = bytes_of(name);
    int code = ncmpi_create(MPI_COMM_WORLD, name, NC_NOCLOBBER, MPI_INFO_NULL, &file);
    if (code != NC_EEXIST || bytes_of(name) != before)
        MPI_Abort(MPI_COMM_WORLD, 3);
    require(ncmpi_inq_file_format(name, &format));
    require(ncmpi_inq_file_format(name, NULL));
    if (format != NC_FORMAT_CDF5)
        MPI_Abort(MPI_COMM_WORLD, 4);
    /* The next call empties the file. */
    MPI_Barrier(MPI_COMM_WORLD);
    require(ncmpi_create(MPI_COMM_WORLD, name, NC_CLOBBER, MPI_INFO_NULL, &file));
    require(ncmpi_close(file));
    if (bytes_of(name) <= 0 || bytes_of(name) >= before)
        MPI_Abort(MPI_COMM_WORLD, 5);
    if (ncmpi_open(MPI_COMM_WORLD, none, NC_NOWRITE, MPI_INFO_NULL, &file) != NC_ENOENT)
        MPI_Abort(MPI_COMM_WORLD, 6);
    require(ncmpi_create(MPI_COMM_WORLD, none, NC_NOCLOBBER, MPI_INFO_NULL, &file));
    require(ncmpi_close(file));
}

int main(int argc, char **argv)
{
    static double written[ROWS * COLUMNS], found[ROWS * COLUMNS];
    const char *start_of_names = argc > 1 ? argv[1] : "unisono://";
    char name[4096], none[4096];
    int rank, size, file, dimensions[2], variable;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    snprintf(name, sizeof name, "%st.nc", start_of_names);
    snprintf(none, sizeof none, "%snone.nc", start_of_names);
    MPI_Offset start[2] = {0, COLUMNS * rank}, count[2] = {ROWS, COLUMNS};
    for (int i = 0; i < ROWS * COLUMNS; i++)
        written[i] = rank * 10000 + i;
    require(ncmpi_create(MPI_COMM_WORLD, name, NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &file));
    require(ncmpi_def_dim(file, "y", ROWS, &dimensions[0]));
    require(ncmpi_def_dim(file, "x", COLUMNS * size, &dimensions[1]));
    require(ncmpi_def_var(file, "t", NC_DOUBLE, 2, dimensions, &variable));
    require(ncmpi_enddef(file));
    require(ncmpi_put_vara_double_all(file, variable, start, count, written));
    require(ncmpi_close(file));
    require(ncmpi_open(MPI_COMM_WORLD, name, NC_NOWRITE, MPI_INFO_NULL, &file));
    require(ncmpi_inq_varid(file, "t", &variable));
    require(ncmpi_get_vara_double_all(file, variable, start, count, found));
    require(ncmpi_close(file));
    for (int i = 0; i < ROWS * COLUMNS; i++)
        if (written[i] != found[i])
            MPI_Abort(MPI_COMM_WORLD, 2);
    clobber(name, none);
    if (!rank)
        printf("pnetcdf: passed\n");
    MPI_Finalize();
    return 0;
}
