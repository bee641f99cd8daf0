// A pvAccessCPP client that watches a PV, which it searches for as its environment says, and prints its values, and `lost`, a line each.
//
//     watch_pvaccesscpp NAME
#include <iostream>

#include <pv/clientFactory.h>
#include <pv/configuration.h>
#include <pv/pvAccess.h>
#include <pv/pvData.h>
#include <pva/client.h>

using namespace epics::pvData;

int main(int, char** arguments) {
    epics::pvAccess::ClientFactory::start();
    pvac::ClientProvider provider("pva", epics::pvAccess::ConfigurationBuilder().push_env().build());
    pvac::ClientChannel channel = provider.connect(arguments[1]);
    pvac::MonitorSync subscription = channel.monitor();
    while (true) {
        // It may end early, with neither an event nor its time over.
        if (!subscription.wait(1))
            continue;
        if (subscription.event.event == pvac::MonitorEvent::Disconnect)
            std::cout << "lost" << std::endl;
        else if (subscription.event.event == pvac::MonitorEvent::Data)
            while (subscription.poll())
                std::cout << subscription.root->getSubFieldT<PVScalar>("value")->getAs<int64>() << std::endl;
    }
}
