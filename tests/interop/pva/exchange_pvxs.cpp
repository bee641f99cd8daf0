// A pvxs server and a pvxs client that say one of everything to each other through a relay: see golden.py beside this file.
//
//     exchange_pvxs little|big      prints the server's port, reads the relay's port, and ends when all is said
#define PVXS_ENABLE_EXPERT_API
#include <cstdlib>
#include <iostream>
#include <string>

#include <epicsEvent.h>
#include <epicsThread.h>
#include <pvxs/client.h>
#include <pvxs/data.h>
#include <pvxs/log.h>
#include <pvxs/nt.h>
#include <pvxs/server.h>
#include <pvxs/sharedpv.h>

using namespace pvxs;

static Value scalar() {
    Value value = nt::NTScalar{TypeCode::Float64, true, true, true, true}.create();
    value["value"] = 1.5;
    value["alarm.severity"] = 1;
    value["alarm.message"] = "minor";
    value["timeStamp.secondsPastEpoch"] = 1000000000ll;
    value["display.units"] = "V";
    return value;
}

static Value mixed() {
    Value value = TypeDef(TypeCode::Struct, "mixed", {
        members::Int32("n"),
        members::Union("choice", "either", {members::Float64("number"), members::StringA("words")}),
        members::Any("any"),
        members::StructA("rows", {members::Int64("n"), members::String("s")}),
        members::UnionA("choices", {members::UInt8("u"), members::String("s")}),
        members::AnyA("anys"),
        members::BoolA("flags"),
        members::UInt16A("shorts"),
    }).create();
    value["n"] = 7;
    value["choice->words"] = shared_array<const std::string>({"one", "two"});
    Value number = TypeDef(TypeCode::UInt32).create();
    number = 5u;
    value["any"].from(number);
    shared_array<Value> rows(2);
    rows[0] = value["rows"].allocMember();
    rows[0]["s"] = "row";
    value["rows"] = rows.freeze().castTo<const void>();
    shared_array<Value> choices(1);
    choices[0] = value["choices"].allocMember();
    choices[0]["->u"] = 200;
    value["choices"] = choices.freeze().castTo<const void>();
    shared_array<Value> anys(1);
    anys[0] = number.clone();
    value["anys"] = anys.freeze().castTo<const void>();
    value["flags"] = shared_array<const bool>({true, false});
    value["shorts"] = shared_array<const uint16_t>({1, 2, 3});
    return value;
}

static Value image() {
    Value value = nt::NTNDArray{}.build().create();
    value["value->ushortValue"] = shared_array<const uint16_t>({10, 20, 30, 40, 50, 60});
    shared_array<Value> dimension(2);
    for (int i = 0; i < 2; i++) {
        dimension[i] = value["dimension"].allocMember();
        dimension[i]["size"] = 2 + i;
    }
    value["dimension"] = dimension.freeze().castTo<const void>();
    value["uniqueId"] = 42;
    return value;
}

template <typename Operation>
static void run(Operation& operation) {
    try {
        operation->wait(5.0);
    } catch (std::exception& error) {
        std::cerr << "told: " << error.what() << "\n";
    }
}

static void watch(client::Context& context, const std::string& server, server::SharedPV& pv, bool pipelined) {
    epicsEvent woken;
    auto builder = context.monitor("scalar").server(server).record("queueSize", 4u).event(
        [&](client::Subscription&) { woken.signal(); });
    if (pipelined) builder.record("pipeline", true);
    auto subscription = builder.exec();
    int updates = 0;
    while (updates < 4 && woken.wait(5.0)) {
        try {
            while (Value update = subscription->pop()) {
                updates++;
                Value next = pv.fetch().cloneEmpty();
                next["value"] = 10.0 + updates;
                pv.post(next);
            }
        } catch (client::Connected&) {
        }
    }
    subscription->pause();
    subscription->resume();
    subscription->cancel();
    epicsThreadSleep(0.1);
}

int main(int, char** arguments) {
    bool is_big = std::string(arguments[1]) == "big";
    auto scalar_pv(server::SharedPV::buildMailbox());
    scalar_pv.open(scalar());
    auto mixed_pv(server::SharedPV::buildMailbox());
    mixed_pv.open(mixed());
    auto image_pv(server::SharedPV::buildReadonly());
    image_pv.open(image());
    auto call_pv(server::SharedPV::buildReadonly());
    call_pv.open(scalar());
    call_pv.onRPC([](server::SharedPV&, std::unique_ptr<server::ExecOp>&& op, Value&& argument) {
        op->logRemote(Level::Warn, "called");
        if (argument["query.fail"].valid()) op->error("refused");
        else if (argument["query.nothing"].valid()) op->reply();
        else op->reply(argument);
    });
    server::Config served = server::Config::isolated();
    served.overrideSendBE(is_big);
    auto server = served.build().addPV("scalar", scalar_pv).addPV("mixed", mixed_pv).addPV("image", image_pv)
                      .addPV("call", call_pv).start();
    std::cout << "port " << server.config().tcp_port << std::endl;
    std::string port;
    std::getline(std::cin, port);
    std::string relay = "127.0.0.1:" + port;

    client::Config asking = server.clientConfig();
    asking.overrideSendBE(is_big);
    asking.tcpTimeout = 3.0;
    client::Context context = asking.build();
    { auto op = context.get("scalar").server(relay).exec(); run(op); }
    { auto op = context.get("scalar").server(relay).pvRequest("field(value,alarm.severity)record[process=true]").exec(); run(op); }
    { auto op = context.get("scalar").server(relay).pvRequest("field(absent)").exec(); run(op); }
    { auto op = context.get("mixed").server(relay).exec(); run(op); }
    { auto op = context.get("image").server(relay).exec(); run(op); }
    { auto op = context.info("image").server(relay).exec(); run(op); }
    { auto op = context.put("scalar").server(relay).set("value", 2.5).exec(); run(op); }
    { auto op = context.put("scalar").server(relay).fetchPresent(false).set("value", 3.5).exec(); run(op); }
    { auto op = context.put("image").server(relay).set("uniqueId", 1).exec(); run(op); }
    { auto op = context.rpc("call").server(relay).arg("a", 1).arg("b", "two").exec(); run(op); }
    { auto op = context.rpc("call").server(relay).arg("fail", true).exec(); run(op); }
    { auto op = context.rpc("call").server(relay).arg("nothing", true).exec(); run(op); }
    watch(context, relay, scalar_pv, false);
    watch(context, relay, scalar_pv, true);
    epicsThreadSleep(2.0);
    call_pv.close();
    epicsThreadSleep(0.2);
    context.close();
    server.stop();
    epicsThreadSleep(0.2);
    std::cout << "done" << std::endl;
}
