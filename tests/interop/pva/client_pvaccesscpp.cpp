// A pvAccessCPP client of the PVs of test_peers.py: reads, puts, subscribes to and calls them, and prints what it sees, a line each.
//
//     client_pvaccesscpp HOST:PORT
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include <epicsTime.h>
#include <pv/clientFactory.h>
#include <pv/configuration.h>
#include <pv/createRequest.h>
#include <pv/pvAccess.h>
#include <pv/pvData.h>
#include <pva/client.h>

using namespace epics::pvData;
using std::string;

static PVStructure::const_shared_pointer request(const char* text) { return createRequest(text); }

template <typename Operation>
static string refused(Operation operation) {
    try {
        operation();
    } catch (std::exception& error) {
        return error.what();
    }
    return "not refused";
}

int main(int, char** arguments) {
    epics::pvAccess::Configuration::shared_pointer settings = epics::pvAccess::ConfigurationBuilder()
        .add("EPICS_PVA_ADDR_LIST", "").add("EPICS_PVA_AUTO_ADDR_LIST", "0").add("EPICS_PVA_BROADCAST_PORT", "1").push_map().build();
    epics::pvAccess::ClientFactory::start();
    pvac::ClientProvider provider("pva", settings);
    pvac::ClientChannel::Options options;
    options.address = arguments[1];
    // The connection stays open as long as one of these does. A channel that is opened while its connection is being closed is
    // never connected, whoever the server is.
    std::vector<pvac::ClientChannel> kept;
    auto channel = [&](const char* name) {
        kept.push_back(provider.connect(name, options));
        return kept.back();
    };
    std::cout.precision(15);
    std::cout << std::unitbuf;

    PVStructure::const_shared_pointer number = channel("NUMBER").get(10);
    std::cout << "number " << number->getSubFieldT<PVDouble>("value")->get() << " "
              << number->getSubFieldT<PVString>("display.units")->get() << "\n";
    channel("NUMBER").put(request("field(value)")).set("value", 43.5).exec(10);
    number = channel("NUMBER").get(10, request("field(value,alarm)"));
    std::cout << "put " << number->getSubFieldT<PVDouble>("value")->get() << " "
              << number->getSubFieldT<PVString>("alarm.message")->get() << "\n";
    std::cout << "refused " << refused([&]() { channel("NUMBER").put(request("field(value)")).set("value", 99.0).exec(10); }) << "\n";
    std::cout << "absent " << refused([&]() { channel("NUMBER").get(10, request("field(absent)")); }) << "\n";

    PVStructure::const_shared_pointer choice = channel("CHOICE").get(10);
    std::cout << "choice " << choice->getSubFieldT<PVInt>("value.index")->get() << " "
              << choice->getSubFieldT<PVStringArray>("value.choices")->view()[2] << "\n";
    PVStructure::const_shared_pointer mixed = channel("MIXED").get(10);
    std::cout << "mixed " << mixed->getSubFieldT<PVInt>("x")->get() << " " << mixed->getSubFieldT<PVDoubleArray>("y.z")->view()[1]
              << " " << mixed->getSubFieldT<PVUnion>("any")->get<PVLong>()->get() << "\n";
    channel("MIXED").put(request("field(x)")).set("x", 8).exec(10);
    std::cout << "mixed " << channel("MIXED").get(10)->getSubFieldT<PVInt>("x")->get() << "\n";

    PVDoubleArray::const_svector large = channel("LARGE").get(60)->getSubFieldT<PVDoubleArray>("value")->view();
    std::cout << "large " << large.size() << "\n";
    PVDoubleArray::svector mine(large.size());
    for (size_t at = 0; at < mine.size(); at++)
        mine[at] = double(at % 1000);
    // As segments: pvAccessCPP cuts arrays of 64 KiB and more.
    channel("LARGE").put(request("field(value)")).set("value", freeze(mine)).exec(60);
    large = channel("LARGE").get(60)->getSubFieldT<PVDoubleArray>("value")->view();
    double sum = 0;
    for (double one : large)
        sum += one;
    std::cout << "large " << large.size() << " " << sum << "\n";

    for (const char* text : {"record[queueSize=50]field()", "record[queueSize=50,pipeline=true]field()"}) {
        pvac::ClientChannel counter = channel("COUNTER");
        pvac::MonitorSync subscription = counter.monitor(request(text));
        long last = -1, gaps = 0, updates = 0;
        // A wait of pvac may end early, with neither an event nor its time over; at a server of pvxs too.
        for (epicsTime end = epicsTime::getCurrent() + 10; updates < 40 && epicsTime::getCurrent() < end;) {
            if (!subscription.wait(1) || subscription.event.event != pvac::MonitorEvent::Data)
                continue;
            while (subscription.poll()) {
                long now = subscription.root->getSubFieldT<PVLong>("value")->get();
                gaps += last >= 0 && now != last + 1;
                last = now;
                updates++;
            }
        }
        std::cout << "counter " << (updates >= 40) << " " << gaps << "\n";
    }

    FieldBuilderPtr builder = getFieldCreate()->createFieldBuilder();
    auto arguments_of = [&](bool whole) {
        FieldBuilderPtr query = builder->setId("epics:nt/NTURI:1.0")->add("scheme", pvString)->add("path", pvString)
            ->addNestedStructure("query")->add("a", pvDouble);
        if (whole)
            query = query->add("b", pvDouble);
        PVStructurePtr uri = getPVDataCreate()->createPVStructure(query->endNested()->createStructure());
        uri->getSubFieldT<PVDouble>("query.a")->put(1.5);
        if (whole)
            uri->getSubFieldT<PVDouble>("query.b")->put(2.0);
        return uri;
    };
    std::cout << "sum " << channel("SUM").rpc(20, arguments_of(true))->getSubFieldT<PVDouble>("value")->get() << "\n";
    std::cout << "complaint " << refused([&]() { channel("SUM").rpc(20, arguments_of(false)); }) << "\n";
    int right = 0;
    for (int at = 0; at < 10000; at++)
        right += channel(("MANY:" + std::to_string(at)).c_str()).get(60)->getSubFieldT<PVInt>("value")->get() == 7;
    std::cout << "many " << right << "\n";
    FieldConstPtr info = channel("CHOICE").info(10);
    std::cout << "info " << info->getID() << std::endl;
    _exit(0);
}
