// Prints types and values as pvDataCPP encodes them, in both byte orders: the file that protocols/pva/machines/tests/golden/values.txt
// is made of. See golden.py beside this file.
#include <iostream>
#include <string>
#include <vector>

#include <pv/bitSet.h>
#include <pv/pvData.h>
#include <pv/pvIntrospect.h>
#include <pv/serialize.h>
#include <pv/standardField.h>
#include <pv/status.h>

#include "hexadecimal.h"

using namespace epics::pvData;
using std::string;

static void show(const string& name, const Serializable* what) {
    std::cout << name;
    for (int order : {EPICS_ENDIAN_LITTLE, EPICS_ENDIAN_BIG}) {
        string text = hex(what, order);
        std::cout << " " << (text.empty() ? "-" : text);
    }
    std::cout << "\n";
}

static void both(const string& name, const PVStructurePtr& value) {
    show("type/" + name, value->getStructure().get());
    show("value/" + name, value.get());
}

template <typename T>
static shared_vector<const T> list(size_t count, T first, T second) {
    shared_vector<T> all(count);
    for (size_t i = 0; i < count; i++) all[i] = i % 2 ? second : first;
    return freeze(all);
}

static FieldBuilderPtr builder() { return getFieldCreate()->createFieldBuilder(); }
static PVStructurePtr make(const StructureConstPtr& type) { return getPVDataCreate()->createPVStructure(type); }

static const ScalarType kinds[] = {pvBoolean, pvByte, pvShort, pvInt, pvLong, pvUByte,
                                   pvUShort,  pvUInt, pvULong, pvFloat, pvDouble, pvString};

static void scalars() {
    FieldBuilderPtr type = builder()->setId("all");
    for (ScalarType kind : kinds) type = type->add(ScalarTypeFunc::name(kind), kind);
    PVStructurePtr value = make(type->createStructure());
    both("scalars-zero", value);
    value->getSubFieldT<PVBoolean>("boolean")->put(true);
    value->getSubFieldT<PVByte>("byte")->put(-2);
    value->getSubFieldT<PVShort>("short")->put(-300);
    value->getSubFieldT<PVInt>("int")->put(-70000);
    value->getSubFieldT<PVLong>("long")->put(-5000000000ll);
    value->getSubFieldT<PVUByte>("ubyte")->put(254);
    value->getSubFieldT<PVUShort>("ushort")->put(65000);
    value->getSubFieldT<PVUInt>("uint")->put(4000000000u);
    value->getSubFieldT<PVULong>("ulong")->put(18000000000000000000ull);
    value->getSubFieldT<PVFloat>("float")->put(1.5f);
    value->getSubFieldT<PVDouble>("double")->put(-2.25);
    value->getSubFieldT<PVString>("string")->put("text");
    show("value/scalars", value.get());
    value->getSubFieldT<PVString>("string")->put(string(300, 'x'));
    show("value/scalars-long-text", value.get());
}

static void arrays() {
    FieldBuilderPtr type = builder();
    for (ScalarType kind : kinds) type = type->addArray(ScalarTypeFunc::name(kind), kind);
    PVStructurePtr value = make(type->createStructure());
    both("arrays-empty", value);
    value->getSubFieldT<PVBooleanArray>("boolean")->replace(list<boolean>(3, 1, 0));
    value->getSubFieldT<PVByteArray>("byte")->replace(list<int8>(3, 1, -1));
    value->getSubFieldT<PVShortArray>("short")->replace(list<int16>(3, 1, -1));
    value->getSubFieldT<PVIntArray>("int")->replace(list<int32>(3, 1, -1));
    value->getSubFieldT<PVLongArray>("long")->replace(list<int64>(3, 1, -1));
    value->getSubFieldT<PVUByteArray>("ubyte")->replace(list<uint8>(3, 1, 2));
    value->getSubFieldT<PVUShortArray>("ushort")->replace(list<uint16>(3, 1, 2));
    value->getSubFieldT<PVUIntArray>("uint")->replace(list<uint32>(3, 1, 2));
    value->getSubFieldT<PVULongArray>("ulong")->replace(list<uint64>(3, 1, 2));
    value->getSubFieldT<PVFloatArray>("float")->replace(list<float>(3, 1, -0.5));
    value->getSubFieldT<PVDoubleArray>("double")->replace(list<double>(3, 1, -0.5));
    value->getSubFieldT<PVStringArray>("string")->replace(list<string>(3, "a", string(260, 'y')));
    show("value/arrays", value.get());
    value->getSubFieldT<PVUShortArray>("ushort")->replace(list<uint16>(300, 1, 2));
    show("value/arrays-long", value.get());
}

static void bounded() {
    PVStructurePtr value = make(builder()->addBoundedString("text", 8)->addBoundedArray("most", pvInt, 4)
                                    ->addFixedArray("exactly", pvShort, 2)->createStructure());
    value->getSubFieldT<PVString>("text")->put("short");
    value->getSubFieldT<PVIntArray>("most")->replace(list<int32>(3, 7, 8));
    value->getSubFieldT<PVShortArray>("exactly")->replace(list<int16>(2, 9, 10));
    both("bounded", value);
}

static void composed() {
    PVStructurePtr value = make(
        builder()->setId("top")
            ->addNestedStructure("inner")->setId("in")->add("x", pvInt)->add("y", pvString)->endNested()
            ->addNestedUnion("choice")->setId("un")->add("number", pvDouble)->addArray("words", pvString)
                ->addNestedStructure("pair")->add("a", pvUByte)->add("b", pvUByte)->endNested()->endNested()
            ->add("any", getFieldCreate()->createVariantUnion())
            ->addNestedStructureArray("rows")->add("n", pvLong)->endNested()
            ->addNestedUnionArray("choices")->add("i", pvInt)->add("s", pvString)->endNested()
            ->addArray("anys", getFieldCreate()->createVariantUnion())
            ->createStructure());
    both("composed-empty", value);
    value->getSubFieldT<PVInt>("inner.x")->put(5);
    value->getSubFieldT<PVString>("inner.y")->put("why");
    value->getSubFieldT<PVUnion>("choice")->select<PVDouble>("number")->put(0.125);
    PVIntPtr number = getPVDataCreate()->createPVScalar<PVInt>();
    number->put(77);
    value->getSubFieldT<PVUnion>("any")->set(number);
    PVStructureArrayPtr rows = value->getSubFieldT<PVStructureArray>("rows");
    PVStructureArray::svector two(3);
    two[0] = make(rows->getStructureArray()->getStructure());
    two[0]->getSubFieldT<PVLong>("n")->put(-9);
    two[2] = make(rows->getStructureArray()->getStructure());
    rows->replace(freeze(two));
    PVUnionArrayPtr choices = value->getSubFieldT<PVUnionArray>("choices");
    PVUnionArray::svector some(3);
    some[0] = getPVDataCreate()->createPVUnion(choices->getUnionArray()->getUnion());
    some[0]->select<PVString>("s")->put("chosen");
    some[1] = getPVDataCreate()->createPVUnion(choices->getUnionArray()->getUnion());
    choices->replace(freeze(some));
    PVUnionArrayPtr anys = value->getSubFieldT<PVUnionArray>("anys");
    PVUnionArray::svector more(2);
    more[0] = getPVDataCreate()->createPVVariantUnion();
    PVStructurePtr pair = make(builder()->add("p", pvFloat)->createStructure());
    pair->getSubFieldT<PVFloat>("p")->put(8);
    more[0]->set(pair);
    anys->replace(freeze(more));
    show("value/composed", value.get());
    PVStructurePtr chosen = value->getSubFieldT<PVUnion>("choice")->select<PVStructure>("pair");
    chosen->getSubFieldT<PVUByte>("b")->put(3);
    value->getSubFieldT<PVUnion>("any")->set(PVFieldPtr());
    show("value/composed-otherwise", value.get());
}

static void bits() {
    static const std::vector<std::vector<int>> sets = {{}, {0}, {1, 7}, {8}, {55}, {63}, {64}, {65, 130}, {3, 127}};
    for (const std::vector<int>& set : sets) {
        BitSet bits;
        string name = "bits/";
        for (int bit : set) {
            bits.set(bit);
            name += (name.back() == '/' ? "" : ",") + std::to_string(bit);
        }
        show(name, &bits);
    }
}

int main() {
    scalars();
    arrays();
    bounded();
    composed();
    bits();
    Status ok, warning(Status::STATUSTYPE_WARNING, "careful"), error(Status::STATUSTYPE_ERROR, "no", "here");
    show("status/ok", &ok);
    show("status/warning", &warning);
    show("status/error", &error);
}
