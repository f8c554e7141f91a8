#include "control/proto/message.h"

#include "dataplane/base/arena.h"
#include "dataplane/base/check.h"
#include "dataplane/base/crc.h"
#include "dataplane/base/limits.h"
#include "dataplane/base/little_endian.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_BLOCK_BYTES = 1024 }; /* what the smallest messages need */

static_assert(MESSAGE_MEMORY_MAX >= 2 * MESSAGE_BYTES_MAX, "the largest message can be decoded");

int message_pack(const Weir__Envelope *envelope, uint8_t **frame, size_t *frame_bytes)
{
	size_t bytes = weir__envelope__get_packed_size(envelope);

	CHECK(envelope->body_case != WEIR__ENVELOPE__BODY__NOT_SET);
	if (bytes > MESSAGE_BYTES_MAX)
		return -EMSGSIZE;

	uint8_t *out = malloc(MESSAGE_HEAD_BYTES + bytes);
	if (out == NULL)
		return -ENOMEM;
	size_t packed = weir__envelope__pack(envelope, out + MESSAGE_HEAD_BYTES);
	CHECK(packed == bytes);
	put_u32(out, (uint32_t)bytes);
	put_u32(out + 4, crc32c(0, out + MESSAGE_HEAD_BYTES, bytes));
	*frame = out;
	*frame_bytes = MESSAGE_HEAD_BYTES + bytes;
	return 0;
}

int message_frame_bytes(const uint8_t head[MESSAGE_HEAD_BYTES], size_t *frame_bytes)
{
	uint32_t bytes = get_u32(head);

	if (bytes == 0 || bytes > MESSAGE_BYTES_MAX)
		return -EBADMSG;
	*frame_bytes = MESSAGE_HEAD_BYTES + (size_t)bytes;
	return 0;
}

/* ---- memory of a decoded message is bounded, and given back at once ---- */

/* In front of the envelope, in the arena itself. */
struct held {
	_Alignas(ARENA_ALIGN) struct arena arena;
};

/* ---- what a decoded message must look like ---- */

static bool is_id(const ProtobufCBinaryData *bytes)
{
	return bytes->len == sizeof(struct id128) && bytes->data != NULL;
}

static bool are_ids(const ProtobufCBinaryData *ids, size_t count)
{
	bool ok = true;

	for (size_t i = 0; i < count; i++)
		ok = ok && is_id(&ids[i]);
	return ok;
}

static bool is_text(const char *text)
{
	return text != NULL && strlen(text) <= MESSAGE_TEXT_BYTES_MAX;
}

static bool is_numbers(const Weir__TaskNumbers *n)
{
	bool ok = is_id(&n->attempt);

	for (size_t i = 0; i < n->n_counters; i++)
		ok = ok && is_text(n->counters[i]->uid) && is_text(n->counters[i]->name);
	return ok;
}

static bool is_register(const Weir__RegisterTaskManager *r)
{
	return is_text(r->id) && r->id[0] != 0 && is_text(r->host) && is_text(r->version) &&
			is_text(r->pages) && is_text(r->link_address) && is_text(r->link_port) &&
			is_text(r->packet_ports) && r->slot_count >= 1 &&
			r->slot_count <= WORKERS_COUNT_MAX * TASKS_PER_WORKER_MAX;
}

static bool is_heartbeat(const Weir__TaskHeartbeat *h)
{
	bool ok = true;

	for (size_t i = 0; i < h->n_tasks; i++)
		ok = ok && is_numbers(h->tasks[i]);
	return ok;
}

static bool is_status(const Weir__TaskStatus *s)
{
	return is_id(&s->attempt) && is_text(s->error) &&
			(uint32_t)s->state <= WEIR__ATTEMPT_STATE__TASK_FAILED &&
			(s->numbers == NULL || is_numbers(s->numbers));
}

static bool is_acknowledge(const Weir__AcknowledgeCheckpoints *a)
{
	bool ok = a->n_acks > 0;

	for (size_t i = 0; i < a->n_acks; i++)
		ok = ok && is_id(&a->acks[i]->attempt) && a->acks[i]->checkpoint_id > 0 &&
				a->acks[i]->metrics != NULL;
	return ok;
}

static bool is_submit(const Weir__SubmitTasks *s)
{
	bool ok = is_id(&s->job) && is_text(s->job_name) && s->job_file != NULL &&
			is_text(s->job_file_name) && is_text(s->plugin_dir) &&
			is_text(s->checkpoint_dir) && is_text(s->restored_dir) &&
			s->restored_checkpoint_id >= 0 && s->n_tasks > 0 &&
			s->n_tasks <= VERTICES_COUNT_MAX * PARALLELISM_MAX;

	for (size_t i = 0; i < s->n_overrides; i++)
		ok = ok && is_text(s->overrides[i]);
	for (size_t i = 0; i < s->n_settings; i++)
		ok = ok && is_text(s->settings[i]);
	for (size_t i = 0; ok && i < s->n_tasks; i++)
		ok = is_id(&s->tasks[i]->attempt) && s->tasks[i]->vertex < VERTICES_COUNT_MAX &&
				s->tasks[i]->subtask_index < PARALLELISM_MAX;
	return ok;
}

static bool is_trigger(const Weir__TriggerCheckpoint *t)
{
	return t->checkpoint_id > 0 && t->alignment <= UINT8_MAX &&
			(uint32_t)t->kind <= WEIR__SNAPSHOT_KIND__FULL_CHECKPOINT &&
			is_text(t->location) && are_ids(t->attempts, t->n_attempts);
}

static bool is_locate(const Weir__LocateSavepoint *l)
{
	return l->checkpoint_id > 0 && is_text(l->location) && l->location[0] != 0 &&
			l->n_attempts > 0 && are_ids(l->attempts, l->n_attempts);
}

static bool is_event(const Weir__OperatorEvent *e)
{
	return is_id(&e->attempt) && e->operator_index < CHAIN_OPERATORS_MAX &&
			e->data.len <= MESSAGE_TEXT_BYTES_MAX;
}

static bool is_decline(const Weir__DeclineCheckpoint *d)
{
	return is_id(&d->attempt) && d->checkpoint_id > 0 &&
			(uint32_t)d->reason <= WEIR__DECLINE_REASON__DECLINED_CHECKPOINT_SUBSUMED &&
			is_text(d->text);
}

static bool is_sound(const Weir__Envelope *e)
{
	switch (e->body_case) {
	case WEIR__ENVELOPE__BODY_REGISTER_TASK_MANAGER:
		return is_register(e->register_task_manager);
	case WEIR__ENVELOPE__BODY_TASK_HEARTBEAT:
		return is_heartbeat(e->task_heartbeat);
	case WEIR__ENVELOPE__BODY_DEPLOY_ANSWER:
		return is_text(e->deploy_answer->error);
	case WEIR__ENVELOPE__BODY_TASK_STATUS:
		return is_status(e->task_status);
	case WEIR__ENVELOPE__BODY_END_OF_DATA:
		return is_id(&e->end_of_data->attempt);
	case WEIR__ENVELOPE__BODY_ACKNOWLEDGE_CHECKPOINTS:
		return is_acknowledge(e->acknowledge_checkpoints);
	case WEIR__ENVELOPE__BODY_DECLINE_CHECKPOINT:
		return is_decline(e->decline_checkpoint);
	case WEIR__ENVELOPE__BODY_SAVEPOINT_LOCATED:
		return is_id(&e->savepoint_located->attempt) &&
				e->savepoint_located->checkpoint_id > 0;
	case WEIR__ENVELOPE__BODY_REGISTERED:
		return is_text(e->registered->error);
	case WEIR__ENVELOPE__BODY_COORDINATOR_HEARTBEAT:
		return true;
	case WEIR__ENVELOPE__BODY_SUBMIT_TASKS:
		return is_submit(e->submit_tasks);
	case WEIR__ENVELOPE__BODY_CANCEL_TASKS:
		return are_ids(e->cancel_tasks->attempts, e->cancel_tasks->n_attempts);
	case WEIR__ENVELOPE__BODY_TRIGGER_CHECKPOINT:
		return is_trigger(e->trigger_checkpoint);
	case WEIR__ENVELOPE__BODY_LOCATE_SAVEPOINT:
		return is_locate(e->locate_savepoint);
	case WEIR__ENVELOPE__BODY_CONFIRM_CHECKPOINT:
		return e->confirm_checkpoint->checkpoint_id > 0 &&
				are_ids(e->confirm_checkpoint->attempts,
						e->confirm_checkpoint->n_attempts);
	case WEIR__ENVELOPE__BODY_ABORT_CHECKPOINT:
		return e->abort_checkpoint->checkpoint_id > 0 &&
				are_ids(e->abort_checkpoint->attempts,
						e->abort_checkpoint->n_attempts);
	case WEIR__ENVELOPE__BODY_OPERATOR_EVENT:
		return is_event(e->operator_event);
	default:
		return false;
	}
}

static Weir__Envelope *decode(struct arena *a, const uint8_t *body, size_t bytes)
{
	ProtobufCAllocator pieces = {arena_alloc, arena_keep, a};
	struct held *held = arena_take(a, sizeof(*held));
	Weir__Envelope *e = held == NULL ? NULL : weir__envelope__unpack(&pieces, bytes, body);

	if (e == NULL || !is_sound(e))
		return NULL;
	CHECK((void *)e == (void *)(held + 1)); /* the first piece the decoder takes */
	held->arena = *a;
	return e;
}

int message_unpack(const uint8_t *frame, size_t frame_bytes, Weir__Envelope **envelope)
{
	struct arena a;
	size_t bytes;

	if (frame_bytes < MESSAGE_HEAD_BYTES || message_frame_bytes(frame, &bytes) != 0 ||
			bytes != frame_bytes)
		return -EBADMSG;
	const uint8_t *body = frame + MESSAGE_HEAD_BYTES;
	if (crc32c(0, body, bytes - MESSAGE_HEAD_BYTES) != get_u32(frame + 4))
		return -EBADMSG;

	arena_open(&a, 2 * bytes + FIRST_BLOCK_BYTES, MESSAGE_MEMORY_MAX);
	*envelope = decode(&a, body, bytes - MESSAGE_HEAD_BYTES);
	if (*envelope == NULL) {
		arena_close(&a);
		return -EBADMSG;
	}
	return 0;
}

void message_free(Weir__Envelope *envelope)
{
	if (envelope == NULL)
		return;

	struct arena a = ((struct held *)(void *)envelope - 1)->arena;

	arena_close(&a);
}

const char *message_name(const Weir__Envelope *envelope)
{
	const ProtobufCFieldDescriptor *field = protobuf_c_message_descriptor_get_field(
			&weir__envelope__descriptor, (unsigned int)envelope->body_case);

	return field == NULL ? "nothing" : field->name;
}

struct id128 message_id(const ProtobufCBinaryData *bytes)
{
	struct id128 id;

	CHECK(is_id(bytes));
	memcpy(id.bytes, bytes->data, sizeof(id.bytes));
	return id;
}

ProtobufCBinaryData message_id_bytes(const struct id128 *id)
{
	return (ProtobufCBinaryData){sizeof(id->bytes), (uint8_t *)(uintptr_t)id->bytes};
}
