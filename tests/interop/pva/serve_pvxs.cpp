// A pvxs server that prints its port and ends with its standard input. Each line of that is posted to `ticks`.
//
//     serve_pvxs N      `scalar`, `words`, `mixed`, `long` (10,000,000 doubles), `ticks`, `echo` (called), and n0 to n(N-1)
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include <pvxs/data.h>
#include <pvxs/nt.h>
#include <pvxs/server.h>
#include <pvxs/sharedpv.h>

using namespace pvxs;

static server::SharedPV mailbox(const Value& value) {
    auto pv(server::SharedPV::buildMailbox());
    pv.open(value);
    return pv;
}

int main(int, char** arguments) {
    Value scalar = nt::NTScalar{TypeCode::Float64, true, true, true, true}.create();
    scalar["value"] = 1.5;
    scalar["display.units"] = "V";
    Value words = nt::NTScalar{TypeCode::StringA}.create();
    words["value"] = shared_array<const std::string>({"one", "two"});
    Value mixed = TypeDef(TypeCode::Struct, "mixed", {
        members::Int32("n"),
        members::Union("choice", {members::Float64("number"), members::StringA("words")}),
        members::Any("any"),
        members::StructA("rows", {members::Int64("n"), members::String("s")}),
    }).create();
    mixed["n"] = 7;
    Value longest = nt::NTScalar{TypeCode::Float64A}.create();
    shared_array<double> numbers(10000000);
    for (size_t i = 0; i < numbers.size(); i++) numbers[i] = double(i);
    longest["value"] = numbers.freeze().castTo<const void>();
    Value tick = nt::NTScalar{TypeCode::Int64}.create();
    tick["value"] = 0;

    auto ticks(server::SharedPV::buildReadonly());
    ticks.open(tick);
    auto echo(server::SharedPV::buildReadonly());
    echo.open(scalar);
    echo.onRPC([](server::SharedPV&, std::unique_ptr<server::ExecOp>&& op, Value&& argument) {
        if (argument["query.fail"].valid()) op->error("refused");
        else op->reply(argument);
    });
    auto server = server::Config::fromEnv().build();
    server.addPV("scalar", mailbox(scalar)).addPV("words", mailbox(words)).addPV("mixed", mailbox(mixed))
        .addPV("long", mailbox(longest)).addPV("ticks", ticks).addPV("echo", echo);
    for (int i = 0; i < atoi(arguments[1]); i++) {
        Value value = nt::NTScalar{TypeCode::Int32}.create();
        value["value"] = i;
        server.addPV("n" + std::to_string(i), mailbox(value));
    }
    server.start();
    std::cout << "port " << server.config().tcp_port << std::endl;
    std::string line;
    while (std::getline(std::cin, line)) {
        Value next = tick.cloneEmpty();
        next["value"] = atol(line.c_str());
        ticks.post(next);
    }
    server.stop();
}
