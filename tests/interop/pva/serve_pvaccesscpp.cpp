// A pvAccessCPP server that prints its port and ends with its standard input. Each line of that is posted to `ticks`.
//
//     serve_pvaccesscpp N      `scalar`, `bytes` (70,000, which it sends in segments), `long` (10,000,000 doubles), `either`, `ticks`,
//                              `echo` (called), and n0 to n(N-1)
#include <cstdlib>
#include <iostream>
#include <string>

#include <pv/configuration.h>
#include <pv/pvData.h>
#include <pv/serverContext.h>
#include <pv/standardField.h>
#include <pva/server.h>
#include <pva/sharedstate.h>

using namespace epics::pvData;
namespace pva = epics::pvAccess;

static void serve(pvas::StaticProvider& provider, const std::string& name, const PVStructurePtr& value) {
    pvas::SharedPV::shared_pointer pv(pvas::SharedPV::buildMailbox());
    BitSet all;
    all.set(0);
    pv->open(*value, all);
    provider.add(name, pv);
}

struct Echo : public pvas::SharedPV::Handler {
    void onFirstConnect(const pvas::SharedPV::shared_pointer&) {}
    void onLastDisconnect(const pvas::SharedPV::shared_pointer&) {}
    void onPut(const pvas::SharedPV::shared_pointer&, pvas::Operation&) {}
    void onRPC(const pvas::SharedPV::shared_pointer&, pvas::Operation& operation) {
        if (operation.value().getSubField("query.fail"))
            operation.complete(Status::error("refused"));
        else
            operation.complete(operation.value(), BitSet().set(0));
    }
};

int main(int, char** arguments) {
    pvas::StaticProvider provider("all");
    PVStructurePtr scalar = getPVDataCreate()->createPVStructure(getStandardField()->scalar(pvDouble, "alarm,timeStamp"));
    scalar->getSubFieldT<PVDouble>("value")->put(0.75);
    serve(provider, "scalar", scalar);
    PVStructurePtr bytes = getPVDataCreate()->createPVStructure(getStandardField()->scalarArray(pvUByte, "alarm"));
    PVUByteArray::svector content(70000, 7);
    bytes->getSubFieldT<PVUByteArray>("value")->replace(freeze(content));
    serve(provider, "bytes", bytes);
    PVStructurePtr longest = getPVDataCreate()->createPVStructure(getStandardField()->scalarArray(pvDouble, "alarm"));
    PVDoubleArray::svector numbers(10000000);
    for (size_t at = 0; at < numbers.size(); at++)
        numbers[at] = double(at);
    longest->getSubFieldT<PVDoubleArray>("value")->replace(freeze(numbers));
    serve(provider, "long", longest);
    PVStructurePtr number = getPVDataCreate()->createPVStructure(getStandardField()->scalar(pvInt, ""));
    for (int at = 0; at < atoi(arguments[1]); at++) {
        number->getSubFieldT<PVInt>("value")->put(at);
        serve(provider, "n" + std::to_string(at), number);
    }
    PVStructurePtr either = getPVDataCreate()->createPVStructure(
        getFieldCreate()->createFieldBuilder()->add("n", pvInt)->addNestedUnion("either")->add("number", pvDouble)->add("text", pvString)
            ->endNested()->add("any", getFieldCreate()->createVariantUnion())->createStructure());
    either->getSubFieldT<PVUnion>("either")->select<PVString>("text")->put("older");
    serve(provider, "either", either);
    pvas::SharedPV::shared_pointer echo(pvas::SharedPV::build(std::tr1::shared_ptr<Echo>(new Echo())));
    BitSet all;
    all.set(0);
    echo->open(*scalar, all);
    provider.add("echo", echo);
    pvas::SharedPV::shared_pointer ticks(pvas::SharedPV::buildReadOnly());
    PVStructurePtr tick = getPVDataCreate()->createPVStructure(getStandardField()->scalar(pvLong, "alarm"));
    ticks->open(*tick, all);
    provider.add("ticks", ticks);
    pva::ServerContext::shared_pointer server(pva::ServerContext::create(
        pva::ServerContext::Config().config(pva::ConfigurationBuilder().push_env().build()).provider(provider.provider())));
    std::cout << "port " << server->getServerPort() << std::endl;
    std::string line;
    BitSet changed;
    changed.set(tick->getSubFieldT("value")->getFieldOffset());
    while (std::getline(std::cin, line)) {
        tick->getSubFieldT<PVLong>("value")->put(atol(line.c_str()));
        ticks->post(*tick, changed);
    }
}
