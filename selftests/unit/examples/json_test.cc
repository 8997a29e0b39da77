#include "common/json.h"

#include <cmath>
#include <string>
#include <string_view>

#include "gtest/gtest.h"

namespace examples {
namespace {

using namespace std::string_view_literals;

struct StringCase {
  std::string_view text, want;
};

constexpr StringCase kStringCases[] = {
    {"", R"("")"},
    {"vfs_read.isra.0", R"("vfs_read.isra.0")"},
    {"a\"b\\c", R"("a\"b\\c")"},
    {"\t\n\r\x01\x1f", R"("\t\n\u000d\u0001\u001f")"},
    {"nul\0byte"sv, R"("nul\u0000byte")"},
    {"\x7f", R"("\u007f")"},
    // Valid UTF-8 passes: two, three and four bytes, and the last code point.
    {"\xc2\x80 \xdf\xbf", "\"\xc2\x80 \xdf\xbf\""},
    {"\xe0\xa0\x80 \xe2\x82\xac", "\"\xe0\xa0\x80 \xe2\x82\xac\""},
    {"\xf0\x90\x80\x80 \xf4\x8f\xbf\xbf",
     "\"\xf0\x90\x80\x80 \xf4\x8f\xbf\xbf\""},
    // Bytes that are no UTF-8: alone, cut off, overlong, surrogate, too high.
    {"\xff", R"("\u00ff")"},
    {"\x80\xbf", R"("\u0080\u00bf")"},
    {"a\xc3", R"("a\u00c3")"},
    {"\xe2\x82", R"("\u00e2\u0082")"},
    {"\xe2\x82x", R"("\u00e2\u0082x")"},
    {"\xf0\x90\x80", R"("\u00f0\u0090\u0080")"},
    {"\xc0\xaf", R"("\u00c0\u00af")"},
    {"\xe0\x80\xaf", R"("\u00e0\u0080\u00af")"},
    {"\xf0\x80\x80\xaf", R"("\u00f0\u0080\u0080\u00af")"},
    {"\xed\xa0\x80", R"("\u00ed\u00a0\u0080")"},
    {"\xf4\x90\x80\x80", R"("\u00f4\u0090\u0080\u0080")"},
    {"\xf5\x80\x80\x80", R"("\u00f5\u0080\u0080\u0080")"},
    // What follows a bad byte is read anew.
    {"\xe2\xc3\xa9", "\"\\u00e2\xc3\xa9\""},
};

TEST(JsonString, Cases) {
  for (const StringCase& c : kStringCases) {
    std::string out = "x";
    AppendJsonString(c.text, &out);
    EXPECT_EQ(out, "x" + std::string(c.want));
  }
}

TEST(JsonWriter, CommasComeByThemselves) {
  JsonWriter json;
  json.BeginObject();
  json.Key("empty").BeginArray();
  json.EndArray();
  json.Key("list").BeginArray();
  json.Number(1);
  json.BeginObject();
  json.EndObject();
  json.Bool(true);
  json.Null();
  json.EndArray();
  json.Key("last").Bool(false);
  json.EndObject();
  EXPECT_EQ(json.text(),
            R"({"empty":[],"list":[1,{},true,null],"last":false})");
}

TEST(JsonWriter, LinesAreOnlySpace) {
  JsonWriter json;
  json.BeginArray();
  json.Line();
  json.Number(1);
  json.Line();
  json.Number(2);
  json.Line();
  json.EndArray();
  EXPECT_EQ(json.text(), "[\n1,\n2\n]");
}

TEST(JsonWriter, Numbers) {
  JsonWriter json;
  json.BeginArray();
  json.Number(UINT64_MAX);
  json.Decimal(1.25, 1);
  json.Decimal(2, 3);
  json.Decimal(INFINITY, 1);
  json.Decimal(NAN, 1);
  json.EndArray();
  EXPECT_EQ(json.text(), "[18446744073709551615,1.2,2.000,null,null]");
}

TEST(JsonWriter, AddressesHaveAllDigitsOrAreNull) {
  JsonWriter json;
  json.BeginArray();
  json.Addr(0xffffffff81234560);
  json.Addr(0x10);
  json.Addr(0);
  json.EndArray();
  EXPECT_EQ(json.text(), R"(["0xffffffff81234560","0x0000000000000010",null])");
}

TEST(JsonWriter, KeysAreEscapedToo) {
  JsonWriter json;
  json.BeginObject();
  json.Key("a\"\xff").Null();
  json.EndObject();
  EXPECT_EQ(json.text(), R"({"a\"\u00ff":null})");
}

}  // namespace
}  // namespace examples
