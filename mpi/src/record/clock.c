/* clock.c - how the time between two calls was spent: computing, ready to compute (the machine gave
 * the processor to others, which is not recorded), or neither.
 *
 * The clock of the processor time of a thread is a system call. It is read only where a gap, or a
 * call, was long: in a short one the thread was not interrupted, so its processor time is the time
 * that has passed. Thus the processor time at the end of a call is always known, and no gap contains
 * any of a call. */
#include "recording.h"

#include <fcntl.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

enum {
    SHORT_NS = 5000,       /* shorter times were not interrupted; raised to 10 readings of the clock */
    SHORT_NS_MAX = 50000,  /* upper bound of that */
    IDLE_NS = 200000,      /* idle time from which the recorder reads its reason from the kernel */
    IDLE_NS_MIN = 5000,    /* less is noise of the clocks */
    POLL_NS = 1000,        /* a loop around a test takes less than this by itself */
    CALIBRATE_NS = 5000000 /* time over which the counter is compared with the clock */
};

/* Times of this call, and of the end of the previous one. Counter values are ticks. */
static struct {
    pthread_t thread;       /* that made the previous call */
    uint64_t entered, left; /* ticks */
    uint64_t called;        /* duration of the real call, in ns, for the next event */
    uint64_t run;           /* the same, for the recorder's own time */
    uint64_t cpu;           /* processor time of the thread at `entered` or `left`, in ns */
    uint64_t delay;         /* time that the thread was ready without a processor, as last read */
    uint64_t idle;          /* time not spent computing since then */
    uint64_t computed, blocked, polled; /* for the next event */
    uint64_t calls, cost;   /* of the recorder */
    int depends, was_polled;
    uint64_t short_ns;
    int schedstat; /* descriptor; -1 where the kernel has none */
} now = {.schedstat = -1};

static unisono_trace_times_t times;

/* ---- Clocks -------------------------------------------------------------------------------- */

/* Nanoseconds of a tick times 2^32; 0 when the system's clock replaces the counter. */
static uint64_t tick_scale;

static uint64_t monotonic_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static uint64_t cpu_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* Counter of the processor, whose rate is constant on all of them. */
static uint64_t counter(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    uint64_t value;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(value));
    return value;
#endif
}

static int counter_is_constant(void)
{
#if defined(__x86_64__)
    unsigned a, b, c, d;
    return __get_cpuid(0x80000007, &a, &b, &c, &d) && d & 1u << 8;
#else
    return 1;
#endif
}

static uint64_t ticks(void)
{
    return tick_scale ? counter() : monotonic_ns();
}

static uint64_t ns_between(uint64_t from, uint64_t to)
{
    /* Counters of processors may differ by a few ticks. */
    if (to <= from)
        return 0;
    return tick_scale ? (uint64_t)(((unsigned __int128)(to - from) * tick_scale) >> 32) : to - from;
}

static void calibrate(void)
{
    if (!counter_is_constant())
        return;
    uint64_t ns = monotonic_ns(), count = counter(), passed;
    while ((passed = monotonic_ns() - ns) < CALIBRATE_NS)
        ;
    uint64_t counted = counter() - count;
    if (counted)
        tick_scale = (uint64_t)(((unsigned __int128)passed << 32) / counted);
}

/* Nanoseconds that the thread has been ready to compute while others had the processors. */
static uint64_t read_delay(void)
{
    char text[96];
    ssize_t length = now.schedstat < 0 ? 0 : pread(now.schedstat, text, sizeof text - 1, 0);
    uint64_t delay = 0;
    const char *at = text;
    if (length <= 0)
        return now.delay;
    text[length] = 0;
    while (*at && *at != ' ')
        at++;
    while (*at == ' ')
        at++;
    for (; *at >= '0' && *at <= '9'; at++)
        delay = 10 * delay + (uint64_t)(*at - '0');
    return delay;
}

/* ---- Calls --------------------------------------------------------------------------------- */

static void adopt_thread(void)
{
    if (now.schedstat >= 0)
        close(now.schedstat);
    now.schedstat = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    now.thread = pthread_self();
    now.delay = read_delay();
    now.idle = 0;
    now.cpu = cpu_ns();
}

void clock_begin(void)
{
    calibrate();
    adopt_thread();
    uint64_t from = ticks(), readings = 16;
    for (uint64_t i = 0; i < readings; i++)
        now.cpu = cpu_ns();
    uint64_t ten = 10 * ns_between(from, ticks()) / readings;
    now.short_ns = ten < SHORT_NS ? SHORT_NS : ten > SHORT_NS_MAX ? SHORT_NS_MAX : ten;
    now.left = now.entered = ticks();
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Processor time in the last `passed` nanoseconds, read from the clock. */
static uint64_t spend(uint64_t passed)
{
    uint64_t cpu = cpu_ns(), spent = cpu > now.cpu ? cpu - now.cpu : 0;
    now.cpu = cpu;
    return least(spent, passed);
}

/* Time of `idle` nanoseconds in which the thread was not ready to compute. */
static uint64_t blocked_of(uint64_t idle)
{
    now.idle += idle;
    if (idle < IDLE_NS)
        return idle < IDLE_NS_MIN ? 0 : idle;
    uint64_t delay = read_delay(), waited = delay - now.delay;
    now.delay = delay;
    now.idle = 0;
    return idle - least(waited, idle);
}

void clock_enter(void)
{
    uint64_t arrived = ticks(), entered = arrived, passed = ns_between(now.left, arrived);
    uint64_t computed = passed, blocked = 0;
    if (!pthread_equal(now.thread, pthread_self())) {
        /* The previous thread may also have computed. How much each did is not known. */
        adopt_thread();
        entered = ticks();
    } else if (passed > now.short_ns) {
        computed = spend(passed);
        blocked = blocked_of(passed - computed);
        entered = ticks();
    } else {
        now.cpu += passed;
    }
    if (now.was_polled) {
        /* A loop that sleeps longer than it computes counts as waiting, too. */
        computed = computed < POLL_NS || computed < blocked ? 0 : computed;
        now.polled += passed - least(passed, computed);
        blocked = 0;
        now.was_polled = 0;
    }
    now.computed += computed;
    now.blocked += blocked;
    now.cost += ns_between(arrived, entered);
    now.entered = entered;
    now.called = now.run = 0;
}

void clock_called(void)
{
    now.called = now.run = ns_between(now.entered, ticks());
}

void clock_leave(void)
{
    uint64_t left = ticks(), passed = ns_between(now.entered, left);
    uint64_t own = passed - least(now.run, passed);
    if (passed > now.short_ns) {
        now.idle += passed - spend(passed);
        if (now.idle > IDLE_NS) {
            now.delay = read_delay();
            now.idle = 0;
        }
        uint64_t read = ticks();
        own += ns_between(left, read);
        left = read;
    } else {
        now.cpu += passed;
    }
    now.calls++;
    now.cost += own;
    now.left = left;
}

void clock_polled(void)
{
    now.was_polled = 1;
    now.depends = 1;
    now.polled += now.called;
}

void clock_depends(void)
{
    now.depends = 1;
}

uint64_t clock_calls(void)
{
    return now.calls;
}

uint64_t clock_cost(void)
{
    return now.cost;
}

const unisono_trace_times_t *clock_times(void)
{
    times = (unisono_trace_times_t){
        .computed_ns = now.computed,
        .blocked_ns = now.blocked,
        .took_ns = now.polled + now.called,
        .depends_on_timing = now.depends,
    };
    now.computed = now.blocked = now.polled = now.called = 0;
    now.depends = 0;
    return &times;
}
