/* A device that matches, in a few lines: the engine gives it receives, and it says what it matched.
 *
 * Its list is searched from the oldest entry on, as a NIC does; what it does not find comes to the engine as unexpected, and
 * is counted. docs/tm-srq.md has the whole contract. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tagmatch.h>

#define CHECK(what) \
    do { \
        if (!(what)) { \
            fprintf(stderr, "%s:%d: %s does not hold: %s\n", __FILE__, __LINE__, #what, tm_last_error()); \
            exit(1); \
        } \
    } while (0)

enum { TAGS = 4, EAGER = 16 };

static tm_engine *engine;
static tm_command list[TAGS];
static size_t listed;
static uint32_t unexpected;

static void done(uint32_t operation, uint64_t entry, int success)
{
    tm_operation operation_done = { .entry = entry, .operation = operation, .phase = unexpected,
                                    .flags = success ? TM_OPERATION_SUCCESS : 0 };
    CHECK(tm_engine_handle_operation(engine, 0, &operation_done) == 0);
}

static int take(uint64_t entry)
{
    for (size_t i = 0; i < listed; i++) {
        if (list[i].id == entry) {
            memmove(&list[i], &list[i + 1], (--listed - i) * sizeof list[0]);
            return 1;
        }
    }
    return 0;
}

/* Ask for commands, take all of them, and then say how they ended: not while the engine gives them out. */
static void turn(void)
{
    tm_command commands[32];
    int count = tm_engine_poll_commands(engine, 0, commands, 32);
    CHECK(count >= 0 && tm_engine_handle_submitted(engine, 0, (size_t)count) == 0);
    for (int i = 0; i < count; i++) {
        const tm_command *command = &commands[i];
        int success = 1;
        if (command->kind == TM_COMMAND_ADD) {
            CHECK(listed < TAGS && command->buffer.length >= EAGER);
            list[listed++] = *command;
        } else if (command->kind == TM_COMMAND_DEL) {
            success = take(command->id);
        }
        if (command->flags & TM_COMMAND_SIGNALLED)
            done(command->kind, command->id, success);
        if (command->kind == TM_COMMAND_DEL && success)
            CHECK(tm_engine_handle_released(engine, 0, command->id) == 0);
    }
}

static void arrive(uint64_t tag, const char *text)
{
    tm_arrival arrival = { .tag = tag, .length = strlen(text) + 1, .flags = TM_ARRIVAL_IN_HAND | TM_ARRIVAL_COUNTED };
    tm_answer answer;
    for (size_t i = 0; i < listed; i++) {
        tm_match match = { .entry = list[i].id, .tag = tag, .length = arrival.length, .flags = TM_MATCH_RELEASED };
        if (((list[i].tag ^ tag) & ~list[i].ignore) != 0)
            continue;
        memcpy(list[i].buffer.address, text, arrival.length);
        take(match.entry);
        CHECK(tm_engine_handle_match(engine, 0, &match) == 0);
        return;
    }
    unexpected++;
    CHECK(tm_engine_handle_arrival(engine, 0, &arrival, &answer) == 0);
    if (answer.kind == TM_ANSWER_ACCEPT && !(answer.flags & TM_ANSWER_TRANSFER))
        memcpy(answer.buffer.address, text, arrival.length);
}

int main(void)
{
    tm_device device = { .size = sizeof device, .tags = TAGS, .command_slots = 64, .completions = 256,
                         .unexpected_buffers = 64, .eager_limit = EAGER, .buffer_length_max = 1 << 20 };
    tm_engine_completion completions[8];
    char buffers[8][EAGER];
    CHECK(tm_engine_open(NULL, &engine) == 0 && tm_engine_add_device(engine, &device) == 0);
    for (uint64_t i = 0; i < 8; i++) {
        tm_engine_receive receive = { .pattern = { .tag = i, .kind = TM_SOURCE_ANY }, .context = i,
                                      .buffer = { .address = buffers[i], .length = EAGER } };
        CHECK(tm_engine_post(engine, &receive, NULL) == TM_POST_QUEUED);
    }
    turn();
    CHECK(listed == TAGS); /* the others wait their turn, in software */
    for (uint64_t i = 0; i < 8; i++) {
        arrive(7 - i, "payload");
        turn();
    }
    CHECK(tm_engine_poll(engine, completions, 8) == 8);
    int by_device = 0;
    for (size_t i = 0; i < 8; i++) {
        CHECK(completions[i].context == 7 - i && completions[i].status == 0);
        CHECK(strcmp(buffers[i], "payload") == 0);
        by_device += completions[i].message.matched_by == 0;
    }
    char text[200];
    CHECK(tm_engine_poll_fault(engine, text, sizeof text) == 0);
    CHECK(by_device >= TAGS && tm_engine_close(engine) == 0);
    printf("device: %d of 8 receives matched by the device, all right\n", by_device);
    return 0;
}
