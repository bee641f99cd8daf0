// A pvAccessCPP server and a pvAccessCPP client that only measure: the peer of `hodo bench pva`. See pva.py beside this file.
// The server answers a get with the value that it holds, as the test server of the published study does.
//
//     pva_pvaccesscpp serve PORT CHANNELS DOUBLES      channels hodo:double:0 to hodo:double:N-1, 0 doubles for a scalar
//     pva_pvaccesscpp get HOST:PORT CHANNELS SECONDS   a get on each channel, wait for all, and again
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <epicsAtomic.h>
#include <epicsEvent.h>
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
typedef std::chrono::steady_clock Clock;

static PVStructurePtr served(size_t doubles) {
    FieldBuilderPtr builder = getFieldCreate()->createFieldBuilder();
    if (doubles == 0) {
        builder->setId("epics:nt/NTScalar:1.0")->add("value", pvDouble);
    } else {
        builder->setId("epics:nt/NTScalarArray:1.0")->addArray("value", pvDouble);
    }
    PVStructurePtr value = getPVDataCreate()->createPVStructure(builder->createStructure());
    if (doubles == 0) {
        value->getSubFieldT<PVDouble>("value")->put(1.5);
    } else {
        PVDoubleArray::svector all(doubles, 1.5);
        value->getSubFieldT<PVDoubleArray>("value")->replace(freeze(all));
    }
    return value;
}

struct Get : public ChannelGet {
    Channel::shared_pointer channel;
    ChannelGetRequester::shared_pointer requester;
    std::tr1::weak_ptr<Get> self;
    PVStructurePtr value;
    BitSetPtr changed;
    shared_ptr<Channel> getChannel() { return channel; }
    void cancel() {}
    void lastRequest() {}
    void destroy() {}
    void lock() {}
    void unlock() {}
    void get() { requester->getDone(Status::Ok, shared_ptr<ChannelGet>(self), value, changed); }
};

struct Served : public Channel {
    ChannelProvider::weak_pointer provider;
    ChannelRequester::shared_pointer requester;
    std::tr1::weak_ptr<Served> self;
    string name;
    PVStructurePtr value;
    shared_ptr<ChannelProvider> getProvider() { return provider.lock(); }
    string getRemoteAddress() { return "local"; }
    string getChannelName() { return name; }
    shared_ptr<ChannelRequester> getChannelRequester() { return requester; }
    void destroy() {}
    ChannelGet::shared_pointer createChannelGet(ChannelGetRequester::shared_pointer const& r, PVStructurePtr const&) {
        shared_ptr<Get> made(new Get());
        made->channel = shared_ptr<Channel>(self);
        made->requester = r;
        made->self = made;
        made->value = value;
        made->changed.reset(new BitSet());
        made->changed->set(0);
        r->channelGetConnect(Status::Ok, made, value->getStructure());
        return made;
    }
};

struct Provider : public ChannelProvider {
    std::tr1::weak_ptr<Provider> self;
    PVStructurePtr value;
    string getProviderName() { return "bench"; }
    void destroy() {}
    ChannelFind::shared_pointer channelFind(string const&, ChannelFindRequester::shared_pointer const& r) {
        r->channelFindResult(Status::Ok, ChannelFind::shared_pointer(), true);
        return ChannelFind::shared_pointer();
    }
    Channel::shared_pointer createChannel(string const& name, ChannelRequester::shared_pointer const& r, short, string const&) {
        shared_ptr<Served> made(new Served());
        made->provider = shared_ptr<Provider>(self);
        made->requester = r;
        made->self = made;
        made->name = name;
        made->value = value;
        r->channelCreated(Status::Ok, made);
        return made;
    }
};

static int serve(const string& port, size_t doubles) {
    shared_ptr<Provider> provider(new Provider());
    provider->self = provider;
    provider->value = served(doubles);
    Configuration::shared_pointer settings = ConfigurationBuilder().add("EPICS_PVAS_INTF_ADDR_LIST", "127.0.0.1")
        .add("EPICS_PVA_ADDR_LIST", "127.0.0.1").add("EPICS_PVA_AUTO_ADDR_LIST", "0")
        .add("EPICS_PVA_SERVER_PORT", port).add("EPICS_PVA_BROADCAST_PORT", "0").push_map().build();
    ServerContext::shared_pointer server = ServerContext::create(ServerContext::Config().config(settings).provider(provider));
    puts("ready");
    fflush(stdout);
    while (getchar() != EOF) {}
    _exit(0);
}

// Rounds of gets. Each round is begun by the last answer of the one before: see pva_pvxs.cpp.
struct Gets : public ChannelRequester, public ChannelGetRequester {
    std::vector<ChannelGet::shared_pointer> all;
    int left;
    bool failed;
    size_t bytes;
    epicsEvent done;
    double seconds, took;
    std::vector<double> times;
    Clock::time_point start, last;
    Gets() : left(0), failed(false), bytes(0), took(0) {}

    void begin(double for_seconds) {
        seconds = for_seconds;
        bytes = 0;
        times.clear();
        start = last = Clock::now();
        round();
    }
    void round() {
        left = all.size();
        for (auto& one : all) one->get();
    }
    // Tells whether all have been told.
    bool one(bool good) {
        if (!good) failed = true;
        return epicsAtomicDecrIntT(&left) == 0;
    }
    string getRequesterName() { return "bench"; }
    void message(string const&, MessageType) {}
    void channelDisconnect(bool) {}
    void channelCreated(const Status&, Channel::shared_pointer const&) {}
    void channelStateChange(Channel::shared_pointer const&, Channel::ConnectionState state) {
        if (state == Channel::CONNECTED && one(true)) done.signal();
    }
    void channelGetConnect(const Status& status, ChannelGet::shared_pointer const&, StructureConstPtr const&) {
        if (one(status.isSuccess())) done.signal();
    }
    void getDone(const Status& status, ChannelGet::shared_pointer const&, PVStructurePtr const& value, BitSetPtr const&) {
        PVFieldPtr field = value->getSubField("value");
        if (field->getField()->getType() == scalarArray) {
            bytes += 8 * std::tr1::static_pointer_cast<PVDoubleArray>(field)->view().size();
        } else {
            bytes += 8;
        }
        if (!one(status.isSuccess())) return;
        const auto now = Clock::now();
        times.push_back(std::chrono::duration<double>(now - last).count());
        last = now;
        took = std::chrono::duration<double>(now - start).count();
        if (took < seconds && !failed) return round();
        done.signal();
    }
    bool wait() { return done.wait(60.0 + seconds) && !failed; }
};

static int get(const string& server, size_t channels, double seconds) {
    ClientFactory::start();
    Configuration::shared_pointer settings = ConfigurationBuilder().add("EPICS_PVA_ADDR_LIST", "127.0.0.1")
        .add("EPICS_PVA_AUTO_ADDR_LIST", "0").push_map().build();
    ChannelProvider::shared_pointer client = ChannelProviderRegistry::clients()->createProvider("pva", settings);
    shared_ptr<Gets> gets(new Gets());
    std::vector<Channel::shared_pointer> all;
    gets->seconds = 0;
    gets->left = channels;
    for (size_t number = 0; number < channels; number++)
        all.push_back(client->createChannel("hodo:double:" + std::to_string(number), gets, ChannelProvider::PRIORITY_DEFAULT, server));
    if (!gets->wait()) return 1;
    gets->left = channels;
    for (auto& channel : all)
        gets->all.push_back(channel->createChannelGet(gets, CreateRequest::create()->createRequest("field(value)")));
    if (!gets->wait()) return 1;
    for (double part : {0.2, 1.0}) {
        gets->begin(part * seconds);
        if (!gets->wait()) return 1;
    }
    const size_t rounds = gets->times.size();
    std::sort(gets->times.begin(), gets->times.end());
    printf("{\"per_s\": %.3f, \"gbit_per_s\": %.5f, \"p50_us\": %.3f, \"p99_us\": %.3f}\n", rounds * channels / gets->took,
           gets->bytes * 8e-9 / gets->took, gets->times[rounds / 2] * 1e6, gets->times[rounds * 99 / 100] * 1e6);
    fflush(stdout);
    _exit(0);
}

int main(int count, char** words) {
    const std::vector<string> all(words + 1, words + count);
    if (all.size() >= 4 && all[0] == "serve") return serve(all[1], atol(all[3].c_str()));
    if (all.size() >= 4 && all[0] == "get") return get(all[1], atol(all[2].c_str()), atof(all[3].c_str()));
    fprintf(stderr, "usage: see the top of pva_pvaccesscpp.cpp\n");
    return 2;
}
