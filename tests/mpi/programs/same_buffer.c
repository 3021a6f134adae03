/* One buffer posted in many receives at once, as bandwidth tests do. All messages are alike, so that the contents are
 * certain whichever wrote last. Arguments: window, rounds, bytes (the largest). */
#include "check.h"

int main(int argc, char **argv) {
    begin(argc, argv, MPI_THREAD_SINGLE, 2);
    int window = (int)argument("window", 64), rounds = (int)argument("rounds", 10);
    int bytes_max = (int)argument("bytes", 1 << 18);
    MPI_Request *requests = memory(window * sizeof *requests);
    MPI_Status *statuses = memory(window * sizeof *statuses);
    unsigned char *area = memory(bytes_max);
    for (int bytes = 0; bytes <= bytes_max; bytes = bytes ? bytes * 8 : 1)
        for (int round = 0; round < rounds; round++) {
            uint64_t seed = seed_of(1, bytes, round);
            if (rank == 0) {
                memset(area, 0xEE, bytes);
                for (int i = 0; i < window; i++)
                    MPI_Irecv(area, bytes, MPI_BYTE, i % 3 ? 1 : MPI_ANY_SOURCE, 8, MPI_COMM_WORLD, &requests[i]);
                if (round % 2) MPI_Send(NULL, 0, MPI_BYTE, 1, 9, MPI_COMM_WORLD);
                MPI_Waitall(window, requests, statuses);
                for (int i = 0; i < window; i++) check_status(&statuses[i], 1, 8, bytes, "a receive of the common buffer");
                check_contents(area, bytes, seed, "the common buffer");
                MPI_Send(NULL, 0, MPI_BYTE, 1, 9, MPI_COMM_WORLD);
            } else if (rank == 1) {
                fill(area, bytes, seed);
                if (round % 2) MPI_Recv(NULL, 0, MPI_BYTE, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                for (int i = 0; i < window; i++) MPI_Isend(area, bytes, MPI_BYTE, 0, 8, MPI_COMM_WORLD, &requests[i]);
                MPI_Waitall(window, requests, MPI_STATUSES_IGNORE);
                MPI_Recv(NULL, 0, MPI_BYTE, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            }
        }
    free(requests);
    free(statuses);
    free(area);
    return end();
}
