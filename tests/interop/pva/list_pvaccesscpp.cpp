// Lists servers and their PVs as pvAccessCPP's pvlist does: a search without names and protocols, whose answers it reads by that library's
// buffers, and then calls of the channel `server` at each address. Prints `server HOST:PORT GUID VERSION PROTOCOL`, and of each server
// what `op=info` and `op=channels` return, a line each.
//
//     list_pvaccesscpp HOST PORT
#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <map>
#include <string>

#include <pv/byteBuffer.h>
#include <pv/clientFactory.h>
#include <pv/createRequest.h>
#include <pv/pvData.h>
#include <pv/rpcClient.h>

using namespace epics::pvData;
using std::string;

static const int MAGIC = 0xCA, VERSION = 2, SEARCH = 3, SEARCH_RESPONSE = 4, LENGTH_AT = 4, HEADER = 8;
// A reply is required, and the search is for this address alone: pvlist says so wherever it sends it.
static const int FLAGS = 0x81;

// An IPv4 address as IPv6 has it: pvlist names none, where answers go to.
static void put_address(ByteBuffer& out, const char address[4]) {
    const char mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '\xff', '\xff'};
    out.put(mapped, 0, sizeof mapped);
    out.put(address, 0, 4);
}

static void search(ByteBuffer& out, uint16_t port) {
    out.putByte(int8(MAGIC));
    out.putByte(VERSION);
    out.putByte(EPICS_BYTE_ORDER == EPICS_ENDIAN_BIG ? int8(0x80) : 0);
    out.putByte(SEARCH);
    out.putInt(0);
    out.putInt(0); // The number of the search.
    out.putByte(int8(FLAGS));
    out.putByte(0);
    out.putShort(0);
    put_address(out, "\0\0\0\0");
    out.putShort(int16(port));
    out.putByte(0);  // Protocols: any.
    out.putShort(0); // Names.
    out.putInt(LENGTH_AT, int32(out.getPosition() - HEADER));
}

// Returns the address, and says it with the rest, or returns nothing if it is no answer.
static string server(ByteBuffer& in, const sockaddr_in& from) {
    if (uint8(in.getByte()) != MAGIC)
        return "";
    int version = in.getByte();
    in.setEndianess(in.getByte() < 0 ? EPICS_ENDIAN_BIG : EPICS_ENDIAN_LITTLE);
    if (in.getByte() != SEARCH_RESPONSE || in.getInt() < 12 + 4 + 16 + 2)
        return "";
    char guid[12], address[16], host[INET_ADDRSTRLEN], digits[2 * sizeof guid + 1];
    in.get(guid, 0, sizeof guid);
    for (size_t at = 0; at < sizeof guid; at++)
        snprintf(digits + 2 * at, 3, "%02X", uint8(guid[at]));
    in.getInt();
    in.get(address, 0, sizeof address);
    bool names_none = !memcmp(address + 12, "\0\0\0\0", 4);
    inet_ntop(AF_INET, names_none ? (const void*)&from.sin_addr : address + 12, host, sizeof host);
    string at = string(host) + ":" + std::to_string(uint16(in.getShort()));
    string protocol(size_t(in.getByte()), ' ');
    in.get(&protocol[0], 0, protocol.size());
    static std::map<string, string> known;
    if (known.count(digits))
        return "";
    known[digits] = at;
    std::cout << "server " << at << " 0x" << digits << " " << version << " " << protocol << std::endl;
    return at;
}

static PVStructurePtr call(const string& address, const char* operation) {
    PVStructurePtr question = getPVDataCreate()->createPVStructure(
        getFieldCreate()->createFieldBuilder()->setId("epics:nt/NTURI:1.0")->add("scheme", pvString)->add("path", pvString)
            ->addNestedStructure("query")->add("op", pvString)->endNested()->createStructure());
    question->getSubFieldT<PVString>("scheme")->put("pva");
    question->getSubFieldT<PVString>("path")->put("server");
    question->getSubFieldT<PVString>("query.op")->put(operation);
    epics::pvAccess::RPCClient rpc("server", createRequest("field()"), epics::pvAccess::ChannelProvider::shared_pointer(), address);
    return rpc.request(question, 10, true);
}

int main(int, char** arguments) {
    int socket = ::socket(AF_INET, SOCK_DGRAM, IPPROTO_UDP), on = 1;
    setsockopt(socket, SOL_SOCKET, SO_BROADCAST, &on, sizeof on);
    timeval quarter = {0, 250000};
    setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &quarter, sizeof quarter);
    sockaddr_in own = {}, to = {}, from = {};
    own.sin_family = to.sin_family = AF_INET;
    socklen_t size = sizeof own;
    if (bind(socket, (sockaddr*)&own, size) || getsockname(socket, (sockaddr*)&own, &size))
        return 1;
    inet_pton(AF_INET, arguments[1], &to.sin_addr);
    to.sin_port = htons(uint16_t(atoi(arguments[2])));
    char request[64], reply[1024];
    ByteBuffer out(request, sizeof request);
    search(out, ntohs(own.sin_port));
    epics::pvAccess::ClientFactory::start();
    // Three times, each until there are no more answers for a quarter of a second.
    for (int turn = 0; turn < 3; turn++) {
        sendto(socket, request, out.getPosition(), 0, (sockaddr*)&to, sizeof to);
        ssize_t length;
        while ((length = recvfrom(socket, reply, sizeof reply, 0, (sockaddr*)&from, &size)) > 0) {
            ByteBuffer in(reply, size_t(length));
            string at = server(in, from);
            if (at.empty())
                continue;
            std::cout << "version " << call(at, "info")->getSubFieldT<PVString>("version")->get() << "\n";
            PVStructurePtr channels = call(at, "channels");
            for (const string& name : channels->getSubFieldT<PVStringArray>("value")->view())
                std::cout << "name " << name << "\n";
        }
    }
    std::cout << std::flush;
    _Exit(0);
}
