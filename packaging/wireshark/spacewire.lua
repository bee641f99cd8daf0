-- SpaceWire packets in Wireshark: over the bridges' streams SSDTP2 and GRESB, and as captured on a simulated network.
--
-- Copy this file to the personal Lua plugin folder (Help, About, Folders), or run `tshark -X lua_script:spacewire.lua`.
--
-- A capture file of SpaceWire itself has the link type USER0 (147). Each record begins with four bytes:
--
--   byte 0  version, 0
--   byte 1  kind: 0 packet, 1 time-code, 2 characters
--   byte 2  end: 0 EOP, 1 EEP, 2 none
--   byte 3  bit 0: the direction, 0 from the first end of the link, 1 from the second
--
-- and the bytes of the packet follow, or the byte of the time-code. A packet has the time at which its end arrived. Characters have that of
-- the first bit, and say what was sent, or what happened to the end that would send:
--
--   byte 0     0 NULLs, 1 data, 2 FCT, 3 EOP, 4 EEP, 5 time-code, 6 fault, 7 state, 8 link error
--   bytes 1-4  how long a bit lasts, in ps, big-endian; 0 where it is not told
--   then       the number of NULLs (8 bytes, big-endian), the data, the time-code, or the words

local LENGTH_MAX = 64 * 1024 * 1024
local ENDS = { [0] = "EOP", [1] = "EEP", [2] = "none" }

-- SpaceWire packets -----------------------------------------------------------------------------------------------------------

local spw = Proto("spw", "SpaceWire packet")
local PROTOCOLS = {
    [0x00] = "extended", [0x01] = "RMAP", [0x02] = "CCSDS packet transfer", [0xee] = "GOES-R reliable data delivery", [0xef] = "STUP",
}
spw.fields.path = ProtoField.bytes("spw.path", "Path address", base.SPACE)
spw.fields.logical = ProtoField.uint8("spw.logical_address", "Logical address", base.HEX)
spw.fields.protocol = ProtoField.uint8("spw.protocol", "Protocol", base.HEX, PROTOCOLS)
spw.fields.end_marker = ProtoField.uint8("spw.end", "End of packet", base.DEC, ENDS)
spw.fields.time_code = ProtoField.uint8("spw.time_code", "Time-code", base.HEX)
spw.fields.time = ProtoField.uint8("spw.time", "Time", base.DEC, nil, 0x3f)
spw.fields.direction = ProtoField.uint8("spw.direction", "From", base.DEC, { [0] = "first end", [1] = "second end" }, 0x01)
local CHARACTERS = {
    [0] = "NULL", [1] = "data", [2] = "FCT", [3] = "EOP", [4] = "EEP", [5] = "time-code", [6] = "fault", [7] = "state", [8] = "link error",
}
spw.fields.characters = ProtoField.uint8("spw.characters", "Characters", base.DEC, CHARACTERS)
spw.fields.bit = ProtoField.uint32("spw.bit", "Bit, in ps", base.DEC)
spw.fields.nulls = ProtoField.uint64("spw.nulls", "NULLs", base.DEC)
spw.fields.words = ProtoField.string("spw.words", "What happened")
spw.fields.data = ProtoField.bytes("spw.data", "Data", base.SPACE)
spw.experts.eep = ProtoExpert.new("spw.eep", "The packet ended with an EEP: it is not whole", expert.group.PROTOCOL, expert.severity.WARN)
spw.experts.empty = ProtoExpert.new("spw.empty", "The packet has no byte", expert.group.PROTOCOL, expert.severity.WARN)
spw.experts.version = ProtoExpert.new("spw.version", "The version of this record is not known", expert.group.MALFORMED, expert.severity.ERROR)

-- RMAP (ECSS-E-ST-50-52C) -------------------------------------------------------------------------------------------------------

local rmap = Proto("rmap", "Remote memory access protocol")
local STATUS = {
    [0] = "success", [1] = "general error", [2] = "unused packet type or command code", [3] = "invalid key", [4] = "invalid data CRC",
    [5] = "early EOP", [6] = "too much data", [7] = "EEP", [9] = "verify buffer overrun", [10] = "not implemented or not authorised",
    [11] = "RMW data length error", [12] = "invalid target logical address",
}
local f = rmap.fields
f.instruction = ProtoField.uint8("rmap.instruction", "Instruction", base.HEX)
f.command = ProtoField.bool("rmap.command", "Command", 8, nil, 0x40)
f.write = ProtoField.bool("rmap.write", "Write", 8, nil, 0x20)
f.verify = ProtoField.bool("rmap.verify", "Verify before write", 8, nil, 0x10)
f.reply = ProtoField.bool("rmap.reply", "Reply", 8, nil, 0x08)
f.increment = ProtoField.bool("rmap.increment", "Increment address", 8, nil, 0x04)
f.units = ProtoField.uint8("rmap.reply_address_length", "Reply address length, in units of 4 bytes", base.DEC, nil, 0x03)
f.key = ProtoField.uint8("rmap.key", "Key", base.HEX)
f.reply_address = ProtoField.bytes("rmap.reply_address", "Reply address", base.SPACE)
f.target = ProtoField.uint8("rmap.target", "Target logical address", base.HEX)
f.initiator = ProtoField.uint8("rmap.initiator", "Initiator logical address", base.HEX)
f.transaction = ProtoField.uint16("rmap.transaction", "Transaction identifier", base.DEC)
f.address = ProtoField.uint64("rmap.address", "Address (extended address in bits 32 to 39)", base.HEX)
f.length = ProtoField.uint24("rmap.length", "Data length", base.DEC)
f.status = ProtoField.uint8("rmap.status", "Status", base.DEC, STATUS)
f.header_crc = ProtoField.uint8("rmap.header_crc", "Header CRC", base.HEX)
f.header_crc_state = ProtoField.string("rmap.header_crc.state", "Header CRC is")
f.data = ProtoField.bytes("rmap.data", "Data", base.SPACE)
f.data_crc = ProtoField.uint8("rmap.data_crc", "Data CRC", base.HEX)
f.data_crc_state = ProtoField.string("rmap.data_crc.state", "Data CRC is")
f.request_in = ProtoField.framenum("rmap.command_in", "Command in frame", base.NONE, frametype.REQUEST)
f.reply_in = ProtoField.framenum("rmap.reply_in", "Reply in frame", base.NONE, frametype.RESPONSE)
f.took = ProtoField.double("rmap.time", "Time since the command (s)")
rmap.experts.crc = ProtoExpert.new("rmap.bad_crc", "Wrong CRC", expert.group.CHECKSUM, expert.severity.ERROR)
rmap.experts.cut = ProtoExpert.new("rmap.cut", "The packet ends too early", expert.group.MALFORMED, expert.severity.ERROR)
rmap.experts.surplus = ProtoExpert.new("rmap.surplus", "The packet has more data than its length says", expert.group.MALFORMED, expert.severity.WARN)
rmap.experts.refused = ProtoExpert.new("rmap.refused", "The target refused the command", expert.group.RESPONSE_CODE, expert.severity.WARN)
rmap.experts.code = ProtoExpert.new("rmap.bad_code", "Reserved packet type or command code", expert.group.PROTOCOL, expert.severity.WARN)

local function crc_table(reflected)
    local crcs = {}
    for byte = 0, 255 do
        local crc = byte
        for _ = 1, 8 do
            if reflected then
                crc = bit.band(crc, 1) == 1 and bit.bxor(bit.rshift(crc, 1), 0xe0) or bit.rshift(crc, 1)
            else
                crc = bit.band(crc, 0x80) ~= 0 and bit.band(bit.bxor(bit.lshift(crc, 1), 0x07), 0xff) or bit.band(bit.lshift(crc, 1), 0xff)
            end
        end
        crcs[byte] = crc
    end
    return crcs
end

-- The published standard, and its draft E.
local CRCS = { { "right", crc_table(true) }, { "right (draft E)", crc_table(false) } }

-- Returns the name of the CRC that makes the whole range zero, its last byte included; nil if neither does.
local function crc_state(range)
    local bytes = range:bytes()
    for _, draft in ipairs(CRCS) do
        local crc = 0
        for at = 0, bytes:len() - 1 do crc = draft[2][bit.bxor(crc, bytes:get_index(at))] end
        if crc == 0 then return draft[1] end
    end
    return nil
end

-- Adds a CRC, the last byte of `range`, and whether it is right.
local function add_crc(tree, field, state_field, range)
    local item = tree:add(field, range(range:len() - 1, 1))
    local state = crc_state(range)
    tree:add(state_field, state or "wrong"):set_generated()
    if not state then item:add_proto_expert_info(rmap.experts.crc) end
end

local VALID = { [2] = "read", [3] = "read incrementing", [7] = "read-modify-write" }
for code = 8, 15 do
    local words = { "write" }
    if bit.band(code, 4) ~= 0 then words[#words + 1] = "verified" end
    if bit.band(code, 2) == 0 then words[#words + 1] = "without reply" end
    if bit.band(code, 1) ~= 0 then words[#words + 1] = "incrementing" end
    VALID[code] = table.concat(words, " ")
end

-- Commands that wait for their replies, and pairs of both; by the ends of the exchange and the transaction identifier.
local waiting, command_of, reply_of = {}, {}, {}
function rmap.init() waiting, command_of, reply_of = {}, {}, {} end

local function match_command(key, pinfo, tree)
    if not pinfo.visited then waiting[key] = { frame = pinfo.number, time = pinfo.abs_ts } end
    local reply = reply_of[pinfo.number .. key]
    if reply then tree:add(f.reply_in, reply):set_generated() end
end

local function match_reply(key, pinfo, tree)
    if not pinfo.visited and waiting[key] then
        command_of[pinfo.number .. key] = waiting[key]
        reply_of[waiting[key].frame .. key] = pinfo.number
        waiting[key] = nil
    end
    local command = command_of[pinfo.number .. key]
    if command then
        tree:add(f.request_in, command.frame):set_generated()
        tree:add(f.took, pinfo.abs_ts - command.time):set_generated()
    end
end

local function add_data(tree, range, length)
    if range:len() == 0 then
        tree:add_proto_expert_info(rmap.experts.cut)
        return
    end
    if range:len() > 1 then tree:add(f.data, range(0, range:len() - 1)) end
    add_crc(tree, f.data_crc, f.data_crc_state, range)
    if range:len() - 1 < length then tree:add_proto_expert_info(rmap.experts.cut) end
    if range:len() - 1 > length then tree:add_proto_expert_info(rmap.experts.surplus) end
end

-- Dissects an RMAP packet behind its path; returns the words for the column of information.
local function dissect_rmap(range, pinfo, root)
    local tree = root:add(rmap, range)
    local length = range:len()
    if length < 3 then
        tree:add_proto_expert_info(rmap.experts.cut)
        return "RMAP, cut"
    end
    local instruction = range(2, 1):uint()
    local is_command = bit.band(instruction, 0x40) ~= 0
    local code = bit.band(bit.rshift(instruction, 2), 0x0f)
    local is_write = bit.band(code, 8) ~= 0
    local field = is_command and bit.band(instruction, 3) * 4 or 0
    local header = is_command and 16 + field or (is_write and 8 or 12)
    tree:add(is_command and f.target or f.initiator, range(0, 1))
    local bits = tree:add(f.instruction, range(2, 1))
    for _, part in ipairs({ f.command, f.write, f.verify, f.reply, f.increment, f.units }) do bits:add(part, range(2, 1)) end
    local words = VALID[code] or "reserved code"
    if not VALID[code] or bit.band(instruction, 0x80) ~= 0 then bits:add_proto_expert_info(rmap.experts.code) end
    if length < header then
        tree:add_proto_expert_info(rmap.experts.cut)
        return "RMAP, cut"
    end
    local initiator, target, transaction
    if is_command then
        tree:add(f.key, range(3, 1))
        if field > 0 then tree:add(f.reply_address, range(4, field)) end
        local at = 4 + field
        tree:add(f.initiator, range(at, 1))
        tree:add(f.transaction, range(at + 1, 2))
        tree:add(f.address, range(at + 3, 5), UInt64(range(at + 4, 4):uint(), range(at + 3, 1):uint()))
        tree:add(f.length, range(at + 8, 3))
        initiator, target, transaction = range(at, 1):uint(), range(0, 1):uint(), range(at + 1, 2):uint()
        words = string.format("RMAP %s, %d bytes at 0x%02x%08x, transaction %d", words, range(at + 8, 3):uint(),
            range(at + 3, 1):uint(), range(at + 4, 4):uint(), transaction)
    else
        local status = tree:add(f.status, range(3, 1))
        if range(3, 1):uint() ~= 0 then status:add_proto_expert_info(rmap.experts.refused) end
        tree:add(f.target, range(4, 1))
        tree:add(f.transaction, range(5, 2))
        if not is_write then tree:add(f.length, range(8, 3)) end
        initiator, target, transaction = range(0, 1):uint(), range(4, 1):uint(), range(5, 2):uint()
        words = string.format("RMAP reply to %s: %s, transaction %d", words, STATUS[range(3, 1):uint()] or "unknown status", transaction)
    end
    add_crc(tree, f.header_crc, f.header_crc_state, range(0, header))
    local carries = is_command and (is_write or code == 7) or not is_command and not is_write
    if carries then
        local rest = length > header and range(header) or range(header - 1, 0)
        local expected = is_command and range(header - 4, 3):uint() or range(8, 3):uint()
        add_data(tree, rest, expected)
    elseif length > header then
        tree:add_proto_expert_info(rmap.experts.surplus)
    end
    local key = string.format("/%d/%d/%d", initiator, target, transaction)
    if is_command and bit.band(code, 2) ~= 0 then match_command(key, pinfo, tree) end
    if not is_command then match_reply(key, pinfo, tree) end
    return words
end

-- CCSDS packet transfer (ECSS-E-ST-50-53C) ------------------------------------------------------------------------------------------

local ptp = Proto("spw_ptp", "CCSDS packet transfer protocol")
ptp.fields.reserved = ProtoField.uint8("spw_ptp.reserved", "Reserved", base.HEX)
ptp.fields.user = ProtoField.uint8("spw_ptp.user", "User application", base.HEX)
ptp.fields.kind = ProtoField.uint16("spw_ptp.type", "Packet type", base.DEC, { [0] = "telemetry", [1] = "telecommand" }, 0x1000)
ptp.fields.apid = ProtoField.uint16("spw_ptp.apid", "Application process identifier", base.DEC, nil, 0x07ff)
ptp.fields.flags = ProtoField.uint16("spw_ptp.sequence_flags", "Sequence flags", base.DEC, nil, 0xc000)
ptp.fields.sequence = ProtoField.uint16("spw_ptp.sequence", "Sequence count", base.DEC, nil, 0x3fff)
ptp.fields.length = ProtoField.uint16("spw_ptp.length", "Data length, less one", base.DEC)
ptp.fields.data = ProtoField.bytes("spw_ptp.data", "Data", base.SPACE)
ptp.experts.length = ProtoExpert.new("spw_ptp.bad_length", "The space packet has another length than its header says", expert.group.MALFORMED,
    expert.severity.ERROR)

local function dissect_ptp(range, _, root)
    local tree = root:add(ptp, range)
    if range:len() < 10 then
        tree:add_proto_expert_info(ptp.experts.length)
        return "CCSDS packet, cut"
    end
    tree:add(ptp.fields.reserved, range(2, 1))
    tree:add(ptp.fields.user, range(3, 1))
    tree:add(ptp.fields.kind, range(4, 2))
    tree:add(ptp.fields.apid, range(4, 2))
    tree:add(ptp.fields.flags, range(6, 2))
    tree:add(ptp.fields.sequence, range(6, 2))
    local length = tree:add(ptp.fields.length, range(8, 2))
    if range:len() - 10 ~= range(8, 2):uint() + 1 then length:add_proto_expert_info(ptp.experts.length) end
    if range:len() > 10 then tree:add(ptp.fields.data, range(10)) end
    return string.format("CCSDS packet of APID %d", bit.band(range(4, 2):uint(), 0x07ff))
end

local DISSECTORS = { [0x01] = dissect_rmap, [0x02] = dissect_ptp }

-- Dissects a SpaceWire packet, which is nil if it has no byte; returns the words for the column of information.
local function dissect_packet(range, end_marker, pinfo, root)
    local tree = range and root:add(spw, range) or root:add(spw)
    tree:add(spw.fields.end_marker, end_marker):set_generated()
    if end_marker == 1 then tree:add_proto_expert_info(spw.experts.eep) end
    if not range then
        tree:add_proto_expert_info(spw.experts.empty)
        return "SpaceWire, empty"
    end
    -- Bytes below 32 are addresses of ports, which routers delete.
    local path = 0
    while path < range:len() and range(path, 1):uint() < 32 do path = path + 1 end
    if path > 0 then tree:add(spw.fields.path, range(0, path)) end
    if path == range:len() then return string.format("SpaceWire, %d bytes", range:len()) end
    tree:add(spw.fields.logical, range(path, 1))
    if range:len() > path + 1 then
        local protocol = range(path + 1, 1):uint()
        tree:add(spw.fields.protocol, range(path + 1, 1))
        local dissect = DISSECTORS[protocol]
        if dissect then return dissect(range(path), pinfo, root) end
        if range:len() > path + 2 then tree:add(spw.fields.data, range(path + 2)) end
    end
    return string.format("SpaceWire, %d bytes", range:len())
end

local function show(pinfo, protocol, all)
    pinfo.cols.protocol = protocol
    pinfo.cols.info = table.concat(all, "; ")
end

-- Captures of a simulated network ---------------------------------------------------------------------------------------------------

-- Dissects characters; returns the words for the column of information.
local function dissect_characters(range, tree)
    local what = range(0, 1):uint()
    local name = CHARACTERS[what] or string.format("characters %d", what)
    tree:add(spw.fields.characters, range(0, 1))
    tree:add(spw.fields.bit, range(1, 4))
    if range:len() == 5 then return name end
    local rest = range(5)
    if what == 0 and rest:len() == 8 then
        tree:add(spw.fields.nulls, rest)
        return string.format("%s NULLs", tostring(rest:uint64()))
    elseif what == 1 then
        tree:add(spw.fields.data, rest)
        return rest:len() == 1 and string.format("data %02x", rest:uint()) or string.format("%d bytes of data", rest:len())
    elseif what == 5 then
        tree:add(spw.fields.time_code, rest(0, 1))
        return string.format("time-code %d", bit.band(rest(0, 1):uint(), 0x3f))
    elseif what >= 6 then
        tree:add(spw.fields.words, rest)
        return string.format("%s: %s", name, rest:string())
    end
    return name
end

function spw.dissector(buffer, pinfo, root)
    if buffer:len() < 4 then return 0 end
    local head = root:add(spw, buffer(0, 4))
    if buffer(0, 1):uint() ~= 0 then
        head:add_proto_expert_info(spw.experts.version)
        return buffer:len()
    end
    head:add(spw.fields.direction, buffer(3, 1))
    if buffer(1, 1):uint() == 1 and buffer:len() > 4 then
        head:add(spw.fields.time_code, buffer(4, 1))
        head:add(spw.fields.time, buffer(4, 1))
        show(pinfo, "SpaceWire", { string.format("time-code %d", bit.band(buffer(4, 1):uint(), 0x3f)) })
    elseif buffer(1, 1):uint() == 2 and buffer:len() >= 9 then
        show(pinfo, "SpaceWire", { dissect_characters(buffer(4), head) })
    else
        local range = buffer:len() > 4 and buffer(4) or nil
        show(pinfo, "SpaceWire", { dissect_packet(range, buffer(2, 1):uint(), pinfo, root) })
    end
    return buffer:len()
end
DissectorTable.get("wtap_encap"):add(wtap.USER0, spw)

-- Streams of frames -----------------------------------------------------------------------------------------------------------------

-- Dissects a stream of frames with a header of `size` bytes. `head` returns the length of the body, or nil if the stream is out of step; `body`
-- dissects a whole frame.
local function dissect_stream(name, size, head, body, buffer, pinfo, root)
    local at, all = 0, {}
    while at < buffer:len() do
        if buffer:len() - at < size then
            pinfo.desegment_offset, pinfo.desegment_len = at, DESEGMENT_ONE_MORE_SEGMENT
            return
        end
        local length = head(buffer(at, size), root)
        if not length then
            show(pinfo, name, { "out of step" })
            return
        end
        if buffer:len() - at < size + length then
            pinfo.desegment_offset, pinfo.desegment_len = at, size + length - (buffer:len() - at)
            return
        end
        all[#all + 1] = body(buffer(at, size + length), pinfo, root)
        at = at + size + length
    end
    show(pinfo, name, all)
end

-- SSDTP2: flag, reserved, 80-bit length, body.
local ssdtp2 = Proto("ssdtp2", "SpaceWire over TCP, SSDTP2")
local FLAGS = {
    [0x00] = "packet with EOP", [0x01] = "packet with EEP", [0x02] = "part of a packet", [0x30] = "send time-code", [0x31] = "time-code received",
    [0x38] = "transmit rate", [0x40] = "read register", [0x41] = "register read", [0x50] = "write register", [0x51] = "register written",
}
ssdtp2.fields.flag = ProtoField.uint8("ssdtp2.flag", "Flag", base.HEX, FLAGS)
ssdtp2.fields.length = ProtoField.bytes("ssdtp2.length", "Length (80 bits)", base.SPACE)
ssdtp2.fields.time_code = ProtoField.uint8("ssdtp2.time_code", "Time-code", base.HEX)
ssdtp2.fields.divider = ProtoField.uint8("ssdtp2.divider", "Divider: 200 MHz / (divider + 1)", base.DEC)
ssdtp2.fields.part = ProtoField.bytes("ssdtp2.part", "Part of a packet", base.SPACE)
ssdtp2.experts.flag = ProtoExpert.new("ssdtp2.bad_flag", "Unknown flag: the stream is out of step", expert.group.MALFORMED, expert.severity.ERROR)
ssdtp2.experts.length = ProtoExpert.new("ssdtp2.bad_length", "Impossible length: the stream is out of step", expert.group.MALFORMED,
    expert.severity.ERROR)

local function ssdtp2_head(header, root)
    if not FLAGS[header(0, 1):uint()] then
        root:add(ssdtp2, header):add_proto_expert_info(ssdtp2.experts.flag)
        return nil
    end
    local high = header(2, 4):uint() + header(6, 2):uint()
    local length = header(8, 4):uint()
    if high ~= 0 or length > LENGTH_MAX then
        root:add(ssdtp2, header):add_proto_expert_info(ssdtp2.experts.length)
        return nil
    end
    return length
end

local function ssdtp2_body(frame, pinfo, root)
    local tree = root:add(ssdtp2, frame)
    local flag = frame(0, 1):uint()
    tree:add(ssdtp2.fields.flag, frame(0, 1))
    tree:add(ssdtp2.fields.length, frame(2, 10))
    local body = frame:len() > 12 and frame(12) or nil
    if flag <= 0x01 then return dissect_packet(body, flag, pinfo, root) end
    if body and flag == 0x02 then tree:add(ssdtp2.fields.part, body) end
    if body and (flag == 0x30 or flag == 0x31) then
        tree:add(ssdtp2.fields.time_code, body(0, 1))
        return string.format("time-code %d", bit.band(body(0, 1):uint(), 0x3f))
    end
    if body and flag == 0x38 then tree:add(ssdtp2.fields.divider, body(0, 1)) end
    return FLAGS[flag]
end

function ssdtp2.dissector(buffer, pinfo, root)
    dissect_stream("SSDTP2", 12, ssdtp2_head, ssdtp2_body, buffer, pinfo, root)
end
DissectorTable.get("tcp.port"):add(10030, ssdtp2)

-- GRESB: even ports to the bridge (protocol, 24-bit length), odd ports to the host (status, 24-bit length). The order of the status bits was not
-- compared with a bridge.
local gresb = Proto("gresb", "SpaceWire over TCP, GRESB")
local KINDS = { [0] = "packet", [1] = "set configuration", [2] = "get configuration", [3] = "time-code" }
gresb.prefs.port = Pref.uint("First TCP port", 3000, "The port of virtual link 0, from the host to the bridge")
gresb.fields.kind = ProtoField.uint8("gresb.protocol", "Protocol", base.DEC, KINDS)
gresb.fields.status = ProtoField.uint8("gresb.status", "Status", base.HEX)
gresb.fields.truncated = ProtoField.bool("gresb.truncated", "Truncated", 8, nil, 0x40)
gresb.fields.eep = ProtoField.bool("gresb.eep", "EEP", 8, nil, 0x80)
gresb.fields.length = ProtoField.uint24("gresb.length", "Length", base.DEC)
gresb.fields.link = ProtoField.uint8("gresb.link", "Virtual link", base.DEC)
gresb.fields.time_code = ProtoField.uint8("gresb.time_code", "Time-code", base.HEX)
gresb.experts.kind = ProtoExpert.new("gresb.bad_protocol", "Unknown protocol or status: the stream is out of step", expert.group.MALFORMED,
    expert.severity.ERROR)

-- Returns the virtual link of a packet's ports, and whether it goes to the bridge; nil if neither port is the bridge's.
local function gresb_link(pinfo)
    local first = gresb.prefs.port
    local to, from = pinfo.dst_port - first, pinfo.src_port - first
    if to >= 0 and to < 12 and to % 2 == 0 then return math.floor(to / 2), true end
    if from >= 0 and from < 12 and from % 2 == 1 then return math.floor(from / 2), false end
    return nil, false
end

function gresb.dissector(buffer, pinfo, root)
    local link, to_bridge = gresb_link(pinfo)
    if not link then return 0 end
    local function head(header)
        local first = header(0, 1):uint()
        if to_bridge and not KINDS[first] or not to_bridge and bit.band(first, 0x3f) ~= 0 then
            root:add(gresb, header):add_proto_expert_info(gresb.experts.kind)
            return nil
        end
        return header(1, 3):uint()
    end
    local function body(frame)
        local tree = root:add(gresb, frame)
        local first = frame(0, 1):uint()
        local rest = frame:len() > 4 and frame(4) or nil
        tree:add(gresb.fields.link, link):set_generated()
        tree:add(gresb.fields.length, frame(1, 3))
        if not to_bridge then
            local status = tree:add(gresb.fields.status, frame(0, 1))
            status:add(gresb.fields.truncated, frame(0, 1))
            status:add(gresb.fields.eep, frame(0, 1))
            return dissect_packet(rest, first == 0 and 0 or 1, pinfo, root)
        end
        tree:add(gresb.fields.kind, frame(0, 1))
        if first == 0 then return dissect_packet(rest, 0, pinfo, root) end
        if first == 3 and rest then tree:add(gresb.fields.time_code, rest(0, 1)) end
        return KINDS[first]
    end
    dissect_stream("GRESB", 4, head, body, buffer, pinfo, root)
end

local registered = nil
local function register_ports()
    local ports = DissectorTable.get("tcp.port")
    for link = 0, 11 do
        if registered then ports:remove(registered + link, gresb) end
        ports:add(gresb.prefs.port + link, gresb)
    end
    registered = gresb.prefs.port
end
gresb.prefs_changed = register_ports
register_ports()
