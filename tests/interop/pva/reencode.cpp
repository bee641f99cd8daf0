// Decodes types and values with pvDataCPP, and encodes them in both byte orders: reads lines of a name and a type with its value,
// little-endian in hexadecimal digits. See golden.py beside this file.
#include <iostream>
#include <string>
#include <vector>

#include <pv/pvData.h>
#include <pv/pvIntrospect.h>
#include <pv/serialize.h>

#include "hexadecimal.h"

using namespace epics::pvData;
using std::string;

struct Whole : public DeserializableControl {
    void ensureData(std::size_t) {}
    void alignData(std::size_t) {}
    bool directDeserialize(ByteBuffer*, char*, std::size_t, std::size_t) { return false; }
    std::tr1::shared_ptr<const Field> cachedDeserialize(ByteBuffer* buffer) {
        return getFieldCreate()->deserialize(buffer, this);
    }
};

static void reencode(const string& name, std::vector<char>& bytes) {
    ByteBuffer buffer(&bytes[0], bytes.size(), EPICS_ENDIAN_LITTLE);
    Whole control;
    FieldConstPtr type = getFieldCreate()->deserialize(&buffer, &control);
    PVFieldPtr value = getPVDataCreate()->createPVField(type);
    value->deserialize(&buffer, &control);
    if (buffer.getRemaining()) throw std::runtime_error("bytes are left");
    std::cout << name;
    for (int order : {EPICS_ENDIAN_LITTLE, EPICS_ENDIAN_BIG}) std::cout << " " << hex(type.get(), order) << hex(value.get(), order);
    std::cout << "\n";
}

int main() {
    string name, digits;
    while (std::cin >> name >> digits) {
        std::vector<char> bytes;
        for (size_t i = 0; i < digits.size(); i += 2) bytes.push_back(std::stoi(digits.substr(i, 2), 0, 16));
        try {
            reencode(name, bytes);
        } catch (std::exception& error) {
            std::cerr << name << ": " << error.what() << "\n";
        }
    }
}
