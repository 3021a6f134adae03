/* Messages per second from rank 0 to rank 1, by size with nothing in the lists, and of the shortest with long lists.
 * Arguments: bytes (the longest), depth (of lists; 0: none), window, rounds, turns. As `tagmatch msgrate`, of any MPI. */
#include "lists.h"

static unsigned char *area;
static MPI_Request *requests;
static int bytes, window;

/* A window of messages into receives that are posted, and a word back. */
static void send_window(int turn) {
    (void)turn;
    if (rank == 1) {
        for (int i = 0; i < window; i++)
            MPI_Irecv(area, bytes, MPI_BYTE, 0, PASSING, MPI_COMM_WORLD, &requests[i]);
        MPI_Send(NULL, 0, MPI_BYTE, 0, PASSING, MPI_COMM_WORLD);
    } else {
        MPI_Recv(NULL, 0, MPI_BYTE, 1, PASSING, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < window; i++)
            MPI_Isend(area, bytes, MPI_BYTE, 1, PASSING, MPI_COMM_WORLD, &requests[i]);
    }
    MPI_Waitall(window, requests, MPI_STATUSES_IGNORE);
}

static void measure(enum list list, int depth, int rounds, int turns) {
    fill(area, (size_t)bytes, rank == 0 ? seed_of(0, PASSING, bytes) : 0);
    fill_list(list, depth);
    double time = time_turns(send_window, rounds, turns) / window;
    check_contents(area, (size_t)bytes, seed_of(0, PASSING, bytes), "a message");
    drain_list(list, depth);
    if (rank == 0)
        printf("%8d bytes  %8d %-22s %10.3f Mmsg/s %10.1f MB/s\n", bytes, depth, list_names[list], 1 / time,
               bytes / time);
    if (list == NOTHING && bytes == SMALL) tell_time(time, "a message of 8 bytes in a stream");
    fflush(stdout);
}

int main(int argc, char **argv) {
    begin(argc, argv, MPI_THREAD_SINGLE, 2);
    if (ranks != 2) wrong("2 ranks are needed, there are %d", ranks);
    int most = (int)argument("bytes", 1 << 20), depth = (int)argument("depth", 1024);
    int rounds = (int)argument("rounds", 30), turns = (int)argument("turns", 20);
    window = (int)argument("window", 64);
    if (most < SMALL || depth < 0 || window < 1 || rounds < 1 || turns < 1)
        wrong("bytes is 8 or more, window, rounds and turns are 1 or more");
    area = memory((size_t)most);
    requests = memory((size_t)window * sizeof *requests);
    open_lists(depth);
    for (bytes = SMALL; bytes <= most && bytes > 0; bytes *= 8) measure(NOTHING, 0, rounds, turns);
    bytes = SMALL;
    for (enum list list = SPECIFIC; list < LISTS && depth > 0; list++) measure(list, depth, rounds, turns);
    close_lists();
    free(area);
    free(requests);
    return end();
}
