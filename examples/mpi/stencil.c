/* A stencil of five points on a plane that is cut into stripes: two neighbours, one row to and from each, in every step, and
 * work between. What comes out is compared with the same done by one rank.
 * Arguments: width (of a row), rows (of a rank), rounds, turns. */
#include "timed.h"

static int width, rows;
static double *now, *next;

static double first(int row, int column) {
    return (row * 31 + column * 17) % 101;
}

static void relax(const double *from, double *to, int count) {
    for (int row = 1; row <= count; row++)
        for (int column = 0; column < width; column++) {
            const double *cell = from + (size_t)row * width + column;
            double left = column > 0 ? cell[-1] : *cell, right = column + 1 < width ? cell[1] : *cell;
            to[(size_t)row * width + column] = (*cell * 4 + left + right + cell[-width] + cell[width]) / 8;
        }
}

static double *plane(int count, int begin_row) {
    double *cells = memory((size_t)(count + 2) * width * sizeof *cells);
    for (int row = 0; row < count + 2; row++)
        for (int column = 0; column < width; column++)
            cells[(size_t)row * width + column] = first(begin_row + row, column);
    return cells;
}

/* Rows outside the plane stay as they are. */
static void step(int turn) {
    (void)turn;
    int above = rank > 0 ? rank - 1 : MPI_PROC_NULL, below = rank + 1 < ranks ? rank + 1 : MPI_PROC_NULL;
    double *last = now + (size_t)rows * width;
    MPI_Request requests[4];
    MPI_Irecv(now, width, MPI_DOUBLE, above, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(last + width, width, MPI_DOUBLE, below, 2, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(now + width, width, MPI_DOUBLE, above, 2, MPI_COMM_WORLD, &requests[2]);
    MPI_Isend(last, width, MPI_DOUBLE, below, 1, MPI_COMM_WORLD, &requests[3]);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    memcpy(next, now, (size_t)width * sizeof *now);
    memcpy(next + (size_t)(rows + 1) * width, last + width, (size_t)width * sizeof *now);
    relax(now, next, rows);
    double *swap = now;
    now = next;
    next = swap;
}

/* The same by one rank alone. */
static void check_all(int steps) {
    int all = rows * ranks;
    double *one = plane(all, 0), *other = plane(all, 0);
    for (int i = 0; i < steps; i++) {
        relax(one, other, all);
        double *swap = one;
        one = other;
        other = swap;
    }
    for (int row = 1; row <= rows; row++)
        for (int column = 0; column < width; column++)
            REQUIRE(now[(size_t)row * width + column] == one[(size_t)(rank * rows + row) * width + column],
                    "row %d, column %d differ from what one rank gets", row, column);
    free(one);
    free(other);
}

int main(int argc, char **argv) {
    begin(argc, argv, MPI_THREAD_SINGLE, 1);
    width = (int)argument("width", 256);
    rows = (int)argument("rows", 8);
    int rounds = (int)argument("rounds", 20), turns = (int)argument("turns", 100);
    if (width < 1 || rows < 1 || rounds < 1 || turns < 1) wrong("width, rows, rounds and turns are 1 or more");
    now = plane(rows, rank * rows);
    next = plane(rows, rank * rows);
    tell_time(time_turns(step, rounds, turns), "a step of all ranks");
    check_all((rounds + 1) * turns);
    free(now);
    free(next);
    return end();
}
