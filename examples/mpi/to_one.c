/* All ranks send to rank 0, which takes them as they come (any source) and answers each when it has all: masters with
 * workers, output through one rank.
 * Arguments: count (messages of a rank in a turn), bytes, rounds, turns. */
#include "timed.h"

static int count, bytes;
static unsigned char *areas;
static MPI_Request *requests;
static int *seen;

static void gather(int turn) {
    int total = count * (ranks - 1);
    memset(seen, 0, (size_t)ranks * sizeof *seen);
    for (int i = 0; i < total; i++)
        MPI_Irecv(areas + (size_t)i * bytes, bytes, MPI_BYTE, MPI_ANY_SOURCE, turn % 64, MPI_COMM_WORLD, &requests[i]);
    for (int i = 0; i < total; i++) {
        MPI_Status status;
        MPI_Wait(&requests[i], &status);
        check_status(&status, status.MPI_SOURCE, turn % 64, bytes, "one of many");
        seen[status.MPI_SOURCE]++;
    }
    for (int other = 1; other < ranks; other++) {
        REQUIRE(seen[other] == count, "%d messages of rank %d came, and not %d", seen[other], other, count);
        MPI_Send(NULL, 0, MPI_BYTE, other, 64, MPI_COMM_WORLD);
    }
}

static void send_all(int turn) {
    for (int i = 0; i < count; i++)
        MPI_Isend(areas + (size_t)i * bytes, bytes, MPI_BYTE, 0, turn % 64, MPI_COMM_WORLD, &requests[i]);
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    MPI_Recv(NULL, 0, MPI_BYTE, 0, 64, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void turn_of_all(int turn) {
    if (rank == 0) gather(turn);
    else send_all(turn);
}

int main(int argc, char **argv) {
    begin(argc, argv, MPI_THREAD_SINGLE, 2);
    count = (int)argument("count", 32);
    bytes = (int)argument("bytes", 256);
    int rounds = (int)argument("rounds", 20), turns = (int)argument("turns", 20);
    if (count < 1 || bytes < 1 || rounds < 1 || turns < 1) wrong("count, bytes, rounds and turns are 1 or more");
    int total = rank == 0 ? count * (ranks - 1) : count;
    areas = memory((size_t)total * bytes);
    memset(areas, rank, (size_t)total * bytes);
    requests = memory((size_t)total * sizeof *requests);
    seen = memory((size_t)ranks * sizeof *seen);
    tell_time(time_turns(turn_of_all, rounds, turns), "a turn of all ranks");
    free(areas);
    free(requests);
    free(seen);
    return end();
}
