/* An engine with callbacks, over a device of one's own that keeps messages whose payload is still under way.
 *
 * What the engine decides at once is answered at once; the rest comes as commands, to `submit`. The owner's loop is turn(). */
#include <errno.h>
#include <inttypes.h>
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

enum { MESSAGES = 16 };

/* What the device knows of a message: its payload comes later, and goes where it was told. */
struct message { int is_there, is_accepted; uint64_t transfer; tm_buffer to; char payload[32]; };

static struct {
    tm_engine *engine;
    struct message messages[MESSAGES];
    tm_engine_completion ended[64];
    size_t ended_count;
} world;

static void answer(uint64_t name, const tm_answer *answer)
{
    struct message *message = &world.messages[name];
    if (answer->kind == TM_ANSWER_DISCARD)
        message->is_there = 0;
    if (answer->kind == TM_ANSWER_ACCEPT) {
        CHECK(answer->flags & TM_ANSWER_TRANSFER); /* nothing was in hand */
        message->is_accepted = 1, message->transfer = answer->transfer, message->to = answer->buffer;
    }
}

/* Commands to the device. It does not match, so they are answers alone. */
static size_t submit(void *user, const tm_command *commands, size_t count)
{
    CHECK(user == &world);
    for (size_t i = 0; i < count; i++) {
        CHECK(commands[i].kind == TM_COMMAND_ANSWER);
        answer(commands[i].id, &commands[i].answer);
    }
    return count;
}

static void complete(void *user, const tm_engine_completion *completion)
{
    CHECK(user == &world);
    world.ended[world.ended_count++] = *completion;
}

static void arrive(uint64_t name, uint64_t tag, const char *text)
{
    tm_arrival arrival = { .message = name, .tag = tag, .length = strlen(text) + 1, .source = 3, .app_ctx = 99 };
    tm_answer now;
    world.messages[name].is_there = 1;
    strcpy(world.messages[name].payload, text);
    CHECK(tm_engine_handle_arrival(world.engine, 0, &arrival, &now) == 0);
    answer(name, &now);
}

/* One turn: tell what ended, submit what is to be done, let payloads come. */
static void turn(void)
{
    CHECK(tm_engine_progress(world.engine) >= 0);
    for (size_t i = 0; i < MESSAGES; i++) {
        struct message *message = &world.messages[i];
        tm_data data = { .id = message->transfer, .length = strlen(message->payload) + 1, .target = TM_DATA_TRANSFER };
        if (!message->is_accepted)
            continue;
        memcpy(message->to.address, message->payload, data.length < message->to.length ? data.length : message->to.length);
        message->is_accepted = message->is_there = 0;
        CHECK(tm_engine_handle_data(world.engine, 0, &data) == 0);
    }
    CHECK(tm_engine_progress(world.engine) >= 0);
}

static const tm_engine_completion *last(size_t count)
{
    CHECK(world.ended_count == count);
    return &world.ended[count - 1];
}

static uint64_t post(uint64_t tag, void *into, size_t length, uint64_t context, uint32_t flags)
{
    tm_engine_receive receive = { .pattern = { .tag = tag, .kind = TM_SOURCE_PEER, .source = 3 }, .context = context,
                                  .buffer = { .address = into, .length = length }, .least = 8, .flags = flags };
    tm_posting posting;
    CHECK(tm_engine_post(world.engine, &receive, &posting) >= 0);
    return posting.receive;
}

int main(void)
{
    tm_engine_config config = { .size = sizeof config, .user = &world, .complete = complete };
    tm_device device = { .size = sizeof device, .user = &world, .submit = submit };
    tm_pattern any = { .ignore = UINT64_MAX, .kind = TM_SOURCE_ANY };
    char small[4], buffer[64];
    tm_counter counters[64];
    uint64_t claim, receive, posted, unexpected;
    tm_peeked peeked;

    CHECK(tm_version() >> 16 == TM_VERSION_MAJOR && strcmp(tm_version_string(), "") != 0);
    CHECK(tm_engine_open(&config, &world.engine) == 0);
    CHECK(tm_engine_add_device(world.engine, &device) == 0);

    /* A receive that waits for its message, and is too short for it. */
    post(1, small, sizeof small, 10, 0);
    arrive(0, 1, "longer");
    turn();
    CHECK(last(1)->end == TM_END_RECEIVED && last(1)->context == 10 && last(1)->status == -EMSGSIZE);
    CHECK(last(1)->message.length == 7 && last(1)->message.placed == 4 && memcmp(small, "long", 4) == 0);
    CHECK(last(1)->message.source == 3 && last(1)->message.app_ctx == 99 && last(1)->message.matched_by == -1);

    /* Messages that wait: looked at, claimed, received, discarded. */
    arrive(1, 2, "claimed");
    arrive(2, 3, "dropped");
    CHECK(tm_engine_depths(world.engine, &posted, &unexpected) == 0 && posted == 0 && unexpected == 2);
    CHECK(tm_engine_peek(world.engine, &any, &peeked) == 0 && peeked.tag == 2 && peeked.message == 1);
    CHECK(tm_engine_claim(world.engine, &any, &peeked, &claim) == 0 && peeked.tag == 2);
    CHECK(tm_engine_discard(world.engine, &any, &peeked) == 0 && peeked.tag == 3);
    CHECK(tm_engine_peek(world.engine, &any, &peeked) == -ENOMSG);
    CHECK(tm_engine_receive_claimed(world.engine, claim, &(tm_buffer){ .address = buffer, .length = 64 }, 11) == 0);
    CHECK(tm_engine_discard_claimed(world.engine, claim) == -ENOENT);
    turn();
    CHECK(last(2)->context == 11 && strcmp(buffer, "claimed") == 0 && !world.messages[2].is_there);

    /* A receive of several messages, until less than 8 bytes are left. */
    post(4, buffer, 24, 12, TM_RECEIVE_MULTI);
    arrive(3, 4, "0123456");
    arrive(4, 4, "abcdefghi");
    turn();
    CHECK(world.ended_count == 5 && world.ended[2].message.address == buffer);
    CHECK(world.ended[3].message.address == buffer + 8 && strcmp(buffer + 8, "abcdefghi") == 0);
    CHECK(last(5)->end == TM_END_RELEASED && last(5)->context == 12);

    /* A cancel, and one that comes too late. */
    receive = post(5, buffer, sizeof buffer, 13, 0);
    CHECK(tm_engine_cancel(world.engine, receive) == 0 && tm_engine_cancel(world.engine, receive) == -ENOENT);
    turn();
    CHECK(last(6)->end == TM_END_CANCELLED && last(6)->status == -ECANCELED);

    /* The sender dies while its payload is under way: the receive fails. */
    post(6, buffer, sizeof buffer, 14, 0);
    arrive(5, 6, "lost");
    tm_data lost = { .id = world.messages[5].transfer, .target = TM_DATA_TRANSFER, .status = -ECONNRESET };
    world.messages[5].is_accepted = 0;
    CHECK(tm_engine_handle_data(world.engine, 0, &lost) == 0 && tm_engine_handle_path_lost(world.engine, 0, 3) == 0);
    turn();
    CHECK(last(7)->end == TM_END_FAILED && last(7)->status == -ECONNRESET && last(7)->message.tag == 6);

    CHECK(tm_engine_poll_fault(world.engine, buffer, sizeof buffer) == 0);
    CHECK(tm_engine_statistics(world.engine, counters, 64) > 0 && strcmp(counters[0].name, "tracked") == 0);
    CHECK(tm_engine_close(world.engine) == 0);
    printf("engine: %zu completions, all right\n", world.ended_count);
    return 0;
}
