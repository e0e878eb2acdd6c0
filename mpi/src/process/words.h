/* words.h - functions of MPI as functions of machine words. */
#ifndef UNISONO_MPI_WORDS_H
#define UNISONO_MPI_WORDS_H

typedef int call_0(void);
typedef int call_1(long);
typedef int call_2(long, long);
typedef int call_3(long, long, long);
typedef int call_4(long, long, long, long);
typedef int call_5(long, long, long, long, long);
typedef int call_6(long, long, long, long, long, long);
typedef int call_7(long, long, long, long, long, long, long);
typedef int call_8(long, long, long, long, long, long, long, long);
typedef int call_9(long, long, long, long, long, long, long, long, long);
typedef int call_10(long, long, long, long, long, long, long, long, long, long);
typedef int call_11(long, long, long, long, long, long, long, long, long, long, long);
typedef int call_12(long, long, long, long, long, long, long, long, long, long, long, long);

#define TAKE_0 void
#define TAKE_1 long a
#define TAKE_2 TAKE_1, long b
#define TAKE_3 TAKE_2, long c
#define TAKE_4 TAKE_3, long d
#define TAKE_5 TAKE_4, long e
#define TAKE_6 TAKE_5, long f
#define TAKE_7 TAKE_6, long g
#define TAKE_8 TAKE_7, long h
#define TAKE_9 TAKE_8, long i
#define TAKE_10 TAKE_9, long j
#define TAKE_11 TAKE_10, long k
#define TAKE_12 TAKE_11, long l
#define GIVE_0
#define GIVE_1 a
#define GIVE_2 GIVE_1, b
#define GIVE_3 GIVE_2, c
#define GIVE_4 GIVE_3, d
#define GIVE_5 GIVE_4, e
#define GIVE_6 GIVE_5, f
#define GIVE_7 GIVE_6, g
#define GIVE_8 GIVE_7, h
#define GIVE_9 GIVE_8, i
#define GIVE_10 GIVE_9, j
#define GIVE_11 GIVE_10, k
#define GIVE_12 GIVE_11, l

#define THROUGH(n, target) ((call_##n *)(target))(GIVE_##n)

#endif
