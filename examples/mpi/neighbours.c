/* Exchange with up to 26 neighbours in three dimensions, as LULESH and other hydrodynamics codes have it: receives for all
 * of a step are posted first, faces, edges and corners go out at once, then all is waited for.
 * Arguments: side (cells along an edge of a rank's cube), fields (doubles of a cell), rounds, turns. */
#include "timed.h"

enum { NEIGHBOURS = 27, MIDDLE = 13 };

static int dims[3], place[3], side, fields;
static int others[NEIGHBOURS], counts[NEIGHBOURS];
static double *out[NEIGHBOURS], *in[NEIGHBOURS];

/* The rank in this direction, or none at the rim. */
static int rank_at(const int direction[3]) {
    int at[3];
    for (int d = 0; d < 3; d++) {
        at[d] = place[d] + direction[d];
        if (at[d] < 0 || at[d] >= dims[d]) return MPI_PROC_NULL;
    }
    return (at[0] * dims[1] + at[1]) * dims[2] + at[2];
}

static void find_neighbours(void) {
    MPI_Dims_create(ranks, 3, dims);
    place[0] = rank / (dims[1] * dims[2]);
    place[1] = rank / dims[2] % dims[1];
    place[2] = rank % dims[2];
    for (int n = 0; n < NEIGHBOURS; n++) {
        int direction[3] = {n / 9 - 1, n / 3 % 3 - 1, n % 3 - 1};
        others[n] = n == MIDDLE ? MPI_PROC_NULL : rank_at(direction);
        counts[n] = fields;
        for (int d = 0; d < 3; d++)
            if (direction[d] == 0) counts[n] *= side;
        out[n] = memory((size_t)counts[n] * sizeof(double));
        in[n] = memory((size_t)counts[n] * sizeof(double));
    }
}

static double value(int from, int n, int turn, int i) {
    return from * 1e6 + n * 1e4 + turn % 100 * 100 + i % 97;
}

static void step(int turn) {
    MPI_Request requests[2 * NEIGHBOURS];
    for (int n = 0; n < NEIGHBOURS; n++)
        /* What the other sends in the opposite direction. */
        MPI_Irecv(in[n], counts[n], MPI_DOUBLE, others[n], NEIGHBOURS - 1 - n, MPI_COMM_WORLD, &requests[n]);
    for (int n = 0; n < NEIGHBOURS; n++) {
        for (int i = 0; i < counts[n]; i++) out[n][i] = value(rank, n, turn, i);
        MPI_Isend(out[n], counts[n], MPI_DOUBLE, others[n], n, MPI_COMM_WORLD, &requests[NEIGHBOURS + n]);
    }
    MPI_Waitall(2 * NEIGHBOURS, requests, MPI_STATUSES_IGNORE);
    for (int n = 0; n < NEIGHBOURS; n++)
        if (others[n] != MPI_PROC_NULL) {
            int last = counts[n] - 1;
            REQUIRE(in[n][last] == value(others[n], NEIGHBOURS - 1 - n, turn, last),
                    "what rank %d sent in turn %d came otherwise", others[n], turn);
        }
}

int main(int argc, char **argv) {
    begin(argc, argv, MPI_THREAD_SINGLE, 1);
    side = (int)argument("side", 16);
    fields = (int)argument("fields", 3);
    int rounds = (int)argument("rounds", 20), turns = (int)argument("turns", 50);
    if (side < 1 || fields < 1 || rounds < 1 || turns < 1) wrong("side, fields, rounds and turns are 1 or more");
    find_neighbours();
    tell_time(time_turns(step, rounds, turns), "a step of all ranks");
    for (int n = 0; n < NEIGHBOURS; n++) {
        free(out[n]);
        free(in[n]);
    }
    return end();
}
