/* One-sided communication: ranks write, read and add in each other's windows, between fences and under locks, and what is
 * fetched is different for each. Arguments: bytes (of a block), count (operations of each rank), rounds, swap (0: nothing is
 * compared and swapped), allocate (1: windows of memory that the MPI chooses),
 * max (0: none is asked for). */
#include "check.h"

/* A window of so many bytes of every rank's own memory; with allocate=1 of memory that the MPI chooses. */
static MPI_Win window_of(size_t bytes, size_t unit, void *base) {
    MPI_Win window;
    if (argument("allocate", 0)) {
        MPI_Win_allocate((MPI_Aint)bytes, (int)unit, MPI_INFO_NULL, MPI_COMM_WORLD, base, &window);
        return window;
    }
    void *own = memory(bytes);
    MPI_Win_create(own, (MPI_Aint)bytes, (int)unit, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    memcpy(base, &own, sizeof own);
    return window;
}

static void free_window(MPI_Win window, void *base) {
    MPI_Win_free(&window);
    if (!argument("allocate", 0)) free(base);
}

/* Blocks go round: each rank writes its own into the next one's window and reads the one before's. */
static void blocks(int bytes, int rounds) {
    unsigned char *base, *back = memory(bytes), *mine = memory(bytes);
    MPI_Win window = window_of(2 * (size_t)bytes, 1, &base);
    int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
    for (int round = 0; round < rounds; round++) {
        fill(mine, bytes, seed_of(rank, 70, round));
        MPI_Win_fence(0, window);
        fill(base + bytes, bytes, seed_of(rank, 71, round));
        MPI_Win_fence(0, window);
        MPI_Put(mine, bytes, MPI_BYTE, next, 0, bytes, MPI_BYTE, window);
        MPI_Get(back, bytes, MPI_BYTE, before, bytes, bytes, MPI_BYTE, window);
        MPI_Win_fence(0, window);
        check_contents(base, bytes, seed_of(before, 70, round), "written by the rank before");
        check_contents(back, bytes, seed_of(before, 71, round), "read of the rank before");
        /* The same under a lock, and what was written is there when the lock is given back. */
        memset(back, 0, bytes);
        MPI_Win_lock(MPI_LOCK_SHARED, before, 0, window);
        MPI_Get(back, bytes, MPI_BYTE, before, bytes, bytes, MPI_BYTE, window);
        MPI_Win_unlock(before, window);
        check_contents(back, bytes, seed_of(before, 71, round), "read under a lock");
        MPI_Barrier(MPI_COMM_WORLD);
    }
    free_window(window, base);
    free(mine);
    free(back);
}

/* All ranks add to all; sums are right, and each fetch sees another. */
static void sums(int count) {
    int64_t *base;
    double *reals;
    MPI_Win window = window_of(4 * sizeof *base, sizeof *base, &base);
    MPI_Win real = window_of(sizeof *reals, sizeof *reals, &reals);
    memset(base, 0, 4 * sizeof *base);
    *reals = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    int64_t *seen = memory((size_t)count * sizeof *seen), one = 1, largest = rank;
    MPI_Win_lock_all(0, window);
    MPI_Win_lock_all(0, real);
    for (int i = 0; i < count; i++) {
        int to = (rank + i) % ranks;
        double half = 0.5;
        MPI_Accumulate(&one, 1, MPI_INT64_T, to, 0, 1, MPI_INT64_T, MPI_SUM, window);
        if (argument("max", 1)) MPI_Accumulate(&largest, 1, MPI_INT64_T, to, 1, 1, MPI_INT64_T, MPI_MAX, window);
        MPI_Accumulate(&half, 1, MPI_DOUBLE, to, 0, 1, MPI_DOUBLE, MPI_SUM, real);
        MPI_Fetch_and_op(&one, &seen[i], MPI_INT64_T, 0, 2, MPI_SUM, window);
        MPI_Win_flush(0, window);
    }
    MPI_Win_unlock_all(real);
    MPI_Win_unlock_all(window);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, window);
    int64_t sums[2] = {base[0], base[1]}, all = base[2];
    MPI_Win_unlock(rank, window);
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, real);
    double halves = *reals;
    MPI_Win_unlock(rank, real);
    /* Rank r adds to each rank in turn, from itself on. */
    int64_t expected = 0;
    for (int from = 0; from < ranks; from++)
        for (int i = 0; i < count; i++) expected += (from + i) % ranks == rank;
    REQUIRE(sums[0] == expected, "%lld were added and not %lld", (long long)sums[0], (long long)expected);
    REQUIRE(halves == expected / 2.0, "%g was added and not %g", halves, expected / 2.0);
    if (count >= ranks && argument("max", 1)) REQUIRE(sums[1] == ranks - 1, "the largest is %lld", (long long)sums[1]);
    if (rank == 0) REQUIRE(all == (int64_t)count * ranks, "%lld were fetched", (long long)all);
    int64_t *everyone = memory((size_t)count * ranks * sizeof *everyone);
    unsigned char *marks = calloc((size_t)count * ranks, 1);
    MPI_Allgather(seen, count, MPI_INT64_T, everyone, count, MPI_INT64_T, MPI_COMM_WORLD);
    for (int i = 0; i < count * ranks; i++) {
        int64_t value = everyone[i];
        REQUIRE(value >= 0 && value < (int64_t)count * ranks, "%lld was fetched", (long long)value);
        REQUIRE(!marks[value], "%lld was fetched twice", (long long)value);
        marks[value] = 1;
    }
    free_window(real, reals);
    free_window(window, base);
    free(seen);
    free(everyone);
    free(marks);
}

/* A lock made of compare-and-swap keeps a count that is read and written in two steps. */
static void turns(int count) {
    int64_t *base, free_word = 0, mine = rank + 1;
    MPI_Win window = window_of(2 * sizeof *base, sizeof *base, &base);
    memset(base, 0, 2 * sizeof *base);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, window);
    for (int i = 0; i < count; i++) {
        int64_t was = -1, value;
        while (was != 0) {
            MPI_Compare_and_swap(&mine, &free_word, &was, MPI_INT64_T, 0, 0, window);
            MPI_Win_flush(0, window);
            REQUIRE(was >= 0 && was <= ranks && was != mine, "the lock is held by %lld", (long long)was);
        }
        MPI_Get(&value, 1, MPI_INT64_T, 0, 1, 1, MPI_INT64_T, window);
        MPI_Win_flush(0, window);
        value++;
        MPI_Put(&value, 1, MPI_INT64_T, 0, 1, 1, MPI_INT64_T, window);
        MPI_Win_flush(0, window);
        MPI_Accumulate(&free_word, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, MPI_REPLACE, window);
        MPI_Win_flush(0, window);
    }
    MPI_Win_unlock_all(window);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
        int64_t sum = base[1];
        MPI_Win_unlock(0, window);
        REQUIRE(sum == (int64_t)count * ranks, "%lld turns were taken", (long long)sum);
    }
    free_window(window, base);
}

int main(int argc, char **argv) {
    begin(argc, argv, MPI_THREAD_SINGLE, 2);
    blocks((int)argument("bytes", 200000), (int)argument("rounds", 3));
    sums((int)argument("count", 100));
    if (argument("swap", 1)) turns((int)argument("count", 100) / 10 + 1);
    return end();
}
