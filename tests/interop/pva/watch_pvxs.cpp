// A pvxs client that watches a PV, which it searches for as its environment says, and prints its values, and `lost`, a line each.
//
//     watch_pvxs NAME
#include <iostream>

#include <epicsEvent.h>
#include <pvxs/client.h>
#include <pvxs/data.h>

using namespace pvxs;

int main(int, char** arguments) {
    client::Context context = client::Context::fromEnv();
    epicsEvent some;
    auto subscription = context.monitor(arguments[1]).maskConnected(true).maskDisconnected(false)
        .event([&](client::Subscription&) { some.signal(); }).exec();
    while (true) {
        try {
            if (Value update = subscription->pop())
                std::cout << update["value"].as<int64_t>() << std::endl;
            else
                some.wait();
        } catch (client::Disconnect&) {
            std::cout << "lost" << std::endl;
        }
    }
}
