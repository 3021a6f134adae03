/* Half a round trip of 8 bytes between two ranks, while rank 0 and rank 1 have many receives posted that do not match, or
 * many messages that nobody has received. Argument: how many. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { NONE, DIRECTED, ANY_SOURCE, ANY_TAG, UNEXPECTED, CASES };
static const char *const names[CASES] = {"none", "directed", "any source", "any tag", "unexpected"};
enum { PING = 1, FILLER = 1000, BATCH = 100, BATCHES = 60 };

static int rank, other;

/* The best batch, in microseconds: the machine may be doing other things too. */
static double half_round_trip(void) {
    char area[8] = {0};
    double best = 1e9;
    for (int batch = 0; batch < BATCHES; batch++) {
        double begin = MPI_Wtime();
        for (int i = 0; i < BATCH; i++) {
            MPI_Request request;
            if (rank == 0) MPI_Send(area, 8, MPI_BYTE, other, PING, MPI_COMM_WORLD);
            MPI_Irecv(area, 8, MPI_BYTE, other, PING, MPI_COMM_WORLD, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            if (rank == 1) MPI_Send(area, 8, MPI_BYTE, other, PING, MPI_COMM_WORLD);
        }
        double each = (MPI_Wtime() - begin) / BATCH / 2 * 1e6;
        if (each < best) best = each;
    }
    return best;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    other = 1 - rank;
    int count = argc > 1 ? atoi(argv[1]) : 8192;
    char *areas = malloc((size_t)count * 8 + 8);
    MPI_Request *requests = malloc((count + 1) * sizeof *requests);
    MPI_Comm aside;
    MPI_Comm_dup(MPI_COMM_WORLD, &aside);
    half_round_trip();
    for (int which = NONE; which < CASES; which++) {
        MPI_Comm comm = which == ANY_TAG ? aside : MPI_COMM_WORLD;
        int source = which == ANY_SOURCE ? MPI_ANY_SOURCE : other;
        int fillers = which == NONE ? 0 : count;
        for (int i = 0; i < fillers && which != UNEXPECTED; i++)
            MPI_Irecv(areas + 8 * i, 8, MPI_BYTE, source, which == ANY_TAG ? MPI_ANY_TAG : FILLER + i, comm, &requests[i]);
        MPI_Barrier(MPI_COMM_WORLD);
        for (int i = 0; i < fillers && which == UNEXPECTED; i++)
            MPI_Send(areas, 8, MPI_BYTE, other, FILLER + i, comm);
        MPI_Barrier(MPI_COMM_WORLD);
        double time = half_round_trip();
        if (rank == 0) printf("%-12s %8d %8.2f us\n", names[which], fillers, time);
        fflush(stdout);
        for (int i = 0; i < fillers; i++) {
            if (which == UNEXPECTED) MPI_Recv(areas, 8, MPI_BYTE, other, FILLER + i, comm, MPI_STATUS_IGNORE);
            else MPI_Send(areas, 8, MPI_BYTE, other, FILLER + i, comm);
        }
        if (which != UNEXPECTED) MPI_Waitall(fillers, requests, MPI_STATUSES_IGNORE);
    }
    MPI_Finalize();
    return 0;
}
