! Uses the module mpi_f08: a non-blocking collective write, its status, and a file that is missing.
program fortran_2008
  use mpi_f08
  implicit none
  type(MPI_File) :: file
  type(MPI_Status) :: status
  type(MPI_Request) :: request
  integer :: rank, count, code, i
  integer(MPI_OFFSET_KIND) :: offset
  double precision :: written(1000), found(1000)
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_File_open(MPI_COMM_WORLD, 'unisono://f08', MPI_MODE_CREATE + MPI_MODE_RDWR, &
                     MPI_INFO_NULL, file)
  do i = 1, 1000
     written(i) = rank * 1000 + i
  end do
  offset = rank * 8000
  call MPI_File_set_view(file, offset, MPI_DOUBLE_PRECISION, MPI_DOUBLE_PRECISION, 'native', &
                         MPI_INFO_NULL)
  call MPI_File_iwrite_all(file, written, 1000, MPI_DOUBLE_PRECISION, request)
  call MPI_Wait(request, status)
  call MPI_Get_count(status, MPI_DOUBLE_PRECISION, count)
  offset = 0
  call MPI_File_read_at_all(file, offset, found, 1000, MPI_DOUBLE_PRECISION, status)
  if (count /= 1000 .or. any(written /= found)) call MPI_Abort(MPI_COMM_WORLD, 1)
  call MPI_File_close(file)
  call MPI_File_open(MPI_COMM_WORLD, 'unisono://nothing', MPI_MODE_RDONLY, MPI_INFO_NULL, file, code)
  if (code == MPI_SUCCESS) call MPI_Abort(MPI_COMM_WORLD, 2)
  if (rank == 0) print '(a)', 'mpi_f08: passed'
  call MPI_Finalize()
end program
