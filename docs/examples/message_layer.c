/* A small message layer on the engine: two ranks of one process, whose transport is an array of messages. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <tagmatch.h>

struct message { uint32_t source; uint64_t tag; size_t length; char payload[64]; };
struct rank { tm_engine *engine; struct message *arriving[16]; size_t count; };

/* A payload goes where the engine says, and the message is no more. */
static int place(void *user, uint64_t name, const tm_buffer *buffer)
{
    struct message *message = (struct message *)(uintptr_t)name;
    (void)user;
    memcpy(buffer->address, message->payload, message->length < buffer->length ? message->length : buffer->length);
    free(message);
    return 1;
}

static void begin(struct rank *rank)
{
    tm_device device = { .size = sizeof device, .place = place };
    assert(tm_engine_open(NULL, &rank->engine) == 0 && tm_engine_add_device(rank->engine, &device) == 0);
}

static void send(struct rank *to, uint32_t source, uint64_t tag, const char *text)
{
    struct message *message = calloc(1, sizeof *message);
    assert(message && to->count < 16 && strlen(text) < sizeof message->payload);
    *message = (struct message){ .source = source, .tag = tag, .length = strlen(text) + 1 };
    memcpy(message->payload, text, message->length);
    to->arriving[to->count++] = message;
}

/* Post a receive from anybody. 1: it took a message that waited. 0: a completion of this context will come. */
static int receive(struct rank *rank, uint64_t tag, uint64_t ignore, void *into, size_t length, uint64_t context)
{
    tm_engine_receive receive = { .pattern = { .tag = tag, .ignore = ignore, .kind = TM_SOURCE_ANY },
                                  .buffer = { .address = into, .length = length }, .context = context };
    return tm_engine_post(rank->engine, &receive, NULL) == TM_POST_PLACED;
}

/* Hand over what has arrived, and take one completion: 1 if there is one. */
static int progress(struct rank *rank, tm_engine_completion *completion)
{
    for (size_t i = 0; i < rank->count; i++) {
        struct message *message = rank->arriving[i];
        tm_arrival arrival = { .message = (uintptr_t)message, .tag = message->tag, .length = message->length,
                               .source = message->source, .flags = TM_ARRIVAL_IN_HAND };
        tm_answer answer;
        assert(tm_engine_handle_arrival(rank->engine, 0, &arrival, &answer) == 0);
        if (answer.kind == TM_ANSWER_ACCEPT)
            place(NULL, arrival.message, &answer.buffer);
    } /* Those that are held stay where they are: the engine knows them by their address. */
    rank->count = 0;
    return tm_engine_poll(rank->engine, completion, 1);
}

int main(void)
{
    struct rank ranks[2] = { 0 };
    tm_engine_completion done;
    char first[64], second[64];
    begin(&ranks[0]), begin(&ranks[1]);
    assert(!receive(&ranks[1], 7, 0, first, sizeof first, 42)); /* posted before its message comes */
    send(&ranks[1], 0, 8, "unexpected");
    send(&ranks[1], 0, 7, "expected");
    assert(progress(&ranks[1], &done) == 1 && done.context == 42 && done.message.source == 0);
    assert(strcmp(first, "expected") == 0);
    assert(receive(&ranks[1], 0, ~UINT64_C(0), second, sizeof second, 43)); /* any tag */
    assert(strcmp(second, "unexpected") == 0 && progress(&ranks[1], &done) == 0);
    return tm_engine_close(ranks[0].engine) || tm_engine_close(ranks[1].engine);
}
