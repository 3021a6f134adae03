/* What the programs here add to the checks of the project's test programs: figures from many short turns. */
#ifndef TIMED_H
#define TIMED_H

#include "../../tests/mpi/programs/check.h"

static inline int in_order(const void *one, const void *other) {
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

/* The median of these times, which are sorted. */
static inline double median(double *times, int count) {
    qsort(times, (size_t)count, sizeof *times, in_order);
    return count % 2 ? times[count / 2] : (times[count / 2 - 1] + times[count / 2]) / 2;
}

/* How long a turn of all ranks takes: the slowest rank's. In microseconds. */
static inline double of_all(double seconds) {
    double slowest = 0;
    MPI_Allreduce(&seconds, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest * 1e6;
}

/* What a program is about, in one line that other programs can read: name, microseconds, of what. */
static inline void tell_time(double microseconds, const char *what) {
    if (rank == 0) printf("time %s %.3f us %s\n", program, microseconds, what);
}

/* One turn of a program: the number of the turn. */
typedef void turn_of(int turn);

/* The median time of a turn over so many rounds of so many turns. One round before is not counted. */
static inline double time_turns(turn_of *turn, int rounds, int turns) {
    double *times = memory((size_t)rounds * sizeof *times);
    int number = 0;
    for (int round = -1; round < rounds; round++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double begin_time = MPI_Wtime();
        for (int i = 0; i < turns; i++) turn(number++);
        double time = of_all((MPI_Wtime() - begin_time) / turns);
        if (round >= 0) times[round] = time;
    }
    double result = median(times, rounds);
    free(times);
    return result;
}

#endif
