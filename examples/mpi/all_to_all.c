/* Every rank sends to every other at once, as transposes and sorts do: receives first, then sends, then all is waited for.
 * Arguments: bytes (to each), rounds, turns. */
#include "timed.h"

static int bytes;
static unsigned char *out, *in;
static MPI_Request *requests;

static void exchange(int turn) {
    for (int i = 0; i < ranks; i++)
        MPI_Irecv(in + (size_t)i * bytes, bytes, MPI_BYTE, i, turn % 8, MPI_COMM_WORLD, &requests[i]);
    for (int i = 0; i < ranks; i++) {
        /* Not all to the same one first. */
        int to = (rank + i) % ranks;
        unsigned char *part = out + (size_t)to * bytes;
        part[0] = (unsigned char)(rank + turn);
        part[bytes - 1] = (unsigned char)(rank + turn);
        MPI_Isend(part, bytes, MPI_BYTE, to, turn % 8, MPI_COMM_WORLD, &requests[ranks + i]);
    }
    MPI_Waitall(2 * ranks, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < ranks; i++) {
        const unsigned char *part = in + (size_t)i * bytes;
        unsigned char right = (unsigned char)(i + turn);
        REQUIRE(part[0] == right && part[bytes - 1] == right, "what rank %d sent in turn %d came otherwise", i, turn);
    }
}

int main(int argc, char **argv) {
    begin(argc, argv, MPI_THREAD_SINGLE, 1);
    bytes = (int)argument("bytes", 1024);
    int rounds = (int)argument("rounds", 20), turns = (int)argument("turns", 50);
    if (bytes < 1 || rounds < 1 || turns < 1) wrong("bytes, rounds and turns are 1 or more");
    out = memory((size_t)ranks * bytes);
    in = memory((size_t)ranks * bytes);
    memset(out, rank, (size_t)ranks * bytes);
    requests = memory(2 * (size_t)ranks * sizeof *requests);
    tell_time(time_turns(exchange, rounds, turns), "an exchange of all ranks");
    free(out);
    free(in);
    free(requests);
    return end();
}
