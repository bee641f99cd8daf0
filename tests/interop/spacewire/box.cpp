// A box that speaks SSDTP2 and has a memory behind RMAP, made of spw_rmap's own server: `box ADDRESS PORT`.
//
// Serves one host after another, and prints the time-codes that it receives.

#include <spw_rmap/spw_rmap_tcp_node.hh>

#include <iostream>
#include <map>

int main(int count, char **arguments) {
    if (count != 3) {
        std::cerr << "box ADDRESS PORT\n";
        return 2;
    }
    std::map<uint32_t, uint8_t> memory;
    spw_rmap::SpwRmapTCPServer server({.ip_address = arguments[1], .port = arguments[2]});
    server.RegisterOnWrite([&](spw_rmap::Packet packet) {
        for (uint32_t at = 0; at < packet.data.size(); ++at) memory[packet.address + at] = packet.data[at];
    });
    server.RegisterOnRead([&](spw_rmap::Packet packet) {
        std::vector<uint8_t> data(packet.data_length);
        for (uint32_t at = 0; at < data.size(); ++at) {
            auto found = memory.find(packet.address + at);
            data[at] = found == memory.end() ? 0 : found->second;
        }
        return data;
    });
    server.RegisterOnTimeCode([](uint8_t code) { std::cout << "time-code " << int(code) << std::endl; });
    std::cout << "box" << std::endl;
    if (!server.AcceptOnce()) return 1;
    // Waits for the next host itself.
    return server.RunLoop() ? 0 : 1;
}
