/*
 * tagmatch.h - tag matching for message-passing runtimes, in exactly MPI's order.
 *
 * Generated from the sources of the library by cbindgen; not edited by hand. docs/embed.md has whole programs.
 *
 * There are two objects, and one does not need the other:
 *
 *   tm_engine    decides which receive takes which message. Transport and memory are the caller's own: messages that
 *                arrive are told to it, and it answers where they go. It has no IO, no clock, and follows no address.
 *   tm_endpoint  sends and receives by itself: within the process, in shared memory, over TCP, over verbs.
 *
 * Errors. Functions that return an int return 0 or more, or the negative of a code of errno(3); what each means here says
 * tm_strerror(), and what was wrong, with which value, tm_last_error(). A call that returned an error has done nothing,
 * unless it says otherwise. Null where something is needed is -EFAULT in every call. A failure inside the library does not
 * unwind into the caller: it is -ENOTRECOVERABLE, then and in every later call on the object but the one that closes it.
 *
 * Threads. An object has one owner at a time. Calls on one object come one after the other, from any thread: where threads
 * share one, the caller has a lock around each call. Calls on different objects need none. A call from within a callback
 * of the same object is -EBUSY, but where it says that it may be. No call sleeps but tm_endpoint_wait() and
 * tm_endpoint_close(), none starts a thread or installs a signal handler. After fork() the child does not use the objects
 * of the parent.
 *
 * Memory. What is passed by a pointer is read or written before a call returns, but for the memory of messages, which
 * belongs to the library until a completion says that it is over. Pointers are to what their types say, aligned as such;
 * that is the caller's promise, of every call ("Safety"). Arrays have room for as many as is said.
 *
 * Versions. Structures that begin with their size may grow, and programs that were compiled with older ones go on.
 * Fields called reserved, and those that do not matter in a case, are 0. Symbols have versions.
 *
 * Names in the form `tagmatch::engine::Engine` are items of the Rust library, whose documentation is where meaning is
 * written down (cargo doc).
 */


#ifndef TAGMATCH_H
#define TAGMATCH_H

#include <stddef.h>
#include <stdint.h>

/**
 * Of this header. The first number changes when programs have to be compiled anew.
 */
#define TM_VERSION_MAJOR 0

/**
 * Of this header. The second number changes when something was added; while the first is 0, also when programs have to
 * be compiled anew.
 */
#define TM_VERSION_MINOR 1

/**
 * Of this header.
 */
#define TM_VERSION_PATCH 0

/**
 * Bytes of the name of a counter, with the zero byte at its end.
 */
#define TM_COUNTER_NAME_MAX 56

/**
 * Bytes of the longest name.
 */
#define TM_NAME_MAX 64

/**
 * Messages to other hosts go over TCP.
 */
#define TM_NETWORK_TCP 0

/**
 * They go over a verbs device.
 */
#define TM_NETWORK_VERBS 1

/**
 * Software matches.
 */
#define TM_MATCHING_SOFTWARE 0

/**
 * The verbs device matches what it can, and software the rest.
 */
#define TM_MATCHING_DEVICE 1

/**
 * A model of such a device matches what it could, in software: for tests without hardware.
 */
#define TM_MATCHING_MODEL 2

/**
 * Peers on this host and of this user are talked to through shared memory; both sides must ask for it.
 */
#define TM_ENDPOINT_SHM 1

/**
 * Any peer; and a sender that has no number here.
 */
#define TM_ANY_SOURCE 18446744073709551615ull

/**
 * The message has no tag, and matches receives without one alone.
 */
#define TM_UNTAGGED 1

/**
 * `cq_data` says something.
 */
#define TM_CQ_DATA 2

/**
 * The payload is copied before the call returns; at most `inject_size` bytes, in one segment.
 */
#define TM_SEND_INJECT 4

/**
 * More will follow at once: this may wait for it, or for `tm_endpoint_flush`.
 */
#define TM_SEND_MORE 8

/**
 * The send is complete when its memory is the sender's again.
 */
#define TM_LEVEL_INJECT 0

/**
 * When the peer's host has it, and it no longer depends on this process.
 */
#define TM_LEVEL_TRANSMIT 1

/**
 * When its payload is in the receiver's buffer, or in one that the receiving endpoint keeps for it.
 */
#define TM_LEVEL_DELIVERY 2

/**
 * When a receive has taken it, or it was discarded: a synchronous send.
 */
#define TM_LEVEL_MATCH 3

/**
 * A receive takes one message after the other, each behind the last, until less than `least` bytes are left.
 */
#define TM_RECEIVE_SEVERAL 4

/**
 * The message stays.
 */
#define TM_PEEK_LOOK 0

/**
 * It is kept for `tm_endpoint_receive_claimed` and `tm_endpoint_discard_claimed`.
 */
#define TM_PEEK_CLAIM 1

/**
 * It is dropped.
 */
#define TM_PEEK_DISCARD 2

/**
 * A send.
 */
#define TM_COMPLETED_SENT 1

/**
 * A receive, or one message of a receive of several.
 */
#define TM_COMPLETED_RECEIVED 2

/**
 * A receive of several takes no more, apart from any message.
 */
#define TM_COMPLETED_RELEASED 3

/**
 * A peek: `status` is 0, or `-ENOMSG`; or a message that was claimed was discarded.
 */
#define TM_COMPLETED_PEEKED 4

/**
 * A receive was cancelled: `status` is `-ECANCELED`.
 */
#define TM_COMPLETED_CANCELLED 5

/**
 * The operation failed: `status` says why.
 */
#define TM_COMPLETED_FAILED 6

/**
 * A receive of several takes no more with this message.
 */
#define TM_RELEASED 4

/**
 * Of `tm_engine_set_group`.
 */
#define TM_NO_GROUP 4294967295

/**
 * Numbers of peers that an engine is told of are below this.
 */
#define TM_PEERS_MAX 16777216

/**
 * Keep the message; a command will say more.
 */
#define TM_ANSWER_HOLD 0

/**
 * Write the payload into `buffer`: at most as many bytes as it has, the rest is drained. A rendezvous is read, and its sender
 * told.
 */
#define TM_ANSWER_ACCEPT 1

/**
 * Drop the payload; the sender of a rendezvous is told that it is done.
 */
#define TM_ANSWER_DISCARD 2

/**
 * The end is to be told by `tm_engine_handle_data`, with `transfer`. Not set: the payload is in hand, and is in its place
 * before anything else is told.
 */
#define TM_ANSWER_TRANSFER 1

/**
 * Put a receive into the matching list: `id` is the entry; `tag`, `ignore`, `buffer`, `unexpected_count`.
 */
#define TM_COMMAND_ADD 1

/**
 * Take the receive `id` out of the matching list.
 */
#define TM_COMMAND_DEL 2

/**
 * Report a count: `unexpected_count`.
 */
#define TM_COMMAND_SYNC 3

/**
 * Give the device `buffers` more buffers for unexpected messages.
 */
#define TM_COMMAND_RECEIVE 4

/**
 * What becomes of the message `id`, which was held: `answer`.
 */
#define TM_COMMAND_ANSWER 5

/**
 * Fetch the payload of a rendezvous that the device handed back, and tell its sender: `id` is the transfer; `peer`, `tag`,
 * `app_ctx`, `remote`, `buffer`.
 */
#define TM_COMMAND_READ 6

/**
 * Copy within the host's memory: `id` is the transfer; from `from` to `buffer`.
 */
#define TM_COMMAND_COPY 7

/**
 * The device is asked for a completion (`tm_engine_handle_operation`).
 */
#define TM_COMMAND_SIGNALLED 1

/**
 * The whole payload is here: an answer `TM_ANSWER_ACCEPT` without a transfer is to be done before anything else is told.
 */
#define TM_ARRIVAL_IN_HAND 2

/**
 * The device counted the message as unexpected: every one with a tag on a device that matches, and none on others.
 */
#define TM_ARRIVAL_COUNTED 4

/**
 * The payload waits with the sender, at `remote`.
 */
#define TM_ARRIVAL_RENDEZVOUS 8

/**
 * `id` is a message that the host holds and will not get whole: only with an error.
 */
#define TM_DATA_MESSAGE 0

/**
 * `id` is an entry that a device matched.
 */
#define TM_DATA_ENTRY 1

/**
 * `id` is what an answer, a read or a copy named.
 */
#define TM_DATA_TRANSFER 2

/**
 * The payload is in its place, and the entry finished.
 */
#define TM_MATCH_COMPLETE 0

/**
 * The entry is used, and the payload is to come: `tm_engine_handle_data` follows.
 */
#define TM_MATCH_DATA_FOLLOWS 1

/**
 * The entry is used, and the host must fetch the payload from `remote`.
 */
#define TM_MATCH_SOFTWARE_RENDEZVOUS 2

/**
 * The device is done with the entry and its buffer; only with `TM_MATCH_COMPLETE`.
 */
#define TM_MATCH_RELEASED 2

/**
 * It was done: not set of a DEL alone, whose entry had been matched before.
 */
#define TM_OPERATION_SUCCESS 1

/**
 * The device asks for a count; for statistics alone.
 */
#define TM_OPERATION_SYNC_REQUESTED 2

/**
 * Anybody's messages.
 */
#define TM_SOURCE_ANY 0

/**
 * One peer's.
 */
#define TM_SOURCE_PEER 1

/**
 * Those of every peer in a group at the time of matching.
 */
#define TM_SOURCE_GROUP 2

/**
 * A receive takes one message after the other, each behind the last, until less than `least` bytes are left.
 */
#define TM_RECEIVE_MULTI 1

/**
 * `immediate` of a message says something.
 */
#define TM_MESSAGE_IMMEDIATE 1

/**
 * The receive is posted; its completion follows.
 */
#define TM_POST_QUEUED 0

/**
 * The receive took a message that waited; its completion follows when the data is there.
 */
#define TM_POST_MATCHED 1

/**
 * The receive took a message that waited, and the payload is in its buffer: that was all, no completion follows. Only
 * where a device can place.
 */
#define TM_POST_PLACED 2

/**
 * The receive holds a message.
 */
#define TM_END_RECEIVED 1

/**
 * The receive was cancelled, and holds nothing.
 */
#define TM_END_CANCELLED 2

/**
 * The receive took a message whose data will not come. Of `message`, source, tag and word are right.
 */
#define TM_END_FAILED 3

/**
 * A receive of several messages took its last, and nothing more is written there.
 */
#define TM_END_RELEASED 4

/**
 * A buffer must be registered (`key` other than 0) to be given to the device.
 */
#define TM_DEVICE_REGISTRATION 1

/**
 * The device itself reads the data of a rendezvous that it matched.
 */
#define TM_DEVICE_RENDEZVOUS 2

/**
 * An endpoint: it sends to peers and receives from them, with tags and without, in exactly MPI's order. Nothing moves
 * but within calls on it: `tm_endpoint_progress` is to be called often while anything is under way.
 *
 * `tagmatch::endpoint::Endpoint`
 */
typedef struct tm_endpoint tm_endpoint;

/**
 * An engine: exact MPI matching over any number of devices of the caller's own. It does nothing by itself: what devices
 * tell goes in, commands to devices and completions come out.
 *
 * `tagmatch::engine::Engine`, whose page has the owner's loop
 */
typedef struct tm_engine tm_engine;

/**
 * How an endpoint is set up. All zeros but `size` will do: an endpoint over TCP for this host alone.
 *
 * `tagmatch::endpoint::Config`, which has the defaults
 */
typedef struct tm_endpoint_config {
    /**
     * `sizeof(tm_endpoint_config)`
     */
    size_t size;
    /**
     * The address to listen at, with a port, `192.0.2.1:7000` or `[2001:db8::1]:0`; port 0 takes a free one. Peers reach it
     * there, so it is one of this host's, of the network that all share. Null: `127.0.0.1:0`, for this host alone.
     */
    const char *listen;
    /**
     * `TM_NETWORK_TCP` or `TM_NETWORK_VERBS`: the same for all who talk to each other.
     */
    uint32_t network;
    /**
     * `TM_MATCHING_SOFTWARE`, `TM_MATCHING_DEVICE` (with `TM_NETWORK_VERBS`) or `TM_MATCHING_MODEL`.
     */
    uint32_t matching;
    /**
     * With `TM_NETWORK_VERBS`: the device, as `ibv_devices` shows it. Null: the first.
     */
    const char *verbs_device;
    /**
     * `TM_ENDPOINT_SHM`, or 0.
     */
    uint32_t flags;
    /**
     * Peers that are known at most. 0: the default.
     */
    uint32_t peers_max;
    /**
     * The longest payload, in bytes, that is sent eagerly and taken so. 0: the default.
     */
    uint64_t eager_limit;
    /**
     * The longest payload, in bytes, that can be sent with `TM_SEND_INJECT`. 0: the default.
     */
    uint64_t inject_size;
    /**
     * What one peer may have kept unexpected here: bytes of payload. 0: the default.
     */
    uint64_t credit_bytes;
    /**
     * The same: messages with a payload. 0: the default.
     */
    uint32_t credit_messages;
    /**
     * The same: messages in all. 0: the default.
     */
    uint32_t credit_headers;
    /**
     * How long a connection may take to come about before sends to that peer are told, in milliseconds. 0: the default.
     */
    uint32_t connect_timeout_ms;
    /**
     * A peer from which nothing came for so long is asked whether it is there, in milliseconds, and lost if it says nothing
     * for as long again. 0: never.
     */
    uint32_t keepalive_ms;
    /**
     * How long a peer may take nothing of what was sent before closing goes on without it, in milliseconds. 0: the default.
     */
    uint32_t close_timeout_ms;
    /**
     * Bytes of `job_key`.
     */
    uint32_t job_key_length;
    /**
     * Connections come about only between endpoints that hold the same key, of 16 bytes at least. It is copied. Null: none.
     */
    const void *job_key;
    /**
     * Bits of a tag that name its sender, for devices that match; 0: none.
     */
    uint64_t source_bits;
} tm_endpoint_config;

/**
 * Something is over.
 *
 * `tagmatch::endpoint::Completion`
 */
typedef struct tm_completion {
    /**
     * As given with the operation.
     */
    uint64_t context;
    /**
     * What: one of `TM_COMPLETED_…`.
     */
    uint32_t what;
    /**
     * 0; or `-EMSGSIZE`: the message was longer than the receive, and cut; or why the operation failed.
     */
    int32_t status;
    /**
     * The message's tag.
     */
    uint64_t tag;
    /**
     * Bytes that the message had.
     */
    uint64_t length;
    /**
     * Bytes of payload that were written.
     */
    uint64_t placed;
    /**
     * Where the payload begins: of a receive of several a piece of its buffer.
     */
    void *address;
    /**
     * The sender, if it has a number here, else `TM_ANY_SOURCE`.
     */
    uint64_t source;
    /**
     * With `TM_CQ_DATA`.
     */
    uint32_t cq_data;
    /**
     * `TM_UNTAGGED`, `TM_CQ_DATA`, `TM_RELEASED`.
     */
    uint32_t flags;
} tm_completion;

/**
 * A counter, as `tm_engine_statistics` and `tm_endpoint_statistics` give them.
 */
typedef struct tm_counter {
    /**
     * What is counted; ends with a zero byte.
     */
    char name[TM_COUNTER_NAME_MAX];
    /**
     * How often, or how much, since the object was opened; of depths: how many there are now.
     */
    uint64_t value;
} tm_counter;

/**
 * A stretch of memory, or several.
 *
 * `tagmatch::seam::Buffer`
 */
typedef struct tm_buffer {
    /**
     * The first byte; with several segments, the first of an array of `tm_segment`, which stays as long as the memory
     * itself.
     */
    void *address;
    /**
     * Bytes; with several segments, of all together.
     */
    uint64_t length;
    /**
     * How the device that will write there knows this memory (verbs: the lkey); 0 where none is needed.
     */
    uint32_t key;
    /**
     * Segments. 0 and 1: `address` is that of the memory itself.
     */
    uint32_t segments;
} tm_buffer;

/**
 * A message to send.
 *
 * `tagmatch::endpoint::Send`; `fi_tagged(3)`, `fi_msg(3)`; of levels, `fi_cq(3)`
 */
typedef struct tm_send {
    /**
     * To whom: a number of `tm_endpoint_set_peer`.
     */
    uint64_t to;
    /**
     * The tag; with `TM_UNTAGGED` it says nothing.
     */
    uint64_t tag;
    /**
     * The payload, which stays as it is until the completion, or until the call returns with `TM_SEND_INJECT`. It is only
     * read.
     */
    struct tm_buffer payload;
    /**
     * Comes back with the completion.
     */
    uint64_t context;
    /**
     * A word for the receiver's completion, with `TM_CQ_DATA`.
     */
    uint32_t cq_data;
    /**
     * When the send is complete: one of `TM_LEVEL_…`.
     */
    uint32_t level;
    /**
     * `TM_UNTAGGED`, `TM_CQ_DATA`, `TM_SEND_…`.
     */
    uint32_t flags;
    /**
     * 0
     */
    uint32_t reserved;
} tm_send;

/**
 * A receive to be posted.
 *
 * `tagmatch::endpoint::Post`; `fi_tagged(3)`, `fi_msg(3)`
 */
typedef struct tm_receive {
    /**
     * Whose messages: a number of `tm_endpoint_set_peer`, or `TM_ANY_SOURCE`.
     */
    uint64_t source;
    /**
     * Which; with `TM_UNTAGGED` it says nothing.
     */
    uint64_t tag;
    /**
     * Bits of the tag that do not count.
     */
    uint64_t ignore;
    /**
     * Where the payload goes. It is the library's until the completion.
     */
    struct tm_buffer buffer;
    /**
     * Comes back with the completions, and is what it is cancelled by.
     */
    uint64_t context;
    /**
     * With `TM_RECEIVE_SEVERAL`: see there.
     */
    uint64_t least;
    /**
     * `TM_UNTAGGED`, `TM_RECEIVE_SEVERAL`.
     */
    uint32_t flags;
    /**
     * 0
     */
    uint32_t reserved;
} tm_receive;

/**
 * An unexpected message to look for.
 *
 * `tagmatch::endpoint::Peek`; `FI_PEEK` of `fi_tagged(3)`
 */
typedef struct tm_peek {
    /**
     * As of `tm_receive`.
     */
    uint64_t source;
    /**
     * As of `tm_receive`.
     */
    uint64_t tag;
    /**
     * As of `tm_receive`.
     */
    uint64_t ignore;
    /**
     * Comes back with the completion; a claim is found by it.
     */
    uint64_t context;
    /**
     * What becomes of the message: one of `TM_PEEK_…`.
     */
    uint32_t action;
    /**
     * `TM_UNTAGGED`, or 0.
     */
    uint32_t flags;
} tm_peek;

/**
 * A message in its receive.
 *
 * `tagmatch::engine::Received`
 */
typedef struct tm_engine_message {
    /**
     * The message's tag.
     */
    uint64_t tag;
    /**
     * Bytes that it had.
     */
    uint64_t length;
    /**
     * Bytes that were written; fewer than `length` means that it was cut.
     */
    uint64_t placed;
    /**
     * Where they were written: of a receive of several messages a piece of its buffer.
     */
    void *address;
    /**
     * Who sent it.
     */
    uint32_t source;
    /**
     * The sender's word, as it arrived.
     */
    uint32_t app_ctx;
    /**
     * The sender's second word, as it arrived.
     */
    uint32_t immediate;
    /**
     * `TM_MESSAGE_IMMEDIATE`, or 0.
     */
    uint32_t flags;
    /**
     * The device that matched it; -1: the engine, in software.
     */
    int32_t matched_by;
    /**
     * 0
     */
    uint32_t reserved;
} tm_engine_message;

/**
 * What the user is told. A receive gives exactly one final completion. When the memory may be given up is another
 * question where a device matches: when it has ended here and each entry made of it was released.
 *
 * `tagmatch::engine::Completion`
 */
typedef struct tm_engine_completion {
    /**
     * As given with the receive.
     */
    uint64_t context;
    /**
     * One of `TM_END_…`.
     */
    uint32_t end;
    /**
     * 0; or `-EMSGSIZE`: the message was cut; `-ECANCELED`; why data did not come: `-ECONNRESET`, `-EIO`,
     * `-EREMOTEIO`.
     */
    int32_t status;
    /**
     * The message.
     */
    struct tm_engine_message message;
} tm_engine_completion;

/**
 * How an engine is set up. All zeros but `size` will do.
 *
 * `tagmatch::engine::Config`
 */
typedef struct tm_engine_config {
    /**
     * `sizeof(tm_engine_config)`
     */
    size_t size;
    /**
     * Seeds the hash, so that nobody can choose tags that collide; results never depend on it. 0: drawn anew each time.
     */
    uint64_t hash_seed;
    /**
     * Bits of a tag that name its sender, if the caller promises that some do (`tm_engine_name_peer`); 0: none.
     */
    uint64_t source_bits;
    /**
     * The first argument of `complete`.
     */
    void *user;
    /**
     * Called by `tm_engine_progress` for each completion. It may call this engine, but not close it. Null: completions are
     * asked for (`tm_engine_poll`).
     */
    void (*complete)(void *user, const struct tm_engine_completion *completion);
} tm_engine_config;

/**
 * Where the payload of a rendezvous waits, in the sender's memory.
 *
 * `tagmatch::seam::Remote`
 */
typedef struct tm_remote {
    /**
     * The first byte, as the sender named it.
     */
    uint64_t address;
    /**
     * Bytes.
     */
    uint64_t length;
    /**
     * The sender's key for it.
     */
    uint32_t key;
    /**
     * 0
     */
    uint32_t reserved;
} tm_remote;

/**
 * What becomes of a message that arrived unmatched.
 *
 * `tagmatch::seam::Answer`
 */
typedef struct tm_answer {
    /**
     * One of `TM_ANSWER_HOLD`, `TM_ANSWER_ACCEPT` and `TM_ANSWER_DISCARD`.
     */
    uint32_t kind;
    /**
     * `TM_ANSWER_TRANSFER`, or 0.
     */
    uint32_t flags;
    /**
     * What `tm_engine_handle_data` shall call it.
     */
    uint64_t transfer;
    /**
     * Of `TM_ANSWER_ACCEPT`: where to.
     */
    struct tm_buffer buffer;
} tm_answer;

/**
 * What an engine tells a device. Commands to one device are executed in order. What a command does not name is 0. Devices
 * that do not match get `TM_COMMAND_ANSWER` alone.
 *
 * `tagmatch::seam::Command`
 */
typedef struct tm_command {
    /**
     * One of `TM_COMMAND_ADD` to `TM_COMMAND_COPY`.
     */
    uint32_t kind;
    /**
     * `TM_COMMAND_SIGNALLED`, or 0.
     */
    uint32_t flags;
    /**
     * See the kinds.
     */
    uint64_t id;
    /**
     * The tag, with the ignored bits cleared.
     */
    uint64_t tag;
    /**
     * Bits of the tag that do not count: verbs' mask is their complement.
     */
    uint64_t ignore;
    /**
     * Where the payload goes.
     */
    struct tm_buffer buffer;
    /**
     * Where it comes from.
     */
    struct tm_buffer from;
    /**
     * Where it waits.
     */
    struct tm_remote remote;
    /**
     * See `TM_COMMAND_ANSWER`.
     */
    struct tm_answer answer;
    /**
     * Who holds the data.
     */
    uint32_t peer;
    /**
     * The request's word, by which the sender knows it.
     */
    uint32_t app_ctx;
    /**
     * Unexpected messages decided, modulo 65536, to go with it.
     */
    uint32_t unexpected_count;
    /**
     * Of `TM_COMMAND_RECEIVE`.
     */
    uint32_t buffers;
} tm_command;

/**
 * What a device can do, and how it is called. A device that does not match has zeros everywhere but in `size`, and may
 * have `user`, `submit` and `place`.
 *
 * `tagmatch::seam::Capabilities`; of devices that match, docs/tm-srq.md
 */
typedef struct tm_device {
    /**
     * `sizeof(tm_device)`
     */
    size_t size;
    /**
     * Entries of its matching list; 0: it does not match, and every message arrives unmatched.
     */
    uint32_t tags;
    /**
     * List operations that may be outstanding.
     */
    uint32_t command_slots;
    /**
     * Entries of its completion queue.
     */
    uint32_t completions;
    /**
     * Buffers for unexpected messages that it can hold; 0: it keeps them itself. A device that matches wants 33 at least.
     */
    uint32_t unexpected_buffers;
    /**
     * The longest payload, in bytes, that arrives eagerly. A shorter buffer is not given to a device that matches.
     */
    uint64_t eager_limit;
    /**
     * The longest buffer, in bytes, that is given to a device that matches.
     */
    uint64_t buffer_length_max;
    /**
     * `TM_DEVICE_REGISTRATION`, `TM_DEVICE_RENDEZVOUS`.
     */
    uint32_t flags;
    /**
     * 0
     */
    uint32_t reserved;
    /**
     * The first argument of what follows.
     */
    void *user;
    /**
     * Take commands, in order, and return how many were taken; the others are offered again. Called by
     * `tm_engine_progress`, and may not call this engine itself. Null: commands are asked for (`tm_engine_poll_commands`).
     */
    size_t (*submit)(void *user, const struct tm_command *commands, size_t count);
    /**
     * Write the payload of a message that the device holds, and whose arrival said `TM_ARRIVAL_IN_HAND`, into the buffer:
     * at most as many bytes as it has. Then forget the message, and return 1; no command follows. 0: it cannot be done now,
     * nothing has changed, and a command will say what to do. Called by `tm_engine_post`, and may not call this engine
     * itself. Null: always a command.
     */
    int (*place)(void *user, uint64_t message, const struct tm_buffer *buffer);
} tm_device;

/**
 * A message that no device matched: its header is known, and the engine says where it goes.
 *
 * `tagmatch::seam::Arrival`
 */
typedef struct tm_arrival {
    /**
     * What the device calls it, until it is accepted or discarded.
     */
    uint64_t message;
    /**
     * The tag to match by.
     */
    uint64_t tag;
    /**
     * Bytes of payload in the whole message.
     */
    uint64_t length;
    /**
     * Who sent it.
     */
    uint32_t source;
    /**
     * The sender's word for the receiver: the caller's, comes back with the completion. (Of devices that match the wire
     * format has these 32 bits.)
     */
    uint32_t app_ctx;
    /**
     * A second word, if `flags` says so.
     */
    uint32_t immediate;
    /**
     * `TM_MESSAGE_IMMEDIATE`, `TM_ARRIVAL_…`.
     */
    uint32_t flags;
    /**
     * With `TM_ARRIVAL_RENDEZVOUS`.
     */
    struct tm_remote remote;
} tm_arrival;

/**
 * The data of a message is complete, or will never be. Either way the device is done with its buffer.
 *
 * `tagmatch::seam::Data`
 */
typedef struct tm_data {
    /**
     * Whose data: see `target`.
     */
    uint64_t id;
    /**
     * Bytes that the message had; of these at most the buffer's length were written.
     */
    uint64_t length;
    /**
     * One of `TM_DATA_…`.
     */
    uint32_t target;
    /**
     * 0: it is there. Why not, if not: `-ECONNRESET`: the sender or the path to it is gone; `-EIO`: the device failed;
     * any other negative code: the device's own.
     */
    int32_t status;
    /**
     * A second word of the sender's, if `flags` says so.
     */
    uint32_t immediate;
    /**
     * `TM_MESSAGE_IMMEDIATE`, or 0.
     */
    uint32_t flags;
} tm_data;

/**
 * A device matched a message with an entry of its list.
 *
 * `tagmatch::seam::Match`
 */
typedef struct tm_match {
    /**
     * The entry.
     */
    uint64_t entry;
    /**
     * The message's tag.
     */
    uint64_t tag;
    /**
     * Bytes of payload; with `TM_MATCH_DATA_FOLLOWS` it says nothing.
     */
    uint64_t length;
    /**
     * Who sent it.
     */
    uint32_t source;
    /**
     * The sender's word.
     */
    uint32_t app_ctx;
    /**
     * A second word, if `flags` says so.
     */
    uint32_t immediate;
    /**
     * `TM_MESSAGE_IMMEDIATE`, `TM_MATCH_RELEASED`.
     */
    uint32_t flags;
    /**
     * `TM_MATCH_COMPLETE`, `TM_MATCH_DATA_FOLLOWS` or `TM_MATCH_SOFTWARE_RENDEZVOUS`.
     */
    uint32_t stage;
    /**
     * 0
     */
    uint32_t reserved;
    /**
     * With `TM_MATCH_SOFTWARE_RENDEZVOUS`.
     */
    struct tm_remote remote;
} tm_match;

/**
 * A list operation whose command was signalled is complete.
 *
 * `tagmatch::seam::OperationDone`
 */
typedef struct tm_operation {
    /**
     * Of `TM_COMMAND_ADD` and `TM_COMMAND_DEL`: the entry.
     */
    uint64_t entry;
    /**
     * `TM_COMMAND_ADD`, `TM_COMMAND_DEL` or `TM_COMMAND_SYNC`.
     */
    uint32_t operation;
    /**
     * `TM_OPERATION_…`
     */
    uint32_t flags;
    /**
     * The device's own count of unexpected messages when it ran the operation, modulo 65536.
     */
    uint32_t phase;
    /**
     * 0
     */
    uint32_t reserved;
} tm_operation;

/**
 * Which messages a receive takes: `(tag ^ message's tag) & ~ignore == 0`, and the source is right.
 *
 * `tagmatch::matching::Pattern`; `fi_trecv(3)`
 */
typedef struct tm_pattern {
    /**
     * The tag.
     */
    uint64_t tag;
    /**
     * Bits of the tag that do not count.
     */
    uint64_t ignore;
    /**
     * `TM_SOURCE_ANY`, `TM_SOURCE_PEER` or `TM_SOURCE_GROUP`.
     */
    uint32_t kind;
    /**
     * Which peer or group; of `TM_SOURCE_ANY` it says nothing.
     */
    uint32_t source;
} tm_pattern;

/**
 * A receive to be posted.
 *
 * `tagmatch::engine::Receive`
 */
typedef struct tm_engine_receive {
    /**
     * What it takes.
     */
    struct tm_pattern pattern;
    /**
     * Where the payload goes. The engine follows no address: what stands here is for whoever places the data.
     */
    struct tm_buffer buffer;
    /**
     * Comes back with its completions.
     */
    uint64_t context;
    /**
     * With `TM_RECEIVE_MULTI`: see there.
     */
    uint64_t least;
    /**
     * `TM_RECEIVE_MULTI`, or 0.
     */
    uint32_t flags;
    /**
     * 0
     */
    uint32_t reserved;
} tm_engine_receive;

/**
 * What became of a post.
 *
 * `tagmatch::engine::Posting`
 */
typedef struct tm_posting {
    /**
     * With `TM_POST_QUEUED`: the receive, to be cancelled by.
     */
    uint64_t receive;
    /**
     * Otherwise: the message.
     */
    struct tm_engine_message message;
} tm_posting;

/**
 * A message that waits, looked at.
 *
 * `tagmatch::engine::Peeked`
 */
typedef struct tm_peeked {
    /**
     * Its tag.
     */
    uint64_t tag;
    /**
     * Bytes of payload.
     */
    uint64_t length;
    /**
     * What the device that holds it calls it.
     */
    uint64_t message;
    /**
     * Who sent it.
     */
    uint32_t source;
    /**
     * The sender's word.
     */
    uint32_t app_ctx;
    /**
     * The sender's second word.
     */
    uint32_t immediate;
    /**
     * `TM_MESSAGE_IMMEDIATE`, or 0.
     */
    uint32_t flags;
    /**
     * The device that holds it.
     */
    uint32_t device;
    /**
     * 0
     */
    uint32_t reserved;
} tm_peeked;

/**
 * One of several stretches of memory.
 *
 * `tagmatch::seam::Segment`
 */
typedef struct tm_segment {
    /**
     * The first byte.
     */
    void *address;
    /**
     * Bytes.
     */
    uint64_t length;
    /**
     * As of `tm_buffer`.
     */
    uint64_t key;
} tm_segment;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * The version of the library that is loaded: major << 16 | minor << 8 | patch. Any thread may call it at any time.
 */
uint32_t tm_version(void);

/**
 * The same as text, "0.1.0". Any thread may call it at any time.
 */
const char *tm_version_string(void);

/**
 * An endpoint over the transports that are asked for, and to itself. `config` may be null.
 *
 * # Errors
 * `-EINVAL`, `-E2BIG`: of `config`. `-ENODEV`: there is no such verbs device, or it cannot do what is asked for.
 * `-EADDRINUSE`, `-EADDRNOTAVAIL` and other codes of the system's: it cannot listen there.
 *
 * # Safety
 * As for every call: see the head of this page.
 */
int tm_endpoint_open(const struct tm_endpoint_config *config, struct tm_endpoint **endpoint);

/**
 * Close an endpoint. What completions were told of still goes out: this waits until the hosts of all peers have it, but not
 * for one that takes nothing for `close_timeout_ms`, and for 12 times as long at most. Then all memory of messages is the
 * caller's again, whether a completion said so or not. Peers are told.
 *
 * An owner of several endpoints that wait for each other shuts all of them down first (`tm_endpoint_shutdown`).
 *
 * `tagmatch::endpoint::Endpoint::close`
 *
 * # Errors
 * `-EFAULT`: `endpoint` is null.
 *
 * # Safety
 * As for every call: see the head of this page. The endpoint is not used again.
 */
int tm_endpoint_close(struct tm_endpoint *endpoint);

/**
 * Begin to close, and return: nothing more is sent, peers are told, and progress does the rest. Sends of memory that peers
 * still have to read fail. 1: it is done, and closing will not wait. 0: not yet.
 *
 * `tagmatch::endpoint::Endpoint::close`, `tagmatch::endpoint::Endpoint::is_closed`
 *
 * # Safety
 * As for every call: see the head of this page.
 */
int tm_endpoint_shutdown(struct tm_endpoint *endpoint);

/**
 * The name under which others reach this endpoint: bytes of a `sockaddr`, which are handed to peers by other means.
 * `length` is how many there is room for, and becomes how many there are; `TM_NAME_MAX` will do.
 *
 * `tagmatch::endpoint::Endpoint::name`
 *
 * # Errors
 * `-EMSGSIZE`: there is too little room; `length` says how much it takes.
 *
 * # Safety
 * As for every call: see the head of this page. There is room for `length` bytes.
 */
int tm_endpoint_name(struct tm_endpoint *endpoint, void *name, size_t *length);

/**
 * This number stands for the peer of this name from now on. Numbers are dealt by the caller, from small ones on. Messages
 * that came from it already are that number's from now on.
 *
 * `tagmatch::endpoint::Endpoint::set_address`
 *
 * # Errors
 * `-EINVAL`: the number stands for another name, or the name has not 1 to 64 bytes. `-ENOSPC`: the number is too large.
 *
 * # Safety
 * As for every call: see the head of this page. The name has `length` bytes.
 */
int tm_endpoint_set_peer(struct tm_endpoint *endpoint,
                         uint64_t peer,
                         const void *name,
                         size_t length);

/**
 * The number stands for nobody any more. Receives that name it stay posted, and sends in progress go on.
 *
 * `tagmatch::endpoint::Endpoint::remove_address`
 *
 * # Safety
 * As for every call: see the head of this page.
 */
int tm_endpoint_remove_peer(struct tm_endpoint *endpoint, uint64_t peer);

/**
 * Move on. Returns how many things happened.
 *
 * `tagmatch::endpoint::Endpoint::progress`
 *
 * # Errors
 * `-EIO`: a transport failed, now or before. Whatever was in progress has ended, and completions say so.
 *
 * # Safety
 * As for every call: see the head of this page.
 */
int tm_endpoint_progress(struct tm_endpoint *endpoint);

/**
 * Move completions to the caller, oldest first, and return how many. It makes no progress.
 *
 * `tagmatch::endpoint::Endpoint::poll_completion`
 *
 * # Safety
 * As for every call: see the head of this page. There is room for `room` completions.
 */
int tm_endpoint_poll(struct tm_endpoint *endpoint, struct tm_completion *completions, size_t room);

/**
 * Sleep until there is something to do, `timeout_ms` at most; -1: for as long as it takes. It may return early, so go on
 * with progress in any case.
 *
 * # Safety
 * As for every call: see the head of this page.
 */
int tm_endpoint_wait(struct tm_endpoint *endpoint,
                     int timeout_ms);

/**
 * For those who wait themselves: whether they may, for the descriptors of `tm_endpoint_descriptors` to be readable, and for
 * how long at most in milliseconds (-1: for as long as it takes). 0: there is something to do already. `timeout_ms` may be
 * null.
 *
 * `tagmatch::endpoint::Endpoint::may_wait`, `tagmatch::endpoint::Endpoint::next_deadline`
 *
 * # Safety
 * As for every call: see the head of this page.
 */
int tm_endpoint_may_wait(struct tm_endpoint *endpoint,
                         int *timeout_ms);

/**
 * File descriptors one of which is readable when progress would find something: as many as there is room for; returns how
 * many there are. They are the endpoint's, and stay the same.
 *
 * `tagmatch::endpoint::Endpoint::wait_descriptors`
 *
 * # Safety
 * As for every call: see the head of this page. There is room for `room` descriptors.
 */
int tm_endpoint_descriptors(struct tm_endpoint *endpoint,
                            int *descriptors,
                            size_t room);

/**
 * What happened so far, and what there is now: as many counters as there is room for; returns how many there are.
 *
 * `tagmatch::endpoint::Statistics`, `tagmatch::offload::Statistics`
 *
 * # Safety
 * As for every call: see the head of this page. There is room for `room` counters.
 */
int tm_endpoint_statistics(struct tm_endpoint *endpoint, struct tm_counter *counters, size_t room);

/**
 * Send a message. A completion comes, with `TM_SEND_INJECT` too. The first to a peer begins a connection, and is `-EAGAIN`
 * until that is there. Messages to one peer arrive in the order in which they were sent.
 *
 * `tagmatch::endpoint::Endpoint::send`
 *
 * # Errors
 * It was not taken: nothing was done, and no completion comes. `-EAGAIN`: not now; go on with progress and try again.
 * `-EADDRNOTAVAIL`: the number stands for no peer. `-EMSGSIZE`: it is too long. `-ECONNREFUSED`, `-ETIMEDOUT`, `-EACCES`,
 * `-ECONNRESET` and others: the peer cannot be reached; the next send tries anew.
 *
 * # Safety
 * As for every call: see the head of this page. The payload stays as it is until the completion, or until the call returns
 * with `TM_SEND_INJECT`.
 */
int tm_endpoint_send(struct tm_endpoint *endpoint,
                     const struct tm_send *send);

/**
 * Start whatever was sent with `TM_SEND_MORE`.
 *
 * `tagmatch::endpoint::Endpoint::flush`
 *
 * # Safety
 * As for every call: see the head of this page.
 */
int tm_endpoint_flush(struct tm_endpoint *endpoint);

/**
 * Post a receive. A completion comes.
 *
 * `tagmatch::endpoint::Endpoint::post`
 *
 * # Errors
 * `-EADDRNOTAVAIL`: the source stands for no peer. `-EINVAL`: of `receive`. `-EIO`: a transport failed. Nothing was done.
 *
 * # Safety
 * As for every call: see the head of this page. The memory is the library's until the completion.
 */
int tm_endpoint_receive(struct tm_endpoint *endpoint,
                        const struct tm_receive *receive);

/**
 * Look for a message that waits. It makes progress once, and the answer is a completion: `TM_COMPLETED_PEEKED`.
 *
 * `tagmatch::endpoint::Endpoint::peek`
 *
 * # Errors
 * `-EINVAL`: of `peek`. No completion comes.
 *
 * # Safety
 * As for every call: see the head of this page.
 */
int tm_endpoint_peek(struct tm_endpoint *endpoint, const struct tm_peek *peek);

/**
 * Receive the message that a peek of this context claimed. A completion comes, under the same context.
 *
 * `tagmatch::endpoint::Endpoint::receive_claimed`
 *
 * # Errors
 * `-ENOENT`: there is no such claim (any more).
 *
 * # Safety
 * As for every call: see the head of this page. The memory is the library's until the completion.
 */
int tm_endpoint_receive_claimed(struct tm_endpoint *endpoint, uint64_t context, const struct tm_buffer *into);

/**
 * Drop the message that a peek of this context claimed. `TM_COMPLETED_PEEKED` comes, under the same context.
 *
 * `tagmatch::endpoint::Endpoint::discard_claimed`
 *
 * # Errors
 * `-ENOENT`: there is no such claim (any more).
 *
 * # Safety
 * As for every call: see the head of this page.
 */
int tm_endpoint_discard_claimed(struct tm_endpoint *endpoint, uint64_t context);

/**
 * Cancel one receive of this context, the oldest, with a tag or without. Its completion says whether it was cancelled or a
 * message came first.
 *
 * `tagmatch::endpoint::Endpoint::cancel`
 *
 * # Errors
 * `-ENOENT`: none is pending.
 *
 * # Safety
 * As for every call: see the head of this page.
 */
int tm_endpoint_cancel(struct tm_endpoint *endpoint,
                       uint64_t context);

/**
 * An engine without devices. `config` may be null.
 *
 * # Errors
 * `-EINVAL`, `-E2BIG`: of `config`. `-EFAULT`: `engine` is null.
 *
 * # Safety
 * As for every call: see the head of this page.
 */
int tm_engine_open(const struct tm_engine_config *config, struct tm_engine **engine);

/**
 * Close an engine. Nothing more is told of its receives, and their memory is the caller's, but for entries of devices
 * that match: that memory is free when the device has let go of it.
 *
 * # Errors
 * `-EBUSY`: from within a callback. `-EFAULT`: `engine` is null.
 *
 * # Safety
 * As for every call: see the head of this page. The engine is not used again.
 */
int tm_engine_close(struct tm_engine *engine);

/**
 * A device of the caller's own joins. Returns its number: 0 for the first, 1 for the next.
 *
 * `tagmatch::engine::Engine::add_device`
 *
 * # Errors
 * `-EINVAL`, `-E2BIG`: of `device`. `-ENOSPC`: there are 256 already.
 *
 * # Safety
 * As for every call: see the head of this page. Its callbacks can be called until the engine is closed.
 */
int tm_engine_add_device(struct tm_engine *engine, const struct tm_device *device);

/**
 * Move on: completions go to `complete`, if there is one, and commands to each device that has a `submit`. Returns how many
 * completions were told. For those who use callbacks; others need not call it.
 *
 * # Errors
 * `-EBUSY`: from within a callback.
 *
 * # Safety
 * As for every call: see the head of this page.
 */
int tm_engine_progress(struct tm_engine *engine);

/**
 * Move completions to the caller, oldest first, and return how many. For those who have no `complete`.
 *
 * `tagmatch::engine::Engine::poll_completions`
 *
 * # Safety
 * As for every call: see the head of this page. There is room for `room` completions.
 */
int tm_engine_poll(struct tm_engine *engine, struct tm_engine_completion *completions, size_t room);

/**
 * What a device did that it may not do, oldest first: 1 and a text, cut to `length` bytes with its zero; or 0.
 *
 * `tagmatch::engine::Engine::poll_fault`
 *
 * # Safety
 * As for every call: see the head of this page. There is room for `length` bytes.
 */
int tm_engine_poll_fault(struct tm_engine *engine, char *text, size_t length);

/**
 * Receives that are posted, and messages that wait. Either may be null.
 *
 * `tagmatch::engine::Engine::depths`
 *
 * # Safety
 * As for every call: see the head of this page.
 */
int tm_engine_depths(struct tm_engine *engine, uint64_t *posted, uint64_t *unexpected);

/**
 * What offload has done. Gives as many counters as there is room for, and returns how many there are.
 *
 * `tagmatch::offload::Statistics`
 *
 * # Safety
 * As for every call: see the head of this page. There is room for `room` counters.
 */
int tm_engine_statistics(struct tm_engine *engine, struct tm_counter *counters, size_t room);

/**
 * Which bits of a tag name this peer (`source_bits` of the configuration). Afterwards a receive from it may be matched by a
 * device by these bits alone: every tag of its messages must carry them, and no other peer's may.
 *
 * `tagmatch::engine::Engine::name_peer`
 *
 * # Errors
 * `-EINVAL`: the name does not fit, or is another's.
 *
 * # Safety
 * As for every call: see the head of this page.
 */
int tm_engine_name_peer(struct tm_engine *engine,
                        uint32_t peer,
                        uint64_t bits);

/**
 * A peer's messages come through this device; until it is said, they may come through any.
 *
 * `tagmatch::engine::Engine::set_path`
 *
 * # Errors
 * `-EAGAIN`: they come through another, and receives that name the peer are posted or messages of it undecided.
 *
 * # Safety
 * As for every call: see the head of this page.
 */
int tm_engine_set_path(struct tm_engine *engine, uint32_t peer, uint32_t device);

/**
 * A peer joins this group, and leaves the one it is in; `TM_NO_GROUP`: it only leaves.
 *
 * `tagmatch::engine::Engine::set_group`
 *
 * # Safety
 * As for every call: see the head of this page.
 */
int tm_engine_set_group(struct tm_engine *engine, uint32_t peer, uint32_t group);

/**
 * A source is learned late: what is known of `from` is `to`'s, and what devices say of `from` from now on too, until that
 * number is dealt again (`from` and `to` the same).
 *
 * `tagmatch::engine::Engine::resolve`
 *
 * # Safety
 * As for every call: see the head of this page.
 */
int tm_engine_resolve(struct tm_engine *engine,
                      uint32_t from,
                      uint32_t to);

/**
 * Build the index of a class of receives beforehand: those that ignore these bits and have a source of this kind
 * (`TM_SOURCE_…`). Without it the first use of a new `ignore` on a long list of messages reads it once.
 *
 * `tagmatch::engine::Engine::declare`
 *
 * # Safety
 * As for every call: see the head of this page.
 */
int tm_engine_declare(struct tm_engine *engine, uint64_t ignore, uint32_t kind);

/**
 * Let receives go down to a device that matches, or (`on` 0) bring them back and keep them in software.
 *
 * `tagmatch::engine::Engine::set_offload`
 *
 * # Safety
 * As for every call: see the head of this page.
 */
int tm_engine_set_offload(struct tm_engine *engine, uint32_t device, int on);

/**
 * Give a device that matches a buffer for receives shorter than its eager limit.
 *
 * `tagmatch::engine::Engine::add_bounce_buffer`
 *
 * # Errors
 * `-EINVAL`: it is shorter than the eager limit itself, or in several segments.
 *
 * # Safety
 * As for every call: see the head of this page. The memory stays until the engine and the device are closed.
 */
int tm_engine_add_bounce_buffer(struct tm_engine *engine, uint32_t device, const struct tm_buffer *buffer);

/**
 * Commands for a device that has no `submit`, oldest first: as many as there is room for; returns how many. They are offered
 * again until `tm_engine_handle_submitted`, before which the engine may be told nothing: an event might withdraw one of
 * them.
 *
 * `tagmatch::engine::Engine::poll_commands`
 *
 * # Errors
 * `-ENODEV`: there is no such device.
 *
 * # Safety
 * As for every call: see the head of this page. There is room for `room` commands.
 */
int tm_engine_poll_commands(struct tm_engine *engine,
                            uint32_t device,
                            struct tm_command *commands,
                            size_t room);

/**
 * The device took so many of its commands; those come no more.
 *
 * `tagmatch::engine::Engine::handle_submitted`
 *
 * # Errors
 * `-ENODEV`: there is no such device. `-EINVAL`: so many do not wait. Nothing was done.
 *
 * # Safety
 * As for every call: see the head of this page.
 */
int tm_engine_handle_submitted(struct tm_engine *engine, uint32_t device, size_t taken);

/**
 * A message arrived. The answer says at once what becomes of it.
 *
 * `tagmatch::seam::Event::Arrived`
 *
 * # Errors
 * `-ENODEV`: there is no such device. `-EFAULT`: `answer` is null. `-EINVAL`: of `arrival`. Nothing was done.
 *
 * # Safety
 * As for every call: see the head of this page.
 */
int tm_engine_handle_arrival(struct tm_engine *engine,
                             uint32_t device,
                             const struct tm_arrival *arrival,
                             struct tm_answer *answer);

/**
 * Data is complete, or will never be.
 *
 * `tagmatch::seam::Event::Data`
 *
 * # Errors
 * `-ENODEV`: there is no such device. `-EINVAL`: of `data`. Nothing was done. An `id` that names nothing is a fault of the
 * device's (`tm_engine_poll_fault`).
 *
 * # Safety
 * As for every call: see the head of this page.
 */
int tm_engine_handle_data(struct tm_engine *engine,
                          uint32_t device,
                          const struct tm_data *data);

/**
 * A device matched a message.
 *
 * `tagmatch::seam::Event::Matched`
 *
 * # Errors
 * As `tm_engine_handle_data`.
 *
 * # Safety
 * As for every call: see the head of this page.
 */
int tm_engine_handle_match(struct tm_engine *engine, uint32_t device, const struct tm_match *matched);

/**
 * A list operation is complete.
 *
 * `tagmatch::seam::Event::Operation`
 *
 * # Errors
 * As `tm_engine_handle_data`.
 *
 * # Safety
 * As for every call: see the head of this page.
 */
int tm_engine_handle_operation(struct tm_engine *engine, uint32_t device, const struct tm_operation *operation);

/**
 * A device that matches no longer touches the buffer of this entry. Comes for every entry, unless `TM_MATCH_RELEASED`
 * has said so; only now may the memory be given up.
 *
 * `tagmatch::seam::Event::Released`
 *
 * # Errors
 * As `tm_engine_handle_data`.
 *
 * # Safety
 * As for every call: see the head of this page.
 */
int tm_engine_handle_released(struct tm_engine *engine, uint32_t device, uint64_t entry);

/**
 * A message without a tag used up a buffer for unexpected messages of a device that matches; `counted`: the device counted
 * it as unexpected. The message is the caller's own business.
 *
 * `tagmatch::seam::Event::Untagged`
 *
 * # Errors
 * As `tm_engine_handle_data`.
 *
 * # Safety
 * As for every call: see the head of this page.
 */
int tm_engine_handle_untagged(struct tm_engine *engine,
                              uint32_t device,
                              uint32_t source,
                              int counted);

/**
 * A device took the ADD of this entry and does without it: what fits it comes unexpected. `overlaps`: since it overlaps an
 * older one that it does without; else its memory cannot be registered.
 *
 * `tagmatch::seam::Event::SetAside`
 *
 * # Errors
 * As `tm_engine_handle_data`.
 *
 * # Safety
 * As for every call: see the head of this page.
 */
int tm_engine_handle_set_aside(struct tm_engine *engine,
                               uint32_t device,
                               uint64_t entry,
                               int overlaps);

/**
 * Nothing more will come from this peer through this device, and all that had come was told. Data that was under way has
 * been told of with an error.
 *
 * `tagmatch::seam::Event::PathLost`
 *
 * # Errors
 * As `tm_engine_handle_data`.
 *
 * # Safety
 * As for every call: see the head of this page.
 */
int tm_engine_handle_path_lost(struct tm_engine *engine,
                               uint32_t device,
                               uint32_t peer);

/**
 * A device is of no more use and touches no memory any more. `reason`, which may be null, comes back with the fault.
 *
 * `tagmatch::seam::Event::DeviceFailed`
 *
 * # Errors
 * As `tm_engine_handle_data`.
 *
 * # Safety
 * As for every call: see the head of this page.
 */
int tm_engine_handle_device_failed(struct tm_engine *engine, uint32_t device, const char *reason);

/**
 * Post a receive: it takes the earliest message that waits and fits, or is posted. Returns `TM_POST_QUEUED`,
 * `TM_POST_MATCHED` or `TM_POST_PLACED`; `posting`, which may be null, has more.
 *
 * `tagmatch::engine::Engine::post_placing`
 *
 * # Errors
 * `-EINVAL`: of `receive`. Nothing was done.
 *
 * # Safety
 * As for every call: see the head of this page. The memory stays until the receive has ended (`tm_engine_completion`).
 */
int tm_engine_post(struct tm_engine *engine, const struct tm_engine_receive *receive, struct tm_posting *posting);

/**
 * Cancel a receive by what `tm_posting` called it. 0: its completion says cancelled. 1: a device has it, and its completion
 * will say whether it was cancelled or a message came first. Cancelling again changes nothing.
 *
 * `tagmatch::engine::Engine::cancel`
 *
 * # Errors
 * `-ENOENT`: it was matched before, or there is no such receive.
 *
 * # Safety
 * As for every call: see the head of this page.
 */
int tm_engine_cancel(struct tm_engine *engine,
                     uint64_t receive);

/**
 * The earliest message that waits and fits. Nothing changes. `peeked` may be null.
 *
 * `tagmatch::engine::Engine::peek`
 *
 * # Errors
 * `-ENOMSG`: none does.
 *
 * # Safety
 * As for every call: see the head of this page.
 */
int tm_engine_peek(struct tm_engine *engine, const struct tm_pattern *pattern, struct tm_peeked *peeked);

/**
 * The same, and the message is taken out of everyone else's sight: `claim` is what it is received or discarded by, once.
 *
 * `tagmatch::engine::Engine::claim`
 *
 * # Errors
 * `-ENOMSG`: none does. `-EFAULT`: `claim` is null.
 *
 * # Safety
 * As for every call: see the head of this page.
 */
int tm_engine_claim(struct tm_engine *engine,
                    const struct tm_pattern *pattern,
                    struct tm_peeked *peeked,
                    uint64_t *claim);

/**
 * The same, and the message is dropped: its device is told so.
 *
 * `tagmatch::engine::Engine::discard`
 *
 * # Errors
 * `-ENOMSG`: none does.
 *
 * # Safety
 * As for every call: see the head of this page.
 */
int tm_engine_discard(struct tm_engine *engine, const struct tm_pattern *pattern, struct tm_peeked *peeked);

/**
 * Receive a message that was claimed. A completion comes.
 *
 * `tagmatch::engine::Engine::receive_claimed`
 *
 * # Errors
 * `-ENOENT`: there is no such claim (any more).
 *
 * # Safety
 * As for every call: see the head of this page. The memory stays until the completion.
 */
int tm_engine_receive_claimed(struct tm_engine *engine,
                              uint64_t claim,
                              const struct tm_buffer *buffer,
                              uint64_t context);

/**
 * Drop a message that was claimed: its device is told so.
 *
 * `tagmatch::engine::Engine::discard_claimed`
 *
 * # Errors
 * `-ENOENT`: there is no such claim (any more).
 *
 * # Safety
 * As for every call: see the head of this page.
 */
int tm_engine_discard_claimed(struct tm_engine *engine, uint64_t claim);

/**
 * What was wrong with the last call of this thread that failed, in words for people: with which value, and what to do.
 * Empty before any has. Good until the next call of this function on the same thread. Not null. Any thread may call it at
 * any time.
 */
const char *tm_last_error(void);

/**
 * What a code means that a call of this library returned, or that stands in a completion: 0 or negative. A static text;
 * not null. Any thread may call it at any time.
 */
const char *tm_strerror(int code);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* TAGMATCH_H */
