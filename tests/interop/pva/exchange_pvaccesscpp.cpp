// A pvAccessCPP server and a pvAccessCPP client that say through a relay what pvxs does not: put-get, process, array, types by number,
// and segments. See golden.py beside this file.
//
//     exchange_pvaccesscpp      prints the server's port, reads the relay's port, and ends when all is said
#include <iostream>
#include <string>

#include <epicsEvent.h>
#include <epicsThread.h>
#include <pv/clientFactory.h>
#include <pv/configuration.h>
#include <pv/createRequest.h>
#include <pv/pvAccess.h>
#include <pv/pvData.h>
#include <pv/serverContext.h>

using namespace epics::pvData;
using namespace epics::pvAccess;
using std::string;
using std::tr1::shared_ptr;

static PVStructurePtr served(size_t bytes) {
    PVStructurePtr value = getPVDataCreate()->createPVStructure(
        getFieldCreate()->createFieldBuilder()->setId("served")->add("value", pvDouble)->add("name", pvString)
            ->addArray("bytes", pvUByte)->addNestedStructure("limits")->add("low", pvInt)->add("high", pvInt)
            ->endNested()->createStructure());
    value->getSubFieldT<PVDouble>("value")->put(0.75);
    value->getSubFieldT<PVString>("name")->put("older");
    PVUByteArray::svector all(bytes, 7);
    value->getSubFieldT<PVUByteArray>("bytes")->replace(freeze(all));
    value->getSubFieldT<PVInt>("limits.high")->put(-3);
    return value;
}

static BitSetPtr bits(int bit) {
    BitSetPtr set(new BitSet());
    set->set(bit);
    return set;
}

// The server's side: operations that answer at once.
template <typename Base>
struct Served : public Base {
    Channel::shared_pointer channel;
    std::tr1::shared_ptr<typename Base::requester_type> requester;
    std::tr1::weak_ptr<Base> self;
    PVStructurePtr value;
    shared_ptr<Base> here() { return shared_ptr<Base>(self); }
    shared_ptr<Channel> getChannel() { return channel; }
    void cancel() {}
    void lastRequest() {}
    void destroy() {}
    void lock() {}
    void unlock() {}
};

struct Get : public Served<ChannelGet> {
    void get() { requester->getDone(Status::Ok, here(), value, bits(0)); }
};

struct PutGet : public Served<ChannelPutGet> {
    void putGet(PVStructurePtr const& put, BitSetPtr const& set) {
        value->copyUnchecked(*put, *set);
        requester->putGetDone(Status::Ok, here(), value, bits(1));
    }
    void getPut() { requester->getPutDone(Status::Ok, here(), value, bits(2)); }
    void getGet() { requester->getGetDone(Status::Ok, here(), value, bits(4)); }
};

struct Process : public Served<ChannelProcess> {
    int times = 0;
    void process() { requester->processDone(times++ ? Status(Status::STATUSTYPE_ERROR, "only once") : Status::Ok, here()); }
};

struct Elements : public Served<ChannelArray> {
    PVIntArrayPtr array;
    void putArray(PVArray::shared_pointer const&, size_t, size_t, size_t) { requester->putArrayDone(Status::Ok, here()); }
    void getArray(size_t, size_t, size_t) { requester->getArrayDone(Status::Ok, here(), array); }
    void getLength() { requester->getLengthDone(Status::Ok, here(), array->getLength()); }
    void setLength(size_t) { requester->setLengthDone(Status::Ok, here()); }
};

struct Everything : public Channel {
    ChannelProvider::weak_pointer provider;
    ChannelRequester::shared_pointer requester;
    std::tr1::weak_ptr<Everything> self;
    string name;
    PVStructurePtr value;
    shared_ptr<ChannelProvider> getProvider() { return provider.lock(); }
    string getRemoteAddress() { return "local"; }
    string getChannelName() { return name; }
    shared_ptr<ChannelRequester> getChannelRequester() { return requester; }
    void destroy() {}

    template <typename Operation, typename Requester>
    shared_ptr<Operation> make(Requester const& requester) {
        shared_ptr<Operation> made(new Operation());
        made->channel = shared_ptr<Channel>(self);
        made->requester = requester;
        made->self = made;
        made->value = value;
        return made;
    }
    ChannelGet::shared_pointer createChannelGet(ChannelGetRequester::shared_pointer const& r, PVStructurePtr const&) {
        shared_ptr<Get> made = make<Get>(r);
        r->channelGetConnect(Status::Ok, made, value->getStructure());
        return made;
    }
    ChannelPutGet::shared_pointer createChannelPutGet(ChannelPutGetRequester::shared_pointer const& r, PVStructurePtr const&) {
        shared_ptr<PutGet> made = make<PutGet>(r);
        r->channelPutGetConnect(Status::Ok, made, value->getStructure(), value->getStructure());
        return made;
    }
    ChannelProcess::shared_pointer createChannelProcess(ChannelProcessRequester::shared_pointer const& r, PVStructurePtr const&) {
        shared_ptr<Process> made = make<Process>(r);
        r->channelProcessConnect(Status::Ok, made);
        return made;
    }
    ChannelArray::shared_pointer createChannelArray(ChannelArrayRequester::shared_pointer const& r, PVStructurePtr const&) {
        shared_ptr<Elements> made = make<Elements>(r);
        made->array = getPVDataCreate()->createPVScalarArray<PVIntArray>();
        PVIntArray::svector all(3, -5);
        made->array->replace(freeze(all));
        r->channelArrayConnect(Status::Ok, made, made->array->getArray());
        return made;
    }
    void getField(GetFieldRequester::shared_pointer const& r, string const&) { r->getDone(Status::Ok, value->getStructure()); }
};

struct Provider : public ChannelProvider {
    std::tr1::weak_ptr<Provider> self;
    string getProviderName() { return "everything"; }
    void destroy() {}
    ChannelFind::shared_pointer channelFind(string const&, ChannelFindRequester::shared_pointer const& r) {
        r->channelFindResult(Status::Ok, ChannelFind::shared_pointer(), true);
        return ChannelFind::shared_pointer();
    }
    Channel::shared_pointer createChannel(string const& name, ChannelRequester::shared_pointer const& r, short, string const&) {
        shared_ptr<Everything> made(new Everything());
        made->provider = shared_ptr<Provider>(self);
        made->requester = r;
        made->self = made;
        made->name = name;
        made->value = served(name == "large" ? 70000 : 3);
        r->channelCreated(Status::Ok, made);
        return made;
    }
};

// The client's side: whatever is told wakes the one who waits.
static epicsEvent woken;
static void await(const char* what) {
    if (woken.wait(2.0)) return;
    std::cerr << "no answer to " << what << "\n";
    _exit(1);
}

struct Asks : public ChannelRequester, public ChannelGetRequester, public ChannelPutGetRequester, public ChannelProcessRequester,
              public ChannelArrayRequester, public GetFieldRequester {
    PVArray::shared_pointer array;
    string getRequesterName() { return "asks"; }
    void message(string const&, MessageType) {}
    void channelDisconnect(bool) {}
    void channelCreated(const Status&, Channel::shared_pointer const&) {}
    void channelStateChange(Channel::shared_pointer const&, Channel::ConnectionState state) {
        if (state == Channel::CONNECTED) woken.signal();
    }
    void channelGetConnect(const Status&, ChannelGet::shared_pointer const&, StructureConstPtr const&) { woken.signal(); }
    void getDone(const Status&, ChannelGet::shared_pointer const&, PVStructurePtr const&, BitSetPtr const&) { woken.signal(); }
    void channelPutGetConnect(const Status&, ChannelPutGet::shared_pointer const&, StructureConstPtr const&, StructureConstPtr const&) { woken.signal(); }
    void putGetDone(const Status&, ChannelPutGet::shared_pointer const&, PVStructurePtr const&, BitSetPtr const&) { woken.signal(); }
    void getPutDone(const Status&, ChannelPutGet::shared_pointer const&, PVStructurePtr const&, BitSetPtr const&) { woken.signal(); }
    void getGetDone(const Status&, ChannelPutGet::shared_pointer const&, PVStructurePtr const&, BitSetPtr const&) { woken.signal(); }
    void channelProcessConnect(const Status&, ChannelProcess::shared_pointer const&) { woken.signal(); }
    void processDone(const Status&, ChannelProcess::shared_pointer const&) { woken.signal(); }
    void channelArrayConnect(const Status&, ChannelArray::shared_pointer const&, epics::pvData::Array::const_shared_pointer const&) {
        array = getPVDataCreate()->createPVScalarArray<PVIntArray>();
        woken.signal();
    }
    void putArrayDone(const Status&, ChannelArray::shared_pointer const&) { woken.signal(); }
    void getArrayDone(const Status&, ChannelArray::shared_pointer const&, PVArray::shared_pointer const&) { woken.signal(); }
    void getLengthDone(const Status&, ChannelArray::shared_pointer const&, size_t) { woken.signal(); }
    void setLengthDone(const Status&, ChannelArray::shared_pointer const&) { woken.signal(); }
    void getDone(const Status&, FieldConstPtr const&) { woken.signal(); }
};

static void ask(Channel::shared_pointer const& channel, shared_ptr<Asks> const& asks) {
    PVStructurePtr request = CreateRequest::create()->createRequest("field()");
    for (int i = 0; i < 2; i++) {
        ChannelGet::shared_pointer get = channel->createChannelGet(asks, request);
        await("get init");
        get->get();
        await("get");
        get->destroy();
    }
    ChannelPutGet::shared_pointer put = channel->createChannelPutGet(asks, request);
    await("put-get init");
    PVStructurePtr value = served(2);
    value->getSubFieldT<PVDouble>("value")->put(4.5);
    put->putGet(value, bits(1));
    await("put-get");
    put->getPut();
    await("get-put");
    put->lastRequest();
    put->getGet();
    await("get-get");
    ChannelProcess::shared_pointer process = channel->createChannelProcess(asks, request);
    await("process init");
    process->process();
    await("process");
    process->process();
    await("process again");
    process->destroy();
    ChannelArray::shared_pointer array = channel->createChannelArray(asks, CreateRequest::create()->createRequest("field(value)"));
    await("array init");
    array->getArray(1, 2, 3);
    await("array get");
    array->getLength();
    await("array length");
    array->setLength(300);
    await("array set length");
    PVIntArrayPtr elements = getPVDataCreate()->createPVScalarArray<PVIntArray>();
    PVIntArray::svector two(2, 9);
    elements->replace(freeze(two));
    array->putArray(elements, 4, 2, 1);
    await("array put");
    array->destroy();
    channel->getField(asks, "limits");
    await("get field");
}

int main() {
    shared_ptr<Provider> provider(new Provider());
    provider->self = provider;
    Configuration::shared_pointer settings = ConfigurationBuilder().add("EPICS_PVAS_INTF_ADDR_LIST", "127.0.0.1")
        .add("EPICS_PVA_ADDR_LIST", "127.0.0.1").add("EPICS_PVA_AUTO_ADDR_LIST", "0")
        .add("EPICS_PVA_SERVER_PORT", "0").add("EPICS_PVA_BROADCAST_PORT", "0").push_map().build();
    ServerContext::shared_pointer server = ServerContext::create(ServerContext::Config().config(settings).provider(provider));
    std::cout << "port " << server->getServerPort() << std::endl;
    string port;
    std::getline(std::cin, port);
    ClientFactory::start();
    ChannelProvider::shared_pointer client = ChannelProviderRegistry::clients()->createProvider("pva", settings);
    shared_ptr<Asks> asks(new Asks());
    Channel::shared_pointer channel = client->createChannel("all", asks, ChannelProvider::PRIORITY_DEFAULT, "127.0.0.1:" + port);
    await("connection");
    ask(channel, asks);
    Channel::shared_pointer large = client->createChannel("large", asks, ChannelProvider::PRIORITY_DEFAULT, "127.0.0.1:" + port);
    await("connection");
    ChannelGet::shared_pointer get = large->createChannelGet(asks, CreateRequest::create()->createRequest(""));
    await("get init");
    get->get();
    await("get of many bytes");
    get->destroy();
    channel->destroy();
    epicsThreadSleep(0.2);
    std::cout << "done" << std::endl;
    _exit(0);
}
