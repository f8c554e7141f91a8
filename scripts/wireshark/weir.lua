-- weir.lua: shows the frames of weir's links in Wireshark and tshark.
--
--     tshark -X lua_script:scripts/wireshark/weir.lua -r link.pcap -V
--     wireshark -X lua_script:scripts/wireshark/weir.lua link.pcap
--
-- The layout is that of dataplane/channel/net_frame.h.  A frame is known by its first bytes, on any
-- UDP port.

local weir = Proto("weir", "weir link")

local kinds = { [1] = "DATA", [2] = "EVENT", [3] = "CREDIT", [4] = "ACK", [5] = "PING", [6] = "BYE" }
local events = { [1] = "barrier", [2] = "cancel", [3] = "end of data", [4] = "end of partition" }
local snapshots = {
	[0] = "checkpoint", [1] = "full checkpoint", [2] = "savepoint",
	[3] = "savepoint, suspend", [4] = "savepoint, terminate",
}
local alignments = {
	[0] = "at least once", [1] = "aligned", [2] = "unaligned", [3] = "forced aligned",
}

local f = {
	version = ProtoField.uint8("weir.version", "Version"),
	kind = ProtoField.uint8("weir.kind", "Kind", base.DEC, kinds, 0x7f),
	bare = ProtoField.bool("weir.bare", "Not summed", 8, nil, 0x80),
	checksum = ProtoField.uint32("weir.checksum", "CRC32C", base.HEX),
	token = ProtoField.uint64("weir.token", "Token of the attempts", base.HEX),
	number = ProtoField.uint32("weir.number", "Number of this transmission"),
	age = ProtoField.uint16("weir.age", "Frames the sender waits to hear of"),
	channel = ProtoField.uint16("weir.channel", "Channel"),
	pieces = ProtoField.uint16("weir.data.pieces", "Pieces"),
	piece_channel = ProtoField.uint16("weir.data.channel", "Channel"),
	sequence = ProtoField.uint32("weir.data.sequence", "Buffer"),
	offset = ProtoField.uint16("weir.data.offset", "Offset"),
	size = ProtoField.uint16("weir.data.buffer_size", "Size of the buffer"),
	after = ProtoField.uint32("weir.data.announcement", "Waits for announcement"),
	first = ProtoField.uint16("weir.data.first_record", "First record"),
	bytes = ProtoField.uint16("weir.data.size", "Bytes in here"),
	data_watermark = ProtoField.int64("weir.data.watermark", "Watermark"),
	payload = ProtoField.bytes("weir.data.payload", "Payload"),
	event = ProtoField.uint8("weir.event.kind", "Event", base.DEC, events),
	checkpoint = ProtoField.int64("weir.event.checkpoint", "Checkpoint"),
	timestamp = ProtoField.int64("weir.event.timestamp", "Triggered at (ms)"),
	timeout = ProtoField.int64("weir.event.timeout", "Aligned timeout (ms)"),
	cut = ProtoField.uint64("weir.event.cut", "Cut"),
	boundary = ProtoField.uint64("weir.event.boundary", "Boundary"),
	watermark = ProtoField.int64("weir.event.watermark", "Watermark"),
	announcement = ProtoField.uint32("weir.event.announcement", "Announcement"),
	snapshot = ProtoField.uint8("weir.event.snapshot", "Snapshot", base.DEC, snapshots),
	alignment = ProtoField.uint8("weir.event.alignment", "Alignment", base.DEC, alignments),
	stop = ProtoField.uint8("weir.event.stop_mode", "Stop mode"),
	credits = ProtoField.uint16("weir.credit.count", "Channels"),
	credit_channel = ProtoField.uint16("weir.credit.channel", "Channel"),
	credit_done = ProtoField.uint16("weir.credit.all_processed", "All processed"),
	credit_events = ProtoField.uint32("weir.credit.event_limit", "Last announcement with room"),
	credit_processed = ProtoField.uint64("weir.credit.processed", "Buffers processed"),
	base = ProtoField.uint32("weir.ack.base", "Base"),
	words = ProtoField.uint16("weir.ack.words", "Words"),
	word = ProtoField.uint64("weir.ack.word", "Arrived", base.HEX),
}
local list = {}
for _, field in pairs(f) do list[#list + 1] = field end
weir.fields = list

-- A piece of a buffer at that offset; where the next one is, or nil.
local function piece(b, tree, at)
	local bytes = b(at + 14, 2):le_uint()
	if at + 28 + bytes > b:len() then return nil end
	local one = tree:add(weir, b(at, 28 + bytes), "Piece")
	one:add_le(f.piece_channel, b(at + 24, 2))
	one:add_le(f.sequence, b(at, 4))
	one:add_le(f.offset, b(at + 4, 2))
	one:add_le(f.size, b(at + 6, 2))
	one:add_le(f.after, b(at + 8, 4))
	one:add_le(f.first, b(at + 12, 2))
	one:add_le(f.bytes, b(at + 14, 2))
	one:add_le(f.data_watermark, b(at + 16, 8))
	if bytes > 0 then one:add(f.payload, b(at + 28, bytes)) end
	return at + 28 + bytes
end

local function data(b, tree)
	local count, at = b(22, 2):le_uint(), 26
	tree:add_le(f.pieces, b(22, 2))
	for _ = 1, count do
		if at == nil or at + 28 > b:len() then break end
		at = piece(b, tree, at)
	end
	local more = count > 1 and string.format(" and %d more", count - 1) or ""
	return string.format("channel %d buffer %d at %d of %d%s", b(50, 2):le_uint(),
		b(26, 4):le_uint(), b(30, 2):le_uint(), b(32, 2):le_uint(), more)
end

local function event(b, tree)
	tree:add_le(f.event, b(70, 1))
	tree:add_le(f.checkpoint, b(24, 8))
	tree:add_le(f.timestamp, b(32, 8))
	tree:add_le(f.timeout, b(40, 8))
	tree:add_le(f.cut, b(48, 8))
	tree:add_le(f.boundary, b(72, 8))
	tree:add_le(f.watermark, b(56, 8))
	tree:add_le(f.announcement, b(64, 4))
	tree:add_le(f.snapshot, b(68, 1))
	tree:add_le(f.alignment, b(69, 1))
	tree:add_le(f.stop, b(71, 1))
	return string.format("channel %d %s %s at %s", b(22, 2):le_uint(),
		events[b(70, 1):uint()] or "?", tostring(b(24, 8):le_int64()),
		tostring(b(48, 8):le_uint64()))
end

local function credit(b, tree)
	local count = b(24, 2):le_uint()
	tree:add_le(f.credits, b(24, 2))
	for i = 0, count - 1 do
		local at = 28 + i * 16
		if at + 16 > b:len() then break end
		local row = tree:add(weir, b(at, 16), "Credit")
		row:add_le(f.credit_channel, b(at, 2))
		row:add_le(f.credit_done, b(at + 2, 2))
		row:add_le(f.credit_events, b(at + 4, 4))
		row:add_le(f.credit_processed, b(at + 8, 8))
	end
	return string.format("%d channels", count)
end

local function ack(b, tree)
	local count = b(28, 2):le_uint()
	tree:add_le(f.base, b(24, 4))
	tree:add_le(f.words, b(28, 2))
	for i = 0, count - 1 do
		if 40 + i * 8 > b:len() then break end
		tree:add_le(f.word, b(32 + i * 8, 8))
	end
	return string.format("base %d", b(24, 4):le_uint())
end

local parts = { [1] = { data, 54 }, [2] = { event, 80 }, [3] = { credit, 28 }, [4] = { ack, 32 } }

local function is_ours(b)
	return b:len() >= 24 and b(0, 2):le_uint() == 0x7277 and b(2, 1):uint() == 3
end

function weir.dissector(b, info, root)
	if not is_ours(b) then return 0 end
	local kind = b(3, 1):uint() % 128
	local tree = root:add(weir, b())
	local text = ""

	info.cols.protocol = "weir"
	tree:add_le(f.version, b(2, 1))
	tree:add_le(f.kind, b(3, 1))
	tree:add_le(f.bare, b(3, 1))
	tree:add_le(f.checksum, b(4, 4))
	tree:add_le(f.token, b(8, 8))
	tree:add_le(f.number, b(16, 4))
	tree:add_le(f.age, b(20, 2))
	if kind ~= 1 then tree:add_le(f.channel, b(22, 2)) end
	local part = parts[kind]
	if part ~= nil and b:len() >= part[2] then text = part[1](b, tree) end
	info.cols.info = string.format("%s %d %s", kinds[kind] or "?", b(16, 4):le_uint(), text)
	return b:len()
end

weir:register_heuristic("udp", function(b, info, root)
	if not is_ours(b) then return false end
	weir.dissector(b, info, root)
	return true
end)
