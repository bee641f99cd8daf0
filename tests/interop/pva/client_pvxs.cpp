// A pvxs client of the PVs of test_peers.py: reads, puts, subscribes to and calls them, and prints what it sees, a line each.
//
//     client_pvxs HOST:PORT
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include <epicsEvent.h>
#include <pvxs/client.h>
#include <pvxs/data.h>
#include <pvxs/nt.h>

using namespace pvxs;

template <typename Operation>
static std::string refused(Operation&& operation) {
    try {
        operation();
    } catch (client::RemoteError& error) {
        return error.what();
    }
    return "not refused";
}

static double sum(const shared_array<const double>& all) {
    double sum = 0;
    for (double one : all)
        sum += one;
    return sum;
}

int main(int, char** arguments) {
    client::Config config;
    config.nameServers.push_back(arguments[1]);
    config.autoAddrList = false;
    config.udp_port = 1;
    client::Context context = config.build();
    std::cout.precision(15);
    std::cout << std::unitbuf;

    Value number = context.get("NUMBER").exec()->wait(10);
    std::cout << "number " << number["value"].as<double>() << " " << number["display.units"].as<std::string>() << "\n";
    context.put("NUMBER").set("value", 43.5).exec()->wait(10);
    number = context.get("NUMBER").field("value").field("alarm").exec()->wait(10);
    std::cout << "put " << number["value"].as<double>() << " " << number["alarm.message"].as<std::string>() << "\n";
    std::cout << "refused " << refused([&]() { context.put("NUMBER").set("value", 99).exec()->wait(10); }) << "\n";
    std::cout << "absent " << refused([&]() { context.get("NUMBER").field("absent").exec()->wait(10); }) << "\n";

    Value choice = context.get("CHOICE").exec()->wait(10);
    std::cout << "choice " << choice["value.index"].as<int>() << " "
              << choice["value.choices"].as<shared_array<const std::string>>()[2] << "\n";

    Value mixed = context.get("MIXED").exec()->wait(10);
    std::cout << "mixed " << mixed["x"].as<int>() << " " << mixed["y.z"].as<shared_array<const double>>()[1] << " "
              << mixed["any->"].as<int>() << "\n";
    context.put("MIXED").build([](Value&& build) {
        Value value = std::move(build);
        value["x"] = 8;
        Value text = TypeDef(TypeCode::String).create();
        text = "text";
        value["any"].from(text);
        return value;
    }).exec()->wait(10);
    mixed = context.get("MIXED").exec()->wait(10);
    std::cout << "mixed " << mixed["x"].as<int>() << " " << mixed["any->"].as<std::string>() << "\n";
    context.put("EITHER").build([](Value&& build) {
        Value value = std::move(build);
        value["value->number"] = 2.5;
        return value;
    }).exec()->wait(10);
    std::cout << "either " << context.get("EITHER").exec()->wait(10)["value->number"].as<double>() << "\n";

    shared_array<const double> large = context.get("LARGE").exec()->wait(60)["value"].as<shared_array<const double>>();
    std::cout << "large " << large.size() << "\n";
    shared_array<double> mine(large.size());
    for (size_t at = 0; at < mine.size(); at++)
        mine[at] = double(at % 1000);
    context.put("LARGE").set("value", mine.freeze()).exec()->wait(60);
    large = context.get("LARGE").exec()->wait(60)["value"].as<shared_array<const double>>();
    std::cout << "large " << large.size() << " " << sum(large) << "\n";

    for (bool pipeline : {false, true}) {
        epicsEvent some;
        auto subscription = context.monitor("COUNTER").record("queueSize", 50).record("pipeline", pipeline)
            .event([&](client::Subscription&) { some.signal(); }).exec();
        long last = -1, gaps = 0, updates = 0;
        while (updates < 40 && some.wait(10)) {
            while (Value update = subscription->pop()) {
                long now = update["value"].as<int64_t>();
                gaps += last >= 0 && now != last + 1;
                last = now;
                updates++;
            }
        }
        std::cout << "counter " << (updates >= 40) << " " << gaps << "\n";
    }

    Value sum = context.rpc("SUM").arg("a", 1.5).arg("b", 2.0).exec()->wait(20);
    std::cout << "sum " << sum["value"].as<double>() << "\n";
    std::cout << "complaint " << refused([&]() { context.rpc("SUM").arg("a", 1.5).exec()->wait(20); }) << "\n";
    // As pvxlist does.
    Value names = context.rpc("server").server(arguments[1]).arg("op", "channels").exec()->wait(20);
    std::cout << "names";
    for (const std::string& name : names["value"].as<shared_array<const std::string>>())
        if (name.find(':') == std::string::npos)
            std::cout << " " << name;
    std::cout << "\n";
    std::vector<std::shared_ptr<client::Operation>> gets;
    for (int at = 0; at < 10000; at++)
        gets.push_back(context.get("MANY:" + std::to_string(at)).server(arguments[1]).exec());
    int right = 0;
    for (auto& get : gets)
        right += get->wait(60)["value"].as<int>() == 7;
    std::cout << "many " << right << "\n";
    Value info = context.info("CHOICE").exec()->wait(10);
    std::cout << "info " << info.id() << std::endl;
    _exit(0);
}
