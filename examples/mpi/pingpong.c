/* Half a round trip between two ranks, by size with nothing in the lists, and of the shortest with long lists.
 * Arguments: bytes (the longest), depth (of lists; 0: none), rounds, turns. As `tagmatch pingpong`, of any MPI. */
#include "lists.h"

static unsigned char *out, *in;
static int bytes;

static void there_and_back(int turn) {
    (void)turn;
    MPI_Request request;
    MPI_Status status;
    if (rank == 0) MPI_Send(out, bytes, MPI_BYTE, 1, PASSING, MPI_COMM_WORLD);
    MPI_Irecv(in, bytes, MPI_BYTE, 1 - rank, PASSING, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, &status);
    if (rank == 1) MPI_Send(out, bytes, MPI_BYTE, 0, PASSING, MPI_COMM_WORLD);
}

static void measure(enum list list, int depth, int rounds, int turns) {
    fill(out, (size_t)bytes, seed_of(rank, PASSING, bytes));
    fill_list(list, depth);
    double time = time_turns(there_and_back, rounds, turns) / 2;
    check_contents(in, (size_t)bytes, seed_of(1 - rank, PASSING, bytes), "a message");
    drain_list(list, depth);
    if (rank == 0) printf("%8d bytes  %8d %-22s %10.3f us\n", bytes, depth, list_names[list], time);
    if (list == NOTHING && bytes == SMALL) tell_time(time, "half a round trip of 8 bytes");
    fflush(stdout);
}

int main(int argc, char **argv) {
    begin(argc, argv, MPI_THREAD_SINGLE, 2);
    if (ranks != 2) wrong("2 ranks are needed, there are %d", ranks);
    int most = (int)argument("bytes", 1 << 20), depth = (int)argument("depth", 1024);
    int rounds = (int)argument("rounds", 30), turns = (int)argument("turns", 100);
    if (most < SMALL || depth < 0 || rounds < 1 || turns < 1) wrong("bytes is 8 or more, rounds and turns are 1 or more");
    out = memory((size_t)most);
    in = memory((size_t)most);
    open_lists(depth);
    for (bytes = SMALL; bytes <= most && bytes > 0; bytes *= 8) measure(NOTHING, 0, rounds, turns);
    bytes = SMALL;
    for (enum list list = SPECIFIC; list < LISTS && depth > 0; list++) measure(list, depth, rounds, turns);
    close_lists();
    free(out);
    free(in);
    return end();
}
