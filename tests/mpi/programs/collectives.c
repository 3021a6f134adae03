/* Collective operations, with results that are computed beforehand: on the world, on duplicates, on halves and between
 * halves; blocking and nonblocking. Arguments: count (numbers in each), rounds. */
#include "check.h"

static int mine, all;

static void equal(const int *got, int count, int first, int step, const char *what) {
    for (int i = 0; i < count; i++)
        REQUIRE(got[i] == first + step * i, "%s: number %d is %d and not %d", what, i, got[i], first + step * i);
}

static void set(int *area, int count, int first, int step) {
    for (int i = 0; i < count; i++) area[i] = first + step * i;
}

static void from_one(MPI_Comm comm, int count) {
    int *area = memory(sizeof(int) * count * all), *part = memory(sizeof(int) * count);
    for (int root = 0; root < all; root++) {
        set(area, count, mine == root ? 100 * root : -1, mine == root);
        MPI_Bcast(area, count, MPI_INT, root, comm);
        equal(area, count, 100 * root, 1, "bcast");
        set(area, count * all, mine == root ? root : -1, mine == root);
        MPI_Scatter(area, count, MPI_INT, part, count, MPI_INT, root, comm);
        equal(part, count, root + count * mine, 1, "scatter");
        MPI_Gather(part, count, MPI_INT, area, count, MPI_INT, root, comm);
        if (mine == root) equal(area, count * all, root, 1, "gather");
        set(part, count, mine, 1);
        MPI_Reduce(part, area, count, MPI_INT, MPI_SUM, root, comm);
        if (mine == root) equal(area, count, all * (all - 1) / 2, all, "reduce");
    }
    free(area);
    free(part);
}

static void from_all(MPI_Comm comm, int count) {
    int *area = memory(sizeof(int) * count * all), *part = memory(sizeof(int) * count * all);
    set(part, count, mine * count, 1);
    MPI_Allgather(part, count, MPI_INT, area, count, MPI_INT, comm);
    equal(area, count * all, 0, 1, "allgather");
    set(part, count, mine, 1);
    MPI_Allreduce(part, area, count, MPI_INT, MPI_SUM, comm);
    equal(area, count, all * (all - 1) / 2, all, "allreduce");
    MPI_Allreduce(part, area, count, MPI_INT, MPI_MAX, comm);
    equal(area, count, all - 1, 1, "allreduce of the largest");
    for (int i = 0; i < all; i++) set(part + i * count, count, 1000 * mine + i, 0);
    MPI_Alltoall(part, count, MPI_INT, area, count, MPI_INT, comm);
    for (int i = 0; i < all; i++) equal(area + i * count, count, 1000 * i + mine, 0, "alltoall");
    set(part, count * all, mine, 1);
    MPI_Reduce_scatter_block(part, area, count, MPI_INT, MPI_SUM, comm);
    equal(area, count, all * (all - 1) / 2 + all * mine * count, all, "reduce_scatter_block");
    set(part, count, 1, 0);
    MPI_Scan(part, area, count, MPI_INT, MPI_SUM, comm);
    equal(area, count, mine + 1, 0, "scan");
    free(area);
    free(part);
}

/* Of different lengths: rank i has i + 1 times so many. */
static void uneven(MPI_Comm comm, int count) {
    int total = 0;
    int *counts = memory(sizeof(int) * all), *places = memory(sizeof(int) * all);
    for (int i = 0; i < all; i++) {
        counts[i] = (i + 1) * count;
        places[i] = total;
        total += counts[i];
    }
    int *area = memory(sizeof(int) * total), *part = memory(sizeof(int) * total);
    set(part, counts[mine], places[mine], 1);
    MPI_Allgatherv(part, counts[mine], MPI_INT, area, counts, places, MPI_INT, comm);
    equal(area, total, 0, 1, "allgatherv");
    free(area);
    free(part);
    free(counts);
    free(places);
}

static void nonblocking(MPI_Comm comm, int count) {
    enum { KINDS = 5 };
    int *areas[KINDS], *parts[KINDS];
    MPI_Request requests[KINDS];
    for (int i = 0; i < KINDS; i++) {
        areas[i] = memory(sizeof(int) * count * all);
        parts[i] = memory(sizeof(int) * count * all);
    }
    set(areas[0], count, mine == 0 ? 5 : -1, mine == 0);
    set(parts[1], count, mine, 1);
    set(parts[2], count, mine * count, 1);
    for (int i = 0; i < all; i++) set(parts[3] + i * count, count, 1000 * mine + i, 0);
    MPI_Ibcast(areas[0], count, MPI_INT, 0, comm, &requests[0]);
    MPI_Iallreduce(parts[1], areas[1], count, MPI_INT, MPI_SUM, comm, &requests[1]);
    MPI_Iallgather(parts[2], count, MPI_INT, areas[2], count, MPI_INT, comm, &requests[2]);
    MPI_Ialltoall(parts[3], count, MPI_INT, areas[3], count, MPI_INT, comm, &requests[3]);
    MPI_Ibarrier(comm, &requests[4]);
    MPI_Waitall(KINDS, requests, MPI_STATUSES_IGNORE);
    equal(areas[0], count, 5, 1, "ibcast");
    equal(areas[1], count, all * (all - 1) / 2, all, "iallreduce");
    equal(areas[2], count * all, 0, 1, "iallgather");
    for (int i = 0; i < all; i++) equal(areas[3] + i * count, count, 1000 * i + mine, 0, "ialltoall");
    for (int i = 0; i < KINDS; i++) {
        free(areas[i]);
        free(parts[i]);
    }
}

static void within(MPI_Comm comm, int count, int rounds) {
    MPI_Comm_rank(comm, &mine);
    MPI_Comm_size(comm, &all);
    for (int round = 0; round < rounds; round++) {
        from_one(comm, count);
        from_all(comm, count);
        uneven(comm, count);
        nonblocking(comm, count);
        MPI_Barrier(comm);
    }
}

/* From one half of the ranks to the other. */
static void between(MPI_Comm half, int color) {
    MPI_Comm inter;
    int value = rank, sum = -1, others = 0;
    /* Ranks are turned round in the halves: the first of each is the last that belongs to it in the world. */
    int leader = ranks - 1 - (ranks - 1 + 1 - color) % 2;
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, leader, 70, &inter);
    for (int i = 0; i < ranks; i++) others += i % 2 == 1 - color ? i : 0;
    MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, inter);
    REQUIRE(sum == others, "allreduce between halves: %d and not %d", sum, others);
    MPI_Comm_free(&inter);
}

int main(int argc, char **argv) {
    begin(argc, argv, MPI_THREAD_SINGLE, 2);
    int count = (int)argument("count", 1000), rounds = (int)argument("rounds", 2);
    within(MPI_COMM_WORLD, count, rounds);
    within(MPI_COMM_WORLD, 1, rounds);
    for (int round = 0; round < rounds; round++) {
        MPI_Comm copy, half;
        MPI_Comm_dup(MPI_COMM_WORLD, &copy);
        MPI_Comm_split(copy, rank % 2, -rank, &half);
        within(copy, 10, 1);
        within(half, count, 1);
        between(half, rank % 2);
        MPI_Comm_free(&half);
        MPI_Comm_free(&copy);
    }
    return end();
}
