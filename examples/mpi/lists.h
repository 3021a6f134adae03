/* Lists of both ranks that are filled before messages pass, and emptied afterwards: receives that none of these messages
 * fits, or messages that nobody takes. */
#ifndef LISTS_H
#define LISTS_H

#include "timed.h"

enum list { NOTHING, SPECIFIC, ANY_SOURCE, ANY_TAG, UNEXPECTED, LISTS };
enum { PASSING = 1, WAITING = 1000, SMALL = 8 };
static const char *const list_names[LISTS] = {
    "nothing", "receives", "receives, any source", "receives, any tag", "messages, unexpected"};
static char *areas;
static MPI_Request *waiting;
/* Receives of any tag wait in another communicator: they would fit everything in this one. */
static MPI_Comm aside;

static inline MPI_Comm comm_of(enum list list) {
    return list == ANY_TAG ? aside : MPI_COMM_WORLD;
}

static inline void open_lists(int depth) {
    areas = memory((size_t)depth * SMALL);
    waiting = memory((size_t)depth * sizeof *waiting);
    MPI_Comm_dup(MPI_COMM_WORLD, &aside);
}

static inline void fill_list(enum list list, int depth) {
    int source = list == ANY_SOURCE ? MPI_ANY_SOURCE : 1 - rank;
    if (list != NOTHING && list != UNEXPECTED)
        for (int i = 0; i < depth; i++)
            MPI_Irecv(areas + (size_t)i * SMALL, SMALL, MPI_BYTE, source, list == ANY_TAG ? MPI_ANY_TAG : WAITING + i,
                      comm_of(list), &waiting[i]);
    MPI_Barrier(MPI_COMM_WORLD);
    if (list == UNEXPECTED)
        for (int i = 0; i < depth; i++)
            MPI_Send(areas, SMALL, MPI_BYTE, 1 - rank, WAITING + i, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Everything that waits is matched, each by what it fits. */
static inline void drain_list(enum list list, int depth) {
    MPI_Status status;
    if (list == NOTHING) return;
    for (int i = 0; i < depth; i++) {
        if (list == UNEXPECTED) {
            MPI_Recv(areas, SMALL, MPI_BYTE, 1 - rank, WAITING + i, MPI_COMM_WORLD, &status);
            check_status(&status, 1 - rank, WAITING + i, SMALL, "what waited");
        } else {
            MPI_Send(areas, SMALL, MPI_BYTE, 1 - rank, WAITING + i, comm_of(list));
        }
    }
    for (int i = 0; i < depth && list != UNEXPECTED; i++) {
        MPI_Wait(&waiting[i], &status);
        check_status(&status, 1 - rank, WAITING + i, SMALL, "what waited");
    }
}

static inline void close_lists(void) {
    MPI_Comm_free(&aside);
    free(areas);
    free(waiting);
}

#endif
