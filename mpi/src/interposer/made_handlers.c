/* made_handlers.c - error handlers of files that programs make in Fortran and C++. The back end calls
 * these handlers, but MPI has no call that returns their functions or languages.
 *
 * The bindings of an MPI library make handlers by functions that are not in the standard, so the calls of
 * the program itself are taken here. The bindings for C++ left the standard in 2012. The ones taken here
 * are those of MPICH up to 4.2 and of Open MPI 4, which do not change any more. */
#include "interposer.h"

/* ---- Fortran ------------------------------------------------------------------------------- */

typedef void create_in_fortran_t(function_t *, int *, int *);

static void create_in_fortran(const char *name, function_t *function, int *errhandler, int *code)
{
    int own_code = 0;
    create_in_fortran_t *create =
        (create_in_fortran_t *)must_have(binding_function(name), name);
    code = code ? code : &own_code; /* optional in mpi_f08 */
    create(function, errhandler, code);
    if (!*code)
        needed()->handler_made_in_fortran(*errhandler, function);
}

/* Defines MPI_File_create_errhandler of Fortran, under a name that compilers give it. */
#define IN_FORTRAN(name)                                                                           \
    PUBLIC void name(function_t *function, int *errhandler, int *code);                            \
    void name(function_t *function, int *errhandler, int *code)                                    \
    {                                                                                              \
        create_in_fortran(#name, function, errhandler, code);                                      \
    }

IN_FORTRAN(mpi_file_create_errhandler)
IN_FORTRAN(mpi_file_create_errhandler_)
IN_FORTRAN(mpi_file_create_errhandler__)
IN_FORTRAN(MPI_FILE_CREATE_ERRHANDLER)
IN_FORTRAN(pmpi_file_create_errhandler)
IN_FORTRAN(pmpi_file_create_errhandler_)
IN_FORTRAN(pmpi_file_create_errhandler__)
IN_FORTRAN(PMPI_FILE_CREATE_ERRHANDLER)
IN_FORTRAN(mpi_file_create_errhandler_f08_)
IN_FORTRAN(pmpi_file_create_errhandler_f08_)

/* ---- Extension of MPICH, which its bindings use since 4.3 ------------------------------------- */

typedef int create_with_state_t(function_t *, function_t *, void *, void *);

static int create_with_state(const char *name, function_t *function, function_t *destructor,
                             void *state, void *errhandler)
{
    create_with_state_t *create = (create_with_state_t *)must_have(next_function(name), name);
    int code = create(function, destructor, state, errhandler);
    handler_t handler = {.kind = HANDLER_WITH_STATE, .function = function, .state = state};
    if (!code)
        needed()->handler_made(errhandler, &handler);
    return code;
}

#define WITH_STATE(name)                                                                           \
    PUBLIC int name(function_t *function, function_t *destructor, void *state, void *errhandler);  \
    int name(function_t *function, function_t *destructor, void *state, void *errhandler)          \
    {                                                                                              \
        return create_with_state(#name, function, destructor, state, errhandler);                  \
    }

WITH_STATE(MPIX_File_create_errhandler_x)
WITH_STATE(PMPIX_File_create_errhandler_x)

/* ---- C++ ----------------------------------------------------------------------------------- */

/* MPICH makes a handler as in C, also for communicators, and then marks it as one of C++. */
PUBLIC void MPII_Errhandler_set_cxx(int errhandler, function_t *caller);

void MPII_Errhandler_set_cxx(int errhandler, function_t *caller)
{
    typedef void set_cxx_t(int, function_t *);
    const char *name = "MPII_Errhandler_set_cxx";
    ((set_cxx_t *)must_have(next_function(name), name))(errhandler, caller);
    if (loaded())
        loaded()->handler_is_cxx(&errhandler, caller);
}

PUBLIC void *ompi_cxx_errhandler_create_file(function_t *function);

void *ompi_cxx_errhandler_create_file(function_t *function)
{
    typedef void *create_t(function_t *);
    const char *name = "ompi_cxx_errhandler_create_file";
    const char *caller = "ompi_mpi_cxx_file_errhandler_invoke";
    void *made = ((create_t *)must_have(binding_function(name), name))(function);
    handler_t handler = {.kind = HANDLER_CXX_OF_OPENMPI, .function = function};
    handler.caller = must_have(binding_function(caller), caller);
    if (made)
        needed()->handler_made(&made, &handler);
    return made;
}

/* When MPI begins, the binding of Open MPI passes the functions of MPI::ERRORS_THROW_EXCEPTIONS here. */
PUBLIC void ompi_cxx_errhandler_set_callbacks(void *errhandler, function_t *of_communicators,
                                              function_t *of_files, function_t *of_windows);

void ompi_cxx_errhandler_set_callbacks(void *errhandler, function_t *of_communicators,
                                       function_t *of_files, function_t *of_windows)
{
    typedef void set_t(void *, function_t *, function_t *, function_t *);
    const char *name = "ompi_cxx_errhandler_set_callbacks";
    ((set_t *)must_have(binding_function(name), name))(errhandler, of_communicators, of_files,
                                                       of_windows);
    handler_t handler = {.kind = HANDLER_C, .function = of_files};
    needed()->handler_made(&errhandler, &handler);
}
