! handlers_f08.f90 - proves: error handlers of files made by `use mpi_f08` get the file and the code
! of Fortran, with and without the last argument of a call.
module handler_of_f08
  use mpi_f08
  implicit none
  integer :: calls = 0, last_code = -1
  type(MPI_File) :: last_file
contains
  subroutine note_error(file, code)
    type(MPI_File) :: file
    integer :: code
    calls = calls + 1
    last_file = file
    last_code = code
  end subroutine
end module

program handlers
  use handler_of_f08
  implicit none
  type(MPI_File) :: file, other
  type(MPI_Errhandler) :: own, before
  integer :: code, class, rank, length, numbers(4)
  character(len=MPI_MAX_ERROR_STRING) :: text
  call MPI_Init()
  call MPI_File_open(MPI_COMM_WORLD, 'unisono://handlers', MPI_MODE_CREATE + MPI_MODE_WRONLY, &
                     MPI_INFO_NULL, file)
  call MPI_File_create_errhandler(note_error, own)
  call MPI_File_set_errhandler(file, own)
  call MPI_Errhandler_free(own)
  call MPI_File_read(file, numbers, 4, MPI_INTEGER, MPI_STATUS_IGNORE, code)
  call MPI_Error_class(code, class)
  call check(calls == 1 .and. last_file == file .and. class == MPI_ERR_ACCESS, 1)
  call MPI_Error_string(code, text, length)
  call check(index(text, 'MPI_File_read failed: ') > 0, 2)
  call MPI_File_call_errhandler(file, MPI_ERR_NO_SPACE)
  call check(calls == 2 .and. last_code == MPI_ERR_NO_SPACE, 3)
  call MPI_File_close(file)
  call MPI_File_create_errhandler(note_error, own, code)
  call check(code == MPI_SUCCESS, 4)
  call MPI_File_get_errhandler(MPI_FILE_NULL, before)
  call MPI_File_set_errhandler(MPI_FILE_NULL, own)
  call MPI_File_open(MPI_COMM_WORLD, 'unisono://no/such/file', MPI_MODE_RDONLY, MPI_INFO_NULL, &
                     other, code)
  call check(calls == 3 .and. last_file == MPI_FILE_NULL .and. code /= MPI_SUCCESS, 5)
  call MPI_File_set_errhandler(MPI_FILE_NULL, before)
  call MPI_Errhandler_free(own)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  if (rank == 0) print '(a)', 'handlers_f08: passed'
  call MPI_Finalize()
contains
  subroutine check(is_true, number)
    logical, intent(in) :: is_true
    integer, intent(in) :: number
    if (is_true) return
    print *, 'check', number, 'failed:', calls, last_file%MPI_VAL, last_code, code
    call MPI_Abort(MPI_COMM_WORLD, number)
  end subroutine
end program
