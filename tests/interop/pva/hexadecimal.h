// What pvDataCPP encodes, as hexadecimal digits.
#include <cstdio>
#include <string>
#include <vector>

#include <pv/serialize.h>

static std::string hex(const epics::pvData::Serializable* what, int order) {
    std::vector<epicsUInt8> bytes;
    epics::pvData::serializeToVector(what, order, bytes);
    std::string text;
    char digits[3];
    for (size_t i = 0; i < bytes.size(); i++) {
        snprintf(digits, sizeof digits, "%02X", bytes[i]);
        text += digits;
    }
    return text;
}
