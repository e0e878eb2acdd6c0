! Uses the module mpi: an independent non-blocking write and a collective read.
program fortran_90
  use mpi
  implicit none
  integer :: file, status(MPI_STATUS_SIZE), request, rank, count, code, i
  integer(MPI_OFFSET_KIND) :: offset
  double precision :: written(1000), found(1000)
  call MPI_Init(code)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, code)
  call MPI_File_open(MPI_COMM_WORLD, 'unisono://f90', MPI_MODE_CREATE + MPI_MODE_RDWR, &
                     MPI_INFO_NULL, file, code)
  do i = 1, 1000
     written(i) = rank * 1000 + i
  end do
  offset = rank * 8000
  call MPI_File_set_view(file, offset, MPI_DOUBLE_PRECISION, MPI_DOUBLE_PRECISION, 'native', &
                         MPI_INFO_NULL, code)
  call MPI_File_iwrite(file, written, 1000, MPI_DOUBLE_PRECISION, request, code)
  call MPI_Wait(request, status, code)
  call MPI_Get_count(status, MPI_DOUBLE_PRECISION, count, code)
  offset = 0
  call MPI_File_seek(file, offset, MPI_SEEK_SET, code)
  call MPI_File_read_all(file, found, 1000, MPI_DOUBLE_PRECISION, status, code)
  if (count /= 1000 .or. any(written /= found)) call MPI_Abort(MPI_COMM_WORLD, 1, code)
  call MPI_File_close(file, code)
  if (file /= MPI_FILE_NULL) call MPI_Abort(MPI_COMM_WORLD, 2, code)
  if (rank == 0) print '(a)', 'use_mpi: passed'
  call MPI_Finalize(code)
end program
