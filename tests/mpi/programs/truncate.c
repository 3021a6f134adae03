/* Messages longer than their receives: the error is MPI_ERR_TRUNCATE, nothing is written past the buffer, the message
 * is consumed, and what comes after it arrives whole. Arguments: bytes (the largest message). */
#include "check.h"

enum { TAG = 30, GUARD = 64 };

static MPI_Comm world;

static int class_of(int error) {
    int class;
    MPI_Error_class(error, &class);
    return class;
}

static void check_guard(const unsigned char *area, int room, const char *what) {
    for (int i = 0; i < GUARD; i++) REQUIRE(area[room + i] == 0xEE, "%s: byte %d past the buffer was written", what, i);
}

/* One message that is too long for its receive, then one that is not. */
static void one(int bytes, int room, int way, int is_expected) {
    static const char *const ways[] = {"recv", "irecv and wait", "irecv and waitall", "mprobe and mrecv"};
    char what[120];
    snprintf(what, sizeof what, "%s, %d bytes into %d (%s)", ways[way], bytes, room, is_expected ? "expected" : "unexpected");
    unsigned char *area = memory(bytes + GUARD);
    int value = 0, error = MPI_SUCCESS;
    if (rank == 1) {
        MPI_Request request;
        fill(area, bytes, seed_of(1, TAG, bytes));
        if (is_expected) MPI_Recv(&value, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Isend(area, bytes, MPI_BYTE, 0, TAG, world, &request);
        value = bytes;
        MPI_Send(&value, 1, MPI_INT, 0, TAG, world);
        if (!is_expected) MPI_Send(&value, 1, MPI_INT, 0, 2, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else if (rank == 0) {
        MPI_Request requests[2];
        MPI_Status statuses[2];
        MPI_Message message;
        memset(area, 0xEE, bytes + GUARD);
        if (!is_expected) MPI_Recv(&value, 1, MPI_INT, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (way == 1 || way == 2) MPI_Irecv(area, room, MPI_BYTE, 1, TAG, world, &requests[0]);
        if (way == 2) MPI_Irecv(&value, 1, MPI_INT, 1, TAG, world, &requests[1]);
        if (is_expected) MPI_Send(&value, 1, MPI_INT, 1, 1, MPI_COMM_WORLD);
        if (way == 0) error = MPI_Recv(area, room, MPI_BYTE, MPI_ANY_SOURCE, TAG, world, MPI_STATUS_IGNORE);
        if (way == 1) error = MPI_Wait(&requests[0], &statuses[0]);
        if (way == 2) {
            error = MPI_Waitall(2, requests, statuses);
            REQUIRE(class_of(error) == MPI_ERR_IN_STATUS, "%s: waitall says %d", what, error);
            /* The second may still be pending, where the first error ends the wait. */
            if (statuses[1].MPI_ERROR == MPI_ERR_PENDING) MPI_Wait(&requests[1], &statuses[1]);
            else REQUIRE(statuses[1].MPI_ERROR == MPI_SUCCESS, "%s: the next receive failed", what);
            error = statuses[0].MPI_ERROR;
        }
        if (way == 3) {
            MPI_Mprobe(1, TAG, world, &message, &statuses[0]);
            check_status(&statuses[0], 1, TAG, bytes, what);
            error = MPI_Mrecv(area, room, MPI_BYTE, &message, MPI_STATUS_IGNORE);
        }
        REQUIRE(class_of(error) == MPI_ERR_TRUNCATE, "%s: the error is %d and not MPI_ERR_TRUNCATE", what, error);
        check_guard(area, room, what);
        if (way != 2) MPI_Recv(&value, 1, MPI_INT, 1, TAG, world, MPI_STATUS_IGNORE);
        REQUIRE(value == bytes, "%s: the next message is %d and not %d", what, value, bytes);
        check_guard(area, room, what);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    free(area);
}

int main(int argc, char **argv) {
    begin(argc, argv, MPI_THREAD_SINGLE, 2);
    int bytes_max = (int)argument("bytes", 1 << 20);
    MPI_Comm_dup(MPI_COMM_WORLD, &world);
    /* Some implementations raise errors of several requests at once on the world. */
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
    const int sizes[] = {8, 1000, 16384, 65536, bytes_max};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int way = 0; way < 4; way++)
            for (int expected = 0; expected < 2; expected++) {
                int bytes = sizes[i];
                if (bytes > bytes_max || (way == 3 && expected)) continue;
                const int rooms[] = {0, 1, bytes / 2, bytes - 1};
                for (int room = 0; room < 4; room++) one(bytes, rooms[room], way, expected);
            }
    MPI_Comm_free(&world);
    return end();
}
