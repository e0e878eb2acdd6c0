// handlers_cxx.cpp - proves: error handlers of files made by the bindings of MPI for C++, which left
// the standard, get the file and the code, and MPI::ERRORS_THROW_EXCEPTIONS throws.
#include <cstdio>
#include <cstdlib>
#include <mpi.h>

// Open MPI may be built without exceptions, as that of Debian is: it says so, and the program goes on.
#if defined(OPEN_MPI) && !OMPI_HAVE_CXX_EXCEPTION_SUPPORT
static const bool throws = false;
#else
static const bool throws = true;
#endif

static int calls, last_class;
static MPI_File last_file;

static void note_error(MPI::File &file, int *code, ...)
{
    calls++;
    last_file = (MPI_File)file;
    last_class = MPI::Get_error_class(*code);
}

static void check(bool is_true, int number)
{
    if (is_true)
        return;
    std::fprintf(stderr, "check %d failed: %d calls, class %d\n", number, calls, last_class);
    MPI::COMM_WORLD.Abort(number);
}

int main(int count, char **arguments)
{
    int numbers[4], thrown = 0;
    MPI::Init(count, arguments);
    MPI::File file = MPI::File::Open(MPI::COMM_WORLD, "unisono://handlers_cxx",
                                     MPI::MODE_CREATE | MPI::MODE_WRONLY, MPI::INFO_NULL);
    MPI::Errhandler own = MPI::File::Create_errhandler(note_error);
    file.Set_errhandler(own);
    own.Free();
    file.Read(numbers, 4, MPI::INT);
    check(calls == 1 && last_class == MPI_ERR_ACCESS && last_file == (MPI_File)file, 1);
    file.Call_errhandler(MPI_ERR_NO_SPACE);
    check(calls == 2 && last_class == MPI_ERR_NO_SPACE, 2);
    file.Set_errhandler(MPI::ERRORS_THROW_EXCEPTIONS);
    try {
        file.Read(numbers, 4, MPI::INT);
    } catch (MPI::Exception &exception) {
        thrown = exception.Get_error_class();
    }
    check(thrown == (throws ? MPI_ERR_ACCESS : 0) && calls == 2, 3);
    file.Close();
    if (MPI::COMM_WORLD.Get_rank() == 0)
        std::puts("handlers_cxx: passed");
    MPI::Finalize();
    return 0;
}
