/*
 * barrier: the cut, checked exhaustively (DESIGN "The cut"; flink-semantics 16, 17.3; spin).
 *
 * Two producers, one consumer with a channel from each, which has a data lane and a control lane.  A
 * ring is read data first, then control.  With WIRE each lane has delays of its own, and a message
 * may be lost and sent again, also when only its acknowledgement was lost.  CHECKPOINTS checkpoints
 * are triggered at any moment, younger ones also while older ones are under way; each is aligned,
 * unaligned or timeoutable, the timers of sender and receiver fire at any moment, and a marker may
 * cancel it at any moment, before or after the barrier.  A producer may end before it was triggered.
 *
 * Checked at every completion, for each channel: processed, persisted by the receiver and persisted
 * by the sender together are exactly [0, cut), and nothing is there twice.  Checked at the end:
 * everything was processed, no channel is blocked, all credit is back, and each checkpoint that
 * anybody heard of has completed or was aborted.  An end that is not reached is a deadlock, which
 * spin reports: a channel blocked for ever.
 *
 * tests/model/run checks it exhaustively, but for hash compaction (64 bits a state: the chance that
 * two of some million states are taken for one is below one in a million); its --large says which
 * larger bounds there are and how long they take.
 *
 * What stands where: the producer is output_gate and output_queue ("leaves": output_queue_push), the
 * consumer input_gate, input_channel and barrier_handler, its disk the channel state writer.
 */

#ifndef BUFFERS
#define BUFFERS 2     /* made by the first producer; the second makes one less */
#endif
#define BUFFERS_OF(i) (BUFFERS - (i))
#ifndef CHECKPOINTS
#define CHECKPOINTS 1
#endif
#ifndef CREDIT
#define CREDIT 1      /* buffers that have left and were not given back */
#endif
#define QUEUE 2       /* buffers that wait at the sender */
#define EVENTS (2 * CHECKPOINTS + 2)

#define BIT(n) (1 << (n))
/* The numbers [a, b). */
#define RANGE(a, b) ((BIT(b) - 1) & ~(BIT(a) - 1))

mtype = { BARRIER, CANCEL, END, ALIGNED, UNALIGNED, TIMEOUTABLE, NONE, PENDING, COMPLETED, ABORTED }

typedef Event {
	mtype kind;
	mtype alignment;
	byte id;
	byte cut;
	byte boundary;
	bool is_ahead; /* the handler has had it before its turn */
}

typedef Channel {
	/* The sender. */
	byte next;         /* of the next buffer made */
	byte pushed;       /* buffers below it have left */
	byte credited;     /* given back */
	byte made;         /* events */
	byte left;         /* events that have left */
	Event sent[EVENTS];
	byte named[BUFFERS];    /* the event that a buffer names; 0: none */
	byte kept[CHECKPOINTS]; /* bits: persisted by the sender */
	bool has_cut[CHECKPOINTS];
	byte cut[CHECKPOINTS];
	bool is_done;      /* the producer has made its last event */
	/* The receiver. */
	byte received;     /* buffers, in order, once each */
	byte heard;        /* events, in order, once each */
	byte arrived;      /* buffers whose announcements are in */
	byte processed;
	byte turn;         /* events that have had their turn in line */
	bool is_blocked, is_closed;
	bool has_barrier;  /* of the pending checkpoint */
	byte until;        /* its boundary */
	byte from;         /* processed at the snapshot */
	byte persisted;    /* bits, for the pending checkpoint */
	byte writing;      /* bits: written not yet */
}

Channel c[2];

/* The handler. */
byte current;             /* newest id known, 0: none */
bool is_pending;
bool is_unaligned;        /* the snapshot is made, its input is being collected */
bool is_timeoutable;      /* some barrier of it was announced as one */
mtype outcome[CHECKPOINTS];
mtype alignment_of[CHECKPOINTS];

chan data[2] = [CREDIT] of { byte };          /* number of the buffer */
chan control[2] = [EVENTS] of { byte };       /* number of the event */

/* ---- the sender ---- */

/* No buffer at the boundary of an event, or above, leaves before the event. */
#define MAY_LEAVE(i) \
	(c[i].left == c[i].made || c[i].pushed < c[i].sent[c[i].left].boundary)
/* SP-13: a timeoutable barrier waits for the data before it. */
#define IS_HELD(i) \
	(c[i].left < c[i].made && c[i].sent[c[i].left].kind == BARRIER && \
	 c[i].sent[c[i].left].alignment == TIMEOUTABLE && c[i].pushed < c[i].sent[c[i].left].cut)

/* A buffer names the newest event behind whose boundary it lies, of those that left before it.
 * NAMED_WHEN_MADE is what does not do on a wire: a buffer that an unaligned barrier overtook does not
 * name it, so it may come first, and a receiver started by its other channel persists it too. */
#ifdef NAMED_WHEN_MADE
#define NAME_MADE(i) c[i].named[c[i].next] = c[i].made
#define NAME_LEFT(i)
#else
#define NAME_MADE(i)
#define NAME_LEFT(i) name_left(i)
#endif

/* The boundary of an event that has had its turn is 0 here: it is in, whoever names it. */
inline name_left(i) {
	c[i].named[c[i].pushed] = c[i].left;
	do
	:: c[i].named[c[i].pushed] > 0 &&
			c[i].sent[c[i].named[c[i].pushed] - 1].boundary > c[i].pushed ->
		c[i].named[c[i].pushed]--
	:: else -> break
	od;
	skip
}

inline make_event(i, what, how, number) {
	c[i].sent[c[i].made].kind = what;
	c[i].sent[c[i].made].alignment = how;
	c[i].sent[c[i].made].id = number;
	c[i].sent[c[i].made].cut = c[i].next;
	c[i].sent[c[i].made].boundary = c[i].next;
	c[i].made++
}

/* Whatever may leave does so at once; how long it takes is the lane's business. */
inline let_leave(i) {
	do
	:: c[i].left < c[i].made && !IS_HELD(i) ->
		control[i]!c[i].left;
		c[i].left++
	:: else -> break
	od;
	skip
}

/* A timeoutable barrier that a younger unaligned one would wait for goes ahead as an aligned one. */
inline make_barrier(i, number) {
	if
	:: alignment_of[number - 1] == UNALIGNED ->
		if
		:: IS_HELD(i) -> c[i].sent[c[i].left].alignment = ALIGNED
		:: else
		fi;
		make_event(i, BARRIER, UNALIGNED, number);
		c[i].sent[c[i].made - 1].boundary = c[i].pushed;
		c[i].kept[number - 1] = RANGE(c[i].pushed, c[i].next)
	:: else ->
		make_event(i, BARRIER, alignment_of[number - 1], number)
	fi;
	c[i].has_cut[number - 1] = true;
	c[i].cut[number - 1] = c[i].next
}

/* SP-15. */
inline time_out_sender(i) {
	c[i].sent[c[i].left].alignment = UNALIGNED;
	c[i].sent[c[i].left].boundary = c[i].pushed;
	c[i].kept[c[i].sent[c[i].left].id - 1] = RANGE(c[i].pushed, c[i].sent[c[i].left].cut)
}

proctype producer(byte i)
{
	byte next_id = 1; /* of the next checkpoint it will hear of */
	byte cancelled = 0;

	do
	:: atomic { c[i].next < BUFFERS_OF(i) && c[i].next - c[i].pushed < QUEUE && !c[i].is_done ->
		NAME_MADE(i);
		c[i].next++ }
	:: d_step { c[i].pushed < c[i].next && c[i].pushed - c[i].credited < CREDIT &&
			MAY_LEAVE(i) && nfull(data[i]) ->
		NAME_LEFT(i);
		data[i]!c[i].pushed;
		c[i].pushed++;
		let_leave(i) }
	:: d_step { !c[i].is_done && next_id <= CHECKPOINTS ->
		make_barrier(i, next_id);
		let_leave(i);
		next_id++ }
	:: d_step { IS_HELD(i) -> time_out_sender(i); let_leave(i) }
	/* Cancelled before it was triggered here ... */
	:: d_step { !c[i].is_done && next_id <= CHECKPOINTS ->
		make_event(i, CANCEL, NONE, next_id);
		let_leave(i);
		cancelled = next_id;
		next_id++ }
	/* ... or afterwards. */
	:: d_step { !c[i].is_done && next_id > 1 && cancelled < next_id - 1 ->
		make_event(i, CANCEL, NONE, next_id - 1);
		let_leave(i);
		cancelled = next_id - 1 }
	:: d_step { c[i].next == BUFFERS_OF(i) && !c[i].is_done ->
		make_event(i, END, NONE, 0);
		let_leave(i);
		c[i].is_done = true }
	:: c[i].is_done && c[i].left == c[i].made && c[i].pushed == c[i].next -> break
	od
}

/* ---- the receiver ---- */

inline persist_arrived(i, number) {
	if
	:: is_pending && is_unaligned && (!c[i].has_barrier || number < c[i].until) ->
		assert((c[i].persisted & BIT(number)) == 0);
		c[i].persisted = c[i].persisted | BIT(number);
		c[i].writing = c[i].writing | BIT(number)
	:: else
	fi
}

/* A buffer counts as arrived when the announcements its header names are in. */
inline settle(i) {
	do
	:: c[i].arrived < c[i].received && c[i].named[c[i].arrived] <= c[i].heard ->
		persist_arrived(i, c[i].arrived);
		c[i].arrived++
	:: else -> break
	od;
	skip
}

inline give_credit(i) {
	do
	:: c[i].credited < c[i].processed && (c[i].writing & BIT(c[i].credited)) == 0 ->
		c[i].credited++
	:: else -> break
	od;
	skip
}

inline end_checkpoint(how) {
	outcome[current - 1] = how;
	is_pending = false;
	is_unaligned = false;
	is_timeoutable = false;
	c[0].is_blocked = false;
	c[1].is_blocked = false;
	c[0].has_barrier = false;
	c[1].has_barrier = false;
	c[0].persisted = 0;
	c[1].persisted = 0;
	c[0].from = 0;
	c[1].from = 0;
	c[0].until = 0;
	c[1].until = 0
}

/* The property. */
inline check_channel(i) {
	if
	:: c[i].has_cut[current - 1] ->
		assert(c[i].from <= c[i].cut[current - 1]);
		assert((c[i].persisted & c[i].kept[current - 1]) == 0);
		assert((c[i].persisted | c[i].kept[current - 1]) ==
				RANGE(c[i].from, c[i].cut[current - 1]))
	:: else -> /* it ended before: all of it belongs to the checkpoint */
		assert(c[i].is_done && c[i].persisted == RANGE(c[i].from, BUFFERS_OF(i)))
	fi
}

#define IS_COLLECTED(i) (c[i].is_closed || (c[i].has_barrier && c[i].arrived >= c[i].until))

/* After each step of the consumer.  Its scratch must not tell states apart. */
inline finish_step() {
	finish_if_complete();
	n = 0;
	e = 0;
	number = 0;
	event = 0
}

inline finish_if_complete() {
	if
	:: is_pending && is_unaligned && IS_COLLECTED(0) && IS_COLLECTED(1) ->
		check_channel(0);
		check_channel(1);
		end_checkpoint(COMPLETED)
	:: is_pending && !is_unaligned &&
			(c[0].is_closed || c[0].is_blocked) && (c[1].is_closed || c[1].is_blocked) ->
		c[0].from = c[0].processed;
		c[1].from = c[1].processed;
		check_channel(0);
		check_channel(1);
		end_checkpoint(COMPLETED)
	:: else
	fi
}

/* What one channel holds before its barrier. */
inline persist_held(i) {
	number = c[i].processed;
	do
	:: number < c[i].arrived -> persist_arrived(i, number); number++
	:: else -> break
	od;
	skip
}

/* A barrier of the pending checkpoint that waits in line comes ahead of it (IC-9). */
inline convert(i) {
	event = c[i].turn;
	do
	:: event < c[i].heard && !c[i].has_barrier ->
		if
		:: c[i].sent[event].kind == BARRIER && c[i].sent[event].id == current ->
			c[i].sent[event].is_ahead = true;
			c[i].has_barrier = true;
			c[i].until = c[i].sent[event].boundary
		:: else
		fi;
		event++
	:: else -> break
	od;
	skip
}

inline start_unaligned() {
	convert(0);
	convert(1);
	is_unaligned = true;
	c[0].is_blocked = false;
	c[1].is_blocked = false;
	c[0].from = c[0].processed;
	c[1].from = c[1].processed;
	persist_held(0);
	persist_held(1)
}

/* A newer one ends the older one (BH-3); an older one is stale (BH-1). */
inline take_up(number_of_it) {
	if
	:: number_of_it > current ->
		if
		:: is_pending -> end_checkpoint(ABORTED)
		:: else
		fi;
		current = number_of_it;
		is_pending = true;
		outcome[current - 1] = PENDING
	:: else
	fi
}

inline on_event_heard(i) {
	if
	:: c[i].sent[e].kind == BARRIER && c[i].sent[e].alignment == UNALIGNED ->
		take_up(c[i].sent[e].id);
		c[i].sent[e].is_ahead = true;
		if
		:: is_pending && c[i].sent[e].id == current ->
			c[i].has_barrier = true;
			c[i].until = c[i].sent[e].boundary;
			if
			:: !is_unaligned -> start_unaligned()
			:: else
			fi
		:: else
		fi
	:: c[i].sent[e].kind == BARRIER && c[i].sent[e].alignment == TIMEOUTABLE ->
		take_up(c[i].sent[e].id);
		if
		:: is_pending && c[i].sent[e].id == current -> is_timeoutable = true
		:: else
		fi;
		if
		:: is_pending && is_unaligned && c[i].sent[e].id == current -> convert(i)
		:: else
		fi
	:: c[i].sent[e].kind == BARRIER && c[i].sent[e].alignment == ALIGNED &&
			is_pending && is_unaligned && c[i].sent[e].id == current -> convert(i)
	:: else
	fi
}

/* What nobody looks at any more must not tell states apart. */
inline forget(i) {
	c[i].sent[e].kind = 0;
	c[i].sent[e].alignment = 0;
	c[i].sent[e].id = 0;
	c[i].sent[e].cut = 0;
	c[i].sent[e].boundary = 0;
	c[i].sent[e].is_ahead = false
}

inline on_turn(i) {
	e = c[i].turn;
	if
	:: c[i].sent[e].kind == BARRIER && !c[i].sent[e].is_ahead ->
		take_up(c[i].sent[e].id);
		if
		:: is_pending && c[i].sent[e].id == current ->
			c[i].has_barrier = true;
			c[i].until = c[i].processed;
			c[i].is_blocked = !is_unaligned
		:: else
		fi
	:: c[i].sent[e].kind == CANCEL ->
		if
		:: c[i].sent[e].id > current ->
			if
			:: is_pending -> end_checkpoint(ABORTED)
			:: else
			fi;
			current = c[i].sent[e].id;
			outcome[current - 1] = ABORTED
		:: c[i].sent[e].id == current && is_pending -> end_checkpoint(ABORTED)
		:: else
		fi
	:: c[i].sent[e].kind == END -> c[i].is_closed = true
	:: else
	fi;
	forget(i);
	c[i].turn++
}

/* A ring: data first, then control, all that is there.  Nothing in between. */
inline poll(i) {
	do
	:: nempty(data[i]) -> data[i]?n; c[i].received++
	:: empty(data[i]) -> break
	od;
	do
	:: nempty(control[i]) -> control[i]?e; c[i].heard++; on_event_heard(i)
	:: empty(control[i]) -> break
	od;
	settle(i)
}

/* A wire: a message stays at the head until its acknowledgement is back, so it may come twice. */
#define TAKE(lane, n) \
	if \
	:: lane?n \
	:: lane?<n> \
	fi

#define HAS_TURN(i) (c[i].turn < c[i].heard && c[i].sent[c[i].turn].cut == c[i].processed)

proctype consumer()
{
	byte n, e, number, event;

	do
#ifdef WIRE
	:: atomic { nempty(data[0]) -> TAKE(data[0], n);
		d_step { if :: n == c[0].received -> c[0].received++; settle(0)
			 :: else fi; finish_step() } }
	:: atomic { nempty(data[1]) -> TAKE(data[1], n);
		d_step { if :: n == c[1].received -> c[1].received++; settle(1)
			 :: else fi; finish_step() } }
	:: atomic { nempty(control[0]) -> TAKE(control[0], e);
		d_step { if :: e == c[0].heard ->
				c[0].heard++; on_event_heard(0); settle(0)
			 :: else fi; finish_step() } }
	:: atomic { nempty(control[1]) -> TAKE(control[1], e);
		d_step { if :: e == c[1].heard ->
				c[1].heard++; on_event_heard(1); settle(1)
			 :: else fi; finish_step() } }
#else
	:: d_step { nempty(data[0]) || nempty(control[0]) -> poll(0); finish_step() }
	:: d_step { nempty(data[1]) || nempty(control[1]) -> poll(1); finish_step() }
#endif
	:: d_step { !c[0].is_blocked && !HAS_TURN(0) && c[0].processed < c[0].arrived ->
		c[0].processed++; give_credit(0) }
	:: d_step { !c[1].is_blocked && !HAS_TURN(1) && c[1].processed < c[1].arrived ->
		c[1].processed++; give_credit(1) }
	:: d_step { !c[0].is_blocked && HAS_TURN(0) -> on_turn(0); finish_step() }
	:: d_step { !c[1].is_blocked && HAS_TURN(1) -> on_turn(1); finish_step() }
	/* The timer, any time after the announcement. */
	:: d_step { is_pending && is_timeoutable && !is_unaligned ->
		start_unaligned(); finish_step() }
	/* The disk. */
	:: d_step { c[0].writing != 0 -> c[0].writing = 0; give_credit(0) }
	:: d_step { c[1].writing != 0 -> c[1].writing = 0; give_credit(1) }
	:: c[0].is_closed && c[1].is_closed && c[0].writing == 0 && c[1].writing == 0 -> break
	od;

	assert(c[0].processed == BUFFERS_OF(0) && c[1].processed == BUFFERS_OF(1));
	assert(c[0].credited == BUFFERS_OF(0) && c[1].credited == BUFFERS_OF(1));
	assert(!is_pending);
	assert(!c[0].is_blocked && !c[1].is_blocked);
	for (n : 0 .. CHECKPOINTS - 1) {
		assert(outcome[n] != PENDING);
		if
		:: c[0].has_cut[n] || c[1].has_cut[n] ->
			assert(outcome[n] == COMPLETED || outcome[n] == ABORTED || n + 1 < current)
		:: else
		fi
	}
}

init {
	byte n;

	atomic {
		for (n : 0 .. CHECKPOINTS - 1) {
#ifdef ALIGNMENT
			alignment_of[n] = ALIGNMENT;
#else
			if
			:: alignment_of[n] = ALIGNED
			:: alignment_of[n] = UNALIGNED
			:: alignment_of[n] = TIMEOUTABLE
			fi;
#endif
			outcome[n] = NONE
		}
		run producer(0);
		run producer(1);
		run consumer()
	}
}
