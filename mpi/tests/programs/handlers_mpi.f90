! handlers_mpi.f90 - proves: error handlers of files made by `use mpi` get the file and the code of
! Fortran, stay while a file has them, and are the default when MPI_FILE_NULL has one.
module calls_of_handlers
  implicit none
  integer :: calls = 0, last_file = -1, last_code = -1
end module

subroutine note_error(file, code)
  use calls_of_handlers
  implicit none
  integer :: file, code
  calls = calls + 1
  last_file = file
  last_code = code
end subroutine

program handlers
  use mpi
  use calls_of_handlers
  implicit none
  integer :: file, other, own, found, before, code, class, length, numbers(4)
  integer :: status(MPI_STATUS_SIZE)
  character(len=MPI_MAX_ERROR_STRING) :: text
  external :: note_error
  call MPI_Init(code)
  call MPI_File_open(MPI_COMM_WORLD, 'unisono://handlers', MPI_MODE_CREATE + MPI_MODE_WRONLY, &
                     MPI_INFO_NULL, file, code)
  call check(code == MPI_SUCCESS, 1)
  call MPI_File_create_errhandler(note_error, own, code)
  call MPI_File_set_errhandler(file, own, code)
  call MPI_File_get_errhandler(file, found, code)
  call check(found == own, 2)
  call MPI_Errhandler_free(found, code)
  call MPI_Errhandler_free(own, code)
  call MPI_File_read(file, numbers, 4, MPI_INTEGER, status, code)
  call check(calls == 1 .and. last_file == file .and. last_code == code, 3)
  call MPI_Error_class(code, class, length)
  call check(class == MPI_ERR_ACCESS, 4)
  call MPI_Error_string(code, text, length, class)
  call check(index(text, 'MPI_File_read failed: ') > 0, 5)
  call MPI_File_call_errhandler(file, MPI_ERR_NO_SPACE, code)
  call check(calls == 2 .and. last_code == MPI_ERR_NO_SPACE, 6)
  call MPI_File_set_errhandler(file, MPI_ERRORS_RETURN, code)
  call MPI_File_read(file, numbers, 4, MPI_INTEGER, status, code)
  call check(calls == 2 .and. code /= MPI_SUCCESS, 7)
  call MPI_File_close(file, code)

  call MPI_File_create_errhandler(note_error, own, code)
  call MPI_File_get_errhandler(MPI_FILE_NULL, before, code)
  call MPI_File_set_errhandler(MPI_FILE_NULL, own, code)
  call MPI_File_open(MPI_COMM_WORLD, 'unisono://no/such/file', MPI_MODE_RDONLY, MPI_INFO_NULL, &
                     other, code)
  call check(calls == 3 .and. last_file == MPI_FILE_NULL .and. code /= MPI_SUCCESS, 8)
  call MPI_File_open(MPI_COMM_WORLD, 'unisono://handlers', MPI_MODE_RDONLY, MPI_INFO_NULL, file, code)
  call MPI_File_write(file, numbers, 4, MPI_INTEGER, status, code)
  call check(calls == 4 .and. last_file == file, 9)
  call MPI_File_close(file, code)
  call MPI_File_set_errhandler(MPI_FILE_NULL, before, code)
  call MPI_Errhandler_free(own, code)
  call MPI_Comm_rank(MPI_COMM_WORLD, class, code)
  if (class == 0) print '(a)', 'handlers_mpi: passed'
  call MPI_Finalize(code)
contains
  subroutine check(is_true, number)
    logical, intent(in) :: is_true
    integer, intent(in) :: number
    integer :: ignored
    if (is_true) return
    print *, 'check', number, 'failed:', calls, last_file, last_code, code
    call MPI_Abort(MPI_COMM_WORLD, number, ignored)
  end subroutine
end program
