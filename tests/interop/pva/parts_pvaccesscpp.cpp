// A pvAccessCPP client of the PVs of test_peers.py, with what pvxs does not have: put-get, process, and parts of arrays. It prints what it
// sees, a line each.
//
//     parts_pvaccesscpp HOST:PORT
#include <iostream>
#include <string>

#include <epicsEvent.h>
#include <pv/clientFactory.h>
#include <pv/configuration.h>
#include <pv/createRequest.h>
#include <pv/pvAccess.h>
#include <pv/pvData.h>

using namespace epics::pvData;
using namespace epics::pvAccess;
using std::string;
using std::tr1::shared_ptr;

// Whatever is told wakes the one who waits.
static epicsEvent woken;
static void await(const char* what) {
    if (woken.wait(20.0)) return;
    std::cout << "no answer to " << what << std::endl;
    _exit(1);
}

struct Asks : public ChannelRequester, public ChannelPutGetRequester, public ChannelProcessRequester, public ChannelArrayRequester {
    Status status;
    Structure::const_shared_pointer type;
    PVStructurePtr value;
    Array::const_shared_pointer array;
    PVArray::shared_pointer part;
    size_t length;
    string getRequesterName() { return "asks"; }
    void message(string const&, MessageType) {}
    void channelDisconnect(bool) {}
    void tell(const Status& now) {
        status = now;
        woken.signal();
    }
    void channelCreated(const Status&, Channel::shared_pointer const&) {}
    void channelStateChange(Channel::shared_pointer const&, Channel::ConnectionState state) {
        if (state == Channel::CONNECTED) woken.signal();
    }
    void channelPutGetConnect(const Status& now, ChannelPutGet::shared_pointer const&, StructureConstPtr const& put, StructureConstPtr const&) {
        type = put;
        tell(now);
    }
    void got(const Status& now, PVStructurePtr const& now_value) {
        value = now_value;
        tell(now);
    }
    void putGetDone(const Status& now, ChannelPutGet::shared_pointer const&, PVStructurePtr const& got_, BitSetPtr const&) { got(now, got_); }
    void getPutDone(const Status& now, ChannelPutGet::shared_pointer const&, PVStructurePtr const& got_, BitSetPtr const&) { got(now, got_); }
    void getGetDone(const Status& now, ChannelPutGet::shared_pointer const&, PVStructurePtr const& got_, BitSetPtr const&) { got(now, got_); }
    void channelProcessConnect(const Status& now, ChannelProcess::shared_pointer const&) { tell(now); }
    void processDone(const Status& now, ChannelProcess::shared_pointer const&) { tell(now); }
    void channelArrayConnect(const Status& now, ChannelArray::shared_pointer const&, Array::const_shared_pointer const& of) {
        array = of;
        tell(now);
    }
    void putArrayDone(const Status& now, ChannelArray::shared_pointer const&) { tell(now); }
    void getArrayDone(const Status& now, ChannelArray::shared_pointer const&, PVArray::shared_pointer const& got_) {
        part = got_;
        tell(now);
    }
    void getLengthDone(const Status& now, ChannelArray::shared_pointer const&, size_t is) {
        length = is;
        tell(now);
    }
    void setLengthDone(const Status& now, ChannelArray::shared_pointer const&) { tell(now); }

    string ok() { return status.isSuccess() ? "ok" : status.getMessage(); }
    void show_value(const char* what) {
        std::cout << what << " " << value->getSubFieldT<PVDouble>("value")->get() << " " << ok() << "\n";
    }
    void show_part(const char* what) {
        std::cout << what;
        for (int32 one : std::tr1::static_pointer_cast<PVIntArray>(part)->view()) std::cout << " " << one;
        std::cout << " " << ok() << "\n";
    }
};

int main(int, char** arguments) {
    Configuration::shared_pointer settings = ConfigurationBuilder()
        .add("EPICS_PVA_ADDR_LIST", "").add("EPICS_PVA_AUTO_ADDR_LIST", "0").add("EPICS_PVA_BROADCAST_PORT", "1").push_map().build();
    ClientFactory::start();
    ChannelProvider::shared_pointer provider = ChannelProviderRegistry::clients()->createProvider("pva", settings);
    shared_ptr<Asks> asks(new Asks());
    auto channel = [&](const char* name) {
        Channel::shared_pointer made = provider->createChannel(name, asks, ChannelProvider::PRIORITY_DEFAULT, arguments[1]);
        await(name);
        return made;
    };

    Channel::shared_pointer number = channel("NUMBER");
    ChannelPutGet::shared_pointer both =
        number->createChannelPutGet(asks, CreateRequest::create()->createRequest("putField(value)getField(value)"));
    await("put-get init");
    PVStructurePtr mine = getPVDataCreate()->createPVStructure(asks->type);
    BitSetPtr set(new BitSet());
    set->set(mine->getSubFieldT("value")->getFieldOffset());
    auto put = [&](double to) {
        mine->getSubFieldT<PVDouble>("value")->put(to);
        both->putGet(mine, set);
        await("put-get");
    };
    put(25);
    asks->show_value("put-get");
    both->getPut();
    await("get-put");
    asks->show_value("get-put");
    both->getGet();
    await("get-get");
    asks->show_value("get-get");
    put(99);
    std::cout << "refused " << asks->ok() << "\n";
    both->lastRequest();
    both->getGet();
    await("get-get");
    asks->show_value("get-get");

    ChannelProcess::shared_pointer process = number->createChannelProcess(asks, CreateRequest::create()->createRequest(""));
    await("process init");
    for (int times = 0; times < 2; times++) {
        process->process();
        await("process");
        std::cout << "process " << asks->ok() << "\n";
    }
    process->destroy();

    Channel::shared_pointer parts = channel("PARTS");
    ChannelArray::shared_pointer array = parts->createChannelArray(asks, CreateRequest::create()->createRequest("field(value)"));
    await("array init");
    array->getLength();
    await("array length");
    std::cout << "length " << asks->length << " " << asks->ok() << "\n";
    array->getArray(1, 3, 2);
    await("array get");
    asks->show_part("part");
    PVIntArrayPtr elements = getPVDataCreate()->createPVScalarArray<PVIntArray>();
    PVIntArray::svector two;
    two.push_back(7);
    two.push_back(8);
    elements->replace(freeze(two));
    array->putArray(elements, 4, 2, 2);
    await("array put");
    std::cout << "put " << asks->ok() << "\n";
    array->getArray(0, 0, 1);
    await("array get");
    asks->show_part("all");
    array->setLength(2);
    await("array set length");
    std::cout << "cut " << asks->ok() << "\n";
    array->getArray(0, 0, 1);
    await("array get");
    asks->show_part("all");
    array->destroy();
    ChannelArray::shared_pointer none = number->createChannelArray(asks, CreateRequest::create()->createRequest("field(value)"));
    await("array init");
    std::cout << "no array " << (asks->status.isSuccess() ? "opened" : "refused") << std::endl;
    _exit(0);
}
