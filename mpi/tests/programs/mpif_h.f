C     Uses mpif.h, in fixed form: ordered writes, and a collective read of the neighbour's data.
      PROGRAM MPIFH
      IMPLICIT NONE
      INCLUDE 'mpif.h'
      INTEGER FH, STATUS(MPI_STATUS_SIZE), RANK, SIZE, IERR, I, NEXT
      INTEGER(KIND=MPI_OFFSET_KIND) OFFSET
      INTEGER A(100), B(100)
      CALL MPI_INIT(IERR)
      CALL MPI_COMM_RANK(MPI_COMM_WORLD, RANK, IERR)
      CALL MPI_COMM_SIZE(MPI_COMM_WORLD, SIZE, IERR)
      CALL MPI_FILE_OPEN(MPI_COMM_WORLD, 'unisono://f77',
     &     MPI_MODE_CREATE + MPI_MODE_RDWR, MPI_INFO_NULL, FH, IERR)
      DO I = 1, 100
         A(I) = RANK * 100 + I
      END DO
      OFFSET = 0
      CALL MPI_FILE_SET_VIEW(FH, OFFSET, MPI_INTEGER, MPI_INTEGER,
     &     'native', MPI_INFO_NULL, IERR)
      CALL MPI_FILE_WRITE_ORDERED(FH, A, 100, MPI_INTEGER, STATUS, IERR)
      NEXT = MOD(RANK + 1, SIZE)
      OFFSET = NEXT * 100
      CALL MPI_FILE_READ_AT_ALL(FH, OFFSET, B, 100, MPI_INTEGER,
     &     STATUS, IERR)
      DO I = 1, 100
         IF (B(I) .NE. NEXT * 100 + I) THEN
            CALL MPI_ABORT(MPI_COMM_WORLD, 1, IERR)
         END IF
      END DO
      CALL MPI_FILE_CLOSE(FH, IERR)
      IF (RANK .EQ. 0) PRINT '(A)', 'mpif_h: passed'
      CALL MPI_FINALIZE(IERR)
      END
